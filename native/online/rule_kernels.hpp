// Steps of non-linear rules, natural gradient descent and AdaGrad, on the touched weights of attributes.
// Included by per-level files only.
//
//   transform   w += gain T(r)
//   adaptive    u = (l2 n / m) w - r;  h += u^2;  w -= eta u / (sqrt(h) + epsilon)
//
// with r the weight's residual summed over the whole step. A step (Touches) has three kinds of units: rows of
// attributes [YP], single weights, edge attributes [at most Y * Y]. Each kind has singles, whose r is one residual row,
// and groups, whose r is summed first: sums [n_sums][YP], [n_sums] or [n_sums][edge_room].
//
// T is applied to rows before they are added: once per position, because its singles get the same row, and once per
// sum, which groups share; not once per weight. AdaGrad has no such shortcut, because its step depends on w and h of
// the weight.
#pragma once

#include "online/step_kernels.hpp"

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

// Sums of edge attributes, [n_sums][edge_room]: each has its weights in order, then zeros.
inline int64_t edge_room(const LayoutView& layout) {
  return whole_vectors(static_cast<int64_t>(layout.n_labels) * layout.n_labels);
}

inline void sum_edges(const OnlineRuleJob& job) {
  const LayoutView& layout = *job.layout;
  const int64_t Y = layout.n_labels, pair_size = Y * job.YP, room = edge_room(layout);
  set_zero(job.sums, job.edges.n_sums * room);
  for (int64_t k = 0; k < job.edges.n_summed; ++k) {
    const int64_t g = job.edges.summed[k].to;  // each group has its own sum
    const crfit::WeightSpan weights = crfit::edge_weights(layout, job.edges.group[g]);
    // [Y][YP] of the position where the edge attribute fires; pair_codes are the label pairs with a weight.
    const double* pairs = job.pair_residual + static_cast<int64_t>(job.edges.summed[k].from) * pair_size;
    for (int64_t i = 0; i < weights.n; ++i)
      job.sums[g * room + i] +=
          pairs[crfit::padded_pair(layout.pair_ptr == nullptr ? i : layout.pair_codes[weights.first + i], Y, job.YP)];
  }
}

// Sums of the residuals of rows, [n_sums][YP].
template <int P>
inline void sum_rows(Width<P> width, const Touches touches, const double* residual, double* sums, RowsAhead<P>& ahead) {
  const int YP = width.yp();
  set_zero(sums, touches.n_sums * YP);
  RowsAhead<P> rows_ahead = ahead;  // a local copy in registers, which stores cannot alias
  for (int64_t i = 0; i < touches.n_summed; ++i) {
    rows_ahead.prefetch_next();
    const double* from = residual + static_cast<int64_t>(touches.summed[i].from) * YP;
    double* to = sums + static_cast<int64_t>(touches.summed[i].to) * YP;
    // r = sum of x residual[t, :] in the order of the data
    const Vec x = splat(value_of(touches, i));
    for (int j = 0; j < YP; j += kLanes) store(to + j, load(to + j) + x * load(from + j));
  }
  ahead = rows_ahead;
}

// The same for single weights, [n_sums].
inline void sum_weights(const Touches touches, const double* residual, double* sums) {
  set_zero(sums, whole_vectors(touches.n_sums));
  for (int64_t i = 0; i < touches.n_summed; ++i)
    sums[touches.summed[i].to] += value_of(touches, i) * residual[touches.summed[i].from];
}

// row += change for labels with a weight; for rows without a sum of weights.
template <int P>
inline void add_change(Width<P> width, uint64_t labels, const double* change, double* row) {
  for (int j = 0; j < width.yp(); j += kLanes) {
    const Vec before = load(row + j);
    store(row + j, select(labels >> j, before + load(change + j), before));
  }
}

// Rows get the change of their position.
template <int P>
inline void add_singles(Width<P> width, const Touches touches, const OnlineRows to, const double* changes,
                        RowsAhead<P>& ahead) {
  const int YP = width.yp();
  RowsAhead<P> rows_ahead = ahead;
  const auto each = [&](const auto& add) __attribute__((always_inline)) {
    for (int64_t i = 0; i < touches.n_singles; ++i) {
      rows_ahead.prefetch_next();
      add(touches.singles[i].to, changes + static_cast<int64_t>(touches.singles[i].from) * YP);
    }
  };
  double* rows = to.rows + to.hot_offset;
  if (to.sum == nullptr && to.label_words == 1)
    each([&](int64_t unit, const double* change) { add_change(width, to.hot_labels[unit], change, rows + unit * YP); });
  else if (to.sum == nullptr && to.hot_labels == nullptr)
    each([&](int64_t unit, const double* change) {
      for (int j = 0; j < YP; j += kLanes) store(rows + unit * YP + j, load(rows + unit * YP + j) + load(change + j));
    });
  else
    each([&](int64_t unit, const double* change) { add_to_row(width, to, unit, 1.0, change); });
  ahead = rows_ahead;
}

// The same for single weights.
template <int P>
inline void add_single_weights(const Touches touches, const OnlineRows to, const double* changes, RowsAhead<P>& ahead) {
  RowsAhead<P> rows_ahead = ahead;
  for (int64_t i = 0; i < touches.n_singles; ++i) {
    rows_ahead.prefetch_next();
    add_to_weight(to, touches.singles[i].to, changes[touches.singles[i].from]);
  }
  ahead = rows_ahead;
}

