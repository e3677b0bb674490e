// Logistic regression row by row (binary.hpp). Included by per-level files only.
#pragma once

#include "base/vmath.hpp"
#include "batch/kernels.hpp"

namespace {

using crfit::BinaryJob;
using crfit::DataView;

constexpr int64_t kRows = 256;         // rows at a time: they are still in the cache when they are summed
constexpr int64_t kAheadWeights = 24;  // weights prefetched ahead if they do not fit into the cache
constexpr int64_t kCachedWeights = int64_t{1} << 16;

// log(1 + e) for 0 <= e <= 1, relative error about 2e-16: 2 artanh(t) with t = e / (2 + e) <= 1/3.
inline Vec vlog1p(Vec e) {
  static const double c[] = {1.0,        1.0 / 3.0,  1.0 / 5.0,  1.0 / 7.0,  1.0 / 9.0,  1.0 / 11.0,
                             1.0 / 13.0, 1.0 / 15.0, 1.0 / 17.0, 1.0 / 19.0, 1.0 / 21.0, 1.0 / 23.0,
                             1.0 / 25.0, 1.0 / 27.0, 1.0 / 29.0, 1.0 / 31.0, 1.0 / 33.0};
  const Vec t = e / (e + 2.0);
  return 2.0 * t * polynomial(t * t, c);
}

inline int64_t row_of(const BinaryJob& job, int64_t i) { return job.rows != nullptr ? job.rows[i] : i; }

// x.w of one row; kFar: prefetch weights, because they do not fit into the cache.
template <bool kValues, bool kFar>
inline double row_score(const BinaryJob& job, int64_t row) {
  const DataView& data = *job.data;
  const int64_t last = data.attr_ptr[row + 1], end = data.attr_ptr[data.n_positions];
  const int32_t* __restrict ids = data.attr_ids;
  const double* __restrict x = data.attr_values;
  const double* __restrict w = job.w;
  const auto term = [&](int64_t k) {
    if constexpr (kFar)
      if (k + kAheadWeights < end) __builtin_prefetch(w + ids[k + kAheadWeights]);
    return kValues ? x[k] * w[ids[k]] : w[ids[k]];
  };
  // Four sums hide the latency of additions; the order of terms is the same for any number of threads.
  double sums[4] = {};
  int64_t k = data.attr_ptr[row];
  for (; k + 4 <= last; k += 4)
    for (int lane = 0; lane < 4; ++lane) sums[lane] += term(k + lane);
  for (; k < last; ++k) sums[0] += term(k);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <bool kValues, bool kFar>
inline void scores_of_rows(const BinaryJob& job, int64_t begin, int64_t n, double* out) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = row_of(job, begin + i);
    out[i] = row_score<kValues, kFar>(job, row) + (job.offsets != nullptr ? job.offsets[row] : 0.0);
  }
}

inline void row_scores(const BinaryJob& job, int64_t begin, int64_t n, double* out) {
  const bool far = job.n_attributes > kCachedWeights;
  if (job.data->attr_values != nullptr)
    far ? scores_of_rows<true, true>(job, begin, n, out) : scores_of_rows<true, false>(job, begin, n, out);
  else
    far ? scores_of_rows<false, true>(job, begin, n, out) : scores_of_rows<false, false>(job, begin, n, out);
}

// sums += r_i x_i over n rows.
template <bool kValues>
inline void add_scaled_rows(const BinaryJob& job, int64_t begin, int64_t n, const double* r) {
  const DataView& data = *job.data;
  double* __restrict sums = job.sums;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = row_of(job, begin + i), last = data.attr_ptr[row + 1];
    const double factor = r[i];
    for (int64_t k = data.attr_ptr[row]; k < last; ++k)
      sums[data.attr_ids[k]] += kValues ? factor * data.attr_values[k] : factor;
  }
}

inline void add_weighted_rows(const BinaryJob& job, int64_t begin, int64_t n, const double* r) {
  if (job.data->attr_values != nullptr)
    add_scaled_rows<true>(job, begin, n, r);
  else
    add_scaled_rows<false>(job, begin, n, r);
}

// sums += r_i x_i^2 over n rows. A repeated attribute counts with the square of its sum.
inline void add_squared_rows(const BinaryJob& job, int64_t begin, int64_t n, const double* r) {
  const DataView& data = *job.data;
  const auto value = [&](int64_t k) { return data.attr_values == nullptr ? 1.0 : data.attr_values[k]; };
  for (int64_t i = 0; i < n; ++i) {
    const int64_t first = data.attr_ptr[begin + i], last = data.attr_ptr[begin + i + 1];
    for (int64_t k = first; k < last; ++k) {
      double before = 0.0;
      for (int64_t e = first; e < k && job.repeats; ++e)
        if (data.attr_ids[e] == data.attr_ids[k]) before += value(e);
      // (a + b)^2 = a^2 + b (b + 2 a), occurrence by occurrence
      job.sums[data.attr_ids[k]] += r[i] * value(k) * (value(k) + 2.0 * before);
    }
  }
}

