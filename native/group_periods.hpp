// Periodic step sizes that the weights of a group share.
//
// All weights of a group shrink alike, so that they are kept as w = Z rows, Z the product of 1 - eta r l2 B/N over the
// steps of the group: a step is one of stochastic gradient descent in which each occurrence counts Z in the scores and
// eta r / (1 - eta r l2 B/N) / Z in the update. The rows of edge attributes are up to date when their unit was last
// touched.
//
// gamma is estimated from the weights of a group that both halves of a period touch. Which these are is known before
// the period begins, if all its sequences are; then their weights at the begin and in the middle are kept.
#pragma once

#include <cstdint>
#include <vector>

#include "online_periods.hpp"

namespace crfit {

class GroupPeriods final : public OnlinePeriods {
 public:
  GroupPeriods(const DataView& data, OnlineWeights& weights, const PeriodRule& rule, std::vector<int32_t> groups,
               int64_t n_groups);

  void forget() override;
  void look_ahead(const int64_t* sequences, int64_t n, int64_t batch) override;
  void begin_step(double eta, double share, const OnlineSlot* slots, int64_t n_slots, int n_parts) override;
  void prepare(int part) override;
  void update(int part, int64_t next_sequence) override;
  void end_step() override;
  void end_part(int) override {}
  void end_period() override;
  void value(const OnlineSlot& slot, bool by_token) const override;
  bool valued() const override { return true; }
  void catch_up() override;

  int64_t n_factors() const override { return n_groups_; }
  void get_factors(double* out) override;
  void restore(const double* factors, const double* steps, int64_t n_steps, int64_t n,
               const TouchedWeights& in) override;

 private:
  struct Entry {  // a unit of the present period
    int32_t unit = 0;
    int32_t halves = 0;  // 1: touched in the first, 2: in the second
    int64_t at = 0;      // its weights in start_ and middle_
  };
  int64_t n_touched_units() const override;
  int64_t get_touched_units(int64_t n, const TouchedWeights& out) const override;
  template <class Visit>
  void each_touch(const int64_t* sequences, int64_t n, const Visit& visit) const;
  void add_entry(int64_t unit, int32_t halves);
  double factor_now(int64_t unit) const;  // of its rows
  void keep(const Entry& entry, double factor, std::vector<double>& out) const;
  void restart_products();
  void show_factors();

  std::vector<int32_t> groups_;
  int64_t n_groups_;
  std::vector<int32_t> hot_groups_, weight_groups_;    // weights="observed": of hot rows and single weights
  std::vector<double> factors_, Z_, Z_begin_, gains_;  // [n_groups]; gains are for rows
  std::vector<double> edge_Z_;                         // [n_edge_attributes] Z when it was last touched
  std::vector<uint64_t> seen_;                         // bits of units, 0 between uses
  std::vector<int32_t> entry_of_;                      // [units] -1: none
  std::vector<Entry> entries_;
  std::vector<double> start_, middle_;  // weights of the entries at the begin of the halves
};

}  // namespace crfit
