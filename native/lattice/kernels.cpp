// Inference on single sequences and the exponentials of transitions, compiled once per CPU level (CRFIT_LEVEL).
#include "lattice/kernels.hpp"

#include "lattice/history_sequence.hpp"
#include "lattice/sequence.hpp"

namespace {

using crfit::ExponentialsJob;
using crfit::InferenceJob;

template <class Worker>
void infer_sequences(const InferenceJob& job) {
  const Prepared& pre = *job.weights;
  const int Y = pre.Y, YP = pre.YP;
  Worker worker(*job.data, pre, *job.scratch);
  for (int64_t i = job.first_sequence; i < job.first_sequence + job.n_sequences; ++i) {
    worker.load(i);
    if (job.path_score != nullptr) job.path_score[i] = worker.gold;
    if (job.best != nullptr) job.best_score[i] = worker.best_path(job.best + worker.begin);
    if (job.log_z == nullptr) continue;
    worker.solve(job.node_marginals != nullptr || job.pair_marginals != nullptr);
    job.log_z[i] = worker.log_z;
    for (int64_t t = 0; t < worker.T; ++t) {
      if (job.node_marginals != nullptr) {
        worker.node(t, 1.0, job.scratch->row);
        double* out = job.node_marginals + (worker.begin + t) * Y;
        for (int j = 0; j < Y; ++j) out[j] = job.scratch->row[j];
      }
      if (job.pair_marginals != nullptr) {
        double* out = job.pair_marginals + (worker.begin + t) * Y * Y;
        if (t > 0) worker.pair(t, 1.0, job.scratch->matrix);
        for (int a = 0; a < Y; ++a)
          for (int b = 0; b < Y; ++b) out[a * Y + b] = t > 0 ? job.scratch->matrix[a * YP + b] : 0.0;
      }
    }
  }
}

void infer(const InferenceJob& job) {
  by_width(job.weights->YP, [&]<int P>() {
    job.weights->order > 1 ? infer_sequences<HistoryWorker<P>>(job) : infer_sequences<SequenceWorker<P>>(job);
  });
}

void exponentials(const ExponentialsJob& job) {
  for (int64_t h = 0; h < job.rows; ++h) {
    double* E = job.E + h * job.YP;
    for (int j = 0; j < job.YP; j += kLanes)
      store(E + j, vexp(vmin(load(job.scores + h * job.YP + j) - splat(job.top), Vec{})));
    for (int j = job.Y; j < job.YP; ++j) E[j] = 0.0;
  }
}

}  // namespace

const crfit::LatticeKernels crfit::LatticeKernels::CRFIT_LEVEL = {
    .infer = ::infer,
    .exponentials = ::exponentials,
};
