// Arguments of the kernels of periodic step sizes; the formulas are in periods.hpp.
#pragma once

#include <cmath>
#include <cstdint>

#include "online/jobs.hpp"

namespace crfit {

// Computes a factor of rates from the changes of weights over the two halves of a period. Internal linkage: per-level
// files must not share these functions with the rest of the program.
struct PeriodRule {
  enum Scope { kComponent, kWindow, kShared };  // kShared: weights of a group have one factor
  Scope scope = kComponent;
  double alpha = 0.9999, beta = 0.99, kappa = 0.9;
  int gamma = 1;
  int64_t half = 1;  // steps b in half a period
};

constexpr double kTinyChange = 1e-12;  // changes below this times max(1, |w|) are rounding

// v(u), the line from beta at u = -kappa to alpha at u = kappa.
static inline double multiplier(const PeriodRule& rule, double u) {
  return 0.5 * (rule.alpha + rule.beta) + 0.5 * (rule.alpha - rule.beta) / rule.kappa * u;
}

static inline double cut_to_kappa(const PeriodRule& rule, double gamma) {
  const double low = gamma < -rule.kappa ? -rule.kappa : gamma;
  return low > rule.kappa ? rule.kappa : low;
}

// u = gamma clipped to [-kappa, kappa], of vectors with the products s11 = D1.D1, s12 = D1.D2, s22 = D2.D2 and w.w.
// gamma3 is undefined if D1.D2 <= 0: steps that turn back count as the worst case.
static inline double estimate(const PeriodRule& rule, double s11, double s12, double s22, double square) {
  if (s11 < kTinyChange * kTinyChange * (square > 1.0 ? square : 1.0)) return rule.kappa;
  if (rule.gamma == 3 && !(s12 > 0.0)) return -rule.kappa;
  return cut_to_kappa(rule, rule.gamma == 1 ? s12 / s11 : rule.gamma == 2 ? std::sqrt(s22 / s11) : s22 / s12);
}

// The same for one weight with current value w, changed by d1, then by d2. Without branches, so loops vectorise.
static inline double estimate_of_weight(const PeriodRule& rule, double w, double d1, double d2) {
  const double size = std::abs(w) > 1.0 ? std::abs(w) : 1.0;
  const bool nothing = std::abs(d1) < kTinyChange * size;
  const double u = nothing ? rule.kappa : cut_to_kappa(rule, d2 / (nothing ? 1.0 : d1));
  return rule.gamma == 2 ? std::abs(u) : u;
}

// A unit is touched as a whole: the row of an attribute, a single weight (weights="observed", attributes with few
// labels), or the weights of an edge attribute.
struct alignas(32) PeriodUnit {
  // Factor r of the rates of its weights, or a common multiple of their own factors. Both are divided by alpha^p in
  // period p, so periods that do not touch it need no work. Not used with kShared.
  double value = 1.0;
  double share = 1.0;  // 1 / number of sequences in the dataset that touch it; 0 if unpenalised
  // kShared: its group. Otherwise the period (from 1) in which only the first half touched it and which is not yet
  // included in `value`, or 0. kWindow, for units with an entry in the current period: ~entry.
  int32_t mark = 0;
  int32_t own = 0;  // index of its weights' own factors, in units of eight; 0: none; negative: not in use
};

// A unit for which the current period computes an estimate.
struct PeriodEntry {
  int32_t unit = 0;
  int32_t halves = 0;  // 1: touched in the first, 3: in both
  int64_t at = 0;      // its weights at the start of each half; kWindow: its last change or 0
};

// kWindow: change of the weights of a unit in one step. Number 0 means "no change".
struct PeriodChange {
  int32_t step = -1;
  int32_t before = 0;  // the unit's previous change, or 0
  int64_t at = 0;      // [weights of the unit]
};

// State of the current period, read and updated by kernels.
struct PeriodState {
  PeriodRule rule;
  const LayoutView* layout = nullptr;
  int YP = 0;
  OnlineRows to;                // the weights
  PeriodUnit* units = nullptr;  // rows of attributes; single weights from first_single, edge attributes from first_edge
  int64_t first_single = 0, first_edge = 0;
  double* own = nullptr;           // ones, then the weights' own factors, with space for those of the entries
  int32_t n_own = 0;               // size in units of eight
  const double* groups = nullptr;  // kShared: factors
  double fall = 1.0;               // alpha^p in period p; 1 with kShared
  double alone[2] = {1.0, 1.0};    // 1, and the factor of `value` if only the first half touches a unit
  int32_t period = 1, step = 0;    // current period, from 1; step in it
  PeriodEntry* entries = nullptr;  // of this period, with space for those of a sequence; the first is unused
  int32_t n_entries = 1;
  uint64_t* later = nullptr;        // bit per unit: no entry yet, but the second half will touch it; or null
  PeriodChange* changes = nullptr;  // kWindow, with the same space
  double* kept = nullptr;           // data of entries and changes, with the same space
  int64_t n_changes = 0, n_kept = 0;
};

// Brings `value` up to date and sets the mark. Without branches, which would be unpredictable.
static inline void bring_up_to_date(const PeriodState& state, PeriodUnit& unit) {
  const int32_t due = static_cast<int32_t>(unit.mark != 0) & static_cast<int32_t>(unit.mark != state.period);
  unit.value *= state.alone[due];
  unit.mark &= due - 1;
}

// Location of the weights of a unit in the rows, including padding.
static inline WeightSpan weights_of(const PeriodState& state, int64_t unit) {
  if (unit < state.first_single) return {state.to.hot_offset + unit * state.YP, state.YP};
  if (unit < state.first_edge) return {unit - state.first_single, 1};
  const WeightSpan edges = edge_weights(*state.layout, unit - state.first_edge);
  return {state.to.edge_offset + edges.first, edges.n};
}

// How a step changes the weights of a unit: w += rate own (residual - penalty w), also added to `change`.
struct PeriodPlan {
  double rate, penalty;
  const double* own;  // ones if the weights have no own factors
  double* change;     // kWindow
};

// One sequence of a step.
struct PeriodUpdateJob {
  OnlineRuleJob touched;            // residuals, sums, penalty; gain is the rate
  Touches next_dense, next_sparse;  // of the next sequence, whose units are prefetched meanwhile
  PeriodState* state = nullptr;
};

// A table of weights all of which a sequence touches, with their factors: w += eta r (residual - penalty w).
struct PeriodTableJob {
  int64_t n = 0;
  const double *r = nullptr, *mask = nullptr, *residual = nullptr;
  double eta = 0.0, penalty = 0.0;
  double* w = nullptr;
};

// kComponent: r = scale before v, with v from the changes of w from `start` to `middle` and from there on.
struct PeriodFactorsJob {
  PeriodRule rule;
  int64_t n = 0;
  const double *w = nullptr, *start = nullptr, *middle = nullptr;
  double scale = 1.0;
  const double* before = nullptr;
  double* r = nullptr;  // may be `before`
};

// The end of a period: new factors of its units or, with kShared, sums for its groups.
struct PeriodEndJob {
  PeriodState* state = nullptr;
  double* work = nullptr;  // [3][weights of the largest unit]
  double* sums = nullptr;  // kShared: [groups][4] += D1.D1, D1.D2, D2.D2, w.w
};

}  // namespace crfit
