// Entry point of mistake-driven steps, compiled once per CPU level: the best path of a sequence against its labels.
// That is where the time goes; a mistake changes too few weights for vectors to be of use.
#pragma once

#include <cstdint>

#include "base/phases.hpp"
#include "base/views.hpp"
#include "lattice/tables.hpp"

namespace crfit {

// One sequence of a step.
struct MarginSlot {
  int64_t sequence = 0;
  int32_t* best = nullptr;  // [T] labels of the best path
  int64_t n_wrong = 0;      // of them
  double miss = 0.0;        // score of the best path less that of the given labels; not set where none is wrong
};

struct MarginDecodeJob {
  const DataView* data = nullptr;
  const Prepared* weights = nullptr;  // exponentials are not read
  Scratch* scratch = nullptr;
  MarginSlot* slot = nullptr;    // sets: all but the sequence
  int64_t next_sequence = -1;    // whose rows are prefetched meanwhile, -1: none
  PhaseSeconds* busy = nullptr;  // += where given
};

struct MarginKernels {
  static const MarginKernels v2, v3, v4;
  void (*decode)(const MarginDecodeJob&);
};

}  // namespace crfit
