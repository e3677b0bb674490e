// Where the weights of a unit lie, and how they shrink over steps that do not touch them; for periodic step sizes.
// Included by per-level files only.
#pragma once

#include "online_kernels.hpp"
#include "period_job.hpp"

namespace {

using crfit::PeriodJob;
using crfit::PeriodMoment;

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

}  // namespace
