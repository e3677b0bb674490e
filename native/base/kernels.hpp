// Vector operations of quasi-Newton trainers on weight-sized vectors, compiled once per CPU level; the formulas are in
// vectors.hpp.
#pragma once

#include <cstdint>

namespace crfit {

// Operations on elements [begin, end) of weight-sized vectors. Curvature pairs are float32 rows of length n; the first
// n_used rows are in use.
struct PairProductsJob {
  int64_t begin = 0, end = 0, n = 0;
  int n_used = 0;
  int slot = 0;                      // rows s[slot] = w_new - w_old and y[slot] = g_new - g_old are written
  float *s = nullptr, *y = nullptr;  // [n_used][n]
  const double *w_new = nullptr, *w_old = nullptr, *g_new = nullptr, *g_old = nullptr, *v = nullptr;
  double* products = nullptr;  // [3][2 n_used] += new s, new y, v times every s row, then every y row
  double* scalars = nullptr;   // v.v, max|v|
};

struct CombineJob {
  int64_t begin = 0, end = 0, n = 0;
  int n_used = 0;
  const float *s = nullptr, *y = nullptr;
  const double *c_s = nullptr, *c_y = nullptr;  // [n_used]
  double c_v = 0.0;
  const double *w = nullptr, *v = nullptr;
  double step = 1.0;
  double *d = nullptr, *w_out = nullptr;  // d = sum c_i b_i + c_v v; w_out = w + step d (null: not wanted)
  double* slope = nullptr;                // += v.d
};

struct VectorKernels {
  static const VectorKernels v2, v3, v4;
  void (*pair_products)(const PairProductsJob&);
  void (*combine)(const CombineJob&);
};

}  // namespace crfit
