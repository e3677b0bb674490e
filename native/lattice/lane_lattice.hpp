// Forward-backward of several sequences at once, a lane of the vector for each, without edge attributes. Included by
// per-level files only.
//
// Tables are [position][state][lane]. The arithmetic of a lane is that of one sequence (forward_backward.hpp), so it
// does not depend on the lane or on the other sequences. What the layout gains: sums over labels are vertical, the
// listed pairs of SparsePairs need no gather, dense tables are matrix-matrix products, and labels need no padding. What
// it costs: node scores and marginals are transposed on the way in and out.
//
// With order 1 a state is a label. With order k it is the last min(t + 1, k) labels after position t, numbered h Y + y
// with y the last label (history_forward_backward.hpp); i is the label that a position drops from it.
//
// Sequences are sorted by length, longest first, so the lanes in use at a position are the first ones. Where a lane has
// ended, S = 0: all its tables are 0 there, and sums over positions and lanes need no mask.
//
// Scales are folded into the tables. With inv_t = 1 / c_t:
//   A_t = S_t * (A_{t-1}^T E) inv_{t-1},  c_t = sum A_t          alpha_t = A_t inv_t
//   b_{T-1} = inv_{T-1},  z_t = S_t inv_{t-1} * b_t,  b_{t-1} = E z_t      beta_t = b_t c_t
//   p(t, j) = A_t[j] b_t[j],   p(t, i, j) = A_{t-1}[i] E[i, j] z_t[j]
// and with order k, where E = E_m is the table of m = min(t, k):
//   A_t[h, y] = S_t[y] inv_{t-1} sum_i A_{t-1}[i, h] E[i, h, y],   b_{t-1}[i, h] = sum_y E[i, h, y] z_t[h, y]
#pragma once

#include <initializer_list>

#include "base/phases.hpp"
#include "lattice/forward_backward.hpp"
#include "lattice/lanes.hpp"

