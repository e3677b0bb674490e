// Views of a dataset and of a weight layout: pointers and sizes; the memory is owned by NumPy arrays.
#pragma once

#include <cstdint>

namespace crfit {

struct DataView {
  int64_t n_sequences = 0;
  int64_t n_positions = 0;
  const int64_t* seq_ptr = nullptr;     // [n_sequences + 1] positions of a sequence
  const int64_t* attr_ptr = nullptr;    // [n_positions + 1] attributes of a position
  const int32_t* attr_ids = nullptr;    // [n_occurrences]
  const double* attr_values = nullptr;  // [n_occurrences], null: all 1
  const int32_t* labels = nullptr;      // [n_positions], null: unlabelled
  const int64_t* edge_ptr = nullptr;    // [n_positions + 1], null: no edge attributes
  const int32_t* edge_ids = nullptr;    // edge attributes on the pair (label before, label here)
  const double* weights = nullptr;      // [n_sequences] c_i, null: all 1
  // Tagging: labels that a position may have. Rows of `masks` are 0 for these and -inf for the others.
  const int32_t* mask_of = nullptr;  // [n_positions] row, -1: any label; null: any label everywhere
  const double* masks = nullptr;     // [.][Y]
};

// Weights of the label n-grams with m previous labels; an n-gram's code has its labels as digits in base Y.
struct NgramBlock {
  const int64_t* codes = nullptr;  // ascending; null: all Y^(m+1) have a weight
  int64_t n = 0;                   // weights
  int64_t offset = 0;              // place of the first
};

struct LayoutView {
  int n_labels = 0;  // Y
  int order = 1;     // k, the longest label history
  int64_t n_attributes = 0;
  int64_t n_edge_attributes = 0;
  int64_t n_free = 0;                     // unpenalised attributes, at the end
  const int64_t* state_ptr = nullptr;     // [n_attributes + 1], null: every (attribute, label) has a weight
  const int32_t* state_labels = nullptr;  // [state_ptr[n_attributes]]
  const NgramBlock* ngrams = nullptr;     // [order] for m = 1..k
  const int64_t* pair_ptr = nullptr;      // [n_edge_attributes + 1], null: every (edge attribute, pair) has a weight
  const int32_t* pair_codes = nullptr;    // previous * Y + current
  bool boundary = false;                  // weights for the first and the last label
  int64_t transition_offset = 0, start_offset = 0, end_offset = 0, edge_offset = 0;
  int64_t n_weights = 0;
  // Label sequences that exist at all, where weights are prepared for them; null: every one does.
  const uint8_t* may_follow = nullptr;  // [Y][Y] whether the second label may follow the first
  const uint8_t* may_begin = nullptr;   // [Y] whether a sequence may begin with the label
  const uint8_t* may_end = nullptr;     // [Y]
};

// Internal linkage below: per-level files must not share an inline function with the rest of the program.

// Rows of labels are padded to whole vectors; small label sets have kernels of fixed width.
static inline int padded_labels(int n_labels) {
  return n_labels <= 64 ? (n_labels + 7) / 8 * 8 : (n_labels + 31) / 32 * 32;
}

// Index of the labels with this code in a table whose last label is padded: [..][Y][YP].
static inline int64_t padded_pair(int64_t code, int64_t Y, int64_t YP) { return code / Y * YP + code % Y; }

// Label histories of m labels, Y^m.
static inline int64_t n_histories(int64_t Y, int m) {
  int64_t n = 1;
  for (int i = 0; i < m; ++i) n *= Y;
  return n;
}

// Offset of the table [Y^m][YP] for m previous labels if the tables for 1, 2, ... are concatenated.
static inline int64_t table_offset(int64_t Y, int64_t YP, int m) {
  int64_t rows = 0;
  for (int i = 1; i < m; ++i) rows += n_histories(Y, i);
  return rows * YP;
}

// Code of the n-gram that ends at *label and has m labels before it.
static inline int64_t ngram_code(const int32_t* label, int m, int64_t Y) {
  int64_t code = 0;
  for (int i = m; i >= 0; --i) code = code * Y + label[-i];
  return code;
}

// Index of the weight of an n-gram in its block, -1 without one.
static inline int64_t find_ngram(const NgramBlock& block, int64_t code) {
  if (block.codes == nullptr) return code;
  int64_t low = 0, high = block.n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (block.codes[middle] < code)
      low = middle + 1;
    else
      high = middle;
  }
  return low < block.n && block.codes[low] == code ? low : -1;
}

// A contiguous range of weights.
struct WeightSpan {
  int64_t first, n;
};

// The weights of an edge attribute, relative to the first edge weight.
static inline WeightSpan edge_weights(const LayoutView& layout, int64_t b) {
  const int64_t all = static_cast<int64_t>(layout.n_labels) * layout.n_labels;
  if (layout.pair_ptr == nullptr) return {b * all, all};
  return {layout.pair_ptr[b], layout.pair_ptr[b + 1] - layout.pair_ptr[b]};
}

// Number of positions of the longest sequence, at least 1.
static inline int64_t longest_sequence(const DataView& data) {
  int64_t longest = 1;
  for (int64_t i = 0; i < data.n_sequences; ++i) {
    const int64_t T = data.seq_ptr[i + 1] - data.seq_ptr[i];
    longest = T > longest ? T : longest;
  }
  return longest;
}

}  // namespace crfit
