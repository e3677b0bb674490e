// One sequence at a time with label histories (order k >= 2): load its scores, solve its lattice in the scaled or log
// domain, compute marginals and n-gram sums. The counterpart of SequenceWorker. Included by per-level files only.
#pragma once

#include "lattice/curvature.hpp"
#include "lattice/history_log_domain.hpp"

namespace {

template <int P>
class HistoryWorker {
 public:
  HistoryWorker(const DataView& data, const Prepared& pre, Scratch& scratch)
      : data_(data),
        pre_(pre),
        s_(scratch),
        has_edges_(scratch.pairs != nullptr),
        width_(pre.YP),
        lattice_(pre, scratch, has_edges_),
        log_lattice_(pre, scratch, has_edges_),
        states_(lattice_.states) {}

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
  [[gnu::noinline]] void load_scores(int64_t sequence) {
    locate(sequence);
    node_scores(width_, data_, pre_, begin, T, s_.U);
    direction_ = nullptr;
    load_edges();
  }

  // Scores at base + a * step.
  [[gnu::noinline]] void load(int64_t sequence, const crfit::Direction& direction) {
    locate(sequence);
    line_scores(direction, begin * pre_.YP, T * pre_.YP, s_.U);
    direction_ = &direction;
    load_edges();
    add_gold();
  }

  // Sets: gold, from the loaded scores.
  [[gnu::noinline]] void add_gold() {
    gold = 0.0;
    if (data_.labels == nullptr) return;
    const int32_t* y = data_.labels + begin;
    for (int64_t t = 0; t < T; ++t) {
      gold += s_.U[t * pre_.YP + y[t]];
      if (t > 0) gold += states_.table(t).tr[gold_place(t)];
      if (t > 0 && has_edges_) gold += s_.pairs[(t * pre_.Y + y[t - 1]) * pre_.YP + y[t]];
    }
  }

  // Sets: log_z and the lattice. Without marginals the backward pass runs only if underflow may matter.
  [[gnu::noinline]] void solve(bool want_marginals, bool log_domain = false) {
    const bool scaled =
        !log_domain && lattice_.forward(T, log_z) && ((!want_marginals && !lattice_.lost()) || lattice_.backward(T));
    in_log_ = !scaled;
    if (scaled) return;
    load_edges();  // a scaled attempt turned them into exponentials
    log_z = log_lattice_.solve(T);
  }

  // factor * p(t, :) with padding 0.
  void node(int64_t t, double factor, double* out) const { add_states(t, factor, out, 1); }

  // factor * p(t, i, j), t >= 1, into out [Y][YP]; the padding is 0.
  void pair(int64_t t, double factor, double* out) const { add_states(t, factor, out, pre_.Y); }

  // Adds c times the expected n-grams: to `outer` if they are E * sum of outer products, else to `sums`. With edge
  // attributes also writes c p(t, i, j) to pairs [T][Y][YP].
  void add_expected(double* outer, double* sums, double* pairs) {
    if (pairs != nullptr)
      for (int64_t t = 1; t < T; ++t) pair(t, c, pairs + t * pre_.Y * pre_.YP);
    if (!in_log_) return add_outer_products(outer);
    for (int64_t t = 1; t < T; ++t) {
      double* table = sums + (states_.table(t).tr - pre_.tr);
      log_lattice_.each_ngram(t, [&](int64_t at, double p) { table[at] += c * p; });
    }
  }

  // p of the n-grams that end at position t >= 1, in the shape of its table: out [rows][YP].
  void ngrams(int64_t t, double* out) const {
    const int64_t YP = width_.yp(), rows = states_.rows(t), step = states_.step(t);
    const double *before = s_.alpha + (t - 1) * states_.size, *z = s_.z + t * states_.size;
    if (in_log_) {
      log_lattice_.each_ngram(t, [&](int64_t at, double p) { out[at] = p; });
      return;
    }
    const double* E = states_.table(t).E;
    for (int64_t i = 0; i < states_.dropped(t); ++i)
      for (int64_t h = 0; h < rows; ++h, E += YP, out += YP) {
        const Vec alpha = splat(before[i * step + states_.place(h)]);
        for (int64_t j = 0; j < YP; j += kLanes) store(out + j, alpha * ::load(E + j) * ::load(z + h * YP + j));
      }
  }