namespace {

using crfit::LaneScratch;
using crfit::SparsePairs;

// done(j, sum_i M[i][j] x[i]) for J labels from j0 on; rows of M are m_step apart, those of x [lanes] x_step.
template <int N, int J, class Done>
[[gnu::always_inline]] inline void dense_block(int Y, int64_t m_step, const double* __restrict M, int64_t x_step,
                                               const double* __restrict x, int j0, const Done& done) {
  Lanes<N> acc[J];
  const double* m = M + j0;
  const Lanes<N> first = load_lanes<N>(x);
  for (int k = 0; k < J; ++k) acc[k] = m[k] * first;
  for (int i = 1; i < Y; ++i) {
    m += m_step;
    const Lanes<N> xi = load_lanes<N>(x + i * x_step);
    for (int k = 0; k < J; ++k) acc[k] += m[k] * xi;
  }
  for (int k = 0; k < J; ++k) done(j0 + k, acc[k]);
}

// done(j, sum_i M[i][j] x[i]) for all labels.
template <int N, class Done>
[[gnu::always_inline]] inline void dense_product(int Y, int64_t m_step, const double* M, int64_t x_step,
                                                 const double* x, const Done& done) {
  constexpr int kWide = kLanes == 8 ? 16 / N : N <= 4 ? 8 / N : 1;  // accumulators that fit into registers
  int j0 = 0;
  for (; j0 + kWide <= Y; j0 += kWide) dense_block<N, kWide>(Y, m_step, M, x_step, x, j0, done);
  if constexpr (kWide > 4)
    for (; j0 + 4 <= Y; j0 += 4) dense_block<N, 4>(Y, m_step, M, x_step, x, j0, done);
  for (; j0 < Y; ++j0) dense_block<N, 1>(Y, m_step, M, x_step, x, j0, done);
}

// total + sum over the listed pairs of state j of excess x[other].
template <int N>
[[gnu::always_inline]] inline Lanes<N> listed_sum(int64_t j, const int32_t* ptr, const int32_t* other,
                                                  const double* excess, const double* x, Lanes<N> total) {
  for (int32_t k = ptr[j]; k < ptr[j + 1]; ++k)
    total += excess[k] * load_lanes<N>(x + static_cast<int64_t>(other[k]) * Lanes<N>::kCount);
  return total;
}

// missing sum_i x[i] + the listed pairs of label j, for x >= 0 and without loss of digits (forward_backward.hpp).
// `others` = missing sum_i x[i]. A lane does not depend on whether others cancel.
template <int N>
[[gnu::always_inline]] inline Lanes<N> positive_sum(int Y, int j, double missing, const int32_t* ptr,
                                                    const int32_t* other, const double* excess, const double* E,
                                                    const double* x, const Lanes<N>& others) {
  Lanes<N> sum = listed_sum<N>(j, ptr, other, excess, x, others);
  VecInt cancels[N], some = {};
  for (int m = 0; m < N; ++m) some |= cancels[m] = kCancel * sum.v[m] < others.v[m];
  if (any(some)) [[unlikely]] {
    const Lanes<N> again = [&]() __attribute__((noinline)) {
      return uncancelled(Y, missing, other + ptr[j], other + ptr[j + 1], E + ptr[j], all_lanes<N>(0.0),
                         [&](int i) { return load_lanes<N>(x + static_cast<int64_t>(i) * Lanes<N>::kCount); });
    }();
    for (int m = 0; m < N; ++m) sum.v[m] = cancels[m] ? again.v[m] : sum.v[m];
  }
  return sum;
}

// sums[k] += sum over K positions and the lanes of left[t][i] right[t][after[k]], for the listed pairs k.
template <int N, int K>
inline void add_listed_block(int64_t n_states, const SparsePairs& pairs, const double* left, const double* right,
                             double* sums) {
  constexpr int G = Lanes<N>::kCount;
  const int64_t step = n_states * G;
  for (int64_t i = 0; i < n_states; ++i) {
    Lanes<N> a[K];
    for (int t = 0; t < K; ++t) a[t] = load_lanes<N>(left + t * step + i * G);
    const int32_t end = pairs.after_ptr[i + 1];
    for (int32_t k = pairs.after_ptr[i]; k < end; k += kLanes) {
      const int count = end - k < kLanes ? end - k : kLanes;
      Vec acc[kLanes] = {};
      for (int m = 0; m < count; ++m) {
        const double* z = right + static_cast<int64_t>(pairs.after[k + m]) * G;
        Lanes<N> total = a[0] * load_lanes<N>(z);
        for (int t = 1; t < K; ++t) total += a[t] * load_lanes<N>(z + t * step);
        for (int n = 0; n < N; ++n) acc[m] += total.v[n];
      }
      alignas(64) double found[kLanes];
      store(found, sums_of(acc));
      for (int m = 0; m < count; ++m) sums[k + m] += found[m];
    }
  }
}

// sums[k] += sum_{t < n} left[t][i] right[t][j] over the lanes, for the listed pairs of states.
template <int N>
inline void add_listed(int64_t n_states, const SparsePairs& pairs, int64_t n, const double* left, const double* right,
                       double* sums) {
  constexpr int K = N >= 4 ? 2 : 8 / N;  // positions of a label in registers
  const int64_t step = n_states * Lanes<N>::kCount;
  int64_t t = n;  // positions left
  const auto block = [&]<int kPositions>() {
    for (; t >= kPositions; t -= kPositions, left += kPositions * step, right += kPositions * step)
      add_listed_block<N, kPositions>(n_states, pairs, left, right, sums);
  };
  block.template operator()<K>();
  if constexpr (K >= 8) block.template operator()<4>();
  if constexpr (K >= 4) block.template operator()<2>();
  block.template operator()<1>();
}

// The same for all pairs of Y labels: positions are `step` apart, labels i of `left` left_step, rows i of the sums
// sums_step. Reads up to kLanes labels beyond those of a position, and writes what it finds to the padding.
template <int N>
inline void add_dense(int Y, int64_t n, int64_t step, const double* left, int64_t left_step, const double* right,
                      double* sums, int64_t sums_step) {
  constexpr int G = Lanes<N>::kCount, kRows = kLanes == 8 ? 3 : 2;
  constexpr int64_t kPositions = 384 / G;  // kLanes labels of so many positions stay in the first-level cache
  const auto block = [&]<int R>(int64_t first, int64_t last, int i, int j0) __attribute__((always_inline)) {
    Vec acc[R][kLanes];
    for (int r = 0; r < R; ++r)
      for (int k = 0; k < kLanes; ++k) acc[r][k] = Vec{};
    const double* a = left + first * step + i * left_step;
    const double* z = right + first * step + static_cast<int64_t>(j0) * G;
    for (int64_t t = first; t < last; ++t, a += step, z += step)
      for (int m = 0; m < N; ++m)
        for (int k = 0; k < kLanes; ++k) {
          const Vec zk = load(z + k * G + m * kLanes);
          for (int r = 0; r < R; ++r) acc[r][k] += load(a + r * left_step + m * kLanes) * zk;
        }
    for (int r = 0; r < R; ++r) {
      double* out = sums + (i + r) * sums_step + j0;
      store(out, load(out) + sums_of(acc[r]));
    }
  };
  for (int64_t first = 0; first < n; first += kPositions) {
    const int64_t last = first + kPositions < n ? first + kPositions : n;
    for (int j0 = 0; j0 < Y; j0 += kLanes) {
      int i = 0;
      for (; i + kRows <= Y; i += kRows) block.template operator()<kRows>(first, last, i, j0);
      for (; i < Y; ++i) block.template operator()<1>(first, last, i, j0);
    }
  }
}

[[gnu::noinline]] inline void scores_of_positions(const DataView& data, const Prepared& pre, int64_t begin, int64_t T,
                                                  int64_t first, int64_t n, double* U) {
  by_width(pre.YP, [&]<int P>() { node_scores(Width<P>(pre.YP), data, pre, begin, T, first, n, U); });
}

// The sums of products of a chunk. Order 1: of the listed pairs, or [Y][YP]. Order k: the tables of the shorter
// n-grams, then the longest one; or, if pairs are listed, its listed n-grams and `all` [Y^k][lanes], the sums over i of
// all n-grams (i, h, y).
template <int N>
class LaneSums {
 public:
  LaneSums(const Prepared& pre, double* sums) : pre_(pre), sums_(sums) {
    int64_t n = pre.listed_sums ? pre.n_ngrams : pre.ngram_size;
    if (pre.order > 1 && pre.sparse != nullptr) n = longest() + listed(pre) + pre.n_states * Lanes<N>::kCount;
    for (int64_t i = 0; i < n; ++i) sums_[i] = 0.0;
  }
  double* data() const { return sums_; }

