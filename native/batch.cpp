#include "batch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "pool.hpp"
#include "vectors.hpp"

namespace crfit {

namespace {

constexpr int64_t kChunkTokens = 512;         // enough work to hide the hand-out, small enough to balance
constexpr int64_t kMaxChunks = 512;
constexpr int64_t kPairSumBytes = 256 << 20;  // all chunks' expected pairs together
constexpr int64_t kRoundBytes = int64_t{2} << 30;  // residual rows kept at a time
constexpr int64_t kGatherTasks = 256;
constexpr int64_t kSegments = 32;             // parts of a round with sums of frequent attributes of their own
constexpr int64_t kFrequentBytes = 384 << 10;  // of one segment's sums: they should stay in a second-level cache
constexpr int64_t kFrequentCount = 64;        // occurrences from which position by position pays

}  // namespace

Batch::Batch(const DataView& data, const LayoutView& layout, int n_threads)
    : data_(data), layout_(layout), n_threads_(n_threads), YP_(padded_labels(layout.n_labels)), weights_(layout) {
  const int64_t pair_size = static_cast<int64_t>(layout_.n_labels) * YP_;
  has_edges_ = data_.edge_ptr != nullptr && layout_.n_edge_attributes > 0;
  plan_rounds();
  choose_frequent();
  for (Round& round : rounds_) index_round(round);
  if (layout_.state_ptr != nullptr) index_tokens();
  pair_sums_.resize(n_chunks_ * pair_size);
  pair_total_.assign(static_cast<std::size_t>(pair_size), 0.0);
  observed_pairs_.assign(static_cast<std::size_t>(pair_size), 0.0);
  if (data_.labels != nullptr)
    for (int64_t i = 0; i < data_.n_sequences; ++i) {
      const double c = data_.weights == nullptr ? 1.0 : data_.weights[i];
      for (int64_t t = data_.seq_ptr[i] + 1; t < data_.seq_ptr[i + 1]; ++t)
        observed_pairs_[data_.labels[t - 1] * YP_ + data_.labels[t]] += c;
    }
}

// Chunks and rounds depend on the dataset alone.
void Batch::plan_rounds() {
  const int64_t pair_size = static_cast<int64_t>(layout_.n_labels) * YP_;
  const int64_t limit = std::max<int64_t>(16, std::min(kMaxChunks, kPairSumBytes / (8 * pair_size)));
  const int64_t chunk_tokens = std::max(kChunkTokens, data_.n_positions / limit + 1);
  const int64_t row_bytes = 8 * (YP_ + (has_edges_ ? pair_size : 0));
  const int64_t round_rows =
      std::min<int64_t>(std::numeric_limits<int32_t>::max(), std::max<int64_t>(1, kRoundBytes / row_bytes));
  for (int64_t i = 0; i < data_.n_sequences; ++i) {
    const int64_t begin = data_.seq_ptr[i], end = data_.seq_ptr[i + 1];
    max_T_ = std::max(max_T_, end - begin);
    if (rounds_.empty() || end - rounds_.back().first_position > round_rows) {
      rounds_.emplace_back();
      rounds_.back().first_position = begin;
    }
    Round& round = rounds_.back();
    round.n_positions = end - round.first_position;
    if (round.chunks.empty() || begin - data_.seq_ptr[round.chunks.back().first] >= chunk_tokens) {
      round.chunks.push_back({i, 0});
      ++n_chunks_;
    }
    ++round.chunks.back().count;
  }
}

// The attributes with most occurrences, as many as have room.
void Batch::choose_frequent() {
  const int64_t A = layout_.n_attributes;
  std::vector<int64_t> counts(static_cast<std::size_t>(A), 0);
  for (int64_t k = 0; k < data_.attr_ptr[data_.n_positions]; ++k)
    if (data_.attr_ids[k] < A) ++counts[data_.attr_ids[k]];
  for (int64_t a = 0; a < A; ++a)
    if (counts[a] >= kFrequentCount) frequent_.push_back(static_cast<int32_t>(a));
  std::stable_sort(frequent_.begin(), frequent_.end(), [&](int32_t a, int32_t b) { return counts[a] > counts[b]; });
  const int64_t room = kFrequentBytes / (8 * YP_);
  if (static_cast<int64_t>(frequent_.size()) > room) frequent_.resize(static_cast<std::size_t>(room));
  slot_of_.assign(static_cast<std::size_t>(A), -1);
  for (std::size_t slot = 0; slot < frequent_.size(); ++slot) slot_of_[frequent_[slot]] = static_cast<int32_t>(slot);
  frequent_sums_.resize(kSegments * static_cast<int64_t>(frequent_.size()) * YP_);
}

// weights="observed": each position's attributes as dense rows and single weights.
void Batch::index_tokens() {
  const int32_t* hot_row = weights_.view().hot_row;
  const bool valued = data_.attr_values != nullptr;
  dense_ptr_.assign(1, 0);
  sparse_ptr_.assign(1, 0);
  for (int64_t t = 0; t < data_.n_positions; ++t) {
    for (int64_t k = data_.attr_ptr[t]; k < data_.attr_ptr[t + 1]; ++k) {
      const int64_t a = data_.attr_ids[k];
      if (a >= layout_.n_attributes) continue;
      if (hot_row[a] >= 0) {
        dense_rows_.push_back(hot_row[a]);
        if (valued) dense_values_.push_back(data_.attr_values[k]);
        continue;
      }
      for (int64_t i = layout_.state_ptr[a]; i < layout_.state_ptr[a + 1]; ++i) {
        sparse_weights_.push_back(i);
        sparse_labels_.push_back(layout_.state_labels[i]);
        if (valued) sparse_values_.push_back(data_.attr_values[k]);
      }
    }
    dense_ptr_.push_back(static_cast<int64_t>(dense_rows_.size()));
    sparse_ptr_.push_back(static_cast<int64_t>(sparse_weights_.size()));
  }
  tokens_ = {dense_ptr_.data(),  dense_rows_.data(),     valued ? dense_values_.data() : nullptr,
             sparse_ptr_.data(), sparse_weights_.data(), sparse_labels_.data(),
             valued ? sparse_values_.data() : nullptr};
  weights_.use_index(&tokens_);
}

// Frequent attributes per row; for the others the transpose, lists of rows per attribute.
void Batch::index_round(Round& round) {
  const int64_t A = layout_.n_attributes;
  const bool valued = data_.attr_values != nullptr;
  const int64_t first = round.first_position;
  std::vector<int64_t> next(static_cast<std::size_t>(A) + 1, 0);
  round.slot_ptr.assign(1, 0);
  for (int64_t t = first; t < first + round.n_positions; ++t) {
    for (int64_t k = data_.attr_ptr[t]; k < data_.attr_ptr[t + 1]; ++k) {
      const int64_t a = data_.attr_ids[k];
      if (a >= A) continue;
      if (slot_of_[a] < 0) {
        ++next[a + 1];
      } else {
        round.slots.push_back(slot_of_[a]);
        if (valued) round.slot_values.push_back(data_.attr_values[k]);
      }
    }
    round.slot_ptr.push_back(static_cast<int64_t>(round.slots.size()));
  }
  round.occ_ptr.assign(1, 0);
  for (int64_t a = 0; a < A; ++a) {
    const int64_t count = next[a + 1];
    next[a + 1] += next[a];
    if (rounds_.size() == 1 || count > 0) {
      if (rounds_.size() > 1) round.attributes.push_back(static_cast<int32_t>(a));
      round.occ_ptr.push_back(next[a + 1]);
    }
  }
  round.occ_rows.resize(static_cast<std::size_t>(next[A]));
  if (valued) round.occ_values.resize(static_cast<std::size_t>(next[A]));
  for (int64_t t = 0; t < round.n_positions; ++t)
    for (int64_t k = data_.attr_ptr[first + t]; k < data_.attr_ptr[first + t + 1]; ++k) {
      const int64_t a = data_.attr_ids[k];
      if (a >= A || slot_of_[a] >= 0) continue;
      const int64_t at = next[a]++;
      round.occ_rows[at] = static_cast<int32_t>(t);
      if (valued) round.occ_values[at] = data_.attr_values[k];
    }
  index_tasks(round);
  if (has_edges_) index_edges(round);
}

// Gather tasks of about equal work: a row to add per occurrence, a row to write per attribute.
void Batch::index_tasks(Round& round) const {
  const int64_t n = static_cast<int64_t>(round.occ_ptr.size()) - 1;
  const int64_t work = (round.occ_ptr[n] + n) / kGatherTasks + 1;
  round.task_ptr.assign(1, 0);
  for (int64_t e = 0; e < n; ++e) {
    const int64_t first = round.task_ptr.back();
    if (round.occ_ptr[e + 1] - round.occ_ptr[first] + e + 1 - first >= work || e + 1 == n)
      round.task_ptr.push_back(e + 1);
  }
}

void Batch::index_edges(Round& round) {
  const int64_t B = layout_.n_edge_attributes;
  round.edge_ptr.assign(static_cast<std::size_t>(B) + 1, 0);
  const int64_t first = round.first_position;
  for (int64_t k = data_.edge_ptr[first]; k < data_.edge_ptr[first + round.n_positions]; ++k)
    if (data_.edge_ids[k] < B) ++round.edge_ptr[data_.edge_ids[k] + 1];
  for (int64_t b = 0; b < B; ++b) round.edge_ptr[b + 1] += round.edge_ptr[b];
  round.edge_rows.resize(static_cast<std::size_t>(round.edge_ptr[B]));
  std::vector<int64_t> next(round.edge_ptr.begin(), round.edge_ptr.end() - 1);
  for (int64_t t = 0; t < round.n_positions; ++t)
    for (int64_t k = data_.edge_ptr[first + t]; k < data_.edge_ptr[first + t + 1]; ++k)
      if (data_.edge_ids[k] < B) round.edge_rows[next[data_.edge_ids[k]]++] = static_cast<int32_t>(t);
}

void Batch::make_scratch() {
  while (static_cast<int>(scratch_.size()) < n_threads_)
    scratch_.emplace_back(layout_.n_labels, YP_, max_T_, has_edges_);
}

// Neumaier's compensated sum: differences of losses near the optimum are at rounding level.
double Batch::sum_in_order(const std::vector<double>& parts) const {
  double total = 0.0, lost = 0.0;
  for (const double x : parts) {
    const double next = total + x;
    lost += std::fabs(total) >= std::fabs(x) ? (total - next) + x : (x - next) + total;
    total = next;
  }
  return std::isfinite(lost) ? total + lost : total;
}

double Batch::loss(const double* w) {
  make_scratch();
  weights_.set(w);
  std::vector<Chunk> chunks;
  for (const Round& round : rounds_) chunks.insert(chunks.end(), round.chunks.begin(), round.chunks.end());
  std::vector<double> losses(chunks.size(), 0.0);
  parallel_for(n_threads_, static_cast<int64_t>(chunks.size()), [&](int64_t k, int worker) {
    ChunkJob job;
    job.data = &data_;
    job.weights = &weights_.view();
    job.first_sequence = chunks[k].first;
    job.n_sequences = chunks[k].count;
    job.scratch = &scratch_[worker].view;
    job.loss = &losses[k];
    kernels().loss(job);
  });
  return sum_in_order(losses);
}

void Batch::run_gradient(const double* w, double l2, bool subtract_gold, double* g, double& loss, double& square) {
  const int64_t pair_size = static_cast<int64_t>(layout_.n_labels) * YP_;
  const int64_t n_state = layout_.transition_offset;
  make_scratch();
  weights_.set(w);
  int64_t rows = 0;
  for (const Round& round : rounds_) rows = std::max(rows, round.n_positions);
  if (residual_.size() < rows * YP_) residual_.resize(rows * YP_);
  if (has_edges_ && pair_marginals_.size() < rows * pair_size) pair_marginals_.resize(rows * pair_size);
  std::fill(pair_total_.begin(), pair_total_.end(), 0.0);
  const bool one_round = rounds_.size() == 1;
  std::vector<double> losses, squares;
  if (!one_round) {
    scale_into(n_threads_, n_state, l2, w, g);
    squares.push_back(norms(n_threads_, n_state, w).square);
  }
  if (layout_.boundary) std::fill_n(g + layout_.start_offset, layout_.edge_offset - layout_.start_offset, 0.0);

  for (const Round& round : rounds_) {
    const int64_t n_chunks = static_cast<int64_t>(round.chunks.size());
    std::vector<double> round_losses(static_cast<std::size_t>(n_chunks), 0.0);
    parallel_for(n_threads_, n_chunks, [&](int64_t k, int worker) {
      double* pair_sum = pair_sums_.data() + k * pair_size;
      std::fill_n(pair_sum, pair_size, 0.0);
      ChunkJob job;
      job.data = &data_;
      job.weights = &weights_.view();
      job.first_sequence = round.chunks[k].first;
      job.n_sequences = round.chunks[k].count;
      job.scratch = &scratch_[worker].view;
      job.loss = &round_losses[k];
      job.pair_sum = pair_sum;
      job.residual = residual_.data();
      job.pair_marginals = has_edges_ ? pair_marginals_.data() : nullptr;
      job.residual_origin = round.first_position;
      job.subtract_gold = subtract_gold;
      kernels().gradient(job);
    });
    losses.insert(losses.end(), round_losses.begin(), round_losses.end());
    for (int64_t k = 0; k < n_chunks; ++k)
      for (int64_t i = 0; i < pair_size; ++i) pair_total_[i] += pair_sums_[k * pair_size + i];

    gather_states(round, w, l2, g, squares);
    if (layout_.boundary) add_boundary(round, g);
    if (layout_.n_edge_attributes > 0) gather_edges(round, w, l2, &round == &rounds_.front(), g);
  }
  loss = sum_in_order(losses);
  square = sum_in_order(squares);
  finish_dense(w, l2, subtract_gold, g, square);
}

// Residual rows summed per attribute. Segments of frequent attributes and ranges of the others share one loop.
void Batch::gather_states(const Round& round, const double* w, double l2, double* g, std::vector<double>& squares) {
  const bool one_round = rounds_.size() == 1, valued = data_.attr_values != nullptr;
  const int64_t n_tasks = static_cast<int64_t>(round.task_ptr.size()) - 1;
  const int64_t n_segments = frequent_.empty() ? 0 : kSegments;
  const int64_t table = static_cast<int64_t>(frequent_.size()) * YP_;
  std::vector<double> round_squares(static_cast<std::size_t>(n_tasks), 0.0);
  parallel_for(n_threads_, n_segments + n_tasks, [&](int64_t task, int) {
    if (task < n_segments) {
      FrequentJob job;
      job.first_row = round.n_positions * task / n_segments;
      job.last_row = round.n_positions * (task + 1) / n_segments;
      job.YP = YP_;
      job.residual = residual_.data();
      job.slot_ptr = round.slot_ptr.data();
      job.slots = round.slots.data();
      job.values = valued ? round.slot_values.data() : nullptr;
      job.sums = frequent_sums_.data() + task * table;
      std::fill_n(job.sums, table, 0.0);
      kernels().frequent(job);
      return;
    }
    const int64_t k = task - n_segments;
    GatherJob job;
    job.layout = &layout_;
    job.attributes = one_round ? nullptr : round.attributes.data();
    job.occ_ptr = round.occ_ptr.data();
    job.occ_rows = round.occ_rows.data();
    job.occ_values = valued ? round.occ_values.data() : nullptr;
    job.first = round.task_ptr[k];
    job.last = round.task_ptr[k + 1];
    job.YP = YP_;
    job.residual = residual_.data();
    job.w = w;
    job.g = g;
    job.l2 = l2;
    job.accumulate = !one_round;
    job.square = one_round ? &round_squares[k] : nullptr;
    kernels().gather(job);
  });
  squares.insert(squares.end(), round_squares.begin(), round_squares.end());
  if (n_segments > 0) add_frequent(g);
}

// g += sums of the frequent attributes over the segments, in their order.
void Batch::add_frequent(double* g) {
  const int64_t Y = layout_.n_labels, n = static_cast<int64_t>(frequent_.size());
  constexpr int64_t kPart = 64;
  parallel_for(n_threads_, (n + kPart - 1) / kPart, [&](int64_t part, int) {
    for (int64_t slot = part * kPart; slot < std::min(n, (part + 1) * kPart); ++slot) {
      double* total = frequent_sums_.data() + slot * YP_;  // the first segment's row
      for (int64_t segment = 1; segment < kSegments; ++segment) {
        const double* row = frequent_sums_.data() + (segment * n + slot) * YP_;
        for (int64_t j = 0; j < Y; ++j) total[j] += row[j];
      }
      const int64_t a = frequent_[slot];
      if (layout_.state_ptr == nullptr)
        for (int64_t j = 0; j < Y; ++j) g[a * Y + j] += total[j];
      else
        for (int64_t i = layout_.state_ptr[a]; i < layout_.state_ptr[a + 1]; ++i) g[i] += total[layout_.state_labels[i]];
    }
  });
}

void Batch::gather_edges(const Round& round, const double* w, double l2, bool first_round, double* g) {
  const int Y = layout_.n_labels;
  const int64_t pair_size = static_cast<int64_t>(Y) * YP_;
  parallel_for(n_threads_, layout_.n_edge_attributes, [&](int64_t b, int) {
    const int64_t begin = layout_.pair_ptr == nullptr ? b * Y * Y : layout_.pair_ptr[b];
    const int64_t end = layout_.pair_ptr == nullptr ? begin + Y * Y : layout_.pair_ptr[b + 1];
    double* out = g + layout_.edge_offset;
    if (first_round)
      for (int64_t i = begin; i < end; ++i) out[i] = l2 * w[layout_.edge_offset + i];
    if (!has_edges_) return;
    for (int64_t o = round.edge_ptr[b]; o < round.edge_ptr[b + 1]; ++o) {
      const double* p = pair_marginals_.data() + round.edge_rows[o] * pair_size;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t code = layout_.pair_ptr == nullptr ? i - begin : layout_.pair_codes[i];
        out[i] += p[code / Y * YP_ + code % Y];
      }
    }
  });
}

