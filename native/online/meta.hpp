// Stochastic meta-descent (Vishwanathan et al. 2006): online steps with a learning rate per weight, which is itself
// learned by gradient descent.
//
// A step on B of the N sequences, all of it at the weights before the step, share = l2 B / N:
//   touched    g  = sum_i c_i (E Phi(x_i, .) - Phi(x_i, y_i)) + share w
//              Hv = sum_i c_i Cov[Phi(x_i, .)] v + share v           derivatives of the marginals: tangent.hpp
//              gain <- gain max(1/2, 1 - meta_rate g v);  eta = eta0 gain
//              w <- w - eta g;  v <- memory v - eta (g + memory Hv)
//   other      w <- (1 - eta share) w;  v <- memory v                              element by element
// with a share of 0 for unpenalised weights.
// v is the derivative of w with respect to log eta, an exponential average over the past; g v is the derivative of the
// loss, which gives the rule for the gain. The bound 1/2 prevents a single step from making a gain 0 or negative.
//
// H v is exact and costs about one more lattice: derivatives are propagated through the forward-backward of the same
// sequences, on the lattices of the gradient. A finite difference would need a second point and lose digits.
//
// An untouched weight follows a linear rule: after n steps w is multiplied by (1 - eta share)^n and v by memory^n; the
// gain does not change. Both are applied when the weight is touched again or read. `share` must be the same for those n
// steps, so a last step of another size first brings all weights up to date. A step is three parallel loops: over parts
// of the attributes, to bring weights up to date; over its sequences; over the parts again, where each weight is
// changed by one task in the order of the sequences. Results do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "base/pool.hpp"
#include "lattice/token_index.hpp"
#include "online/meta_jobs.hpp"
#include "online/touches.hpp"
#include "online/weights.hpp"

namespace crfit {

class OnlineMeta {
 public:
  OnlineMeta(const DataView& data, const LayoutView& layout, double meta_rate, double memory, int n_threads);
  OnlineMeta(const OnlineMeta&) = delete;
  OnlineMeta& operator=(const OnlineMeta&) = delete;

  void set(const double* w);  // starts at w with gains of 1 and v = 0; resets the sum of weights
  double get(double* out);    // plain weights; returns |w|^2
  // Steps over the sequences in order, `batch` at a time. Returns the sum of c_i loss_i, each at the weights of its
  // step. Ends early if a loss is not finite. All weights are up to date afterwards.
  double visit(const int64_t* sequences, int64_t n, int64_t batch, double eta0, double l2);
  double loss(const int64_t* sequences, int64_t n);  // sum of c_i loss_i at the current weights

  void begin_sum(const double* total);  // starts summing the weights after each step, on top of total (null: 0)
  void get_sum(double* out);
  bool summing() const { return summing_; }

  void set_state(const double* gains, const double* v);
  void get_state(double* gains, double* v);

  const PhaseSeconds& seconds() const { return seconds_; }  // wall time of all calls so far

 private:
  struct Units {  // rows of attributes, single weights, edge attributes
    std::vector<int32_t> dense, sparse, edges;
  };
  void make_room(const int64_t* sequences, int64_t n, int64_t batch);
  void place_slots(const int64_t* sequences, int64_t n);
  MetaWeights attributes();
  void make_ready(int part, int n_parts);
  void make_all_ready(Team& team);
  void show_direction();
  void solve(int64_t slot, int worker);
  void update(int part);
  void update_dense();

  DataView data_;
  int n_threads_;
  bool has_edges_;
  OnlineWeights weights_, direction_;  // w and v
  WeightRows gains_, sum_;
  bool summing_ = false;
  double meta_rate_, memory_, eta0_ = 0.0, share_ = 0.0;
  Units ready_;        // MetaWeights
  int32_t step_ = 0;   // since all weights were up to date
  TokenTable tokens_;  // weights="observed"
  OnlineTouches touches_;
  Buffer<double> ER_, ERT_;
  Tangent tangent_;
  std::vector<WorkerScratch> scratch_;
  std::vector<OnlineSlot> slots_;     // of the current step
  std::vector<StepTouches> touched_;  // [parts]
  std::vector<Buffer<double>> sums_;  // [parts]
  Buffer<double> residual_, rows_, pair_residual_, pairs_, expected_, ngrams_;
  Buffer<double> boundary_;  // [4][YP] residuals and derivatives of the first and of the last positions
  PhaseSeconds seconds_;
};

}  // namespace crfit
