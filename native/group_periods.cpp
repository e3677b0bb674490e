#include "group_periods.hpp"

#include <algorithm>

#include "pool.hpp"

namespace crfit {

namespace {

constexpr double kSmallestZ = 1e-100;
constexpr int64_t kUnitsPerTask = 4096;  // brought up to date at a time

}  // namespace

GroupPeriods::GroupPeriods(const DataView& data, OnlineWeights& weights, const PeriodRule& rule,
                           std::vector<int32_t> groups, int64_t n_groups)
    : OnlinePeriods(data, weights, rule), groups_(std::move(groups)), n_groups_(n_groups) {
  const OnlineShape& shape = weights.shape;
  const LayoutView& layout = shape.layout;
  seen_.assign(static_cast<std::size_t>(n_units_ / 64 + 1), 0);
  entry_of_.assign(static_cast<std::size_t>(n_units_), -1);
  if (layout.state_ptr != nullptr) {
    hot_groups_.resize(static_cast<std::size_t>(shape.n_hot));
    weight_groups_.resize(static_cast<std::size_t>(layout.transition_offset));
    for (int64_t a = 0; a < layout.n_attributes; ++a) {
      if (shape.hot_row[a] >= 0) hot_groups_[shape.hot_row[a]] = groups_[a];
      std::fill(weight_groups_.begin() + layout.state_ptr[a], weight_groups_.begin() + layout.state_ptr[a + 1],
                groups_[a]);
    }
  }
  forget();
}

void GroupPeriods::forget() {
  factors_.assign(static_cast<std::size_t>(n_groups_), 1.0);
  gains_.assign(static_cast<std::size_t>(n_groups_), 0.0);
  show_factors();
  steps_.clear();
  for (const Entry& entry : entries_) entry_of_[entry.unit] = -1;
  entries_.clear();
  start_.clear();
  restart_products();
}

void GroupPeriods::show_factors() { tables_.set_factors(factors_[groups_[n_units_]], factors_[groups_[n_units_ + 1]]); }

// Rows are the weights themselves.
void GroupPeriods::restart_products() {
  Z_.assign(static_cast<std::size_t>(n_groups_), 1.0);
  Z_begin_ = Z_;
  // Where nothing is left of a weight there is nothing to go back to.
  for (int64_t g = 0; g < n_groups_; ++g)
    Z_begin_[g] /= std::max(shrinkage(factors_[g], 0, static_cast<int64_t>(steps_.size())), kSmallestZ);
  edge_Z_.assign(static_cast<std::size_t>(weights_.shape.layout.n_edge_attributes), 1.0);
}

// Calls visit(unit) for the units of these sequences, for some of them more than once.
template <class Visit>
void GroupPeriods::each_touch(const int64_t* sequences, int64_t n, const Visit& visit) const {
  const LayoutView& layout = weights_.shape.layout;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t begin = data_.seq_ptr[sequences[i]], end = data_.seq_ptr[sequences[i] + 1];
    for (int64_t k = data_.attr_ptr[begin]; k < data_.attr_ptr[end]; ++k)
      if (data_.attr_ids[k] < layout.n_attributes) visit(data_.attr_ids[k]);
    if (data_.edge_ptr == nullptr) continue;
    for (int64_t k = data_.edge_ptr[begin + 1]; k < data_.edge_ptr[end]; ++k)
      if (data_.edge_ids[k] < layout.n_edge_attributes) visit(layout.n_attributes + data_.edge_ids[k]);
  }
}

