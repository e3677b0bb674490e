// Interface of the objective over a dataset: loss, gradient, expectations, the loss along a line, Hessian-vector
// products. `Batch` implements it for sequences, `Binary` for two classes with one weight per attribute.
#pragma once

#include <cstdint>
#include <memory>

#include "base/phases.hpp"
#include "base/views.hpp"

namespace crfit {

class Core {
 public:
  static constexpr int64_t kRoundBytes = int64_t{2} << 30;
  // Sharing costs one copy and one addition of a row per position; it pays off only if it saves this many occurrences.
  static constexpr double kShareFrom = 5.0;

  Core() = default;
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  virtual ~Core() = default;

  virtual double loss(const double* w) = 0;
  virtual double loss_on(const double* w, const int64_t* sequences, int64_t n) = 0;  // only the given sequences
  // Loss plus (l2/2)|w|^2 and its gradient.
  virtual double loss_and_grad(const double* w, double l2, double* g) = 0;
  // The same for the given sequences only; `l2` is not scaled.
  virtual double loss_and_grad_on(const double* w, double l2, const int64_t* sequences, int64_t n, double* g) = 0;
  virtual void expectations(const double* w, double* out) = 0;  // sum_i c_i E_p[Phi]

  // The line w + a d: scores are linear in w, so a trial needs only positions and labels, not attributes.
  virtual void set_line(const double* w, const double* d) = 0;
  virtual void along(double a, double& loss, double& slope) = 0;

  // What to cache at the points of loss_and_grad from now on (curvature.hpp): tables or pairs of the longest sequences,
  // up to a number of sequences and bytes. With `at_gradients` the gradient fills the cache, otherwise the first
  // product at a point. With `propagate` there is no cache, and products work in the log domain.
  // `floats` keeps tables of groups in single precision.
  virtual void keep_curvature(bool pairs, bool floats, int64_t max_sequences, int64_t max_bytes, bool at_gradients,
                              bool propagate) = 0;
  virtual int64_t kept_bytes() const = 0;
  virtual int64_t table_bytes() const = 0;  // of the tables of all sequences, if all were cached
  // out = H v + l2 v and the diagonal scaling of the data part at w, the point of the last loss_and_grad.
  virtual void hessian_product(const double* w, const double* v, double l2, double* out) = 0;
  virtual void hessian_diagonal(const double* w, double* out) = 0;
  // Products from now on are only for v that are 0 outside of some weights, and only these entries of H v + l2 v are
  // used; w is 0 outside of them too. weights: [n_weights] which; null: all, as after a gradient.
  virtual void restrict_products(const uint8_t* weights) { static_cast<void>(weights); }

  virtual int64_t n_distinct() const = 0;                   // number of positions whose scores are computed
  const PhaseSeconds& seconds() const { return seconds_; }  // wall time of all calls so far

 protected:
  PhaseSeconds seconds_;
};

// Options of an objective.
struct CoreOptions {
  int n_threads = 1;
  bool log_domain = false;                  // use log-domain arithmetic everywhere, for comparison
  int64_t round_bytes = Core::kRoundBytes;  // of residual rows at a time; larger datasets take several rounds
  const double* offsets = nullptr;          // [n_positions][Y] constants added to the node scores, null: none
  double share_from = Core::kShareFrom;     // share scores of positions if this saves so many occurrences per position
};

std::unique_ptr<Core> make_core(const DataView& data, const LayoutView& layout, const CoreOptions& options);

// Whether every sequence has one position.
bool one_position(const DataView& data);

// Sum in order with Neumaier's compensation: differences of losses near the optimum are at rounding level.
double sum_in_order(const double* parts, int64_t n);

}  // namespace crfit
