// What the per-level kernels take and give. Compiled once per CPU level, reached through a table of functions, each
// of which works on a chunk of sequences, of attributes or of weights: dispatch costs nothing at that size.
#pragma once

#include <cstdint>

#include "curvature.hpp"
#include "phases.hpp"
#include "views.hpp"

namespace crfit {

// The attributes of each position sorted for weights="observed": those with many labels as dense rows, the others as
// single weights. Made once for training data; tagging goes through the attribute ids.
// kTokenPadding entries may be read beyond the end of the rows and of the weights.
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

// Scores of a label after a history of m labels, all n-grams of up to m + 1 labels that end there added up. A row is a
// history, its first label most significant. Position t uses the table with m = min(t, k).
struct HistoryTable {
  int64_t rows = 0;            // Y^m
  const double* tr = nullptr;  // [rows][YP] scores, padding 0
  const double* E = nullptr;   // [rows][YP] exp(tr - top), padding 0
  double top = 0.0;            // largest score
};

// One weight vector as the lattice sees it. Y labels, rows padded to YP.
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
  const HistoryTable* tables = nullptr;  // [order] for m = 1..k, one after the other in memory
  int64_t ngram_size = 0;                // doubles of all tables together
  const double* tr = nullptr;            // scores of the tables; with order 1 [Y][YP] transition scores
  const double* E = nullptr;             // their exponentials
  const double* ET = nullptr;            // [Y^(k-1)][Y][YP] the longest table with dropped label and label exchanged
  double tr_max = 0.0;                   // of the first table
  const double* start = nullptr;         // [YP], null without boundary weights
  const double* end = nullptr;           // [YP]
  const double* edges = nullptr;         // weights of the edge attributes
  const double* offsets = nullptr;       // [n_positions][YP] constants added to the node scores, null: none
  const int32_t* token_of = nullptr;     // [n_positions] row of `shared` that has the node scores, null: none is shared
  const double* shared = nullptr;        // [.][YP] node scores of distinct positions, without boundary and offsets
  double scale = 1.0;                    // factor of w and of edges; tr, start and end are as they should be
};

// Temporaries of one worker, for sequences of up to max_T positions. Order k has YP Y^(k-1) entries where [YP] is
// written for alpha, beta, z and back: the last label is padded.
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
  // For derivatives along a direction, null where none are asked for. "d" is the derivative of what follows it.
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

// The direction of a Hessian product as the lattice sees it.
struct Tangent {
  const Prepared* step = nullptr;  // the direction, prepared like weights; its exponentials are not used
  const double* ER = nullptr;      // E * transitions of the direction, like Prepared::E
  const double* ERT = nullptr;     // the same exchanged, like Prepared::ET
  bool propagate = false;          // log domain with derivatives propagated, nothing kept is looked at
};

struct ChunkJob {
  const DataView* data = nullptr;
  const Prepared* weights = nullptr;
  const Tangent* tangent = nullptr;
  const Kept* kept = nullptr;  // read by products, filled by gradients; null: nothing is kept
  bool one_position = false;   // sequences of one position: no lattice, no n-grams
  bool log_domain = false;     // for every sequence, not only for those that the scaled domain cannot hold
  const Direction* direction = nullptr;
  const int64_t* sequences = nullptr;  // ids, or null for first_sequence, first_sequence + 1, ...
  int64_t first_sequence = 0, n_sequences = 0;
  Scratch* scratch = nullptr;
  double* loss = nullptr;            // += sum c_i (-log p)
  double* slope = nullptr;           // += its derivative along the direction
  double* pair_sum = nullptr;        // [ngram_size] += c_i times the expected label n-grams
  double* residual = nullptr;        // [rows][YP] c_i (p - [y = gold])
  double* pair_marginals = nullptr;  // [rows][Y][YP] c_i (p(t, i, j) - [gold]), with edge attributes
  int64_t first_row = 0;             // of the first sequence; those of the others follow in order
  bool subtract_gold = true;
  PhaseSeconds* busy = nullptr;  // of the sequences that were timed; set at the end
};

struct InferenceJob {
  const DataView* data = nullptr;
  const Prepared* weights = nullptr;
  int64_t first_sequence = 0, n_sequences = 0;
  Scratch* scratch = nullptr;
  int32_t* best = nullptr;           // [n_positions] Viterbi labels
  double* best_score = nullptr;      // [n_sequences of the dataset]
  double* log_z = nullptr;           // [n_sequences of the dataset]
  double* path_score = nullptr;      // [n_sequences of the dataset] score of data->labels
  double* node_marginals = nullptr;  // [n_positions][Y]
  double* pair_marginals = nullptr;  // [n_positions][Y][Y]
};

// Sums residual rows over the positions of each attribute: the gradient without atomics or private copies.
struct GatherJob {
  const LayoutView* layout = nullptr;
  const int32_t* attributes = nullptr;  // ids with occurrences here, or null for 0, 1, 2, ...
  const int64_t* occ_ptr = nullptr;     // [n + 1] into occ_rows
  const int32_t* occ_rows = nullptr;    // residual rows
  const double* occ_values = nullptr;   // null: all 1
  int64_t first = 0, last = 0;          // entries of `attributes`
  int YP = 0;
  const double* residual = nullptr;
  const double* w = nullptr;
  double* g = nullptr;
  double l2 = 0.0;           // g = sum + l2 w
  bool accumulate = false;   // g += sum instead
  double* square = nullptr;  // += |w|^2 over these weights
};

