// Sequences of one position: p = softmax of its scores, no lattice. Included by per-level files only.
//
//   loss c (log sum_j exp(u_j) - u_gold)       residual c (p - [gold])
//   along a direction with scores q:  slope c (p.q - q_gold),  d p = p (q - p.q)
#pragma once

#include <cmath>

#include "batch/chunk_kernels.hpp"
#include "lattice/forward_backward.hpp"

namespace {

using crfit::ChunkJob;

template <int P>
class PositionWorker {
 public:
  PositionWorker(const ChunkJob& job)
      : job_(job), data_(*job.data), pre_(*job.weights), s_(*job.scratch), width_(job.weights->YP) {}

  int64_t sequence = 0, position = 0;
  double c = 1.0;       // weight of the sequence
  double loss = 0.0;    // -log p(gold)
  double factor = 0.0;  // p = factor * S

  // Scores from the weights, or at base + a * step.
  void load(int64_t k) {
    locate(k);
    if (job_.direction == nullptr)
      node_scores(width_, data_, pre_, position, 1, s_.U);
    else
      line_scores(*job_.direction, position * width_.yp(), width_.yp(), s_.U);
  }

  // Sets: S, factor, loss.
  void solve() {
    const double gold = s_.U[data_.labels[position]];
    // S = exp(u - max u), padding 0; loss = (max - u_gold) + log sum S: the two large numbers are subtracted first.
    const double top = exponentials(width_, pre_.Y, s_.U, s_.S);
    Vec total = {};
    for (int j = 0; j < width_.yp(); j += kLanes) total += ::load(s_.S + j);
    const double z = sum(total);
    factor = 1.0 / z;
    loss = (top - gold) + std::log(z);
  }

  // Sets: S = p of the pinned point, factor 1; from the cache, or computed again.
  void recall(int64_t k) {
    locate(k);
    const crfit::Kept* kept = job_.kept;
    const double* block = kept != nullptr && kept->filled[sequence] ? kept->block(sequence) : nullptr;
    if (block == nullptr) {
      load(k);
      solve();
      return;
    }
    factor = 1.0;
    for (int j = 0; j < pre_.Y; ++j) s_.S[j] = block[j];
    for (int j = pre_.Y; j < width_.yp(); ++j) s_.S[j] = 0.0;
  }

  void keep() const {
    double* block = job_.kept->block(sequence);
    if (block == nullptr) return;
    for (int j = 0; j < pre_.Y; ++j) block[j] = factor * s_.S[j];
    job_.kept->filled[sequence] = 1;
  }

 private:
  void locate(int64_t k) {
    sequence = sequence_of(job_, k);
    position = data_.seq_ptr[sequence];
    c = data_.weights == nullptr ? 1.0 : data_.weights[sequence];
  }

  const ChunkJob& job_;
  const DataView& data_;
  const Prepared& pre_;
  Scratch& s_;
  Width<P> width_;
};

// Calls body(worker, k) for each sequence. Scores and softmax alternate too quickly to time separately: all counts as
// scores.
template <int P, class Body>
inline void each_position(const ChunkJob& job, Body body) {
  const int64_t begin = crfit::now();
  PositionWorker<P> worker(job);
  for (int64_t k = 0; k < job.n_sequences; ++k) body(worker, k);
  job.busy->scores = 1e-9 * static_cast<double>(crfit::now() - begin);
}

template <int P>
void position_loss(const ChunkJob& job) {
  each_position<P>(job, [&](PositionWorker<P>& worker, int64_t k) {
    worker.load(k);
    worker.solve();
    *job.loss += worker.c * worker.loss;
  });
}

template <int P>
void position_gradient(const ChunkJob& job) {
  const int YP = Width<P>(job.weights->YP).yp();
  double* row = job.residual + first_row_of(job, 0, sequence_of(job, 0)) * YP;
  each_position<P>(job, [&](PositionWorker<P>& worker, int64_t k) {
    worker.load(k);
    worker.solve();
    if (job.kept != nullptr) worker.keep();
    *job.loss += worker.c * worker.loss;
    const Vec factor = splat(worker.c * worker.factor);
    for (int j = 0; j < YP; j += kLanes) store(row + j, factor * load(job.scratch->S + j));
    if (job.subtract_gold) row[job.data->labels[worker.position]] -= worker.c;
    row += YP;
  });
}

template <int P>
void position_along(const ChunkJob& job) {
  const int YP = Width<P>(job.weights->YP).yp();
  each_position<P>(job, [&](PositionWorker<P>& worker, int64_t k) {
    worker.load(k);
    worker.solve();
    const double* q = job.direction->step_scores + worker.position * YP;
    double mean = 0.0;
    for (int j = 0; j < job.weights->Y; ++j) mean += job.scratch->S[j] * q[j];
    *job.loss += worker.c * worker.loss;
    *job.slope += worker.c * (worker.factor * mean - q[job.data->labels[worker.position]]);
  });
}

template <int P>
void position_product(const ChunkJob& job) {
  const Width<P> width(job.weights->YP);
  const int YP = width.yp(), Y = job.weights->Y;
  double *row = job.residual + first_row_of(job, 0, sequence_of(job, 0)) * YP, *q = job.scratch->q, *S = job.scratch->S;
  each_position<P>(job, [&](PositionWorker<P>& worker, int64_t k) {
    worker.recall(k);
    node_scores(width, *job.data, *job.tangent->step, worker.position, 1, q);
    for (int j = Y; j < YP; ++j) q[j] = 0.0;
    // d p_j = p_j (q_j - p.q) with p = factor S
    Vec sums = {};
    for (int j = 0; j < YP; j += kLanes) sums += load(S + j) * load(q + j);
    const Vec mean = splat(worker.factor * sum(sums)), factor = splat(worker.c * worker.factor);
    for (int j = 0; j < YP; j += kLanes) store(row + j, factor * load(S + j) * (load(q + j) - mean));
    row += YP;
  });
}

template <int P>
void position_variance(const ChunkJob& job) {
  const int YP = Width<P>(job.weights->YP).yp();
  double* row = job.residual + first_row_of(job, 0, sequence_of(job, 0)) * YP;
  each_position<P>(job, [&](PositionWorker<P>& worker, int64_t k) {
    worker.load(k);
    worker.solve();
    for (int j = 0; j < YP; j += kLanes) {
      const Vec p = splat(worker.factor) * load(job.scratch->S + j);
      store(row + j, splat(worker.c) * p * (1.0 - p));
    }
    row += YP;
  });
}

}  // namespace