  // Room for the listed n-grams of order k.
  static int64_t listed(const Prepared& pre) { return (pre.sparse->n + 7) / 8 * 8; }

  // Expected n-grams: pair_sum += E * sums. What is not listed has the score of the n-gram without its first label, so
  // it counts as one.
  void add_to(double* pair_sum) const {
    each([&](int64_t k, double E, int64_t at) { pair_sum[k] += E * sums_[at]; });
    if (pre_.order == 1 || pre_.sparse == nullptr) return;
    const SparsePairs& pairs = *pre_.sparse;
    const double *found = sums_ + longest(), *all = found + listed(pre_);
    double* shorter = pair_sum + (pre_.tables[pre_.order - 2].tr - pre_.tr);
    for (int64_t j = 0; j < pre_.n_states; ++j) {
      double rest = total_of(load_lanes<N>(all + j * Lanes<N>::kCount));
      for (int32_t k = pairs.before_ptr[j]; k < pairs.before_ptr[j + 1]; ++k) rest -= found[pairs.before_place[k]];
      shorter[crfit::padded_pair(j, pre_.Y, pre_.YP)] += pairs.base[j] * rest;
    }
  }

  // visit(k, E, place of the sum) for the n-grams k of Prepared::ngram_E.
  template <class Visit>
  void each(const Visit& visit) const {
    const int64_t Y = pre_.Y, YP = pre_.YP;
    if (pre_.order == 1) {
      for (int64_t k = 0; k < pre_.n_ngrams; ++k) visit(k, pre_.ngram_E[k], pre_.listed_sums ? k : pre_.places[k]);
      return;
    }
    const int64_t end = pre_.sparse != nullptr ? longest() : pre_.ngram_size;
    for (int64_t row = 0; row < end; row += YP)
      for (int64_t k = row; k < row + Y; ++k) visit(k, pre_.ngram_E[k], k);
    if (pre_.sparse == nullptr) return;
    for (int64_t j = 0, k = 0; j < pre_.n_states; ++j)
      for (; k < pre_.sparse->after_ptr[j + 1]; ++k) {
        const int64_t at = longest() + j * YP + pre_.sparse->after[k] % Y;
        visit(at, pre_.ngram_E[at], longest() + k);
      }
  }

  // Place of the longest table.
  int64_t longest() const { return pre_.tables[pre_.order - 1].tr - pre_.tr; }

 private:
  const Prepared& pre_;
  double* sums_;
};

template <int N, bool kHistories = false>
class LaneLattice {
 public:
  static constexpr int G = N * kLanes;
  using Wide = Lanes<N>;

  LaneLattice(const DataView& data, const Prepared& pre, const crfit::Direction* direction, LaneScratch& scratch)
      : data_(data), pre_(pre), direction_(direction), s_(scratch), row_(pre.n_states * G), node_row_(pre.Y * G) {}

  int n = 0;      // sequences
  int64_t T = 0;  // positions of the longest
  int64_t sequence[G], begin[G], length[G];
  int64_t slot[G];  // index of each among the ids given
  double c[G];      // weights of the sequences
  double log_z[G], gold[G];
  uint32_t failed = 0;  // bit per lane: the scaled domain cannot hold this sequence

  // Takes up to G sequences.
  void take(const int64_t* ids, int count) {
    n = 0;
    for (int k = 0; k < count; ++k) {
      const int64_t id = ids[k], from = data_.seq_ptr[id], positions = data_.seq_ptr[id + 1] - from;
      int at = n++;
      for (; at > 0 && length[at - 1] < positions; --at) {
        sequence[at] = sequence[at - 1];
        begin[at] = begin[at - 1];
        length[at] = length[at - 1];
        slot[at] = slot[at - 1];
      }
      sequence[at] = id;
      begin[at] = from;
      length[at] = positions;
      slot[at] = k;
    }
    for (int l = 0; l < G; ++l) c[l] = l >= n ? 0.0 : data_.weights == nullptr ? 1.0 : data_.weights[sequence[l]];
    T = length[0];
  }

  // Sequences with more than t positions, given those at an earlier position.
  int in_use(int64_t t, int before) const {
    while (before > 0 && length[before - 1] <= t) --before;
    return before;
  }

