// Inference on single sequences and the exponentials of transitions, compiled once per CPU level (CRFIT_LEVEL).
#include "lattice/kernels.hpp"

#include "lattice/history_sequence.hpp"
#include "lattice/lane_paths.hpp"
#include "lattice/sequence.hpp"

namespace {

using crfit::ExponentialsJob;
using crfit::InferenceJob;

// Copies the marginals of a sequence that a worker has solved.
template <class Worker>
void write_marginals(const InferenceJob& job, const Worker& worker) {
  const Prepared& pre = *job.weights;
  const int Y = pre.Y, YP = pre.YP;
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

template <class Worker>
void infer_sequences(const InferenceJob& job) {
  Worker worker(*job.data, *job.weights, *job.scratch);
  for (int64_t k = 0; k < job.n_sequences; ++k) {
    const int64_t i = job.sequences[k];
    worker.load(i);
    if (job.path_score != nullptr) job.path_score[i] = worker.gold;
    if (job.best != nullptr) job.best_score[i] = worker.best_path(job.best + worker.begin);
    if (job.log_z == nullptr) continue;
    worker.solve(job.node_marginals != nullptr || job.pair_marginals != nullptr);
    job.log_z[i] = worker.log_z;
    write_marginals(job, worker);
  }
}

// Best paths of a group, and the scores of the paths to each label.
template <int N, bool kHistories>
void best_of_group(const InferenceJob& job, LanePaths<N, kHistories>& lanes, const int64_t* first_prefix) {
  constexpr int G = N * kLanes;
  const int Y = job.weights->Y;
  lanes.maximise();
  if (job.best != nullptr) {
    lanes.trace([&](int l) { return job.best + lanes.begin[l]; });
    for (int l = 0; l < lanes.n; ++l) job.best_score[lanes.sequence[l]] = lanes.score[l];
  }
  if (job.prefixes == nullptr) return;
  const double* delta = job.scratch->lanes.A;
  for (int l = 0; l < lanes.n; ++l) {
    double* out = job.prefixes + first_prefix[lanes.slot[l]] * Y;
    for (int64_t i = 0; i < lanes.length[l] * Y; ++i) out[i] = delta[i * G + l];
  }
}

// log Z and marginals of a group.
template <int N, bool kHistories>
void solve_group(const InferenceJob& job, LanePaths<N, kHistories>& lanes) {
  constexpr int G = N * kLanes;
  const Prepared& pre = *job.weights;
  const crfit::LaneScratch& s = job.scratch->lanes;
  const int64_t Y = pre.Y, YP = pre.YP;
  const bool marginals = job.node_marginals != nullptr || job.pair_marginals != nullptr;
  lanes.forward(marginals);
  if (!marginals) {
    lanes.check_lost();
  } else {
    lanes.backward(s.z, kHistories && job.pair_marginals != nullptr, all_lanes<N>(1.0),
                   [&](int64_t t, int here, const double* p) {
                     if (job.node_marginals == nullptr) return;
                     lanes.rows_out(p, here, [&](int l) { return s.rows + l * YP; });
                     for (int l = 0; l < here; ++l) {
                       double* out = job.node_marginals + (lanes.begin[l] + t) * Y;
                       for (int64_t j = 0; j < Y; ++j) out[j] = s.rows[l * YP + j];
                     }
                   });
  }
  for (int l = 0; l < lanes.n; ++l) {
    if ((lanes.failed >> l & 1) != 0) {
      std::conditional_t<kHistories, HistoryWorker<0>, SequenceWorker<0>> worker(*job.data, pre, *job.scratch);
      worker.load(lanes.sequence[l]);
      worker.solve(marginals, true);
      job.log_z[lanes.sequence[l]] = worker.log_z;
      write_marginals(job, worker);
      continue;
    }
    job.log_z[lanes.sequence[l]] = lanes.log_z[l];
    if (job.pair_marginals == nullptr) continue;
    for (int64_t t = 0; t < lanes.length[l]; ++t) {
      double* out = job.pair_marginals + (lanes.begin[l] + t) * Y * Y;
      if (t == 0 || kHistories)
        for (int64_t i = 0; i < Y * Y; ++i) out[i] = 0.0;
      if constexpr (kHistories) {  // states whose last labels are the pair
        const int64_t at = t * lanes.row() + l;
        for (int64_t j = 0; j < lanes.states(t) && t > 0; ++j) out[j % (Y * Y)] += s.A[at + j * G] * s.b[at + j * G];
        continue;
      }
      const double *A = s.A + (t - 1) * Y * G + l, *z = s.z + t * Y * G + l;
      for (int64_t i = 0; i < Y && t > 0; ++i, out += Y) {
        // p(t, i, j) = A_{t-1}[i] E[i, j] z_t[j]
        for (int64_t j = 0; j < Y; ++j)
          out[j] = A[i * G] * (pre.sparse != nullptr ? pre.sparse->missing : pre.E[i * YP + j]) * z[j * G];
        if (pre.sparse == nullptr) continue;
        for (int32_t k = pre.sparse->after_ptr[i]; k < pre.sparse->after_ptr[i + 1]; ++k) {
          const int64_t j = pre.sparse->after[k];
          out[j] = A[i * G] * pre.sparse->after_E[k] * z[j * G];
        }
      }
    }
  }
}

template <int N, bool kHistories>
void infer_lanes(const InferenceJob& job) {
  constexpr int G = N * kLanes;
  LanePaths<N, kHistories> lanes(*job.data, *job.weights, nullptr, job.scratch->lanes);
  int64_t prefix = 0;
  for (int64_t k = 0; k < job.n_sequences; k += G) {
    const int count = static_cast<int>(job.n_sequences - k < G ? job.n_sequences - k : G);
    lanes.take(job.sequences + k, count);
    int64_t first_prefix[G];
    for (int m = 0; m < count; ++m) {
      first_prefix[m] = prefix;
      prefix += job.data->seq_ptr[job.sequences[k + m] + 1] - job.data->seq_ptr[job.sequences[k + m]];
    }
    if (job.best != nullptr || job.prefixes != nullptr || job.log_z == nullptr) best_of_group(job, lanes, first_prefix);
    if (job.log_z != nullptr) solve_group(job, lanes);
    if (job.path_score != nullptr)
      for (int l = 0; l < lanes.n; ++l) job.path_score[lanes.sequence[l]] = lanes.gold[l];
  }
}

void infer(const InferenceJob& job) {
  if (job.scratch->lanes.S != nullptr)
    return by_lanes(*job.scratch, job.weights->order,
                    [&]<int N, bool kHistories>() { infer_lanes<N, kHistories>(job); });
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
