// Periodic step sizes on the weights of attributes: bringing them up to date, steps, the end of a period.
// Included by per-level files only.
#pragma once

#include "online_kernels.hpp"
#include "period_job.hpp"

namespace {

using crfit::PeriodEntry;
using crfit::PeriodJob;
using crfit::PeriodMoment;
using crfit::PeriodPart;
using crfit::PeriodRule;
using crfit::PeriodUnit;

template <class T>
inline T take(const double* p) {
  if constexpr (sizeof(T) == sizeof(double))
    return *p;
  else
    return load(p);
}
inline void put(double* p, double x) { *p = x; }
inline void put(double* p, Vec x) { store(p, x); }

template <class T>
inline T all_of(double x) {
  if constexpr (sizeof(T) == sizeof(double))
    return x;
  else
    return splat(x);
}
template <class T>
inline T size_of(T x) {
  return x < all_of<T>(0.0) ? -x : x;
}
template <class T>
inline T limited(T x, double low, double high) {
  x = x < all_of<T>(low) ? all_of<T>(low) : x;
  return x > all_of<T>(high) ? all_of<T>(high) : x;
}

// Where the weights of a unit lie.
struct UnitPlace {
  int64_t at = 0, n = 0;
  bool dense = false;                // a row of YP, else n single weights
  const uint64_t* labels = nullptr;  // of a row, where not all of them have a weight
  bool has(int64_t j) const { return labels == nullptr || (labels[j / 64] >> j % 64 & 1) != 0; }
};

inline UnitPlace place_of(const PeriodJob& job, int64_t unit) {
  const LayoutView& layout = *job.layout;
  const OnlineRows& to = job.to;
  UnitPlace place;
  if (unit >= layout.n_attributes) {
    const int64_t b = unit - layout.n_attributes, pairs = static_cast<int64_t>(layout.n_labels) * layout.n_labels;
    const int64_t first = layout.pair_ptr == nullptr ? b * pairs : layout.pair_ptr[b];
    place.at = to.edge_offset + first;
    place.n = layout.pair_ptr == nullptr ? pairs : layout.pair_ptr[b + 1] - first;
  } else if (layout.state_ptr == nullptr) {
    place.at = unit * job.YP;
    place.n = layout.n_labels;
    place.dense = true;
  } else if (to.hot_row[unit] >= 0) {
    place.at = to.hot_offset + static_cast<int64_t>(to.hot_row[unit]) * job.YP;
    place.n = layout.n_labels;
    place.dense = true;
    place.labels = to.hot_labels + to.hot_row[unit] * to.label_words;
  } else {
    place.at = layout.state_ptr[unit];
    place.n = layout.state_ptr[unit + 1] - place.at;
  }
  return place;
}

// body<T>(j) for the numbers of a unit, a vector of a row or one at a time.
template <int P, class Body>
inline void each(Width<P> width, const UnitPlace& place, const Body& body) {
  if (place.dense)
    for (int64_t j = 0; j < width.yp(); j += kLanes) body.template operator()<Vec>(j);
  else
    for (int64_t j = 0; j < place.n; ++j) body.template operator()<double>(j);
}

inline int64_t room_of(const UnitPlace& place, int YP) { return place.dense ? YP : (place.n + 7) / 8 * 8; }

// Product of 1 - e x_s over the steps from one moment to another, or what undoes it if that one is earlier.
class Span {
 public:
  Span() = default;
  Span(const PeriodJob& job, int64_t from, int64_t to) : job_(&job), from_(from), to_(to) {
    if (!job.series) return;
    const PeriodMoment &a = job.moments[from], &b = job.moments[to];
    for (int k = 0; k < crfit::kPeriodPowers; ++k) powers_[k] = b.powers[k] - a.powers[k];
    const double most = powers_[0] * a.scale, size = most < 0.0 ? -most : most;
    reach_ = size < 4e-4 ? 0 : size < 0.02 ? 1 : 2;
  }
  template <class T>
  [[gnu::always_inline]] T factor(T e) const {
    if (!job_->series) return product(e);
    T x = all_of<T>(powers_[3]);
    if (!job_->tiny) x = powers_[3] + e * (powers_[4] + e * powers_[5]);
    x = e * (powers_[0] + e * (powers_[1] + e * (powers_[2] + e * x)));
    // exp(-x): as many terms as it takes.
    if (reach_ == 0) return 1.0 - x * (1.0 - x * (1.0 / 2 - x * (1.0 / 6 - x * (1.0 / 24))));
    if (reach_ == 1) {
      const T y = 1.0 / 120 - x * (1.0 / 720 - x * (1.0 / 5040 - x * (1.0 / 40320)));
      return 1.0 - x * (1.0 - x * (1.0 / 2 - x * (1.0 / 6 - x * (1.0 / 24 - x * y))));
    }
    if constexpr (sizeof(T) == sizeof(double))
      return vexp(splat(-x))[0];
    else
      return vexp(-x);
  }

