#include "base/vectors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/dispatch.hpp"
#include "base/kernels.hpp"
#include "base/pool.hpp"

namespace crfit {

namespace {

constexpr int64_t kPart = 1 << 16;  // elements per task
constexpr int kSums = 4;            // independent partial sums within a task

template <class Body>
void for_parts(int n_threads, int64_t n, Body body) {
  parallel_for(n_threads, (n + kPart - 1) / kPart,
               [&](int64_t k, int) { body(k, k * kPart, std::min(n, (k + 1) * kPart)); });
}

// sum_i term(i), by parts and in order; term may also write element i.
template <class Term>
double sum_of(int n_threads, int64_t n, Term term) {
  std::vector<double> parts(static_cast<std::size_t>((n + kPart - 1) / kPart), 0.0);
  for_parts(n_threads, n, [&](int64_t k, int64_t begin, int64_t end) {
    double sums[kSums] = {};
    int64_t i = begin;
    for (; i + kSums <= end; i += kSums)
      for (int lane = 0; lane < kSums; ++lane) sums[lane] += term(i + lane);
    for (; i < end; ++i) sums[0] += term(i);
    parts[k] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  });
  double total = 0.0;
  for (const double part : parts) total += part;
  return total;
}

// The same for N sums at once: term(i, sums) adds to sums[0..N-1].
template <int N, class Term>
std::array<double, N> sums_of(int n_threads, int64_t n, Term term) {
  std::vector<std::array<double, N>> parts(static_cast<std::size_t>((n + kPart - 1) / kPart));
  for_parts(n_threads, n, [&](int64_t k, int64_t begin, int64_t end) {
    double sums[kSums][N] = {};
    int64_t i = begin;
    for (; i + kSums <= end; i += kSums)
      for (int lane = 0; lane < kSums; ++lane) term(i + lane, sums[lane]);
    for (; i < end; ++i) term(i, sums[0]);
    for (int j = 0; j < N; ++j) parts[k][j] = (sums[0][j] + sums[1][j]) + (sums[2][j] + sums[3][j]);
  });
  std::array<double, N> totals{};
  for (const auto& part : parts)
    for (int j = 0; j < N; ++j) totals[j] += part[j];
  return totals;
}

// max |x_i| and sum x_i^2 of x_i = element(i).
template <class Element>
Norms norms_of(int n_threads, int64_t n, Element element) {
  std::vector<Norms> parts(static_cast<std::size_t>((n + kPart - 1) / kPart));
  for_parts(n_threads, n, [&](int64_t k, int64_t begin, int64_t end) {
    double sums[kSums] = {}, tops[kSums] = {};
    int64_t i = begin;
    for (; i + kSums <= end; i += kSums)
      for (int lane = 0; lane < kSums; ++lane) {
        const double size = std::fabs(element(i + lane));
        sums[lane] += size * size;
        tops[lane] = size > tops[lane] ? size : tops[lane];
      }
    for (; i < end; ++i) {
      const double size = std::fabs(element(i));
      sums[0] += size * size;
      tops[0] = size > tops[0] ? size : tops[0];
    }
    parts[k].square = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    parts[k].inf = std::max(std::max(tops[0], tops[1]), std::max(tops[2], tops[3]));
  });
  Norms result;
  for (const Norms& part : parts) {
    result.square += part.square;
    result.inf = std::max(result.inf, part.inf);
  }
  if (std::isnan(result.square)) result.inf = result.square;  // comparisons drop a NaN, the sum keeps it
  return result;
}

// The point of [g - l1, g + l1] nearest to zero if w = 0, else the derivative of f + l1 |w|.
inline double pseudo(double w, double g, double l1) {
  if (w > 0.0) return g + l1;
  if (w < 0.0) return g - l1;
  return g > l1 ? g - l1 : g < -l1 ? g + l1 : 0.0 * g;
}

}  // namespace

void scale_into(int n_threads, int64_t n, double a, const double* x, double* out) {
  for_parts(n_threads, n, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = a * x[i];
  });
}

void axpy(int n_threads, int64_t n, const double* w, double step, const double* d, double* out) {
  for_parts(n_threads, n, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = w[i] + step * d[i];
  });
}

double dot(int n_threads, int64_t n, const double* a, const double* b) {
  return sum_of(n_threads, n, [=](int64_t i) { return a[i] * b[i]; });
}

double sum_abs(int n_threads, int64_t n, const double* x) {
  return sum_of(n_threads, n, [=](int64_t i) { return std::fabs(x[i]); });
}

Norms norms(int n_threads, int64_t n, const double* x) {
  return norms_of(n_threads, n, [=](int64_t i) { return x[i]; });
}

