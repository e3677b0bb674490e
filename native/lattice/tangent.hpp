// Derivatives of one sequence's marginals along a direction r of the weights, for Hessian-vector products.
// Included by per-level files only.
//
// With q[t, j] and R[i, j] the scores of nodes and label pairs under r, "d" for the derivative along r at fixed scales,
// and the tables of forward_backward.hpp (s = S / c, z = s * beta):
//
//   dalpha_0 = alpha_0 * q_0;   dalpha_t = s_t * (dalpha_{t-1}^T E + alpha_{t-1}^T (E * R)) + alpha_t * q_t
//   dbeta_{T-1} = 0;   dz_t = z_t * q_t + s_t * dbeta_t;   dbeta_{t-1} = E dz_t + (E * R) z_t
//   e = sum_j dalpha_{T-1}[j] = d log Z
//   d p(t, j)    = dalpha * beta + alpha * dbeta - e alpha * beta
//   d p(t, i, j) = E[i, j] ((dalpha_{t-1}[i] - e alpha_{t-1}[i]) z_t[j] + alpha_{t-1}[i] dz_t[j]) + p(t, i, j) R[i, j]
//
// This needs no exponentials and no divisions: Tsuboi et al. (2011) divide pair by node marginals, A = dalpha / alpha,
// where an underflow gives 0/0. Their form is used with cached pair marginals. In the log domain derivatives are
// propagated through every operation, as in algorithmic differentiation (their baseline).
#pragma once

#include "lattice/sequence.hpp"

namespace {

using crfit::Kept;
using crfit::Tangent;

// out[j] = sum_i x[i] M[i][j] + y[i] N[i][j].
template <int P>
inline void vecmat_pair(Width<P> width, int Y, const double* __restrict x, const double* __restrict M,
                        const double* __restrict y, const double* __restrict N, double* __restrict out) {
  constexpr int kBlock = P > 0 && P <= 32 ? P : 8;
  constexpr int kVecs = kBlock / kLanes;
  const int YP = width.yp();
  for (int j0 = 0; j0 < YP; j0 += kBlock) {
    Vec a[kVecs] = {}, b[kVecs] = {};
    for (int i = 0; i < Y; ++i) {
      const Vec xi = splat(x[i]), yi = splat(y[i]);
      for (int k = 0; k < kVecs; ++k) {
        a[k] += xi * load(M + i * YP + j0 + k * kLanes);
        b[k] += yi * load(N + i * YP + j0 + k * kLanes);
      }
    }
    for (int k = 0; k < kVecs; ++k) store(out + j0 + k * kLanes, a[k] + b[k]);
  }
}

template <int P>
class TangentWorker : public SequenceWorker<P> {
  using Base = SequenceWorker<P>;

 public:
  using Base::begin, Base::T, Base::c;

  TangentWorker(const DataView& data, const Prepared& pre, const Tangent& tangent, const Kept* kept, bool log_domain,
                Scratch& scratch)
      : Base(data, pre, scratch), tangent_(tangent), kept_(kept), log_domain_(log_domain || tangent.propagate) {
    Base::derivatives_ = true;
  }

  // Sets: the direction's scores, and the lattice if it is not cached.
  void load_tangent(int64_t sequence) {
    from_ = from(sequence);
    if (from_ == nullptr) {
      Base::load(sequence);
    } else {
      Base::locate(sequence);
      if (Base::has_edges_ && !kept_->pairs) Base::load_pairs();
    }
    node_scores(Base::width_, Base::data_, *tangent_.step, begin, T, Base::s_.q);
  }

  // rows [T][YP] = c d p(t, j). outer [Y][YP] += c times the factor of E in d p(t, i, j), or, if E is not a factor,
  // pair_sum [Y][YP] += c d p(t, i, j) without p R of the shared transitions. With edge attributes also
  // pairs [T][Y][YP] = c d p(t, i, j).
  void differentiate(double* rows, double* outer, double* pair_sum, double* pairs) {
    if (from_ != nullptr && kept_->pairs) {
      from_pairs(rows, pair_sum, pairs);
      return;
    }
    if (from_ != nullptr) {
      unpack();
    } else {
      if (!log_domain_) Base::solve(true);
      return differentiate_solved(rows, outer, pair_sum, pairs);
    }
    from_tables(rows, outer, pair_sum, pairs);
  }

  // The same after solve(true). Overwrites the lattice.
  void differentiate_solved(double* rows, double* outer, double* pair_sum, double* pairs) {
    if (log_domain_ || Base::in_log_) return propagate(rows, pair_sum, pairs);
    for (int64_t t = 0; t < T; ++t)
      for (int j = 0; j < Base::pre_.YP; ++j) Base::s_.S[t * Base::pre_.YP + j] *= Base::s_.inv[t];
    from_tables(rows, outer, pair_sum, pairs);
  }

