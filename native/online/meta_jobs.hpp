// Arguments of the kernels of stochastic meta-descent; the formulas are in meta.hpp.
#pragma once

#include <cstdint>

#include "online/jobs.hpp"

namespace crfit {

// One sequence of a step: its residuals, which go into the slot, and their derivatives along v.
struct MetaSolveJob {
  const DataView* data = nullptr;
  const Prepared* weights = nullptr;
  const Tangent* tangent = nullptr;  // v
  Scratch* scratch = nullptr;        // with room for tangents
  OnlineSlot* slot = nullptr;        // sets: loss, residual, pair_residual, pairs
  double* rows = nullptr;            // [T][YP] c_i d p(t, j)
  double* pairs = nullptr;           // [T][Y][YP] c_i d p(t, i, j), with edge attributes
  double* ngrams = nullptr;          // [ngram_size] sum over t of c_i d p(n-gram)
};

// The weights of attributes with their v and gain. dense, sparse, edges: the step up to which the rule of untouched
// weights has been applied to a unit's w and v.
struct MetaWeights {
  const LayoutView* layout = nullptr;
  int YP = 0;
  OnlineRows w;                                                   // its sum is the plain sum of the weights, or null
  double *v = nullptr, *gains = nullptr;                          // like w.rows
  int32_t *dense = nullptr, *sparse = nullptr, *edges = nullptr;  // [units] ready
  double meta_rate = 0.0, memory = 0.0;
  double eta0 = 0.0, share = 0.0;         // share = l2 B / N
  int64_t free_row = 0, free_weight = 0;  // RowLayout
};

// Brings units up to date for step `step`, in which they take part.
struct MetaReadyJob {
  MetaWeights to;
  Touches dense, sparse, edges;
  int32_t step = 0;
};

// The step itself on these units, all of which are ready.
struct MetaUpdateJob {
  MetaWeights to;
  Touches dense, sparse, edges;
  const double *residual = nullptr, *tangent = nullptr;            // [rows][YP] of all sequences of the step
  const double *pair_residual = nullptr, *pair_tangent = nullptr;  // [rows][Y][YP] with edge attributes
  double *sums = nullptr, *tangent_sums = nullptr;                 // room for the sums
};

// A table of weights all of which are touched.
struct MetaDenseJob {
  int64_t n = 0;                                         // whole vectors
  const double *residual = nullptr, *tangent = nullptr;  // [n]
  const double* mask = nullptr;                          // [n] 1 where there is a weight
  double *w = nullptr, *v = nullptr, *gains = nullptr;   // [n]
  double meta_rate = 0.0, memory = 0.0, eta0 = 0.0, share = 0.0;
};

}  // namespace crfit
