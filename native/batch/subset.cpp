// Loss and gradient of a few sequences, for mini-batches.
#include <algorithm>

#include "base/dispatch.hpp"
#include "base/pool.hpp"
#include "base/vectors.hpp"
#include "batch/batch.hpp"

namespace crfit {

namespace {

// The same sequences with those of similar length next to each other, longest first.
std::vector<int64_t> longest_first(const DataView& data, const int64_t* sequences, int64_t n) {
  std::vector<int64_t> order(sequences, sequences + n);
  const auto length = [&](int64_t i) { return data.seq_ptr[i + 1] - data.seq_ptr[i]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  return order;
}

}  // namespace

double Batch::loss_on(const double* w, const int64_t* sequences, int64_t n) {
  const int64_t part = lanes_;  // sequences per task
  const std::vector<int64_t> sorted = longest_first(data_, sequences, n);
  sequences = sorted.data();
  const Prepared weights = ready_for_few(w);
  int64_t last = now();
  make_scratch();
  const int64_t n_tasks = (n + part - 1) / part;
  std::vector<double> losses(static_cast<std::size_t>(n_tasks), 0.0);
  std::vector<PhaseSeconds> busy(losses.size());
  parallel_for(n_threads_, n_tasks, [&](int64_t k, int worker) {
    ChunkJob job = job_of({0, std::min(part, n - k * part)}, worker);
    job.weights = &weights;
    job.sequences = sequences + k * part;
    job.loss = &losses[k];
    job.busy = &busy[k];
    at_level<BatchKernels>().loss(job);
  });
  add_loop(lap(last), busy);
  return sum_in_order(losses.data(), static_cast<int64_t>(losses.size()));
}

// A few sequences: lattices in parallel, then one thread scatters the residuals in order. Few rows are touched compared
// with the number of weights, and a transposed index would cost more than it saves.
double Batch::loss_and_grad_on(const double* w, double l2, const int64_t* sequences, int64_t n, double* g) {
  const int Y = layout_.n_labels;
  const int64_t pair_size = static_cast<int64_t>(Y) * YP_;
  const Prepared weights = ready_for_few(w);
  int64_t last = now();
  make_scratch();
  scale_into(n_threads_, layout_.n_weights, l2, w, g);
  const double square = norms(n_threads_, layout_.n_weights, w).square;
  // Tasks of part sequences use every part-th entry; the others stay 0.
  std::vector<double> losses(static_cast<std::size_t>(n), 0.0);
  const int64_t row_limit = std::max<int64_t>(1, round_bytes_ / (8 * (YP_ + (has_edges_ ? pair_size : 0))));
  const int64_t part = lanes_;  // sequences per task
  const std::vector<int64_t> sorted = longest_first(data_, sequences, n);
  sequences = sorted.data();

  for (int64_t begin = 0; begin < n;) {
    std::vector<int64_t> row_of;  // first residual row of each sequence of this part
    int64_t rows = 0, end = begin;
    for (; end < n; ++end) {
      const int64_t T = data_.seq_ptr[sequences[end] + 1] - data_.seq_ptr[sequences[end]];
      // As many sequences as fit with their residual rows and n-gram tables, at least one.
      if (end > begin && (rows + T > row_limit || end - begin >= part * max_chunks_)) break;
      row_of.push_back(rows);
      rows += T;
    }
    if (residual_.size() < rows * YP_) residual_.resize(rows * YP_);
    if (has_edges_ && pair_marginals_.size() < rows * pair_size) pair_marginals_.resize(rows * pair_size);
    const int64_t n_tasks = (end - begin + part - 1) / part;
    if (pair_sums_.size() < n_tasks * n_ngrams_) pair_sums_.resize(n_tasks * n_ngrams_);
    std::vector<PhaseSeconds> busy(static_cast<std::size_t>(n_tasks));
    seconds_.gather += lap(last);
    parallel_for(n_threads_, n_tasks, [&](int64_t k, int worker) {
      double* pair_sum = pair_sums_.data() + k * n_ngrams_;
      std::fill_n(pair_sum, n_ngrams_, 0.0);
      ChunkJob job = job_of({0, std::min(part, end - begin - k * part)}, worker);
      job.weights = &weights;
      job.sequences = sequences + begin + k * part;
      job.loss = &losses[begin + k * part];
      job.pair_sum = pair_sum;
      job.residual = residual_.data();
      job.pair_marginals = has_edges_ ? pair_marginals_.data() : nullptr;
      job.rows = row_of.data() + k * part;
      job.busy = &busy[k];
      at_level<BatchKernels>().gradient(job);
    });
    add_loop(lap(last), busy);
    std::fill(pair_total_.begin(), pair_total_.end(), 0.0);
    sum_ngrams(n_tasks);
    if (!one_position_) add_longer_ngrams(layout_, pair_total_.data());
    // Expected n-grams of the part; the observed ones are subtracted sequence by sequence (scatter).
    add_to_transitions(g);
    for (int64_t i = begin; i < end; ++i)
      scatter(sequences[i], residual_.data() + row_of[i - begin] * YP_,
              has_edges_ ? pair_marginals_.data() + row_of[i - begin] * pair_size : nullptr, g);
    begin = end;
  }
  seconds_.gather += lap(last);
  return sum_in_order(losses.data(), static_cast<int64_t>(losses.size())) + 0.5 * l2 * square;
}

// Adds one sequence's residual rows, including gold label n-grams, to the gradient.
void Batch::scatter(int64_t sequence, const double* residual, const double* pairs, double* g) const {
  const int Y = layout_.n_labels;
  const int64_t first = data_.seq_ptr[sequence], T = data_.seq_ptr[sequence + 1] - first;
  const double c = data_.weights == nullptr ? 1.0 : data_.weights[sequence];
  const int64_t pair_size = static_cast<int64_t>(Y) * YP_;
  for (int64_t t = 0; t < T; ++t) {
    const double* row = residual + t * YP_;
    for (int64_t k = data_.attr_ptr[first + t]; k < data_.attr_ptr[first + t + 1]; ++k) {
      const int64_t a = data_.attr_ids[k];
      if (a >= layout_.n_attributes) continue;
      const double x = data_.attr_values == nullptr ? 1.0 : data_.attr_values[k];
      if (layout_.state_ptr == nullptr)
        for (int j = 0; j < Y; ++j) g[a * Y + j] += x * row[j];
      else
        for (int64_t i = layout_.state_ptr[a]; i < layout_.state_ptr[a + 1]; ++i)
          g[i] += x * row[layout_.state_labels[i]];
    }
    if (t == 0) continue;
    if (has_edges_)
      for (int64_t k = data_.edge_ptr[first + t]; k < data_.edge_ptr[first + t + 1]; ++k) {
        const int64_t b = data_.edge_ids[k];
        if (b >= layout_.n_edge_attributes) continue;
        const auto [begin, n] = edge_weights(layout_, b);
        for (int64_t i = begin; i < begin + n; ++i) {
          const int64_t code = layout_.pair_ptr == nullptr ? i - begin : layout_.pair_codes[i];
          g[layout_.edge_offset + i] += pairs[t * pair_size + padded_pair(code, Y, YP_)];
        }
      }
    for (int m = 1; m <= layout_.order && m <= t; ++m) {
      const NgramBlock& block = layout_.ngrams[m - 1];
      const int64_t at = find_ngram(block, ngram_code(data_.labels + first + t, m, Y));
      // Every length of n-gram that ends at t: here the shorter ones are not sums over a table.
      if (at >= 0) g[block.offset + at] -= c;
    }
  }
  if (layout_.boundary)
    for (int j = 0; j < Y; ++j) {
      g[layout_.start_offset + j] += residual[j];
      g[layout_.end_offset + j] += residual[(T - 1) * YP_ + j];
    }
}

}  // namespace crfit
