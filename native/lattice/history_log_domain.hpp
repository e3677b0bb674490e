// Label histories in the log domain, for sequences that would under- or overflow: the sums of
// history_forward_backward.hpp. Rarely used, so simple rather than fast. Included by per-level files only.
#pragma once

#include "lattice/history_forward_backward.hpp"
#include "lattice/log_domain.hpp"

namespace {

// Uses scratch.U (node scores) and scratch.pairs (scores of edge attributes, if any); writes log alpha to scratch.alpha
// and log beta to scratch.beta.
class HistoryLogLattice {
 public:
  HistoryLogLattice(const Prepared& pre, Scratch& scratch, bool has_edges)
      : states_(pre), s_(scratch), has_edges_(has_edges) {}

  // Sets: alpha, beta. Returns log Z.
  double solve(int64_t T) {
    const int64_t Y = states_.Y, YP = states_.YP, size = states_.size;
    for (int64_t y = 0; y < Y; ++y) s_.alpha[y] = s_.U[y];
    for (int64_t t = 1; t < T; ++t)
      for (int64_t h = 0; h < states_.rows(t); ++h)
        for (int64_t y = 0; y < Y; ++y)
          // log alpha_t[h, y] = log sum_i exp(log alpha_{t-1}[i, h] + score(t, i, h, y))
          s_.alpha[t * size + h * YP + y] =
              log_sum_exp(states_.dropped(t), [&](int i) { return s_.alpha[before(t, i, h)] + score(t, i, h, y); });
    const int64_t last = (T - 1) * size, n_last = states_.rows(T - 1) * Y;
    for (int64_t state = 0; state < n_last; ++state) s_.beta[last + states_.place(state)] = 0.0;
    for (int64_t t = T - 1; t > 0; --t)
      for (int64_t i = 0; i < states_.dropped(t); ++i)
        for (int64_t h = 0; h < states_.rows(t); ++h)
          s_.beta[before(t, i, h)] = log_sum_exp(
              static_cast<int>(Y), [&](int y) { return score(t, i, h, y) + s_.beta[t * size + h * YP + y]; });
    return log_sum_exp(static_cast<int>(n_last), [&](int state) { return s_.alpha[last + states_.place(state)]; });
  }

  // visit(h, y, p) for the probability p of each state after position t. Normalised by the sum at the position: with
  // scores of 1e7, log Z is exact only to 1e-9.
  template <class Visit>
  void each_state(int64_t t, Visit visit) const {
    const int64_t Y = states_.Y, n = states_.rows(t) * Y;
    const auto value = [&](int64_t state) {
      const int64_t at = t * states_.size + states_.place(state);
      return s_.alpha[at] + s_.beta[at];
    };
    const double total = log_sum_exp(static_cast<int>(n), [&](int state) { return value(state); });
    for (int64_t state = 0; state < n; ++state) visit(state / Y, state % Y, std::exp(value(state) - total));
  }

  // visit(at, p) for the probability p of each n-gram that ends at position t >= 1; `at` is its index in the table.
  template <class Visit>
  void each_ngram(int64_t t, Visit visit) const {
    const int64_t Y = states_.Y, YP = states_.YP, rows = states_.rows(t), n = states_.dropped(t) * rows * Y;
    const auto value = [&](int64_t code) {
      const int64_t y = code % Y, h = code / Y % rows, i = code / Y / rows;
      return s_.alpha[before(t, i, h)] + score(t, i, h, y) + s_.beta[t * states_.size + h * YP + y];
    };
    const double total = log_sum_exp(static_cast<int>(n), [&](int code) { return value(code); });
    for (int64_t code = 0; code < n; ++code) visit(states_.place(code), std::exp(value(code) - total));
  }

  // Index of the previous state (i, h) of position t.
  int64_t before(int64_t t, int64_t i, int64_t h) const {
    return (t - 1) * states_.size + i * states_.step(t) + states_.place(h);
  }

  double score(int64_t t, int64_t i, int64_t h, int64_t y) const {
    const int64_t Y = states_.Y, YP = states_.YP;
    const double edge = has_edges_ ? s_.pairs[(t * Y + h % Y) * YP + y] : 0.0;
    return states_.table(t).tr[(i * states_.rows(t) + h) * YP + y] + s_.U[t * YP + y] + edge;
  }

 private:
  StateTables states_;
  Scratch& s_;
  bool has_edges_;
};

}  // namespace
