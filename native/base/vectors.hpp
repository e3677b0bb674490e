// Operations on weight-sized vectors: threaded, fused, in fixed blocks so sums do not depend on the number of threads.
#pragma once

#include <cstdint>

namespace crfit {

struct Norms {
  double inf = 0.0;     // max |x_i|, NaN if there is one
  double square = 0.0;  // sum x_i^2
};

void scale_into(int n_threads, int64_t n, double a, const double* x, double* out);                // out = a x
void axpy(int n_threads, int64_t n, const double* w, double step, const double* d, double* out);  // out = w + step d
double dot(int n_threads, int64_t n, const double* a, const double* b);
double sum_abs(int n_threads, int64_t n, const double* x);
Norms norms(int n_threads, int64_t n, const double* x);

// Orthant-wise steps for l1, see crfit.vectors for the formulas.
int64_t pseudo_gradient(int n_threads, int64_t n, const double* w, const double* g, double l1, double* out);
Norms pseudo_gradient_norms(int n_threads, int64_t n, const double* w, const double* g, double l1);
double align(int n_threads, int64_t n, double* d, const double* v);
double project_orthant(int n_threads, int64_t n, const double* w, const double* d, double step, const double* v,
                       double* out);

// A step of conjugate gradients in two sweeps, see crfit.vectors. m: the metric, nullptr for the identity.
struct MetricProducts {
  double ss = 0.0, sd = 0.0, dd = 0.0;  // s.Ms, s.Md, d.Md
};
double cg_residual(int n_threads, int64_t n, double* res, double step, const double* product, const double* m);
MetricProducts cg_direction(int n_threads, int64_t n, double* s, double step, double* d, const double* res,
                            double factor, const double* m);

// Curvature pairs of L-BFGS, see weight_vectors.hpp. products [3][2 n_used]; scalars v.v, max|v|.
void pair_products(int n_threads, int64_t n, int n_used, int slot, float* s, float* y, const double* w_new,
                   const double* w_old, const double* g_new, const double* g_old, const double* v, double* products,
                   double* scalars);
// Returns v.d.
double combine_pairs(int n_threads, int64_t n, int n_used, const float* s, const float* y, const double* c_s,
                     const double* c_y, double c_v, const double* w, const double* v, double step, double* d,
                     double* w_out);

}  // namespace crfit