// Start and end weights are node features of one position.
void Batch::add_boundary(const Round& round, double* g) const {
  double *start = g + layout_.start_offset, *end = g + layout_.end_offset;
  for (const Chunk& chunk : round.chunks)
    for (int64_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
      const double* first = residual_.data() + (data_.seq_ptr[i] - round.first_position) * YP_;
      const double* last = residual_.data() + (data_.seq_ptr[i + 1] - 1 - round.first_position) * YP_;
      for (int j = 0; j < layout_.n_labels; ++j) start[j] += first[j];
      for (int j = 0; j < layout_.n_labels; ++j) end[j] += last[j];
    }
}

// Transition weights from the expected pairs; the penalty of transition, boundary and edge weights.
void Batch::finish_dense(const double* w, double l2, bool subtract_gold, double* g, double& square) const {
  const int Y = layout_.n_labels;
  for (int64_t k = 0; k < layout_.n_transitions; ++k) {
    const int64_t code = layout_.all_transitions ? k : layout_.transition_codes[k];
    const int64_t at = code / Y * YP_ + code % Y, i = layout_.transition_offset + k;
    g[i] = pair_total_[at] - (subtract_gold ? observed_pairs_[at] : 0.0) + l2 * w[i];
  }
  if (layout_.boundary)
    for (int64_t i = layout_.start_offset; i < layout_.edge_offset; ++i) g[i] += l2 * w[i];
  square += norms(n_threads_, layout_.n_weights - layout_.transition_offset, w + layout_.transition_offset).square;
}

