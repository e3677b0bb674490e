// One sequence of a step of stochastic meta-descent: its residuals and their derivatives along v, from one lattice.
// Included by per-level files only.
#pragma once

#include "online_meta_job.hpp"
#include "vmath.hpp"

namespace {

template <class TangentWorker>
void solve_meta(const crfit::MetaSolveJob& job) {
  const crfit::Prepared& pre = *job.weights;
  crfit::Scratch& s = *job.scratch;
  crfit::OnlineSlot& slot = *job.slot;
  const int YP = pre.YP;
  const int64_t pair_size = static_cast<int64_t>(pre.Y) * YP;
  TangentWorker worker(*job.data, pre, *job.tangent, nullptr, false, s);
  worker.load_tangent(slot.sequence);
  worker.solve(true);
  // n-gram sums scale the lattice by c, once: here everything is computed with 1 and multiplied at the end.
  const double c = worker.c;
  worker.c = 1.0;
  slot.loss = c * (worker.log_z - worker.gold);
  const int32_t* y = job.data->labels + worker.begin;
  for (int64_t t = 0; t < worker.T; ++t) {
    worker.node(t, -c, slot.residual + t * YP);
    slot.residual[t * YP + y[t]] += c;
  }
  double* expected = slot.pairs;
  for (int64_t i = 0; i < pre.ngram_size; ++i) s.outer[i] = expected[i] = 0.0;
  worker.add_expected(s.outer, expected, slot.pair_residual);
  for (int64_t i = 0; i < pre.ngram_size; ++i) {
    expected[i] += pre.E[i] * s.outer[i];
    s.outer[i] = job.ngrams[i] = 0.0;
  }
  worker.differentiate_solved(job.rows, s.outer, job.ngrams, job.pairs);
  for (int64_t i = 0; i < pre.ngram_size; ++i) {
    job.ngrams[i] = c * (job.ngrams[i] + pre.E[i] * s.outer[i] + job.tangent->step->tr[i] * expected[i]);
    slot.pairs[i] = -c * expected[i];
  }
  for (int64_t t = 1; t < worker.T; ++t) {
    slot.pairs[worker.gold_ngram(t)] += c;
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

}  // namespace
