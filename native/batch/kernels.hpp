// Kernels of the objective over a dataset, compiled once per CPU level: chunks of sequences, sums of residual rows per
// attribute, rows of logistic regression.
#pragma once

#include <cstdint>

#include "base/phases.hpp"
#include "base/views.hpp"
#include "lattice/curvature.hpp"
#include "lattice/tables.hpp"

namespace crfit {

// Some sequences, processed in order by one worker.
struct ChunkJob {
  const DataView* data = nullptr;
  const Prepared* weights = nullptr;
  const Tangent* tangent = nullptr;
  const Kept* kept = nullptr;  // read by products, filled by gradients; null: no cache
  bool one_position = false;   // sequences of one position: no lattice, no n-grams
  bool log_domain = false;     // for every sequence, not only for those that would under- or overflow
  const Direction* direction = nullptr;
  const int64_t* sequences = nullptr;  // ids
  int64_t n_sequences = 0;
  Scratch* scratch = nullptr;
  double* loss = nullptr;            // += sum c_i (-log p)
  double* slope = nullptr;           // += its derivative along the direction
  double* pair_sum = nullptr;        // [n_ngrams] += c_i times the expected label n-grams
  double* residual = nullptr;        // [rows][YP] c_i (p - [y = gold]); null: not wanted
  double* pair_marginals = nullptr;  // [rows][Y][YP] c_i (p(t, i, j) - [gold]), with edge attributes
  const int64_t* rows = nullptr;     // first row of each sequence, or null: its first position less first_position
  int64_t first_position = 0;
  bool far_rows = false;  // there are too many rows to stay in a cache until they are summed
  bool subtract_gold = true;
  PhaseSeconds* busy = nullptr;  // time of the sampled sequences; set at the end
};

constexpr int kFewLabels = 2;  // weights="observed": an attribute with so many labels is summed label by label

// Sums residual rows over the positions of each attribute: the gradient without atomics or private copies.
struct GatherJob {
  const LayoutView* layout = nullptr;
  const int32_t* attributes = nullptr;  // ids with occurrences here, or null for 0, 1, 2, ...
  const int64_t* occ_ptr = nullptr;     // [n + 1] into occ_at
  const int32_t* occ_at = nullptr;      // begin of the residual row, times occ_step; with few labels its first label
  int64_t occ_step = 1;
  const double* occ_values = nullptr;  // null: all 1
  int64_t first = 0, last = 0;         // entries of `attributes`
  int YP = 0;
  const double* residual = nullptr;
  const double* w = nullptr;
  double* g = nullptr;
  double l2 = 0.0;           // g = sum + l2 w
  bool accumulate = false;   // g += sum instead
  double* square = nullptr;  // += |w|^2 over these weights
};

// Sums residual rows of the most frequent attributes position by position: a row is read once and added to the sums
// of all its frequent attributes, which stay in the cache.
struct FrequentJob {
  int64_t first_row = 0, last_row = 0;
  int YP = 0;
  const double* residual = nullptr;
  const int64_t* slot_ptr = nullptr;  // [rows + 1]
  const int32_t* slots = nullptr;     // frequent attributes of a row
  const double* values = nullptr;     // null: all 1
  double* sums = nullptr;             // [n_slots][YP] +=
};

// out[e] = sum of the residual rows in rows[row_ptr[e]] .. rows[row_ptr[e + 1] - 1].
struct GatherRowsJob {
  int64_t first = 0, last = 0;  // entries of row_ptr
  int YP = 0;
  const int64_t* row_ptr = nullptr;
  const int32_t* rows = nullptr;
  const double* residual = nullptr;  // [rows][YP]
  double* out = nullptr;             // [entries][YP]
};

// Node scores of sequences, boundary weights included.
struct NodeScoreJob {
  const DataView* data = nullptr;
  const Prepared* weights = nullptr;
  const int64_t* sequences = nullptr;  // ids, or null for first_sequence, first_sequence + 1, ...
  int64_t first_sequence = 0, n_sequences = 0;
  double* out = nullptr;  // [n_positions][YP]
};

// Rows of logistic regression (binary.hpp).
struct BinaryJob {
  const DataView* data = nullptr;
  const double* w = nullptr;        // [n_attributes]
  const double* offsets = nullptr;  // [n_rows], null: 0
  int64_t n_attributes = 0;         // all ids are smaller
  const int64_t* rows = nullptr;    // ids, or null for first, first + 1, ...
  int64_t first = 0, last = 0;
  bool subtract_gold = true;    // p - y, else p
  bool repeats = false;         // an attribute may occur twice in a row
  double* loss = nullptr;       // += sum c_i (-log p(y_i))
  double* slope = nullptr;      // += its derivative along the line
  double* sums = nullptr;       // [n_attributes] += the contributions of the rows
  double* curvature = nullptr;  // [n_rows] c p (1 - p): written by gradients unless null, read by products
  double* scores = nullptr;     // [n_rows] x.w, plus the offsets if any
  const double *base = nullptr, *step = nullptr;  // [n_rows] scores of a line
  double a = 0.0;
};

struct BatchKernels {
  static const BatchKernels v2, v3, v4;
  void (*loss)(const ChunkJob&);      // loss only
  void (*gradient)(const ChunkJob&);  // loss, residuals, pair sums
  void (*along)(const ChunkJob&);     // loss and slope along a direction
  void (*product)(const ChunkJob&);   // derivatives of residuals and pair sums along a direction
  void (*variance)(const ChunkJob&);  // p (1 - p) instead of residuals and pair sums
  void (*node_scores)(const NodeScoreJob&);
  void (*gather)(const GatherJob&);
  void (*frequent)(const FrequentJob&);
  void (*add_rows)(const GatherRowsJob&);
  void (*binary_loss)(const BinaryJob&);
  void (*binary_gradient)(const BinaryJob&);
  void (*binary_product)(const BinaryJob&);
  void (*binary_squares)(const BinaryJob&);
  void (*binary_scores)(const BinaryJob&);
  void (*binary_along)(const BinaryJob&);
};

}  // namespace crfit
