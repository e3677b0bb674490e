// One sequence at a time: load its scores, solve its lattice in the scaled or log domain, compute marginals.
// Included by per-level files only.
#pragma once

#include "lattice/curvature.hpp"
#include "lattice/forward_backward.hpp"
#include "lattice/log_domain.hpp"

namespace {

template <int P>
class SequenceWorker {
 public:
  SequenceWorker(const DataView& data, const Prepared& pre, Scratch& scratch)
      : data_(data),
        pre_(pre),
        s_(scratch),
        has_edges_(scratch.pairs != nullptr),
        width_(pre.YP),
        lattice_(pre, scratch, has_edges_) {}

  int64_t begin = 0, T = 0;  // positions begin .. begin + T - 1 of the dataset
  double c = 1.0;            // weight of the sequence
  double log_z = 0.0;
  double gold = 0.0;  // score of the given labels, from raw scores

  // Scores from the weights themselves.
  void load(int64_t sequence) {
    load_scores(sequence);
    add_gold();
  }

  // The same without `gold`.
  void load_scores(int64_t sequence) {
    locate(sequence);
    node_scores(width_, data_, pre_, begin, T, s_.U);
    pair_weights_ = nullptr;
    if (has_edges_) load_pairs();
  }

  // Scores at base + a * step.
  void load(int64_t sequence, const crfit::Direction& direction) {
    locate(sequence);
    line_scores(direction, begin * pre_.YP, T * pre_.YP, s_.U);
    pair_weights_ = &direction;
    if (has_edges_) load_pairs();
    add_gold();
  }

  // Scores that the caller has written to scratch.U; with edge attributes also scores of label pairs, [T - 1][Y][YP],
  // from the second position on.
  void take(int64_t sequence, const double* pair_scores) {
    locate(sequence);
    given_pairs_ = pair_scores;
    if (has_edges_) load_pairs();
  }

  // Sets: gold, from the loaded scores.
  void add_gold() {
    gold = 0.0;
    if (data_.labels == nullptr) return;
    const int32_t* y = data_.labels + begin;
    for (int64_t t = 0; t < T; ++t) {
      gold += s_.U[t * pre_.YP + y[t]];
      if (t > 0)
        gold += has_edges_ ? s_.pairs[(t * pre_.Y + y[t - 1]) * pre_.YP + y[t]] : pre_.tr[y[t - 1] * pre_.YP + y[t]];
    }
  }

  // Sets: log_z and the lattice. Without marginals the backward pass runs only if underflow may matter.
  void solve(bool want_marginals, bool log_domain = false) {
    const bool scaled =
        !log_domain && lattice_.forward(T, log_z) && ((!want_marginals && !lattice_.lost()) || lattice_.backward(T));
    in_log_ = !scaled || (derivatives_ && lattice_.cancels());
    if (!in_log_) return;
    if (has_edges_) {
      load_pairs();  // a scaled attempt turned them into exponentials
      log_z = log_forward_backward(pre_, s_, T,
                                   [&](int64_t t, int i, int j) { return s_.pairs[(t * pre_.Y + i) * pre_.YP + j]; });
    } else {
      log_z = log_forward_backward(pre_, s_, T, [&](int64_t, int i, int j) { return pre_.tr[i * pre_.YP + j]; });
    }
  }

  // factor * p(t, :) with padding 0.
  void node(int64_t t, double factor, double* out) const {
    const int YP = width_.yp();
    const double *alpha = s_.alpha + t * YP, *beta = s_.beta + t * YP;
    if (in_log_) {
      // Normalised by the sum at the position: with scores of 1e7, log Z is exact only to 1e-9.
      const double total = log_sum_exp(pre_.Y, [&](int j) { return alpha[j] + beta[j]; });
      for (int j = 0; j < YP; ++j) out[j] = j < pre_.Y ? factor * std::exp(alpha[j] + beta[j] - total) : 0.0;
    } else {
      for (int j = 0; j < YP; j += kLanes) store(out + j, splat(factor) * ::load(alpha + j) * ::load(beta + j));
    }
  }