double Batch::loss_and_grad(const double* w, double l2, double* g) {
  double loss = 0.0, square = 0.0;
  run_gradient(w, l2, true, g, loss, square);
  return loss + 0.5 * l2 * square;
}

void Batch::expectations(const double* w, double* out) {
  double loss = 0.0, square = 0.0;
  run_gradient(w, 0.0, false, out, loss, square);
}

// A few sequences: lattices in parallel, then the residuals are scattered in order by one thread. The rows that are
// touched are few beside the weights, and a transposed index would cost more than it saves.
double Batch::loss_and_grad_on(const double* w, double l2, const int64_t* sequences, int64_t n, double* g) {
  const int Y = layout_.n_labels;
  const int64_t pair_size = static_cast<int64_t>(Y) * YP_;
  make_scratch();
  weights_.set(w);
  scale_into(n_threads_, layout_.n_weights, l2, w, g);
  const double square = norms(n_threads_, layout_.n_weights, w).square;
  std::vector<double> losses(static_cast<std::size_t>(n), 0.0);
  const int64_t row_limit = std::max<int64_t>(1, kRoundBytes / (8 * (YP_ + (has_edges_ ? pair_size : 0))));
  constexpr int64_t kPart = 8;  // sequences per task

  for (int64_t begin = 0; begin < n;) {
    std::vector<int64_t> row_of;  // first residual row of each sequence of this part
    int64_t rows = 0, end = begin;
    for (; end < n; ++end) {
      const int64_t T = data_.seq_ptr[sequences[end] + 1] - data_.seq_ptr[sequences[end]];
      if (end > begin && (rows + T > row_limit || end - begin >= kPart * kMaxChunks)) break;
      row_of.push_back(rows);
      rows += T;
    }
    if (residual_.size() < rows * YP_) residual_.resize(rows * YP_);
    if (has_edges_ && pair_marginals_.size() < rows * pair_size) pair_marginals_.resize(rows * pair_size);
    const int64_t n_tasks = (end - begin + kPart - 1) / kPart;
    if (pair_sums_.size() < n_tasks * pair_size) pair_sums_.resize(n_tasks * pair_size);
    parallel_for(n_threads_, n_tasks, [&](int64_t k, int worker) {
      double* pair_sum = pair_sums_.data() + k * pair_size;
      std::fill_n(pair_sum, pair_size, 0.0);
      ChunkJob job;
      job.data = &data_;
      job.weights = &weights_.view();
      job.sequences = sequences + begin + k * kPart;
      job.n_sequences = std::min(kPart, end - begin - k * kPart);
      job.scratch = &scratch_[worker].view;
      job.loss = &losses[begin + k * kPart];
      job.pair_sum = pair_sum;
      job.residual = residual_.data();
      job.pair_marginals = has_edges_ ? pair_marginals_.data() : nullptr;
      job.residual_origin = row_of[k * kPart];
      job.packed = true;
      kernels().gradient(job);
    });
    double* transitions = g + layout_.transition_offset;
    for (int64_t k = 0; k < n_tasks; ++k)
      for (int64_t m = 0; m < layout_.n_transitions; ++m) {
        const int64_t code = layout_.all_transitions ? m : layout_.transition_codes[m];
        transitions[m] += pair_sums_[k * pair_size + code / Y * YP_ + code % Y];
      }
    for (int64_t i = begin; i < end; ++i)
      scatter(sequences[i], residual_.data() + row_of[i - begin] * YP_,
              has_edges_ ? pair_marginals_.data() + row_of[i - begin] * pair_size : nullptr, g);
    begin = end;
  }
  return sum_in_order(losses) + 0.5 * l2 * square;
}

