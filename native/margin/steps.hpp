// Mistake-driven steps: perceptron, passive-aggressive, AROW. Nothing changes if the best path is correct.
//
// A step on sequences i with best paths y^_i != y_i, all at the same weights, with weight c_i and d_i wrong labels:
//   delta = sum_i c_i (Phi(x_i, y_i) - Phi(x_i, y^_i));   miss = sum_i c_i (score(y^_i) - score(y_i)) >= 0
//   d = sum_i d_i;   c = sum_i c_i d_i / d, the mean weight of a wrong label
//   perceptron   w += delta                                             loss sum_i c_i d_i / T_i
//   PA           w += tau delta,  tau = loss / |delta|^2                loss miss + c sqrt(d), or + c
//   PA-I         tau = min(C, loss / |delta|^2)                         C bounds a single step: labels may be wrong
//   PA-II        tau = loss / (|delta|^2 + 1 / (2 C))
//   AROW         w_k += a s_k delta_k,  a = loss / (gamma + sum_k s_k delta_k^2);  1/s_k += delta_k^2 / gamma
//                                                                       loss miss + c d; s_k: variance of weight k
// (Crammer et al. 2006, 2009; identical to CRFsuite for steps of one sequence and c = 1). PA's tau is the smallest
// change of w that makes the loss of the step 0.
//
// Only weights where y^ and y differ are in delta. It is summed per weight first (SparseSum): the step needs its norm,
// and features that occur on both paths cancel and must not count in the norm.
//
// Sum of the weights over the steps j = 1 .. K, for averaging: with d_j the change in step j,
//   sum_j w_j = K w_K - sum_j (j - 1) d_j
// (summation by parts), so a step updates the second term only where it changes weights, and a correct path costs
// nothing. There is no penalty and hence no scale, unlike in online/weights.hpp.
//
// The sequences of a step are decoded in parallel; one thread then changes the weights, in the order of the sequences.
// Results do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "lattice/prepared.hpp"
#include "lattice/token_index.hpp"
#include "lattice/weight_rows.hpp"
#include "margin/kernels.hpp"
#include "margin/sparse_sum.hpp"

namespace crfit {

struct MarginRule {
  enum Kind { kPerceptron, kPa, kPa1, kPa2, kArow };
  Kind kind = kPerceptron;
  double c = 1.0;               // bound of PA-I and PA-II; gamma of AROW
  bool error_sensitive = true;  // PA: the required margin is sqrt(d), else 1
  double variance = 1.0;        // AROW: initial value for every weight
};

class Margin {
 public:
  Margin(const DataView& data, const LayoutView& layout, int n_threads, const MarginRule& rule);
  Margin(const Margin&) = delete;
  Margin& operator=(const Margin&) = delete;

  struct Outcome {
    double loss = 0.0;
    int64_t mistakes = 0;  // sequences whose best path is wrong
  };

  void set(const double* w);  // starts at w; resets the sum of weights and the variances
  double get(double* out);    // plain weights; returns |w|^2
  Outcome visit(const int64_t* sequences, int64_t n, int64_t batch);

  void begin_sum(const double* total);  // starts summing the weights after each step, on top of total (null: 0)
  void get_sum(double* out);
  bool summing() const { return summing_; }
  void get_variances(double* out);
  void set_variances(const double* s);

  const MarginRule& rule() const { return rule_; }
  const PhaseSeconds& seconds() const { return seconds_; }  // wall time of all calls so far

 private:
  int64_t place_slots(const int64_t* sequences, int64_t n);
  double learn(int64_t size);
  void add_slot(const MarginSlot& slot, double c);
  void add_attribute(int64_t a, int32_t label, double x);
  void add_ngram(const int32_t* label, int m, double x);
  void add_edge(int64_t b, int64_t code, double x);
  void change(double factor);
  double& at(WeightRows& vector, int64_t place);
  void show_ngram(int m, int64_t place);
  void show_change(int64_t place);

  DataView data_;
  MarginRule rule_;
  RowLayout shape_;
  WeightRows now_, sum_, variances_;
  double n_summed_ = 0.0;  // steps since the sum was last completed
  bool summing_ = false;
  bool has_edges_;
  std::vector<uint8_t> has_ngram_;    // [ngram_size] whether there is a weight
  Buffer<double> ngrams_;             // [ngram_size] with order 2 and more: scores including shorter n-grams
  std::vector<HistoryTable> tables_;  // views of it
  TokenTable tokens_;                 // weights="observed"
  Prepared view_;
  std::vector<WorkerScratch> scratch_;
  std::vector<MarginSlot> slots_;
  std::vector<int32_t> best_;  // labels of all slots
  SparseSum delta_;
  PhaseSeconds seconds_;
};

}  // namespace crfit
