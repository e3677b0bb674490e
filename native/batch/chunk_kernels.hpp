// Loops over a chunk of sequences, for workers of any order (sequence.hpp, history_sequence.hpp). A worker loads a
// sequence, solves its lattice and returns marginals and n-gram sums. Included by per-level files only.
#pragma once

#include "batch/kernels.hpp"
#include "lattice/scores.hpp"

namespace {

using crfit::ChunkJob;
using crfit::Scratch;

inline int64_t sequence_of(const ChunkJob& job, int64_t k) { return job.sequences[k]; }

// First residual row of the k-th sequence.
inline int64_t first_row_of(const ChunkJob& job, int64_t k, int64_t sequence) {
  return job.rows != nullptr ? job.rows[k] : job.data->seq_ptr[sequence] - job.first_position;
}

// Times some sequences of a chunk: the first, then one every kEvery positions. With sequences of one position, reading
// the clock for each would cost as much as the work itself.
class Sample {
 public:
  void begin() {
    timed_ = left_ <= 0;
    if (!timed_) return;
    left_ = kEvery;
    last_ = crfit::now();
  }
  void scores_done() {
    if (timed_) busy_.scores += crfit::lap(last_);
  }
  void lattice_done(int64_t T) {
    left_ -= T;
    if (timed_) busy_.lattice += crfit::lap(last_);
  }
  const crfit::PhaseSeconds& busy() const { return busy_; }

