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

// done(j, sum_i M[i][j] x[i] + D[i][j] y[i]) for all labels; M, D [Y][YP].
template <int N, class Done>
inline void dense_products(int Y, int YP, const double* M, const double* D, const double* x, const double* y,
                           const Done& done) {
  constexpr int G = Lanes<N>::kCount, J = kLanes == 8 ? 16 / N : N <= 4 ? 8 / N : 1;
  constexpr int kStep = J > 8 ? 8 : J;  // divides YP
  for (int j0 = 0; j0 < YP; j0 += kStep) {
    Lanes<N> acc[kStep];
    for (int k = 0; k < kStep; ++k) acc[k] = all_lanes<N>(0.0);
    for (int i = 0; i < Y; ++i) {
      const Lanes<N> xi = load_lanes<N>(x + i * G), yi = load_lanes<N>(y + i * G);
      const double *m = M + static_cast<int64_t>(i) * YP + j0, *d = D + static_cast<int64_t>(i) * YP + j0;
      for (int k = 0; k < kStep; ++k) acc[k] += m[k] * xi + d[k] * yi;
    }
    for (int k = 0; k < kStep; ++k)
      if (j0 + k < Y) done(j0 + k, acc[k]);
  }
}

// The same for listed pairs.
template <int N, class Done>
inline void listed_products(int Y, const int32_t* ptr, const int32_t* other, const double* excess, const double* ER,
                            const double* x, const double* y, const Lanes<N>& all, const Done& done) {
  constexpr int G = Lanes<N>::kCount;
  for (int j = 0; j < Y; ++j) {
    Lanes<N> total = all;
    for (int32_t k = ptr[j]; k < ptr[j + 1]; ++k) {
      const int64_t at = static_cast<int64_t>(other[k]) * G;
      total += excess[k] * load_lanes<N>(x + at) + ER[k] * load_lanes<N>(y + at);
    }
    done(j, total);
  }
}

template <int N>
class LaneTangent : public LaneLattice<N> {
  using Base = LaneLattice<N>;
  using Wide = Lanes<N>;
  static constexpr int G = Base::G;

 public:
  LaneTangent(const DataView& data, const Prepared& pre, const crfit::Tangent& tangent, LaneScratch& scratch)
      : Base(data, pre, nullptr, scratch), tangent_(tangent) {}

  // From A, b and s in the table S. Sets: z, dz, dA - e A in dA.
  [[gnu::noinline]] void differentiate() {
    const Prepared& pre = Base::pre_;
    LaneScratch& s = Base::s_;
    const int Y = pre.Y;
    const int64_t row = Base::row_, T = Base::T;
    const SparsePairs* sparse = pre.sparse;
    Base::load_table(*tangent_.step, s.q);
    Wide e = all_lanes<N>(0.0), total = e;
    int here = Base::n;
    for (int64_t t = 0; t < T; ++t) {
      const double *A = s.A + t * row, *S = s.S + t * row, *q = s.q + t * row, *b = s.b + t * row;
      double* dA = s.dA + t * row;
      Wide sum = all_lanes<N>(0.0), slope = sum;
      const auto arrive = [&](int j, const Wide& moved) __attribute__((always_inline)) {
        const Wide value = load_lanes<N>(S + j * G) * moved + load_lanes<N>(A + j * G) * load_lanes<N>(q + j * G);
        store_lanes(dA + j * G, value);
        sum += value;
        slope += value * load_lanes<N>(b + j * G);
      };
      if (t == 0)
        for (int j = 0; j < Y; ++j) arrive(j, all_lanes<N>(0.0));
      else if (sparse != nullptr)
        listed_products<N>(Y, sparse->before_ptr, sparse->before, sparse->before_excess, tangent_.before_ER, dA - row,
                           A - row, sparse->missing * total, arrive);
      else
        dense_products<N>(Y, pre.YP, pre.E, tangent_.ER, dA - row, A - row, arrive);
      total = sum;
      // In the lanes that end here b = inv for all labels.
      const int stay = Base::in_use(t + 1, here);
      if (stay < here) e = first_lanes(stay, e, first_lanes(here, slope, e));
      here = stay;
    }
    Wide dz_total = all_lanes<N>(0.0);
    for (int64_t t = T - 1; t >= 0; --t) {
      const double *A = s.A + t * row, *S = s.S + t * row, *q = s.q + t * row, *b = s.b + t * row;
      double *dA = s.dA + t * row, *z = s.z + t * row, *dz = s.dz + t * row;
      Wide sum = all_lanes<N>(0.0);
      const auto arrive = [&](int i, const Wide& db) __attribute__((always_inline)) {
        const int64_t at = static_cast<int64_t>(i) * G;
        const Wide si = load_lanes<N>(S + at), zi = si * load_lanes<N>(b + at);
        const Wide dzi = zi * load_lanes<N>(q + at) + si * db, a = load_lanes<N>(A + at);
        const Wide centred = load_lanes<N>(dA + at) - e * a;
        store_lanes(z + at, zi);
        store_lanes(dz + at, dzi);
        store_lanes(dA + at, centred);
        sum += dzi;
        // d p overwrites q, which is not needed any more
        store_lanes(s.q + t * row + at, centred * load_lanes<N>(b + at) + a * db);
      };
      // In lanes that have ended z = dz = 0: db = 0 also where they begin.
      if (t == T - 1)
        for (int i = 0; i < Y; ++i) arrive(i, all_lanes<N>(0.0));
      else if (sparse != nullptr)
        listed_products<N>(Y, sparse->after_ptr, sparse->after, sparse->after_excess, tangent_.after_ER, dz + row,
                           z + row, sparse->missing * dz_total, arrive);
      else
        dense_products<N>(Y, pre.YP, pre.ET, tangent_.ERT, dz + row, z + row, arrive);
      dz_total = sum;
    }
  }

  // Calls emit(t, here, d p(t, :)) for every position.
  template <class Emit>
  void emit(const Emit& emit) const {
    int here = Base::n;
    for (int64_t t = 0; t < Base::T; ++t) {
      here = Base::in_use(t, here);
      emit(t, here, Base::s_.q + t * Base::row_);
    }
  }

 private:
  const crfit::Tangent& tangent_;
};

}  // namespace