  // Fills the cache block of this sequence; call before the outer products, which scale z.
  void keep(const crfit::Kept& kept, int64_t sequence) const {
    double* out = kept.block(sequence);
    if (out == nullptr) return;
    kept.filled[sequence] = kept.pairs || !in_log_;
    if (!kept.filled[sequence]) return;
    const int64_t Y = pre_.Y, YP = width_.yp();
    const auto copy = [&](const double* table, int64_t rows) {
      for (int64_t h = 0; h < rows; ++h, out += Y)
        for (int64_t j = 0; j < Y; ++j) out[j] = table[h * YP + j];
    };
    if (kept.pairs) {
      node(0, 1.0, s_.row);
      copy(s_.row, 1);
      for (int64_t t = 1; t < T; ++t) {
        ngrams(t, s_.ngrams);
        copy(s_.ngrams, states_.table(t).rows);
      }
      return;
    }
    for (int64_t t = 0; t < T; ++t) {
      copy(s_.alpha + t * states_.size, states_.rows(t));
      copy(s_.beta + t * states_.size, states_.rows(t));
      for (int64_t j = 0; j < Y; ++j) *out++ = s_.S[t * YP + j] * s_.inv[t];
    }
  }

  bool factored() const { return !in_log_; }

  // Index in the tables of the gold n-gram that ends at position t >= 1.
  int64_t gold_ngram(int64_t t) const { return states_.table(t).tr - pre_.tr + gold_place(t); }

  // Adds c p (1 - p) of the n-grams of every length to `sums`; with edge attributes also writes those of label pairs to
  // pairs [T][Y][YP].
  void add_variances(double* sums, double* pairs) {
    const int64_t Y = pre_.Y, YP = width_.yp();
    for (int64_t t = 1; t < T; ++t) {
      double* p = s_.ngrams;
      ngrams(t, p);
      // p of the longest n-grams, then of each shorter length: sums over the first label, in place. Variances of
      // shorter n-grams are not sums of those of longer ones, so they are computed for every length.
      for (int64_t m = t < pre_.order ? t : pre_.order; m > 0; --m) {
        const int64_t size = pre_.tables[m - 1].rows * YP, part = size / Y;
        double* table = sums + (pre_.tables[m - 1].tr - pre_.tr);
        for (int64_t i = 0; i < size; ++i) table[i] += c * p[i] * (1.0 - p[i]);
        if (m == 1) break;
        for (int64_t first = 1; first < Y; ++first)
          for (int64_t i = 0; i < part; ++i) p[i] += p[first * part + i];
      }
      if (pairs == nullptr) continue;
      for (int64_t i = 0; i < Y * YP; ++i) pairs[t * Y * YP + i] = c * p[i] * (1.0 - p[i]);
    }
  }

  // Contribution of transitions and edge attributes to the slope along the direction, without the expected n-grams in
  // `outer`, which are added at the end of the chunk.
  double transition_slope(double* outer) {
    const Prepared& step = *direction_->step;
    double slope = 0.0;
    if (!in_log_) add_outer_products(outer);
    for (int64_t t = 1; t < T; ++t) {
      const double* table = step.tables[(t < pre_.order ? t : pre_.order) - 1].tr;
      slope -= table[gold_place(t)];
      if (in_log_) log_lattice_.each_ngram(t, [&](int64_t at, double p) { slope += p * table[at]; });
      if (!has_edges_) continue;
      double *p = s_.matrix, *q = s_.matrix + pre_.Y * pre_.YP;
      pair(t, 1.0, p);
      for (int64_t i = 0; i < pre_.Y * pre_.YP; ++i) q[i] = 0.0;
      edge_scores(data_, step, begin + t, 1.0, q);
      for (int64_t i = 0; i < pre_.Y * pre_.YP; ++i) slope += p[i] * q[i];
      const int32_t* y = data_.labels + begin + t;
      slope -= q[y[-1] * pre_.YP + y[0]];
    }
    return slope;
  }