  // factor * p(t, i, j), t >= 1, into out [Y][YP]; the padding is 0.
  void pair(int64_t t, double factor, double* out) const {
    const int YP = width_.yp(), Y = pre_.Y;
    const double* alpha = s_.alpha + (t - 1) * YP;
    const double* shared = in_log_ ? pre_.tr : pre_.E;
    const double* M = has_edges_ ? s_.pairs + t * Y * YP : shared;
    if (in_log_) {
      const double *u = s_.U + t * YP, *beta = s_.beta + t * YP;
      const auto score = [&](int i, int j) { return alpha[i] + M[i * YP + j] + u[j] + beta[j]; };
      const double total = log_sum_exp(Y * Y, [&](int code) { return score(code / Y, code % Y); });
      for (int i = 0; i < Y; ++i)
        for (int j = 0; j < YP; ++j) out[i * YP + j] = j < Y ? factor * std::exp(score(i, j) - total) : 0.0;
      return;
    }
    const double* z = s_.z + t * YP;
    const crfit::SparsePairs* sparse = has_edges_ ? nullptr : pre_.sparse;
    for (int i = 0; i < Y; ++i) {
      const Vec a = splat(factor * alpha[i]);
      double* row = out + i * YP;
      for (int j = 0; j < YP; j += kLanes)
        store(row + j, a * (sparse != nullptr ? splat(sparse->missing) : ::load(M + i * YP + j)) * ::load(z + j));
      if (sparse == nullptr) continue;
      for (int32_t k = sparse->after_ptr[i]; k < sparse->after_ptr[i + 1]; ++k)
        row[sparse->after[k]] = factor * alpha[i] * sparse->after_E[k] * z[sparse->after[k]];
    }
  }

  // Whether expected pairs are E * sum of outer products, without computing pair marginals.
  bool factored() const { return !in_log_ && !has_edges_; }

  void add_outer_products(double* outer) {
    if (c != 1.0)
      for (int64_t i = width_.yp(); i < T * width_.yp(); ++i) s_.z[i] *= c;
    add_products(s_.alpha, s_.z, outer);
  }

  // outer += sum_t outer(left_{t-1}, right_t): [Y][YP], or only the listed pairs.
  void add_products(const double* left, const double* right, double* outer) const {
    const int YP = width_.yp();
    if (!pre_.listed_sums) return add_outer(width_, pre_.Y, T, left, right, outer);
    const crfit::SparsePairs& pairs = *pre_.sparse;
    for (int64_t t = 1; t < T; ++t)
      for (int i = 0; i < pre_.Y; ++i) {
        const double x = left[(t - 1) * YP + i], *z = right + t * YP;
        for (int32_t k = pairs.after_ptr[i]; k < pairs.after_ptr[i + 1]; ++k) outer[k] += x * z[pairs.after[k]];
      }
  }

  // Fills the cache block of this sequence; call before the outer products, which scale z.
  void keep(const crfit::Kept& kept, int64_t sequence) const {
    double* out = kept.block(sequence);
    if (out == nullptr) return;
    kept.filled[sequence] = kept.pairs || !(in_log_ || lattice_.cancels());
    if (!kept.filled[sequence]) return;
    const int Y = pre_.Y, YP = width_.yp();
    if (kept.pairs) {
      for (int64_t t = 0; t < T; ++t, out += Y) {
        node(t, 1.0, s_.row);
        for (int j = 0; j < Y; ++j) out[j] = s_.row[j];
      }
      for (int64_t t = 1; t < T; ++t) {
        pair(t, 1.0, s_.matrix);
        for (int i = 0; i < Y; ++i, out += Y)
          for (int j = 0; j < Y; ++j) out[j] = s_.matrix[i * YP + j];
      }
      return;
    }
    for (int64_t t = 0; t < T; ++t) {
      const double *alpha = s_.alpha + t * YP, *beta = s_.beta + t * YP, *S = s_.S + t * YP;
      for (int j = 0; j < Y; ++j) {
        out[t * Y + j] = alpha[j];
        out[(T + t) * Y + j] = beta[j];
        out[(2 * T + t) * Y + j] = S[j] * s_.inv[t];
      }
    }
  }

