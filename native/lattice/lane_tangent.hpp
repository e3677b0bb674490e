// Derivatives of the tables of lane_lattice.hpp along a direction r of the weights, for Hessian-vector products; the
// formulas are those of tangent.hpp. Included by per-level files only.
//
// With q[t, j] and R[i, j] the scores under r, "d" for the derivative at fixed scales, and s_t = S_t inv_{t-1}:
//   dA_0 = A_0 q_0;   dA_t = s_t * (dA_{t-1}^T E + A_{t-1}^T (E * R)) + A_t q_t
//   db_{T-1} = 0;     dz_t = z_t q_t + s_t db_t;   db_{t-1} = E dz_t + (E * R) z_t
//   e = sum_j dA_{T-1}[j] inv_{T-1} = d log Z;   then dA becomes dA - e A
//   d p(t, j) = dA b + A db;   d p(t, i, j) = E[i, j] (dA_{t-1}[i] z_t[j] + A_{t-1}[i] dz_t[j]) + p(t, i, j) R[i, j]
#pragma once

#include "lattice/lane_lattice.hpp"

namespace {

// done(j, sum_i M[i][j] x[i] + D[i][j] y[i]) for all labels; rows of M and D are m_step apart, those of x and y x_step.
template <int N, class Done>
[[gnu::always_inline]] inline void dense_products(int Y, int YP, int64_t m_step, const double* M, const double* D,
                                                  int64_t x_step, const double* x, const double* y, const Done& done) {
  constexpr int J = kLanes == 8 ? 16 / N : N <= 4 ? 8 / N : 1;
  constexpr int kStep = J > 8 ? 8 : J;  // divides YP
  for (int j0 = 0; j0 < YP; j0 += kStep) {
    Lanes<N> acc[kStep];
    for (int k = 0; k < kStep; ++k) acc[k] = all_lanes<N>(0.0);
    for (int i = 0; i < Y; ++i) {
      const Lanes<N> xi = load_lanes<N>(x + i * x_step), yi = load_lanes<N>(y + i * x_step);
      const double *m = M + i * m_step + j0, *d = D + i * m_step + j0;
      for (int k = 0; k < kStep; ++k) acc[k] += m[k] * xi + d[k] * yi;
    }
    for (int k = 0; k < kStep; ++k)
      if (j0 + k < Y) done(j0 + k, acc[k]);
  }
}

// total + the listed pairs of state j.
template <int N>
[[gnu::always_inline]] inline Lanes<N> listed_sums(int64_t j, const int32_t* ptr, const int32_t* other,
                                                   const double* excess, const double* ER, const double* x,
                                                   const double* y, Lanes<N> total) {
  for (int32_t k = ptr[j]; k < ptr[j + 1]; ++k) {
    const int64_t at = static_cast<int64_t>(other[k]) * Lanes<N>::kCount;
    total += excess[k] * load_lanes<N>(x + at) + ER[k] * load_lanes<N>(y + at);
  }
  return total;
}

template <int N, bool kHistories = false>
class LaneTangent : public LaneLattice<N, kHistories> {
  using Base = LaneLattice<N, kHistories>;
  using Wide = Lanes<N>;
  static constexpr int G = Base::G;

 public:
  LaneTangent(const DataView& data, const Prepared& pre, const crfit::Tangent& tangent, LaneScratch& scratch)
      : Base(data, pre, nullptr, scratch), tangent_(tangent) {}

