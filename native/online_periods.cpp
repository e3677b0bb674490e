#include "online_periods.hpp"

#include <algorithm>
#include <cmath>

namespace crfit {

namespace {

constexpr double kTinyShare = 1e-4;      // for which four powers do
constexpr double kSmallShare = 0.006;    // for which the powers reach full precision
constexpr double kLargestScale = 1e4;    // alpha^-p of the last moment
constexpr double kSmallestZ = 1e-100;    // product of shrinkings of a group
constexpr int64_t kUnitsPerTask = 4096;  // brought up to date at a time

double squared(double x) { return x * x; }

double multiplier(const PeriodRule& rule, double u) {
  return 0.5 * (rule.alpha + rule.beta) + 0.5 * (rule.alpha - rule.beta) / rule.kappa * u;
}

// gamma, cut to [-kappa, kappa], of vectors with these products.
double estimate(const PeriodRule& rule, double s11, double s12, double s22, double square) {
  if (s11 < squared(kTinyChange) * std::max(1.0, square)) return rule.kappa;
  if (rule.gamma == 3 && !(s12 > 0.0)) return -rule.kappa;
  const double gamma = rule.gamma == 1 ? s12 / s11 : rule.gamma == 2 ? std::sqrt(s22 / s11) : s22 / s12;
  return std::clamp(gamma, -rule.kappa, rule.kappa);
}

// Places in the plain weight vector of a table's entries, -1 where there is no weight. Tables: transitions, start, end.
std::vector<int64_t> plain_places(const LayoutView& layout, int YP, int table, int64_t n) {
  std::vector<int64_t> places(static_cast<std::size_t>(n), -1);
  const int64_t Y = layout.n_labels;
  if (n == 0) return places;
  if (table > 0) {
    for (int64_t j = 0; j < Y; ++j) places[j] = (table == 1 ? layout.start_offset : layout.end_offset) + j;
    return places;
  }
  for (int m = 1; m <= layout.order; ++m) {
    const NgramBlock& block = layout.ngrams[m - 1];
    const int64_t offset = table_offset(Y, YP, m);
    for (int64_t k = 0; k < block.n; ++k)
      places[offset + padded_pair(block.codes == nullptr ? k : block.codes[k], Y, YP)] = block.offset + k;
  }
  return places;
}

}  // namespace

OnlinePeriods::OnlinePeriods(const DataView& data, OnlineWeights& weights, const PeriodRule& rule,
                             std::vector<int32_t> groups, int64_t n_groups)
    : data_(data),
      weights_(weights),
      rule_(rule),
      groups_(std::move(groups)),
      n_groups_(n_groups),
      n_units_(weights.shape.layout.n_attributes + weights.shape.layout.n_edge_attributes) {
  const OnlineShape& shape = weights.shape;
  units_.resize(static_cast<std::size_t>(n_units_));
  if (!shared()) factors_ = shape.zeros();
  const bool boundary = shape.layout.boundary;
  OnlineVector& w = weights.current;
  const int64_t n = shape.layout.start_offset > shape.layout.transition_offset ? shape.ngram_size : 0;
  tables_[0].w = w.tr.data();
  tables_[1].w = w.start.data();
  tables_[2].w = w.end.data();
  tables_[0].mask = weights.mask.data();
  tables_[1].mask = tables_[2].mask = weights.boundary_mask.data();
  tables_[0].n = n;
  tables_[1].n = tables_[2].n = boundary ? shape.YP : 0;
  show_factors();
  for (int k = 0; k < 3; ++k) {
    Table& table = tables_[k];
    const auto size = static_cast<std::size_t>(table.n);
    if (shared()) table.group = groups_[n_units_ + (k == 0 ? 0 : 1)];
    table.plain = plain_places(shape.layout, shape.YP, k, table.n);
    table.start.resize(size);
    table.middle.resize(size);
    if (!window()) continue;
    table.steps.resize(size * rule_.half);
    table.products.resize(size);
    table.squares.resize(size);
  }
  for (int p = 0; p < kPeriodParts; ++p) {
    memory_[p].sums.resize(static_cast<std::size_t>(4 * n_groups_));
    parts_[p].sums = memory_[p].sums.data();
  }
  forget();
}

void OnlinePeriods::forget() {
  for (int64_t i = 0; i < n_units_; ++i) units_[i] = {1.0, shared() ? groups_[i] : 0, 0};
  for (Table& table : tables_)
    if (!shared()) std::fill_n(table.r, table.n, 1.0);
  group_factors_.assign(static_cast<std::size_t>(n_groups_), 1.0);
  gains_.assign(static_cast<std::size_t>(n_groups_), 0.0);
  steps_.clear();
  for (PeriodPart& part : parts_) part.n = 0, part.used = 0;
  later_.assign(static_cast<std::size_t>(n_units_ / 64 + 1), 0);
  later_sequences_.clear();
  later_known_ = false;
  restart_moments();
}

void OnlinePeriods::look_ahead(const int64_t* sequences, int64_t n) {
  mark_later(false);
  later_known_ = sequences != nullptr;
  later_sequences_.assign(sequences, sequences + n);
  mark_later(true);
}

// Sets the bits of the units that the sequences ahead touch, or clears them.
void OnlinePeriods::mark_later(bool touched) {
  const LayoutView& layout = weights_.shape.layout;
  const auto mark = [&](int64_t unit) {
    uint64_t& word = later_[unit / 64];
    word = touched ? word | uint64_t{1} << unit % 64 : 0;
  };
  for (const int64_t sequence : later_sequences_) {
    const int64_t begin = data_.seq_ptr[sequence], end = data_.seq_ptr[sequence + 1];
    for (int64_t k = data_.attr_ptr[begin]; k < data_.attr_ptr[end]; ++k)
      if (data_.attr_ids[k] < layout.n_attributes) mark(data_.attr_ids[k]);
    if (data_.edge_ptr == nullptr) continue;
    for (int64_t k = data_.edge_ptr[begin]; k < data_.edge_ptr[end]; ++k)
      if (data_.edge_ids[k] < layout.n_edge_attributes) mark(layout.n_attributes + data_.edge_ids[k]);
  }
}

void OnlinePeriods::show_factors() {
  tables_[0].r = factors_.tr.data();
  tables_[1].r = factors_.start.data();
  tables_[2].r = factors_.end.data();
}

// The list begins with the present period; group products are 1 now.
void OnlinePeriods::restart_moments() {
  up_to_date_ = true;
  begin_ = 0;
  moments_.assign(1, {});
  moments_[0].end = 2 * rule_.half;
  shares_.clear();
  largest_share_ = 0.0;
  Z_.assign(static_cast<std::size_t>(n_groups_), 1.0);
  Z_begin_ = Z_middle_ = Z_inverse_ = Z_;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    PeriodMoment next = moments_.back();
    double power = 1.0;
    for (int k = 0; k < kPeriodPowers; ++k) next.powers[k] += (power *= steps_[s]) / (k + 1);
    moments_.push_back(next);
    shares_.push_back(steps_[s]);
    largest_share_ = std::max(largest_share_, steps_[s]);
    for (int64_t g = 0; g < n_groups_; ++g) {
      Z_begin_[g] /= 1.0 - group_factors_[g] * steps_[s];
      if (static_cast<int64_t>(s) >= rule_.half) Z_middle_[g] /= 1.0 - group_factors_[g] * steps_[s];
    }
  }
}