// Adds one sequence's residual rows to the gradient, gold label pairs included.
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
        const bool all = layout_.pair_ptr == nullptr;
        const int64_t begin = all ? b * Y * Y : layout_.pair_ptr[b];
        const int64_t end = all ? begin + Y * Y : layout_.pair_ptr[b + 1];
        for (int64_t i = begin; i < end; ++i) {
          const int64_t code = all ? i - begin : layout_.pair_codes[i];
          g[layout_.edge_offset + i] += pairs[t * pair_size + code / Y * YP_ + code % Y];
        }
      }
    const int64_t gold = static_cast<int64_t>(data_.labels[first + t - 1]) * Y + data_.labels[first + t];
    const int64_t* codes = layout_.transition_codes;
    const int64_t at = layout_.all_transitions
                           ? gold
                           : std::lower_bound(codes, codes + layout_.n_transitions, gold) - codes;
    if (at < layout_.n_transitions && (layout_.all_transitions || codes[at] == gold))
      g[layout_.transition_offset + at] -= c;
  }
  if (layout_.boundary)
    for (int j = 0; j < Y; ++j) {
      g[layout_.start_offset + j] += residual[j];
      g[layout_.end_offset + j] += residual[(T - 1) * YP_ + j];
    }
}

void Batch::set_line(const double* w, const double* d) {
  if (line_base_ == nullptr) {
    line_base_ = std::make_unique<PreparedWeights>(layout_);
    line_step_ = std::make_unique<PreparedWeights>(layout_);
    base_scores_.resize(data_.n_positions * YP_);
    step_scores_.resize(data_.n_positions * YP_);
  }
  if (layout_.state_ptr != nullptr) {
    line_base_->use_index(&tokens_);
    line_step_->use_index(&tokens_);
  }
  line_base_->set(w);
  line_step_->set(d);
  for (const Round& round : rounds_)
    parallel_for(n_threads_, static_cast<int64_t>(round.chunks.size()), [&](int64_t k, int) {
      NodeScoreJob job;
      job.data = &data_;
      job.first_sequence = round.chunks[k].first;
      job.n_sequences = round.chunks[k].count;
      job.weights = &line_base_->view();
      job.out = base_scores_.data();
      kernels().node_scores(job);
      job.weights = &line_step_->view();
      job.out = step_scores_.data();
      kernels().node_scores(job);
    });
}