  // Viterbi on the loaded scores; writes labels to out [T]. Ties: lower last label, then lower second-last label, and
  // so on.
  double best_path(int32_t* out) {
    const int64_t Y = pre_.Y, YP = width_.yp(), size = states_.size;
    for (int64_t y = 0; y < Y; ++y) s_.alpha[y] = s_.U[y];
    for (int64_t t = 1; t < T; ++t) {
      const int64_t rows = states_.rows(t), step = states_.step(t), n = states_.dropped(t);
      for (int64_t h = 0; h < rows; ++h) {
        const double* before = s_.alpha + (t - 1) * size + states_.place(h);
        const double *M = states_.table(t).tr + h * YP, *u = s_.U + t * YP;
        const double* edge = has_edges_ ? s_.pairs + (t * Y + h % Y) * YP : nullptr;
        double* here = s_.alpha + t * size + h * YP;
        int32_t* back = s_.back + t * size + h * YP;
        for (int64_t j = 0; j < YP; j += kLanes) {
          // best = max over the dropped label i of alpha_{t-1}[i, h] + tr_m[i, h, y]; `>` keeps the lower i in ties
          Vec best = splat(before[0]) + ::load(M + j);
          Vec from = {};  // label ids as doubles, which are exact: one register type
          for (int64_t i = 1; i < n; ++i) {
            const Vec candidate = splat(before[i * step]) + ::load(M + i * rows * YP + j);
            const VecInt better = candidate > best;
            best = better ? candidate : best;
            from = better ? splat(static_cast<double>(i)) : from;
          }
          best += ::load(u + j);
          if (edge != nullptr) best += ::load(edge + j);
          store(here + j, best);
          for (int k = 0; k < kLanes; ++k) back[j + k] = static_cast<int32_t>(from[k]);
        }
      }
    }
    const double* last = s_.alpha + (T - 1) * size;
    int64_t state = 0;
    for (int64_t other = 1; other < states_.rows(T - 1) * Y; ++other) {
      const double gain = last[states_.place(other)] - last[states_.place(state)];
      if (gain > 0.0 || (gain == 0.0 && lower_from_the_end(other, state, Y))) state = other;
    }
    const double score = last[states_.place(state)];
    // histories of k - 1 labels: state = (dropped label, h without its last)
    const int64_t shared = states_.rows(states_.order);
    for (int64_t t = T - 1; t >= 0; --t) {
      out[t] = static_cast<int32_t>(state % Y);
      const int64_t from = t >= states_.order ? s_.back[t * size + states_.place(state)] : 0;
      state = from * shared + state / Y;
    }
    return score;
  }

 protected:
  void locate(int64_t sequence) {
    begin = data_.seq_ptr[sequence];
    T = data_.seq_ptr[sequence + 1] - begin;
    c = data_.weights == nullptr ? 1.0 : data_.weights[sequence];
  }

  void load_edges() {
    if (!has_edges_) return;
    const int64_t size = static_cast<int64_t>(pre_.Y) * pre_.YP;
    for (int64_t t = 1; t < T; ++t) {
      double* M = s_.pairs + t * size;
      for (int64_t i = 0; i < size; ++i) M[i] = 0.0;
      if (direction_ == nullptr) {
        edge_scores(data_, pre_, begin + t, 1.0, M);
      } else {
        edge_scores(data_, *direction_->base, begin + t, 1.0, M);
        edge_scores(data_, *direction_->step, begin + t, direction_->a, M);
      }
    }
  }

  // Index within its table of the gold n-gram that ends at position t >= 1.
  int64_t gold_place(int64_t t) const {
    const int m = static_cast<int>(t < pre_.order ? t : pre_.order);
    return states_.place(crfit::ngram_code(data_.labels + begin + t, m, pre_.Y));
  }

  // out[h mod n][:] = factor * sum of p(t, h, :), n rows.
  void add_states(int64_t t, double factor, double* out, int64_t n) const {
    const int64_t YP = width_.yp(), rows = states_.rows(t);
    for (int64_t i = 0; i < n * YP; ++i) out[i] = 0.0;
    if (in_log_) {
      log_lattice_.each_state(t, [&](int64_t h, int64_t y, double p) { out[h % n * YP + y] += factor * p; });
      return;
    }
    const double *alpha = s_.alpha + t * states_.size, *beta = s_.beta + t * states_.size;
    for (int64_t h = 0; h < rows; ++h)
      for (int64_t j = 0; j < YP; j += kLanes) {
        double* o = out + h % n * YP + j;
        store(o, ::load(o) + splat(factor) * ::load(alpha + h * YP + j) * ::load(beta + h * YP + j));
      }
  }

  void add_outer_products(double* outer) {
    if (c != 1.0)
      for (int64_t t = 1; t < T; ++t)
        // z is multiplied by c once: code that needs z unscaled must run before (keep).
        for (int64_t i = 0; i < states_.rows(t) * pre_.YP; ++i) s_.z[t * states_.size + i] *= c;
    add_history_outer(width_, states_, T, s_.alpha, s_.z, outer);
  }

  const DataView& data_;
  const Prepared& pre_;
  Scratch& s_;
  bool has_edges_;
  Width<P> width_;
  HistoryLattice<P> lattice_;
  HistoryLogLattice log_lattice_;
  const StateTables& states_;
  const crfit::Direction* direction_ = nullptr;  // null: scores from the weights themselves
  bool in_log_ = false;
};

}  // namespace
