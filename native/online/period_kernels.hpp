// Steps with periodic step sizes on the weights that one sequence touches, and the new factors at the end of a period;
// periods.hpp has the formulas. Included by per-level files only.
//
//   update   w += eta r (residual - (l2/m) w)                  for each unit that the sequence touches
//   middle   kept[entry][n ..] = w                             weights at the start of the second half
//   end      r = r v(gamma) for units that both halves touched, or sums of products for their groups
//
// The factor of a weight is value * own[j]: one number per unit times one per weight. The latter are ones, shared by
// all units, until a period computes the unit's own factors. So the arithmetic is the same for all units, and the inner
// loop has no branches except those removed by templates: Scope, and Plain (all labels have a weight, no sum of
// weights).
//
// A step is limited by memory access: rows of weights, units (32 bytes each, two per cache line), own factors. Units of
// the next sequence are prefetched while this one is processed; own factors kOwnAhead touches ahead, because their
// address is in the unit.
//
// Changes of kWindow are linked lists, newest first: entry.at -> change -> change.before. A window has 2b steps, but a
// unit is touched in few of them; arrays [2b][n] would be mostly zeros.
#pragma once

#include "online/period_jobs.hpp"
#include "online/rule_kernels.hpp"

namespace {

using crfit::PeriodChange;
using crfit::PeriodEndJob;
using crfit::PeriodEntry;
using crfit::PeriodFactorsJob;
using crfit::PeriodPlan;
using crfit::PeriodRule;
using crfit::PeriodState;
using crfit::PeriodTableJob;
using crfit::PeriodUnit;
using crfit::PeriodUpdateJob;
using crfit::WeightSpan;

constexpr int64_t kOwnAhead = 12;  // touches between prefetching the own factors of a unit and using them

inline void copy_weights(const double* from, int64_t n, double* to) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(to + i, load(from + i));
  for (; i < n; ++i) to[i] = from[i];
}

constexpr int64_t kEntriesAhead = 4;  // the same for entries at the end of a period

// Prefetches the units of a sequence, one per call; all at once would stall.
class UnitsAhead {
 public:
  UnitsAhead(const PeriodUnit* units, const Touches& touches)
      : units_(units),
        single_(touches.singles),
        last_single_(touches.singles + touches.n_singles),
        group_(touches.group),
        last_group_(touches.group + touches.n_groups) {}
  [[gnu::always_inline]] void prefetch_next() {
    if (single_ != last_single_)
      prefetch_far(units_ + (single_++)->to);
    else if (group_ != last_group_)
      prefetch_far(units_ + *group_++);
  }
  void prefetch_rest() {
    while (single_ != last_single_ || group_ != last_group_) prefetch_next();
  }

 private:
  const PeriodUnit* units_;
  const crfit::Touch *single_, *last_single_;
  const int32_t *group_, *last_group_;
};

// Factor of a unit's rates (PeriodUnit::value) in the current period.
template <PeriodRule::Scope S>
[[gnu::always_inline]] inline double factor_of(const PeriodState& state, PeriodUnit& unit) {
  if constexpr (S == PeriodRule::kShared) return state.groups[unit.mark];
  if (S == PeriodRule::kWindow && unit.mark < 0) return unit.value;
  crfit::bring_up_to_date(state, unit);
  // All bits set in the first half, else 0: marks the period without a branch if the first half touches the unit. A
  // touch in the second half keeps the mark.
  const int32_t first = -static_cast<int32_t>(state.step < state.rule.half);
  unit.mark = (unit.mark & ~first) | (state.period & first);
  return unit.value;
}

