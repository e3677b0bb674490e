#include <algorithm>
#include <cmath>

#include "base/dispatch.hpp"
#include "base/pool.hpp"
#include "base/vectors.hpp"
#include "batch/batch.hpp"

namespace crfit {

namespace {
constexpr int64_t kFarBytes = 16 << 20;  // residual rows of a round that go past the caches
}

void Batch::make_scratch() {
  while (static_cast<int>(scratch_.size()) < n_threads_) scratch_.emplace_back(layout_, max_T_, has_edges_);
  if (side_by_side())
    for (WorkerScratch& scratch : scratch_) scratch.add_lanes(layout_, lanes_, max_T_, kept_.floats);
}

// The sequences of a chunk, and how to process them.
ChunkJob Batch::job_of(const Chunk& chunk, int worker) {
  ChunkJob job;
  job.data = &data_;
  job.sequences = order_.data() + chunk.first;
  job.n_sequences = chunk.count;
  job.scratch = &scratch_[worker].view;
  job.one_position = one_position_;
  job.log_domain = log_domain_;
  return job;
}

// Splits the wall time of a loop over sequences in proportion to the time of its tasks.
void Batch::add_loop(double wall, const std::vector<PhaseSeconds>& busy) {
  PhaseSeconds total;
  for (const PhaseSeconds& task : busy) {
    total.scores += task.scores;
    total.lattice += task.lattice;
  }
  const double both = total.scores + total.lattice;
  const double scores = both > 0.0 ? wall * (total.scores / both) : 0.0;
  seconds_.scores += scores;
  seconds_.lattice += wall - scores;
}

double Batch::loss(const double* w) {
  const Prepared& weights = ready(weights_, w);
  int64_t last = now();
  make_scratch();
  std::vector<Chunk> chunks;
  for (const Round& round : rounds_) chunks.insert(chunks.end(), round.chunks.begin(), round.chunks.end());
  // One number per chunk, added in the order of the chunks, which depend only on the dataset: identical bytes for any
  // number of threads.
  std::vector<double> losses(chunks.size(), 0.0);
  std::vector<PhaseSeconds> busy(chunks.size());
  seconds_.scores += lap(last);
  parallel_for(n_threads_, static_cast<int64_t>(chunks.size()), [&](int64_t k, int worker) {
    ChunkJob job = job_of(chunks[k], worker);
    job.weights = &weights;
    job.loss = &losses[k];
    job.busy = &busy[k];
    at_level<BatchKernels>().loss(job);
  });
  add_loop(lap(last), busy);
  return sum_in_order(losses.data(), static_cast<int64_t>(losses.size()));
}

// g = sum of the residual rows written by `kernel`, plus l2 x. The sums of its n-gram tables go to pair_total_; for
// transitions g is only l2 x. On a face it is l2 x also for the attributes that are left out.
void Batch::walk(void (*kernel)(const ChunkJob&), const ChunkJob& settings, const double* x, double l2, double* g,
                 double& loss, double& square, const Face* face) {
  const int64_t pair_size = static_cast<int64_t>(layout_.n_labels) * YP_;
  const int64_t n_state = layout_.transition_offset;
  int64_t last = now();
  make_scratch();
  // residual_ [positions of the largest round][YP]; a dataset that fits into round_bytes has one round, where rows are
  // positions
  int64_t rows = 0;
  for (const Round& round : rounds_) rows = std::max(rows, round.n_positions);
  if (residual_.size() < rows * YP_) residual_.resize(rows * YP_);
  if (has_edges_ && pair_marginals_.size() < rows * pair_size) pair_marginals_.resize(rows * pair_size);
  std::fill(pair_total_.begin(), pair_total_.end(), 0.0);
  // With one round each state weight is written once, g = sum + l2 x. With more, or on a face, g starts as l2 x and the
  // rounds add to it in order. Variances are multiplied by the squares of the attribute values.
  const bool accumulate = rounds_.size() > 1 || face != nullptr, squared = kernel == at_level<BatchKernels>().variance;
  std::vector<double> losses, squares;
  if (accumulate) {
    scale_into(n_threads_, n_state, l2, x, g);
    squares.push_back(norms(n_threads_, n_state, x).square);
  }
  if (layout_.boundary) std::fill_n(g + layout_.start_offset, layout_.edge_offset - layout_.start_offset, 0.0);

  for (const Round& round : rounds_) {
    const int64_t n_chunks = static_cast<int64_t>(round.chunks.size());
    std::vector<double> round_losses(static_cast<std::size_t>(n_chunks), 0.0);
    std::vector<PhaseSeconds> busy(round_losses.size());
    seconds_.gather += lap(last);
    parallel_for(n_threads_, n_chunks, [&](int64_t k, int worker) {
      // Each chunk has its own table: no two tasks add to the same number.
      double* pair_sum = pair_sums_.data() + k * n_ngrams_;
      std::fill_n(pair_sum, n_ngrams_, 0.0);
      ChunkJob job = job_of(round.chunks[k], worker);
      if (face != nullptr) job.data = &face->data;
      job.weights = settings.weights;
      job.tangent = settings.tangent;
      job.kept = settings.kept;
      job.subtract_gold = settings.subtract_gold;
      job.loss = &round_losses[k];
      job.pair_sum = pair_sum;
      job.residual = residual_.data();
      job.pair_marginals = has_edges_ ? pair_marginals_.data() : nullptr;
      // Every position has its own row, so chunks can write in parallel.
      job.first_position = round.first_position;
      job.far_rows = 8 * rows * YP_ >= kFarBytes;
      job.busy = &busy[k];
      kernel(job);
    });
    add_loop(lap(last), busy);
    losses.insert(losses.end(), round_losses.begin(), round_losses.end());
    sum_ngrams(n_chunks);
    // Rows of equal positions are added before the attributes are summed.
    add_same_tokens();
    const Sums& sums = face != nullptr ? face->sums[&round - rounds_.data()] : round;
    gather_states(round, sums, face != nullptr ? face->frequent : frequent_, x, l2, squared, accumulate, g, squares);
    if (layout_.boundary) add_boundary(round, g);
    if (layout_.n_edge_attributes > 0) gather_edges(round, x, l2, squared, g);
  }
  loss = sum_in_order(losses.data(), static_cast<int64_t>(losses.size()));
  square = sum_in_order(squares.data(), static_cast<int64_t>(squares.size()));
  finish_dense(x, l2, g, square);
  seconds_.gather += lap(last);
}

// pair_total_ += the tables of these chunks, in their order.
void Batch::sum_ngrams(int64_t n_tables) {
  constexpr int64_t kPart = 4096;  // entries per task
  parallel_for(n_threads_, (n_ngrams_ + kPart - 1) / kPart, [&](int64_t part, int) {
    const int64_t end = std::min(n_ngrams_, (part + 1) * kPart);
    for (int64_t k = 0; k < n_tables; ++k)
      for (int64_t i = part * kPart; i < end; ++i) pair_total_[i] += pair_sums_[k * n_ngrams_ + i];
  });
}

// Adds the residual rows of positions with the same attributes.
void Batch::add_same_tokens() {
  if (shared_ == nullptr) return;
  constexpr int64_t kPart = 512;  // distinct tokens per task
  const int64_t n = shared_->size();
  if (shared_residual_.size() == 0) shared_residual_.resize(n * YP_);
  const int64_t* ptr = shared_->position_ptr();
  parallel_for(n_threads_, (n + kPart - 1) / kPart, [&](int64_t part, int) {
    GatherRowsJob job;
    job.first = part * kPart;
    job.last = std::min(n, (part + 1) * kPart);
    job.YP = YP_;
    job.row_ptr = ptr;
    job.rows = shared_->positions();
    job.residual = residual_.data();
    job.out = shared_residual_.data();
    at_level<BatchKernels>().add_rows(job);
  });
}

// Sums residual rows per attribute. Segments of frequent attributes and ranges of the others share one loop.
void Batch::gather_states(const Round& round, const Sums& sums, const std::vector<int32_t>& frequent, const double* w,
                          double l2, bool squared, bool accumulate, double* g, std::vector<double>& squares) {
  const auto pointer = [](const std::vector<double>& values) { return values.empty() ? nullptr : values.data(); };
  const double* residual = shared_ == nullptr ? residual_.data() : shared_residual_.data();
  const int64_t n_tasks = static_cast<int64_t>(sums.task_ptr.size()) - 1;
  const int64_t n_segments = frequent.empty() ? 0 : kSegments;
  const int64_t table = static_cast<int64_t>(frequent.size()) * YP_;
  std::vector<double> round_squares(static_cast<std::size_t>(n_tasks), 0.0);
  parallel_for(n_threads_, n_segments + n_tasks, [&](int64_t task, int) {
    if (task < n_segments) {
      FrequentJob job;
      job.first_row = round.n_rows * task / n_segments;
      job.last_row = round.n_rows * (task + 1) / n_segments;
      job.YP = YP_;
      job.residual = residual;
      job.slot_ptr = sums.slot_ptr.data();
      job.slots = sums.slots.data();
      job.values = pointer(squared ? round.slot_squares : sums.slot_values);
      // [segments][frequent][YP]: a segment of the rows has its own sums, small enough for the cache of its core.
      job.sums = frequent_sums_.data() + task * table;
      std::fill_n(job.sums, table, 0.0);
      at_level<BatchKernels>().frequent(job);
      return;
    }
    const int64_t k = task - n_segments;
    GatherJob job;
    job.layout = &layout_;
    job.attributes = accumulate ? sums.attributes.data() : nullptr;
    job.occ_ptr = sums.occ_ptr.data();
    job.occ_at = sums.occ_at.data();
    job.occ_values = pointer(squared ? round.occ_squares : sums.occ_values);
    job.first = sums.task_ptr[k];
    job.last = sums.task_ptr[k + 1];
    job.YP = YP_;
    job.residual = residual;
    job.w = w;
    job.g = g;
    job.l2 = l2;
    job.accumulate = accumulate;
    // w is read here anyway, so |w|^2 needs no extra pass.
    job.square = accumulate ? nullptr : &round_squares[k];
    at_level<BatchKernels>().gather(job);
  });
  squares.insert(squares.end(), round_squares.begin(), round_squares.end());
  if (n_segments > 0) add_frequent(frequent, g);
}

// g += sums of the frequent attributes over the segments, in their order.
void Batch::add_frequent(const std::vector<int32_t>& frequent, double* g) {
  const int64_t Y = layout_.n_labels, n = static_cast<int64_t>(frequent.size());
  constexpr int64_t kPart = 64;
  parallel_for(n_threads_, (n + kPart - 1) / kPart, [&](int64_t part, int) {
    for (int64_t slot = part * kPart; slot < std::min(n, (part + 1) * kPart); ++slot) {
      double* total = frequent_sums_.data() + slot * YP_;  // the first segment's row
      for (int64_t segment = 1; segment < kSegments; ++segment) {
        // In the order of the segments; their number is fixed.
        const double* row = frequent_sums_.data() + (segment * n + slot) * YP_;
        for (int64_t j = 0; j < Y; ++j) total[j] += row[j];
      }
      const int64_t a = frequent[slot];
      if (layout_.state_ptr == nullptr)
        for (int64_t j = 0; j < Y; ++j) g[a * Y + j] += total[j];
      else
        for (int64_t i = layout_.state_ptr[a]; i < layout_.state_ptr[a + 1]; ++i)
          g[i] += total[layout_.state_labels[i]];
    }
  });
}

void Batch::gather_edges(const Round& round, const double* w, double l2, bool squared, double* g) {
  const int Y = layout_.n_labels;
  const bool first_round = &round == &rounds_.front();
  const int64_t pair_size = static_cast<int64_t>(Y) * YP_;
  parallel_for(n_threads_, layout_.n_edge_attributes, [&](int64_t b, int) {
    const auto [begin, n] = edge_weights(layout_, b);
    const int64_t end = begin + n;
    double* out = g + layout_.edge_offset;
    if (first_round)
      for (int64_t i = begin; i < end; ++i) out[i] = l2 * w[layout_.edge_offset + i];
    if (!has_edges_) return;
    double factor = 1.0;  // n equal rows count n, or 1 + 3 + ... + (2 n - 1) = n^2
    for (int64_t o = round.edge_ptr[b]; o < round.edge_ptr[b + 1]; ++o) {
      const bool again = o > round.edge_ptr[b] && round.edge_rows[o] == round.edge_rows[o - 1];
      factor = squared && again ? factor + 2.0 : 1.0;
      // [Y][YP] c (p(t, i, j) - [gold]) of the position
      const double* p = pair_marginals_.data() + round.edge_rows[o] * pair_size;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t code = layout_.pair_ptr == nullptr ? i - begin : layout_.pair_codes[i];
        out[i] += factor * p[padded_pair(code, Y, YP_)];
      }
    }
  });
}