 private:
  template <class T>
  [[gnu::noinline]] T product(T e) const {
    T f = all_of<T>(1.0);
    for (int64_t s = from_ < to_ ? from_ : to_; s < (from_ < to_ ? to_ : from_); ++s) f *= 1.0 - e * job_->shares[s];
    return from_ < to_ ? f : 1.0 / f;
  }
  const PeriodJob* job_ = nullptr;
  int64_t from_ = 0, to_ = 0;
  double powers_[crfit::kPeriodPowers] = {};
  int reach_ = 2;
};

// The multiplier of a rate by u: the line from beta at -kappa to alpha at kappa.
template <class T>
inline T multiplier(const PeriodRule& rule, T u) {
  return 0.5 * (rule.alpha + rule.beta) + 0.5 * (rule.alpha - rule.beta) / rule.kappa * u;
}

// How a unit gets from where it is to another moment: later, over steps that did not touch it, or earlier in the same
// period.
struct Way {
  [[gnu::always_inline]] Way(const PeriodJob& job, const PeriodUnit& unit, int64_t to) {
    const int64_t from = unit.last >> 1;
    const PeriodMoment& start = job.moments[from];
    scale = start.scale;
    over = (unit.last & 1) != 0 && start.end <= to;
    span = Span(job, from, over ? start.end : to);
    if (over) rest = Span(job, start.end, to);
    change = over ? job.first_alone : 1.0;
  }
  // The factor of a weight with the factor r of its rate.
  template <class T>
  [[gnu::always_inline]] T factor(T r) const {
    const T e = r * scale;
    // After a period that touched it in the first half alone the multiplier is that of u = 0.
    return over ? span.factor(e) * rest.factor<T>(e * change) : span.factor(e);
  }
  double fall(const PeriodJob& job, int64_t to) const { return scale * job.moments[to].falls * change; }
  Span span, rest;
  bool over;
  double scale, change;
};

// out = the weights of a unit at another moment.
template <int P>
inline void move(Width<P> width, const PeriodJob& job, const PeriodUnit& unit, const UnitPlace& place, const Way& way,
                 const double* row, double* out) {
  if (unit.value >= 0.0) {
    const double f = way.factor(unit.value);
    each(width, place, [&]<class T>(int64_t j) { put(out + j, f * take<T>(row + j)); });
  } else {
    const double r = -unit.value, *own = job.factors + place.at;
    each(width, place,
         [&]<class T>(int64_t j) { put(out + j, way.factor<T>(r * take<T>(own + j)) * take<T>(row + j)); });
  }
}

// Brings a unit up to a later moment.
template <int P>
inline void catch_up(Width<P> width, const PeriodJob& job, PeriodUnit& unit, const UnitPlace& place, int64_t to) {
  if (unit.last >> 1 == to) return;
  const Way way(job, unit, to);
  double* row = job.to.rows + place.at;
  move(width, job, unit, place, way, row, row);
  unit.value *= way.fall(job, to);
  unit.last = static_cast<int32_t>(to << 1) | (way.over ? 0 : unit.last & 1);
}

// kComponent: makes the weights that were kept those at the begin of the period.
template <int P>
inline void settle(Width<P> width, const PeriodJob& job, PeriodEntry& entry, const UnitPlace& place, double* kept) {
  if (entry.before.last < 0) return;
  move(width, job, entry.before, place, Way(job, entry.before, job.begin), kept, kept);
  entry.before.last = -1;
}

// kWindow: the same within a period for a unit that has an entry, with its changes written down.
template <int P>
inline void follow(Width<P> width, const PeriodJob& job, PeriodUnit& unit, const UnitPlace& place, PeriodEntry& entry,
                   double* scratch, int64_t to) {
  const int64_t room = room_of(place, job.YP), b = job.rule->half;
  double *row = job.to.rows + place.at, *own = job.factors + place.at, *before = scratch + entry.at;
  double *first = before + room, *products = first + b * room, *squares = products + room;
  const double scale = job.moments[job.begin].scale;
  for (int64_t s = unit.last >> 1; s < to; ++s) {
    const int64_t k = s - job.begin;
    each(width, place, [&]<class T>(int64_t j) {
      const T e = (unit.value >= 0.0 ? all_of<T>(unit.value) : -unit.value * take<T>(own + j)) * scale;
      const T w = take<T>(row + j), after = (1.0 - e * job.shares[s]) * w;
      const T d = after - (s == entry.pending ? take<T>(before + j) : w);
      put(row + j, after);
      if (k < b) {
        put(first + k * room + j, d);
      } else {
        put(products + j, take<T>(products + j) + d * take<T>(first + (k - b) * room + j));
        put(squares + j, take<T>(squares + j) + d * d);
      }
    });
  }
  entry.pending = -1;
  unit.last = static_cast<int32_t>(to << 1) | (unit.last & 1);
}

inline PeriodEntry* entry_of(PeriodPart& part, const PeriodUnit& unit, int64_t number) {
  if (unit.slot >= part.n || part.entries[unit.slot].unit != number) return nullptr;
  return part.entries + unit.slot;
}

inline PeriodEntry& new_entry(PeriodPart& part, PeriodUnit& unit, int64_t number, int64_t room) {
  unit.slot = part.n;
  PeriodEntry& entry = part.entries[part.n++];
  entry = {static_cast<int32_t>(number), 0, part.used, -1, unit};
  part.used += room;
  return entry;
}

// Whether a unit that the first half touches may be touched by the second.
inline bool comes_again(const PeriodJob& job, int64_t unit) {
  return job.later == nullptr || (job.later[unit / 64] >> unit % 64 & 1) != 0;
}

// Before a step that touches a unit whose weights share a factor with others. Returns what the row is to be multiplied
// by, which the step does.
template <int P>
inline double prepare_shared(Width<P> width, const PeriodJob& job, PeriodPart& part, int64_t number) {
  PeriodUnit& unit = job.units[number];
  const int group = unit.last;
  const bool second = job.now >= job.middle;
  PeriodEntry* entry = entry_of(part, unit, number);
  if (second ? entry != nullptr && (entry->halves & 2) == 0 : entry == nullptr && comes_again(job, number)) {
    const UnitPlace place = place_of(job, number);
    const int64_t room = room_of(place, job.YP);
    if (entry == nullptr) entry = &new_entry(part, unit, number, 2 * room);
    entry->halves |= second ? 2 : 1;
    double* kept = part.scratch + entry->at + (second ? room : 0);
    const double* row = job.to.rows + place.at;
    const double f = (second ? job.Z_middle[group] : job.Z_begin[group]) * unit.value;
    each(width, place, [&]<class T>(int64_t j) { put(kept + j, f * take<T>(row + j)); });
  }
  return unit.value == job.Z_inverse[group] ? 1.0 : job.Z[group] * unit.value;
}

// kWindow: every change is written down, so that the unit is brought up to date here.
template <int P>
inline void prepare_window(Width<P> width, const PeriodJob& job, PeriodPart& part, int64_t number) {
  PeriodUnit& unit = job.units[number];
  const bool second = job.now >= job.middle;
  const UnitPlace place = place_of(job, number);
  const int64_t room = room_of(place, job.YP), b = job.rule->half;
  double* row = job.to.rows + place.at;
  PeriodEntry* entry = entry_of(part, unit, number);
  if (entry == nullptr) {
    if (second || !comes_again(job, number)) {
      catch_up(width, job, unit, place, job.now);
      unit.last |= second ? 0 : 1;
      return;
    }
    const Way way(job, unit, job.begin);
    move(width, job, unit, place, way, row, row);
    if (unit.last >> 1 < job.begin) unit.value *= way.fall(job, job.begin);
    entry = &new_entry(part, unit, number, (b + 3) * room);
    entry->halves = 1;
    double* sums = part.scratch + entry->at + (b + 1) * room;
    for (int64_t j = 0; j < 2 * room; ++j) sums[j] = 0.0;
    unit.last = static_cast<int32_t>(job.begin << 1) | 1;
  }
  if (entry->pending == job.now) return;
  follow(width, job, unit, place, *entry, part.scratch, job.now);
  each(width, place, [&]<class T>(int64_t j) { put(part.scratch + entry->at + j, take<T>(row + j)); });
  entry->pending = static_cast<int32_t>(job.now);
  if (!second) return;
  entry->halves |= 2;
  unit.last &= ~1;
}

// Before a step that touches the unit: what has to be remembered is, and the row is brought up to date, or the number
// returned that it is to be multiplied by.
template <int P>
inline double prepare_unit(Width<P> width, const PeriodJob& job, int64_t number) {
  const int64_t id = number < job.layout->n_attributes ? number : number - job.layout->n_attributes;
  PeriodPart& part = job.parts[part_of(static_cast<int32_t>(id), crfit::kPeriodParts)];
  PeriodUnit& unit = job.units[number];
  const bool scaled = job.scaled && number < job.layout->n_attributes;
  if (job.rule->scope == PeriodRule::kShared) {
    const double f = prepare_shared(width, job, part, number);
    if (scaled || f == 1.0) return f;
    const UnitPlace place = place_of(job, number);
    double* row = job.to.rows + place.at;
    each(width, place, [&]<class T>(int64_t j) { put(row + j, f * take<T>(row + j)); });
    unit.value = job.Z_inverse[unit.last];
    return 1.0;
  }
  if (job.rule->scope == PeriodRule::kWindow) {
    prepare_window(width, job, part, number);
    return 1.0;
  }
  const bool second = job.now >= job.middle;
  const int32_t done = static_cast<int32_t>(job.now << 1) | (second ? 0 : 1);
  if (unit.last == done) return 1.0;
  const UnitPlace place = place_of(job, number);
  PeriodEntry* entry = entry_of(part, unit, number);
  double* row = job.to.rows + place.at;
  if (!second && entry == nullptr && comes_again(job, number)) {
    entry = &new_entry(part, unit, number, 2 * room_of(place, job.YP));
    entry->halves = 1;
    double* kept = part.scratch + entry->at;
    each(width, place, [&]<class T>(int64_t j) { put(kept + j, take<T>(row + j)); });
  } else if (second && entry != nullptr && (entry->halves & 2) == 0) {
    entry->halves |= 2;
    double* kept = part.scratch + entry->at + room_of(place, job.YP);
    move(width, job, unit, place, Way(job, unit, job.middle), row, kept);
  }
  const Way way(job, unit, job.now);
  if (scaled && unit.value >= 0.0) return way.factor(unit.value);
  move(width, job, unit, place, way, row, row);
  unit.value *= way.fall(job, job.now);
  unit.last = done;
  return 1.0;
}

// eta / (1 - y), y = eta share.
template <class T>
inline T gain(const PeriodJob& job, T eta) {
  const T y = eta * job.share;
  if (job.tiny) return eta * (1.0 + y * (1.0 + y * (1.0 + y)));
  return eta / (1.0 - y);
}

// row <- f row + x gain residual; what the penalty takes from the old weights is taken later, from the sum.
template <int P>
inline void step_row(Width<P> width, const PeriodJob& job, PeriodUnit& unit, const UnitPlace& place, double f, double x,
                     const double* residual) {
  double* row = job.to.rows + place.at;
  const bool shared = job.rule->scope == PeriodRule::kShared;
  if (shared || unit.value >= 0.0) {
    if (shared) {
      x *= job.gains[unit.last];
      if (job.scaled && unit.value == job.Z_inverse[unit.last]) f = 1.0;  // it was multiplied already
      if (job.scaled) unit.value = job.Z_inverse[unit.last];
    } else {
      const int32_t done = static_cast<int32_t>(job.now << 1) | (job.now >= job.middle ? 0 : 1);
      if (job.scaled && unit.last != done) {
        const PeriodMoment& start = job.moments[unit.last >> 1];
        const bool over = (unit.last & 1) != 0 && start.end <= job.now;
        unit.value *= start.scale * job.moments[job.now].falls * (over ? job.first_alone : 1.0);
        unit.last = done;
      } else {
        f = 1.0;
      }
      x *= gain(job, job.eta * unit.value);
    }
    if (f == 1.0) return add_row(width, x, residual, place.labels, row);
    for (int j = 0; j < width.yp(); j += kLanes) store(row + j, f * load(row + j) + x * load(residual + j));
    return;
  }
  const double* own = job.factors + place.at;  // 0 where there is no weight
  const double eta = -unit.value * job.eta;
  for (int j = 0; j < width.yp(); j += kLanes)
    store(row + j, load(row + j) + x * gain<Vec>(job, eta * load(own + j)) * load(residual + j));
}

inline double gain_of(const PeriodJob& job, const PeriodUnit& unit, int64_t at) {
  if (job.rule->scope == PeriodRule::kShared) return job.gains[unit.last];
  return gain(job, job.eta * (unit.value >= 0.0 ? unit.value : -unit.value * job.factors[at]));
}

template <int P>
inline void step_occurrence(Width<P> width, const PeriodJob& job, const OnlineSlot& slot, int64_t t, int64_t first,
                            int64_t occurrence) {
  const DataView& data = *job.data;
  const LayoutView& layout = *job.layout;
  const int64_t a = data.attr_ids[occurrence];
  if (a >= layout.n_attributes) return;
  const double x = data.attr_values == nullptr ? 1.0 : data.attr_values[occurrence];
  const double* residual = slot.residual + t * width.yp();
  const UnitPlace place = place_of(job, a);
  if (place.dense)
    return step_row(width, job, job.units[a], place, job.scaled ? slot.scales[occurrence - first] : 1.0, x, residual);
  for (int64_t i = place.at; i < place.at + place.n; ++i)
    job.to.rows[i] += gain_of(job, job.units[a], i) * x * residual[layout.state_labels[i]];
}

// Calls body(t, occurrence) for the attributes of a slot that belong to the task's part.
template <class Body>
inline void each_occurrence(const PeriodJob& job, const OnlineSlot& slot, const Body& body) {
  const DataView& data = *job.data;
  const int64_t begin = data.seq_ptr[slot.sequence], end = data.seq_ptr[slot.sequence + 1];
  const int64_t first = data.attr_ptr[begin];
  if (job.n_parts == 0) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t k = data.attr_ptr[t]; k < data.attr_ptr[t + 1]; ++k) body(t - begin, k);
    return;
  }
  const OnlineSlot::Place* touch = slot.touched + job.part * (data.attr_ptr[end] - first);
  for (int32_t i = 0; i < slot.n_touched[job.part]; ++i) body(touch[i].t, first + touch[i].occurrence);
}

