// The weights of an on-line run: where they lie, and their sum over the steps.
//
// The weights of attributes are kept as w = scale rows, so that the penalty of all of them is one product. Transitions
// and boundary weights are few and dense: they are kept as they are.
//
// Sum of the weights over the steps j = 1 .. K, for averaging: with d_j what step j adds to the rows and
// S_j = scale_1 + .. + scale_j,
//   sum_j w_j = S_K rows_K - sum_j S_{j-1} d_j
// so that the second term is touched where the rows are touched. Rows of free attributes, which no penalty shrinks, are
// divided by what the scale is multiplied by; d_j has that change too.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "online_job.hpp"
#include "prepared.hpp"

namespace crfit {

// A vector over the weights, laid out for steps on single sequences.
struct OnlineVector {
  Buffer<double> rows;        // weights of attributes, then of edge attributes: OnlineShape
  Buffer<double> tr;          // [ngram_size] each length's own n-grams, padding 0
  Buffer<double> start, end;  // [YP]
};

// Where the weights lie in an OnlineVector.
class OnlineShape {
 public:
  OnlineShape(const LayoutView& layout, int n_threads);

  OnlineVector zeros() const;
  OnlineRows rows(OnlineVector& vector) const;  // where its rows lie, without a sum
  void load(const double* plain, OnlineVector& out) const;
  // Plain weights, with those of attributes times `scale`, which is taken into the rows; returns their squared norm.
  double save(OnlineVector& from, double scale, double* plain) const;
  // to += a x, and the result as plain weights.
  void add_and_save(OnlineVector& to, double a, const OnlineVector& x, double* plain) const;

  LayoutView layout;
  int n_threads;
  int YP;
  int64_t ngram_size;
  // rows: with weights="all" a row [YP] for each attribute; with "observed" single weights in the order of the plain
  // vector, then a row for each attribute with many labels, from hot_offset on. Edge attributes last.
  std::vector<int32_t> hot_row;      // [n_attributes] or -1; empty with weights="all"
  std::vector<uint64_t> hot_labels;  // [n_hot][label_words] bits of the labels that have a weight
  int64_t n_hot = 0, label_words = 0;
  int64_t hot_offset = 0, edge_offset = 0, size = 0;
  // Without a penalty: rows of attributes from free_row on, single weights from free_weight on.
  int64_t free_row = 0, free_weight = 0;
  // Calls visit(place) for each of these in the rows.
  template <class Visit>
  void each_free(const Visit& visit) const;

 private:
  template <class Copy>
  void each_run(const Copy& copy) const;
  template <class Copy>
  void each_dense(OnlineVector& vector, const Copy& copy) const;
};

class OnlineWeights {
 public:
  OnlineWeights(const LayoutView& layout, int n_threads);
  OnlineWeights(const OnlineWeights&) = delete;
  OnlineWeights& operator=(const OnlineWeights&) = delete;

  void set(const double* w);            // starts at w; a sum of weights ends
  double get(double* out);              // plain weights; returns |w|^2
  void begin_sum(const double* total);  // from now on sum the weights after each step, on top of total (null: 0)
  void get_sum(double* out);
  void shrink(double factor);     // what has a penalty, for the next step; the sum counts it
  void keep_range();              // folds the scale into the rows before it gets too small
  void show_transitions();        // makes anew what the view says about tr
  void add_transitions_to_sum();  // and boundary weights

  const OnlineShape shape;
  OnlineVector current, sum;
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
