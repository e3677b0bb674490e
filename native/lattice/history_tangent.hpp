// Derivatives of one sequence's marginals along a direction of the weights, with label histories: tangent.hpp for order
// k >= 2. Included by per-level files only.
//
// Names as in tangent.hpp and history_forward_backward.hpp. R_m are the direction's n-gram scores, summed over the
// lengths like those of the weights, Q_t[h, y] its scores of node and edge attributes, s_t = F_t / c_t:
//
//   dalpha_t[h, y] = s_t[h, y] sum_i (dalpha_{t-1}[i, h] E_m + alpha_{t-1}[i, h] E_m R_m) + alpha_t[h, y] Q_t[h, y]
//   dz_t = z_t * Q_t + s_t * dbeta_t;   dbeta_{t-1}[i, h] = sum_y E_m dz_t[h, y] + E_m R_m z_t[h, y]
//   e = sum dalpha_{T-1};   d p(t, state) = (dalpha - e alpha) * beta + alpha * dbeta
//   d p(t, i, h, y) = E_m ((dalpha_{t-1} - e alpha_{t-1})[i, h] z_t[h, y] + alpha_{t-1}[i, h] dz_t[h, y]) + p R_m
#pragma once

#include "lattice/history_sequence.hpp"

namespace {

using crfit::Kept;
using crfit::Tangent;

template <int P>
class HistoryTangentWorker : public HistoryWorker<P> {
  using Base = HistoryWorker<P>;
  using Base::data_, Base::pre_, Base::s_, Base::has_edges_, Base::width_, Base::states_;

 public:
  using Base::begin, Base::T, Base::c;

  HistoryTangentWorker(const DataView& data, const Prepared& pre, const Tangent& tangent, const Kept* kept,
                       bool log_domain, Scratch& scratch)
      : Base(data, pre, scratch), tangent_(tangent), kept_(kept), log_domain_(log_domain || tangent.propagate) {}

  // Sets: the direction's scores, and the lattice if it is not cached.
  void load_tangent(int64_t sequence) {
    from_ = nullptr;
    if (kept_ != nullptr && !tangent_.propagate && kept_->filled[sequence]) from_ = kept_->block(sequence);
    if (from_ == nullptr) {
      Base::load(sequence);
    } else {
      Base::locate(sequence);
      if (!kept_->pairs) Base::load_edges();
    }
    node_scores(width_, data_, *tangent_.step, begin, T, s_.q);
  }

  // rows [T][YP] = c d p(t, j). outer += c times the factor of E in d p of the n-grams, or, if E is not a factor,
  // sums += c d p without p R. With edge attributes also pairs [T][Y][YP] = c d p(t, i, j).
  void differentiate(double* rows, double* outer, double* sums, double* pairs) {
    if (from_ != nullptr && kept_->pairs) return from_ngrams(rows, sums, pairs);
    if (from_ != nullptr) {
      unpack();
    } else {
      if (!log_domain_) Base::solve(true);
      return differentiate_solved(rows, outer, sums, pairs);
    }
    from_tables(rows, outer, pairs);
  }

  // The same after solve(true). Overwrites the lattice.
  void differentiate_solved(double* rows, double* outer, double* sums, double* pairs) {
    if (log_domain_ || Base::in_log_) return propagate(rows, sums, pairs);
    for (int64_t t = 0; t < T; ++t)
      for (int64_t j = 0; j < pre_.YP; ++j) s_.S[t * pre_.YP + j] *= s_.inv[t];
    from_tables(rows, outer, pairs);
  }

 private:
  // Probabilities of the n-grams that end at a position, one row per history.
  struct Rows {
    const double* p;
    int64_t stride;
    const double* row(int64_t history) const { return p + history * stride; }
  };

  // Sets: alpha, beta, S / c in S, z and the exponentials of edge attributes.
  void unpack() {
    const int64_t Y = pre_.Y, YP = width_.yp(), size = states_.size;
    const double* from = from_;
    const auto copy = [&](double* table, int64_t n_rows) {
      for (int64_t h = 0; h < n_rows; ++h, from += Y)
        for (int64_t j = 0; j < YP; ++j) table[h * YP + j] = j < Y ? from[j] : 0.0;
    };
    if (has_edges_) Base::lattice_.edge_exponentials(T);
    for (int64_t t = 0; t < T; ++t) {
      const int64_t n_rows = states_.rows(t);
      copy(s_.alpha + t * size, n_rows);
      copy(s_.beta + t * size, n_rows);
      copy(s_.S + t * YP, 1);
      for (int64_t h = 0; h < n_rows; ++h) {
        const double* edge = Base::lattice_.edge_row(t, h);
        const int64_t at = t * size + h * YP;
        for (int64_t j = 0; j < YP; j += kLanes)
          store(s_.z + at + j, Base::lattice_.factor(t, edge, j) * load(s_.beta + at + j));
      }
    }
    Base::in_log_ = false;
  }