void GroupPeriods::look_ahead(const int64_t* sequences, int64_t n, int64_t batch) {
  const int64_t k = static_cast<int64_t>(steps_.size()), b = rule_.half;
  const int64_t n_first = std::clamp<int64_t>((b - k) * batch, 0, n);
  const int64_t n_second = std::clamp<int64_t>((2 * b - k) * batch, 0, n) - n_first;
  const int64_t* second = sequences + n_first;
  const auto bit = [](int64_t unit) { return uint64_t{1} << unit % 64; };
  if (k == 0 && n > (2 * b - 1) * batch) {  // all of it
    each_touch(sequences, n_first, [&](int64_t unit) { seen_[unit / 64] |= bit(unit); });
    each_touch(second, n_second, [&](int64_t unit) {
      if ((seen_[unit / 64] & bit(unit)) == 0) return;
      seen_[unit / 64] &= ~bit(unit);
      add_entry(unit, 3);
    });
    each_touch(sequences, n_first, [&](int64_t unit) { seen_[unit / 64] = 0; });
    return;
  }
  each_touch(sequences, n_first, [&](int64_t unit) {
    if (entry_of_[unit] < 0) add_entry(unit, 1);
  });
  each_touch(second, n_second, [&](int64_t unit) {
    if (entry_of_[unit] >= 0) entries_[entry_of_[unit]].halves |= 2;
  });
}

// A unit that the present period has not touched so far: its row is that of the period's begin.
void GroupPeriods::add_entry(int64_t unit, int32_t halves) {
  const Entry entry{static_cast<int32_t>(unit), halves, static_cast<int64_t>(start_.size())};
  entry_of_[unit] = static_cast<int32_t>(entries_.size());
  entries_.push_back(entry);
  start_.resize(start_.size() + static_cast<std::size_t>(room(unit)));
  const int64_t n_attributes = weights_.shape.layout.n_attributes;
  keep(entry, Z_begin_[groups_[unit]] / (unit < n_attributes ? 1.0 : edge_Z_[unit - n_attributes]), start_);
}

double GroupPeriods::factor_now(int64_t unit) const {
  const int64_t n_attributes = weights_.shape.layout.n_attributes;
  return Z_[groups_[unit]] / (unit < n_attributes ? 1.0 : edge_Z_[unit - n_attributes]);
}

void GroupPeriods::keep(const Entry& entry, double factor, std::vector<double>& out) const {
  const double* rows = weights_.current.rows.data();
  double* to = out.data() + entry.at;
  each_weight(entry.unit, [&](int64_t, int64_t stored, int64_t lane) { to[lane] = factor * rows[stored]; });
}

void GroupPeriods::begin_step(double eta, double share, const OnlineSlot* slots, int64_t n_slots, int n_parts) {
  OnlinePeriods::begin_step(eta, share, slots, n_slots, n_parts);
  for (int64_t g = 0; g < n_groups_; ++g) {
    const double rate = eta * factors_[g];
    gains_[g] = rate / (1.0 - rate * share);
  }
  if (static_cast<int64_t>(steps_.size()) == rule_.half) {
    middle_.resize(start_.size());
    for (const Entry& entry : entries_) keep(entry, factor_now(entry.unit), middle_);
  }
}

// Edge attributes are brought up to date.
void GroupPeriods::prepare(int part) {
  const LayoutView& layout = weights_.shape.layout;
  if (edge_Z_.empty() || data_.edge_ptr == nullptr) return;
  double* rows = weights_.current.rows.data();
  for (int64_t n = 0; n < n_slots_; ++n) {
    const int64_t begin = data_.seq_ptr[slots_[n].sequence], end = data_.seq_ptr[slots_[n].sequence + 1];
    for (int64_t k = data_.edge_ptr[begin + 1]; k < data_.edge_ptr[end]; ++k) {
      const int32_t b = data_.edge_ids[k];
      if (b >= layout.n_edge_attributes || (n_parts_ > 0 && part_of(b, n_parts_) != static_cast<uint32_t>(part)))
        continue;
      const int64_t unit = layout.n_attributes + b;
      const double factor = factor_now(unit);
      if (factor != 1.0) each_weight(unit, [&](int64_t, int64_t stored, int64_t) { rows[stored] *= factor; });
      edge_Z_[b] = Z_[groups_[unit]];
    }
  }
}

