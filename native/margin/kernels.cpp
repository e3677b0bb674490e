// The best path of one sequence against its labels, compiled once per CPU level (CRFIT_LEVEL).
#include "margin/kernels.hpp"

#include "lattice/history_sequence.hpp"
#include "lattice/rows_ahead.hpp"
#include "lattice/sequence.hpp"

namespace {

using crfit::MarginDecodeJob;

template <class Worker>
void decode_margin(const MarginDecodeJob& job) {
  const Prepared& pre = *job.weights;
  crfit::MarginSlot& slot = *job.slot;
  Worker worker(*job.data, pre, *job.scratch);
  int64_t last = job.busy != nullptr ? crfit::now() : 0;
  worker.load_scores(slot.sequence);
  if (job.busy != nullptr) job.busy->scores += crfit::lap(last);
  RowsAhead<0>(*job.data, pre, job.next_sequence).prefetch_rest();
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

void decode(const MarginDecodeJob& job) {
  by_width(job.weights->YP, [&]<int P>() {
    job.weights->order > 1 ? decode_margin<HistoryWorker<P>>(job) : decode_margin<SequenceWorker<P>>(job);
  });
}

}  // namespace

const crfit::MarginKernels crfit::MarginKernels::CRFIT_LEVEL = {
    .decode = ::decode,
};