// Start and end weights are node features of one position.
void Batch::add_boundary(const Round& round, double* g) const {
  // On one thread: two rows per sequence, summed in the order of the data.
  double *start = g + layout_.start_offset, *end = g + layout_.end_offset;
  for (const Chunk& chunk : round.chunks)
    for (int64_t k = chunk.first; k < chunk.first + chunk.count; ++k) {
      const int64_t i = order_[k];
      const double* first = residual_.data() + (data_.seq_ptr[i] - round.first_position) * YP_;
      const double* last = residual_.data() + (data_.seq_ptr[i + 1] - 1 - round.first_position) * YP_;
      for (int j = 0; j < layout_.n_labels; ++j) start[j] += first[j];
      for (int j = 0; j < layout_.n_labels; ++j) end[j] += last[j];
    }
}

// The penalty of transition, boundary and edge weights.
void Batch::finish_dense(const double* w, double l2, double* g, double& square) const {
  for (int64_t i = layout_.transition_offset; i < layout_.start_offset; ++i) g[i] = l2 * w[i];
  if (layout_.boundary)
    for (int64_t i = layout_.start_offset; i < layout_.edge_offset; ++i) g[i] += l2 * w[i];
  square += norms(n_threads_, layout_.n_weights - layout_.transition_offset, w + layout_.transition_offset).square;
}