PeriodJob OnlinePeriods::job(PeriodJob::Task task) const {
  const OnlineShape& shape = weights_.shape;
  PeriodJob job;
  job.task = task;
  job.rule = &rule_;
  job.data = &data_;
  job.layout = &shape.layout;
  job.YP = shape.YP;
  job.to.rows = weights_.current.rows.data();
  job.to.hot_row = shape.hot_row.data();
  job.to.hot_labels = shape.layout.state_ptr == nullptr ? nullptr : shape.hot_labels.data();
  job.to.label_words = shape.label_words;
  job.to.hot_offset = shape.hot_offset;
  job.to.edge_offset = shape.edge_offset;
  job.factors = const_cast<double*>(factors_.rows.data());
  job.units = const_cast<PeriodUnit*>(units_.data());
  job.parts = const_cast<PeriodPart*>(parts_);
  job.slots = slots_;
  job.n_slots = n_slots_;
  job.n_parts = n_parts_;
  job.moments = moments_.data();
  job.shares = shares_.data();
  job.series = largest_share_ <= kSmallShare;
  job.tiny = std::max(largest_share_, eta_ * share_) <= kTinyShare;
  job.scaled = scaled();
  job.begin = begin_;
  job.middle = begin_ + rule_.half;
  job.now = static_cast<int64_t>(moments_.size()) - 1;
  job.first_alone = multiplier(rule_, 0.0) / rule_.alpha;
  job.eta = eta_;
  job.share = share_;
  job.Z = Z_.data();
  job.Z_inverse = Z_inverse_.data();
  job.Z_begin = Z_begin_.data();
  job.Z_middle = Z_middle_.data();
  job.gains = gains_.data();
  job.later = later_known_ ? later_.data() : nullptr;
  job.weights = &weights_.view;
  return job;
}

