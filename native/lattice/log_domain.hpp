// The same sums in the log domain, for sequences that would under- or overflow: any finite weights give finite, correct
// results. Rarely used, so simple rather than fast. Included by per-level files only.
#pragma once

#include <cmath>

#include "lattice/tables.hpp"

namespace {

// log sum_i exp(term(i)) over n terms; -inf when all are.
template <class Term>
inline double log_sum_exp(int n, Term term) {
  double top = -INFINITY;
  for (int i = 0; i < n; ++i) top = term(i) > top ? term(i) : top;
  if (!(top > -INFINITY)) return -INFINITY;
  double total = 0.0;
  for (int i = 0; i < n; ++i) total += std::exp(term(i) - top);
  return top + std::log(total);
}

// The same, and its derivative sum_i softmax(term)_i slope(i).
template <class Term, class Slope>
inline double log_sum_exp_with_derivative(int n, Term term, Slope slope, double& derivative) {
  double top = -INFINITY;
  for (int i = 0; i < n; ++i) top = term(i) > top ? term(i) : top;
  derivative = 0.0;
  if (!(top > -INFINITY)) return -INFINITY;
  double total = 0.0;
  for (int i = 0; i < n; ++i) {
    const double x = std::exp(term(i) - top);
    total += x;
    derivative += x * slope(i);
  }
  derivative /= total;
  return top + std::log(total);
}

// Uses scratch.U (node scores) and psi(t, i, j) from `pair`; writes log alpha to scratch.alpha and log beta to
// scratch.beta. Returns log Z.
template <class Pair>
inline double log_forward_backward(const crfit::Prepared& pre, crfit::Scratch& s, int64_t T, Pair pair) {
  const int Y = pre.Y, YP = pre.YP;
  for (int j = 0; j < Y; ++j) s.alpha[j] = s.U[j];
  for (int64_t t = 1; t < T; ++t) {
    const double* before = s.alpha + (t - 1) * YP;
    for (int j = 0; j < Y; ++j)
      s.alpha[t * YP + j] = s.U[t * YP + j] + log_sum_exp(Y, [&](int i) { return before[i] + pair(t, i, j); });
  }
  for (int j = 0; j < Y; ++j) s.beta[(T - 1) * YP + j] = 0.0;
  for (int64_t t = T - 1; t > 0; --t) {
    const double *u = s.U + t * YP, *after = s.beta + t * YP;
    for (int i = 0; i < Y; ++i)
      s.beta[(t - 1) * YP + i] = log_sum_exp(Y, [&](int j) { return pair(t, i, j) + u[j] + after[j]; });
  }
  const double* last = s.alpha + (T - 1) * YP;
  return log_sum_exp(Y, [&](int j) { return last[j]; });
}

}  // namespace