// Calls body(t, b) for its edge attributes that do.
template <class Body>
inline void each_edge(const PeriodJob& job, const OnlineSlot& slot, const Body& body) {
  const DataView& data = *job.data;
  if (slot.pair_residual == nullptr) return;
  const int64_t begin = data.seq_ptr[slot.sequence], end = data.seq_ptr[slot.sequence + 1];
  for (int64_t t = begin + 1; t < end; ++t)
    for (int64_t k = data.edge_ptr[t]; k < data.edge_ptr[t + 1]; ++k) {
      const int32_t b = data.edge_ids[k];
      if (b >= job.layout->n_edge_attributes) continue;
      if (job.n_parts > 0 && part_of(b, job.n_parts) != static_cast<uint32_t>(job.part)) continue;
      body(t - begin, b);
    }
}

// Asks for what prepare_unit looks at.
template <int P>
inline void ask_for_unit(Width<P> width, const PeriodJob& job, int64_t a) {
  const UnitPlace place = place_of(job, a);
  if (!place.dense) return;
  prefetch_row(job.to.rows + place.at, width.yp());
  if (job.rule->scope != PeriodRule::kShared && job.units[a].value < 0.0)
    prefetch_row(job.factors + place.at, width.yp());
}

template <int P>
void prepare_step(Width<P> width, const PeriodJob& job) {
  constexpr int64_t kUnitsAhead = 16, kRowsAhead = 6;
  const LayoutView& layout = *job.layout;
  const DataView& data = *job.data;
  const auto mine = [&](int64_t a) {
    return a < layout.n_attributes &&
           (job.n_parts == 0 || part_of(static_cast<int32_t>(a), job.n_parts) == static_cast<uint32_t>(job.part));
  };
  for (int64_t n = 0; n < job.n_slots; ++n) {
    const OnlineSlot& slot = job.slots[n];
    const int64_t begin = data.seq_ptr[slot.sequence], end = data.seq_ptr[slot.sequence + 1];
    const int64_t first = data.attr_ptr[begin], last = data.attr_ptr[end];
    for (int64_t k = first; k < last; ++k) {
      if (k + kUnitsAhead < last) {
        if (const int64_t a = data.attr_ids[k + kUnitsAhead]; mine(a)) __builtin_prefetch(job.units + a);
        if (const int64_t a = data.attr_ids[k + kRowsAhead]; mine(a)) ask_for_unit(width, job, a);
      }
      const int64_t a = data.attr_ids[k];
      if (!mine(a)) continue;
      const double f = prepare_unit(width, job, a);
      if (job.scaled) slot.scales[k - first] = f;
    }
    each_edge(job, slot, [&](int64_t, int32_t b) { prepare_unit(width, job, layout.n_attributes + b); });
  }
}