// Probabilities and losses of a block of rows from their scores s.
struct Logistic {
  alignas(64) double s[kRows], y[kRows], c[kRows], p[kRows], left[kRows];  // left: 1 - p

  // Sets: y, c. The padding of the last vector has weight 0.
  void load(const BinaryJob& job, int64_t begin, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = row_of(job, begin + i);
      y[i] = static_cast<double>(job.data->labels[row]);
      c[i] = job.data->weights == nullptr ? 1.0 : job.data->weights[row];
    }
    for (int64_t i = n; i < padded(n); ++i) s[i] = y[i] = c[i] = 0.0;
  }
  static int64_t padded(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

  // Sets: p, left. Returns the loss.
  double solve(int64_t n) {
    Vec total = {};
    for (int64_t i = 0; i < n; i += kLanes) {
      const Vec score = ::load(s + i), label = ::load(y + i);
      const Vec e = vexp(-magnitude(score));  // exp(-|s|)
      // p and 1 - p, both to full relative precision: 1 - p by subtraction would be 0 from s = 37 on.
      const Vec large = 1.0 / (1.0 + e), small = e * large;
      store(p + i, score < Vec{} ? small : large);
      store(left + i, score < Vec{} ? large : small);
      const Vec wrong = score - 2.0 * label * score;  // s for label 0, -s for label 1
      // log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), x = s or -s
      total += ::load(c + i) * (vmax(wrong, Vec{}) + vlog1p(e));
    }
    return sum(total);
  }
};

void binary_loss(const BinaryJob& job) {
  Logistic block;
  for (int64_t begin = job.first; begin < job.last; begin += kRows) {
    const int64_t n = job.last - begin < kRows ? job.last - begin : kRows;
    row_scores(job, begin, n, block.s);
    block.load(job, begin, n);
    *job.loss += block.solve(n);
  }
}

void binary_gradient(const BinaryJob& job) {
  Logistic block;
  for (int64_t begin = job.first; begin < job.last; begin += kRows) {
    const int64_t n = job.last - begin < kRows ? job.last - begin : kRows;
    row_scores(job, begin, n, block.s);
    block.load(job, begin, n);
    *job.loss += block.solve(n);
    // p - 1 as -(1 - p): p rounds to 1 long before 1 - p is 0.
    double* r = block.s;
    for (int64_t i = 0; i < n; ++i) {
      if (job.curvature != nullptr) job.curvature[row_of(job, begin + i)] = block.c[i] * block.p[i] * block.left[i];
      r[i] = block.c[i] * (job.subtract_gold && block.y[i] != 0.0 ? -block.left[i] : block.p[i]);
    }
    add_weighted_rows(job, begin, n, r);
  }
}

// sums += d_i (x_i.w) x_i; w holds the direction.
void binary_product(const BinaryJob& job) {
  double r[kRows];
  for (int64_t begin = job.first; begin < job.last; begin += kRows) {
    const int64_t n = job.last - begin < kRows ? job.last - begin : kRows;
    row_scores(job, begin, n, r);
    for (int64_t i = 0; i < n; ++i) r[i] *= job.curvature[begin + i];
    add_weighted_rows(job, begin, n, r);
  }
}

// sums += d_i x_i^2.
void binary_squares(const BinaryJob& job) {
  for (int64_t begin = job.first; begin < job.last; begin += kRows) {
    const int64_t n = job.last - begin < kRows ? job.last - begin : kRows;
    add_squared_rows(job, begin, n, job.curvature + begin);
  }
}

void binary_scores(const BinaryJob& job) { row_scores(job, job.first, job.last - job.first, job.scores + job.first); }

void binary_along(const BinaryJob& job) {
  Logistic block;
  for (int64_t begin = job.first; begin < job.last; begin += kRows) {
    const int64_t n = job.last - begin < kRows ? job.last - begin : kRows;
    for (int64_t i = 0; i < n; ++i) block.s[i] = job.base[begin + i] + job.a * job.step[begin + i];
    block.load(job, begin, n);
    *job.loss += block.solve(n);
    double slope = 0.0;
    for (int64_t i = 0; i < n; ++i)
      slope += block.c[i] * (block.y[i] != 0.0 ? -block.left[i] : block.p[i]) * job.step[begin + i];
    *job.slope += slope;
  }
}

}  // namespace
