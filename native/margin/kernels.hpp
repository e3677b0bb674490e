// Kernel of mistake-driven steps, compiled once per CPU level: compares the best path of a sequence with its labels.
// This takes most of the time; a mistake changes too few weights to vectorise.
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
  double miss = 0.0;        // score of the best path minus score of the given labels; not set if no label is wrong
};

struct MarginDecodeJob {
  const DataView* data = nullptr;
  const Prepared* weights = nullptr;  // exponentials are not read
  Scratch* scratch = nullptr;
  MarginSlot* slot = nullptr;    // sets: everything except the sequence
  int64_t next_sequence = -1;    // prefetch its rows meanwhile, -1: none
  PhaseSeconds* busy = nullptr;  // += unless null
};

struct MarginKernels {
  static const MarginKernels v2, v3, v4;
  void (*decode)(const MarginDecodeJob&);
};

}  // namespace crfit
