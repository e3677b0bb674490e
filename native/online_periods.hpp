// Periodic step sizes for on-line steps: each weight, or group of weights, has a factor r of the rate.
//
//   w <- w - eta r (u + (l2 B/N) w),     u = sum_i c_i (E Phi - Phi) over the B sequences of a step
//
// After every 2b steps r <- v(gamma) r by the changes D1, D2 of the weight over the two halves of the period:
//   gamma = D2/D1, u = sgn(gamma) min(|gamma|, kappa), v = (alpha + beta)/2 + (alpha - beta) u / (2 kappa)
// which needs the weights w0, w_b, w_2b at the begin of the halves and at the end. crfit.online.Periodic has the rules
// for weights that a period touches in one half or in none, and the other estimates of gamma.
//
// A unit is what a step touches as a whole: the weights of an attribute or of an edge attribute. A step leaves its own
// shrinking to what makes a unit up to date later:
//   (1 - y) w + eta r d = (1 - y) (w + eta r / (1 - y) d),     y = eta r l2 B/N
// so that each occurrence adds to the row and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "online_job.hpp"
#include "online_weights.hpp"
#include "period_tables.hpp"

namespace crfit {

class OnlinePeriods {
 public:
  // groups: [attributes | edge attributes | transitions | boundary], empty unless kShared.
  static std::unique_ptr<OnlinePeriods> make(const DataView& data, OnlineWeights& weights, const PeriodRule& rule,
                                             std::vector<int32_t> groups, int64_t n_groups);
  virtual ~OnlinePeriods() = default;
  OnlinePeriods(const OnlinePeriods&) = delete;
  OnlinePeriods& operator=(const OnlinePeriods&) = delete;

  bool shared() const { return rule_.scope == PeriodRule::kShared; }
  bool window() const { return rule_.scope == PeriodRule::kWindow; }
  int64_t half() const { return rule_.half; }
  bool begins() const { return steps_.empty(); }  // whether the next step is the first of a period

  virtual void forget() = 0;  // all factors 1, at the begin of a period
  // The sequences that will be visited, `batch` in a step: at the begin of a visit and of each period.
  virtual void look_ahead(const int64_t* sequences, int64_t n, int64_t batch) = 0;
  // A step: begin, prepare each part of the units (or all: no parts), solve, update each part, the tables, end. Then
  // end_part for each part and end_period if the period is over.
  virtual void begin_step(double eta, double share, const OnlineSlot* slots, int64_t n_slots, int n_parts);
  virtual void prepare(int part) = 0;
  virtual void update(int part, int64_t next_sequence) = 0;
  void update_table(PeriodTables::Name name, const double* residual);
  virtual void end_step() = 0;
  bool over() const { return static_cast<int64_t>(steps_.size()) == 2 * rule_.half; }
  virtual void end_part(int part) = 0;
  virtual void end_period() = 0;

  // What the occurrences of a slot count in its scores and in its update: sets OnlineSlot::values.
  virtual void value(const OnlineSlot& slot, bool by_token) const = 0;
  virtual bool valued() const = 0;  // whether there are such numbers

  virtual void catch_up() = 0;  // all weights are as they should be

  // State, after catch_up(): factors of weights or groups; rates times share of the present period's steps; its
  // weights.
  virtual int64_t n_factors() const = 0;
  virtual void get_factors(double* out) = 0;
  const std::vector<double>& steps() const { return steps_; }
  int64_t n_touched() const { return begins() ? 0 : n_touched_units() + tables_.n_weights(); }
  void get_touched(const TouchedWeights& out) const;
  // After the weights were set. `in` is not written to.
  virtual void restore(const double* factors, const double* steps, int64_t n_steps, int64_t n,
                       const TouchedWeights& in) = 0;

 protected:
  OnlinePeriods(const DataView& data, OnlineWeights& weights, const PeriodRule& rule);
  virtual int64_t n_touched_units() const = 0;                                        // their weights
  virtual int64_t get_touched_units(int64_t n, const TouchedWeights& out) const = 0;  // returns how many

  // Calls visit(plain, stored, lane) for the weights of a unit: places in the plain vector, in the rows, in a row.
  template <class Visit>
  void each_weight(int64_t unit, const Visit& visit) const;
  int64_t room(int64_t unit) const;                            // numbers in a row of the unit's weights, whole vectors
  int64_t unit_of(int64_t plain) const;                        // -1 for transitions and boundary weights
  double shrinkage(double r, int64_t from, int64_t to) const;  // over steps of the present period

  DataView data_;
  OnlineWeights& weights_;
  PeriodRule rule_;
  PeriodTables tables_;
  int64_t n_units_;
  std::vector<double> steps_;  // eta l2 B/N of the steps of the present period
  double eta_ = 0.0, share_ = 0.0;
  const OnlineSlot* slots_ = nullptr;
  int64_t n_slots_ = 0;
  int n_parts_ = 0;
};

template <class Visit>
void OnlinePeriods::each_weight(int64_t unit, const Visit& visit) const {
  const OnlineShape& shape = weights_.shape;
  const LayoutView& layout = shape.layout;
  const int64_t Y = layout.n_labels;
  if (unit >= layout.n_attributes) {
    const int64_t b = unit - layout.n_attributes, first = layout.pair_ptr == nullptr ? b * Y * Y : layout.pair_ptr[b];
    const int64_t n = layout.pair_ptr == nullptr ? Y * Y : layout.pair_ptr[b + 1] - first;
    for (int64_t i = 0; i < n; ++i) visit(layout.edge_offset + first + i, shape.edge_offset + first + i, i);
  } else if (layout.state_ptr == nullptr) {
    for (int64_t j = 0; j < Y; ++j) visit(unit * Y + j, unit * shape.YP + j, j);
  } else {
    const int64_t first = layout.state_ptr[unit], row = shape.hot_offset + shape.hot_row[unit] * int64_t{shape.YP};
    for (int64_t i = first; i < layout.state_ptr[unit + 1]; ++i) {
      const int64_t label = layout.state_labels[i];
      shape.hot_row[unit] >= 0 ? visit(i, row + label, label) : visit(i, i, i - first);
    }
  }
}

}  // namespace crfit
