// The kernels for label histories, order 2 and more, of one CPU level (CRFIT_LEVEL): history_kernels.cpp.
#pragma once

#include "kernels.hpp"

#define CRFIT_NAME2(a, b) a##b
#define CRFIT_NAME(a, b) CRFIT_NAME2(a, b)
#define CRFIT_HISTORY CRFIT_NAME(history_, CRFIT_LEVEL)

namespace crfit::CRFIT_HISTORY {

void loss(const ChunkJob& job);
void gradient(const ChunkJob& job);
void along(const ChunkJob& job);
void product(const ChunkJob& job);
void variance(const ChunkJob& job);
void infer(const InferenceJob& job);
void online_solve(const OnlineSolveJob& job);
void meta_solve(const MetaSolveJob& job);
void margin_decode(const MarginDecodeJob& job);

}  // namespace crfit::CRFIT_HISTORY