// Where to sum the changes of the n weights of a unit in this step; discarded for units without an entry. Without
// branches, which would be unpredictable.
[[gnu::always_inline]] inline double* change_of(PeriodState& state, const PeriodUnit& unit, int64_t n) {
  const bool has_entry = unit.mark < 0;
  PeriodEntry& entry = state.entries[has_entry ? ~unit.mark : 0];  // `at` of the first stays 0
  // A change is written after the end of the list and counted only if it is new and the unit has an entry; otherwise
  // the next change overwrites it. make_room reserves the space.
  state.changes[state.n_changes] = {state.step, static_cast<int32_t>(entry.at), state.n_kept};
  set_zero(state.kept + state.n_kept, n);
  const bool is_new = state.changes[entry.at].step != state.step;
  const int64_t change = is_new ? state.n_changes : entry.at;
  entry.at = has_entry ? change : 0;
  const int64_t added = static_cast<int64_t>(has_entry) & static_cast<int64_t>(is_new);
  state.n_changes += added;
  state.n_kept += added * n;
  return state.kept + state.changes[change].at;
}

// The own factors of the weights of a unit, or ones.
[[gnu::always_inline]] inline double* own_of(const PeriodState& state, const PeriodUnit& unit) {
  return state.own + int64_t{8} * (unit.own > 0 ? unit.own : 0);
}

// The first half touches unit i: add an entry if the second half will touch it too.
template <PeriodRule::Scope S>
[[gnu::always_inline]] inline void enter(PeriodState& state, int64_t i, const WeightSpan& weights) {
  const uint64_t at = static_cast<uint64_t>(i), bit = uint64_t{1} << at % 64;
  if ((state.later[at / 64] & bit) == 0) return;
  // Clear the bit: later touches of the first half do not add another entry.
  state.later[at / 64] &= ~bit;
  PeriodUnit& unit = state.units[i];
  if (S != PeriodRule::kShared) crfit::bring_up_to_date(state, unit);
  if (S == PeriodRule::kWindow) unit.mark = ~state.n_entries;
  state.entries[state.n_entries++] = {static_cast<int32_t>(i), 3, S == PeriodRule::kWindow ? 0 : state.n_kept};
  if (S == PeriodRule::kWindow) return;
  copy_weights(state.to.rows + weights.first, weights.n, state.kept + state.n_kept);
  state.n_kept += 2 * weights.n;
}

// Of unit i, which has these weights.
template <PeriodRule::Scope S>
[[gnu::always_inline]] inline PeriodPlan plan_of(PeriodState& state, int64_t i, const WeightSpan& weights, double eta,
                                                 double l2) {
  PeriodUnit& unit = state.units[i];
  if (state.later != nullptr) enter<S>(state, i, weights);
  const int64_t n = weights.n;
  const double r = factor_of<S>(state, unit);
  return {eta * r, l2 * unit.share, S == PeriodRule::kShared ? nullptr : own_of(state, unit),
          S == PeriodRule::kWindow ? change_of(state, unit, n) : nullptr};
}

// Plain: all labels have a weight, and there is no sum of weights.
template <int P, PeriodRule::Scope S, bool Plain>
[[gnu::always_inline]] inline void period_row(Width<P> width, const OnlineRows& to, const PeriodPlan& plan, int64_t row,
                                              const double* residual) {
  const int64_t at = to.hot_offset + row * width.yp();  // hot_offset is 0 with weights="all"
  const uint64_t* labels = Plain ? nullptr : labels_of(to, row);
  double *w = to.rows + at, *change = plan.change;
  for (int j = 0; j < width.yp(); j += kLanes) {
    const Vec before = load(w + j);
    // w += eta r (-u - (l2/m) w), r = value * own[j]
    Vec step = plan.rate * (load(residual + j) - plan.penalty * before);
    if (S != PeriodRule::kShared) step *= load(plan.own + j);
    if (!Plain && labels != nullptr) step = select(labels[j / 64] >> j % 64, step, Vec{});
    store(w + j, before + step);
    if (S == PeriodRule::kWindow) store(change + j, load(change + j) + step);
    if (!Plain && to.sum != nullptr) store(to.sum + at + j, load(to.sum + at + j) + to.sum_factor * step);
  }
}

