// What the kernel of mistake-driven trainers takes and gives (margin_kernels.hpp).
#pragma once

#include "kernels.hpp"

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
  const Prepared* weights = nullptr;  // exponentials are not looked at
  Scratch* scratch = nullptr;
  MarginSlot* slot = nullptr;    // sets: all but the sequence
  int64_t next_sequence = -1;    // whose rows are asked for meanwhile, -1: none
  PhaseSeconds* busy = nullptr;  // += where given
};

}  // namespace crfit
