// Inputs and temporaries of computations on one sequence: a prepared weight vector, a second one for derivatives along
// a direction, and a worker's temporaries. Pointers and sizes only; prepared.hpp owns the memory.
#pragma once

#include <cstdint>

#include "base/views.hpp"

namespace crfit {

// The attributes of each position for weights="observed": those with many labels as dense rows, the others as single
// weights. Built once for training data; tagging uses the attribute ids.
// Up to kTokenPadding entries may be read beyond the end of the rows and of the weights.
constexpr int64_t kTokenPadding = 16;
struct TokenIndex {
  const int64_t* dense_ptr = nullptr;       // [n_positions + 1]
  const int32_t* dense_rows = nullptr;      // rows of Prepared::hot_rows
  const double* dense_values = nullptr;     // null: all 1
  const int64_t* sparse_ptr = nullptr;      // [n_positions + 1]
  const int64_t* sparse_weights = nullptr;  // ids of weights
  const int32_t* sparse_labels = nullptr;
  const double* sparse_values = nullptr;  // null: all 1
};

// Scores of a label after a history of m labels: the sum over all n-grams of up to m + 1 labels that end there. A row
// is a history, its first label most significant. Position t uses the table with m = min(t, k).
struct HistoryTable {
  int64_t rows = 0;            // Y^m
  const double* tr = nullptr;  // [rows][YP] scores, padding 0
  const double* E = nullptr;   // [rows][YP] exp(tr - top), padding 0
  double top = 0.0;            // largest score
};

// One weight vector prepared for the lattice. Y labels, rows padded to YP.
struct Prepared {
  const LayoutView* layout = nullptr;
  int Y = 0, YP = 0;
  int order = 1;
  const double* w = nullptr;             // [n_weights]
  int64_t row_stride = 0;                // weights="all": from one row of w to the next, Y or more
  int64_t direct_rows = 0;               // weights="all": rows below this may be read YP wide in place
  const double* tail_rows = nullptr;     // [.][YP] padded copies of the remaining rows
  const int32_t* hot_row = nullptr;      // weights="observed": [n_attributes] row of attributes with many labels, or -1
  const double* hot_rows = nullptr;      // [.][YP]
  const TokenIndex* tokens = nullptr;    // null: attributes are looked up by id
  const HistoryTable* tables = nullptr;  // [order] for m = 1..k, contiguous in memory
  int64_t ngram_size = 0;                // doubles of all tables together
  const double* tr = nullptr;            // scores of the tables; with order 1 [Y][YP] transition scores
  const double* E = nullptr;             // their exponentials
  const double* ET = nullptr;            // [Y^(k-1)][Y][YP] the longest table with dropped label and label exchanged
  double tr_max = 0.0;                   // of the first table
  const double* start = nullptr;         // [YP], null without boundary weights
  const double* end = nullptr;           // [YP]
  const double* edges = nullptr;         // weights of the edge attributes
  const double* offsets = nullptr;       // [n_positions][YP] constants added to the node scores, null: none
  const int32_t* token_of = nullptr;     // [n_positions] row of `shared` with the node scores, null: not shared
  const double* shared = nullptr;        // [.][YP] node scores of distinct positions, without boundary and offsets
  double scale = 1.0;                    // factor of w and of edges; tr, start and end are unscaled
};

// Temporaries of one worker, for sequences of up to max_T positions. For order k, read [YP] as YP Y^(k-1) entries for
// alpha, beta, z and back; the last label is padded.
struct Scratch {
  double* U = nullptr;       // [T][YP] node scores, log domain
  double* S = nullptr;       // [T][YP] exp(U - max), padding 0
  double* alpha = nullptr;   // [T][YP] forward, each row sums to 1
  double* beta = nullptr;    // [T][YP] backward, sum_j alpha * beta = 1
  double* z = nullptr;       // [T][YP] S * beta / scale: the right factor of a pair marginal
  double* inv = nullptr;     // [T] 1 / scale
  double* row = nullptr;     // [2][YP] work row; then 0 for labels and 1 for padding
  double* outer = nullptr;   // [ngram_size] sum of outer(alpha_{t-1}, z_t)
  double* matrix = nullptr;  // [2][Y][YP] work matrices
  double* ngrams = nullptr;  // [Y^k][YP] work table of order k >= 2, else null
  double* pairs = nullptr;   // [T][Y][YP] with edge attributes: exp(psi - max) of each position, else null
  int32_t* back = nullptr;   // [T][YP] Viterbi back pointers of order k >= 2
  // For derivatives along a direction, else null. "d" is the derivative of what follows it.
  double* q = nullptr;       // [T][YP] node scores of the direction
  double* dalpha = nullptr;  // [T][YP]
  double* dbeta = nullptr;   // [T][YP]
  double* dz = nullptr;      // [T][YP] S * d(beta exp(q)) / scale: the derivative of z at fixed scales
};

// A second weight vector, for the derivative along a direction.
struct Direction {
  const double* base_scores = nullptr;  // [n_positions][YP] node scores at the point, boundary included
  const double* step_scores = nullptr;  // [n_positions][YP] node scores of the direction
  const Prepared* base = nullptr;       // transitions at the point
  const Prepared* step = nullptr;       // transitions of the direction
  double a = 0.0;                       // step length
};

// The direction of a Hessian-vector product, prepared for the lattice.
struct Tangent {
  const Prepared* step = nullptr;  // the direction, prepared like weights; its exponentials are not used
  const double* ER = nullptr;      // E * transitions of the direction, like Prepared::E
  const double* ERT = nullptr;     // the same exchanged, like Prepared::ET
  bool propagate = false;          // propagate derivatives in the log domain, without the cache
};

}  // namespace crfit
