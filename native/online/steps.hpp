// Steps of online trainers: a few sequences at a time, and only the weights that they touch.
//
// A corpus has millions of weights and a sequence touches a few thousand: a step over all weights would take a hundred
// times as long as the lattice. Hence the scale (weights.hpp), penalties that are distributed over touches, and sums
// for averages that are updated only where weights change.
//
// A step of rate eta on B of the N sequences of F(w) = sum_i c_i loss_i(w) + (l2/2)|w|^2, expectations at the old w:
//   u = sum_i c_i (E Phi(x_i, .) - Phi(x_i, y_i))                                     summed per weight
//   plain       w <- z w - eta u,      z = 1 - eta l2 B / N                            stochastic gradient descent
//   transform   w <- z w - eta T(u)                                                    natural gradient descent
//   adaptive    u <- u + l2 w n / m;  h <- h + u^2;  w <- w - eta u / (sqrt(h) + e)    AdaGrad
//   periodic    w <- w - eta r (u_i + (l2 / m) w)  for each i in turn                  periods.hpp
// where n of the step's sequences and m of all sequences touch the weight; unpenalised weights have l2 = 0. With
// w = scale rows the product with z multiplies one number. AdaGrad and the periodic rule have a rate per weight, so
// there is no common factor: they spread the penalty over the m sequences that touch a weight, which sums to l2 w over
// an epoch.
//
// T acts on u summed over the whole step, not on each occurrence: T(a) + T(b) != T(a + b). touches.hpp groups the
// occurrences by weight.
//
// A step is two parallel loops: over its sequences, all at the same w, then over parts of the attributes, where each
// weight is changed by one task in the order of the sequences. Unlike with racing updates (Hogwild), the result does
// not depend on the number of threads.
//
// Shapes: the residuals of all sequences of a step are contiguous, [positions of the step][YP], with the sign of the
// update: c ([y = gold] - p) = -u of the position.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "base/pool.hpp"
#include "lattice/token_index.hpp"
#include "online/jobs.hpp"
#include "online/periods.hpp"
#include "online/touches.hpp"
#include "online/weights.hpp"

namespace crfit {

// Learning rate after k sequences. N is the number of sequences of the dataset.
struct Rate {
  enum Schedule { kConstant, kInverse, kExponential, kBottou, kPower };
  Schedule schedule = kConstant;
  double eta0 = 0.1;
  double alpha = 0.85;  // kExponential
  double at(int64_t k, int64_t N, double l2) const;
};

class Online {
 public:
  // `table`: interpolate T in a table. `batch`: the size of most steps, which decides whether label pairs are listed.
  // The second constructor is for the periodic rule; `groups` as in OnlinePeriods.
  Online(const DataView& data, const LayoutView& layout, const OnlineRule& rule, bool table, int64_t batch,
         int n_threads);
  Online(const DataView& data, const LayoutView& layout, const PeriodRule& periods, std::vector<int32_t> groups,
         int64_t n_groups, int n_threads);
  Online(const Online&) = delete;
  Online& operator=(const Online&) = delete;

  void set(const double* w);  // starts at w; resets the sum of weights, squares and periods
  double get(double* out);    // plain weights; returns |w|^2
  // Steps over the sequences in order, `batch` at a time; k is the number of sequences seen before. Returns the sum of
  // c_i loss_i, each at the weights of its step. Ends early if a loss is not finite.
  double visit(const int64_t* sequences, int64_t n, int64_t batch, const Rate& rate, double l2, int64_t k);
  double loss(const int64_t* sequences, int64_t n);  // sum of c_i loss_i at the current weights

  // Starts summing the weights after each step, on top of total (null: 0).
  void begin_sum(const double* total) { weights_.begin_sum(total); }
  void get_sum(double* out);
  bool summing() const { return weights_.summing; }

  void set_squares(const double* h) { weights_.shape.load(h, squares_); }
  void get_squares(double* out) { weights_.shape.save(squares_, 1.0, out); }
  bool adaptive() const { return rule_.kind == OnlineRule::kAdaptive; }

  OnlinePeriods* periods() { return periods_.get(); }  // null unless kPeriodic; up to date after get()

  const PhaseSeconds& seconds() const { return seconds_; }  // wall time of all calls so far

 private:
  struct Step {
    int64_t size = 0, n_positions = 0, next_sequence = -1;
    int64_t n_tables = 0;  // of n-gram residuals: one per sequence or group
    int n_parts = 0;
    bool by_token = false;
    double eta = 0.0, gain = 0.0, decay = 1.0, l2 = 0.0, share = 0.0;  // share = l2 B / N
    double sum_factor = 0.0;
  };
  void make_room(const int64_t* sequences, int64_t n, int64_t batch, int n_parts);
  void prefetch_ids(const int64_t* sequences, int64_t n) const;
  int64_t place_slots(const int64_t* sequences, int64_t n, int n_parts, bool groups);
  void sort_slots(int64_t n);
  OnlineRows rows(const Step& step);
  void update(const Step& step, int part);
  void update_by_rule(const Step& step, int part);
  OnlineRuleJob rule_job(const Step& step);
  void update_periodic(const Step& step);
  void update_dense(const Step& step);
  void sum_pairs(const Step& step);
  void sum_boundary(const Step& step);
  void update_periodic_dense(const Step& step);
  bool in_groups(int64_t batch) const;
  int64_t n_tables(int64_t size, int64_t batch) const;
  OnlineSolveJob solve_job(const Step& step, int64_t next_sequence, int worker, PhaseSeconds* busy);
  void solve_group(const Step& step, int64_t first, int worker, PhaseSeconds* busy);
  void solve(const Step& step, int64_t slot, int64_t next_sequence, int worker, PhaseSeconds* busy);

  DataView data_;
  int n_threads_;
  bool has_edges_;
  OnlineWeights weights_;
  OnlineRule rule_;
  TokenTable tokens_;                       // weights="observed"
  std::unique_ptr<OnlineTouches> touches_;  // for rules
  WeightRows squares_;                      // kAdaptive
  std::unique_ptr<OnlinePeriods> periods_;  // kPeriodic
  Buffer<double> table_;
  std::vector<WorkerScratch> scratch_;
  std::vector<OnlineSlot> slots_;
  std::vector<Buffer<double>> sums_;  // of parts
  Buffer<double> residual_, transformed_, pair_residual_, pairs_;
  Buffer<double> first_, last_;  // [YP] residuals of the first and of the last positions of a step
  Buffer<double> dense_steps_;
  std::vector<int64_t> row_blocks_;  // blocks of eight in a row
  std::vector<OnlineSlot::Place> touched_;
  std::vector<int32_t> n_touched_;
  std::vector<int64_t> longest_first_;  // slots in the order in which they are handed out
  PhaseSeconds seconds_;
};

}  // namespace crfit
