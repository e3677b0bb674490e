// The transforms T of natural gradient descent (Cao 2015) on vectors of residuals. Included by per-level files only.
//
//   potential    g(u), U2*            g'(u) u, U1*              parameter p
//   arctan       atan(p u)            u / (u^2 + p)             slope at 0; U1*: epsilon
//   erf          erf(p u)             (2/sqrt(pi)) p u exp(-(p u)^2)
//   gudermann    gd(p u)              p u / cosh(p u)           gd(x) = 2 atan(tanh(x/2))
//
// All are odd: they are computed on |u| and get the sign of u, which is exact and halves the ranges. They cannot
// overflow: exponentials have only negative arguments.
//
// Most residuals are tiny, because most labels are improbable at a position; a polynomial of seven terms is exact there
// (kNear). Beyond that, each function has a polynomial in the range where its series converges fast, and an identity
// that reduces to this range: atan(x) = pi/2 - atan(1/x), erf(x) = 1 - exp(-x^2) erfcx(x), gd(x) = pi/2 - 2
// atan(exp(-x)). The polynomials interpolate at Chebyshev points and are exact to one or two units in the last place.
//
// The paper's alternative is a table of T on [-1, 1] (Tabled), kept to test its claim: epochs with the table take 6 to
// 15 % longer than with the polynomials, and residuals beyond 1, which repeated attributes can have, need the function
// anyway.
#pragma once

#include <cmath>
#include <iterator>

#include "base/vmath.hpp"
#include "online/jobs.hpp"

