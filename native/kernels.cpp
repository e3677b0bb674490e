// The hot loops, compiled once per CPU level (CRFIT_LEVEL) and exported as one table of functions.
#include "kernels.hpp"

#include "dual_step.hpp"
#include "gather.hpp"
#include "online_kernels.hpp"
#include "tangent.hpp"
#include "weight_vectors.hpp"

namespace {

using crfit::ChunkJob;
using crfit::InferenceJob;
using crfit::NodeScoreJob;

inline int64_t sequence_of(const ChunkJob& job, int64_t k) {
  return job.sequences != nullptr ? job.sequences[k] : job.first_sequence + k;
}

// Times some sequences of a chunk: the first, then the next one whenever kEvery positions have gone by. Reading the
// clock around each would cost as much as the work itself where sequences have one position.
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

template <int P>
void loss_chunk(const ChunkJob& job) {
  SequenceWorker<P> worker(*job.data, *job.weights, *job.scratch);
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

// outer * E, added to the chunk's expected pairs.
inline void close_outer(const Prepared& pre, const double* outer, double* pair_sum) {
  for (int64_t i = 0; i < static_cast<int64_t>(pre.Y) * pre.YP; ++i) pair_sum[i] += pre.E[i] * outer[i];
}

template <int P>
void gradient_chunk(const ChunkJob& job) {
  const Prepared& pre = *job.weights;
  Scratch& s = *job.scratch;
  const int YP = pre.YP;
  const int64_t pair_size = static_cast<int64_t>(pre.Y) * YP;
  SequenceWorker<P> worker(*job.data, pre, s);
  for (int64_t i = 0; i < pair_size; ++i) s.outer[i] = 0.0;
  int64_t first_row = job.first_row;
  Sample sample;
  for (int64_t k = 0; k < job.n_sequences; ++k, first_row += worker.T) {
    sample.begin();
    const int64_t sequence = sequence_of(job, k);
    worker.load(sequence);
    sample.scores_done();
    worker.solve(true, job.log_domain);
    if (job.kept != nullptr) worker.keep(*job.kept, sequence);
    *job.loss += worker.c * (worker.log_z - worker.gold);
    double* residual = job.residual + first_row * YP;
    for (int64_t t = 0; t < worker.T; ++t, residual += YP) {
      worker.node(t, worker.c, residual);
      if (job.subtract_gold) residual[job.data->labels[worker.begin + t]] -= worker.c;
    }
    if (worker.factored()) {
      worker.add_outer_products(s.outer);
    } else {
      for (int64_t t = 1; t < worker.T; ++t) {
        double* p = job.pair_marginals != nullptr ? job.pair_marginals + (first_row + t) * pair_size : s.matrix;
        worker.pair(t, worker.c, p);
        for (int64_t i = 0; i < pair_size; ++i) job.pair_sum[i] += p[i];
        if (job.pair_marginals != nullptr && job.subtract_gold) {
          const int32_t* y = job.data->labels + worker.begin + t;
          p[y[-1] * YP + y[0]] -= worker.c;
        }
      }
    }
    sample.lattice_done(worker.T);
  }
  close_outer(pre, s.outer, job.pair_sum);
  *job.busy = sample.busy();
}

template <int P>
void along_chunk(const ChunkJob& job) {
  const Prepared& pre = *job.weights;
  const crfit::Direction& direction = *job.direction;
  Scratch& s = *job.scratch;
  const int YP = pre.YP;
  const int64_t pair_size = static_cast<int64_t>(pre.Y) * YP;
  SequenceWorker<P> worker(*job.data, pre, s);
  for (int64_t i = 0; i < pair_size; ++i) s.outer[i] = job.pair_sum[i] = 0.0;
  Sample sample;
  for (int64_t k = 0; k < job.n_sequences; ++k) {
    sample.begin();
    worker.load(sequence_of(job, k), direction);
    sample.scores_done();
    worker.solve(true, job.log_domain);
    *job.loss += worker.c * (worker.log_z - worker.gold);
    double slope = 0.0;
    const int32_t* y = job.data->labels + worker.begin;
    for (int64_t t = 0; t < worker.T; ++t) {
      const double* q = direction.step_scores + (worker.begin + t) * YP;
      worker.node(t, 1.0, s.row);
      for (int j = 0; j < pre.Y; ++j) slope += s.row[j] * q[j];
      slope -= q[y[t]];
    }
    if (worker.factored()) {
      worker.add_outer_products(s.outer);
      for (int64_t t = 1; t < worker.T; ++t) slope -= direction.step->tr[y[t - 1] * YP + y[t]];
    } else {
      for (int64_t t = 1; t < worker.T; ++t) {
        double *p = s.matrix, *q = s.matrix + pair_size;
        worker.pair(t, 1.0, p);
        worker.direction_pairs(t, q);
        for (int i = 0; i < pre.Y; ++i)
          for (int j = 0; j < pre.Y; ++j) slope += p[i * YP + j] * q[i * YP + j];
        slope -= q[y[t - 1] * YP + y[t]];
      }
    }
    *job.slope += worker.c * slope;
    sample.lattice_done(worker.T);
  }
  close_outer(pre, s.outer, job.pair_sum);
  for (int i = 0; i < pre.Y; ++i)
    for (int j = 0; j < pre.Y; ++j) *job.slope += job.pair_sum[i * YP + j] * direction.step->tr[i * YP + j];
  *job.busy = sample.busy();
}

// The derivative of gradient_chunk along job.tangent, without p R of the shared transitions in the pair sums.
template <int P>
void product_chunk(const ChunkJob& job) {
  const Prepared& pre = *job.weights;
  Scratch& s = *job.scratch;
  const int64_t pair_size = static_cast<int64_t>(pre.Y) * pre.YP;
  TangentWorker<P> worker(*job.data, pre, *job.tangent, job.kept, job.log_domain, s);
  for (int64_t i = 0; i < pair_size; ++i) s.outer[i] = 0.0;
  int64_t first_row = job.first_row;
  Sample sample;
  for (int64_t k = 0; k < job.n_sequences; ++k, first_row += worker.T) {
    sample.begin();
    worker.load_tangent(sequence_of(job, k));
    sample.scores_done();
    double* pairs = job.pair_marginals != nullptr ? job.pair_marginals + first_row * pair_size : nullptr;
    worker.differentiate(job.residual + first_row * pre.YP, s.outer, job.pair_sum, pairs);
    sample.lattice_done(worker.T);
  }
  close_outer(pre, s.outer, job.pair_sum);
  *job.busy = sample.busy();
}

// Variances of the single occurrences: c p (1 - p) where gradient_chunk has c (p - gold).
template <int P>
void variance_chunk(const ChunkJob& job) {
  const Prepared& pre = *job.weights;
  Scratch& s = *job.scratch;
  const int YP = pre.YP;
  const int64_t pair_size = static_cast<int64_t>(pre.Y) * YP;
  SequenceWorker<P> worker(*job.data, pre, s);
  int64_t first_row = job.first_row;
  Sample sample;
  for (int64_t k = 0; k < job.n_sequences; ++k, first_row += worker.T) {
    sample.begin();
    worker.load(sequence_of(job, k));
    sample.scores_done();
    worker.solve(true, job.log_domain);
    double* rows = job.residual + first_row * YP;
    for (int64_t t = 0; t < worker.T; ++t, rows += YP) {
      worker.node(t, 1.0, rows);
      for (int j = 0; j < YP; ++j) rows[j] *= worker.c * (1.0 - rows[j]);
    }
    for (int64_t t = 1; t < worker.T; ++t) {
      double* p = job.pair_marginals != nullptr ? job.pair_marginals + (first_row + t) * pair_size : s.matrix;
      worker.pair(t, 1.0, p);
      for (int64_t i = 0; i < pair_size; ++i) {
        p[i] *= worker.c * (1.0 - p[i]);
        job.pair_sum[i] += p[i];
      }
    }
    sample.lattice_done(worker.T);
  }
  *job.busy = sample.busy();
}

template <int P>
void infer_chunk(const InferenceJob& job) {
  const Prepared& pre = *job.weights;
  const int Y = pre.Y, YP = pre.YP;
  SequenceWorker<P> worker(*job.data, pre, *job.scratch);
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

template <int P>
void node_scores_chunk(const NodeScoreJob& job) {
  const DataView& data = *job.data;
  const int YP = job.weights->YP;
  for (int64_t i = job.first_sequence; i < job.first_sequence + job.n_sequences; ++i) {
    const int64_t begin = data.seq_ptr[i];
    node_scores(Width<P>(YP), data, *job.weights, begin, data.seq_ptr[i + 1] - begin, job.out + begin * YP);
  }
}

// Calls the version of `function` for this padded width.
#define CRFIT_BY_WIDTH(function, yp, job) \
  switch (yp) {                           \
    case 8: return function<8>(job);      \
    case 16: return function<16>(job);    \
    case 24: return function<24>(job);    \
    case 32: return function<32>(job);    \
    case 40: return function<40>(job);    \
    case 48: return function<48>(job);    \
    case 56: return function<56>(job);    \
    case 64: return function<64>(job);    \
    default: return function<0>(job);     \
  }

void loss(const ChunkJob& job) { CRFIT_BY_WIDTH(loss_chunk, job.weights->YP, job) }
void gradient(const ChunkJob& job) { CRFIT_BY_WIDTH(gradient_chunk, job.weights->YP, job) }
void along(const ChunkJob& job) { CRFIT_BY_WIDTH(along_chunk, job.weights->YP, job) }
void product(const ChunkJob& job) { CRFIT_BY_WIDTH(product_chunk, job.weights->YP, job) }
void variance(const ChunkJob& job) { CRFIT_BY_WIDTH(variance_chunk, job.weights->YP, job) }
void infer(const InferenceJob& job) { CRFIT_BY_WIDTH(infer_chunk, job.weights->YP, job) }
void gather(const crfit::GatherJob& job) { CRFIT_BY_WIDTH(gather_rows, job.YP, job) }
void frequent(const crfit::FrequentJob& job) { CRFIT_BY_WIDTH(frequent_rows, job.YP, job) }
void online_solve(const crfit::OnlineSolveJob& job) { CRFIT_BY_WIDTH(solve_online, job.weights->YP, job) }
void online_update(const crfit::OnlineUpdateJob& job) { CRFIT_BY_WIDTH(update_online, job.YP, job) }
void dual_scores(const crfit::DualJob& job) { CRFIT_BY_WIDTH(dual_scores_of, job.YP, job) }
void dual_solve(crfit::DualJob& job) { CRFIT_BY_WIDTH(dual_solve_of, job.YP, job) }
void dual_change(crfit::DualJob& job) { CRFIT_BY_WIDTH(dual_change_of, job.YP, job) }
void dual_update(const crfit::DualJob& job) { CRFIT_BY_WIDTH(dual_update_of, job.YP, job) }
void scores(const NodeScoreJob& job) { CRFIT_BY_WIDTH(node_scores_chunk, job.weights->YP, job) }

}  // namespace

#define CRFIT_NAME2(a, b) a##b
#define CRFIT_NAME(a, b) CRFIT_NAME2(a, b)
#define CRFIT_TEXT2(a) #a
#define CRFIT_TEXT(a) CRFIT_TEXT2(a)

namespace crfit {
extern const Kernels CRFIT_NAME(kernels_, CRFIT_LEVEL);
// clang-format off
const Kernels CRFIT_NAME(kernels_, CRFIT_LEVEL) = {
    CRFIT_TEXT(CRFIT_LEVEL),
    loss, gradient, along, product, variance, infer, gather, frequent, scores,
    pair_products, combine,
    online_solve, online_update, online_transitions,
    dual_scores, dual_solve, dual_change, dual_update};
// clang-format on
}  // namespace crfit