  // Sets: log_z, gold, failed; with `keep` also the tables S, A, inv. Never inlined: every caller gets the same bytes.
  [[gnu::noinline]] void forward(bool keep) {
    const int Y = pre_.Y;
    const SparsePairs* sparse = pre_.sparse;
    const Wide zero = all_lanes<N>(0.0);
    Wide shift = zero, product = all_lanes<N>(1.0), inv = product, low = product, least = product, kept = product;
    VecInt bad[N] = {};
    double logs[G] = {};
    // Only lanes that are far from 1, so a lane does not depend on the others.
    const auto flush = [&](bool all) {
      alignas(64) double factors[G];
      store_lanes(factors, product);
      for (int l = 0; l < n; ++l)
        if (all || factors[l] < 1e-150 || factors[l] > 1e150) {
          logs[l] += std::log(factors[l]);
          factors[l] = 1.0;
        }
      product = load_lanes<N>(factors);
    };
    for (int l = 0; l < G; ++l) gold[l] = 0.0;
    Wide before_total = product;
    int here = n;
    for (int64_t t = 0; t < T; ++t) {
      here = in_use(t, here);
      if (t % s_.row_block == 0) load_rows(t, here);
      double* S = s_.S + (keep ? t : 0) * node_row_;
      double* v = s_.A + (keep ? t : t % 2) * row_;
      const double* before = s_.A + (keep ? t - 1 : (t + 1) % 2) * row_;
      shift += exponentials_at(t % s_.row_block, here, S);
      Wide total = all_lanes<N>(0.0), lowest = all_lanes<N>(1.0), least_here = lowest, kept_here = lowest;
      if (t == 0) {
        for (int j = 0; j < Y; ++j) {
          const Wide value = load_lanes<N>(S + j * G);
          store_lanes(v + j * G, value);
          total += value;
          lowest = smallest(lowest, value);
        }
      } else {
        const auto arrive = [&](int64_t j, int64_t y, const Wide& sum) __attribute__((always_inline)) {
          const Wide arrived = sum * inv, value = arrived * load_lanes<N>(S + y * G);
          store_lanes(v + j * G, value);
          total += value;
          lowest = smallest(lowest, value);
          least_here = smallest(least_here, arrived);
        };
        // Listed n-grams: not below 0, where cancellation leaves only rounding.
        if constexpr (kHistories)
          sums_over_dropped(
              t, before, [&](int64_t j, int64_t y, const Wide& sum, const Wide& others) __attribute__((always_inline)) {
                arrive(j, y, largest(sum, zero));
                kept_here = smallest(kept_here, kCancel * sum - others);
              });
        else if (sparse != nullptr)
          for (int j = 0; j < Y; ++j) {
            const Wide others = sparse->missing * before_total;
            arrive(j, j,
                   positive_sum<N>(Y, j, sparse->missing, sparse->before_ptr, sparse->before, sparse->before_excess,
                                   sparse->before_E, before, others));
          }
        else
          dense_product<N>(Y, pre_.YP, pre_.E, G, before,
                           [&](int j, const Wide& sum) __attribute__((always_inline)) { arrive(j, j, sum); });
      }
      if (here < G) {
        const Wide one = all_lanes<N>(1.0);
        total = first_lanes(here, total, one);
        lowest = first_lanes(here, lowest, one);
        least_here = first_lanes(here, least_here, one);
        kept_here = first_lanes(here, kept_here, one);
      }
      low = smallest(low, lowest);
      least = smallest(least, least_here);
      kept = smallest(kept, kept_here);
      before_total = total;
      product = product * total;
      VecInt far = {};
      for (int m = 0; m < N; ++m) {
        bad[m] |= ~((total.v[m] > splat(kTiny)) & (total.v[m] < splat(1e100)));
        far |= (product.v[m] < splat(1e-150)) | (product.v[m] > splat(1e150));
        inv.v[m] = 1.0 / total.v[m];
      }
      if (any(far)) flush(false);
      if (keep) store_lanes(s_.inv + t * G, inv);
    }
    flush(true);
    alignas(64) double shifts[G];
    store_lanes(shifts, shift);
    failed = bits_of(bad);
    for (int l = 0; l < n; ++l) {
      log_z[l] = shifts[l] + largest_scores(length[l]) + logs[l];
      if (!std::isfinite(log_z[l])) failed |= uint32_t{1} << l;
    }
    lost_ = failing(low, [](double x) { return x > kLost; }) | failing(least, [](double x) { return x > kLost; });
    if (kHistories && sparse != nullptr) lost_ |= failing(kept, [](double x) { return x > 0.0; });
    failed &= (uint32_t{1} << n) - 1;
  }

  uint32_t lost() const { return lost_ & ((uint32_t{1} << n) - 1); }  // lanes where an underflow may matter