// The state attributes go by the kernel of plain steps; here edge attributes.
void GroupPeriods::update(int part, int64_t) {
  const LayoutView& layout = weights_.shape.layout;
  if (edge_Z_.empty() || data_.edge_ptr == nullptr) return;
  const int64_t Y = layout.n_labels, YP = weights_.shape.YP;
  double* rows = weights_.current.rows.data();
  for (int64_t n = 0; n < n_slots_; ++n) {
    const OnlineSlot& slot = slots_[n];
    const int64_t begin = data_.seq_ptr[slot.sequence], end = data_.seq_ptr[slot.sequence + 1];
    for (int64_t t = begin + 1; t < end; ++t)
      for (int64_t k = data_.edge_ptr[t]; k < data_.edge_ptr[t + 1]; ++k) {
        const int32_t b = data_.edge_ids[k];
        if (b >= layout.n_edge_attributes || (n_parts_ > 0 && part_of(b, n_parts_) != static_cast<uint32_t>(part)))
          continue;
        const double* pairs = slot.pair_residual + (t - begin) * Y * YP;
        const double gain = gains_[groups_[layout.n_attributes + b]];
        each_weight(layout.n_attributes + b, [&](int64_t plain, int64_t stored, int64_t i) {
          const int64_t code = layout.pair_ptr == nullptr ? i : layout.pair_codes[plain - layout.edge_offset];
          rows[stored] += gain * pairs[padded_pair(code, Y, YP)];
        });
      }
  }
}

void GroupPeriods::value(const OnlineSlot& slot, bool by_token) const {
  const LayoutView& layout = weights_.shape.layout;
  const int64_t begin = data_.seq_ptr[slot.sequence], end = data_.seq_ptr[slot.sequence + 1];
  const int64_t first = data_.attr_ptr[begin], n = data_.attr_ptr[end] - first;
  const TokenIndex* tokens = weights_.view.tokens;
  if (tokens == nullptr || !by_token)
    for (int64_t k = 0; k < n; ++k) {
      const int32_t a = data_.attr_ids[first + k];
      const int32_t g = a < layout.n_attributes ? groups_[a] : 0;
      const double x = data_.attr_values == nullptr ? 1.0 : data_.attr_values[first + k];
      if (tokens == nullptr) slot.values.scales[k] = x * Z_[g];
      slot.values.gains[k] = x * gains_[g] / Z_[g];
    }
  if (tokens == nullptr) return;
  const auto fill = [&](const int64_t* ptr, const auto* units, const std::vector<int32_t>& groups, const double* values,
                        double* scales, double* gains) {
    for (int64_t k = ptr[begin]; k < ptr[end]; ++k) {
      const int32_t g = groups[units[k]];
      const double x = values == nullptr ? 1.0 : values[k];
      scales[k - ptr[begin]] = x * Z_[g];
      if (by_token) gains[k - ptr[begin]] = x * gains_[g] / Z_[g];
    }
  };
  fill(tokens->dense_ptr, tokens->dense_rows, hot_groups_, tokens->dense_values, slot.values.scales, slot.values.gains);
  fill(tokens->sparse_ptr, tokens->sparse_weights, weight_groups_, tokens->sparse_values, slot.values.single_scales,
       slot.values.single_gains);
}

void GroupPeriods::end_step() {
  steps_.push_back(eta_ * share_);
  double smallest = 1.0;
  for (int64_t g = 0; g < n_groups_; ++g) smallest = std::min(smallest, Z_[g] *= 1.0 - factors_[g] * steps_.back());
  if (smallest < kSmallestZ) catch_up();
}