// The same for a unit without a row.
template <PeriodRule::Scope S>
[[gnu::always_inline]] inline void period_weights(const OnlineRows& to, const PeriodPlan& plan, WeightSpan weights,
                                                  const double* residual) {
  for (int64_t i = 0; i < weights.n; ++i) {
    double step = plan.rate * (residual[i] - plan.penalty * to.rows[weights.first + i]);
    if (S != PeriodRule::kShared) step *= plan.own[i];
    add_to_weight(to, weights.first + i, step);
    if (S == PeriodRule::kWindow) plan.change[i] += step;
  }
}

// Single weights and edge attributes, after the rows. Not specialised by width: that would be a third of the code of a
// level.
template <PeriodRule::Scope S>
[[gnu::noinline]] void period_update_weights(const PeriodUpdateJob& job, PeriodState state, RowsAhead<0> ahead) {
  const OnlineRuleJob& touched = job.touched;
  const Touches sparse = touched.sparse, edges = touched.edges;
  const OnlineRows to = touched.to;
  const double eta = touched.gain * state.fall, l2 = touched.l2, *residual = touched.residual, *sums = touched.sums;
  UnitsAhead singles_ahead(state.units + state.first_single, job.next_sparse);
  const auto update = [&](int64_t unit, WeightSpan weights, const double* from) __attribute__((always_inline)) {
    period_weights<S>(to, plan_of<S>(state, unit, weights, eta, l2), weights, from);
  };
  for (int64_t i = 0; i < sparse.n_singles; ++i) {
    ahead.prefetch_next();
    singles_ahead.prefetch_next();
    const int64_t weight = sparse.singles[i].to;
    update(state.first_single + weight, {weight, 1}, residual + sparse.singles[i].from);
  }
  sum_weights(sparse, residual, touched.sums);
  for (int64_t g = 0; g < sparse.n_groups; ++g)
    update(state.first_single + sparse.group[g], {sparse.group[g], 1}, sums + sparse.group_sum[g]);
  singles_ahead.prefetch_rest();
  ahead.prefetch_rest();

  sum_edges(touched);
  for (int64_t g = 0; g < edges.n_groups; ++g) {
    const int64_t unit = state.first_edge + edges.group[g];
    update(unit, crfit::weights_of(state, unit), sums + g * edge_room(*touched.layout));
  }
  // `state` is a copy in registers; write the changes back.
  job.state->n_entries = state.n_entries;
  job.state->n_changes = state.n_changes;
  job.state->n_kept = state.n_kept;
}

template <int P, PeriodRule::Scope S, bool Plain>
void period_update_as(const PeriodUpdateJob& job) {
  const Width<P> width(job.touched.YP);
  const int YP = width.yp();
  const OnlineRuleJob& touched = job.touched;
  const Touches dense = touched.dense;
  const OnlineRows to = touched.to;  // copies, so stores to rows cannot alias
  PeriodState state = *job.state;
  const double eta = touched.gain * state.fall, l2 = touched.l2, *residual = touched.residual, *sums = touched.sums;
  RowsAhead<P> ahead(*touched.data, *touched.weights, touched.next_sequence);

  UnitsAhead units_ahead(state.units, job.next_dense);
  const auto prefetch_own = [&](int64_t unit) __attribute__((always_inline)) {
    if constexpr (S != PeriodRule::kShared) prefetch_row(own_of(state, state.units[unit]), YP);
  };
  for (int64_t i = 0; i < dense.n_singles; ++i) {
    ahead.prefetch_next();
    units_ahead.prefetch_next();
    if (i + kOwnAhead < dense.n_singles) prefetch_own(dense.singles[i + kOwnAhead].to);
    const int64_t row = dense.singles[i].to;
    period_row<P, S, Plain>(width, to, plan_of<S>(state, row, {to.hot_offset + row * YP, YP}, eta, l2), row,
                            residual + static_cast<int64_t>(dense.singles[i].from) * YP);
  }
  sum_rows(width, dense, residual, touched.sums, ahead);
  for (int64_t g = 0; g < dense.n_groups; ++g) {
    ahead.prefetch_next();
    units_ahead.prefetch_next();
    if (g + kOwnAhead < dense.n_groups) prefetch_own(dense.group[g + kOwnAhead]);
    const int64_t row = dense.group[g];
    period_row<P, S, Plain>(width, to, plan_of<S>(state, row, {to.hot_offset + row * YP, YP}, eta, l2), row,
                            sums + static_cast<int64_t>(dense.group_sum[g]) * YP);
  }
  units_ahead.prefetch_rest();
  period_update_weights<S>(job, state, ahead.any_width());
}

