// Steps of on-line trainers: a few sequences at a time, and only the weights that they touch.
//
// Stochastic gradient descent on F(w) = sum_i c_i loss_i(w) + (l2/2)|w|^2, a step on B of the N sequences:
//   z = 1 - eta l2 B / N;  w <- z w + eta sum_i c_i (Phi(x_i, y_i) - E Phi(x_i, .))       expectations at the old w
// The weights of attributes are kept as w = a v (a = 1 at first), so that the penalty of all of them is one product:
//   a <- z a;  v <- v + (eta / a) sum_i c_i (Phi - E Phi)                                  on the touched weights
// Transitions and boundary weights are few and dense: they are kept as they are.
//
// Sum of the weights over the steps j = 1 .. K, for averaging: with d_j what step j adds to v and S_j = a_1 + .. + a_j,
//   sum_j w_j = S_K v_K - sum_j S_{j-1} d_j
// so that a second vector, lag = sum_j S_{j-1} d_j, is touched where v is touched.
//
// A step is two parallel loops: over its sequences, all at the same w, then over parts of the attributes, each weight
// being changed by one task in the order of the sequences. Nothing depends on the number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pool.hpp"
#include "prepared.hpp"

namespace crfit {

// Learning rate after k sequences. N is the number of sequences of the dataset.
struct Rate {
  enum Schedule { kConstant, kInverse, kExponential, kBottou };
  Schedule schedule = kConstant;
  double eta0 = 0.1;
  double alpha = 0.85;  // kExponential
  double at(int64_t k, int64_t N, double l2) const;
};

class Online {
 public:
  Online(const DataView& data, const LayoutView& layout, int n_threads);
  Online(const Online&) = delete;
  Online& operator=(const Online&) = delete;

  void set(const double* w);  // starts at w; a sum of weights ends
  double get(double* out);    // plain weights; returns |w|^2
  // Steps over the sequences in their order, `batch` at a time; k is the number of sequences seen before. Returns the
  // sum of c_i loss_i, each at the weights of its step. Ends early when a loss is not finite.
  double visit(const int64_t* sequences, int64_t n, int64_t batch, const Rate& rate, double l2, int64_t k);
  double loss(const int64_t* sequences, int64_t n);  // sum of c_i loss_i at the weights as they are

  void begin_sum(const double* total);  // from now on sum the weights after each step, on top of total (null: 0)
  void get_sum(double* out);
  bool summing() const { return summing_; }

  const PhaseSeconds& seconds() const { return seconds_; }  // wall time of all calls so far

 private:
  template <class Copy>
  void each_run(const Copy& copy);
  template <class Copy>
  void each_ngram(Buffer<double>& tr, const Copy& copy);
  template <class Copy>
  void each_dense(Buffer<double>& tr, Buffer<double>& start, Buffer<double>& end, const Copy& copy);
  void make_room(const int64_t* sequences, int64_t n, int64_t batch, int n_parts);
  int64_t place_slots(const int64_t* sequences, int64_t n, int n_parts);
  void finish_dense(int64_t n_slots, double decay, double eta);
  void fold();
  void restart_lag();

  DataView data_;
  LayoutView layout_;
  int n_threads_;
  int YP_;
  bool has_edges_;
  std::vector<int32_t> hot_row_;  // weights="observed": row of attributes with several labels, or -1
  int64_t hot_offset_ = 0;        // v: the rows of all attributes [.][YP], or single weights and hot rows [.][YP];
  int64_t edge_offset_ = 0;       // then the weights of edge attributes
  Buffer<double> v_, lag_;
  double scale_ = 1.0, scale_sum_ = 0.0;
  bool summing_ = false;
  int64_t ngram_size_;
  Buffer<double> tr_, mask_;                // [ngram_size] each length's own weights; 1 where there is one
  Buffer<double> E_, ET_;                   // [Y][YP] with order 1
  std::unique_ptr<NgramTables> histories_;  // with order 2 and more
  Buffer<double> start_, end_;
  Buffer<double> tr_total_, start_total_, end_total_;
  Prepared view_;
  std::vector<WorkerScratch> scratch_;
  std::vector<OnlineSlot> slots_;
  Buffer<double> residual_, pair_residual_, pairs_;
  std::vector<OnlineSlot::Touch> touched_;
  std::vector<int32_t> n_touched_;
  std::vector<int64_t> longest_first_;  // slots in the order in which they are handed out
  PhaseSeconds seconds_;
};

}  // namespace crfit
