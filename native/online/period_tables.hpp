// Periodic step sizes of transitions and boundary weights. Every sequence touches all of them, so nothing here is lazy:
// r, the weights at the start of each half and, with kWindow, the changes of all 2b steps are plain arrays in the order
// of the padded tables; `mask` is 0 for entries without a weight.
#pragma once

#include <cstdint>
#include <vector>

#include "online/period_jobs.hpp"
#include "online/weights.hpp"

namespace crfit {

// State of the weights touched in the current period, [n]: with kWindow their changes in its steps, [2b][n], otherwise
// the weights at the start of each half.
struct TouchedWeights {
  int64_t *weights = nullptr, *halves = nullptr;
  double *start = nullptr, *middle = nullptr, *steps = nullptr;
};

class PeriodTables {
 public:
  enum Name { kTransitions, kStart, kEnd };

  PeriodTables(OnlineWeights& weights, const PeriodRule& rule);

  void set_factors(double transitions, double boundary);
  void set_factors(const double* plain);
  void get_factors(double* plain) const;

  void begin_step(int64_t k);  // step k of a period
  void end_step(int64_t k);
  // Step on w with the residuals of a sequence, for entries with a weight.
  void update(Name name, const double* residual, double eta, double penalty);
  void adapt();                                      // kComponent, kWindow: at the end of a period
  void add_products(Name name, double* sums) const;  // kShared: += D1.D1, D1.D2, D2.D2, w.w

  int64_t n_weights() const;
  // Writes the state after k steps of a period to places from `to` on; returns the place after them.
  int64_t get(int64_t k, int64_t to, int64_t n, const TouchedWeights& out) const;
  // Reads place `from` of n, if it is one of these weights.
  bool restore(int64_t from, int64_t n, const TouchedWeights& in);

 private:
  struct Table {
    double* w = nullptr;
    const double* mask = nullptr;
    int64_t n = 0;
    std::vector<int64_t> plain;  // indices in the plain weight vector, -1 without a weight
    std::vector<double> r, start, middle, before, steps;
  };
  bool window() const { return rule_.scope == PeriodRule::kWindow; }

  PeriodRule rule_;
  Table tables_[3];
  std::vector<int64_t> entry_of_;  // [transitions and boundary weights] index into the entries of all tables
  int64_t first_plain_ = 0;
};

}  // namespace crfit
