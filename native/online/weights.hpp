// The weights of an online run, and their sum over the steps.
//
// Attributes: w = scale rows, so w <- z w is scale <- z scale: one product instead of one for each of millions of
// weights. The scale decreases by about exp(-l2 eta) per epoch; before rows would overflow or lose digits, it is folded
// into them. Transitions and boundary weights are few, and every sequence touches all of them: they have no scale.
//
// Sum of the weights over the steps j = 1 .. K, for averaging: with d_j the change of the rows in step j and
// S_j = scale_1 + .. + scale_j,
//   sum_j w_j = S_K rows_K - sum_j S_{j-1} d_j
// (summation by parts: rows_j = d_1 + .. + d_j), so a step changes the second term only where it changes rows. Both
// terms grow like 1 / scale while their difference does not: with a sum the scale is already folded at 1e-3.
//
// At each step, rows of unpenalised attributes (there are few) are divided by the factor of the scale. d_j includes
// this change.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lattice/prepared.hpp"
#include "lattice/weight_rows.hpp"
#include "online/jobs.hpp"

namespace crfit {

// The rows of a vector in the form of the step kernels, without a sum.
OnlineRows rows_of(const RowLayout& shape, WeightRows& vector);

class OnlineWeights {
 public:
  // Label pairs are listed up to this share of all pairs (PairOptions).
  OnlineWeights(const LayoutView& layout, int n_threads, double listed_share);
  OnlineWeights(const OnlineWeights&) = delete;
  OnlineWeights& operator=(const OnlineWeights&) = delete;

  void set(const double* w);            // starts at w; resets the sum of weights
  double get(double* out);              // plain weights; returns |w|^2
  void begin_sum(const double* total);  // starts summing the weights after each step, on top of total (null: 0)
  void get_sum(double* out);
  void shrink(double factor);     // w <- factor w for penalised weights; the sum counts it as a step
  void keep_range();              // folds the scale into the rows before it becomes too small
  void show_transitions();        // updates what the view derives from tr: exponentials, transpose, maximum
  void add_transitions_to_sum();  // and boundary weights

  const RowLayout shape;
  WeightRows current, sum;
  double scale = 1.0, scale_sum = 0.0;
  bool summing = false;
  Buffer<double> mask;           // [ngram_size] 1 where there is a transition weight
  Buffer<double> boundary_mask;  // [YP] 1 for labels
  std::vector<int64_t> blocks;   // start of each block of eight doubles in tr with weights
  Prepared view;

 private:
  void fold();
  void restart_sum();

  Buffer<double> E_, ET_;                // [Y][YP] with order 1
  std::unique_ptr<NgramTables> tables_;  // with order 2 and more, or with listed pairs
};

}  // namespace crfit