 private:
  const double* from(int64_t sequence) const {
    if (kept_ == nullptr || tangent_.propagate || kept_->block(sequence) == nullptr || !kept_->filled[sequence])
      return nullptr;
    return kept_->block(sequence);
  }

  // Sets: alpha, beta, S / c in S, z and, with edge attributes, the exponentials of the pairs.
  void unpack() {
    Scratch& s = Base::s_;
    const int Y = Base::pre_.Y, YP = Base::width_.yp();
    for (int64_t t = 0; t < T; ++t) {
      const double *alpha = from_ + t * Y, *beta = alpha + T * Y, *S = beta + T * Y;
      for (int j = 0; j < Y; ++j) {
        s.alpha[t * YP + j] = alpha[j];
        s.beta[t * YP + j] = beta[j];
        s.S[t * YP + j] = S[j];
        s.z[t * YP + j] = S[j] * beta[j];
      }
      for (int j = Y; j < YP; ++j) s.alpha[t * YP + j] = s.beta[t * YP + j] = s.S[t * YP + j] = s.z[t * YP + j] = 0.0;
    }
    Base::in_log_ = false;
    if (Base::has_edges_) Base::lattice_.all_pair_exponentials(T);
  }

  void from_tables(double* rows, double* outer, double* pair_sum, double* pairs) {
    Scratch& s = Base::s_;
    const int Y = Base::pre_.Y, YP = Base::width_.yp();
    const int64_t size = static_cast<int64_t>(Y) * YP;
    const bool edges = Base::has_edges_;
    double *R = s.matrix, *ER = s.matrix + size;  // of one position, with edge attributes
    for (int j = 0; j < YP; j += kLanes) store(s.dalpha + j, load(s.alpha + j) * load(s.q + j));
    for (int64_t t = 1; t < T; ++t) {
      const double *before = s.alpha + (t - 1) * YP, *E = Base::pre_.E, *scaled = tangent_.ER;
      if (edges) {
        E = s.pairs + t * size;
        step_pairs(t, R);
        for (int64_t i = 0; i < size; ++i) ER[i] = E[i] * R[i];
        scaled = ER;
      }
      double* moved = s.row;
      if (edges || Base::pre_.sparse == nullptr)
        vecmat_pair(Base::width_, Y, s.dalpha + (t - 1) * YP, E, before, scaled, moved);
      else
        sparse_products(Base::pre_.sparse->before_ptr, Base::pre_.sparse->before, Base::pre_.sparse->before_excess,
                        tangent_.before_ER, s.dalpha + (t - 1) * YP, before, moved);
      for (int j = 0; j < YP; j += kLanes) {
        const int64_t at = t * YP + j;
        store(s.dalpha + at, load(s.S + at) * load(moved + j) + load(s.alpha + at) * load(s.q + at));
      }
    }
    double e = 0.0;
    for (int j = 0; j < Y; ++j) e += s.dalpha[(T - 1) * YP + j];

    for (int j = 0; j < YP; ++j) s.dbeta[(T - 1) * YP + j] = 0.0;
    for (int64_t t = T - 1; t > 0; --t) {
      const double* z = s.z + t * YP;
      double *dz = s.dz + t * YP, *before = s.dbeta + (t - 1) * YP;
      for (int j = 0; j < YP; j += kLanes)
        store(dz + j, load(z + j) * load(s.q + t * YP + j) + load(s.S + t * YP + j) * load(s.dbeta + t * YP + j));
      if (edges) {
        const double* E = s.pairs + t * size;
        step_pairs(t, R);
        for (int64_t i = 0; i < size; ++i) ER[i] = E[i] * R[i];
        matvec(Base::width_, Y, E, dz, before);
        matvec(Base::width_, Y, ER, z, s.row);
        for (int j = 0; j < YP; j += kLanes) store(before + j, load(before + j) + load(s.row + j));
      } else if (Base::pre_.sparse != nullptr) {
        sparse_products(Base::pre_.sparse->after_ptr, Base::pre_.sparse->after, Base::pre_.sparse->after_excess,
                        tangent_.after_ER, dz, z, before);
      } else {
        vecmat_pair(Base::width_, Y, dz, Base::pre_.ET, z, tangent_.ERT, before);
      }
    }

    // Replace dalpha by dalpha - e alpha; then d p(t, j) = dalpha * beta + alpha * dbeta.
    const Vec ev = splat(e), cv = splat(c);
    for (int64_t k = 0; k < T * YP; k += kLanes) {
      const Vec alpha = load(s.alpha + k), centred = load(s.dalpha + k) - ev * alpha;
      store(s.dalpha + k, centred);
      store(rows + k, cv * (centred * load(s.beta + k) + alpha * load(s.dbeta + k)));
    }
    if (edges) {
      pairs_of_tables(pair_sum, pairs);
      return;
    }
    if (c != 1.0)
      for (int64_t k = YP; k < T * YP; ++k) {
        s.z[k] *= c;
        s.dz[k] *= c;
      }
    Base::add_products(s.dalpha, s.z, outer);
    Base::add_products(s.alpha, s.dz, outer);
  }

