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

// The weights of an attribute for tagging with weights="observed", half a cache line: a dense row, or single weights.
constexpr int kHotLabels = 3;  // attributes with at least this many labels get a dense row
struct AttributeWeights {
  double weight[kHotLabels - 1];  // 0 where there are fewer
  int32_t label[kHotLabels - 1];
  int32_t row;  // of Prepared::hot_rows, or -1
};

// Scores of a label after a history of m labels: the sum over all n-grams of up to m + 1 labels that end there. A row
// is a history, its first label most significant. Position t uses the table with m = min(t, k).
struct HistoryTable {
  int64_t rows = 0;            // Y^m
  const double* tr = nullptr;  // [rows][YP] scores, padding 0
  const double* E = nullptr;   // [rows][YP] exp(tr - top), padding 0
  double top = 0.0;            // largest score
};

// Label pairs with a score other than 0, of order 1: E = exp(tr - top) is `missing` for all other pairs, so
//   alpha^T E = missing sum(alpha) 1^T + alpha^T (E - missing)
// costs Y + n instead of Y^2 multiplications. Listed twice: by the label after and by the label before.
//
// With order k the longest n-grams that have a weight, as pairs of states (i, h) and (h, y). All others have the score
// of the n-gram without its first label: E[i, h, y] = base[h, y] without a weight, so
//   sum_i alpha[i, h] E[i, h, y] = base[h, y] sum_i alpha[i, h] + sum_i alpha[i, h] (E[i, h, y] - base[h, y])
// costs Y^k + n instead of Y^(k+1).
struct SparsePairs {
  int64_t n = 0;
  double missing = 1.0;                   // exp(0 - top)
  const double* base = nullptr;           // [Y^k] order k >= 2, instead of `missing`
  const int32_t* before_ptr = nullptr;    // [states + 1] entries of `before` that precede a state
  const int32_t* before = nullptr;        // [n]
  const double* before_score = nullptr;   // [n] tr; order 1
  const double* before_excess = nullptr;  // [n] E - missing
  const double* before_E = nullptr;       // [n]; order 1
  const int32_t* before_place = nullptr;  // [n] where the pair is in `after`
  const int32_t* after_ptr = nullptr;     // [states + 1] entries of `after` that follow a state
  const int32_t* after = nullptr;         // [n]
  const double* after_score = nullptr;    // [n]; order 1
  const double* after_excess = nullptr;   // [n]
  const double* after_E = nullptr;        // [n]; order 1
};

// One weight vector prepared for the lattice. Y labels, rows padded to YP.
struct Prepared {
  const LayoutView* layout = nullptr;
  int Y = 0, YP = 0;
  int order = 1;
  int64_t n_states = 0;                  // Y^k
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
  const double* row_low = nullptr;       // [Y] smallest and largest score after each label, for best paths of order 1;
  const double* row_high = nullptr;      // null: unknown
  double tr_max = 0.0;                   // of the first table; with sparse pairs at least 0
  // Null: dense. With order 1 E and ET are null otherwise; with order k only lanes use the list.
  const SparsePairs* sparse = nullptr;
  // Expected n-grams. Order 1: in the order of the weights, [n_ngrams]; their sums of outer products are in the same
  // order (listed_sums), or [Y][YP] at `places`. Otherwise all tables, [n_ngrams] = [ngram_size].
  int64_t n_ngrams = 0;
  const double* ngram_E = nullptr;   // [n_ngrams] exponentials
  const double* ngram_tr = nullptr;  // [n_ngrams] scores
  const int64_t* places = nullptr;   // [n_ngrams] in a table [Y][YP]; null: the same order
  bool listed_sums = false;
  const double* start = nullptr;      // [YP], null without boundary weights
  const double* end = nullptr;        // [YP]
  const double* edges = nullptr;      // weights of the edge attributes
  const double* offsets = nullptr;    // [n_positions][YP] constants added to the node scores, null: none
  const int32_t* token_of = nullptr;  // [n_positions] row of `shared` with the node scores, null: not shared
  const double* shared = nullptr;     // [.][YP] node scores of distinct positions, without boundary and offsets
  double scale = 1.0;                 // factor of w and of edges; tr, start and end are unscaled
  // weights="observed", fixed weights: [n_attributes], used instead of hot_row and w; null: not made.
  const AttributeWeights* attributes = nullptr;
};

// Sequences side by side, one in each lane (lane_lattice.hpp). Sixteen measured faster than eight with 22 to 1,100
// labels: indices and factors of pairs are read once for all of them. Eight for small requests, for mini-batches, and
// for order k, whose tables are large.
constexpr int kManyLanes = 16, kFewLanes = 8;

// Temporaries of one worker for such groups of up to max_T positions.
struct LaneScratch {
  int lanes = 0;           // kManyLanes or kFewLanes
  double* S = nullptr;     // [T][Y][lanes] exp(U - max)
  double* A = nullptr;     // [T][states][lanes] forward, not normalised
  double* b = nullptr;     // [T][states][lanes] backward
  double* z = nullptr;     // [T][states][lanes]; with order 1 the table S
  double* inv = nullptr;   // [T][lanes] 1 / scale
  double* rows = nullptr;  // [lanes][row_block][YP] node scores or marginals of a few positions
  int64_t row_block = 0;
  double* row = nullptr;                       // [2][Y][lanes]
  double *sums = nullptr, *squares = nullptr;  // products summed over the chunk (LaneSums)
  // For derivatives along a direction, else null.
  double* z_apart = nullptr;            // z when S must stay; with order k the table z
  double* q = nullptr;                  // [T][Y][lanes]
  double *dA = nullptr, *dz = nullptr;  // [T][states][lanes]
};

// Numbers in the cache block of a group of sequences, the longest of T positions: A, b, S.
static inline int64_t lane_block(int64_t T, int64_t Y, int64_t n_states, int64_t lanes) {
  return T * (2 * n_states + Y) * lanes;
}

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
  double* sums = nullptr;    // [ngram_size] sums of n-grams that are not such products
  double* matrix = nullptr;  // [2][Y][YP] work matrices
  double* ngrams = nullptr;  // [Y^k][YP] work table of order k >= 2, else null
  double* pairs = nullptr;   // [T][Y][YP] with edge attributes: exp(psi - max) of each position, else null
  int32_t* back = nullptr;   // [T][YP] Viterbi back pointers of order k >= 2
  LaneScratch lanes;         // where sequences are solved side by side
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
  // The same for sparse pairs, in the order of `before` and of `after`. With order k the excess over base_ER [Y^k], the
  // product for n-grams that are not listed.
  const double *before_ER = nullptr, *after_ER = nullptr, *base_ER = nullptr;
};

}  // namespace crfit
