// A lane of the vector for each sequence: numbers of G sequences side by side, G = N kLanes. Included by per-level
// files only.
#pragma once

#include <cmath>

#include "base/vmath.hpp"

namespace {

template <int N>
struct Lanes {
  static constexpr int kCount = N * kLanes;
  Vec v[N];
};

template <int N>
[[gnu::always_inline]] inline Lanes<N> load_lanes(const double* p) {
  Lanes<N> x;
  for (int n = 0; n < N; ++n) x.v[n] = load(p + n * kLanes);
  return x;
}
template <int N>
[[gnu::always_inline]] inline void store_lanes(double* p, const Lanes<N>& x) {
  for (int n = 0; n < N; ++n) store(p + n * kLanes, x.v[n]);
}
template <int N>
[[gnu::always_inline]] inline Lanes<N> all_lanes(double x) {
  Lanes<N> out;
  for (int n = 0; n < N; ++n) out.v[n] = splat(x);
  return out;
}
template <int N>
[[gnu::always_inline]] inline Lanes<N> operator+(const Lanes<N>& a, const Lanes<N>& b) {
  Lanes<N> out;
  for (int n = 0; n < N; ++n) out.v[n] = a.v[n] + b.v[n];
  return out;
}
template <int N>
[[gnu::always_inline]] inline Lanes<N> operator-(const Lanes<N>& a, const Lanes<N>& b) {
  Lanes<N> out;
  for (int n = 0; n < N; ++n) out.v[n] = a.v[n] - b.v[n];
  return out;
}
template <int N>
[[gnu::always_inline]] inline Lanes<N> operator*(const Lanes<N>& a, const Lanes<N>& b) {
  Lanes<N> out;
  for (int n = 0; n < N; ++n) out.v[n] = a.v[n] * b.v[n];
  return out;
}
template <int N>
[[gnu::always_inline]] inline Lanes<N> operator*(double a, const Lanes<N>& b) {
  return all_lanes<N>(a) * b;
}
template <int N>
[[gnu::always_inline]] inline Lanes<N>& operator+=(Lanes<N>& a, const Lanes<N>& b) {
  return a = a + b;
}
template <int N>
[[gnu::always_inline]] inline Lanes<N> largest(const Lanes<N>& a, const Lanes<N>& b) {
  Lanes<N> out;
  for (int n = 0; n < N; ++n) out.v[n] = vmax(a.v[n], b.v[n]);
  return out;
}
template <int N>
[[gnu::always_inline]] inline Lanes<N> smallest(const Lanes<N>& a, const Lanes<N>& b) {
  Lanes<N> out;
  for (int n = 0; n < N; ++n) out.v[n] = vmin(a.v[n], b.v[n]);
  return out;
}
template <int N>
[[gnu::always_inline]] inline Lanes<N> exponential(const Lanes<N>& a) {
  Lanes<N> out;
  for (int n = 0; n < N; ++n) out.v[n] = vexp(a.v[n]);
  return out;
}
// `there` in the first `count` lanes, `elsewhere` in the others.
template <int N>
[[gnu::always_inline]] inline Lanes<N> first_lanes(int count, const Lanes<N>& there, const Lanes<N>& elsewhere) {
  VecInt lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  Lanes<N> out;
  for (int n = 0; n < N; ++n) out.v[n] = lane < VecInt{} + (count - n * kLanes) ? there.v[n] : elsewhere.v[n];
  return out;
}
// Bit per lane: whether condition(a) fails. Comparisons with NaN fail.
template <int N, class Condition>
[[gnu::always_inline]] inline uint32_t failing(const Lanes<N>& a, const Condition& condition) {
  alignas(64) double x[Lanes<N>::kCount];
  store_lanes(x, a);
  uint32_t bits = 0;
  for (int i = 0; i < Lanes<N>::kCount; ++i) bits |= static_cast<uint32_t>(!condition(x[i])) << i;
  return bits;
}

// A square of kLanes x kLanes numbers in registers, transposed: columns become rows.
[[gnu::always_inline]] inline void transpose(Vec (&x)[kLanes]) {
  // log2(kLanes) rounds; each exchanges blocks of 1, 2, 4 entries between rows that are as far apart.
#if defined(__AVX512F__)
  const __m512i low[] = {_mm512_setr_epi64(0, 8, 2, 10, 4, 12, 6, 14), _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13),
                         _mm512_setr_epi64(0, 1, 2, 3, 8, 9, 10, 11)};
  const __m512i high[] = {_mm512_setr_epi64(1, 9, 3, 11, 5, 13, 7, 15), _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15),
                          _mm512_setr_epi64(4, 5, 6, 7, 12, 13, 14, 15)};
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 8; ++i) {
      const int width = 1 << round;
      if ((i & width) != 0) continue;
      const Vec first = _mm512_permutex2var_pd(x[i], low[round], x[i + width]);
      x[i + width] = _mm512_permutex2var_pd(x[i], high[round], x[i + width]);
      x[i] = first;
    }
#elif defined(__AVX__)
  const Vec a = _mm256_unpacklo_pd(x[0], x[1]), b = _mm256_unpackhi_pd(x[0], x[1]);
  const Vec c = _mm256_unpacklo_pd(x[2], x[3]), d = _mm256_unpackhi_pd(x[2], x[3]);
  x[0] = _mm256_permute2f128_pd(a, c, 0x20);
  x[1] = _mm256_permute2f128_pd(b, d, 0x20);
  x[2] = _mm256_permute2f128_pd(a, c, 0x31);
  x[3] = _mm256_permute2f128_pd(b, d, 0x31);
#else
  const double swapped = x[0][1];
  x[0][1] = x[1][0];
  x[1][0] = swapped;
#endif
}

// The sums of the lanes of kLanes vectors, as one vector.
[[gnu::always_inline]] inline Vec sums_of(Vec (&x)[kLanes]) {
  transpose(x);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) x[i] += x[i + width];
  return x[0];
}

}  // namespace
