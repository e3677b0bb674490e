#include "history_kernels.hpp"

#include "chunk_kernels.hpp"
#include "history_tangent.hpp"
#include "margin_kernels.hpp"
#include "online_kernels.hpp"
#include "online_meta_solve.hpp"

namespace crfit::CRFIT_HISTORY {

void loss(const ChunkJob& job) {
  by_width(job.weights->YP, [&]<int P>() { loss_chunk<HistoryWorker<P>>(job); });
}
void gradient(const ChunkJob& job) {
  by_width(job.weights->YP, [&]<int P>() { gradient_chunk<HistoryWorker<P>>(job); });
}
void along(const ChunkJob& job) {
  by_width(job.weights->YP, [&]<int P>() { along_chunk<HistoryWorker<P>>(job); });
}
void product(const ChunkJob& job) {
  by_width(job.weights->YP, [&]<int P>() { product_chunk<HistoryTangentWorker<P>>(job); });
}
void variance(const ChunkJob& job) {
  by_width(job.weights->YP, [&]<int P>() { variance_chunk<HistoryWorker<P>>(job); });
}
void infer(const InferenceJob& job) {
  by_width(job.weights->YP, [&]<int P>() { infer_chunk<HistoryWorker<P>>(job); });
}
void online_solve(const OnlineSolveJob& job) {
  by_width(job.weights->YP, [&]<int P>() { solve_online<HistoryWorker<P>>(job); });
}
void meta_solve(const MetaSolveJob& job) {
  by_width(job.weights->YP, [&]<int P>() { solve_meta<HistoryTangentWorker<P>>(job); });
}
void margin_decode(const MarginDecodeJob& job) {
  by_width(job.weights->YP, [&]<int P>() { decode_margin<HistoryWorker<P>>(job); });
}

}  // namespace crfit::CRFIT_HISTORY