  // From A, b and s in the table S. Sets: z in z_apart, dz, dA - e A in dA.
  [[gnu::noinline]] void differentiate() {
    LaneScratch& s = Base::s_;
    const int Y = Base::pre_.Y;
    const int64_t row = Base::row_, node_row = Base::node_row_, T = Base::T;
    const Wide zero = all_lanes<N>(0.0);
    Base::load_table(*tangent_.step, s.q);
    Wide e = zero, total = zero;
    int here = Base::n;
    for (int64_t t = 0; t < T; ++t) {
      const double *A = s.A + t * row, *S = s.S + t * node_row, *q = s.q + t * node_row, *b = s.b + t * row;
      double* dA = s.dA + t * row;
      Wide sum = zero, slope = zero;
      const auto arrive = [&](int64_t j, int64_t y, const Wide& moved) __attribute__((always_inline)) {
        const Wide value = load_lanes<N>(S + y * G) * moved + load_lanes<N>(A + j * G) * load_lanes<N>(q + y * G);
        store_lanes(dA + j * G, value);
        sum += value;
        slope += value * load_lanes<N>(b + j * G);
      };
      if (t == 0)
        for (int j = 0; j < Y; ++j) arrive(j, j, zero);
      else
        forward_products(t, dA - row, A - row, total, arrive);
      total = sum;
      // In the lanes that end here b = inv for all labels.
      const int stay = Base::in_use(t + 1, here);
      if (stay < here) e = first_lanes(stay, e, first_lanes(here, slope, e));
      here = stay;
    }
    Wide dz_total = zero;
    for (int64_t t = T - 1; t >= 0; --t) {
      const double *A = s.A + t * row, *S = s.S + t * node_row, *b = s.b + t * row;
      double *q = s.q + t * node_row, *dA = s.dA + t * row, *z = s.z_apart + t * row, *dz = s.dz + t * row;
      double* dp = kHistories ? s.row : q;
      if (kHistories)
        for (int y = 0; y < Y; ++y) store_lanes(dp + y * G, zero);
      Wide sum = zero;
      const auto arrive = [&](int64_t i, int64_t y, const Wide& db) __attribute__((always_inline)) {
        const int64_t at = i * G;
        const Wide si = load_lanes<N>(S + y * G), zi = si * load_lanes<N>(b + at);
        const Wide dzi = zi * load_lanes<N>(q + y * G) + si * db, a = load_lanes<N>(A + at);
        const Wide centred = load_lanes<N>(dA + at) - e * a;
        store_lanes(z + at, zi);
        store_lanes(dz + at, dzi);
        store_lanes(dA + at, centred);
        sum += dzi;
        const Wide change = centred * load_lanes<N>(b + at) + a * db;
        store_lanes(dp + y * G, kHistories ? load_lanes<N>(dp + y * G) + change : change);
      };
      // In lanes that have ended z = dz = 0: db = 0 also where they begin.
      if (t == T - 1)
        for (int64_t i = 0; i < Base::states(t); ++i) arrive(i, kHistories ? i % Y : i, zero);
      else
        backward_products(t + 1, dz + row, z + row, dz_total, arrive);
      dz_total = sum;
      // d p overwrites q, which is not needed any more
      if (kHistories)
        for (int y = 0; y < Y; ++y) store_lanes(q + y * G, load_lanes<N>(dp + y * G));
    }
  }

  // Calls emit(t, here, d p(t, :)) for every position.
  template <class Emit>
  void emit(const Emit& emit) const {
    int here = Base::n;
    for (int64_t t = 0; t < Base::T; ++t) {
      here = Base::in_use(t, here);
      emit(t, here, Base::s_.q + t * Base::node_row_);
    }
  }

