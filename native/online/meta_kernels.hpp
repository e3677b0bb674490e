// Stochastic meta-descent on the weights that a step touches, including the steps since they were last touched;
// meta.hpp has the formulas. Included by per-level files only.
//
//   solve    residual = c ([gold] - p), rows = c d p along v      from one lattice, [T][YP] each
//   ready    w *= (1 - eta share)^n, v *= memory^n                n steps missed; sum of w += w (x + .. + x^n)
//   update   g = share w - residual, Hv = rows + share v; then gain, w, v
//
// w, v and gain are three vectors of the same shape (RowLayout). A step needs all three of a unit, so they are
// prefetched together. Units are brought up to date before the lattices are solved, because scores read w and the
// direction reads v.
#pragma once

#include "online/meta_jobs.hpp"
#include "online/rule_kernels.hpp"

namespace {

using crfit::MetaDenseJob;
using crfit::MetaReadyJob;
using crfit::MetaSolveJob;
using crfit::MetaUpdateJob;
using crfit::MetaWeights;

// One sequence: its residuals and their derivatives along v, from one lattice.
template <class TangentWorker>
void solve_meta(const MetaSolveJob& job) {
  const crfit::Prepared& pre = *job.weights;
  crfit::Scratch& s = *job.scratch;
  crfit::OnlineSlot& slot = *job.slot;
  const int YP = pre.YP;
  const int64_t pair_size = static_cast<int64_t>(pre.Y) * YP;
  TangentWorker worker(*job.data, pre, *job.tangent, nullptr, false, s);
  // U = scores of w and q = scores of v; then forward-backward of w. The tangent below uses the same lattice.
  worker.load_tangent(slot.sequence);
  worker.solve(true);
  // n-gram sums scale the lattice by c only once: here everything is computed with 1 and multiplied at the end.
  const double c = worker.c;
  worker.c = 1.0;
  slot.loss = c * (worker.log_z - worker.gold);
  const int32_t* y = job.data->labels + worker.begin;
  for (int64_t t = 0; t < worker.T; ++t) {
    // residual[t, :] = c ([y = gold] - p(t, :))
    worker.node(t, -c, slot.residual + t * YP);
    slot.residual[t * YP + y[t]] += c;
  }
  double* expected = slot.pairs;
  expected_ngrams(pre, s, worker, expected, slot.pair_residual);
  double* sums = begin_ngrams(pre, s, worker, job.ngrams);
  worker.differentiate_solved(job.rows, s.outer, sums, job.pairs);
  end_ngrams(pre, s, sums, job.ngrams);
  for (int64_t i = 0; i < pre.n_ngrams; ++i) {
    // d p(n-gram) = sums of the tangent + p R, R the scores of the n-gram under v
    job.ngrams[i] = c * (job.ngrams[i] + job.tangent->step->ngram_tr[i] * expected[i]);
    slot.pairs[i] = -c * expected[i];
  }
  for (int64_t t = 1; t < worker.T; ++t) {
    const int64_t gold = worker.gold_ngram(t);
    if (gold >= 0) slot.pairs[gold] += c;
    if (slot.pair_residual == nullptr) continue;
    double *residual = slot.pair_residual + t * pair_size, *tangent = job.pairs + t * pair_size;
    for (int64_t i = 0; i < pair_size; ++i) {
      residual[i] *= -c;
      tangent[i] *= c;
    }
    residual[y[t - 1] * YP + y[t]] += c;
  }
  if (c != 1.0)
    for (int64_t i = 0; i < worker.T * YP; ++i) job.rows[i] *= c;
}

inline double larger(double a, double b) { return b > a ? b : a; }  // NaN in a stays
inline Vec larger(Vec a, double b) { return vmax(a, splat(b)); }

// r^n, and r + r^2 + .. + r^n in `sum`, by doubling; n >= 1. The closed form r (1 - r^n) / (1 - r) cancels for r near
// 1, and r = 1 - eta share is always near 1.
template <class Number>
inline Number power(Number r, uint32_t n, Number& sum) {
  Number x = r;
  sum = r;
  // From the highest bit of n down, with x = r^k and sum = r + .. + r^k: each bit doubles k (sum += sum r^k), and a set
  // bit adds one more term. About 2 log2 n products, all of positive numbers.
  for (uint32_t bit = (uint32_t{1} << (31 - __builtin_clz(n))) >> 1; bit != 0; bit >>= 1) {
    sum += sum * x;
    x *= x;
    if ((n & bit) == 0) continue;
    x *= r;
    sum += x;
  }
  return x;
}

// The rule of touched weights: g = share w - residual, (H v) = tangent + share v.
template <class Number>
inline void meta_step(double meta_rate, double memory, double eta0, double share, Number residual, Number tangent,
                      Number& w, Number& v, Number& gain) {
  const Number g = share * w - residual, Hv = tangent + share * v;
  // d loss / d log eta = g v: the gain grows while recent steps and the gradient agree (g v < 0).
  gain *= larger(1.0 - meta_rate * (g * v), 0.5);
  const Number eta = eta0 * gain;
  w -= eta * g;
  // the derivative of the line above: dw' = dw - eta g - eta H dw, with decay `memory`
  v = memory * v - eta * (g + memory * Hv);
}

// The share of the penalty of a row, and of a single weight.
inline double share_of_row(const MetaWeights& to, int64_t row) { return row < to.free_row ? to.share : 0.0; }
inline double share_of_weight(const MetaWeights& to, int64_t i) { return i < to.free_weight ? to.share : 0.0; }

// Number of steps before `step` in which a unit was not touched.
inline uint32_t missed(const MetaReadyJob& job, int32_t& ready) {
  const uint32_t n = static_cast<uint32_t>(job.step - ready);
  // `ready` counts steps: the rule of touched weights handles the current step, so it is not missed later.
  ready = job.step + 1;
  return n;
}

template <int P>
inline void ready_row(Width<P> width, const MetaReadyJob& job, int64_t row) {
  const MetaWeights& to = job.to;
  const uint32_t n = missed(job, to.dense[row]);
  if (n == 0) return;
  double unused;
  const double forgotten = power(to.memory, n, unused), eta_share = to.eta0 * share_of_row(to, row);
  const int64_t at = to.w.hot_offset + row * width.yp();
  for (int64_t i = at; i < at + width.yp(); i += kLanes) {
    Vec sum;
    // w, w x, w x^2, .. over the n missed steps, x = 1 - eta share: the last is the new w, and all except the first are
    // added to the sum of weights. Gains differ by weight, so each lane has its own power.
    const Vec w = load(to.w.rows + i), factor = power(1.0 - eta_share * load(to.gains + i), n, sum);
    store(to.w.rows + i, w * factor);
    store(to.v + i, forgotten * load(to.v + i));
    if (to.w.sum != nullptr) store(to.w.sum + i, load(to.w.sum + i) + sum * w);
  }
}

inline void ready_weight(const MetaWeights& to, uint32_t n, double share, int64_t i) {
  if (n == 0) return;
  double unused, sum;
  const double w = to.w.rows[i];
  to.w.rows[i] = w * power(1.0 - to.eta0 * share * to.gains[i], n, sum);
  to.v[i] *= power(to.memory, n, unused);
  if (to.w.sum != nullptr) to.w.sum[i] += sum * w;
}

inline void ready_edge(const MetaReadyJob& job, int64_t b) {
  const crfit::WeightSpan weights = crfit::edge_weights(*job.to.layout, b);
  const uint32_t n = missed(job, job.to.edges[b]);
  for (int64_t i = 0; i < weights.n; ++i)
    ready_weight(job.to, n, job.to.share, job.to.w.edge_offset + weights.first + i);
}

// Calls visit(unit) once for each unit; prefetch(unit) some units earlier.
template <class Prefetch, class Visit>
inline void each_unit(const Touches& touches, Prefetch prefetch, Visit visit) {
  constexpr int64_t kAhead = 6;
  for (int64_t i = 0; i < touches.n_singles; ++i) {
    if (i + kAhead < touches.n_singles) prefetch(touches.singles[i + kAhead].to);
    visit(touches.singles[i].to);
  }
  for (int64_t g = 0; g < touches.n_groups; ++g) {
    if (g + kAhead < touches.n_groups) prefetch(touches.group[g + kAhead]);
    visit(touches.group[g]);
  }
}

template <int P>
void meta_ready_units(const MetaReadyJob& job) {
  const Width<P> width(job.to.YP);
  const auto prefetch = [&](int64_t at, int n) {
    for (int64_t i = at; i < at + n; i += 8) {
      __builtin_prefetch(job.to.w.rows + i);
      __builtin_prefetch(job.to.v + i);
      __builtin_prefetch(job.to.gains + i);
    }
  };
  each_unit(
      job.dense, [&](int64_t row) { prefetch(job.to.w.hot_offset + row * width.yp(), width.yp()); },
      [&](int64_t row) { ready_row(width, job, row); });
  each_unit(
      job.sparse, [&](int64_t i) { prefetch(i, 1); },
      [&](int64_t i) { ready_weight(job.to, missed(job, job.to.sparse[i]), share_of_weight(job.to, i), i); });
  each_unit(job.edges, [](int64_t) {}, [&](int64_t b) { ready_edge(job, b); });
}

template <int P>
inline void meta_row(Width<P> width, const MetaWeights& to, int64_t row, const double* residual,
                     const double* tangent) {
  const int64_t at = to.w.hot_offset + row * width.yp();
  const uint64_t* labels = labels_of(to.w, row);
  const double share = share_of_row(to, row);
  for (int j = 0; j < width.yp(); j += kLanes) {
    const Vec w_before = load(to.w.rows + at + j), v_before = load(to.v + at + j), before = load(to.gains + at + j);
    Vec w = w_before, v = v_before, gain = before;
    meta_step(to.meta_rate, to.memory, to.eta0, share, load(residual + j), load(tangent + j), w, v, gain);
    if (labels != nullptr) {
      // Labels without a weight must keep w = v = 0 and gain = 1, or they would affect scores and the direction.
      const VecInt there = lanes_of(labels[j / 64] >> j % 64);
      w = there ? w : w_before;
      v = there ? v : v_before;
      gain = there ? gain : before;
    }
    store(to.w.rows + at + j, w);
    store(to.v + at + j, v);
    store(to.gains + at + j, gain);
    if (to.w.sum != nullptr) store(to.w.sum + at + j, load(to.w.sum + at + j) + w);
  }
}

inline void meta_weight(const MetaWeights& to, double share, int64_t i, double residual, double tangent) {
  meta_step(to.meta_rate, to.memory, to.eta0, share, residual, tangent, to.w.rows[i], to.v[i], to.gains[i]);
  if (to.w.sum != nullptr) to.w.sum[i] += to.w.rows[i];
}

template <int P>
void meta_update_units(const MetaUpdateJob& job) {
  const Width<P> width(job.to.YP);
  const int YP = width.yp();
  const Touches &dense = job.dense, &sparse = job.sparse, &edges = job.edges;
  RowsAhead<P> none(DataView{}, Prepared{}, -1);  // rows of the next step are prefetched when it starts
  for (int64_t i = 0; i < dense.n_singles; ++i) {
    const int64_t from = static_cast<int64_t>(dense.singles[i].from) * YP;
    meta_row(width, job.to, dense.singles[i].to, job.residual + from, job.tangent + from);
  }
  sum_rows(width, dense, job.residual, job.sums, none);
  sum_rows(width, dense, job.tangent, job.tangent_sums, none);
  for (int64_t g = 0; g < dense.n_groups; ++g) {
    const int64_t from = static_cast<int64_t>(dense.group_sum[g]) * YP;
    meta_row(width, job.to, dense.group[g], job.sums + from, job.tangent_sums + from);
  }

  for (int64_t i = 0; i < sparse.n_singles; ++i) {
    const int64_t from = sparse.singles[i].from, weight = sparse.singles[i].to;
    meta_weight(job.to, share_of_weight(job.to, weight), weight, job.residual[from], job.tangent[from]);
  }
  sum_weights(sparse, job.residual, job.sums);
  sum_weights(sparse, job.tangent, job.tangent_sums);
  for (int64_t g = 0; g < sparse.n_groups; ++g) {
    const int32_t from = sparse.group_sum[g], weight = sparse.group[g];
    meta_weight(job.to, share_of_weight(job.to, weight), weight, job.sums[from], job.tangent_sums[from]);
  }

  // Edge attributes: sum_edges reads pair tables, once for residuals and once for derivatives.
  OnlineRuleJob sum;
  sum.layout = job.to.layout;
  sum.YP = YP;
  sum.edges = edges;
  const int64_t room = edge_room(*job.to.layout);
  sum.pair_residual = job.pair_residual;
  sum.sums = job.sums;
  sum_edges(sum);
  sum.pair_residual = job.pair_tangent;
  sum.sums = job.tangent_sums;
  sum_edges(sum);
  for (int64_t g = 0; g < edges.n_groups; ++g) {
    const crfit::WeightSpan weights = crfit::edge_weights(*job.to.layout, edges.group[g]);
    for (int64_t i = 0; i < weights.n; ++i)
      meta_weight(job.to, job.to.share, job.to.w.edge_offset + weights.first + i, job.sums[g * room + i],
                  job.tangent_sums[g * room + i]);
  }
}

inline void meta_dense(const MetaDenseJob& job) {
  for (int64_t i = 0; i < job.n; i += kLanes) {
    Vec w = load(job.w + i), v = load(job.v + i), gain = load(job.gains + i);
    const Vec mask = load(job.mask + i);
    meta_step(job.meta_rate, job.memory, job.eta0, job.share, load(job.residual + i), load(job.tangent + i), w, v,
              gain);
    // Entries without a weight stay at w = v = 0, gain = 1.
    const VecInt there = mask != 0.0;
    store(job.w + i, there ? w : Vec{});
    store(job.v + i, there ? v : Vec{});
    store(job.gains + i, there ? gain : splat(1.0));
  }
}

}  // namespace
