// The step of a rule on the weights of attributes that it touches: natural gradient descent and AdaGrad.
//
// A weight's residuals over the whole step are summed before the rule sees them. Most attributes occur once in a
// sequence: for them the sum is a residual row, whose transform was made once for all attributes of the position.
// Included by per-level files only.
#pragma once

#include "online_kernels.hpp"

namespace {

using crfit::OnlineRuleJob;
using crfit::Touches;

inline const uint64_t* labels_of(const OnlineRows& to, int64_t row) {
  return to.hot_labels == nullptr ? nullptr : to.hot_labels + row * to.label_words;
}

inline double value_of(const Touches& touches, int64_t i) {
  return touches.values == nullptr ? 1.0 : touches.values[i];
}

inline void set_zero(double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = 0.0;
}

inline int64_t whole_vectors(int64_t n) { return (n + 7) / 8 * 8; }

// Sums of the groups of edge attributes, [n_groups][edge_room]: each has its weights in order, then zeros.
inline int64_t edge_room(const LayoutView& layout) {
  return whole_vectors(static_cast<int64_t>(layout.n_labels) * layout.n_labels);
}

// First weight of an edge attribute, and how many it has.
struct EdgeWeights {
  EdgeWeights(const LayoutView& layout, int64_t b)
      : first(layout.pair_ptr == nullptr ? b * layout.n_labels * layout.n_labels : layout.pair_ptr[b]),
        n(layout.pair_ptr == nullptr ? static_cast<int64_t>(layout.n_labels) * layout.n_labels
                                     : layout.pair_ptr[b + 1] - first) {}
  int64_t first, n;
};

inline void sum_edges(const OnlineRuleJob& job) {
  const LayoutView& layout = *job.layout;
  const int64_t Y = layout.n_labels, pair_size = Y * job.YP, room = edge_room(layout);
  set_zero(job.sums, job.edges.n_groups * room);
  for (int64_t k = 0; k < job.edges.n; ++k) {
    const int64_t g = ~job.edges.items[k].target;
    const EdgeWeights weights(layout, job.edges.group[g]);
    const double* pairs = job.pair_residual + static_cast<int64_t>(job.edges.items[k].from) * pair_size;
    for (int64_t i = 0; i < weights.n; ++i)
      job.sums[g * room + i] +=
          pairs[crfit::padded_pair(layout.pair_ptr == nullptr ? i : layout.pair_codes[weights.first + i], Y, job.YP)];
  }
}

// Adds the transformed residuals of units that are touched once to their rows, and sums the residuals of groups.
template <int P>
inline void add_singles(Width<P> width, const OnlineRuleJob& job, RowsAhead& ahead) {
  const int YP = width.yp();
  const Touches& touches = job.dense;
  const OnlineRows& to = job.to;
  if (to.hot_labels == nullptr && to.sum == nullptr && touches.values == nullptr) {
    for (int64_t i = 0; i < touches.n; ++i) {  // the two cases differ in addresses alone: nothing to be guessed wrong
      ahead.ask();
      const int64_t target = touches.items[i].target, from = touches.items[i].from;
      const double* change = (target >= 0 ? job.transformed : job.residual) + from * YP;
      double* row = target >= 0 ? to.rows + target * YP : job.sums + ~target * YP;
      for (int j = 0; j < YP; j += kLanes) store(row + j, load(row + j) + load(change + j));
    }
    return;
  }
  for (int64_t i = 0; i < touches.n; ++i) {
    ahead.ask();
    const int64_t target = touches.items[i].target, from = touches.items[i].from;
    if (target >= 0)
      add_to_row(width, to, target, 1.0, job.transformed + from * YP);
    else
      add_row(width, value_of(touches, i), job.residual + from * YP, nullptr, job.sums + ~target * YP);
  }
}

template <int P>
void transform_touched(Width<P> width, const OnlineRuleJob& job) {
  const int YP = width.yp();
  RowsAhead ahead(*job.data, *job.weights, job.next_sequence);
  transform(*job.rule, job.residual, job.n_rows * YP, job.gain, job.transformed);
  set_zero(job.sums, job.dense.n_groups * YP);
  add_singles(width, job, ahead);
  transform(*job.rule, job.sums, job.dense.n_groups * YP, job.gain, job.sums);
  for (int64_t g = 0; g < job.dense.n_groups; ++g)
    add_to_row(width, job.to, job.dense.group[g], 1.0, job.sums + g * YP);

  const Touches& sparse = job.sparse;
  const int64_t n_sums = whole_vectors(sparse.n_groups);
  set_zero(job.sums, n_sums);
  for (int64_t i = 0; i < sparse.n; ++i) {
    ahead.ask();
    const int64_t target = sparse.items[i].target, from = sparse.items[i].from;
    if (target >= 0)
      add_to_weight(job.to, target, job.transformed[from]);
    else
      job.sums[~target] += value_of(sparse, i) * job.residual[from];
  }
  transform(*job.rule, job.sums, n_sums, job.gain, job.sums);
  for (int64_t g = 0; g < sparse.n_groups; ++g) add_to_weight(job.to, sparse.group[g], job.sums[g]);
  ahead.ask_for_rest();

  const int64_t room = edge_room(*job.layout);
  sum_edges(job);
  transform(*job.rule, job.sums, job.edges.n_groups * room, job.gain, job.sums);
  for (int64_t g = 0; g < job.edges.n_groups; ++g) {
    const EdgeWeights weights(*job.layout, job.edges.group[g]);
    for (int64_t i = 0; i < weights.n; ++i)
      add_to_weight(job.to, job.to.edge_offset + weights.first + i, job.sums[g * room + i]);
  }
}

// AdaGrad on a row: `sum` is its residual.
template <int P>
inline void adapt_row(Width<P> width, const OnlineRuleJob& job, int64_t row, int32_t n_sequences, const double* sum) {
  const int64_t at = job.to.hot_offset + row * width.yp();
  const uint64_t* labels = labels_of(job.to, row);
  const double share = job.l2 * n_sequences / job.dense_counts[row];
  double *w = job.to.rows + at, *squares = job.squares + at;
  for (int j = 0; j < width.yp(); j += kLanes) {
    const Vec h_before = load(squares + j), before = load(w + j);
    Vec h = h_before, step = adapted(load(sum + j), before, share, job.gain, job.rule->epsilon, h);
    if (labels != nullptr) {
      const VecInt there = lanes_of(labels[j / 64] >> j % 64);
      h = there ? h : h_before;
      step = there ? step : Vec{};
    }
    store(squares + j, h);
    store(w + j, before + step);
    if (job.to.sum != nullptr) store(job.to.sum + at + j, load(job.to.sum + at + j) + job.to.sum_factor * step);
  }
}

// AdaGrad on a single weight.
inline void adapt_weight(const OnlineRuleJob& job, int64_t at, int32_t n_sequences, int32_t count, double residual) {
  const double u = job.l2 * n_sequences / count * job.to.rows[at] - residual;
  job.squares[at] += u * u;
  add_to_weight(job.to, at, -job.gain * u / (std::sqrt(job.squares[at]) + job.rule->epsilon));
}

template <int P>
void adapt_touched(Width<P> width, const OnlineRuleJob& job) {
  const int YP = width.yp();
  RowsAhead ahead(*job.data, *job.weights, job.next_sequence);
  const Touches &dense = job.dense, &sparse = job.sparse, &edges = job.edges;
  set_zero(job.sums, dense.n_groups * YP);
  for (int64_t i = 0; i < dense.n; ++i) {
    ahead.ask();
    const int64_t target = dense.items[i].target;
    const double* residual = job.residual + static_cast<int64_t>(dense.items[i].from) * YP;
    if (target >= 0)
      adapt_row(width, job, target, 1, residual);
    else
      add_row(width, value_of(dense, i), residual, nullptr, job.sums + ~target * YP);
  }
  for (int64_t g = 0; g < dense.n_groups; ++g)
    adapt_row(width, job, dense.group[g], dense.group_sequences[g], job.sums + g * YP);

  set_zero(job.sums, sparse.n_groups);
  for (int64_t i = 0; i < sparse.n; ++i) {
    ahead.ask();
    const int64_t target = sparse.items[i].target;
    const double residual = value_of(sparse, i) * job.residual[sparse.items[i].from];
    if (target >= 0)
      adapt_weight(job, target, 1, job.sparse_counts[target], residual);
    else
      job.sums[~target] += residual;
  }
  for (int64_t g = 0; g < sparse.n_groups; ++g) {
    const int32_t weight = sparse.group[g];
    adapt_weight(job, weight, sparse.group_sequences[g], job.sparse_counts[weight], job.sums[g]);
  }
  ahead.ask_for_rest();

  const int64_t room = edge_room(*job.layout);
  sum_edges(job);
  for (int64_t g = 0; g < edges.n_groups; ++g) {
    const int32_t b = edges.group[g];
    const EdgeWeights weights(*job.layout, b);
    for (int64_t i = 0; i < weights.n; ++i)
      adapt_weight(job, job.to.edge_offset + weights.first + i, edges.group_sequences[g], job.edge_counts[b],
                   job.sums[g * room + i]);
  }
}

template <int P>
void update_by_rule(const OnlineRuleJob& job) {
  if (job.rule->kind == OnlineRule::kTransform)
    transform_touched(Width<P>(job.YP), job);
  else
    adapt_touched(Width<P>(job.YP), job);
}

}  // namespace
