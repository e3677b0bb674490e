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
// The sum of the lanes.
template <int N>
[[gnu::always_inline]] inline double total_of(const Lanes<N>& a) {
  Vec x = a.v[0];
  for (int n = 1; n < N; ++n) x += a.v[n];
  return sum(x);
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

// One round of a transposition of kLanes rows: blocks of 2^round entries are exchanged between two rows.
struct Exchanged {
  Vec low, high;
};
template <int kRound>
[[gnu::always_inline]] inline Exchanged exchange(Vec a, Vec b) {
#if defined(__AVX512F__)
  if constexpr (kRound == 0)
    return {_mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 8, 2, 10, 4, 12, 6, 14), b),
            _mm512_permutex2var_pd(a, _mm512_setr_epi64(1, 9, 3, 11, 5, 13, 7, 15), b)};
  else if constexpr (kRound == 1)
    return {_mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), b),
            _mm512_permutex2var_pd(a, _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), b)};
  else
    return {_mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 1, 2, 3, 8, 9, 10, 11), b),
            _mm512_permutex2var_pd(a, _mm512_setr_epi64(4, 5, 6, 7, 12, 13, 14, 15), b)};
#elif defined(__AVX__)
  if constexpr (kRound == 0)
    return {_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)};
  else
    return {_mm256_permute2f128_pd(a, b, 0x20), _mm256_permute2f128_pd(a, b, 0x31)};
#else
  return {Vec{a[0], b[0]}, Vec{a[1], b[1]}};
#endif
}

// kLanes rows in registers, transposed.
template <int kRound = 0>
[[gnu::always_inline]] inline void transpose(Vec (&x)[kLanes]) {
  constexpr int kWidth = 1 << kRound;
  for (int i = 0; i < kLanes; ++i) {
    if ((i & kWidth) != 0) continue;
    const Exchanged rows = exchange<kRound>(x[i], x[i + kWidth]);
    x[i] = rows.low;
    x[i + kWidth] = rows.high;
  }
  if constexpr (2 * kWidth < kLanes) transpose<kRound + 1>(x);
}

// The sums of the lanes of kLanes vectors, as one vector. Overwrites them.
template <int kRound = 0>
[[gnu::always_inline]] inline Vec sums_of(Vec (&x)[kLanes]) {
  constexpr int kLeft = kLanes >> (kRound + 1);
  for (int i = 0; i < kLeft; ++i) {
    const Exchanged rows = exchange<kRound>(x[2 * i], x[2 * i + 1]);
    x[i] = rows.low + rows.high;
  }
  if constexpr (kLeft > 1)
    return sums_of<kRound + 1>(x);
  else
    return x[0];
}

}  // namespace
