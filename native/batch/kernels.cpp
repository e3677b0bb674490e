// The hot loops of the objective, compiled once per CPU level (CRFIT_LEVEL). Three kinds of workers share the loops
// over a chunk: single positions, which have no lattice, chains of order 1, and label histories of order 2 and more.
#include "batch/kernels.hpp"

#include "batch/binary_kernels.hpp"
#include "batch/chunk_kernels.hpp"
#include "batch/gather_kernels.hpp"
#include "batch/lane_kernels.hpp"
#include "batch/position_kernels.hpp"
#include "lattice/history_tangent.hpp"
#include "lattice/tangent.hpp"

namespace {

// Chains are solved side by side, unless each position has its own pairs, or the job asks for the log domain or for
// cached pairs.
bool side_by_side(const ChunkJob& job) {
  return !job.one_position && job.scratch->lanes.S != nullptr && job.scratch->pairs == nullptr && !job.log_domain &&
         (job.kept == nullptr || !job.kept->pairs) && (job.tangent == nullptr || !job.tangent->propagate);
}

void loss(const ChunkJob& job) {
  if (side_by_side(job))
    return by_lanes(*job.scratch, job.weights->order,
                    [&]<int N, bool kHistories>() { loss_lanes<N, kHistories>(job); });
  by_width(job.weights->YP, [&]<int P>() {
    if (job.one_position) return position_loss<P>(job);
    job.weights->order > 1 ? loss_chunk<HistoryWorker<P>>(job) : loss_chunk<SequenceWorker<P>>(job);
  });
}
void gradient(const ChunkJob& job) {
  if (side_by_side(job))
    return by_lanes(*job.scratch, job.weights->order,
                    [&]<int N, bool kHistories>() { gradient_lanes<N, kHistories>(job); });
  by_width(job.weights->YP, [&]<int P>() {
    if (job.one_position) return position_gradient<P>(job);
    job.weights->order > 1 ? gradient_chunk<HistoryWorker<P>>(job) : gradient_chunk<SequenceWorker<P>>(job);
  });
}
void along(const ChunkJob& job) {
  if (side_by_side(job))
    return by_lanes(*job.scratch, job.weights->order,
                    [&]<int N, bool kHistories>() { along_lanes<N, kHistories>(job); });
  by_width(job.weights->YP, [&]<int P>() {
    if (job.one_position) return position_along<P>(job);
    job.weights->order > 1 ? along_chunk<HistoryWorker<P>>(job) : along_chunk<SequenceWorker<P>>(job);
  });
}
void product(const ChunkJob& job) {
  if (side_by_side(job))
    return by_lanes(*job.scratch, job.weights->order,
                    [&]<int N, bool kHistories>() { product_lanes<N, kHistories>(job); });
  by_width(job.weights->YP, [&]<int P>() {
    if (job.one_position) return position_product<P>(job);
    job.weights->order > 1 ? product_chunk<HistoryTangentWorker<P>>(job) : product_chunk<TangentWorker<P>>(job);
  });
}
void variance(const ChunkJob& job) {
  if (side_by_side(job))
    return by_lanes(*job.scratch, job.weights->order,
                    [&]<int N, bool kHistories>() { variance_lanes<N, kHistories>(job); });
  by_width(job.weights->YP, [&]<int P>() {
    if (job.one_position) return position_variance<P>(job);
    job.weights->order > 1 ? variance_chunk<HistoryWorker<P>>(job) : variance_chunk<SequenceWorker<P>>(job);
  });
}
void scores(const crfit::NodeScoreJob& job) {
  by_width(job.weights->YP, [&]<int P>() { node_scores_chunk<P>(job); });
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

}  // namespace

const crfit::BatchKernels crfit::BatchKernels::CRFIT_LEVEL = {
    .loss = ::loss,
    .gradient = ::gradient,
    .along = ::along,
    .product = ::product,
    .variance = ::variance,
    .node_scores = ::scores,
    .gather = ::gather,
    .frequent = ::frequent,
    .add_rows = ::add_rows,
    .binary_loss = ::binary_loss,
    .binary_gradient = ::binary_gradient,
    .binary_product = ::binary_product,
    .binary_squares = ::binary_squares,
    .binary_scores = ::binary_scores,
    .binary_along = ::binary_along,
};