  // After forward(true). Sets: z, failed; with `curvature` also b, and S = S_t inv_{t-1}. With order 1 and without
  // curvature z may be the table S. Calls emit(t, here, p) with factor p(t, :) of the `here` first lanes, [Y][lanes],
  // from the last position on.
  template <class Emit>
  [[gnu::always_inline]] inline void backward(double* z, bool curvature, const Wide& factor, const Emit& emit) {
    const int Y = pre_.Y;
    const SparsePairs* sparse = pre_.sparse;
    const Wide zero = all_lanes<N>(0.0);
    VecInt bad[N] = {};
    Wide beta_total = zero, z_total = zero;
    int later = 0, here = 0;  // lanes in use at t + 1 and at t
    for (int64_t t = T - 1; t >= 0; --t) {
      later = here;
      while (here < n && length[here] > t) ++here;
      const Wide inv = load_lanes<N>(s_.inv + t * G), floor = kTiny * inv;
      const Wide inv_before = t > 0 ? load_lanes<N>(s_.inv + (t - 1) * G) : all_lanes<N>(1.0);
      const Wide last = first_lanes(here, inv, zero);
      double *S = s_.S + t * node_row_, *zt = z + t * row_, *bt = s_.b + t * row_, *p = s_.row;
      const double* A = s_.A + t * row_;
      if (kHistories)
        for (int y = 0; y < Y; ++y) {
          store_lanes(p + y * G, zero);
          store_lanes(S + y * G, load_lanes<N>(S + y * G) * inv_before);
        }
      Wide b_sum = zero, z_sum = zero;
      const auto arrive = [&](int64_t i, int64_t y, const Wide& sum) __attribute__((always_inline)) {
        Wide value = largest(sum, floor);
        if (later < G) value = first_lanes(later, value, last);
        const Wide scaled = kHistories ? load_lanes<N>(S + y * G) : load_lanes<N>(S + y * G) * inv_before;
        const Wide zi = scaled * value, pi = load_lanes<N>(A + i * G) * value * factor;
        if (curvature) {
          if (!kHistories) store_lanes(S + y * G, scaled);
          store_lanes(bt + i * G, value);
        }
        store_lanes(zt + i * G, zi);
        store_lanes(p + y * G, kHistories ? load_lanes<N>(p + y * G) + pi : pi);
        b_sum += value;
        z_sum += zi;
      };
      Wide others = zero;  // of the pairs that are not listed, where their size is limited: order k, derivatives
      if (t == T - 1)
        for (int64_t i = 0; i < states(t); ++i) arrive(i, kHistories ? i % Y : i, last);
      else if constexpr (kHistories)
        others = sums_over_labels(t + 1, zt + row_, arrive);
      else if (sparse != nullptr)
        for (int i = 0; i < Y; ++i)
          arrive(i, i,
                 positive_sum<N>(Y, i, sparse->missing, sparse->after_ptr, sparse->after, sparse->after_excess,
                                 sparse->after_E, zt + row_, sparse->missing * z_total));
      else
        dense_product<N>(Y, pre_.YP, pre_.ET, G, zt + row_,
                         [&](int i, const Wide& sum) __attribute__((always_inline)) { arrive(i, i, sum); });
      emit(t, here, p);
      z_total = z_sum;
      if (!kHistories && curvature && sparse != nullptr && t > 0) others = sparse->missing * z_sum;
      const Wide limit = kCancel * (kHistories ? inv : inv_before);  // z of forward_backward.hpp has no inv_{t-1}
      for (int m = 0; m < N; ++m) {
        beta_total.v[m] += b_sum.v[m] / inv.v[m];
        bad[m] |= ~(others.v[m] < limit.v[m]);
      }
    }
    for (int m = 0; m < N; ++m) bad[m] |= ~(beta_total.v[m] < splat(1.0 / kTiny));
    failed |= bits_of(bad) & ((uint32_t{1} << n) - 1);
    if (failed == 0) return;
    clear_failed(s_.A, row_);
    clear_failed(z, row_);
    if (!curvature) return;
    clear_failed(s_.S, node_row_);
    clear_failed(s_.b, row_);
  }

  // After forward(false): sequences where an underflow may matter need a backward pass to be sure.
  void check_lost() {
    const uint32_t lost_before = lost(), failed_before = failed;
    if ((lost_before & ~failed) == 0) return;
    forward(true);
    backward(s_.z, false, all_lanes<N>(1.0), [](int64_t, int, const double*) {});
    failed = failed_before | (failed & lost_before);
  }

  // sums += sum_t left_{t-1}[i] right_t[j]: of the listed pairs, or [Y][YP]; with order k see LaneSums.
  void add_pairs(const double* left, const double* right, double* sums) const {
    const int Y = pre_.Y, YP = pre_.YP;
    if constexpr (kHistories) return add_ngrams(left, right, sums);
    if (T < 2) return;
    if (pre_.listed_sums)
      add_listed<N>(Y, *pre_.sparse, T - 1, left, right + row_, sums);
    else
      add_dense<N>(Y, T - 1, row_, left, G, right + row_, sums, YP);
  }

  // Adds c p (1 - p) of the n-grams within a state to the tables [ngram_size]. Overwrites b.
  void add_variances(double* sums) const {
    const int64_t Y = pre_.Y;
    const Wide factor = weights(), one = all_lanes<N>(1.0);
    for (int64_t t = 1; t < T; ++t) {
      double* p = s_.b + t * row_;
      for (int64_t at = 0; at < states(t) * G; at += G)
        store_lanes(p + at, load_lanes<N>(s_.A + t * row_ + at) * load_lanes<N>(p + at));
      // Then p of the shorter n-grams: sums over the first label, in place.
      int64_t size = states(t);
      for (int64_t m = (t + 1 < pre_.order ? t + 1 : pre_.order) - 1;; --m) {
        double* table = sums + (pre_.tables[m - 1].tr - pre_.tr);
        for (int64_t j = 0; j < size; ++j) {
          const Wide value = load_lanes<N>(p + j * G);
          table[crfit::padded_pair(j, Y, pre_.YP)] += total_of(factor * value * (one - value));
        }
        if (m == 1) break;
        size /= Y;
        for (int64_t at = size * G; at < size * Y * G; at += G) {
          double* to = p + at % (size * G);
          store_lanes(to, load_lanes<N>(to) + load_lanes<N>(p + at));
        }
      }
    }
  }

  // out = the squares of a table.
  void square(const double* table, double* out) const {
    each_row([&](int64_t at, int64_t size) {
      for (int64_t i = at; i < at + size; i += kLanes) store(out + i, load(table + i) * load(table + i));
    });
  }

