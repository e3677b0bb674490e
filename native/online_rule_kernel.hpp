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

// Sums of the groups of rows: [n_groups][YP].
template <int P>
inline void sum_rows(Width<P> width, const Touches& touches, const double* residual, double* sums) {
  const int YP = width.yp();
  int64_t k = 0;
  for (int64_t g = 0; g < touches.n_groups; ++g) {
    double* sum = sums + g * YP;
    for (int j = 0; j < YP; ++j) sum[j] = 0.0;
    for (const int64_t end = k + touches.group_size[g]; k < end; ++k)
      add_row(width, touches.value == nullptr ? 1.0 : touches.value[k],
              residual + static_cast<int64_t>(touches.from[k]) * YP, nullptr, sum);
  }
}

// Sums of the groups of single weights, filled up with zeros to whole vectors; returns how many doubles that are.
inline int64_t sum_weights(const Touches& touches, const double* residual, double* sums) {
  int64_t k = 0;
  for (int64_t g = 0; g < touches.n_groups; ++g) {
    double sum = 0.0;
    for (const int64_t end = k + touches.group_size[g]; k < end; ++k)
      sum += (touches.value == nullptr ? 1.0 : touches.value[k]) * residual[touches.from[k]];
    sums[g] = sum;
  }
  const int64_t padded = (touches.n_groups + 7) / 8 * 8;
  for (int64_t g = touches.n_groups; g < padded; ++g) sums[g] = 0.0;
  return padded;
}

// Sums of the weights of one edge attribute, and where these are: their number is returned, filled up as above.
inline int64_t sum_edge(const OnlineRuleJob& job, int32_t b, const uint32_t* from, int32_t n, int64_t& first,
                        double* sums) {
  const LayoutView& layout = *job.layout;
  const int64_t Y = layout.n_labels, pair_size = Y * job.YP;
  const bool all = layout.pair_ptr == nullptr;
  first = all ? b * Y * Y : layout.pair_ptr[b];
  const int64_t count = all ? Y * Y : layout.pair_ptr[b + 1] - first, padded = (count + 7) / 8 * 8;
  for (int64_t i = 0; i < padded; ++i) sums[i] = 0.0;
  for (int32_t k = 0; k < n; ++k) {
    const double* pairs = job.pair_residual + static_cast<int64_t>(from[k]) * pair_size;
    for (int64_t i = 0; i < count; ++i)
      sums[i] += pairs[crfit::padded_pair(all ? i : layout.pair_codes[first + i], Y, job.YP)];
  }
  first += job.to.edge_offset;
  return count;
}

template <int P>
void transform_touched(Width<P> width, const OnlineRuleJob& job) {
  const int YP = width.yp();
  RowsAhead ahead(*job.data, *job.layout, job.to.rows, YP, job.next_sequence);
  sum_rows(width, job.dense, job.residual, job.sums);
  transform(*job.rule, job.sums, job.dense.n_groups * YP, job.gain, job.sums);
  for (int64_t i = 0; i < job.dense.n_singles; ++i) {
    ahead.ask();
    add_to_row(width, job.to, job.dense.single[i], 1.0,
               job.transformed + static_cast<int64_t>(job.dense.single_from[i]) * YP);
  }
  for (int64_t g = 0; g < job.dense.n_groups; ++g) {
    ahead.ask();
    add_to_row(width, job.to, job.dense.group[g], 1.0, job.sums + g * YP);
  }
  ahead.ask_for_rest();

  transform(*job.rule, job.sums, sum_weights(job.sparse, job.residual, job.sums), job.gain, job.sums);
  for (int64_t i = 0; i < job.sparse.n_singles; ++i)
    add_to_weight(job.to, job.sparse.single[i], job.transformed[job.sparse.single_from[i]]);
  for (int64_t g = 0; g < job.sparse.n_groups; ++g) add_to_weight(job.to, job.sparse.group[g], job.sums[g]);

  const uint32_t* from = job.edges.from;
  for (int64_t g = 0; g < job.edges.n_groups; ++g) {
    int64_t first = 0;
    const int64_t n = sum_edge(job, job.edges.group[g], from, job.edges.group_size[g], first, job.sums);
    from += job.edges.group_size[g];
    transform(*job.rule, job.sums, (n + 7) / 8 * 8, job.gain, job.sums);
    for (int64_t i = 0; i < n; ++i) add_to_weight(job.to, first + i, job.sums[i]);
  }
}

// AdaGrad on a row: `sum` is its residual.
template <int P>
inline void adapt_row(Width<P> width, const OnlineRuleJob& job, int64_t row, int32_t n_sequences, const double* sum) {
  const int64_t at = job.to.hot_offset + row * width.yp();
  const uint64_t* labels = job.to.hot_labels == nullptr ? nullptr : job.to.hot_labels + row * job.to.label_words;
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
inline void adapt_weight(const OnlineRuleJob& job, int64_t at, double share, double residual) {
  const double u = share * job.to.rows[at] - residual;
  job.squares[at] += u * u;
  add_to_weight(job.to, at, -job.gain * u / (std::sqrt(job.squares[at]) + job.rule->epsilon));
}

template <int P>
void adapt_touched(Width<P> width, const OnlineRuleJob& job) {
  const int YP = width.yp();
  RowsAhead ahead(*job.data, *job.layout, job.to.rows, YP, job.next_sequence);
  sum_rows(width, job.dense, job.residual, job.sums);
  for (int64_t i = 0; i < job.dense.n_singles; ++i) {
    ahead.ask();
    adapt_row(width, job, job.dense.single[i], 1, job.residual + static_cast<int64_t>(job.dense.single_from[i]) * YP);
  }
  for (int64_t g = 0; g < job.dense.n_groups; ++g)
    adapt_row(width, job, job.dense.group[g], job.dense.group_sequences[g], job.sums + g * YP);
  ahead.ask_for_rest();

  const auto share = [&](int32_t n, int32_t count) { return job.l2 * n / count; };
  sum_weights(job.sparse, job.residual, job.sums);
  for (int64_t i = 0; i < job.sparse.n_singles; ++i) {
    const int32_t weight = job.sparse.single[i];
    adapt_weight(job, weight, share(1, job.sparse_counts[weight]), job.residual[job.sparse.single_from[i]]);
  }
  for (int64_t g = 0; g < job.sparse.n_groups; ++g) {
    const int32_t weight = job.sparse.group[g];
    adapt_weight(job, weight, share(job.sparse.group_sequences[g], job.sparse_counts[weight]), job.sums[g]);
  }

  const uint32_t* from = job.edges.from;
  for (int64_t g = 0; g < job.edges.n_groups; ++g) {
    int64_t first = 0;
    const int32_t b = job.edges.group[g];
    const int64_t n = sum_edge(job, b, from, job.edges.group_size[g], first, job.sums);
    from += job.edges.group_size[g];
    for (int64_t i = 0; i < n; ++i)
      adapt_weight(job, first + i, share(job.edges.group_sequences[g], job.edge_counts[b]), job.sums[i]);
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
