// Forward-backward of several sequences at once, a lane of the vector for each, order 1 without edge attributes.
// Included by per-level files only.
//
// Tables are [position][label][lane]. The arithmetic of a lane is that of one sequence (forward_backward.hpp), so it
// does not depend on the lane or on the other sequences. What the layout gains: sums over labels are vertical, the
// listed pairs of SparsePairs need no gather, dense tables are matrix-matrix products, and labels need no padding. What
// it costs: node scores and marginals are transposed on the way in and out.
//
// Sequences are sorted by length, longest first, so the lanes in use at a position are the first ones. Where a lane has
// ended, S = 0: all its tables are 0 there, and sums over positions and lanes need no mask.
//
// Scales are folded into the tables. With inv_t = 1 / c_t:
//   A_t = S_t * (A_{t-1}^T E) inv_{t-1},  c_t = sum A_t          alpha_t = A_t inv_t
//   b_{T-1} = inv_{T-1},  z_t = S_t inv_{t-1} * b_t,  b_{t-1} = E z_t      beta_t = b_t c_t
//   p(t, j) = A_t[j] b_t[j],   p(t, i, j) = A_{t-1}[i] E[i, j] z_t[j]
#pragma once

#include "base/phases.hpp"
#include "lattice/forward_backward.hpp"
#include "lattice/lanes.hpp"

