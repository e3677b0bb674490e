// Periodic step sizes of transitions and boundary weights. Every sequence touches all of them, so that nothing here is
// lazy: r, the weights at the beginning of the halves and, with kWindow, the changes of all 2b steps are plain arrays
// in the order of the padded tables; `mask` is 0 where there is no weight.
#pragma once

#include <cstdint>
#include <vector>

#include "online/period_jobs.hpp"
#include "online/weights.hpp"

namespace crfit {

// What is known about weights that the present period touched, [n]: with kWindow their changes in its steps, [2b][n],
// else the weights at the beginning of its halves.
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
  // w moves by what the residuals of a sequence say, where there is a weight.
  void update(Name name, const double* residual, double eta, double penalty);
  void adapt();                                      // kComponent, kWindow: at the end of a period
  void add_products(Name name, double* sums) const;  // kShared: += D1.D1, D1.D2, D2.D2, w.w

  int64_t n_weights() const;
  // Of a period of which k steps are made, from place `to` of n on; returns the place after them.
  int64_t get(int64_t k, int64_t to, int64_t n, const TouchedWeights& out) const;
  // Takes place `from` of n, if that is one of these weights.
  bool restore(int64_t from, int64_t n, const TouchedWeights& in);

 private:
  struct Table {
    double* w = nullptr;
    const double* mask = nullptr;
    int64_t n = 0;
    std::vector<int64_t> plain;  // places in the plain weight vector, -1 where there is no weight
    std::vector<double> r, start, middle, before, steps;
  };
  bool window() const { return rule_.scope == PeriodRule::kWindow; }

  PeriodRule rule_;
  Table tables_[3];
  std::vector<int64_t> entry_of_;  // [transitions and boundary weights] which entry of all tables it is
  int64_t first_plain_ = 0;
};

}  // namespace crfit