  // out = E x + (E * R) y, or its transpose, of sparse pairs.
  void sparse_products(const int32_t* ptr, const int32_t* other, const double* excess, const double* ER,
                       const double* x, const double* y, double* out) const {
    const int Y = Base::pre_.Y;
    double total = 0.0;
    for (int i = 0; i < Y; ++i) total += x[i];
    sparse_product(Y, Base::pre_.YP, Base::pre_.sparse->missing, ptr, other, excess, x, total, out);
    for (int j = 0; j < Y; ++j)
      for (int32_t k = ptr[j]; k < ptr[j + 1]; ++k) out[j] += ER[k] * y[other[k]];
  }

  void pairs_of_tables(double* pair_sum, double* pairs) {
    Scratch& s = Base::s_;
    const int Y = Base::pre_.Y, YP = Base::width_.yp();
    const int64_t size = static_cast<int64_t>(Y) * YP;
    for (int64_t t = 1; t < T; ++t) {
      const double *E = s.pairs + t * size, *z = s.z + t * YP, *dz = s.dz + t * YP;
      const double* R = step_pairs(t, s.matrix);
      for (int i = 0; i < Y; ++i) {
        const double alpha = s.alpha[(t - 1) * YP + i], dalpha = s.dalpha[(t - 1) * YP + i];
        for (int j = 0; j < Y; ++j) {
          const int64_t at = i * YP + j;
          add_pair(t, at, c * E[at] * (dalpha * z[j] + alpha * dz[j]), c * E[at] * alpha * z[j], R[at], pair_sum,
                   pairs);
        }
      }
    }
  }

  // The paper's recursions: A = dalpha / alpha and B = dbeta / beta from conditional probabilities.
  void from_pairs(double* rows, double* pair_sum, double* pairs) {
    Scratch& s = Base::s_;
    const int Y = Base::pre_.Y, YP = Base::width_.yp();
    const double *node = from_, *pair = from_ + T * Y;
    const auto p = [&](int64_t t, int i, int j) { return pair[((t - 1) * Y + i) * Y + j]; };
    for (int j = 0; j < Y; ++j) s.dalpha[j] = s.q[j];
    for (int64_t t = 1; t < T; ++t) {
      const double* R = step_pairs(t, s.matrix);
      for (int j = 0; j < Y; ++j) {
        double total = 0.0, mass = 0.0;
        for (int i = 0; i < Y; ++i) {
          total += p(t, i, j) * (R[i * YP + j] + s.dalpha[(t - 1) * YP + i]);
          mass += p(t, i, j);
        }
        s.dalpha[t * YP + j] = s.q[t * YP + j] + (mass > 0.0 ? total / mass : 0.0);
      }
    }
    for (int j = 0; j < Y; ++j) s.dbeta[(T - 1) * YP + j] = 0.0;
    for (int64_t t = T - 1; t > 0; --t) {
      const double* R = step_pairs(t, s.matrix);
      for (int i = 0; i < Y; ++i) {
        double total = 0.0, mass = 0.0;
        for (int j = 0; j < Y; ++j) {
          total += p(t, i, j) * (R[i * YP + j] + s.q[t * YP + j] + s.dbeta[t * YP + j]);
          mass += p(t, i, j);
        }
        s.dbeta[(t - 1) * YP + i] = mass > 0.0 ? total / mass : 0.0;
      }
    }
    double e = 0.0;
    for (int j = 0; j < Y; ++j) e += node[(T - 1) * Y + j] * s.dalpha[(T - 1) * YP + j];
    close_conditionals(e, node, Y, rows, [&](int64_t t, int i, int j) { return p(t, i, j); }, pair_sum, pairs);
  }