namespace {

using crfit::OnlineRule;

constexpr double kHalfPi = 1.57079632679489661923;

// atan(x) / x as a function of x^2, |x| <= tan(pi/8)
constexpr double kAtan[] = {0x1.0000000000000p+0, -0x1.555555555552fp-2, 0x1.999999999466ap-3, -0x1.2492492259b3ep-3,
                            0x1.c71c70cb775cep-4, -0x1.745cf64dcc6bdp-4, 0x1.3b10f0f5b1224p-4, -0x1.10ea1d157f6ffp-4,
                            0x1.def9ecd6a20f2p-5, -0x1.9c79c07a989c6p-5, 0x1.3702ea64c11f2p-5, -0x1.23b93fac21dacp-6};
constexpr double kTanEighth = 0.41421356237309504880;  // tan(pi/8)
// erf(x) / x as a function of x^2, |x| <= 1
constexpr double kErf[] = {0x1.20dd750429b6dp+0,  -0x1.812746b0379e6p-2,  0x1.ce2f21a042b30p-4,  -0x1.b82ce31284e00p-6,
                           0x1.565bcd0dbaa38p-8,  -0x1.c02db3dac435fp-11, 0x1.f9a321d5b8e1ep-14, -0x1.f4d1e3183f7aep-17,
                           0x1.b9df224ca4b97p-20, -0x1.5f1ecb6f0764cp-23, 0x1.f7b4bf3b13964p-27, -0x1.389d4f2641625p-30,
                           0x1.05ffd737fb32ep-34};
// exp(x^2) (1 - erf(x)) as a function of 3/(3 + x) - 13/24, 1 <= x <= 6; beyond that erf(x) is 1 in double precision
constexpr double kErfcx[] = {0x1.a9f324d321d3cp-3,  0x1.7b5ba75384a3fp-1,  0x1.252223ca4ede5p+0, 0x1.67edcf25c3b00p+0,
                             0x1.50ed763d9c0efp+0,  0x1.b09ba5f0ada26p-1,  0x1.ea089418a1c71p-3, -0x1.23a0ef0695e14p-3,
                             -0x1.3fcb1d1e06274p-3, 0x1.9144364c59580p-8,  0x1.2d8e48db93bcep-4, 0x1.0d67498e89069p-7,
                             -0x1.3b1e3722ae819p-5, -0x1.1c9140d5cf791p-8, 0x1.57a5fe2b9b75ep-6};
// gd(x) / x as a function of x^2, |x| <= log(1 + sqrt 2), where exp(-x) is tan(pi/8)
constexpr double kGd[] = {0x1.0000000000000p+0,  -0x1.55555555554fep-3,  0x1.555555554e2d3p-5,  -0x1.8c98c988e2d3ap-7,
                          0x1.f442d16420312p-9,  -0x1.4bc8c262d2cc3p-10, 0x1.c71d01b76d081p-12, -0x1.3fa399dc96f8fp-13,
                          0x1.c84456ae614d1p-15, -0x1.46aec4e9bff7bp-16, 0x1.c4d2916ecc977p-18, -0x1.16bdc58e79a1ap-19,
                          0x1.01de3e2471da5p-21, -0x1.fb73665d3956ap-25};
constexpr double kGdSmall = 0.88137358701954302523;

// The same near 0, where most arguments are.
constexpr double kAtanNear = 1.0 / 8, kErfNear = 1.0 / 4, kGdNear = 1.0 / 5;
constexpr double kAtanNearZero[] = {0x1.0000000000000p+0,  -0x1.555555555548ep-2, 0x1.9999999935e0fp-3,
                                    -0x1.2492488ec649fp-3, 0x1.c71b9b3db24efp-4,  -0x1.740e111a77875p-4,
                                    0x1.2c922fe4a0160p-4};
constexpr double kErfNearZero[] = {0x1.20dd750429b6dp+0,  -0x1.812746b03792cp-2, 0x1.ce2f21a013ef0p-4,
                                   -0x1.b82ce2cc450fap-6, 0x1.565b9acdd0081p-8,  -0x1.c008c44eceedap-11,
                                   0x1.ec24393394868p-14};
constexpr double kGdNearZero[] = {0x1.0000000000000p+0,  -0x1.5555555555455p-3, 0x1.55555554f136ep-5,
                                  -0x1.8c98c8a197ebep-7, 0x1.f441cb6e02d19p-9,  -0x1.4b7d275536062p-10,
                                  0x1.b167dcab67059p-12};
constexpr double kTwoOverRootPi = 1.12837916709551257390;

// Arguments are |x|.

inline Vec arctan(Vec x) {
  // atan(x) = pi/4 + atan((x - 1)/(x + 1)) = pi/2 - atan(1/x)
  const VecInt middle = x > splat(kTanEighth), large = x > splat(1.0 / kTanEighth);
  const Vec top = large ? splat(-1.0) : middle ? x - 1.0 : x;
  const Vec bottom = large ? x : middle ? x + 1.0 : splat(1.0);
  const Vec offset = large ? splat(kHalfPi) : middle ? splat(kHalfPi / 2) : Vec{};
  const Vec r = top / bottom;
  return offset + r * polynomial(r * r, kAtan);
}

inline Vec error_function(Vec x) {
  const Vec small = x * polynomial(x * x, kErf);
  const VecInt beyond = x > splat(1.0);
  if (!any(beyond)) return small;
  const Vec s = splat(3.0) / (x + 3.0) - 13.0 / 24;
  const Vec large = 1.0 - vexp(-x * x) * polynomial(s, kErfcx);
  return beyond ? (x > splat(6.0) ? splat(1.0) : large) : small;
}

inline Vec gudermannian(Vec x) {
  const Vec small = x * polynomial(x * x, kGd);
  const VecInt beyond = x > splat(kGdSmall);
  if (!any(beyond)) return small;
  const Vec e = vexp(-x);  // gd(x) = pi/2 - 2 atan(exp(-x))
  return beyond ? kHalfPi - 2.0 * e * polynomial(e * e, kAtan) : small;
}

// T(|u|), by potential and update. Where T has a short series near 0, it is T(u) = slope u series(p^2 u^2) for |p u| up
// to kNear.
struct ArctanSlope {
  double epsilon;
  Vec operator()(Vec u) const { return u / (u * u + epsilon); }
};
struct Arctan {
  static constexpr double kNear = kAtanNear;
  static constexpr const auto& kSeries = kAtanNearZero;
  double p;
  Vec operator()(Vec u) const { return arctan(p * u); }
};
struct ErfSlope {
  double p;
  Vec operator()(Vec u) const { return (kTwoOverRootPi * p) * u * vexp(-(p * u) * (p * u)); }
};
struct Erf {
  static constexpr double kNear = kErfNear;
  static constexpr const auto& kSeries = kErfNearZero;
  double p;
  Vec operator()(Vec u) const { return error_function(p * u); }
};
struct GudermannSlope {
  double p;
  Vec operator()(Vec u) const {  // x / cosh(x)
    const Vec e = vexp(-p * u);
    return 2.0 * p * u * e / (1.0 + e * e);
  }
};
struct Gudermann {
  static constexpr double kNear = kGdNear;
  static constexpr const auto& kSeries = kGdNearZero;
  double p;
  Vec operator()(Vec u) const { return gudermannian(p * u); }
};

// Linear interpolation in a table on [0, 1], T itself beyond.
template <class T>
struct Tabled {
  Tabled(const T& exact, const double* table) : exact(exact), table(table) {}
  T exact;
  const double* table;  // [kTablePoints]
  Vec operator()(Vec u) const {
    const VecInt beyond = u > splat(1.0);
    const Vec x = vmin(u, splat(1.0)) * static_cast<double>(crfit::kTableIntervals);
    Vec low, high, fraction;
    for (int i = 0; i < kLanes; ++i) {
      const int at = static_cast<int>(x[i]);
      low[i] = table[at];
      high[i] = table[at + 1];
      fraction[i] = x[i] - at;
    }
    const Vec line = low + fraction * (high - low);
    return any(beyond) ? (beyond ? exact(u) : line) : line;
  }
};

template <class T>
inline void transform_with(const T& t, const double* in, int64_t n, double gain, double* out) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec u = load(in + i);
    store(out + i, gain * with_sign(t(magnitude(u)), u));
  }
}

