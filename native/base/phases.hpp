// Time of an objective by phase.
//
//   scores   preparing weights, and computing the scores of every position
//   lattice  forward-backward, marginals, residual rows
//   gather   residual rows summed into the gradient, with the penalty
//
// The first two alternate within one parallel loop. The wall time of the loop is split between them in proportion to
// the workers' time on a sample of the sequences (class Sample in chunk_kernels.hpp).
#pragma once

#include <time.h>

#include <cstdint>

namespace crfit {

struct PhaseSeconds {
  double scores = 0.0, lattice = 0.0, gather = 0.0;
};

// Internal linkage, and a C function instead of std::chrono: per-level files must not share an inline function with the
// rest of the program.

// Nanoseconds of a monotonic clock.
static inline int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// Seconds since `last`, which becomes now.
static inline double lap(int64_t& last) {
  const int64_t before = last;
  last = now();
  return 1e-9 * static_cast<double>(last - before);
}

// Splits wall time among the phases in proportion to `busy`, the time of a sample.
static inline void add_in_proportion(double wall, const PhaseSeconds& busy, PhaseSeconds& to) {
  const double all = busy.scores + busy.lattice + busy.gather;
  if (!(all > 0.0)) return;
  to.scores += wall * busy.scores / all;
  to.lattice += wall * busy.lattice / all;
  to.gather += wall * busy.gather / all;
}

}  // namespace crfit