void OnlinePeriods::begin_step(double eta, double share, const OnlineSlot* slots, int64_t n_slots, int n_parts) {
  eta_ = eta;
  share_ = share;
  slots_ = slots;
  n_slots_ = n_slots;
  n_parts_ = n_parts;
  const std::size_t k = steps_.size();
  if (k == 0) Z_begin_ = Z_;
  if (k == static_cast<std::size_t>(rule_.half)) Z_middle_ = Z_;
  for (int64_t g = 0; g < n_groups_; ++g) {
    const double rate = eta * group_factors_[g];
    gains_[g] = rate / (1.0 - rate * share);
  }
  for (Table& table : tables_) {
    if (k == 0) std::copy_n(table.w, table.n, table.start.data());
    if (k == static_cast<std::size_t>(rule_.half)) std::copy_n(table.w, table.n, table.middle.data());
    if (k == 0 && window()) {
      std::fill(table.products.begin(), table.products.end(), 0.0);
      std::fill(table.squares.begin(), table.squares.end(), 0.0);
    }
  }
  make_room();
}

// As many entries as the step has occurrences could come, in each part.
void OnlinePeriods::make_room() {
  const LayoutView& layout = weights_.shape.layout;
  const int64_t rows = window() ? rule_.half + 3 : 2;
  const int64_t pairs = (static_cast<int64_t>(layout.n_labels) * layout.n_labels + 7) / 8 * 8;
  int64_t states = 0, edges = 0;
  for (int64_t n = 0; n < n_slots_; ++n) {
    const OnlineSlot& slot = slots_[n];
    const int64_t begin = data_.seq_ptr[slot.sequence], end = data_.seq_ptr[slot.sequence + 1];
    states += data_.attr_ptr[end] - data_.attr_ptr[begin];
    if (slot.pair_residual != nullptr) edges += data_.edge_ptr[end] - data_.edge_ptr[begin];
  }
  for (int p = 0; p < kPeriodParts; ++p) {
    PeriodPart& part = parts_[p];
    Part& memory = memory_[p];
    const auto grow = [](auto& items, int64_t size) {
      if (static_cast<int64_t>(items.size()) < size) items.resize(static_cast<std::size_t>(2 * size));
      return items.data();
    };
    part.entries = grow(memory.entries, part.n + states + edges);
    part.scratch = grow(memory.scratch, part.used + rows * (states * weights_.shape.YP + edges * pairs));
  }
}

void OnlinePeriods::prepare(int part) {
  PeriodJob task = job(PeriodJob::kPrepare);
  task.part = part;
  kernels().period(task);
}

void OnlinePeriods::update(int part, int64_t next_sequence) {
  PeriodJob task = job(PeriodJob::kUpdate);
  task.part = part;
  task.next_sequence = next_sequence;
  kernels().period(task);
}

void OnlinePeriods::update_table(int number, const double* residual) {
  Table& table = tables_[number];
  const int64_t k = static_cast<int64_t>(steps_.size()), b = rule_.half;
  const double common = shared() ? group_factors_[table.group] : 0.0;
  for (int64_t i = 0; i < table.n; ++i) {
    const double rate = eta_ * (shared() ? common : table.r[i]) * table.mask[i];
    const double before = table.w[i], after = before - rate * (share_ * before - residual[i]);
    table.w[i] = after;
    if (!window()) continue;
    const double d = after - before;
    if (k < b) {
      table.steps[k * table.n + i] = d;
    } else {
      table.products[i] += d * table.steps[(k - b) * table.n + i];
      table.squares[i] += d * d;
    }
  }
}