void GroupPeriods::end_period() {
  std::vector<double> sums(static_cast<std::size_t>(4 * n_groups_), 0.0);
  const double* rows = weights_.current.rows.data();
  for (const Entry& entry : entries_) {
    entry_of_[entry.unit] = -1;
    if (entry.halves != 3) continue;
    const double factor = factor_now(entry.unit), *start = start_.data() + entry.at,
                 *middle = middle_.data() + entry.at;
    double s11 = 0.0, s12 = 0.0, s22 = 0.0, square = 0.0;
    each_weight(entry.unit, [&](int64_t, int64_t stored, int64_t lane) {
      const double w = factor * rows[stored], d1 = middle[lane] - start[lane], d2 = w - middle[lane];
      s11 += d1 * d1, s12 += d1 * d2, s22 += d2 * d2, square += w * w;
    });
    double* sum = sums.data() + 4 * groups_[entry.unit];
    sum[0] += s11, sum[1] += s12, sum[2] += s22, sum[3] += square;
  }
  tables_.add_products(PeriodTables::kTransitions, sums.data() + 4 * groups_[n_units_]);
  for (const auto name : {PeriodTables::kStart, PeriodTables::kEnd})
    tables_.add_products(name, sums.data() + 4 * groups_[n_units_ + 1]);
  for (int64_t g = 0; g < n_groups_; ++g) {
    const double* sum = sums.data() + 4 * g;
    factors_[g] *= rule_.multiplier(rule_.estimate({sum[0], sum[1], sum[2], sum[3]}));
  }
  show_factors();
  entries_.clear();
  start_.clear();
  steps_.clear();
  Z_begin_ = Z_;
}

void GroupPeriods::catch_up() {
  if (std::all_of(Z_.begin(), Z_.end(), [](double Z) { return Z == 1.0; })) return;
  double* rows = weights_.current.rows.data();
  parallel_for(weights_.shape.n_threads, (n_units_ + kUnitsPerTask - 1) / kUnitsPerTask, [&](int64_t task, int) {
    for (int64_t unit = task * kUnitsPerTask; unit < std::min(n_units_, (task + 1) * kUnitsPerTask); ++unit) {
      const double factor = factor_now(unit);
      each_weight(unit, [&](int64_t, int64_t stored, int64_t) { rows[stored] *= factor; });
    }
  });
  restart_products();
}

void GroupPeriods::get_factors(double* out) { std::copy(factors_.begin(), factors_.end(), out); }

int64_t GroupPeriods::n_touched_units() const {
  int64_t n = 0;
  for (const Entry& entry : entries_) each_weight(entry.unit, [&](int64_t, int64_t, int64_t) { ++n; });
  return n;
}

int64_t GroupPeriods::get_touched_units(int64_t, const TouchedWeights& out) const {
  const bool second = static_cast<int64_t>(steps_.size()) > rule_.half;
  int64_t to = 0;
  for (const Entry& entry : entries_)
    each_weight(entry.unit, [&](int64_t plain, int64_t, int64_t lane) {
      out.weights[to] = plain;
      out.halves[to] = entry.halves;
      out.start[to] = start_[entry.at + lane];
      out.middle[to++] = second ? middle_[entry.at + lane] : 0.0;
    });
  return to;
}

void GroupPeriods::restore(const double* factors, const double* steps, int64_t n_steps, int64_t n,
                           const TouchedWeights& in) {
  forget();
  std::copy_n(factors, n_groups_, factors_.data());
  show_factors();
  steps_.assign(steps, steps + n_steps);
  restart_products();
  for (int64_t from = 0; from < n; ++from) {
    if (tables_.restore(from, n, in) || (in.halves[from] & 1) == 0) continue;
    const int64_t plain = in.weights[from], unit = unit_of(plain);
    if (entry_of_[unit] < 0) add_entry(unit, static_cast<int32_t>(in.halves[from]));
    middle_.resize(start_.size());
    const int64_t at = entries_[entry_of_[unit]].at;
    each_weight(unit, [&](int64_t place, int64_t, int64_t lane) {
      if (place != plain) return;
      start_[at + lane] = in.start[from];
      middle_[at + lane] = in.middle[from];
    });
  }
}

}  // namespace crfit