  // Multiplies a table by the weights of the sequences.
  void weigh(double* table) const {
    bool ones = true;
    for (int l = 0; l < n; ++l) ones = ones && c[l] == 1.0;
    if (ones) return;
    const Wide factor = weights();
    each_row([&](int64_t at, int64_t size) {
      for (double* x = table + at; x < table + at + size; x += G) store_lanes(x, load_lanes<N>(x) * factor);
    });
  }

  Wide weights() const { return load_lanes<N>(c); }

  // Writes a row of a table to the rows of the sequences: row_of(lane) is where [YP] of the lane goes; padding 0.
  // kFar: past the caches.
  template <bool kFar = false, class Row>
  [[gnu::always_inline]] inline void rows_out(const double* table, int here, const Row& row_of) const {
    const int Y = pre_.Y;
    for (int l0 = 0; l0 < here; l0 += kLanes) {
      double* to[kLanes];
      const int count = here - l0 < kLanes ? here - l0 : kLanes;
      for (int l = 0; l < count; ++l) to[l] = row_of(l0 + l);
      for (int j0 = 0; j0 < pre_.YP; j0 += kLanes) {
        Vec x[kLanes];
        for (int k = 0; k < kLanes; ++k) x[k] = j0 + k < Y ? load(table + (j0 + k) * G + l0) : Vec{};
        transpose(x);
        for (int l = 0; l < count; ++l) kFar ? store_far(to[l] + j0, x[l]) : store(to[l] + j0, x[l]);
      }
    }
  }

  // Reads the scores of another weight vector into a table; 0 where a lane has ended.
  void load_table(const Prepared& weights, double* table) {
    int here = n;
    for (int64_t t = 0; t < T; ++t) {
      here = in_use(t, here);
      if (t % s_.row_block == 0)
        for (int l = 0; l < here; ++l) {
          if (l + 1 < here) prefetch_scores(data_, weights, begin[l + 1] + t);
          scores_of_positions(data_, weights, begin[l], length[l], t, rows_from(l, t), rows_of(l));
        }
      rows_in(t % s_.row_block, here, table + t * node_row_);
      if (here == G) continue;
      for (double* x = table + t * node_row_; x < table + (t + 1) * node_row_; x += G)
        store_lanes(x, first_lanes(here, load_lanes<N>(x), all_lanes<N>(0.0)));
    }
  }

  // Makes A, b and S the tables of a cache block: [2][T][states][lanes], [T][Y][lanes].
  void place_tables(double* block) {
    s_.A = block;
    s_.b = block + T * row_;
    s_.S = block + 2 * T * row_;
  }

  // The same tables in single precision, copied. Returns the lanes that do not fit, which are 0 in the copy.
  uint32_t keep_floats(float* block) const {
    uint32_t large = 0;
    each_kept([&](int64_t, double* x, int64_t size) { large |= lanes_above(1e37, x, size); });
    each_kept([&](int64_t at, const double* x, int64_t size) {
      for (int64_t i = 0; i < size; i += kLanes) store(block + at + i, load(x + i));
      for (int l = 0; l < n; ++l)
        for (int64_t i = l; (large >> l & 1) != 0 && i < size; i += G) block[at + i] = 0.0f;
    });
    return large;
  }
  void load_floats(const float* block) {
    each_kept([&](int64_t at, double* x, int64_t size) {
      for (int64_t i = 0; i < size; i += kLanes) store(x + i, load(block + at + i));
    });
  }

  // Lanes of a table of states with an entry that is not below the limit.
  uint32_t lanes_above(double limit, const double* table) const {
    uint32_t found = 0;
    each_row([&](int64_t at, int64_t size) { found |= lanes_above(limit, table + at, size); });
    return found;
  }

  // Leaves these lanes to the log domain: they must not add to sums over lanes.
  void give_up(uint32_t lanes) {
    failed |= lanes;
    for (double* table : {s_.z, s_.A}) clear_failed(table, row_);
  }

  // Index in the tables of the n-gram that ends at position t >= 1 with the label *y.
  int64_t gold_ngram(const int32_t* y, int64_t t) const {
    if (!kHistories) return static_cast<int64_t>(y[-1]) * pre_.YP + y[0];
    const int m = static_cast<int>(t < pre_.order ? t : pre_.order);
    return (pre_.tables[m - 1].tr - pre_.tr) + crfit::padded_pair(crfit::ngram_code(y, m, pre_.Y), pre_.Y, pre_.YP);
  }

  int64_t row() const { return row_; }            // doubles of a position's states
  int64_t node_row() const { return node_row_; }  // doubles of a position's labels
  // States after position t.
  int64_t states(int64_t t) const { return kHistories && t + 1 < pre_.order ? histories(t) * pre_.Y : pre_.n_states; }
  double score_seconds() const { return score_seconds_; }

 protected:
  // Values of h after position t, and of a table's rows without the label that is dropped.
  int64_t histories(int64_t t) const {
    if (!kHistories || t == 0) return 1;
    return t < pre_.order ? pre_.tables[t - 1].rows : pre_.n_states / pre_.Y;
  }