 private:
  // done(j, y, sum_i x[i, h] E + y[i, h] E R) for the states j = (h, y) after t >= 1; total = sum of x.
  template <class Done>
  [[gnu::always_inline]] inline void forward_products(int64_t t, const double* x, const double* a, const Wide& total,
                                                      const Done& done) const {
    const Prepared& pre = Base::pre_;
    const SparsePairs* pairs = pre.sparse;
    const int64_t Y = pre.Y, YP = pre.YP;
    if constexpr (!kHistories) {
      if (pairs != nullptr)
        for (int j = 0; j < Y; ++j)
          done(j, j,
               listed_sums<N>(j, pairs->before_ptr, pairs->before, pairs->before_excess, tangent_.before_ER, x, a,
                              pairs->missing * total));
      else
        dense_products<N>(pre.Y, pre.YP, YP, pre.E, tangent_.ER, G, x, a,
                          [&](int j, const Wide& sum) __attribute__((always_inline)) { done(j, j, sum); });
      return;
    }
    const int64_t H = Base::histories(t), table = pre.tables[(t < pre.order ? t : pre.order) - 1].tr - pre.tr;
    const double *E = pre.E + table, *ER = tangent_.ER + table;
    for (int64_t h = 0; h < H; ++h) {
      if (t < pre.order) {
        const Wide dx = load_lanes<N>(x + h * G), from = load_lanes<N>(a + h * G);
        for (int64_t y = 0; y < Y; ++y) done(h * Y + y, y, E[h * YP + y] * dx + ER[h * YP + y] * from);
      } else if (pairs != nullptr) {
        Wide dx = all_lanes<N>(0.0), from = dx;
        for (int64_t at = h * G; at < Base::row_; at += H * G) {
          dx += load_lanes<N>(x + at);
          from += load_lanes<N>(a + at);
        }
        for (int64_t y = 0, j = h * Y; y < Y; ++y, ++j)
          done(j, y,
               listed_sums<N>(j, pairs->before_ptr, pairs->before, pairs->before_excess, tangent_.before_ER, x, a,
                              pairs->base[j] * dx + tangent_.base_ER[j] * from));
      } else {
        dense_products<N>(pre.Y, pre.YP, H * YP, E + h * YP, ER + h * YP, H * G, x + h * G, a + h * G,
                          [&](int y, const Wide& sum) __attribute__((always_inline)) { done(h * Y + y, y, sum); });
      }
    }
  }

  // done(j, y, sum_y' E dz[h, y'] + E R z[h, y']) for the states j = (i, h) before t >= 1, y their last label; total =
  // sum of dz.
  template <class Done>
  [[gnu::always_inline]] inline void backward_products(int64_t t, const double* dz, const double* z, const Wide& total,
                                                       const Done& done) const {
    const Prepared& pre = Base::pre_;
    const SparsePairs* pairs = pre.sparse;
    const int64_t Y = pre.Y, YP = pre.YP;
    if constexpr (!kHistories) {
      if (pairs != nullptr)
        for (int i = 0; i < Y; ++i)
          done(i, i,
               listed_sums<N>(i, pairs->after_ptr, pairs->after, pairs->after_excess, tangent_.after_ER, dz, z,
                              pairs->missing * total));
      else
        dense_products<N>(pre.Y, pre.YP, YP, pre.ET, tangent_.ERT, G, dz, z,
                          [&](int i, const Wide& sum) __attribute__((always_inline)) { done(i, i, sum); });
      return;
    }
    const int64_t H = Base::histories(t), table = pre.tables[(t < pre.order ? t : pre.order) - 1].tr - pre.tr;
    const double *E = pre.E + table, *ER = tangent_.ER + table;
    for (int64_t h = 0; h < H; ++h) {
      Wide sum = all_lanes<N>(0.0);
      if (t < pre.order) {
        for (int64_t y = 0, at = h * Y * G; y < Y; ++y, at += G)
          sum += E[h * YP + y] * load_lanes<N>(dz + at) + ER[h * YP + y] * load_lanes<N>(z + at);
        done(h, h % Y, sum);
      } else if (pairs != nullptr) {
        for (int64_t j = h * Y; j < (h + 1) * Y; ++j)
          sum += pairs->base[j] * load_lanes<N>(dz + j * G) + tangent_.base_ER[j] * load_lanes<N>(z + j * G);
        for (int64_t j = h; j < pre.n_states; j += H)
          done(j, h % Y,
               listed_sums<N>(j, pairs->after_ptr, pairs->after, pairs->after_excess, tangent_.after_ER, dz, z, sum));
      } else {
        dense_products<N>(
            pre.Y, pre.YP, YP, pre.ET + h * Y * YP, tangent_.ERT + h * Y * YP, G, dz + h * Y * G, z + h * Y * G,
            [&](int i, const Wide& moved) __attribute__((always_inline)) { done(i * H + h, h % Y, moved); });
      }
    }
  }

  const crfit::Tangent& tangent_;
};

}  // namespace
