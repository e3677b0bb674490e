// The weights of an on-line run: where they lie, and their sum over the steps.
//
// Attributes: w = scale rows, so that w <- z w is scale <- z scale: one product instead of one for each of millions of
// weights. The scale falls by about exp(-l2 eta) in an epoch; before it gets so small that rows overflow or lose digits
// it is folded into them. Transitions and boundary weights are few and all touched by every sequence: they are plain.
//
// Sum of the weights over the steps j = 1 .. K, for averaging: with d_j what step j adds to the rows and
// S_j = scale_1 + .. + scale_j,
//   sum_j w_j = S_K rows_K - sum_j S_{j-1} d_j
// (summation by parts: rows_j = d_1 + .. + d_j), so that a step changes the second term only where it changes rows.
// Both terms grow like 1 / scale while their difference does not: with a sum the scale is folded at 1e-3 already.
//
// Rows of unpenalised attributes are divided by what the scale is multiplied by, at each step; there are few of them.
// d_j includes that change.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lattice/prepared.hpp"
#include "lattice/weight_rows.hpp"
#include "online/jobs.hpp"

namespace crfit {

// The rows of a vector as the kernels of steps take them, without a sum.
OnlineRows rows_of(const RowLayout& shape, WeightRows& vector);

class OnlineWeights {
 public:
  OnlineWeights(const LayoutView& layout, int n_threads);
  OnlineWeights(const OnlineWeights&) = delete;
  OnlineWeights& operator=(const OnlineWeights&) = delete;

  void set(const double* w);            // starts at w; a sum of weights ends
  double get(double* out);              // plain weights; returns |w|^2
  void begin_sum(const double* total);  // from now on sum the weights after each step, on top of total (null: 0)
  void get_sum(double* out);
  void shrink(double factor);     // w <- factor w where there is a penalty; the sum counts it as a step
  void keep_range();              // folds the scale into the rows before it gets too small
  void show_transitions();        // recomputes what the view derives from tr: exponentials, transposed, maximum
  void add_transitions_to_sum();  // and boundary weights

  const RowLayout shape;
  WeightRows current, sum;
  double scale = 1.0, scale_sum = 0.0;
  bool summing = false;
  Buffer<double> mask;           // [ngram_size] 1 where there is a transition weight
  Buffer<double> boundary_mask;  // [YP] 1 for labels
  std::vector<int64_t> blocks;   // of eight doubles in tr that have weights: where they begin
  Prepared view;

 private:
  void fold();
  void restart_sum();

  Buffer<double> E_, ET_;                   // [Y][YP] with order 1
  std::unique_ptr<NgramTables> histories_;  // with order 2 and more
};

}  // namespace crfit