template <int P>
void update_step(Width<P> width, const PeriodJob& job) {
  const LayoutView& layout = *job.layout;
  const int64_t Y = layout.n_labels, pair_size = Y * job.YP;
  RowsAhead<P> ahead(*job.data, *job.weights, job.next_sequence);
  for (int64_t n = 0; n < job.n_slots; ++n) {
    const OnlineSlot& slot = job.slots[n];
    const int64_t first = job.data->attr_ptr[job.data->seq_ptr[slot.sequence]];
    each_occurrence(job, slot, [&](int64_t t, int64_t k) {
      ahead.ask();
      step_occurrence(width, job, slot, t, first, k);
    });
    each_edge(job, slot, [&](int64_t t, int32_t b) {
      const int64_t number = layout.n_attributes + b;
      const UnitPlace place = place_of(job, number);
      const int64_t first = place.at - job.to.edge_offset;
      const double* pairs = slot.pair_residual + t * pair_size;
      for (int64_t i = 0; i < place.n; ++i) {
        const int64_t code = layout.pair_ptr == nullptr ? i : layout.pair_codes[first + i];
        job.to.rows[place.at + i] +=
            gain_of(job, job.units[number], place.at + i) * pairs[crfit::padded_pair(code, Y, job.YP)];
      }
    });
  }
  ahead.ask_for_rest();
}