  // Sum of the largest n-gram scores of a sequence, which the exponentials leave out.
  double largest_scores(int64_t positions) const {
    double total = 0.0;
    for (int64_t t = 1; t < positions && t < pre_.order; ++t) total += pre_.tables[t - 1].top;
    const int64_t rest = positions - pre_.order;
    return rest > 0 ? total + static_cast<double>(rest) * pre_.tables[pre_.order - 1].top : total;
  }

  // done(j, y, sum_i x[i, h] E[i, h, y], the part of it that is not listed) for the states j = (h, y) after t >= 1; x
  // are the states before.
  template <class Done>
  [[gnu::always_inline]] inline void sums_over_dropped(int64_t t, const double* x, const Done& done) const {
    const int64_t Y = pre_.Y, YP = pre_.YP, H = histories(t);
    const Wide zero = all_lanes<N>(0.0);
    const double* E = pre_.tables[(t < pre_.order ? t : pre_.order) - 1].E;
    for (int64_t h = 0; h < H; ++h) {
      if (t < pre_.order) {  // no label is dropped
        const Wide from = load_lanes<N>(x + h * G);
        for (int64_t y = 0; y < Y; ++y) done(h * Y + y, y, E[h * YP + y] * from, zero);
      } else if (const SparsePairs* pairs = pre_.sparse) {
        Wide from = zero;
        for (int64_t i = 0; i < Y; ++i) from += load_lanes<N>(x + (i * H + h) * G);
        for (int64_t y = 0; y < Y; ++y) {
          const int64_t j = h * Y + y;
          const Wide others = pairs->base[j] * from;
          done(j, y, listed_sum<N>(j, pairs->before_ptr, pairs->before, pairs->before_excess, x, others), others);
        }
      } else {
        dense_product<N>(pre_.Y, H * YP, E + h * YP, H * G, x + h * G,
                         [&](int y, const Wide& sum) __attribute__((always_inline)) { done(h * Y + y, y, sum, zero); });
      }
    }
  }

  // done(j, y, sum_y' E[i, h, y'] z[h, y']) for the states j = (i, h) before t >= 1, y their last label. Returns the
  // sum of what is not listed.
  template <class Done>
  [[gnu::always_inline]] inline Wide sums_over_labels(int64_t t, const double* z, const Done& done) const {
    const int64_t Y = pre_.Y, YP = pre_.YP, H = histories(t);
    const double* E = pre_.tables[(t < pre_.order ? t : pre_.order) - 1].E;
    Wide all = all_lanes<N>(0.0);
    for (int64_t h = 0; h < H; ++h) {
      Wide sum = all_lanes<N>(0.0);
      if (t < pre_.order) {
        for (int64_t y = 0; y < Y; ++y) sum += E[h * YP + y] * load_lanes<N>(z + (h * Y + y) * G);
        done(h, h % Y, sum);
      } else if (const SparsePairs* pairs = pre_.sparse) {
        for (int64_t j = h * Y; j < (h + 1) * Y; ++j) sum += pairs->base[j] * load_lanes<N>(z + j * G);
        for (int64_t j = h; j < pre_.n_states; j += H)
          done(j, h % Y, listed_sum<N>(j, pairs->after_ptr, pairs->after, pairs->after_excess, z, sum));
        all += sum;
      } else {
        dense_product<N>(pre_.Y, YP, pre_.ET + h * Y * YP, G, z + h * Y * G,
                         [&](int i, const Wide& moved)
                             __attribute__((always_inline)) { done(i * H + h, h % Y, moved); });
      }
    }
    return all;
  }

  void add_ngrams(const double* left, const double* right, double* sums) const {
    const int64_t Y = pre_.Y, YP = pre_.YP, k = pre_.order, H = pre_.n_states / Y;
    for (int64_t t = 1; t < T && t < k; ++t)
      for (int64_t h = 0; h < histories(t); ++h) {
        const Wide a = load_lanes<N>(left + (t - 1) * row_ + h * G);
        double* out = sums + (pre_.tables[t - 1].tr - pre_.tr) + h * YP;
        for (int64_t y = 0; y < Y; ++y) out[y] += total_of(a * load_lanes<N>(right + t * row_ + (h * Y + y) * G));
      }
    if (T <= k) return;
    const double *from = left + (k - 1) * row_, *to = right + k * row_;
    double* longest = sums + (pre_.tables[k - 1].tr - pre_.tr);
    if (pre_.sparse == nullptr) {
      for (int64_t h = 0; h < H; ++h)
        add_dense<N>(pre_.Y, T - k, row_, from + h * G, H * G, to + h * Y * G, longest + h * YP, H * YP);
      return;
    }
    add_listed<N>(pre_.n_states, *pre_.sparse, T - k, from, to, longest);
    // all[h, y] += sum_t (sum_i left[i, h]) right[h, y], [states][lanes]
    double* all = longest + LaneSums<N>::listed(pre_);
    for (int64_t t = k; t < T; ++t, from += row_, to += row_)
      for (int64_t h = 0; h < H; ++h) {
        Wide a = all_lanes<N>(0.0);
        for (int64_t i = 0; i < Y; ++i) a += load_lanes<N>(from + (i * H + h) * G);
        for (int64_t j = h * Y; j < (h + 1) * Y; ++j)
          store_lanes(all + j * G, load_lanes<N>(all + j * G) + a * load_lanes<N>(to + j * G));
      }
  }