// Sums residual rows of the most frequent attributes position by position: a row is read once and added to the sums
// of all its frequent attributes, which stay in the cache, instead of being fetched again for each of them.
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

struct NodeScoreJob {
  const DataView* data = nullptr;
  const Prepared* weights = nullptr;
  int64_t first_sequence = 0, n_sequences = 0;
  double* out = nullptr;  // [n_positions][YP]
};

// Weight-sized vector work on elements [begin, end). Curvature pairs are float32 rows of length n; rows below n_used
// hold something.
struct PairProductsJob {
  int64_t begin = 0, end = 0, n = 0;
  int n_used = 0;
  int slot = 0;                      // rows s[slot] = w_new - w_old and y[slot] = g_new - g_old are written
  float *s = nullptr, *y = nullptr;  // [n_used][n]
  const double *w_new = nullptr, *w_old = nullptr, *g_new = nullptr, *g_old = nullptr, *v = nullptr;
  double* products = nullptr;  // [3][2 n_used] += new s, new y, v times every s row, then every y row
  double* scalars = nullptr;   // v.v, max|v|
};

struct CombineJob {
  int64_t begin = 0, end = 0, n = 0;
  int n_used = 0;
  const float *s = nullptr, *y = nullptr;
  const double *c_s = nullptr, *c_y = nullptr;  // [n_used]
  double c_v = 0.0;
  const double *w = nullptr, *v = nullptr;
  double step = 1.0;
  double *d = nullptr, *w_out = nullptr;  // d = sum c_i b_i + c_v v; w_out = w + step d (null: not wanted)
  double* slope = nullptr;                // += v.d
};

// E = exp(scores - top) in rows of Y labels, padding 0.
struct ExponentialsJob {
  int64_t rows = 0;
  int Y = 0, YP = 0;
  const double* scores = nullptr;  // [rows][YP], at most top; the padding is not looked at
  double top = 0.0;
  double* E = nullptr;  // [rows][YP]
};

struct BinaryJob;        // binary_job.hpp
struct DualJob;          // dual_job.hpp
struct MarginDecodeJob;  // margin_job.hpp

struct OnlineRule;  // online_job.hpp
struct OnlineSolveJob;
struct OnlineUpdateJob;
struct OnlineRuleJob;
struct OnlineDenseJob;
struct OnlineTransitionJob;
struct PeriodUpdateJob;  // period_job.hpp
struct PeriodEndJob;
struct PeriodState;
struct PeriodTableJob;
struct PeriodFactorsJob;

struct MetaSolveJob;  // online_meta_job.hpp
struct MetaReadyJob;
struct MetaUpdateJob;
struct MetaDenseJob;

struct Kernels {
  const char* level;
  void (*loss)(const ChunkJob&);       // loss only
  void (*gradient)(const ChunkJob&);   // loss, residuals, pair sums
  void (*along)(const ChunkJob&);      // loss and slope along a direction
  void (*product)(const ChunkJob&);    // derivatives of residuals and pair sums along a direction
  void (*variance)(const ChunkJob&);   // p (1 - p) in place of residuals and pair sums
  void (*infer)(const InferenceJob&);  // marginals, log Z, Viterbi
  void (*gather)(const GatherJob&);
  void (*frequent)(const FrequentJob&);
  void (*add_rows)(const GatherRowsJob&);
  void (*node_scores)(const NodeScoreJob&);
  void (*binary_loss)(const BinaryJob&);
  void (*binary_gradient)(const BinaryJob&);
  void (*binary_product)(const BinaryJob&);
  void (*binary_squares)(const BinaryJob&);
  void (*binary_scores)(const BinaryJob&);
  void (*binary_along)(const BinaryJob&);
  void (*pair_products)(const PairProductsJob&);
  void (*combine)(const CombineJob&);
  void (*online_solve)(const OnlineSolveJob&);
  void (*online_update)(const OnlineUpdateJob&);
  void (*online_update_by_rule)(const OnlineRuleJob&);
  void (*online_dense)(const OnlineDenseJob&);
  void (*online_transitions)(const OnlineTransitionJob&);
  void (*transform)(const OnlineRule&, const double* in, int64_t n, double gain, double* out);
  void (*meta_solve)(const MetaSolveJob&);
  void (*meta_ready)(const MetaReadyJob&);
  void (*meta_update)(const MetaUpdateJob&);
  void (*meta_dense)(const MetaDenseJob&);
  void (*period_update)(const PeriodUpdateJob&);
  void (*period_middle)(const PeriodState&);
  void (*period_end)(const PeriodEndJob&);
  void (*period_table)(const PeriodTableJob&);
  void (*period_factors)(const PeriodFactorsJob&);
  void (*margin_decode)(const MarginDecodeJob&);
  void (*exponentials)(const ExponentialsJob&);
  void (*dual_scores)(const DualJob&);
  void (*dual_solve)(DualJob&);
  void (*dual_change)(DualJob&);
  void (*dual_update)(const DualJob&);
};

const Kernels& kernels();  // the table in use
const char* kernel_level();
void choose_level(const char* name);  // throws std::invalid_argument when unknown or not supported here

}  // namespace crfit
