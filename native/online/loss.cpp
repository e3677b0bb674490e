#include "online/loss.hpp"

#include <algorithm>

#include "base/dispatch.hpp"
#include "base/pool.hpp"
#include "batch/kernels.hpp"

namespace crfit {

double online_loss(const DataView& data, const Prepared& weights, std::vector<WorkerScratch>& scratch,
                   const int64_t* sequences, int64_t n, int n_threads) {
  constexpr int64_t kPart = 8;  // sequences per task
  const int64_t n_tasks = (n + kPart - 1) / kPart;
  std::vector<double> losses(static_cast<std::size_t>(n_tasks), 0.0);
  std::vector<PhaseSeconds> busy(losses.size());
  parallel_for(n_threads, n_tasks, [&](int64_t task, int worker) {
    ChunkJob job;
    job.data = &data;
    job.weights = &weights;
    job.sequences = sequences + task * kPart;
    job.n_sequences = std::min(kPart, n - task * kPart);
    job.scratch = &scratch[worker].view;
    job.loss = &losses[task];
    job.busy = &busy[task];
    at_level<BatchKernels>().loss(job);
  });
  double total = 0.0;
  for (const double part : losses) total += part;
  return total;
}

}  // namespace crfit