// g[n-gram] += its entry in pair_total_.
void Batch::add_to_transitions(double* g) const {
  if (one_position_) return;
  if (layout_.order == 1) {
    for (int64_t k = 0; k < n_ngrams_; ++k) g[layout_.ngrams[0].offset + k] += pair_total_[k];
    return;
  }
  for (int m = 1; m <= layout_.order; ++m) {
    const NgramBlock& block = layout_.ngrams[m - 1];
    const double* total = pair_total_.data() + table_offset(layout_.n_labels, YP_, m);
    for (int64_t k = 0; k < block.n; ++k) {
      const int64_t code = block.codes == nullptr ? k : block.codes[k];
      g[block.offset + k] += total[padded_pair(code, layout_.n_labels, YP_)];
    }
  }
}

double Batch::loss_and_grad(const double* w, double l2, double* g) {
  double loss = 0.0, square = 0.0;
  ChunkJob settings;
  settings.weights = &ready(weights_, w);
  forget_curvature();
  if (keeps_) settings.kept = &make_room();
  walk(at_level<BatchKernels>().gradient, settings, w, l2, g, loss, square);
  if (keeps_) pin(w);
  // expected less observed n-grams; both are of the longest length at each position, so the shorter ones are sums
  // over them (add_longer_ngrams)
  for (int64_t i = 0; i < n_ngrams_; ++i) pair_total_[i] -= observed_pairs_[i];
  if (!one_position_) add_longer_ngrams(layout_, pair_total_.data());
  add_to_transitions(g);
  return loss + 0.5 * l2 * square;
}