 private:
  static constexpr int64_t kEvery = 128;
  int64_t left_ = 0, last_ = 0;
  bool timed_ = false;
  crfit::PhaseSeconds busy_;
};

template <class Worker>
void loss_chunk(const ChunkJob& job) {
  Worker worker(*job.data, *job.weights, *job.scratch);
  Sample sample;
  for (int64_t k = 0; k < job.n_sequences; ++k) {
    sample.begin();
    worker.load(sequence_of(job, k));
    sample.scores_done();
    worker.solve(false, job.log_domain);
    *job.loss += worker.c * (worker.log_z - worker.gold);
    sample.lattice_done(worker.T);
  }
  *job.busy = sample.busy();
}

// Before the first sequence whose n-grams are summed one by one.
inline void clear_sums(const Prepared& pre, Scratch& s) {
  for (int64_t i = 0; i < pre.ngram_size; ++i) s.outer[i] = s.sums[i] = 0.0;
}

// Adds outer * E and the sums of single sequences to the chunk's expected n-grams.
inline void close_sums(const Prepared& pre, const Scratch& s, double* pair_sum) {
  for (int64_t k = 0; k < pre.n_ngrams; ++k) {
    const int64_t at = pre.places != nullptr ? pre.places[k] : k;
    pair_sum[k] += pre.ngram_E[k] * s.outer[pre.listed_sums ? k : at] + s.sums[at];
  }
}

template <class Worker>
void gradient_sequence(const ChunkJob& job, Worker& worker, int64_t k, bool log_domain, Sample& sample) {
  const Prepared& pre = *job.weights;
  Scratch& s = *job.scratch;
  const int YP = pre.YP;
  const int64_t pair_size = static_cast<int64_t>(pre.Y) * YP, sequence = sequence_of(job, k);
  const int64_t first_row = first_row_of(job, k, sequence);
  worker.load(sequence);
  sample.scores_done();
  worker.solve(true, log_domain);
  // Before the n-gram sums, which scale the lattice by c.
  if (job.kept != nullptr) worker.keep(*job.kept, sequence);
  *job.loss += worker.c * (worker.log_z - worker.gold);
  if (job.residual != nullptr) {
    double* residual = job.residual + first_row * YP;
    for (int64_t t = 0; t < worker.T; ++t, residual += YP) {
      // residual[t, :] = c (p(t, :) - [y = gold])
      worker.node(t, worker.c, residual);
      if (job.subtract_gold) residual[job.data->labels[worker.begin + t]] -= worker.c;
    }
  }
  double* pairs = job.pair_marginals != nullptr ? job.pair_marginals + first_row * pair_size : nullptr;
  // outer += c sum_t outer(alpha_{t-1}, z_t). All sequences share E, so the product with E is computed once at the
  // end of the chunk (close_sums). Sequences in the log domain add to sums directly.
  worker.add_expected(s.outer, s.sums, pairs);
  if (pairs != nullptr && job.subtract_gold)
    for (int64_t t = 1; t < worker.T; ++t) {
      const int32_t* y = job.data->labels + worker.begin + t;
      pairs[t * pair_size + y[-1] * YP + y[0]] -= worker.c;
    }
}

template <class Worker>
void gradient_chunk(const ChunkJob& job) {
  Worker worker(*job.data, *job.weights, *job.scratch);
  clear_sums(*job.weights, *job.scratch);
  Sample sample;
  for (int64_t k = 0; k < job.n_sequences; ++k) {
    sample.begin();
    gradient_sequence(job, worker, k, job.log_domain, sample);
    sample.lattice_done(worker.T);
  }
  close_sums(*job.weights, *job.scratch, job.pair_sum);
  *job.busy = sample.busy();
}

template <class Worker>
void along_sequence(const ChunkJob& job, Worker& worker, int64_t k, bool log_domain, Sample& sample) {
  const Prepared& pre = *job.weights;
  const crfit::Direction& direction = *job.direction;
  Scratch& s = *job.scratch;
  worker.load(sequence_of(job, k), direction);
  sample.scores_done();
  worker.solve(true, log_domain);
  *job.loss += worker.c * (worker.log_z - worker.gold);
  double slope = 0.0;
  const int32_t* y = job.data->labels + worker.begin;
  for (int64_t t = 0; t < worker.T; ++t) {
    const double* q = direction.step_scores + (worker.begin + t) * pre.YP;
    worker.node(t, 1.0, s.row);
    // d loss / d a = c (sum_t p(t, :).q_t - q_t[gold]) for scores u + a q, plus that of transitions and edges
    for (int j = 0; j < pre.Y; ++j) slope += s.row[j] * q[j];
    slope -= q[y[t]];
  }
  slope += worker.transition_slope(s.outer);
  *job.slope += worker.c * slope;
}

// Transitions do not depend on the position: expected n-grams times R, once for the chunk.
inline void add_transition_slope(const ChunkJob& job) {
  for (int64_t k = 0; k < job.weights->n_ngrams; ++k) *job.slope += job.pair_sum[k] * job.direction->step->ngram_tr[k];
}

template <class Worker>
void along_chunk(const ChunkJob& job) {
  Worker worker(*job.data, *job.weights, *job.scratch);
  clear_sums(*job.weights, *job.scratch);
  Sample sample;
  for (int64_t k = 0; k < job.n_sequences; ++k) {
    sample.begin();
    along_sequence(job, worker, k, job.log_domain, sample);
    sample.lattice_done(worker.T);
  }
  close_sums(*job.weights, *job.scratch, job.pair_sum);
  add_transition_slope(job);
  *job.busy = sample.busy();
}

// The derivative of a gradient along job.tangent, without p R of the shared transitions in the n-gram sums.
template <class TangentWorker>
void product_sequence(const ChunkJob& job, TangentWorker& worker, int64_t k, Sample& sample) {
  const Prepared& pre = *job.weights;
  Scratch& s = *job.scratch;
  const int64_t sequence = sequence_of(job, k), first_row = first_row_of(job, k, sequence);
  worker.load_tangent(sequence);
  sample.scores_done();
  double* pairs =
      job.pair_marginals != nullptr ? job.pair_marginals + first_row * static_cast<int64_t>(pre.Y) * pre.YP : nullptr;
  // rows = c d p(t, :) along v. With cached lattices this needs no forward-backward.
  worker.differentiate(job.residual + first_row * pre.YP, s.outer, s.sums, pairs);
}

template <class TangentWorker>
void product_chunk(const ChunkJob& job) {
  TangentWorker worker(*job.data, *job.weights, *job.tangent, job.kept, job.log_domain, *job.scratch);
  clear_sums(*job.weights, *job.scratch);
  Sample sample;
  for (int64_t k = 0; k < job.n_sequences; ++k) {
    sample.begin();
    product_sequence(job, worker, k, sample);
    sample.lattice_done(worker.T);
  }
  close_sums(*job.weights, *job.scratch, job.pair_sum);
  *job.busy = sample.busy();
}

// Variances of single occurrences: c p (1 - p) instead of c (p - gold) in a gradient.
template <class Worker>
void variance_sequence(const ChunkJob& job, Worker& worker, int64_t k, bool log_domain, Sample& sample) {
  const Prepared& pre = *job.weights;
  const int YP = pre.YP;
  const int64_t sequence = sequence_of(job, k), first_row = first_row_of(job, k, sequence);
  worker.load(sequence);
  sample.scores_done();
  worker.solve(true, log_domain);
  double* rows = job.residual + first_row * YP;
  for (int64_t t = 0; t < worker.T; ++t, rows += YP) {
    worker.node(t, 1.0, rows);
    for (int j = 0; j < YP; ++j) rows[j] *= worker.c * (1.0 - rows[j]);
  }
  double* pairs =
      job.pair_marginals != nullptr ? job.pair_marginals + first_row * static_cast<int64_t>(pre.Y) * YP : nullptr;
  worker.add_variances(job.scratch->sums, pairs);
}

template <class Worker>
void variance_chunk(const ChunkJob& job) {
  Worker worker(*job.data, *job.weights, *job.scratch);
  clear_sums(*job.weights, *job.scratch);
  Sample sample;
  for (int64_t k = 0; k < job.n_sequences; ++k) {
    sample.begin();
    variance_sequence(job, worker, k, job.log_domain, sample);
    sample.lattice_done(worker.T);
  }
  close_sums(*job.weights, *job.scratch, job.pair_sum);
  *job.busy = sample.busy();
}

// Node scores of some sequences, [n_positions][YP].
template <int P>
void node_scores_chunk(const crfit::NodeScoreJob& job) {
  const DataView& data = *job.data;
  const int YP = job.weights->YP;
  for (int64_t k = 0; k < job.n_sequences; ++k) {
    const int64_t i = job.sequences != nullptr ? job.sequences[k] : job.first_sequence + k, begin = data.seq_ptr[i];
    node_scores(Width<P>(YP), data, *job.weights, begin, data.seq_ptr[i + 1] - begin, job.out + begin * YP);
  }
}

}  // namespace
