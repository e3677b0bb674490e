// Arguments of the kernels of online trainers; the formulas are in steps.hpp. Sign of all residuals: -u, which is added
// to the weights.
#pragma once

#include <cstdint>

#include "base/phases.hpp"
#include "base/views.hpp"
#include "lattice/tables.hpp"

namespace crfit {

// How a step uses the summed residual of a weight. kTransform: potential G with g = G', T(u) = g(u), or g'(u) u
// with `derivative` (U2* and U1* of Cao 2015).
struct OnlineRule {
  enum Kind { kPlain, kTransform, kAdaptive, kPeriodic };
  enum Potential { kArctan, kErf, kGudermann };
  Kind kind = kPlain;
  Potential potential = kArctan;
  bool derivative = false;        // T(u) = g'(u) u instead of g(u)
  double parameter = 1.0;         // of the potential
  const double* table = nullptr;  // [kTablePoints] T on [0, 1], or null
  double epsilon = 1e-8;          // kAdaptive: added to sqrt(h)
};

constexpr int kTableIntervals = 2048;              // of [0, 1]
constexpr int kTablePoints = kTableIntervals + 2;  // u = 1 reads one point beyond the end, with a factor of 0

// Part that an attribute belongs to. Eight neighbours belong to the same part, so tasks do not write to the same cache
// line (single weights, weights="observed"). Internal linkage: per-level files must not share it with the rest of the
// program.
static inline uint32_t part_of(int32_t id, int n_parts) {
  return (static_cast<uint32_t>(id) >> 3) & static_cast<uint32_t>(n_parts - 1);
}

// One sequence of a step.
struct OnlineSlot {
  // One occurrence of an attribute: position in the sequence, occurrence counted from the sequence's first.
  struct Place {
    int32_t t, occurrence;
  };
  int64_t sequence = 0;
  double loss = 0.0;                // c_i (-log p)
  double* residual = nullptr;       // [T][YP] c_i ([y = gold] - p), which is -u of the position
  double* transformed = nullptr;    // [T][YP] gain T(residual), with kTransform
  double* pair_residual = nullptr;  // [T][Y][YP] c_i ([gold pair] - p(t, i, j)), with edge attributes
  double* pairs = nullptr;          // [ngram_size] sum over t of c_i ([gold n-gram] - p)
  Place* touched = nullptr;         // [n_parts][occurrences] of each part in order; null: not split into parts
  int32_t* n_touched = nullptr;     // [n_parts]
};

struct OnlineSolveJob {
  const DataView* data = nullptr;
  const Prepared* weights = nullptr;
  Scratch* scratch = nullptr;
  OnlineSlot* slot = nullptr;        // sets: loss and the arrays
  const OnlineRule* rule = nullptr;  // for `transformed`
  double gain = 0.0;                 // eta / scale
  int n_parts = 0;                   // of the attributes, a power of two, or 0
  int64_t next_sequence = -1;        // whose rows are prefetched meanwhile, -1: none
  PhaseSeconds* busy = nullptr;      // += where given
};

// Several sequences of a step, solved side by side: order 1 with listed pairs, without edge attributes. The first slot
// has the residuals of their pairs.
struct OnlineGroupJob {
  OnlineSolveJob each;                 // as for one sequence; its slot is not used
  OnlineSlot* const* slots = nullptr;  // [n_slots], at most kFewLanes
  int n_slots = 0;
};

// The rows of a WeightRows that a step changes, and those of the sum of weights.
struct OnlineRows {
  double* rows = nullptr;
  double* sum = nullptr;  // null: no sum; else sum += sum_factor * what is added to rows
  double sum_factor = 0.0;
  const int32_t* hot_row = nullptr;      // weights="observed": RowLayout
  const uint64_t* hot_labels = nullptr;  // [.][label_words]; null with weights="all"
  int64_t label_words = 0;
  int64_t hot_offset = 0, edge_offset = 0;
};

// rows += gain * x * residual over the occurrences of one part of the attributes, or of all.
struct OnlineUpdateJob {
  const DataView* data = nullptr;
  const LayoutView* layout = nullptr;
  const Prepared* weights = nullptr;  // for the index of tokens, and for prefetching rows
  int YP = 0;
  // Use the index of tokens: with weights="observed" and steps of one sequence. Larger steps process occurrences with
  // and without parts by the same code, so the last bits do not depend on threads.
  bool by_token = false;
  const OnlineSlot* slots = nullptr;
  int64_t n_slots = 0;
  int part = 0, n_parts = 0;  // n_parts = 0: all attributes
  double gain = 0.0;
  OnlineRows to;
  int64_t next_sequence = -1;  // whose rows are prefetched meanwhile, -1: none
};

// One occurrence of a unit: the row of an attribute, a single weight, or an edge attribute.
struct Touch {
  int32_t to;     // unit, or number of a sum
  uint32_t from;  // row of residuals; for single weights entry
};

// Units that a step touches, in order: singles, touched once with value 1, and the others, whose residuals are summed
// before the rule is applied. Units that occur at the same places share a sum.
struct Touches {
  const Touch* singles = nullptr;  // [n_singles] units
  int64_t n_singles = 0;
  const Touch* summed = nullptr;  // [n_summed]
  int64_t n_summed = 0;
  const double* values = nullptr;            // [n_summed], null: all 1; with values there are no singles
  const int32_t* group = nullptr;            // [n_groups] units that are not singles
  const int32_t* group_sum = nullptr;        // [n_groups] the sum of each
  const int32_t* group_sequences = nullptr;  // [n_groups] sequences of the step that they occur in
  int64_t n_groups = 0, n_sums = 0;
};

// The step of a rule on the attributes that a part of it touches.
struct OnlineRuleJob {
  const LayoutView* layout = nullptr;
  int YP = 0;
  const OnlineRule* rule = nullptr;
  Touches dense, sparse, edges;           // rows of attributes, single weights, edge attributes
  const double* residual = nullptr;       // [rows][YP] of all sequences of the step
  double* transformed = nullptr;          // [rows][YP] gain T(residual), with kTransform
  int64_t n_rows = 0;                     // number of rows still to compute
  const double* pair_residual = nullptr;  // [rows][Y][YP] with edge attributes
  double* sums = nullptr;                 // space for the sums, and the same again for their transforms
  int64_t sums_room = 0;                  // of each
  double gain = 0.0;                      // eta / scale; kAdaptive: eta
  double l2 = 0.0;                        // kAdaptive
  // kAdaptive: number of sequences in the dataset that share the penalty of a unit
  const double *dense_counts = nullptr, *sparse_counts = nullptr, *edge_counts = nullptr;
  double* squares = nullptr;  // like to.rows
  OnlineRows to;
  const DataView* data = nullptr;     // for prefetching rows meanwhile
  const Prepared* weights = nullptr;  // the same
  int64_t next_sequence = -1;         // -1: none
};

// A table of weights all of which are touched: w = decay w + mask * step(sums).
struct OnlineDenseJob {
  const int64_t* blocks = nullptr;  // [n_blocks] start of each block of eight doubles with weights
  int64_t n_blocks = 0;
  const double* sums = nullptr;  // residuals c_i ([gold] - p) of the step, in the table's order
  const double* mask = nullptr;  // 1 where there is a weight
  double* steps = nullptr;       // [2][n_blocks][8] work space
  const OnlineRule* rule = nullptr;
  double decay = 1.0, eta = 0.0;
  double share = 0.0;  // kAdaptive: l2 B / N
  double* w = nullptr;
  double* squares = nullptr;  // kAdaptive
};

// With order 1: exponentials of the transitions, and their transpose.
struct OnlineTransitionJob {
  int Y = 0, YP = 0;
  const double* tr = nullptr;          // [Y][YP]
  double *E = nullptr, *ET = nullptr;  // [Y][YP]
  double* tr_max = nullptr;
};

}  // namespace crfit