void Batch::expectations(const double* w, double* out) {
  double loss = 0.0, square = 0.0;
  ChunkJob settings;
  settings.weights = &ready(weights_, w);
  settings.subtract_gold = false;
  walk(at_level<BatchKernels>().gradient, settings, w, 0.0, out, loss, square);
  if (!one_position_) add_longer_ngrams(layout_, pair_total_.data());
  add_to_transitions(out);
}

// Prepares a weight vector; the time counts.
const Prepared& Batch::ready(PreparedWeights& prepared, const double* w, const Face* face) {
  int64_t last = now();
  prepared.set(w);
  share_scores(prepared, face != nullptr ? face->sources : sources_);
  seconds_.scores += lap(last);
  return prepared.view();
}

// The same for a few sequences, which do not share scores.
Prepared Batch::ready_for_few(const double* w) {
  int64_t last = now();
  weights_.set(w);
  Prepared view = weights_.view();
  view.shared = nullptr;
  if (shared_ != nullptr) view.tokens = nullptr;  // its positions are the distinct ones
  seconds_.scores += lap(last);
  return view;
}

// Node scores of the distinct tokens.
void Batch::share_scores(PreparedWeights& prepared, const DataView& sources) {
  if (shared_ == nullptr) return;
  constexpr int64_t kPart = 512;  // tokens per task
  const int64_t n = shared_->size();
  Prepared plain = prepared.view();
  // Boundary weights and offsets depend on the position and are added there.
  plain.start = plain.end = plain.offsets = plain.shared = nullptr;
  double* out = prepared.share(shared_->token_of(), n * YP_);
  parallel_for(n_threads_, (n + kPart - 1) / kPart, [&](int64_t part, int) {
    NodeScoreJob job;
    job.data = &sources;
    job.weights = &plain;
    job.first_sequence = part * kPart;
    job.n_sequences = std::min(n, (part + 1) * kPart) - job.first_sequence;
    job.out = out;
    at_level<BatchKernels>().node_scores(job);
  });
}

}  // namespace crfit