  void from_tables(double* rows, double* outer, double* pairs) {
    const int64_t YP = width_.yp(), size = states_.size;
    double *moved = s_.row, *turned = s_.matrix + pre_.Y * YP;  // [YP] products with E and E * R
    for (int64_t t = 0; t < T; ++t) {
      const double* edges = step_edges(t);
      for (int64_t h = 0; h < states_.rows(t); ++h) {
        const double *edge = Base::lattice_.edge_row(t, h), *r = edge_row(edges, h);
        if (t > 0) {
          // sum_i dalpha_{t-1}[i, h] E_m and sum_i alpha_{t-1}[i, h] E_m R_m
          Base::lattice_.arrive(t, h, s_.dalpha, states_.table(t).E, moved);
          Base::lattice_.arrive(t, h, s_.alpha, turned_table(t), turned);
        }
        const int64_t at = t * size + h * YP;
        for (int64_t j = 0; j < YP; j += kLanes) {
          Vec d = load(s_.alpha + at + j) * directions(t, r, j);
          if (t > 0) d += Base::lattice_.factor(t, edge, j) * (load(moved + j) + load(turned + j));
          store(s_.dalpha + at + j, d);
        }
      }
    }
    for (int64_t i = 0; i < states_.rows(T - 1) * YP; ++i) s_.dbeta[(T - 1) * size + i] = 0.0;
    for (int64_t t = T - 1; t > 0; --t) {
      const double* edges = step_edges(t);
      double *z = s_.z + t * size, *dz = s_.dz + t * size, *before = s_.dbeta + (t - 1) * size;
      for (int64_t h = 0; h < states_.rows(t); ++h) {
        const double *edge = Base::lattice_.edge_row(t, h), *r = edge_row(edges, h);
        for (int64_t j = 0; j < YP; j += kLanes) {
          const int64_t at = h * YP + j;
          // dz_t = z_t * Q_t + s_t * dbeta_t
          store(dz + at, load(z + at) * directions(t, r, j) +
                             Base::lattice_.factor(t, edge, j) * load(s_.dbeta + t * size + at));
        }
        Base::lattice_.leave(t, h, dz, states_.table(t).E, pre_.ET, moved);
        Base::lattice_.leave(t, h, z, turned_table(t), tangent_.ERT, turned);
        for (int64_t i = 0; i < states_.dropped(t); ++i)
          before[i * states_.step(t) + states_.place(h)] = moved[i] + turned[i];
      }
    }
    close_tables(rows, pairs);
    if (c != 1.0)
      for (int64_t t = 1; t < T; ++t)
        for (int64_t i = t * size; i < t * size + states_.rows(t) * YP; ++i) {
          s_.z[i] *= c;
          s_.dz[i] *= c;
        }
    // The factor of E_m in d p(t, i, h, y), summed over t; p R_m is added by the caller.
    add_history_outer(width_, states_, T, s_.dalpha, s_.z, outer);
    add_history_outer(width_, states_, T, s_.alpha, s_.dz, outer);
  }

  // Replaces dalpha by dalpha - e alpha; sums d p of the states to d p of labels and label pairs.
  void close_tables(double* rows, double* pairs) {
    const int64_t Y = pre_.Y, YP = width_.yp(), size = states_.size;
    double e = 0.0;
    for (int64_t state = 0; state < states_.rows(T - 1) * Y; ++state)
      e += s_.dalpha[(T - 1) * size + states_.place(state)];
    clear(rows, pairs);
    for (int64_t t = 0; t < T; ++t)
      for (int64_t h = 0; h < states_.rows(t); ++h) {
        double *row = rows + t * YP, *pair = pairs != nullptr ? pairs + (t * Y + h % Y) * YP : nullptr;
        for (int64_t j = 0; j < YP; j += kLanes) {
          const int64_t at = t * size + h * YP + j;
          // d p = (dalpha - e alpha) * beta + alpha * dbeta, centred = dalpha - e alpha
          const Vec alpha = load(s_.alpha + at), centred = load(s_.dalpha + at) - splat(e) * alpha;
          const Vec d = splat(c) * (centred * load(s_.beta + at) + alpha * load(s_.dbeta + at));
          store(s_.dalpha + at, centred);
          store(row + j, load(row + j) + d);
          if (pair != nullptr && t > 0) store(pair + j, load(pair + j) + d);
        }
      }
  }