template <int P>
void transform_touched(Width<P> width, const OnlineRuleJob& job) {
  const int YP = width.yp();
  const OnlineRows to = job.to;
  const Touches &dense = job.dense, &sparse = job.sparse;
  // Sums before T, in the first half of the room, T of them in the second: T(a) + T(b) != T(a + b).
  double* bent = job.sums + job.sums_room;  // gain T(sums)
  RowsAhead<P> ahead(*job.data, *job.weights, job.next_sequence);
  // n_rows is 0 if the tasks that solved the sequences have already done this.
  transform(*job.rule, job.residual, job.n_rows * YP, job.gain, job.transformed);
  add_singles(width, dense, to, job.transformed, ahead);
  sum_rows(width, dense, job.residual, job.sums, ahead);
  transform(*job.rule, job.sums, dense.n_sums * YP, job.gain, bent);
  for (int64_t g = 0; g < dense.n_groups; ++g)
    add_to_row(width, to, dense.group[g], 1.0, bent + static_cast<int64_t>(dense.group_sum[g]) * YP);

  // Single weights: `from` is an entry of the residual rows, not a row.
  add_single_weights(sparse, to, job.transformed, ahead);
  sum_weights(sparse, job.residual, job.sums);
  transform(*job.rule, job.sums, whole_vectors(sparse.n_sums), job.gain, bent);
  for (int64_t g = 0; g < sparse.n_groups; ++g) add_to_weight(to, sparse.group[g], bent[sparse.group_sum[g]]);
  ahead.prefetch_rest();

  const int64_t room = edge_room(*job.layout);
  sum_edges(job);
  transform(*job.rule, job.sums, job.edges.n_sums * room, job.gain, bent);
  for (int64_t g = 0; g < job.edges.n_groups; ++g) {
    const crfit::WeightSpan weights = crfit::edge_weights(*job.layout, job.edges.group[g]);
    for (int64_t i = 0; i < weights.n; ++i) add_to_weight(to, to.edge_offset + weights.first + i, bent[g * room + i]);
  }
}

// AdaGrad on a row: `sum` is its residual.
template <int P>
inline void adapt_row(Width<P> width, const OnlineRuleJob& job, int64_t row, int32_t n_sequences, const double* sum) {
  const int64_t at = job.to.hot_offset + row * width.yp();
  const uint64_t* labels = labels_of(job.to, row);
  // n sequences of the step and m = counts of the dataset touch the row, so an epoch sums to l2 w; m is infinite for
  // unpenalised rows.
  const double share = job.l2 * n_sequences / job.dense_counts[row];
  double *w = job.to.rows + at, *squares = job.squares + at;
  for (int j = 0; j < width.yp(); j += kLanes) {
    const Vec h_before = load(squares + j), before = load(w + j);
    Vec h = h_before, step = adapted(load(sum + j), before, share, job.gain, job.rule->epsilon, h);
    if (labels != nullptr) {
      // Mask h too: the residual of a label without a weight is not 0, and its h would be read as that of a weight.
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
inline void adapt_weight(const OnlineRuleJob& job, int64_t at, int32_t n_sequences, double count, double residual) {
  const double u = job.l2 * n_sequences / count * job.to.rows[at] - residual;
  job.squares[at] += u * u;
  add_to_weight(job.to, at, -job.gain * u / (std::sqrt(job.squares[at]) + job.rule->epsilon));
}

template <int P>
void adapt_touched(Width<P> width, const OnlineRuleJob& job) {
  const int YP = width.yp();
  RowsAhead<P> ahead(*job.data, *job.weights, job.next_sequence);
  const Touches &dense = job.dense, &sparse = job.sparse, &edges = job.edges;
  for (int64_t i = 0; i < dense.n_singles; ++i) {
    ahead.prefetch_next();
    // A single is touched by one sequence of the step: n = 1.
    adapt_row(width, job, dense.singles[i].to, 1, job.residual + static_cast<int64_t>(dense.singles[i].from) * YP);
  }
  sum_rows(width, dense, job.residual, job.sums, ahead);
  for (int64_t g = 0; g < dense.n_groups; ++g)
    adapt_row(width, job, dense.group[g], dense.group_sequences[g],
              job.sums + static_cast<int64_t>(dense.group_sum[g]) * YP);

  for (int64_t i = 0; i < sparse.n_singles; ++i) {
    ahead.prefetch_next();
    const int32_t weight = sparse.singles[i].to;
    adapt_weight(job, weight, 1, job.sparse_counts[weight], job.residual[sparse.singles[i].from]);
  }
  sum_weights(sparse, job.residual, job.sums);
  for (int64_t g = 0; g < sparse.n_groups; ++g) {
    const int32_t weight = sparse.group[g];
    adapt_weight(job, weight, sparse.group_sequences[g], job.sparse_counts[weight], job.sums[sparse.group_sum[g]]);
  }
  ahead.prefetch_rest();

  const int64_t room = edge_room(*job.layout);
  sum_edges(job);
  for (int64_t g = 0; g < edges.n_groups; ++g) {
    const int32_t b = edges.group[g];
    const crfit::WeightSpan weights = crfit::edge_weights(*job.layout, b);
    for (int64_t i = 0; i < weights.n; ++i)
      adapt_weight(job, job.to.edge_offset + weights.first + i, edges.group_sequences[g], job.edge_counts[b],
                   job.sums[g * room + i]);
  }
}

template <int P>
void update_touched(const OnlineRuleJob& job) {
  if (job.rule->kind == OnlineRule::kTransform)
    transform_touched(Width<P>(job.YP), job);
  else
    adapt_touched(Width<P>(job.YP), job);
}

}  // namespace