template <int P, PeriodRule::Scope S>
void period_update_in(const PeriodUpdateJob& job) {
  const bool plain = job.touched.to.hot_labels == nullptr && job.touched.to.sum == nullptr;
  plain ? period_update_as<P, S, true>(job) : period_update_as<P, S, false>(job);
}

template <int P>
void period_update_sequence(const PeriodUpdateJob& job) {
  switch (job.state->rule.scope) {
    case PeriodRule::kComponent: return period_update_in<P, PeriodRule::kComponent>(job);
    case PeriodRule::kWindow: return period_update_in<P, PeriodRule::kWindow>(job);
    default: return period_update_in<P, PeriodRule::kShared>(job);
  }
}

// sums[4] += D1.D1, D1.D2, D2.D2, w.w of the weights of a unit.
inline void add_unit_products(const double* w, const double* start, const double* middle, int64_t n, double* sums) {
  // [lanes] each; summed in the order of the lanes at the end
  Vec s11{}, s12{}, s22{}, square{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec now = load(w + i), half = load(middle + i), d1 = half - load(start + i), d2 = now - half;
    s11 += d1 * d1;
    s12 += d1 * d2;
    s22 += d2 * d2;
    square += now * now;
  }
  for (; i < n; ++i) {
    const double d1 = middle[i] - start[i], d2 = w[i] - middle[i];
    sums[0] += d1 * d1;
    sums[1] += d1 * d2;
    sums[2] += d2 * d2;
    sums[3] += w[i] * w[i];
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    sums[0] += s11[lane];
    sums[1] += s12[lane];
    sums[2] += s22[lane];
    sums[3] += square[lane];
  }
}

// s = D1.D1, D1.D2, D2.D2 over the steps of the halves, for the weights that `get` reads from `at` on. A unit's changes
// are linked from last to first: those of the second half come before those of the first.
template <class Number, class Get>
[[gnu::always_inline]] inline void window_products(const PeriodState& state, int64_t last, int64_t at, const Get& get,
                                                   Number (&s)[3]) {
  const auto of = [&](int64_t change) { return get(state.kept + state.changes[change].at + at); };
  const auto half = static_cast<int32_t>(state.rule.half);
  int64_t first = last;  // candidate in the first half for pairing with the second half's change
  while (state.changes[first].step >= half) first = state.changes[first].before;
  for (int64_t i = first; i > 0; i = state.changes[i].before) s[0] += of(i) * of(i);
  for (int64_t i = last; state.changes[i].step >= half; i = state.changes[i].before) {
    const int32_t step = state.changes[i].step - half;
    s[2] += of(i) * of(i);
    while (state.changes[first].step > step) first = state.changes[first].before;
    if (state.changes[first].step == step) s[1] += of(first) * of(i);
  }
}

inline void period_factors(const PeriodFactorsJob& job) {
  const PeriodRule rule = job.rule;
  const double *w = job.w, *start = job.start, *middle = job.middle, *before = job.before, scale = job.scale;
  double* r = job.r;
  CRFIT_INDEPENDENT
  for (int64_t i = 0; i < job.n; ++i) {
    const double u = estimate_of_weight(rule, w[i], middle[i] - start[i], w[i] - middle[i]);
    r[i] = scale * before[i] * multiplier(rule, u);
  }
}