bool OnlinePeriods::end_step() {
  const double step = eta_ * share_;
  const PeriodMoment& last = moments_.back();
  const double x = step * last.falls;
  PeriodMoment next = last;
  double power = 1.0;
  for (int k = 0; k < kPeriodPowers; ++k) next.powers[k] += (power *= x) / (k + 1);
  steps_.push_back(step);
  up_to_date_ = false;
  const bool over = static_cast<int64_t>(steps_.size()) == 2 * rule_.half;
  if (over) {
    next.scale /= rule_.alpha;
    next.falls *= rule_.alpha;
    next.end += 2 * rule_.half;
  }
  moments_.push_back(next);
  shares_.push_back(x);
  largest_share_ = std::max(largest_share_, step);
  for (int64_t g = 0; g < n_groups_; ++g) {
    Z_[g] *= 1.0 - group_factors_[g] * step;
    Z_inverse_[g] = 1.0 / Z_[g];
  }
  return over;
}

void OnlinePeriods::end_part(int part) {
  std::fill(memory_[part].sums.begin(), memory_[part].sums.end(), 0.0);
  PeriodJob task = job(PeriodJob::kEnd);
  task.part = part;
  kernels().period(task);
}

void OnlinePeriods::end_period() {
  for (Table& table : tables_) end_table(table);
  double smallest = 1.0;
  for (int64_t g = 0; g < n_groups_; ++g) {
    double sums[4] = {};
    for (Part& part : memory_)
      for (int k = 0; k < 4; ++k) sums[k] += part.sums[4 * g + k];
    group_factors_[g] *= multiplier(rule_, estimate(rule_, sums[0], sums[1], sums[2], sums[3]));
    smallest = std::min(smallest, Z_[g]);
  }
  for (PeriodPart& part : parts_) part.n = 0, part.used = 0;
  steps_.clear();
  begin_ = static_cast<int64_t>(moments_.size()) - 1;
  if (moments_.back().scale > kLargestScale || smallest < kSmallestZ || begin_ > INT32_MAX / 4) catch_up();
}

void OnlinePeriods::end_table(Table& table) {
  const int64_t b = rule_.half;
  for (int64_t i = 0; i < table.n; ++i) {
    if (table.mask[i] == 0.0) continue;
    const double w = table.w[i], d1 = table.middle[i] - table.start[i], d2 = w - table.middle[i];
    if (shared()) {
      double* sums = memory_[0].sums.data() + 4 * table.group;
      sums[0] += d1 * d1, sums[1] += d1 * d2, sums[2] += d2 * d2, sums[3] += w * w;
      continue;
    }
    double u = rule_.kappa;
    if (window()) {
      double s11 = 0.0;
      for (int64_t k = 0; k < b; ++k) s11 += squared(table.steps[k * table.n + i]);
      u = estimate(rule_, s11, table.products[i], table.squares[i], w * w);
    } else if (std::abs(d1) >= kTinyChange * std::max(1.0, std::abs(w))) {
      u = std::clamp(d2 / d1, -rule_.kappa, rule_.kappa);
      if (rule_.gamma == 2) u = std::abs(u);
    }
    table.r[i] *= multiplier(rule_, u);
  }
}

void OnlinePeriods::catch_up() {
  PeriodJob all = job(PeriodJob::kCatchUp);
  if (up_to_date_) return;
  all.now_is = static_cast<int64_t>(steps_.size());
  parallel_for(weights_.shape.n_threads, (n_units_ + kUnitsPerTask - 1) / kUnitsPerTask, [&](int64_t task, int) {
    PeriodJob part = all;
    part.first_unit = task * kUnitsPerTask;
    part.last_unit = std::min(n_units_, part.first_unit + kUnitsPerTask);
    kernels().period(part);
  });
  restart_moments();
}