  // Adds c times the expected pairs: to `outer` if they are E * sum of outer products, else to `sums` [Y][YP]. With
  // edge attributes also writes c p(t, i, j) to pairs [T][Y][YP].
  void add_expected(double* outer, double* sums, double* pairs) {
    if (factored()) return add_outer_products(outer);
    const int64_t size = static_cast<int64_t>(pre_.Y) * pre_.YP;
    for (int64_t t = 1; t < T; ++t) {
      double* p = pairs != nullptr ? pairs + t * size : s_.matrix;
      pair(t, c, p);
      for (int64_t i = 0; i < size; ++i) sums[i] += p[i];
    }
  }

  // Index in the tables of the gold label pair that ends at position t >= 1, or -1 if it is not listed.
  int64_t gold_ngram(int64_t t) const {
    const int32_t* y = data_.labels + begin + t;
    if (pre_.listed_sums) return crfit::find_ngram(pre_.layout->ngrams[0], int64_t{y[-1]} * pre_.Y + y[0]);
    return y[-1] * pre_.YP + y[0];
  }

  // Adds c p (1 - p) of the label pairs to `sums`; with edge attributes also writes them to pairs [T][Y][YP].
  void add_variances(double* sums, double* pairs) {
    const int64_t size = static_cast<int64_t>(pre_.Y) * pre_.YP;
    for (int64_t t = 1; t < T; ++t) {
      double* p = pairs != nullptr ? pairs + t * size : s_.matrix;
      pair(t, 1.0, p);
      for (int64_t i = 0; i < size; ++i) {
        p[i] *= c * (1.0 - p[i]);
        sums[i] += p[i];
      }
    }
  }

  // Contribution of transitions and edge attributes to the slope along the direction, without the expected pairs in
  // `outer`, which are added at the end of the chunk.
  double transition_slope(double* outer) {
    const int YP = pre_.YP;
    const int32_t* y = data_.labels + begin;
    const Prepared& step = *pair_weights_->step;
    double slope = 0.0;
    if (factored()) {
      add_outer_products(outer);
      for (int64_t t = 1; t < T; ++t) slope -= step.tr[y[t - 1] * YP + y[t]];
      return slope;
    }
    double *p = s_.matrix, *q = s_.matrix + pre_.Y * YP;
    for (int64_t t = 1; t < T; ++t) {
      pair(t, 1.0, p);
      for (int i = 0; i < pre_.Y * YP; ++i) q[i] = 0.0;
      pair_scores(data_, step, begin + t, 1.0, q);
      for (int i = 0; i < pre_.Y; ++i)
        for (int j = 0; j < pre_.Y; ++j) slope += p[i * YP + j] * q[i * YP + j];
      slope -= q[y[t - 1] * YP + y[t]];
    }
    return slope;
  }

  // Viterbi on the loaded scores; writes labels to out [T]. Ties: lower label.
  // delta_t[j] = max_i (delta_{t-1}[i] + M[i, j]) + u_t[j]; the maxima are stored, and tracing back finds the previous
  // label as the first that reaches its maximum.
  double best_path(int32_t* out) {
    const int YP = width_.yp(), Y = pre_.Y;
    double *delta = s_.alpha, *maxima = s_.beta;
    for (int j = 0; j < YP; ++j) delta[j] = s_.U[j];
    for (int64_t t = 1; t < T; ++t) {
      const double* M = has_edges_ ? s_.pairs + t * Y * YP : pre_.tr;
      const double* before = delta + (t - 1) * YP;
      const bool bounded = pre_.row_low != nullptr && !has_edges_;
      max_sums(before, M, bounded ? candidates(before, s_.back) : Y, bounded ? s_.back : nullptr, maxima + t * YP);
      for (int j = 0; j < YP; j += kLanes)
        store(delta + t * YP + j, ::load(maxima + t * YP + j) + ::load(s_.U + t * YP + j));
    }
    const double* last = delta + (T - 1) * YP;
    int y = 0;
    for (int j = 1; j < Y; ++j)
      if (last[j] > last[y]) y = j;
    const double score = last[y];
    for (int64_t t = T - 1; t > 0; --t) {
      out[t] = y;
      const double *before = delta + (t - 1) * YP, *M = (has_edges_ ? s_.pairs + t * Y * YP : pre_.tr) + y;
      const double reached = maxima[t * YP + y];
      for (y = 0; y < Y - 1 && before[y] + M[y * YP] != reached;) ++y;
    }
    out[0] = y;
    return score;
  }