  // Log domain: forward-backward again, with the derivative of every log-sum-exp.
  void propagate(double* rows, double* pair_sum, double* pairs) {
    Scratch& s = Base::s_;
    const int Y = Base::pre_.Y, YP = Base::width_.yp();
    const auto psi = [&](int64_t t, int i, int j) {
      return Base::has_edges_ ? s.pairs[(t * Y + i) * YP + j] : Base::pre_.tr[i * YP + j];
    };
    for (int j = 0; j < Y; ++j) {
      s.alpha[j] = s.U[j];
      s.dalpha[j] = s.q[j];
    }
    for (int64_t t = 1; t < T; ++t) {
      const double* R = step_pairs(t, s.matrix);
      for (int j = 0; j < Y; ++j) {
        const int64_t here = t * YP + j, before = (t - 1) * YP;
        double derivative;
        const double value = log_sum_exp_with_derivative(
            Y, [&](int i) { return s.alpha[before + i] + psi(t, i, j); },
            [&](int i) { return s.dalpha[before + i] + R[i * YP + j]; }, derivative);
        s.alpha[here] = s.U[here] + value;
        s.dalpha[here] = s.q[here] + derivative;
      }
    }
    for (int j = 0; j < Y; ++j) s.beta[(T - 1) * YP + j] = s.dbeta[(T - 1) * YP + j] = 0.0;
    for (int64_t t = T - 1; t > 0; --t) {
      const double* R = step_pairs(t, s.matrix);
      const double *u = s.U + t * YP, *q = s.q + t * YP, *after = s.beta + t * YP, *dafter = s.dbeta + t * YP;
      for (int i = 0; i < Y; ++i)
        s.beta[(t - 1) * YP + i] = log_sum_exp_with_derivative(
            Y, [&](int j) { return psi(t, i, j) + u[j] + after[j]; },
            [&](int j) { return R[i * YP + j] + q[j] + dafter[j]; }, s.dbeta[(t - 1) * YP + i]);
    }
    double e;
    const double* last = s.alpha + (T - 1) * YP;
    log_sum_exp_with_derivative(
        Y, [&](int j) { return last[j]; }, [&](int j) { return s.dalpha[(T - 1) * YP + j]; }, e);
    Base::in_log_ = true;
    for (int64_t t = 0; t < T; ++t) Base::node(t, 1.0, s.dz + t * YP);
    double* p = s.matrix + static_cast<int64_t>(Y) * YP;
    int64_t at = 0;
    close_conditionals(
        e, s.dz, YP, rows,
        [&](int64_t t, int i, int j) {
          if (t != at) Base::pair(t, 1.0, p);
          at = t;
          return p[i * YP + j];
        },
        pair_sum, pairs);
  }

  // From A in dalpha and B in dbeta: d p = p (A + R + q + B - e).
  template <class Pair>
  void close_conditionals(double e, const double* node, int stride, double* rows, Pair pair, double* pair_sum,
                          double* pairs) {
    Scratch& s = Base::s_;
    const int Y = Base::pre_.Y, YP = Base::width_.yp();
    for (int64_t t = 0; t < T; ++t)
      for (int j = 0; j < YP; ++j) {
        const int64_t at = t * YP + j;
        rows[at] = j < Y ? c * node[t * stride + j] * (s.dalpha[at] + s.dbeta[at] - e) : 0.0;
      }
    for (int64_t t = 1; t < T; ++t) {
      const double* R = step_pairs(t, s.matrix);
      for (int i = 0; i < Y; ++i)
        for (int j = 0; j < Y; ++j) {
          const int64_t here = t * YP + j;
          const double p = c * pair(t, i, j);
          add_pair(t, i * YP + j, p * (s.dalpha[(t - 1) * YP + i] + s.q[here] + s.dbeta[here] - e), p, R[i * YP + j],
                   pair_sum, pairs);
        }
    }
  }

  // d p(t, i, j) = partial + p R; the caller adds p times the shared transitions' part of R.
  void add_pair(int64_t t, int64_t at, double partial, double p, double R, double* pair_sum, double* pairs) {
    pair_sum[at] += partial + p * (R - tangent_.step->tr[at]);
    if (pairs != nullptr) pairs[t * Base::pre_.Y * Base::pre_.YP + at] = partial + p * R;
  }

  // Scores R [Y][YP] of the direction for label pairs that end at position t; `room` is used if they differ by
  // position.
  const double* step_pairs(int64_t t, double* room) const {
    if (!Base::has_edges_) return tangent_.step->tr;
    for (int i = 0; i < Base::pre_.Y * Base::pre_.YP; ++i) room[i] = 0.0;
    pair_scores(Base::data_, *tangent_.step, begin + t, 1.0, room);
    return room;
  }

  const Tangent& tangent_;
  const Kept* kept_;
  bool log_domain_;
  const double* from_ = nullptr;  // block of this sequence, or null
};

}  // namespace
