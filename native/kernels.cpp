// The hot loops, compiled once per CPU level (CRFIT_LEVEL) and exported as one table of functions.
#include "kernels.hpp"

#include "binary_kernels.hpp"
#include "chunk_kernels.hpp"
#include "dual_step.hpp"
#include "gather.hpp"
#include "history_kernels.hpp"
#include "margin_kernels.hpp"
#include "online_meta_kernels.hpp"
#include "online_meta_solve.hpp"
#include "online_rule_kernel.hpp"
#include "period_kernel.hpp"
#include "position_kernels.hpp"
#include "tangent.hpp"
#include "weight_vectors.hpp"

namespace {

namespace history = crfit::CRFIT_HISTORY;
using crfit::NodeScoreJob;

template <int P>
void node_scores_chunk(const NodeScoreJob& job) {
  const DataView& data = *job.data;
  const int YP = job.weights->YP;
  for (int64_t i = job.first_sequence; i < job.first_sequence + job.n_sequences; ++i) {
    const int64_t begin = data.seq_ptr[i];
    node_scores(Width<P>(YP), data, *job.weights, begin, data.seq_ptr[i + 1] - begin, job.out + begin * YP);
  }
}

void loss(const ChunkJob& job) {
  if (job.one_position) return by_width(job.weights->YP, [&]<int P>() { position_loss<P>(job); });
  if (job.weights->order > 1) return history::loss(job);
  by_width(job.weights->YP, [&]<int P>() { loss_chunk<SequenceWorker<P>>(job); });
}
void gradient(const ChunkJob& job) {
  if (job.one_position) return by_width(job.weights->YP, [&]<int P>() { position_gradient<P>(job); });
  if (job.weights->order > 1) return history::gradient(job);
  by_width(job.weights->YP, [&]<int P>() { gradient_chunk<SequenceWorker<P>>(job); });
}
void along(const ChunkJob& job) {
  if (job.one_position) return by_width(job.weights->YP, [&]<int P>() { position_along<P>(job); });
  if (job.weights->order > 1) return history::along(job);
  by_width(job.weights->YP, [&]<int P>() { along_chunk<SequenceWorker<P>>(job); });
}
void product(const ChunkJob& job) {
  if (job.one_position) return by_width(job.weights->YP, [&]<int P>() { position_product<P>(job); });
  if (job.weights->order > 1) return history::product(job);
  by_width(job.weights->YP, [&]<int P>() { product_chunk<TangentWorker<P>>(job); });
}
void variance(const ChunkJob& job) {
  if (job.one_position) return by_width(job.weights->YP, [&]<int P>() { position_variance<P>(job); });
  if (job.weights->order > 1) return history::variance(job);
  by_width(job.weights->YP, [&]<int P>() { variance_chunk<SequenceWorker<P>>(job); });
}
void infer(const InferenceJob& job) {
  if (job.weights->order > 1) return history::infer(job);
  by_width(job.weights->YP, [&]<int P>() { infer_chunk<SequenceWorker<P>>(job); });
}
void gather(const crfit::GatherJob& job) {
  by_width(job.YP, [&]<int P>() { gather_rows<P>(job); });
}
void frequent(const crfit::FrequentJob& job) {
  by_width(job.YP, [&]<int P>() { frequent_rows<P>(job); });
}
void add_rows(const crfit::GatherRowsJob& job) {
  by_width(job.YP, [&]<int P>() { add_listed_rows<P>(job); });
}
void online_solve(const crfit::OnlineSolveJob& job) {
  if (job.weights->order > 1) return history::online_solve(job);
  by_width(job.weights->YP, [&]<int P>() { solve_online<SequenceWorker<P>>(job); });
}
void online_update(const crfit::OnlineUpdateJob& job) {
  by_width(job.YP, [&]<int P>() { update_online<P>(job); });
}
void margin_decode(const crfit::MarginDecodeJob& job) {
  if (job.weights->order > 1) return history::margin_decode(job);
  by_width(job.weights->YP, [&]<int P>() { decode_margin<SequenceWorker<P>>(job); });
}
void online_update_by_rule(const crfit::OnlineRuleJob& job) {
  by_width(job.YP, [&]<int P>() { update_by_rule<P>(job); });
}
void meta_solve(const crfit::MetaSolveJob& job) {
  if (job.weights->order > 1) return history::meta_solve(job);
  by_width(job.weights->YP, [&]<int P>() { solve_meta<TangentWorker<P>>(job); });
}
void meta_ready(const crfit::MetaReadyJob& job) {
  by_width(job.to.YP, [&]<int P>() { meta_ready_units<P>(job); });
}
void meta_update(const crfit::MetaUpdateJob& job) {
  by_width(job.to.YP, [&]<int P>() { meta_update_units<P>(job); });
}
void period_update(const crfit::PeriodUpdateJob& job) {
  by_width(job.touched.YP, [&]<int P>() { period_update_sequence<P>(job); });
}
void exponentials(const crfit::ExponentialsJob& job) {
  for (int64_t h = 0; h < job.rows; ++h) {
    double* E = job.E + h * job.YP;
    for (int j = 0; j < job.YP; j += kLanes)
      store(E + j, vexp(vmin(load(job.scores + h * job.YP + j) - splat(job.top), Vec{})));
    for (int j = job.Y; j < job.YP; ++j) E[j] = 0.0;
  }
}
void dual_scores(const crfit::DualJob& job) {
  by_width(job.YP, [&]<int P>() { dual_scores_of<P>(job); });
}
void dual_solve(crfit::DualJob& job) {
  by_width(job.YP, [&]<int P>() { dual_solve_of<P>(job); });
}
void dual_change(crfit::DualJob& job) {
  by_width(job.YP, [&]<int P>() { dual_change_of<P>(job); });
}
void dual_update(const crfit::DualJob& job) {
  by_width(job.YP, [&]<int P>() { dual_update_of<P>(job); });
}
void scores(const NodeScoreJob& job) {
  by_width(job.weights->YP, [&]<int P>() { node_scores_chunk<P>(job); });
}

}  // namespace

#define CRFIT_TEXT2(a) #a
#define CRFIT_TEXT(a) CRFIT_TEXT2(a)

namespace crfit {
extern const Kernels CRFIT_NAME(kernels_, CRFIT_LEVEL);
// clang-format off
const Kernels CRFIT_NAME(kernels_, CRFIT_LEVEL) = {
    CRFIT_TEXT(CRFIT_LEVEL),
    loss, gradient, along, product, variance, infer, gather, frequent, add_rows, scores,
    binary_loss, binary_gradient, binary_product, binary_squares, binary_scores, binary_along,
    pair_products, combine,
    online_solve, online_update, online_update_by_rule, online_dense, online_transitions, transform,
    meta_solve, meta_ready, meta_update, meta_dense,
    period_update, period_middle, period_end, period_table, period_factors,
    margin_decode,
    exponentials, dual_scores, dual_solve, dual_change, dual_update};
// clang-format on
}  // namespace crfit