// Calls visit(plain, stored, lane) for the weights of a unit: places in the plain vector, in the rows, in a row.
template <class Visit>
void OnlinePeriods::each_weight(int64_t unit, const Visit& visit) const {
  const OnlineShape& shape = weights_.shape;
  const LayoutView& layout = shape.layout;
  const int64_t Y = layout.n_labels;
  if (unit >= layout.n_attributes) {
    const int64_t b = unit - layout.n_attributes, first = layout.pair_ptr == nullptr ? b * Y * Y : layout.pair_ptr[b];
    const int64_t n = layout.pair_ptr == nullptr ? Y * Y : layout.pair_ptr[b + 1] - first;
    for (int64_t i = 0; i < n; ++i) visit(layout.edge_offset + first + i, shape.edge_offset + first + i, i);
  } else if (layout.state_ptr == nullptr) {
    for (int64_t j = 0; j < Y; ++j) visit(unit * Y + j, unit * shape.YP + j, j);
  } else {
    const int64_t first = layout.state_ptr[unit], row = shape.hot_offset + shape.hot_row[unit] * int64_t{shape.YP};
    for (int64_t i = first; i < layout.state_ptr[unit + 1]; ++i) {
      const int64_t label = layout.state_labels[i];
      shape.hot_row[unit] >= 0 ? visit(i, row + label, label) : visit(i, i, i - first);
    }
  }
}

// Numbers in a row of scratch.
int64_t OnlinePeriods::room(int64_t unit) const {
  const OnlineShape& shape = weights_.shape;
  const LayoutView& layout = shape.layout;
  int64_t n = 0;
  if (unit < layout.n_attributes && (layout.state_ptr == nullptr || shape.hot_row[unit] >= 0)) return shape.YP;
  each_weight(unit, [&](int64_t, int64_t, int64_t) { ++n; });
  return (n + 7) / 8 * 8;
}

void OnlinePeriods::get_factors(double* out) {
  if (shared()) {
    std::copy(group_factors_.begin(), group_factors_.end(), out);
    return;
  }
  double* rows = factors_.rows.data();
  parallel_for(weights_.shape.n_threads, (n_units_ + kUnitsPerTask - 1) / kUnitsPerTask, [&](int64_t task, int) {
    for (int64_t i = task * kUnitsPerTask; i < std::min(n_units_, (task + 1) * kUnitsPerTask); ++i)
      if (const double r = units_[i].value; r >= 0.0)
        each_weight(i, [&](int64_t, int64_t stored, int64_t) { rows[stored] = r; });
  });
  weights_.shape.save(factors_, 1.0, out);
}

int64_t OnlinePeriods::n_touched() const {
  if (steps_.empty()) return 0;
  int64_t n = 0;
  for (const PeriodPart& part : parts_)
    for (int32_t i = 0; i < part.n; ++i) each_weight(part.entries[i].unit, [&](int64_t, int64_t, int64_t) { ++n; });
  for (const Table& table : tables_)
    n += std::count_if(table.plain.begin(), table.plain.end(), [](int64_t p) { return p >= 0; });
  return n;
}

void OnlinePeriods::get_touched(const Touched& out) const {
  if (steps_.empty()) return;
  const int64_t b = rule_.half, k = static_cast<int64_t>(steps_.size()), n = n_touched();
  int64_t to = 0;
  for (const PeriodPart& part : parts_)
    for (int32_t i = 0; i < part.n; ++i) {
      const PeriodEntry& entry = part.entries[i];
      const PeriodUnit& unit = units_[entry.unit];
      const double* kept = part.scratch + entry.at;
      const int64_t size = room(entry.unit);
      each_weight(entry.unit, [&](int64_t plain, int64_t stored, int64_t lane) {
        const double w = weights_.current.rows[stored];
        const double r = shared()            ? group_factors_[unit.last]
                         : unit.value >= 0.0 ? unit.value
                                             : -unit.value * factors_.rows[stored];
        out.weights[to] = plain;
        out.halves[to] = entry.halves;
        if (window()) {
          for (int64_t s = 0; s < b; ++s) out.steps[s * n + to] = s < k ? kept[(s + 1) * size + lane] : 0.0;
          out.products[to] = kept[(b + 1) * size + lane];
          out.squares[to] = kept[(b + 2) * size + lane];
        } else {
          out.start[to] = kept[lane];
          out.middle[to] = (entry.halves & 2) != 0 ? kept[size + lane] : k > b ? w / shrinkage(r, b, k) : 0.0;
        }
        ++to;
      });
    }
  for (const Table& table : tables_)
    for (int64_t i = 0; i < table.n; ++i) {
      if (table.plain[i] < 0) continue;
      out.weights[to] = table.plain[i];
      out.halves[to] = k > b ? 3 : 1;
      if (window()) {
        for (int64_t s = 0; s < b; ++s) out.steps[s * n + to] = s < k ? table.steps[s * table.n + i] : 0.0;
        out.products[to] = table.products[i];
        out.squares[to] = table.squares[i];
      } else {
        out.start[to] = table.start[i];
        out.middle[to] = k > b ? table.middle[i] : 0.0;
      }
      ++to;
    }
}

