// Losses of some sequences at the weights of an online run.
#pragma once

#include <cstdint>
#include <vector>

#include "lattice/prepared.hpp"

namespace crfit {

// Sum of c_i loss_i. Does not depend on the number of threads.
double online_loss(const DataView& data, const Prepared& weights, std::vector<WorkerScratch>& scratch,
                   const int64_t* sequences, int64_t n, int n_threads);

}  // namespace crfit
