#include "unit_periods.hpp"

#include <algorithm>

#include "pool.hpp"

namespace crfit {

namespace {

constexpr double kTinyShare = 1e-4;      // for which four powers do
constexpr double kSmallShare = 0.006;    // for which the powers reach full precision
constexpr double kLargestScale = 1e4;    // alpha^-p of the last moment
constexpr int64_t kUnitsPerTask = 4096;  // brought up to date at a time

}  // namespace

UnitPeriods::UnitPeriods(const DataView& data, OnlineWeights& weights, const PeriodRule& rule)
    : OnlinePeriods(data, weights, rule), units_(static_cast<std::size_t>(n_units_)), factors_(weights.shape.zeros()) {
  forget();
}

void UnitPeriods::forget() {
  std::fill(units_.begin(), units_.end(), PeriodUnit{});
  tables_.set_factors(1.0);
  steps_.clear();
  for (PeriodPart& part : parts_) part.n = 0, part.used = 0;
  later_.assign(static_cast<std::size_t>(n_units_ / 64 + 1), 0);
  later_sequences_.clear();
  later_known_ = false;
  restart_moments();
}

// In the middle of a period what it began with is still right.
void UnitPeriods::look_ahead(const int64_t* sequences, int64_t n, int64_t batch) {
  if (!begins()) return;
  const int64_t half = rule_.half * batch;
  mark_later(false);
  later_known_ = 2 * half - batch < n;
  later_sequences_.clear();
  if (later_known_) later_sequences_.assign(sequences + half, sequences + std::min(n, 2 * half));
  mark_later(true);
}

// Sets the bits of the units that the sequences ahead touch, or clears them.
void UnitPeriods::mark_later(bool touched) {
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

// The list begins with the present period.
void UnitPeriods::restart_moments() {
  up_to_date_ = true;
  begin_ = 0;
  moments_.assign(1, {});
  moments_[0].end = 2 * rule_.half;
  shares_.clear();
  largest_share_ = 0.0;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    PeriodMoment next = moments_.back();
    double power = 1.0;
    for (int k = 0; k < kPeriodPowers; ++k) next.powers[k] += (power *= steps_[s]) / (k + 1);
    moments_.push_back(next);
    shares_.push_back(steps_[s]);
    largest_share_ = std::max(largest_share_, steps_[s]);
  }
}

PeriodJob UnitPeriods::job(PeriodJob::Task task) const {
  const OnlineShape& shape = weights_.shape;
  PeriodJob job;
  job.task = task;
  job.rule = &rule_;
  job.data = &data_;
  job.layout = &shape.layout;
  job.YP = shape.YP;
  job.to = shape.rows(weights_.current);
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
  job.scaled = valued();
  job.begin = begin_;
  job.middle = begin_ + rule_.half;
  job.now = static_cast<int64_t>(moments_.size()) - 1;
  job.first_alone = rule_.multiplier(0.0) / rule_.alpha;
  job.eta = eta_;
  job.share = share_;
  job.later = later_known_ ? later_.data() : nullptr;
  job.weights = &weights_.view;
  return job;
}

void UnitPeriods::begin_step(double eta, double share, const OnlineSlot* slots, int64_t n_slots, int n_parts) {
  OnlinePeriods::begin_step(eta, share, slots, n_slots, n_parts);
  make_room();
}

// As many entries as the step has occurrences could come, in each part.
void UnitPeriods::make_room() {
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

void UnitPeriods::prepare(int part) {
  PeriodJob task = job(PeriodJob::kPrepare);
  task.part = part;
  kernels().period(task);
}

void UnitPeriods::update(int part, int64_t next_sequence) {
  PeriodJob task = job(PeriodJob::kUpdate);
  task.part = part;
  task.next_sequence = next_sequence;
  kernels().period(task);
}

void UnitPeriods::end_step() {
  const double step = eta_ * share_;
  const PeriodMoment& last = moments_.back();
  const double x = step * last.falls;
  PeriodMoment next = last;
  double power = 1.0;
  for (int k = 0; k < kPeriodPowers; ++k) next.powers[k] += (power *= x) / (k + 1);
  steps_.push_back(step);
  up_to_date_ = false;
  if (over()) {
    next.scale /= rule_.alpha;
    next.falls *= rule_.alpha;
    next.end += 2 * rule_.half;
  }
  moments_.push_back(next);
  shares_.push_back(x);
  largest_share_ = std::max(largest_share_, step);
}

void UnitPeriods::end_part(int part) {
  PeriodJob task = job(PeriodJob::kEnd);
  task.part = part;
  kernels().period(task);
}

void UnitPeriods::end_period() {
  tables_.adapt();
  for (PeriodPart& part : parts_) part.n = 0, part.used = 0;
  steps_.clear();
  begin_ = static_cast<int64_t>(moments_.size()) - 1;
  if (moments_.back().scale > kLargestScale || begin_ > INT32_MAX / 4) catch_up();
}

void UnitPeriods::catch_up() {
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

void UnitPeriods::get_factors(double* out) {
  double* rows = factors_.rows.data();
  parallel_for(weights_.shape.n_threads, (n_units_ + kUnitsPerTask - 1) / kUnitsPerTask, [&](int64_t task, int) {
    for (int64_t i = task * kUnitsPerTask; i < std::min(n_units_, (task + 1) * kUnitsPerTask); ++i)
      if (const double r = units_[i].value; r >= 0.0)
        each_weight(i, [&](int64_t, int64_t stored, int64_t) { rows[stored] = r; });
  });
  tables_.save_factors(factors_);
  weights_.shape.save(factors_, 1.0, out);
}

int64_t UnitPeriods::n_touched_units() const {
  int64_t n = 0;
  for (const PeriodPart& part : parts_)
    for (int32_t i = 0; i < part.n; ++i) each_weight(part.entries[i].unit, [&](int64_t, int64_t, int64_t) { ++n; });
  return n;
}

int64_t UnitPeriods::get_touched_units(int64_t n, const TouchedWeights& out) const {
  const int64_t b = rule_.half, k = static_cast<int64_t>(steps_.size());
  int64_t to = 0;
  for (const PeriodPart& part : parts_)
    for (int32_t i = 0; i < part.n; ++i) {
      const PeriodEntry& entry = part.entries[i];
      const PeriodUnit& unit = units_[entry.unit];
      const double* kept = part.scratch + entry.at;
      const int64_t size = room(entry.unit);
      each_weight(entry.unit, [&](int64_t plain, int64_t stored, int64_t lane) {
        const double w = weights_.current.rows[stored];
        const double r = unit.value >= 0.0 ? unit.value : -unit.value * factors_.rows[stored];
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
  return to;
}

void UnitPeriods::restore(const double* factors, const double* steps, int64_t n_steps, int64_t n,
                          const TouchedWeights& in) {
  forget();
  // Units get factors of their own; those whose weights are alike are found below.
  factors_ = weights_.shape.zeros();
  weights_.shape.load(factors, factors_);
  tables_.load_factors(factors_);
  for (PeriodUnit& unit : units_) unit = {-1.0, static_cast<int32_t>(n_steps << 1), 0};
  steps_.assign(steps, steps + n_steps);
  restart_moments();
  const int64_t b = rule_.half, rows = window() ? b + 3 : 2;
  const LayoutView& layout = weights_.shape.layout;
  for (int64_t from = 0; from < n; ++from) {
    if (tables_.restore(from, n, in)) continue;
    const int64_t plain = in.weights[from], number = unit_of(plain);
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
      unit.last = static_cast<int32_t>(n_steps << 1) | (halves == 1 ? 1 : 0);
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

}  // namespace crfit
