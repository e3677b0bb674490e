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

constexpr int kBlock = 8;  // labels that are summed, transformed and added together

// Whether a block of labels has a weight in this row.
inline bool has_weights(const uint64_t* labels, int j) {
  return labels == nullptr || (labels[j / 64] >> j % 64 & 0xff) != 0;
}

inline const uint64_t* labels_of(const OnlineRows& to, int64_t row) {
  return to.hot_labels == nullptr ? nullptr : to.hot_labels + row * to.label_words;
}

// Sums of the groups of rows, the blocks that have weights one after the other; returns how many doubles that are.
template <int P>
inline int64_t sum_rows(Width<P> width, const OnlineRows& to, const Touches& touches, const double* residual,
                        double* sums) {
  const int YP = width.yp();
  double* out = sums;
  const uint32_t* from = touches.from;
  const double* value = touches.value;
  for (int64_t g = 0; g < touches.n_groups; ++g) {
    const int32_t n = touches.group_size[g];
    const uint64_t* labels = labels_of(to, touches.group[g]);
    for (int j = 0; j < YP; j += kBlock) {
      if (!has_weights(labels, j)) continue;
      for (int i = 0; i < kBlock; i += kLanes) {
        Vec sum = {};
        for (int32_t k = 0; k < n; ++k)
          sum += splat(value == nullptr ? 1.0 : value[k]) * load(residual + static_cast<int64_t>(from[k]) * YP + j + i);
        store(out + i, sum);
      }
      out += kBlock;
    }
    from += n;
    if (value != nullptr) value += n;
  }
  return out - sums;
}

// row += the blocks of `change` that it has weights in; returns what follows them.
template <int P>
inline const double* add_blocks(Width<P> width, const OnlineRows& to, int64_t row, const double* change) {
  const int64_t at = to.hot_offset + row * width.yp();
  const uint64_t* labels = labels_of(to, row);
  for (int j = 0; j < width.yp(); j += kBlock) {
    if (!has_weights(labels, j)) continue;
    for (int i = j; i < j + kBlock; i += kLanes) {
      Vec step = load(change + i - j);
      if (labels != nullptr) step = lanes_of(labels[i / 64] >> i % 64) ? step : Vec{};
      store(to.rows + at + i, load(to.rows + at + i) + step);
      if (to.sum != nullptr) store(to.sum + at + i, load(to.sum + at + i) + to.sum_factor * step);
    }
    change += kBlock;
  }
  return change;
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
  transform(*job.rule, job.residual, job.n_rows * YP, job.gain, job.transformed, ahead);
  const int64_t n_sums = sum_rows(width, job.to, job.dense, job.residual, job.sums);
  transform(*job.rule, job.sums, n_sums, job.gain, job.sums, ahead);
  for (int64_t i = 0; i < job.dense.n_singles; ++i) {
    ahead.ask();
    add_to_row(width, job.to, job.dense.single[i], 1.0,
               job.transformed + static_cast<int64_t>(job.dense.single_from[i]) * YP);
  }
  const double* sums = job.sums;
  for (int64_t g = 0; g < job.dense.n_groups; ++g) {
    ahead.ask();
    sums = add_blocks(width, job.to, job.dense.group[g], sums);
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

// AdaGrad on a row. `sum` has the residuals of all labels (whole), or of the blocks that the row has weights in; what
// follows these is returned.
template <int P>
inline const double* adapt_row(Width<P> width, const OnlineRuleJob& job, int64_t row, int32_t n_sequences,
                               const double* sum, bool whole) {
  const int64_t at = job.to.hot_offset + row * width.yp();
  const uint64_t* labels = labels_of(job.to, row);
  const double share = job.l2 * n_sequences / job.dense_counts[row];
  double *w = job.to.rows + at, *squares = job.squares + at;
  for (int j = 0; j < width.yp(); j += kBlock) {
    if (!has_weights(labels, j)) {
      sum += whole ? kBlock : 0;
      continue;
    }
    for (int i = j; i < j + kBlock; i += kLanes) {
      const Vec h_before = load(squares + i), before = load(w + i);
      Vec h = h_before, step = adapted(load(sum + i - j), before, share, job.gain, job.rule->epsilon, h);
      if (labels != nullptr) {
        const VecInt there = lanes_of(labels[i / 64] >> i % 64);
        h = there ? h : h_before;
        step = there ? step : Vec{};
      }
      store(squares + i, h);
      store(w + i, before + step);
      if (job.to.sum != nullptr) store(job.to.sum + at + i, load(job.to.sum + at + i) + job.to.sum_factor * step);
    }
    sum += kBlock;
  }
  return sum;
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
  sum_rows(width, job.to, job.dense, job.residual, job.sums);
  for (int64_t i = 0; i < job.dense.n_singles; ++i) {
    ahead.ask();
    adapt_row(width, job, job.dense.single[i], 1, job.residual + static_cast<int64_t>(job.dense.single_from[i]) * YP,
              true);
  }
  const double* sums = job.sums;
  for (int64_t g = 0; g < job.dense.n_groups; ++g)
    sums = adapt_row(width, job, job.dense.group[g], job.dense.group_sequences[g], sums, false);
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
