#include "online/periods.hpp"

#include <algorithm>

#include "base/dispatch.hpp"
#include "base/pool.hpp"
#include "online/kernels.hpp"

namespace crfit {

namespace {

constexpr int64_t kUnitsPerTask = 4096;   // brought up to date at a time
constexpr double kSmallestFall = 1e-100;  // of alpha^p, before factors divided by it could overflow

int64_t whole_vectors(int64_t n) { return (n + 7) / 8 * 8; }

// At least n items.
template <class Items>
auto* room_for(Items& items, int64_t n) {
  if (static_cast<int64_t>(items.size()) < n) items.resize(static_cast<std::size_t>(2 * n));
  return items.data();
}

}  // namespace

OnlinePeriods::OnlinePeriods(OnlineWeights& weights, OnlineTouches& touches, int64_t n_sequences,
                             const PeriodRule& rule, std::vector<int32_t> groups, int64_t n_groups)
    : weights_(weights),
      touches_(touches),
      rule_(rule),
      tables_(weights, rule),
      n_sequences_(n_sequences),
      n_groups_(n_groups) {
  const RowLayout& shape = weights.shape;
  const LayoutView& layout = shape.layout;
  attribute_of_hot_.resize(static_cast<std::size_t>(shape.n_hot));
  for (int64_t a = 0; a < static_cast<int64_t>(shape.hot_row.size()); ++a)
    if (shape.hot_row[a] >= 0) attribute_of_hot_[shape.hot_row[a]] = static_cast<int32_t>(a);
  for (const auto* counts : {&touches.dense_counts(), &touches.sparse_counts(), &touches.edge_counts()})
    // 1 / m of steps.hpp: m is infinite for unpenalised units, which makes the share 0; units that no sequence touches
    // count as touched once.
    for (const double count : *counts) units_.push_back({1.0, 1.0 / std::max(count, 1.0), 0, 0});
  state_.rule = rule;
  state_.layout = &layout;
  state_.YP = shape.YP;
  state_.to = rows_of(shape, weights.current);
  state_.units = units_.data();
  state_.first_single = static_cast<int64_t>(touches.dense_counts().size());
  state_.first_edge = state_.first_single + static_cast<int64_t>(touches.sparse_counts().size());
  // Touched only in the first half: gamma = 0, divided by the alpha that `fall` contains anyway.
  state_.alone[1] = multiplier(rule, 0.0) / rule.alpha;
  // [units] a bit each, and the number of the entry, 0: none
  later_.assign(units_.size() / 64 + 1, 0);
  entry_of_.assign(units_.size(), 0);
  if (shared()) {
    table_groups_[0] = groups[groups.size() - 2];
    table_groups_[1] = groups[groups.size() - 1];
    const bool all = layout.state_ptr == nullptr;
    for (int64_t a = 0; a < layout.n_attributes; ++a) {
      if (all) units_[a].mark = groups[a];
      if (!all && shape.hot_row[a] >= 0) units_[shape.hot_row[a]].mark = groups[a];
      // Also for attributes with a row: single units are numbered like the weights, used or not.
      for (int64_t i = all ? 0 : layout.state_ptr[a]; i < (all ? 0 : layout.state_ptr[a + 1]); ++i)
        units_[state_.first_single + i].mark = groups[a];
    }
    for (int64_t unit = state_.first_edge; unit < n_units(); ++unit)
      units_[unit].mark = groups[layout.n_attributes + unit - state_.first_edge];
    products_.resize(static_cast<std::size_t>(4 * n_groups));
  } else {
    n_ones_ = whole_vectors(std::max<int64_t>(shape.YP, static_cast<int64_t>(layout.n_labels) * layout.n_labels));
    // own_ starts with ones, for units without own factors; as many as the largest unit has weights.
    own_.assign(static_cast<std::size_t>(n_ones_), 1.0);
    state_.own = own_.data();
    work_.resize(static_cast<std::size_t>(3 * n_ones_));
  }
  forget();
}

void OnlinePeriods::forget() {
  for (const PeriodEntry& entry : entries()) entry_of_[entry.unit] = 0;
  if (shared()) {
    group_factors_.assign(static_cast<std::size_t>(n_groups_), 1.0);
    show_group_factors();
  } else {
    for (PeriodUnit& unit : units_) unit.value = 1.0, unit.mark = 0, unit.own = 0;
    state_.n_own = static_cast<int32_t>(n_ones_ / 8);
    tables_.set_factors(1.0, 1.0);
  }
  state_.period = 1;
  state_.fall = 1.0;
  begin_period();
}

void OnlinePeriods::show_group_factors() {
  state_.groups = group_factors_.data();
  tables_.set_factors(group_factors_[table_groups_[0]], group_factors_[table_groups_[1]]);
}

void OnlinePeriods::begin_period() {
  state_.step = 0;
  state_.n_changes = 1;
  state_.n_kept = 0;
  end_search();
  state_.n_entries = 1;
  state_.entries = room_for(entries_, 1);
  entries_[0] = {};
}

// A unit may be visited more than once.
template <class Visit>
void OnlinePeriods::each_touch(const int64_t* sequences, int64_t n, const Visit& visit) const {
  for (int64_t i = 0; i < n; ++i) {
    if (i + 1 < n) touches_.prefetch(sequences[i + 1]);
    const StepTouches touches = touches_.of_sequence(sequences[i]);
    int64_t first = 0;
    for (const auto& [kind, next] : {std::pair{&touches.dense, state_.first_single},
                                     {&touches.sparse, state_.first_edge},
                                     {&touches.edges, n_units()}}) {
      for (int64_t k = 0; k < kind->n_singles; ++k) visit(first + kind->singles[k].to);
      for (int64_t k = 0; k < kind->n_groups; ++k) visit(first + kind->group[k]);
      first = next;
    }
  }
}

void OnlinePeriods::look_ahead(const int64_t* sequences, int64_t n, int64_t batch) {
  const int64_t k = state_.step, b = rule_.half;
  // Sequences of this visit in the first and in the second half of the current period, after k of its steps.
  const int64_t n_first = std::clamp<int64_t>((b - k) * batch, 0, n);
  const int64_t n_second = std::clamp<int64_t>((2 * b - k) * batch, 0, n) - n_first;
  const int64_t* second = sequences + n_first;
  end_search();
  // The whole period lies ahead: mark the units of the second half; the steps of the first half do the rest.
  if (k == 0 && n > (2 * b - 1) * batch) {
    state_.later = later_.data();
    each_touch(second, n_second, [&](uint64_t unit) { later_[unit / 64] |= uint64_t{1} << unit % 64; });
    return;
  }
  // The visit ends within the period: its later steps are unknown, so every unit of the first half gets an entry.
  // Happens once in epochs that are not a multiple of 2b steps, and in resumed runs.
  const int32_t before = state_.n_entries;
  each_touch(sequences, n_first, [&](int64_t unit) {
    if (entry_of_[unit] == 0) add_entry(unit, 1);
  });
  each_touch(second, n_second, [&](int64_t unit) {
    if (entry_of_[unit] > 0) entries_[entry_of_[unit]].halves = 3;
  });
  begin_entries(before);
}

void OnlinePeriods::end_search() {
  if (state_.later != nullptr) std::fill(later_.begin(), later_.end(), 0);
  state_.later = nullptr;
}

// Adds a unit that the current period has not touched so far.
void OnlinePeriods::add_entry(int64_t unit, int32_t halves) {
  entry_of_[unit] = state_.n_entries;
  state_.entries = room_for(entries_, state_.n_entries + 1);
  state_.entries[state_.n_entries++] = {static_cast<int32_t>(unit), halves, 0};
}

// Stores the weights of entries from `first` on as those at the start of the period.
void OnlinePeriods::begin_entries(int32_t first) {
  for (int32_t i = first; i < state_.n_entries; ++i) {
    PeriodEntry& entry = entries_[i];
    // Before the first step of the period that touches it: `value` must include all earlier periods.
    if (!shared()) bring_up_to_date(state_, units_[entry.unit]);
    if (window()) {
      units_[entry.unit].mark = ~i;
      continue;
    }
    const WeightSpan weights = weights_of(state_, entry.unit);
    entry.at = state_.n_kept;
    state_.n_kept += 2 * weights.n;
    state_.kept = room_for(kept_, state_.n_kept);
    // kept: [2][n], the weights at the start of the first half, then of the second (period_middle overwrites them).
    for (const int64_t at : {entry.at, entry.at + weights.n})  // entries without a weight do not change
      std::copy_n(state_.to.rows + weights.first, weights.n, state_.kept + at);
  }
}

void OnlinePeriods::begin_step(double eta, double l2) {
  eta_ = eta;
  l2_ = l2;
  tables_.begin_step(state_.step);
  if (state_.step != rule_.half) return;
  end_search();
  if (!window()) at_level<OnlineKernels>().period_middle(state_);
}

// Reserves space for the entries and changes of a sequence.
void OnlinePeriods::make_room(const StepTouches& touches) {
  int64_t n_units = 1, n_kept = 0;
  const int64_t pairs = static_cast<int64_t>(weights_.shape.layout.n_labels) * weights_.shape.layout.n_labels;
  for (const auto& [kind, n] :
       {std::pair{&touches.dense, int64_t{state_.YP}}, {&touches.sparse, 1}, {&touches.edges, pairs}}) {
    n_units += kind->n_singles + kind->n_groups;
    n_kept += 2 * n * (1 + kind->n_singles + kind->n_groups);
  }
  state_.entries = room_for(entries_, state_.n_entries + n_units);
  if (window()) state_.changes = room_for(changes_, state_.n_changes + n_units);
  state_.kept = room_for(kept_, state_.n_kept + n_kept);
}

void OnlinePeriods::update(int64_t sequence, int64_t next_sequence, OnlineRuleJob job) {
  const StepTouches touches = sequence == next_sequence_ ? next_ : touches_.of_sequence(sequence);
  make_room(touches);
  job.dense = touches.dense;
  job.sparse = touches.sparse;
  job.edges = touches.edges;
  job.sums = room_for(sums_, touches.room);
  next_sequence_ = next_sequence;
  next_ = next_sequence < 0 ? StepTouches{} : touches_.of_sequence(next_sequence);
  // Build the list of the next sequence's touches now, to prefetch its units meanwhile; the next call uses next_.
  at_level<OnlineKernels>().period_update({job, next_.dense, next_.sparse, &state_});
}

void OnlinePeriods::update_table(PeriodTables::Name name, const double* residual) {
  tables_.update(name, residual, eta_, l2_ / static_cast<double>(n_sequences_));
}

void OnlinePeriods::end_step() {
  tables_.end_step(state_.step++);
  if (state_.step == 2 * rule_.half) end_period();
}

void OnlinePeriods::end_period() {
  std::fill(products_.begin(), products_.end(), 0.0);
  // Reserve space for the own factors of all units that get some now: the kernel assigns it and must not move it.
  int64_t n_own = 8 * int64_t{state_.n_own};
  for (const PeriodEntry& entry : entries())
    if (units_[entry.unit].own == 0) n_own += whole_vectors(weights_of(state_, entry.unit).n);
  if (!shared()) state_.own = room_for(own_, n_own);
  at_level<OnlineKernels>().period_end({&state_, work_.data(), products_.data()});
  if (shared()) {
    tables_.add_products(PeriodTables::kTransitions, products_.data() + 4 * table_groups_[0]);
    for (const auto name : {PeriodTables::kStart, PeriodTables::kEnd})
      tables_.add_products(name, products_.data() + 4 * table_groups_[1]);
    for (int64_t g = 0; g < n_groups_; ++g) {
      const double* s = products_.data() + 4 * g;
      // r <- v(gamma) r with the products of all weights of the group: units in the order of their entries, then
      // tables.
      group_factors_[g] *= multiplier(rule_, estimate(rule_, s[0], s[1], s[2], s[3]));
    }
    show_group_factors();
  } else {
    tables_.adapt();
  }
  for (const PeriodEntry& entry : entries()) entry_of_[entry.unit] = 0;
  ++state_.period;
  // v = alpha for every unit; units with another v have divided it out.
  if (!shared()) state_.fall *= rule_.alpha;
  if (state_.fall < kSmallestFall || state_.period == INT32_MAX) catch_up();
  begin_period();
}

// Also folds each unit's number into its weights' own factors, and replaces own factors that are all equal by one
// number. restore() creates the same form from the factors, so a resumed run continues with the same bytes.
void OnlinePeriods::catch_up() {
  if (shared()) return;
  parallel_for(weights_.shape.n_threads, (n_units() + kUnitsPerTask - 1) / kUnitsPerTask, [&](int64_t task, int) {
    for (int64_t i = task * kUnitsPerTask; i < std::min(n_units(), (task + 1) * kUnitsPerTask); ++i) {
      PeriodUnit& unit = units_[i];
      if (unit.mark >= 0) bring_up_to_date(state_, unit);
      if (unit.mark > 0) unit.mark = 1;
      unit.value *= state_.fall;
      if (unit.own <= 0) continue;
      double first = 1.0;
      bool alike = true, any = false;
      // r = value * own: folded into own, or into one number if all are equal
      each_weight(i, [&](int64_t, int64_t lane) {
        const double r = state_.own[8 * int64_t{unit.own} + lane] *= unit.value;
        if (!any) first = r;
        any = true;
        alike = alike && r == first;
      });
      unit.value = alike ? first : 1.0;
      // Remember its place for later use.
      if (alike) unit.own = -unit.own;
    }
  });
  state_.period = 1;
  state_.fall = 1.0;
}

void OnlinePeriods::get_factors(double* out) {
  if (shared()) {
    std::copy(group_factors_.begin(), group_factors_.end(), out);
    return;
  }
  // Backwards: single units of weights in a row come before the row.
  for (int64_t i = n_units() - 1; i >= 0; --i)
    each_weight(i, [&](int64_t plain, int64_t lane) {
      const PeriodUnit& unit = units_[i];
      out[plain] = unit.own > 0 ? state_.own[8 * int64_t{unit.own} + lane] : unit.value;
    });
  tables_.get_factors(out);
}

template <class Visit>
void OnlinePeriods::each_weight(int64_t unit, const Visit& visit) const {
  const LayoutView& layout = weights_.shape.layout;
  const WeightSpan weights = weights_of(state_, unit);
  const auto each = [&](int64_t first_plain, int64_t n) {
    for (int64_t i = 0; i < n; ++i) visit(first_plain + i, i);
  };
  if (unit >= state_.first_edge) return each(layout.edge_offset + weights.first - state_.to.edge_offset, weights.n);
  if (unit >= state_.first_single) return each(weights.first, 1);
  if (layout.state_ptr == nullptr) return each(unit * layout.n_labels, layout.n_labels);
  const int64_t a = attribute_of_hot_[unit];
  for (int64_t i = layout.state_ptr[a]; i < layout.state_ptr[a + 1]; ++i) visit(i, layout.state_labels[i]);
}

int64_t OnlinePeriods::unit_of(int64_t plain) const {
  const LayoutView& layout = weights_.shape.layout;
  const int64_t Y = layout.n_labels;
  const auto row_of = [](const int64_t* ptr, int64_t n, int64_t i) {
    // The row of a CSR array that contains entry i.
    return std::upper_bound(ptr, ptr + n + 1, i) - ptr - 1;
  };
  if (plain < layout.transition_offset) {
    if (layout.state_ptr == nullptr) return plain / Y;
    const int64_t row = weights_.shape.hot_row[row_of(layout.state_ptr, layout.n_attributes, plain)];
    return row >= 0 ? row : state_.first_single + plain;
  }
  if (plain < layout.edge_offset) return -1;
  const int64_t i = plain - layout.edge_offset;
  return state_.first_edge +
         (layout.pair_ptr == nullptr ? i / (Y * Y) : row_of(layout.pair_ptr, layout.n_edge_attributes, i));
}

int64_t OnlinePeriods::n_touched() const {
  int64_t n = begins() ? 0 : tables_.n_weights();
  for (const PeriodEntry& entry : entries()) each_weight(entry.unit, [&](int64_t, int64_t) { ++n; });
  return n;
}

void OnlinePeriods::get_touched(const TouchedWeights& out) const {
  if (begins()) return;
  const int64_t n = n_touched();
  int64_t to = 0;
  for (const PeriodEntry& entry : entries()) {
    const int64_t size = weights_of(state_, entry.unit).n;
    each_weight(entry.unit, [&](int64_t plain, int64_t lane) {
      out.weights[to] = plain;
      out.halves[to] = entry.halves;
      if (window()) {
        for (int64_t s = 0; s < 2 * rule_.half; ++s) out.steps[s * n + to] = 0.0;
        for (int64_t i = entry.at; i > 0; i = changes_[i].before)
          out.steps[changes_[i].step * n + to] = kept_[changes_[i].at + lane];
      } else {
        out.start[to] = kept_[entry.at + lane];
        out.middle[to] = state_.step > rule_.half ? kept_[entry.at + size + lane] : 0.0;
      }
      ++to;
    });
  }
  tables_.get(state_.step, to, n, out);
}

// Uses one number if a unit's factors are equal.
void OnlinePeriods::restore_factors(int64_t i, const double* factors) {
  PeriodUnit& unit = units_[i];
  bool alike = true, first = true;
  each_weight(i, [&](int64_t plain, int64_t) {
    if (first) unit.value = factors[plain];
    first = false;
    alike = alike && factors[plain] == unit.value;
  });
  if (alike) return;
  unit.value = 1.0;
  unit.own = state_.n_own;
  state_.n_own += static_cast<int32_t>(whole_vectors(weights_of(state_, i).n) / 8);
  state_.own = room_for(own_, 8 * int64_t{state_.n_own});
  std::fill_n(state_.own + 8 * int64_t{unit.own}, 8 * int64_t{state_.n_own - unit.own}, 1.0);
  each_weight(i, [&](int64_t plain, int64_t lane) { state_.own[8 * int64_t{unit.own} + lane] = factors[plain]; });
}

void OnlinePeriods::restore(const double* factors, int64_t steps_made, int64_t n, const TouchedWeights& in) {
  forget();
  if (shared()) {
    std::copy_n(factors, n_groups_, group_factors_.data());
    show_group_factors();
  } else {
    tables_.set_factors(factors);
    for (int64_t i = 0; i < n_units(); ++i) restore_factors(i, factors);
  }
  state_.step = static_cast<int32_t>(steps_made);
  for (int64_t from = 0; from < n; ++from)
    if (const int64_t unit = unit_of(in.weights[from]); unit >= 0 && (in.halves[from] & 1) != 0 && entry_of_[unit] == 0)
      add_entry(unit, static_cast<int32_t>(in.halves[from]));
  begin_entries(1);
  for (PeriodEntry& entry : entries()) {
    const int64_t size = weights_of(state_, entry.unit).n;
    // kWindow: one change for each step so far; for steps that did not touch the unit it is 0 and adds nothing to the
    // products.
    for (int32_t s = 0; window() && s < state_.step; ++s) {
      state_.changes = room_for(changes_, state_.n_changes + 1);
      state_.kept = room_for(kept_, state_.n_kept + size);
      std::fill_n(state_.kept + state_.n_kept, size, 0.0);
      state_.changes[state_.n_changes] = {s, static_cast<int32_t>(entry.at), state_.n_kept};
      entry.at = state_.n_changes++;
      state_.n_kept += size;
    }
  }
  for (int64_t from = 0; from < n; ++from) {
    if (tables_.restore(from, n, in)) continue;
    const int64_t plain = in.weights[from], unit = unit_of(plain), size = weights_of(state_, unit).n;
    if (entry_of_[unit] == 0) continue;  // touched only in the second half
    const PeriodEntry& entry = entries_[entry_of_[unit]];
    each_weight(unit, [&](int64_t place, int64_t lane) {
      if (place != plain) return;
      if (window()) {
        for (int64_t i = entry.at; i > 0; i = changes_[i].before)
          kept_[changes_[i].at + lane] = in.steps[changes_[i].step * n + from];
      } else {
        kept_[entry.at + lane] = in.start[from];
        kept_[entry.at + size + lane] = in.middle[from];
      }
    });
  }
}

}  // namespace crfit