// Computes by the function itself those entries of the vectors `places` of `in` whose square exceeds `end`. They are
// few per vector: with AVX-512 they are packed first.
template <class T>
inline void transform_far(const T& t, const double* in, const int64_t* places, int64_t n, Vec end, double gain,
                          double* out) {
#if defined(__AVX512F__)
  double packed[64 * kLanes + kLanes];
  __mmask8 lanes[64];
  int64_t n_packed = 0;
  for (int64_t k = 0; k < n; ++k) {
    const Vec u = load(in + places[k]);
    lanes[k] = _mm512_cmp_pd_mask(u * u, end, _CMP_GT_OQ);
    store(packed + n_packed, _mm512_maskz_compress_pd(lanes[k], u));
    n_packed += __builtin_popcount(lanes[k]);
  }
  for (int64_t i = 0; i < n_packed; i += kLanes) {
    const Vec u = load(packed + i);
    store(packed + i, gain * with_sign(t(magnitude(u)), u));
  }
  n_packed = 0;
  for (int64_t k = 0; k < n; ++k) {
    store(out + places[k], _mm512_mask_expand_pd(load(out + places[k]), lanes[k], load(packed + n_packed)));
    n_packed += __builtin_popcount(lanes[k]);
  }
#else
  for (int64_t k = 0; k < n; ++k) {
    const Vec u = load(in + places[k]), there = gain * with_sign(t(magnitude(u)), u);
    store(out + places[k], u * u > end ? there : load(out + places[k]));
  }
#endif
}

// First computes all entries by the short series, then again those outside its range: these are unpredictable, and a
// branch per vector would cost more than the arithmetic. Gain and p are included in the coefficients.
template <class T>
  requires requires { T::kSeries; }
inline void transform_with(const T& t, const double* in, int64_t n, double gain, double* out) {
  constexpr int kChunk = 64;  // vectors
  constexpr int kTerms = std::size(T::kSeries);
  Vec series[kTerms];
  double factor = gain * t.p;
  for (int i = 0; i < kTerms; ++i, factor *= t.p * t.p) series[i] = splat(factor * T::kSeries[i]);
  const Vec end = splat(T::kNear / t.p * (T::kNear / t.p));
  int64_t far[kChunk];
  for (int64_t begin = 0; begin < n; begin += kChunk * kLanes) {
    const int64_t stop = n - begin < kChunk * kLanes ? n : begin + kChunk * kLanes;
    int64_t n_far = 0;
    for (int64_t i = begin; i < stop; i += kLanes) {
      const Vec u = load(in + i), square = u * u;
      far[n_far] = i;
      n_far += any(square > end);
      Vec near = series[kTerms - 1];
      for (int k = kTerms - 2; k >= 0; --k) near = near * square + series[k];
      store(out + i, near * u);
    }
    transform_far(t, in, far, n_far, end, gain, out);
  }
}

// out = gain T(in) over n doubles, whole vectors; in and out must not overlap. Not inlined: one copy of these loops.
[[gnu::noinline]] void transform(const OnlineRule& rule, const double* in, int64_t n, double gain, double* out) {
  const double p = rule.parameter;
  const auto with = [&](const auto& t) {
    if (rule.table == nullptr)
      transform_with(t, in, n, gain, out);
    else
      transform_with(Tabled{t, rule.table}, in, n, gain, out);
  };
  switch (rule.potential) {
    case OnlineRule::kArctan: return rule.derivative ? with(ArctanSlope{p}) : with(Arctan{p});
    case OnlineRule::kErf: return rule.derivative ? with(ErfSlope{p}) : with(Erf{p});
    case OnlineRule::kGudermann: return rule.derivative ? with(GudermannSlope{p}) : with(Gudermann{p});
  }
}

}  // namespace
