// Kernel of mistake-driven trainers: the best path of one sequence against its labels. Included by per-level files
// only.
#pragma once

#include "margin_job.hpp"
#include "online_kernels.hpp"

namespace {

template <class Worker>
void decode_margin(const crfit::MarginDecodeJob& job) {
  const Prepared& pre = *job.weights;
  crfit::MarginSlot& slot = *job.slot;
  Worker worker(*job.data, pre, *job.scratch);
  int64_t last = job.busy != nullptr ? crfit::now() : 0;
  worker.load_scores(slot.sequence);
  if (job.busy != nullptr) job.busy->scores += crfit::lap(last);
  RowsAhead<0>(*job.data, pre, job.next_sequence).ask_for_rest();
  const double score = worker.best_path(slot.best);
  const int32_t* y = job.data->labels + worker.begin;
  slot.n_wrong = 0;
  for (int64_t t = 0; t < worker.T; ++t) slot.n_wrong += slot.best[t] != y[t];
  if (slot.n_wrong > 0) {
    worker.add_gold();
    slot.miss = score - worker.gold;
  }
  if (job.busy != nullptr) job.busy->lattice += crfit::lap(last);
}

}  // namespace
