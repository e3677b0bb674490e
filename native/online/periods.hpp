// Periodic step sizes for online steps (PSA, Hsu et al. 2009): each weight, or group of weights, has a factor r of the
// rate, which is adapted every 2b steps.
//
// The sequences of a step change the weights that they touch one after another; u_i = c_i (E Phi - Phi) is computed at
// the weights before the step:
//   w <- w - eta r (u_i + (l2/m) w),     m sequences of the dataset touch the weight; l2 = 0 for unpenalised weights
// After every 2b steps r <- v(gamma) r by the changes D1, D2 of the weight over the two halves of the period:
//   gamma = D2/D1, u = sgn(gamma) min(|gamma|, kappa), v = (alpha + beta)/2 + (alpha - beta) u / (2 kappa)
// D1 and D2 come from the weights at the start of each half and at the end. Near the optimum the weights follow a
// linear map with Jacobian I - eta r H: gamma near 1 means that the rate is small for the curvature, a negative gamma
// that it is too large. v is between beta and alpha, beta < alpha < 1, so rates only decrease, and faster if steps
// alternate.
//
// Special cases, per weight:
//   touched in no half, or D1 = 0 up to rounding      gamma = kappa, v = alpha
//   touched only in the first half                    D2 = 0, gamma = 0, v = (alpha + beta)/2
// Other estimates (Yang, Suk, Lee 2012): gamma1 = D1.D2 / D1.D1, gamma2 = |D2| / |D1|, gamma3 = D2.D2 / D1.D2, of
// vectors:
//   kShared   all weights of a group, which then have one r
//   kWindow   one weight's changes in the b steps of each half, paired step by step
// For a single number all three are the ratio (gamma2: without its sign).
//
// Sparsity. An untouched weight does not move, and v = alpha for every period it misses: if r is stored divided by
// alpha^p (PeriodUnit::value, state.fall), nothing has to be done until it is touched again. A unit that only the first
// half touches needs a constant factor, applied when it is next touched (PeriodUnit::mark). Only a unit that both
// halves touch needs stored weights and an r for each weight. These units are known in advance, because the order of
// the sequences is given: at the start of a period the units of its second half are marked in a bit set, which the
// steps of the first half check (look_ahead). Storing the weights of every touched unit would mostly be wasted work.
//
// A unit's weights share one factor until a period touches it in both halves, which never happens to rare attributes:
// memory for own factors is allocated when needed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "online/period_jobs.hpp"
#include "online/period_tables.hpp"
#include "online/touches.hpp"
#include "online/weights.hpp"

namespace crfit {

class OnlinePeriods {
 public:
  // groups: [attributes | edge attributes | transitions | boundary], empty unless kShared.
  OnlinePeriods(OnlineWeights& weights, OnlineTouches& touches, int64_t n_sequences, const PeriodRule& rule,
                std::vector<int32_t> groups, int64_t n_groups);
  OnlinePeriods(const OnlinePeriods&) = delete;
  OnlinePeriods& operator=(const OnlinePeriods&) = delete;

  bool window() const { return rule_.scope == PeriodRule::kWindow; }
  int64_t half() const { return rule_.half; }
  bool begins() const { return state_.step == 0; }  // whether the next step is the first of a period

  void forget();  // resets all factors to 1, at the start of a period
  // Announces the sequences to be visited, `batch` per step: call at the start of a visit and of each period.
  void look_ahead(const int64_t* sequences, int64_t n, int64_t batch);
  // A step: begin, update for its sequences in order, the tables for all of them, end.
  void begin_step(double eta, double l2);
  // `job` without touches and sums; the next sequence or -1.
  void update(int64_t sequence, int64_t next_sequence, OnlineRuleJob job);
  void update_table(PeriodTables::Name name, const double* residual);  // of a sequence
  void end_step();

  void catch_up();  // makes all factors explicit: `fall` and marks are applied

  // State, after catch_up(): factors of weights or groups, number of steps in the current period, its weights.
  int64_t n_factors() const { return shared() ? n_groups_ : weights_.shape.layout.n_weights; }
  void get_factors(double* out);
  int64_t steps_made() const { return state_.step; }
  int64_t n_touched() const;
  void get_touched(const TouchedWeights& out) const;
  // Call after setting the weights. Does not write to `in`.
  void restore(const double* factors, int64_t steps_made, int64_t n, const TouchedWeights& in);

 private:
  bool shared() const { return rule_.scope == PeriodRule::kShared; }
  std::span<PeriodEntry> entries() { return {entries_.data() + 1, entries_.data() + state_.n_entries}; }
  std::span<const PeriodEntry> entries() const { return {entries_.data() + 1, entries_.data() + state_.n_entries}; }
  int64_t n_units() const { return static_cast<int64_t>(units_.size()); }
  int64_t unit_of(int64_t plain) const;  // -1 for transitions and boundary weights
  // Calls visit(plain, lane) for the weights of a unit: indices in the plain vector and in its row.
  template <class Visit>
  void each_weight(int64_t unit, const Visit& visit) const;
  template <class Visit>
  void each_touch(const int64_t* sequences, int64_t n, const Visit& visit) const;  // visit(unit)

  void begin_period();
  void end_period();
  void add_entry(int64_t unit, int32_t halves);
  void begin_entries(int32_t first);
  void end_search();
  void restore_factors(int64_t unit, const double* factors);
  void show_group_factors();
  void make_room(const StepTouches& touches);

  OnlineWeights& weights_;
  OnlineTouches& touches_;
  PeriodRule rule_;
  PeriodTables tables_;
  int64_t n_sequences_, n_groups_;
  int32_t table_groups_[2] = {0, 0};  // kShared: of transitions and of boundary weights
  std::vector<int32_t> attribute_of_hot_;
  Vector<PeriodUnit> units_;
  std::vector<double> group_factors_;  // kShared
  std::vector<uint64_t> later_;        // PeriodState::later, or all 0
  std::vector<int32_t> entry_of_;      // [units] entry created by look_ahead; 0: none
  std::vector<PeriodEntry> entries_ = std::vector<PeriodEntry>(1);
  std::vector<PeriodChange> changes_;
  int64_t n_ones_ = 0;  // number of ones at the start of own_
  Vector<double> own_, kept_, sums_, work_;
  std::vector<double> products_;  // kShared: [groups][4]
  PeriodState state_;
  double eta_ = 0.0, l2_ = 0.0;
  int64_t next_sequence_ = -1;
  StepTouches next_;  // its touches
};

}  // namespace crfit