 protected:
  void locate(int64_t sequence) {
    begin = data_.seq_ptr[sequence];
    T = data_.seq_ptr[sequence + 1] - begin;
    c = data_.weights == nullptr ? 1.0 : data_.weights[sequence];
  }

  // The labels before that may be the best on the way to some label; returns how many. The others are below, on the
  // way to any label, what one label reaches on the way to every label. Rounding keeps the order, so ties stay too.
  int candidates(const double* x, int32_t* kept) const {
    double reached = -INFINITY;
    for (int i = 0; i < pre_.Y; ++i) reached = x[i] + pre_.row_low[i] > reached ? x[i] + pre_.row_low[i] : reached;
    int n = 0;
    for (int i = 0; i < pre_.Y; ++i) {
      kept[n] = i;
      n += !(x[i] + pre_.row_high[i] < reached);
    }
    return n;
  }

  // out[j] = max (x[i] + M[i][j]) over n labels i, the given ones or the first, for j < YP.
  void max_sums(const double* __restrict x, const double* __restrict M, int n, const int32_t* labels,
                double* __restrict out) const {
    constexpr int kBlock = P > 0 ? P : 32;
    constexpr int kVecs = kBlock / kLanes;
    const int YP = width_.yp();
    for (int j0 = 0; j0 < YP; j0 += kBlock) {
      Vec top[kVecs];
      const int64_t first = labels == nullptr ? 0 : labels[0];
      for (int k = 0; k < kVecs; ++k) top[k] = splat(x[first]) + ::load(M + first * YP + j0 + k * kLanes);
      for (int r = 1; r < n; ++r) {
        const int64_t i = labels == nullptr ? r : labels[r];
        const Vec xi = splat(x[i]);
        const double* m = M + i * YP + j0;
        for (int k = 0; k < kVecs; ++k) top[k] = vmax(top[k], xi + ::load(m + k * kLanes));
      }
      for (int k = 0; k < kVecs; ++k) store(out + j0 + k * kLanes, top[k]);
    }
  }

  void load_pairs() {
    const int64_t size = static_cast<int64_t>(pre_.Y) * pre_.YP;
    for (int64_t t = 1; t < T; ++t) {
      double* M = s_.pairs + t * size;
      if (given_pairs_ != nullptr) {
        for (int64_t i = 0; i < size; ++i) M[i] = given_pairs_[(t - 1) * size + i];
        continue;
      }
      for (int64_t i = 0; i < size; ++i) M[i] = 0.0;
      if (pair_weights_ == nullptr) {
        pair_scores(data_, pre_, begin + t, 1.0, M);
      } else {
        pair_scores(data_, *pair_weights_->base, begin + t, 1.0, M);
        pair_scores(data_, *pair_weights_->step, begin + t, pair_weights_->a, M);
      }
    }
  }

  const DataView& data_;
  const Prepared& pre_;
  Scratch& s_;
  bool has_edges_;
  Width<P> width_;
  Lattice<P> lattice_;
  const crfit::Direction* pair_weights_ = nullptr;
  const double* given_pairs_ = nullptr;
  bool in_log_ = false;
  bool derivatives_ = false;  // the lattice is for derivatives along a direction, whose sums cancel
};

}  // namespace