template <class T>
inline T estimate_of_squares(const PeriodRule& rule, T s11, T s12, T s22, T square) {
  const T zero = all_of<T>(0.0), one = all_of<T>(1.0), kappa = all_of<T>(rule.kappa);
  const T nothing_below = crfit::kTinyChange * crfit::kTinyChange * (square > one ? square : one);
  const T divisor = s11 < nothing_below ? one : s11;
  T u;
  if (rule.gamma == 1) {
    u = limited<T>(s12 / divisor, -rule.kappa, rule.kappa);
  } else if (rule.gamma == 2) {
    T ratio = limited<T>(s22 / divisor, 0.0, rule.kappa * rule.kappa);
    if constexpr (sizeof(T) == sizeof(double))
      u = std::sqrt(ratio);
    else
      u = root(ratio);
  } else {
    const T safe = s12 > zero ? s12 : one;
    u = s12 > zero ? limited<T>(s22 / safe, -rule.kappa, rule.kappa) : -kappa;
  }
  return s11 < nothing_below ? kappa : u;
}

template <class T>
inline T estimate_of_ratio(const PeriodRule& rule, T start, T middle, T w) {
  const T one = all_of<T>(1.0), d1 = middle - start, d2 = w - middle, large = size_of(w);
  const T nothing_below = crfit::kTinyChange * (large > one ? large : one);
  const T divisor = size_of(d1) < nothing_below ? one : d1;
  T u = limited<T>(d2 / divisor, -rule.kappa, rule.kappa);
  if (rule.gamma == 2) u = size_of(u);
  return size_of(d1) < nothing_below ? all_of<T>(rule.kappa) : u;
}