// The same for kWindow, by the steps of a unit.
inline void window_factors(const PeriodFactorsJob& job, const PeriodState& state, int64_t last_change, double* work) {
  const PeriodRule rule = job.rule;
  const int64_t n = job.n;
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) {
    Vec s[3] = {};
    window_products(state, last_change, at, [](const double* x) { return load(x); }, s);
    for (int k = 0; k < 3; ++k) store(work + k * n + at, s[k]);
  }
  for (; at < n; ++at) {
    double s[3] = {};
    window_products(state, last_change, at, [](const double* x) { return *x; }, s);
    for (int k = 0; k < 3; ++k) work[k * n + at] = s[k];
  }
  const double *w = job.w, *before = job.before, scale = job.scale;
  double* r = job.r;
  CRFIT_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const double u = estimate(rule, work[i], work[n + i], work[2 * n + i], w[i] * w[i]);
    r[i] = scale * before[i] * multiplier(rule, u);
  }
}

inline void period_table(const PeriodTableJob& job) {
  for (int64_t i = 0; i < job.n; i += kLanes) {
    // w += eta r (residual - penalty w) where mask is 1
    const Vec w = load(job.w + i), rate = job.eta * load(job.r + i) * load(job.mask + i);
    store(job.w + i, w + rate * (load(job.residual + i) - job.penalty * w));
  }
}

// Stores the weights of the entries at the start of the second half.
inline void period_middle(const PeriodState& state) {
  for (const PeriodEntry* entry = state.entries + 1; entry < state.entries + state.n_entries; ++entry) {
    const WeightSpan weights = crfit::weights_of(state, entry->unit);
    copy_weights(state.to.rows + weights.first, weights.n, state.kept + entry->at + weights.n);
  }
}

// New factors of a unit that both halves touched.
inline void adapt_unit(const PeriodEndJob& job, const PeriodEntry& entry, const WeightSpan& weights, PeriodUnit& unit) {
  PeriodState& state = *job.state;
  PeriodFactorsJob factors;
  factors.rule = state.rule;
  factors.n = weights.n;
  factors.w = state.to.rows + weights.first;
  factors.start = state.kept + entry.at;
  factors.middle = factors.start + weights.n;
  // Factors are stored divided by alpha^p, and p increases by one now: r / alpha^(p+1) = value own v / alpha. All other
  // units have v = alpha and need no update.
  factors.scale = unit.value / state.rule.alpha;
  factors.before = own_of(state, unit);
  if (unit.own == 0) {
    unit.own = state.n_own;
    state.n_own += static_cast<int32_t>((weights.n + 7) / 8);
  }
  // Reuse the place that catch_up released.
  unit.own = unit.own > 0 ? unit.own : -unit.own;
  unit.value = 1.0;
  factors.r = own_of(state, unit);
  if (state.rule.scope == PeriodRule::kWindow)
    window_factors(factors, state, entry.at, job.work);
  else
    period_factors(factors);
}

inline void period_end(const PeriodEndJob& job) {
  PeriodState& state = *job.state;
  const PeriodRule& rule = state.rule;
  const PeriodEntry* last = state.entries + state.n_entries;
  for (const PeriodEntry* entry = state.entries + 1; entry < last; ++entry) {
    if (last - entry > kEntriesAhead && entry[kEntriesAhead].unit < state.first_single) {
      const int64_t later = entry[kEntriesAhead].unit;
      prefetch_row(state.to.rows + crfit::weights_of(state, later).first, state.YP);
      if (rule.scope != PeriodRule::kShared) prefetch_row(own_of(state, state.units[later]), state.YP);
    }
    PeriodUnit& unit = state.units[entry->unit];
    const WeightSpan weights = crfit::weights_of(state, entry->unit);
    if (rule.scope == PeriodRule::kShared) {
      const double *start = state.kept + entry->at, *middle = start + weights.n;
      if (entry->halves == 3)
        add_unit_products(state.to.rows + weights.first, start, middle, weights.n, job.sums + 4 * unit.mark);
      continue;
    }
    if (entry->halves == 3)
      adapt_unit(job, *entry, weights, unit);
    else
      unit.value *= state.alone[1];
    unit.mark = 0;
  }
}

}  // namespace
