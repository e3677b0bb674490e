// Where the time of an objective goes.
//
//   scores   weights made ready, and the scores of every position from them
//   lattice  forward-backward, marginals, residual rows
//   gather   residual rows summed into the gradient, with the penalty
//
// The first two alternate from sequence to sequence within one parallel loop. The wall time of the loop is divided
// between them as the workers' own time was, on a sample of the sequences (class Sample in chunk_kernels.hpp).
#pragma once

#include <time.h>

#include <cstdint>

namespace crfit {

struct PhaseSeconds {
  double scores = 0.0, lattice = 0.0, gather = 0.0;
};

// Internal linkage, and a C function instead of std::chrono: per-level files must not share an inline function with the
// rest of the program.

// Nanoseconds of a clock that is never set back.
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

// Divides wall time among the phases as `busy`, that of a sample, is.
static inline void add_in_proportion(double wall, const PhaseSeconds& busy, PhaseSeconds& to) {
  const double all = busy.scores + busy.lattice + busy.gather;
  if (!(all > 0.0)) return;
  to.scores += wall * busy.scores / all;
  to.lattice += wall * busy.lattice / all;
  to.gather += wall * busy.gather / all;
}

}  // namespace crfit