  // visit(place, size) for the states of each position in a table.
  template <class Visit>
  void each_row(const Visit& visit) const {
    if (!kHistories) return visit(0, T * row_);
    for (int64_t t = 0; t < T; ++t) visit(t * row_, states(t) * G);
  }

  // visit(at, x, size) for the tables of the cache: `at` is the place of x in the block.
  template <class Visit>
  void each_kept(const Visit& visit) const {
    each_row([&](int64_t at, int64_t size) { visit(at, s_.A + at, size); });
    each_row([&](int64_t at, int64_t size) { visit(T * row_ + at, s_.b + at, size); });
    visit(2 * T * row_, s_.S, T * node_row_);
  }

  uint32_t lanes_above(double limit, const double* values, int64_t size) const {
    Wide top = all_lanes<N>(0.0);
    for (const double* x = values; x < values + size; x += G) top = largest(load_lanes<N>(x), top);
    return failing(top, [&](double x) { return x < limit; }) & ((uint32_t{1} << n) - 1);
  }

  int64_t rows_from(int l, int64_t t) const { return length[l] - t < s_.row_block ? length[l] - t : s_.row_block; }
  double* rows_of(int l) const { return s_.rows + l * s_.row_block * pre_.YP; }

  static uint32_t bits_of(const VecInt (&mask)[N]) {
    uint32_t bits = 0;
    for (int l = 0; l < G; ++l) bits |= static_cast<uint32_t>(mask[l / kLanes][l % kLanes] != 0) << l;
    return bits;
  }

  // Node scores of up to row_block positions from t on into s_.rows; adds those of the gold labels.
  void load_rows(int64_t t, int here) {
    const int YP = pre_.YP;
    int64_t last = crfit::now();
    for (int l = 0; l < here; ++l) {
      const int64_t count = rows_from(l, t);
      double* rows = rows_of(l);
      if (direction_ != nullptr)
        line_scores(*direction_, (begin[l] + t) * YP, count * YP, rows);
      else {
        if (l + 1 < here) prefetch_scores(data_, pre_, begin[l + 1] + t);
        scores_of_positions(data_, pre_, begin[l], length[l], t, count, rows);
      }
      if (data_.labels == nullptr) continue;
      const int32_t* y = data_.labels + begin[l] + t;
      for (int64_t k = 0; k < count; ++k) {
        gold[l] += rows[k * YP + y[k]];
        if (t + k > 0) gold[l] += pre_.tr[gold_ngram(y + k, t + k)];
      }
    }
    score_seconds_ += crfit::lap(last);
  }

  // Row r of the loaded positions, label by label.
  void rows_in(int64_t r, int here, double* table) const {
    const int Y = pre_.Y, YP = pre_.YP;
    for (int l0 = 0; l0 < here; l0 += kLanes)
      for (int j0 = 0; j0 < Y; j0 += kLanes) {
        Vec x[kLanes];
        for (int l = 0; l < kLanes; ++l) x[l] = load(s_.rows + ((l0 + l) * s_.row_block + r) * YP + j0);
        transpose(x);
        const int count = Y - j0 < kLanes ? Y - j0 : kLanes;
        for (int k = 0; k < count; ++k) store(table + (j0 + k) * G + l0, x[k]);
      }
  }

  // S = exp(U - max) of row r of the loaded positions, 0 where a lane has ended; returns the maximum.
  Wide exponentials_at(int64_t r, int here, double* S) const {
    const int Y = pre_.Y;
    rows_in(r, here, S);
    Wide top = load_lanes<N>(S);
    for (int j = 1; j < Y; ++j) top = largest(top, load_lanes<N>(S + j * G));
    if (here == G) {
      for (int j = 0; j < Y; ++j) store_lanes(S + j * G, exponential(load_lanes<N>(S + j * G) - top));
      return top;
    }
    const Wide zero = all_lanes<N>(0.0);
    for (int j = 0; j < Y; ++j)
      store_lanes(S + j * G, first_lanes(here, exponential(load_lanes<N>(S + j * G) - top), zero));
    return first_lanes(here, top, zero);
  }

  // Sequences that are computed again in the log domain must not add to sums over lanes.
  void clear_failed(double* table, int64_t row) const {
    for (int l = 0; l < n; ++l)
      if ((failed >> l & 1) != 0)
        for (int64_t i = l; i < T * row; i += G) table[i] = 0.0;
  }

  const DataView& data_;
  const Prepared& pre_;
  const crfit::Direction* direction_;
  LaneScratch& s_;
  int64_t row_, node_row_;
  uint32_t lost_ = 0;
  double score_seconds_ = 0.0;
};

// Calls call.operator()<N, kHistories>() for the lanes of a worker. Order 2 and more has kFewLanes.
template <class Call>
void by_lanes(const Scratch& scratch, int order, Call call) {
  if (order > 1)
    call.template operator()<crfit::kFewLanes / kLanes, true>();
  else if (scratch.lanes.lanes == crfit::kManyLanes)
    call.template operator()<crfit::kManyLanes / kLanes, false>();
  else
    call.template operator()<crfit::kFewLanes / kLanes, false>();
}

}  // namespace