  // The recursions of Tsuboi et al. (2011) on cached n-gram marginals: A = dalpha / alpha and B = dbeta / beta from
  // conditional probabilities.
  void from_ngrams(double* rows, double* sums, double* pairs) {
    const int64_t Y = pre_.Y, YP = width_.yp(), size = states_.size;
    const auto kept = [&](int64_t t) { return Rows{from_ + crfit::kept_size(true, t, Y, pre_.order), Y}; };
    double *total = s_.row, *mass = s_.matrix + Y * YP;  // [Y] sums over i of p (A + R) and of p
    for (int64_t y = 0; y < Y; ++y) s_.dalpha[y] = s_.q[y];
    for (int64_t t = 1; t < T; ++t) {
      const double *R = step_table(t), *edges = step_edges(t);
      const Rows p_t = kept(t);
      const int64_t n_rows = states_.rows(t), step = states_.step(t);
      for (int64_t h = 0; h < n_rows; ++h) {
        for (int64_t y = 0; y < Y; ++y) total[y] = mass[y] = 0.0;
        const double *A = s_.dalpha + (t - 1) * size + states_.place(h), *r = edge_row(edges, h);
        for (int64_t i = 0; i < states_.dropped(t); ++i) {
          const double *p = p_t.row(i * n_rows + h), *R_row = R + (i * n_rows + h) * YP;
          for (int64_t y = 0; y < Y; ++y) {
            // A_t[h, y] = Q_t[h, y] + sum_i p(i | h, y) (A_{t-1}[i, h] + R_m[i, h, y]), p(i | h, y) = p / mass
            total[y] += p[y] * (A[i * step] + R_row[y]);
            mass[y] += p[y];
          }
        }
        for (int64_t y = 0; y < Y; ++y)
          s_.dalpha[t * size + h * YP + y] = direction(t, r, y) + (mass[y] > 0.0 ? total[y] / mass[y] : 0.0);
      }
    }
    for (int64_t i = 0; i < states_.rows(T - 1) * YP; ++i) s_.dbeta[(T - 1) * size + i] = 0.0;
    for (int64_t t = T - 1; t > 0; --t) {
      const double *R = step_table(t), *after = add_direction(t);
      const Rows p_t = kept(t);
      const int64_t n_rows = states_.rows(t);
      for (int64_t i = 0; i < states_.dropped(t); ++i)
        for (int64_t h = 0; h < n_rows; ++h) {
          const double *p = p_t.row(i * n_rows + h), *R_row = R + (i * n_rows + h) * YP;
          double sum_p = 0.0, sum_b = 0.0;
          for (int64_t y = 0; y < Y; ++y) {
            // B_{t-1}[i, h] = sum_y p(y | i, h) (R_m[i, h, y] + Q_t[h, y] + B_t[h, y])
            sum_b += p[y] * (R_row[y] + after[h * YP + y]);
            sum_p += p[y];
          }
          s_.dbeta[(t - 1) * size + i * states_.step(t) + states_.place(h)] = sum_p > 0.0 ? sum_b / sum_p : 0.0;
        }
    }
    double e = 0.0;
    for (int64_t y = 0; y < Y; ++y) e += from_[y] * (s_.dalpha[y] + s_.dbeta[y]);
    close_conditionals(e, from_, kept, rows, sums, pairs);
  }

  // Log domain: forward-backward again, with the derivative of every log-sum-exp.
  void propagate(double* rows, double* sums, double* pairs) {
    if (log_domain_) Base::solve(true, true);
    const int64_t Y = pre_.Y, YP = width_.yp(), size = states_.size;
    const auto& log = Base::log_lattice_;
    for (int64_t y = 0; y < Y; ++y) s_.dalpha[y] = s_.q[y];
    for (int64_t t = 1; t < T; ++t) {
      const double *R = step_table(t), *edges = step_edges(t);
      for (int64_t h = 0; h < states_.rows(t); ++h) {
        const double* r = edge_row(edges, h);
        for (int64_t y = 0; y < Y; ++y) {
          double derivative;
          log_sum_exp_with_derivative(
              static_cast<int>(states_.dropped(t)),
              [&](int i) { return s_.alpha[log.before(t, i, h)] + log.score(t, i, h, y); },
              [&](int i) { return s_.dalpha[log.before(t, i, h)] + R[(i * states_.rows(t) + h) * YP + y]; },
              derivative);
          s_.dalpha[t * size + h * YP + y] = direction(t, r, y) + derivative;
        }
      }
    }
    const int64_t last = (T - 1) * size, n_last = states_.rows(T - 1) * Y;
    for (int64_t state = 0; state < n_last; ++state) s_.dbeta[last + states_.place(state)] = 0.0;
    for (int64_t t = T - 1; t > 0; --t) {
      const double *R = step_table(t), *after = add_direction(t);
      for (int64_t i = 0; i < states_.dropped(t); ++i)
        for (int64_t h = 0; h < states_.rows(t); ++h)
          log_sum_exp_with_derivative(
              static_cast<int>(Y), [&](int y) { return log.score(t, i, h, y) + s_.beta[t * size + h * YP + y]; },
              [&](int y) { return R[(i * states_.rows(t) + h) * YP + y] + after[h * YP + y]; },
              s_.dbeta[log.before(t, i, h)]);
    }
    double e;
    log_sum_exp_with_derivative(
        static_cast<int>(n_last), [&](int state) { return s_.alpha[last + states_.place(state)]; },
        [&](int state) { return s_.dalpha[last + states_.place(state)]; }, e);
    Base::node(0, 1.0, s_.row);
    const auto computed = [&](int64_t t) {
      Base::ngrams(t, s_.ngrams);
      return Rows{s_.ngrams, YP};
    };
    close_conditionals(e, s_.row, computed, rows, sums, pairs);
  }