void Batch::along(double a, double& loss, double& slope) {
  if (line_base_ == nullptr) throw std::logic_error("along() before set_line()");
  const int64_t pair_size = static_cast<int64_t>(layout_.n_labels) * YP_;
  make_scratch();
  weights_.set_transitions(*line_base_, *line_step_, a);
  const Direction direction{base_scores_.data(), step_scores_.data(), &line_base_->view(), &line_step_->view(), a};
  std::vector<double> losses, slopes;
  for (const Round& round : rounds_) {
    const int64_t n_chunks = static_cast<int64_t>(round.chunks.size());
    std::vector<double> round_losses(static_cast<std::size_t>(n_chunks), 0.0), round_slopes(round_losses);
    parallel_for(n_threads_, n_chunks, [&](int64_t k, int worker) {
      ChunkJob job;
      job.data = &data_;
      job.weights = &weights_.view();
      job.direction = &direction;
      job.first_sequence = round.chunks[k].first;
      job.n_sequences = round.chunks[k].count;
      job.scratch = &scratch_[worker].view;
      job.loss = &round_losses[k];
      job.slope = &round_slopes[k];
      job.pair_sum = pair_sums_.data() + k * pair_size;
      kernels().profile(job);
    });
    losses.insert(losses.end(), round_losses.begin(), round_losses.end());
    slopes.insert(slopes.end(), round_slopes.begin(), round_slopes.end());
  }
  loss = sum_in_order(losses);
  slope = sum_in_order(slopes);
}

}  // namespace crfit
