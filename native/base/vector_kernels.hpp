// Vector operations of quasi-Newton trainers, each in one pass over memory. With millions of weights memory traffic
// dominates: curvature pairs are stored as float32, every stored vector is read once per pass, and all inner products
// of a pass are computed while a block is in the first-level cache.
// Included by per-level files only.
#pragma once

#include <cmath>

#include "base/kernels.hpp"
#include "base/vmath.hpp"

namespace {

using crfit::CombineJob;
using crfit::PairProductsJob;

constexpr int64_t kBlockSize = 1024;  // elements: three blocks of doubles stay in the first-level cache

// products[0..2] += x times s, y, v over a block.
inline void three_products(const float* x, const double* s, const double* y, const double* v, int64_t n,
                           double* products, int64_t stride) {
  Vec xs[2] = {}, xy[2] = {}, xv[2] = {};
  double ts = 0.0, ty = 0.0, tv = 0.0;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    __builtin_prefetch(x + i + kBlockSize);  // the row's next block: too many rows for the hardware prefetcher
    for (int k = 0; k < 2; ++k) {
      const Vec xi = load(x + i + k * kLanes);
      xs[k] += xi * load(s + i + k * kLanes);
      xy[k] += xi * load(y + i + k * kLanes);
      xv[k] += xi * load(v + i + k * kLanes);
    }
  }
  for (; i < n; ++i) {
    ts += x[i] * s[i];
    ty += x[i] * y[i];
    tv += x[i] * v[i];
  }
  products[0] += ts + sum(xs[0] + xs[1]);
  products[stride] += ty + sum(xy[0] + xy[1]);
  products[2 * stride] += tv + sum(xv[0] + xv[1]);
}

void pair_products(const PairProductsJob& job) {
  alignas(64) double s[kBlockSize], y[kBlockSize];
  const int64_t stride = 2 * job.n_used;
  double v_squared = 0.0, v_largest = 0.0;
  for (int64_t b = job.begin; b < job.end; b += kBlockSize) {
    const int64_t n = job.end - b < kBlockSize ? job.end - b : kBlockSize;
    const double *w_new = job.w_new + b, *w_old = job.w_old + b, *v = job.v + b;
    const double *g_new = job.g_new + b, *g_old = job.g_old + b;
    float *s_out = job.s + job.slot * job.n + b, *y_out = job.y + job.slot * job.n + b;
    // Inner products of the rounded pairs, so the recursion uses one consistent matrix.
    for (int64_t i = 0; i < n; ++i) {
      s_out[i] = static_cast<float>(w_new[i] - w_old[i]);
      s[i] = s_out[i];
    }
    for (int64_t i = 0; i < n; ++i) {
      y_out[i] = static_cast<float>(g_new[i] - g_old[i]);
      y[i] = y_out[i];
    }
    Vec vv = {}, top = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const Vec vi = load(v + i);
      vv += vi * vi;
      top = vmax(top, vi < Vec{} ? -vi : vi);
    }
    for (; i < n; ++i) {
      v_squared += v[i] * v[i];
      v_largest = std::fabs(v[i]) > v_largest ? std::fabs(v[i]) : v_largest;
    }
    v_squared += sum(vv);
    v_largest = max_lane(top) > v_largest ? max_lane(top) : v_largest;
    for (int k = 0; k < job.n_used; ++k) {
      three_products(job.s + k * job.n + b, s, y, v, n, job.products + k, stride);
      three_products(job.y + k * job.n + b, s, y, v, n, job.products + job.n_used + k, stride);
    }
  }
  job.scalars[0] += v_squared;
  job.scalars[1] = v_largest > job.scalars[1] ? v_largest : job.scalars[1];
}

void combine(const CombineJob& job) {
  alignas(64) double d[kBlockSize];
  for (int64_t b = job.begin; b < job.end; b += kBlockSize) {
    const int64_t n = job.end - b < kBlockSize ? job.end - b : kBlockSize;
    const double* v = job.v + b;
    for (int64_t i = 0; i < n; ++i) d[i] = job.c_v * v[i];
    for (int k = 0; k < job.n_used; ++k) {
      const float *s = job.s + k * job.n + b, *y = job.y + k * job.n + b;
      const double cs = job.c_s[k], cy = job.c_y[k];
      for (int64_t i = 0; i < n; ++i) d[i] += cs * s[i] + cy * y[i];
    }
    Vec slope = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) slope += load(d + i) * load(v + i);
    for (; i < n; ++i) *job.slope += d[i] * v[i];
    *job.slope += sum(slope);
    for (i = 0; i < n; ++i) job.d[b + i] = d[i];
    if (job.w_out != nullptr)
      for (i = 0; i < n; ++i) job.w_out[b + i] = job.w[b + i] + job.step * d[i];
  }
}

}  // namespace