int64_t pseudo_gradient(int n_threads, int64_t n, const double* w, const double* g, double l1, double* out) {
  return static_cast<int64_t>(sum_of(n_threads, n, [=](int64_t i) {
    out[i] = pseudo(w[i], g[i], l1);
    return w[i] != 0.0 ? 1.0 : 0.0;
  }));
}

Norms pseudo_gradient_norms(int n_threads, int64_t n, const double* w, const double* g, double l1) {
  return norms_of(n_threads, n, [=](int64_t i) { return pseudo(w[i], g[i], l1); });
}

double align(int n_threads, int64_t n, double* d, const double* v) {
  return sum_of(n_threads, n, [=](int64_t i) {
    const double product = d[i] * v[i];
    if (!(product < 0.0)) d[i] = 0.0;
    return product < 0.0 ? product : 0.0;
  });
}

double project_orthant(int n_threads, int64_t n, const double* w, const double* d, double step, const double* v,
                       double* out) {
  return sum_of(n_threads, n, [=](int64_t i) {
    const double trial = w[i] + step * d[i];
    const double orthant = w[i] != 0.0 ? w[i] : -v[i];
    out[i] = (trial > 0.0 && orthant > 0.0) || (trial < 0.0 && orthant < 0.0) ? trial : 0.0;
    return v[i] * (out[i] - w[i]);
  });
}

double cg_residual(int n_threads, int64_t n, double* res, double step, const double* product, const double* m) {
  if (m == nullptr)
    return sum_of(n_threads, n, [=](int64_t i) {
      const double r = res[i] = res[i] - step * product[i];
      return r * r;
    });
  return sum_of(n_threads, n, [=](int64_t i) {
    const double r = res[i] = res[i] - step * product[i];
    return r * r / m[i];
  });
}

MetricProducts cg_direction(int n_threads, int64_t n, double* s, double step, double* d, const double* res,
                            double factor, const double* m) {
  const auto move = [=](int64_t i, double z, double m_i, double* sums) {
    const double s_new = s[i] = s[i] + step * d[i];
    const double d_new = d[i] = z + factor * d[i];
    sums[0] += m_i * s_new * s_new;
    sums[1] += m_i * s_new * d_new;
    sums[2] += m_i * d_new * d_new;
  };
  const std::array<double, 3> sums =
      m == nullptr ? sums_of<3>(n_threads, n, [=](int64_t i, double* sums) { move(i, res[i], 1.0, sums); })
                   : sums_of<3>(n_threads, n, [=](int64_t i, double* sums) { move(i, res[i] / m[i], m[i], sums); });
  return {sums[0], sums[1], sums[2]};
}

void pair_products(int n_threads, int64_t n, int n_used, int slot, float* s, float* y, const double* w_new,
                   const double* w_old, const double* g_new, const double* g_old, const double* v, double* products,
                   double* scalars) {
  const int64_t n_products = 6 * n_used, size = n_products + 2;
  std::vector<double> parts(static_cast<std::size_t>((n + kPart - 1) / kPart * size), 0.0);
  for_parts(n_threads, n, [&](int64_t k, int64_t begin, int64_t end) {
    double* part = parts.data() + k * size;
    at_level<VectorKernels>().pair_products(
        {begin, end, n, n_used, slot, s, y, w_new, w_old, g_new, g_old, v, part, part + n_products});
  });
  std::fill_n(products, n_products, 0.0);
  std::fill_n(scalars, 2, 0.0);
  for (std::size_t k = 0; k < parts.size(); k += static_cast<std::size_t>(size)) {
    const double* part = parts.data() + k;
    for (int64_t i = 0; i < n_products; ++i) products[i] += part[i];
    scalars[0] += part[n_products];
    scalars[1] = std::max(scalars[1], part[n_products + 1]);
  }
  if (std::isnan(scalars[0])) scalars[1] = scalars[0];
}

double combine_pairs(int n_threads, int64_t n, int n_used, const float* s, const float* y, const double* c_s,
                     const double* c_y, double c_v, const double* w, const double* v, double step, double* d,
                     double* w_out) {
  std::vector<double> slopes(static_cast<std::size_t>((n + kPart - 1) / kPart), 0.0);
  for_parts(n_threads, n, [&](int64_t k, int64_t begin, int64_t end) {
    at_level<VectorKernels>().combine({begin, end, n, n_used, s, y, c_s, c_y, c_v, w, v, step, d, w_out, &slopes[k]});
  });
  double slope = 0.0;
  for (const double part : slopes) slope += part;
  return slope;
}

}  // namespace crfit
