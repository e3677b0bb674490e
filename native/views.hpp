// Borrowed views of a dataset and of a weight layout: pointers and sizes only, owned by NumPy arrays.
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
};

struct LayoutView {
  int n_labels = 0;  // Y
  int64_t n_attributes = 0;
  int64_t n_edge_attributes = 0;
  const int64_t* state_ptr = nullptr;         // [n_attributes + 1], null: every (attribute, label) has a weight
  const int32_t* state_labels = nullptr;      // [state_ptr[n_attributes]]
  bool all_transitions = true;                // every (label, label) pair has a weight
  const int64_t* transition_codes = nullptr;  // else the pairs that have one, previous * Y + current
  int64_t n_transitions = 0;
  const int64_t* pair_ptr = nullptr;    // [n_edge_attributes + 1], null: every (edge attribute, pair) has a weight
  const int32_t* pair_codes = nullptr;  // previous * Y + current
  bool boundary = false;                // weights for the first and the last label
  int64_t transition_offset = 0, start_offset = 0, end_offset = 0, edge_offset = 0;
  int64_t n_weights = 0;
};

// Internal linkage below: per-level files must not share an inline function with the rest of the program.

// Rows of labels are padded to whole vectors; small label sets have kernels of fixed width.
static inline int padded_labels(int n_labels) {
  return n_labels <= 64 ? (n_labels + 7) / 8 * 8 : (n_labels + 31) / 32 * 32;
}

// Where the label pair with code previous * Y + current stands in a matrix [Y][YP].
static inline int64_t padded_pair(int64_t code, int64_t Y, int64_t YP) { return code / Y * YP + code % Y; }

}  // namespace crfit