// Gives each weight of a unit a factor of its own.
inline void split(const PeriodJob& job, PeriodUnit& unit, const UnitPlace& place) {
  if (unit.value < 0.0) return;
  double* own = job.factors + place.at;
  const int64_t n = place.dense ? job.YP : place.n;
  for (int64_t j = 0; j < n; ++j) own[j] = j < place.n && place.has(j) ? unit.value : 0.0;
  unit.value = -1.0;
}

template <int P>
void end_period(Width<P> width, const PeriodJob& job) {
  const PeriodRule& rule = *job.rule;
  PeriodPart& part = job.parts[job.part];
  for (int32_t i = 0; i < part.n; ++i) {
    PeriodEntry& entry = part.entries[i];
    PeriodUnit& unit = job.units[entry.unit];
    const UnitPlace place = place_of(job, entry.unit);
    const int64_t room = room_of(place, job.YP), b = rule.half;
    double *row = job.to.rows + place.at, *scratch = part.scratch + entry.at;
    if (entry.halves != 3) continue;
    if (rule.scope == PeriodRule::kShared) {
      const int group = unit.last;
      const double f = job.Z[group] * unit.value;
      Vec sums[4] = {};
      double singles[4] = {};
      each(width, place, [&]<class T>(int64_t j) {
        const T w = f * take<T>(row + j), middle = take<T>(scratch + room + j), start = take<T>(scratch + j);
        const T d1 = middle - start, d2 = w - middle;
        if constexpr (sizeof(T) == sizeof(double)) {
          singles[0] += d1 * d1, singles[1] += d1 * d2, singles[2] += d2 * d2, singles[3] += w * w;
        } else {
          sums[0] += d1 * d1, sums[1] += d1 * d2, sums[2] += d2 * d2, sums[3] += w * w;
        }
      });
      for (int k = 0; k < 4; ++k) part.sums[group * 4 + k] += place.dense ? sum(sums[k]) : singles[k];
      continue;
    }
    split(job, unit, place);
    double* own = job.factors + place.at;
    if (rule.scope == PeriodRule::kWindow) {
      follow(width, job, unit, place, entry, part.scratch, job.now);
      const double *first = scratch + room, *products = first + b * room, *squares = products + room;
      each(width, place, [&]<class T>(int64_t j) {
        const T w = take<T>(row + j);
        T s11 = all_of<T>(0.0);
        for (int64_t k = 0; k < b; ++k) s11 += take<T>(first + k * room + j) * take<T>(first + k * room + j);
        const T u = estimate_of_squares<T>(rule, s11, take<T>(products + j), take<T>(squares + j), w * w);
        put(own + j, multiplier(rule, u) * (-unit.value * take<T>(own + j)));
      });
    } else {
      settle(width, job, entry, place, scratch);
      const int64_t from = unit.last >> 1;
      const Span span(job, from, job.now);
      const double scale = job.moments[from].scale, common = -unit.value;
      each(width, place, [&]<class T>(int64_t j) {
        const T r = common * take<T>(own + j);
        const T w = span.factor<T>(r * scale) * take<T>(row + j);
        const T u = estimate_of_ratio<T>(rule, take<T>(scratch + j), take<T>(scratch + room + j), w);
        put(row + j, w);
        put(own + j, multiplier(rule, u) * r);
      });
    }
    unit.value = -1.0;
    unit.last = static_cast<int32_t>(job.now << 1);
  }
}