// The unit of a plain weight, -1 for transitions and boundary weights.
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

void OnlinePeriods::restore(const double* factors, const double* steps, int64_t n_steps, int64_t n, const Touched& in) {
  forget();
  if (shared()) {
    std::copy_n(factors, n_groups_, group_factors_.data());
  } else {
    // Units get factors of their own; those whose weights are alike are found below.
    factors_ = weights_.shape.zeros();
    weights_.shape.load(factors, factors_);
    show_factors();
    for (PeriodUnit& unit : units_) unit = {-1.0, static_cast<int32_t>(n_steps << 1), 0};
  }
  steps_.assign(steps, steps + n_steps);
  restart_moments();
  const int64_t b = rule_.half, rows = window() ? b + 3 : 2;
  const LayoutView& layout = weights_.shape.layout;
  std::vector<std::pair<int64_t, std::pair<Table*, int64_t>>> dense;  // plain places of the tables' entries, ascending
  for (Table& table : tables_)
    for (int64_t i = 0; i < table.n; ++i)
      if (table.plain[i] >= 0) dense.push_back({table.plain[i], {&table, i}});
  std::sort(dense.begin(), dense.end());
  for (int64_t from = 0; from < n; ++from) {
    const int64_t plain = in.weights[from], number = unit_of(plain);
    if (number < 0) {
      const auto found = std::lower_bound(dense.begin(), dense.end(), plain,
                                          [](const auto& entry, int64_t place) { return entry.first < place; });
      auto [table, i] = found->second;
      if (window()) {
        for (int64_t s = 0; s < b; ++s) table->steps[s * table->n + i] = in.steps[s * n + from];
        table->products[i] = in.products[from];
        table->squares[i] = in.squares[from];
      } else {
        table->start[i] = in.start[from];
        table->middle[i] = in.middle[from];
      }
      continue;
    }
    const int64_t halves = in.halves[from];
    if ((halves & 1) == 0) continue;
    const int64_t id = number < layout.n_attributes ? number : number - layout.n_attributes;
    const uint32_t p = part_of(static_cast<int32_t>(id), kPeriodParts);
    PeriodPart& part = parts_[p];
    Part& memory = memory_[p];
    PeriodUnit& unit = units_[number];
    const int64_t size = room(number);
    if (unit.slot >= part.n || memory.entries[unit.slot].unit != number) {
      unit.slot = part.n++;
      memory.entries.resize(static_cast<std::size_t>(part.n));
      memory.scratch.resize(static_cast<std::size_t>(part.used + rows * size));
      std::fill_n(memory.scratch.data() + part.used, rows * size, 0.0);
      memory.entries[unit.slot] = {static_cast<int32_t>(number), static_cast<int32_t>(halves), part.used, -1, {}};
      memory.entries[unit.slot].before.last = -1;
      part.used += rows * size;
      if (!shared()) unit.last = static_cast<int32_t>(n_steps << 1) | (halves == 1 ? 1 : 0);
    }
    double* kept = memory.scratch.data() + memory.entries[unit.slot].at;
    each_weight(number, [&](int64_t place, int64_t, int64_t lane) {
      if (place != plain) return;
      if (window()) {
        for (int64_t s = 0; s < b; ++s) kept[(s + 1) * size + lane] = in.steps[s * n + from];
        kept[(b + 1) * size + lane] = in.products[from];
        kept[(b + 2) * size + lane] = in.squares[from];
      } else {
        kept[lane] = in.start[from];
        kept[size + lane] = in.middle[from];
      }
    });
  }
  for (int p = 0; p < kPeriodParts; ++p) {
    parts_[p].entries = memory_[p].entries.data();
    parts_[p].scratch = memory_[p].scratch.data();
  }
  up_to_date_ = false;
  catch_up();
}

double OnlinePeriods::shrinkage(double r, int64_t from, int64_t to) const {
  double product = 1.0;
  for (int64_t s = from; s < to; ++s) product *= 1.0 - r * steps_[s];
  return product;
}

}  // namespace crfit
