// Vectors of doubles (compiler extension), and exp on them. Included by per-level files only; everything is in an
// anonymous namespace, so the linker cannot replace one level's code by another's.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

// The steps of the loop that follows do not depend on each other.
#if defined(__clang__)
#define CRFIT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define CRFIT_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 8;
#elif defined(__AVX__)
constexpr int kLanes = 4;
#else
constexpr int kLanes = 2;
#endif

typedef double Vec __attribute__((vector_size(kLanes * 8)));
typedef int64_t VecInt __attribute__((vector_size(kLanes * 8)));
typedef float VecFloat __attribute__((vector_size(kLanes * 4)));

inline Vec load(const double* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(double* p, Vec v) { std::memcpy(p, &v, sizeof v); }
// A store past the caches, for what is read much later; p is on a boundary of a vector.
inline void store_far(double* p, Vec v) {
#if defined(__AVX512F__)
  _mm512_stream_pd(p, v);
#elif defined(__AVX__)
  _mm256_stream_pd(p, v);
#elif defined(__SSE2__)
  _mm_stream_pd(p, v);
#else
  store(p, v);
#endif
}
// Such stores come before what follows.
inline void finish_far_stores() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}
inline Vec load(const float* p) {
  VecFloat v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, Vec);
}
inline void store(float* p, Vec v) {
  const VecFloat f = __builtin_convertvector(v, VecFloat);
  std::memcpy(p, &f, sizeof f);
}
inline Vec splat(double x) {  // Vec{} + x would also add
#if defined(__AVX512F__)
  return _mm512_set1_pd(x);
#elif defined(__AVX__)
  return _mm256_set1_pd(x);
#else
  return Vec{x, x};
#endif
}
inline Vec vmax(Vec a, Vec b) { return b > a ? b : a; }  // NaN in a stays
inline Vec vmin(Vec a, Vec b) { return a < b ? a : b; }
inline double sum(Vec v) {  // pairwise, the same order at every call
  double x[kLanes];
  std::memcpy(x, &v, sizeof v);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) x[i] += x[i + width];
  return x[0];
}
inline double max_lane(Vec v) {
  double m = v[0];
  for (int i = 1; i < kLanes; ++i) m = v[i] > m ? v[i] : m;
  return m;
}
inline double min_lane(Vec v) {
  double m = v[0];
  for (int i = 1; i < kLanes; ++i) m = v[i] < m ? v[i] : m;
  return m;
}

// Whether any lane of a comparison holds.
inline bool any(VecInt mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask(reinterpret_cast<__m512i>(mask), reinterpret_cast<__m512i>(mask)) != 0;
#elif defined(__AVX__)
  return _mm256_movemask_pd(reinterpret_cast<__m256d>(mask)) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_pd(reinterpret_cast<__m128d>(mask)) != 0;
#else
  int64_t found = 0;
  for (int i = 0; i < kLanes; ++i) found |= mask[i];
  return found != 0;
#endif
}
// Lanes whose bit is set, the lowest bit for the first lane.
inline VecInt lanes_of(uint64_t bits) {
  VecInt lane_bit;
  for (int i = 0; i < kLanes; ++i) lane_bit[i] = int64_t{1} << i;
  return ((VecInt{} + static_cast<int64_t>(bits)) & lane_bit) != 0;
}
// One value in the lanes whose bit is set, the other elsewhere.
inline Vec select(uint64_t bits, Vec there, Vec elsewhere) {
#if defined(__AVX512F__)
  return _mm512_mask_mov_pd(elsewhere, static_cast<__mmask8>(bits), there);
#else
  return lanes_of(bits) ? there : elsewhere;
#endif
}
inline Vec magnitude(Vec x) {
  VecInt bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits &= INT64_MAX;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}
// Magnitudes of the first argument (not negative) with the signs of the second.
inline Vec with_sign(Vec x, Vec sign) {
  VecInt bits, sign_bits;
  std::memcpy(&bits, &x, sizeof bits);
  std::memcpy(&sign_bits, &sign, sizeof bits);
  bits |= sign_bits & INT64_MIN;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}
// c[0] + c[1] z + c[2] z^2 + ...
template <int N>
inline Vec polynomial(Vec z, const double (&c)[N]) {
  Vec p = splat(c[N - 1]);
  for (int i = N - 2; i >= 0; --i) p = p * z + c[i];
  return p;
}

// exp(x) for x <= 709, relative error about 2e-16; 0 below -708, so padding of -inf gives 0; NaN stays NaN.
// x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by its series to r^13; 2^n through the exponent bits.
inline Vec vexp(Vec x) {
  const Vec magic = splat(0x1.8p52);  // adding it rounds to the nearest integer, which ends up in the low bits
  const VecInt tiny = x < splat(-708.0);
  x = vmax(x, splat(-708.0));
  const Vec t = x * 0x1.71547652b82fep0 + magic;
  const Vec n = t - magic;
  const Vec r = (x - n * 0x1.62e42fefa0000p-1) - n * 0x1.cf79abc9e3b39p-40;
  Vec p = splat(1.0 / 6227020800.0);
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  VecInt bits, scale;
  std::memcpy(&bits, &t, sizeof bits);
  scale = (bits + 1023) << 52;
  Vec two_n;
  std::memcpy(&two_n, &scale, sizeof two_n);
  p *= two_n;
  return tiny ? Vec{} : p;
}

}  // namespace