// Brings units up to date; factors that are all alike become one.
template <int P>
void catch_up_units(Width<P> width, const PeriodJob& job) {
  for (int64_t number = job.first_unit; number < job.last_unit; ++number) {
    PeriodUnit& unit = job.units[number];
    const UnitPlace place = place_of(job, number);
    if (job.rule->scope == PeriodRule::kShared) {
      const double f = job.Z[unit.last] * unit.value;
      double* row = job.to.rows + place.at;
      if (f != 1.0) each(width, place, [&]<class T>(int64_t j) { put(row + j, f * take<T>(row + j)); });
      unit.value = 1.0;
      continue;
    }
    const int64_t id = number < job.layout->n_attributes ? number : number - job.layout->n_attributes;
    PeriodPart& part = job.parts[part_of(static_cast<int32_t>(id), crfit::kPeriodParts)];
    PeriodEntry* entry = entry_of(part, unit, number);
    const bool window = job.rule->scope == PeriodRule::kWindow;
    if (entry != nullptr && !window) settle(width, job, *entry, place, part.scratch + entry->at);
    if (entry != nullptr && window)
      follow(width, job, unit, place, *entry, part.scratch, job.now);
    else
      catch_up(width, job, unit, place, job.now);
    unit.last = static_cast<int32_t>(job.now_is << 1) | (unit.last & 1);
    if (unit.value >= 0.0) continue;
    double *own = job.factors + place.at, one = -1.0;
    bool alike = true;
    for (int64_t j = 0; j < place.n; ++j) {
      if (!place.has(j)) continue;
      own[j] *= -unit.value;
      if (one < 0.0) one = own[j];
      alike = alike && own[j] == one;
    }
    unit.value = !alike ? -1.0 : one < 0.0 ? 1.0 : one;
  }
}

template <int P>
void period_tasks(const PeriodJob& job) {
  const Width<P> width(job.YP);
  switch (job.task) {
    case PeriodJob::kPrepare: return prepare_step(width, job);
    case PeriodJob::kUpdate: return update_step(width, job);
    case PeriodJob::kEnd: return end_period(width, job);
    default: return catch_up_units(width, job);
  }
}

}  // namespace
