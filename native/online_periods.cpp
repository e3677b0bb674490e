#include "online_periods.hpp"

#include <algorithm>

#include "group_periods.hpp"
#include "unit_periods.hpp"

namespace crfit {

std::unique_ptr<OnlinePeriods> OnlinePeriods::make(const DataView& data, OnlineWeights& weights, const PeriodRule& rule,
                                                   std::vector<int32_t> groups, int64_t n_groups) {
  if (rule.scope == PeriodRule::kShared)
    return std::make_unique<GroupPeriods>(data, weights, rule, std::move(groups), n_groups);
  return std::make_unique<UnitPeriods>(data, weights, rule);
}

OnlinePeriods::OnlinePeriods(const DataView& data, OnlineWeights& weights, const PeriodRule& rule)
    : data_(data),
      weights_(weights),
      rule_(rule),
      tables_(weights, rule),
      n_units_(weights.shape.layout.n_attributes + weights.shape.layout.n_edge_attributes) {}

void OnlinePeriods::begin_step(double eta, double share, const OnlineSlot* slots, int64_t n_slots, int n_parts) {
  eta_ = eta;
  share_ = share;
  slots_ = slots;
  n_slots_ = n_slots;
  n_parts_ = n_parts;
  tables_.begin_step(static_cast<int64_t>(steps_.size()));
}

void OnlinePeriods::update_table(PeriodTables::Name name, const double* residual) {
  tables_.update(name, residual, eta_, share_, static_cast<int64_t>(steps_.size()));
}

void OnlinePeriods::get_touched(const TouchedWeights& out) const {
  if (begins()) return;
  const int64_t n = n_touched();
  tables_.get(static_cast<int64_t>(steps_.size()), get_touched_units(n, out), n, out);
}

int64_t OnlinePeriods::room(int64_t unit) const {
  const OnlineShape& shape = weights_.shape;
  const LayoutView& layout = shape.layout;
  int64_t n = 0;
  if (unit < layout.n_attributes && (layout.state_ptr == nullptr || shape.hot_row[unit] >= 0)) return shape.YP;
  each_weight(unit, [&](int64_t, int64_t, int64_t) { ++n; });
  return (n + 7) / 8 * 8;
}

int64_t OnlinePeriods::unit_of(int64_t plain) const {
  const LayoutView& layout = weights_.shape.layout;
  const int64_t Y = layout.n_labels;
  const auto row_of = [](const int64_t* ptr, int64_t n, int64_t i) {
    return std::upper_bound(ptr, ptr + n + 1, i) - ptr - 1;
  };
  if (plain < layout.transition_offset)
    return layout.state_ptr == nullptr ? plain / Y : row_of(layout.state_ptr, layout.n_attributes, plain);
  if (plain < layout.edge_offset) return -1;
  const int64_t i = plain - layout.edge_offset;
  return layout.n_attributes +
         (layout.pair_ptr == nullptr ? i / (Y * Y) : row_of(layout.pair_ptr, layout.n_edge_attributes, i));
}

double OnlinePeriods::shrinkage(double r, int64_t from, int64_t to) const {
  double product = 1.0;
  for (int64_t s = from; s < to; ++s) product *= 1.0 - r * steps_[s];
  return product;
}

}  // namespace crfit