namespace {

using crfit::LaneScratch;
using crfit::SparsePairs;

// done(j, sum_i M[i][j] x[i]) for J labels from j0 on; M [Y][YP], x [Y][lanes].
template <int N, int J, class Done>
[[gnu::always_inline]] inline void dense_block(int Y, int YP, const double* __restrict M, const double* __restrict x,
                                               int j0, const Done& done) {
  Lanes<N> acc[J];
  const double* m = M + j0;
  const Lanes<N> first = load_lanes<N>(x);
  for (int k = 0; k < J; ++k) acc[k] = m[k] * first;
  for (int i = 1; i < Y; ++i) {
    m += YP;
    const Lanes<N> xi = load_lanes<N>(x + static_cast<int64_t>(i) * Lanes<N>::kCount);
    for (int k = 0; k < J; ++k) acc[k] += m[k] * xi;
  }
  for (int k = 0; k < J; ++k) done(j0 + k, acc[k]);
}

// done(j, sum_i M[i][j] x[i]) for all labels.
template <int N, class Done>
inline void dense_product(int Y, int YP, const double* M, const double* x, const Done& done) {
  constexpr int kWide = kLanes == 8 ? 16 / N : N <= 4 ? 8 / N : 1;  // accumulators that fit into registers
  int j0 = 0;
  for (; j0 + kWide <= Y; j0 += kWide) dense_block<N, kWide>(Y, YP, M, x, j0, done);
  if constexpr (kWide > 4)
    for (; j0 + 4 <= Y; j0 += 4) dense_block<N, 4>(Y, YP, M, x, j0, done);
  for (; j0 < Y; ++j0) dense_block<N, 1>(Y, YP, M, x, j0, done);
}

// The same for pairs listed by label: missing * total, and the listed ones.
template <int N, class Done>
inline void listed_product(int Y, const int32_t* ptr, const int32_t* other, const double* excess, const double* x,
                           const Lanes<N>& all, const Done& done) {
  for (int j = 0; j < Y; ++j) {
    Lanes<N> total = all;
    for (int32_t k = ptr[j]; k < ptr[j + 1]; ++k)
      total += excess[k] * load_lanes<N>(x + static_cast<int64_t>(other[k]) * Lanes<N>::kCount);
    done(j, total);
  }
}

// sums[k] += sum over K positions and the lanes of left[t][i] right[t][after[k]], for the listed pairs k.
template <int N, int K>
inline void add_listed_block(int Y, const SparsePairs& pairs, const double* left, const double* right, double* sums) {
  constexpr int G = Lanes<N>::kCount;
  const int64_t step = static_cast<int64_t>(Y) * G;
  for (int i = 0; i < Y; ++i) {
    Lanes<N> a[K];
    for (int t = 0; t < K; ++t) a[t] = load_lanes<N>(left + t * step + static_cast<int64_t>(i) * G);
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

// sums[k] += sum_{t=1}^{T-1} left[t-1][i] right[t][j] over the lanes, for the listed pairs.
template <int N>
inline void add_listed(int Y, const SparsePairs& pairs, int64_t T, const double* left, const double* right,
                       double* sums) {
  constexpr int K = N >= 4 ? 2 : 8 / N;  // positions of a label in registers
  const int64_t step = static_cast<int64_t>(Y) * Lanes<N>::kCount;
  right += step;
  int64_t t = T - 1;  // positions left
  const auto block = [&]<int kPositions>() {
    for (; t >= kPositions; t -= kPositions, left += kPositions * step, right += kPositions * step)
      add_listed_block<N, kPositions>(Y, pairs, left, right, sums);
  };
  block.template operator()<K>();
  if constexpr (K >= 8) block.template operator()<4>();
  if constexpr (K >= 4) block.template operator()<2>();
  block.template operator()<1>();
}

// The same for all pairs: sums [Y][YP]. Reads up to kLanes labels beyond the last position.
template <int N>
inline void add_dense(int Y, int YP, int64_t T, const double* left, const double* right, double* sums) {
  constexpr int G = Lanes<N>::kCount, kRows = kLanes == 8 ? 3 : 2;
  constexpr int64_t kPositions = 384 / G;  // kLanes labels of so many positions stay in the first-level cache
  const int64_t step = static_cast<int64_t>(Y) * G;
  const auto block = [&]<int R>(int64_t first, int64_t last, int i, int j0) __attribute__((always_inline)) {
    Vec acc[R][kLanes];
    for (int r = 0; r < R; ++r)
      for (int k = 0; k < kLanes; ++k) acc[r][k] = Vec{};
    const double* a = left + (first - 1) * step + static_cast<int64_t>(i) * G;
    const double* z = right + first * step + static_cast<int64_t>(j0) * G;
    for (int64_t t = first; t < last; ++t, a += step, z += step)
      for (int n = 0; n < N; ++n)
        for (int k = 0; k < kLanes; ++k) {
          const Vec zk = load(z + k * G + n * kLanes);
          for (int r = 0; r < R; ++r) acc[r][k] += load(a + r * G + n * kLanes) * zk;
        }
    for (int r = 0; r < R; ++r) {
      double* out = sums + (i + r) * YP + j0;
      store(out, load(out) + sums_of(acc[r]));
    }
  };
  for (int64_t first = 1; first < T; first += kPositions) {
    const int64_t last = first + kPositions < T ? first + kPositions : T;
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

template <int N>
class LaneLattice {
 public:
  static constexpr int G = N * kLanes;
  using Wide = Lanes<N>;

  LaneLattice(const DataView& data, const Prepared& pre, const crfit::Direction* direction, LaneScratch& scratch)
      : data_(data), pre_(pre), direction_(direction), s_(scratch), row_(static_cast<int64_t>(pre.Y) * G) {}

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
    Wide shift = zero, product = all_lanes<N>(1.0), inv = product, low = product, least = product;
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
      double* S = s_.S + (keep ? t : 0) * row_;
      double* v = s_.A + (keep ? t : t % 2) * row_;
      const double* before = s_.A + (keep ? t - 1 : (t + 1) % 2) * row_;
      shift += exponentials_at(t % s_.row_block, here, S);
      Wide total = all_lanes<N>(0.0), lowest = all_lanes<N>(1.0), least_here = all_lanes<N>(1.0);
      if (t == 0) {
        for (int j = 0; j < Y; ++j) {
          const Wide value = load_lanes<N>(S + j * G);
          store_lanes(v + j * G, value);
          total += value;
          lowest = smallest(lowest, value);
        }
      } else {
        const auto arrive = [&](int j, const Wide& sum) __attribute__((always_inline)) {
          const Wide arrived = sum * inv, value = arrived * load_lanes<N>(S + j * G);
          store_lanes(v + j * G, value);
          total += value;
          lowest = smallest(lowest, value);
          least_here = smallest(least_here, arrived);
        };
        if (sparse != nullptr)  // not below 0, where cancellation leaves only rounding
          listed_product<N>(
              Y, sparse->before_ptr, sparse->before, sparse->before_excess, before, sparse->missing * before_total,
              [&](int j, const Wide& sum) __attribute__((always_inline)) { arrive(j, largest(sum, zero)); });
        else
          dense_product<N>(Y, pre_.YP, pre_.E, before, arrive);
      }
      if (here < G) {
        const Wide one = all_lanes<N>(1.0);
        total = first_lanes(here, total, one);
        lowest = first_lanes(here, lowest, one);
        least_here = first_lanes(here, least_here, one);
      }
      low = smallest(low, lowest);
      least = smallest(least, least_here);
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
      log_z[l] = shifts[l] + static_cast<double>(length[l] - 1) * pre_.tr_max + logs[l];
      if (!std::isfinite(log_z[l])) failed |= uint32_t{1} << l;
    }
    lost_ = failing(low, [](double x) { return x > kLost; }) | failing(least, [](double x) { return x > kLost; });
    if (sparse != nullptr) lost_ |= failing(least, [&](double x) { return x * kCancel > sparse->missing; });
    failed &= (uint32_t{1} << n) - 1;
  }

  uint32_t lost() const { return lost_ & ((uint32_t{1} << n) - 1); }  // lanes where an underflow may matter

  // After forward(true). Sets: z in S, failed. If `z` is another table, sets z there, b, and S = S_t inv_{t-1}. Calls
  // emit(t, here, p) with factor p(t, :) of the `here` first lanes, [Y][lanes], from the last position on.
  template <class Emit>
  [[gnu::always_inline]] inline void backward(double* z, const Wide& factor, const Emit& emit) {
    const int Y = pre_.Y;
    const SparsePairs* sparse = pre_.sparse;
    const bool apart = z != s_.S;
    VecInt bad[N] = {};
    Wide beta_total = all_lanes<N>(0.0), z_total = beta_total;
    int later = 0, here = 0;  // lanes in use at t + 1 and at t
    for (int64_t t = T - 1; t >= 0; --t) {
      later = here;
      while (here < n && length[here] > t) ++here;
      const Wide inv = load_lanes<N>(s_.inv + t * G), floor = kTiny * inv;
      const Wide inv_before = t > 0 ? load_lanes<N>(s_.inv + (t - 1) * G) : all_lanes<N>(1.0);
      const Wide last = first_lanes(here, inv, all_lanes<N>(0.0));
      double *S = s_.S + t * row_, *zt = z + t * row_, *bt = s_.b + t * row_, *p = s_.row;
      const double* A = s_.A + t * row_;
      Wide b_sum = all_lanes<N>(0.0), z_sum = b_sum;
      const auto arrive = [&](int i, const Wide& sum) __attribute__((always_inline)) {
        Wide value = largest(sum, floor);
        if (later < G) value = first_lanes(later, value, last);
        const Wide scaled = load_lanes<N>(S + i * G) * inv_before, zi = scaled * value;
        if (apart) {
          store_lanes(S + i * G, scaled);
          store_lanes(bt + i * G, value);
        }
        store_lanes(zt + i * G, zi);
        store_lanes(p + i * G, load_lanes<N>(A + i * G) * value * factor);
        b_sum += value;
        z_sum += zi;
      };
      if (t == T - 1)
        for (int i = 0; i < Y; ++i) arrive(i, last);
      else if (sparse != nullptr)
        listed_product<N>(Y, sparse->after_ptr, sparse->after, sparse->after_excess, zt + row_,
                          sparse->missing * z_total, arrive);
      else
        dense_product<N>(Y, pre_.YP, pre_.ET, zt + row_, arrive);
      emit(t, here, p);
      z_total = z_sum;
      for (int m = 0; m < N; ++m) {
        beta_total.v[m] += b_sum.v[m] / inv.v[m];
        // z of forward_backward.hpp is z / inv_{t-1} here.
        if (sparse != nullptr && t > 0) bad[m] |= ~(z_sum.v[m] * sparse->missing < splat(kCancel) * inv_before.v[m]);
      }
    }
    for (int m = 0; m < N; ++m) bad[m] |= ~(beta_total.v[m] < splat(1.0 / kTiny));
    failed |= bits_of(bad) & ((uint32_t{1} << n) - 1);
    if (failed != 0) {
      for (double* table : {s_.S, s_.A}) clear_failed(table);
      if (!apart) return;
      clear_failed(s_.b);
      clear_failed(z);
    }
  }

  // After forward(false): sequences where an underflow may matter need a backward pass to be sure.
  void check_lost() {
    const uint32_t lost_before = lost(), failed_before = failed;
    if ((lost_before & ~failed) == 0) return;
    forward(true);
    backward(s_.S, all_lanes<N>(1.0), [](int64_t, int, const double*) {});
    failed = failed_before | (failed & lost_before);
  }

  // sums += sum_t left_{t-1}[i] right_t[j]: of the listed pairs, or [Y][YP].
  void add_pairs(const double* left, const double* right, double* sums) const {
    if (pre_.listed_sums)
      add_listed<N>(pre_.Y, *pre_.sparse, T, left, right, sums);
    else
      add_dense<N>(pre_.Y, pre_.YP, T, left, right, sums);
  }

  // Multiplies a table by the weights of the sequences.
  void weigh(double* table) const {
    bool ones = true;
    for (int l = 0; l < n; ++l) ones = ones && c[l] == 1.0;
    if (ones) return;
    const Wide factor = weights();
    for (double* x = table; x < table + T * row_; x += G) store_lanes(x, load_lanes<N>(x) * factor);
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
      rows_in(t % s_.row_block, here, table + t * row_);
      if (here == G) continue;
      for (double* x = table + t * row_; x < table + (t + 1) * row_; x += G)
        store_lanes(x, first_lanes(here, load_lanes<N>(x), all_lanes<N>(0.0)));
    }
  }

  // Makes A, b and S the tables of a cache block [3][T][Y][lanes].
  void place_tables(double* block) {
    s_.A = block;
    s_.b = block + T * row_;
    s_.S = block + 2 * T * row_;
  }

  // The same tables in single precision, copied. Returns the lanes that do not fit, which are 0 in the copy.
  uint32_t keep_floats(float* block) const {
    uint32_t large = 0;
    for (const double* table : {s_.A, s_.b, s_.S}) large |= lanes_above(1e37, table);
    for (const double* table : {s_.A, s_.b, s_.S}) {
      for (int64_t i = 0; i < T * row_; i += kLanes) store(block + i, load(table + i));
      for (int l = 0; l < n; ++l)
        for (int64_t i = 0; (large >> l & 1) != 0 && i < T * pre_.Y; ++i) block[i * G + l] = 0.0f;
      block += T * row_;
    }
    return large;
  }
  void load_floats(const float* block) {
    for (double* table : {s_.A, s_.b, s_.S}) {
      for (int64_t i = 0; i < T * row_; i += kLanes) store(table + i, load(block + i));
      block += T * row_;
    }
  }

  // Lanes of a table with an entry that is not below the limit.
  uint32_t lanes_above(double limit, const double* table) const {
    Wide top = all_lanes<N>(0.0);
    for (const double* x = table; x < table + T * row_; x += G) top = largest(load_lanes<N>(x), top);
    return failing(top, [&](double x) { return x < limit; }) & ((uint32_t{1} << n) - 1);
  }

  // Leaves these lanes to the log domain: they must not add to sums over lanes.
  void give_up(uint32_t lanes) {
    failed |= lanes;
    for (double* table : {s_.S, s_.A}) clear_failed(table);
  }

  int64_t row() const { return row_; }  // doubles of a position
  double score_seconds() const { return score_seconds_; }

 protected:
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
        if (t + k > 0) gold[l] += pre_.tr[static_cast<int64_t>(y[k - 1]) * YP + y[k]];
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
  void clear_failed(double* table) const {
    for (int l = 0; l < n; ++l)
      if ((failed >> l & 1) != 0)
        for (int64_t i = 0; i < T * pre_.Y; ++i) table[i * G + l] = 0.0;
  }

  const DataView& data_;
  const Prepared& pre_;
  const crfit::Direction* direction_;
  LaneScratch& s_;
  int64_t row_;
  uint32_t lost_ = 0;
  double score_seconds_ = 0.0;
};

// Calls call.operator()<N>() for a number of lanes.
template <class Call>
void by_lanes(int lanes, Call call) {
  if (lanes == crfit::kManyLanes)
    call.template operator()<crfit::kManyLanes / kLanes>();
  else
    call.template operator()<crfit::kFewLanes / kLanes>();
}

}  // namespace