  // From A in dalpha and Q + B in dz: d p = p (A + R + Q + B - e). p_at(t) returns p of the n-grams that end at
  // position t; `first` [Y] is p at position 0.
  template <class At>
  void close_conditionals(double e, const double* first, At p_at, double* rows, double* sums, double* pairs) {
    const int64_t Y = pre_.Y, YP = width_.yp(), size = states_.size;
    clear(rows, pairs);
    for (int64_t y = 0; y < Y; ++y) rows[y] = c * first[y] * (s_.dalpha[y] + s_.dbeta[y] - e);
    for (int64_t t = 1; t < T; ++t) {
      const Rows p_t = p_at(t);
      const double *R = step_table(t), *after = s_.dz + t * size;
      const int64_t n_rows = states_.rows(t);
      double *table = sums + (states_.table(t).tr - pre_.tr), *d = s_.row;
      for (int64_t i = 0; i < states_.dropped(t); ++i)
        for (int64_t h = 0; h < n_rows; ++h, table += YP, R += YP) {
          const double A = s_.dalpha[(t - 1) * size + i * states_.step(t) + states_.place(h)] - e;
          const double* p = p_t.row(i * n_rows + h);
          double* pair = pairs != nullptr ? pairs + (t * Y + h % Y) * YP : nullptr;
          for (int64_t y = 0; y < Y; ++y) {
            // d p = p (A + Q + B - e) + p R: only the first part goes into the sums; p R is added for the whole chunk
            const double partial = c * p[y] * (A + after[h * YP + y]);
            table[y] += partial;
            d[y] = partial + c * p[y] * R[y];
            rows[t * YP + y] += d[y];
          }
          if (pair != nullptr)
            for (int64_t y = 0; y < Y; ++y) pair[y] += d[y];
        }
    }
  }

  // Q_t + B_t in scratch.dz.
  const double* add_direction(int64_t t) {
    const int64_t YP = width_.yp(), at = t * states_.size;
    const double* edges = step_edges(t);
    for (int64_t h = 0; h < states_.rows(t); ++h) {
      const double* r = edge_row(edges, h);
      for (int64_t y = 0; y < pre_.Y; ++y) s_.dz[at + h * YP + y] = direction(t, r, y) + s_.dbeta[at + h * YP + y];
    }
    return s_.dz + at;
  }

  void clear(double* rows, double* pairs) const {
    const int64_t YP = width_.yp();
    for (int64_t i = 0; i < T * YP; ++i) rows[i] = 0.0;
    if (pairs == nullptr) return;
    for (int64_t i = 0; i < T * pre_.Y * YP; ++i) pairs[i] = 0.0;
  }

  // R of position t, and E * R.
  const double* step_table(int64_t t) const { return tangent_.step->tr + (states_.table(t).tr - pre_.tr); }
  const double* turned_table(int64_t t) const { return tangent_.ER + (states_.table(t).tr - pre_.tr); }

  // The direction's scores [Y][YP] of edge attributes at position t, in scratch.matrix; null without edge attributes.
  const double* step_edges(int64_t t) const {
    if (!has_edges_ || t == 0) return nullptr;
    for (int64_t i = 0; i < pre_.Y * pre_.YP; ++i) s_.matrix[i] = 0.0;
    edge_scores(data_, *tangent_.step, begin + t, 1.0, s_.matrix);
    return s_.matrix;
  }
  const double* edge_row(const double* edges, int64_t h) const {
    return edges != nullptr ? edges + h % pre_.Y * pre_.YP : nullptr;
  }

  // Q_t[h, y] with r = edge_row(edges, h), and kLanes of them.
  double direction(int64_t t, const double* r, int64_t y) const {
    return s_.q[t * width_.yp() + y] + (r != nullptr ? r[y] : 0.0);
  }
  Vec directions(int64_t t, const double* r, int64_t y) const {
    const Vec node = load(s_.q + t * width_.yp() + y);
    return r != nullptr ? node + load(r + y) : node;
  }

  const Tangent& tangent_;
  const Kept* kept_;
  bool log_domain_;
  const double* from_ = nullptr;  // block of this sequence, or null
};

}  // namespace
