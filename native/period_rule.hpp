// The rule of periodic step sizes: how the changes of weights over two halves of a period become a factor of rates.
#pragma once

#include <cstdint>

namespace crfit {

struct PeriodRule {
  enum Scope { kComponent, kWindow, kShared };  // kShared: weights of a group have one factor
  Scope scope = kComponent;
  double alpha = 0.9999, beta = 0.99, kappa = 0.9;
  int gamma = 1;
  int64_t half = 1;  // steps b in half a period

  double multiplier(double u) const;  // the line from beta at -kappa to alpha at kappa
  // u for vectors with these products D1.D1, D1.D2, D2.D2, w.w: gamma, cut to [-kappa, kappa].
  double estimate(const double (&products)[4]) const;
};

constexpr int kPeriodParts = 8;        // of the units; nothing depends on the number of threads
constexpr double kTinyChange = 1e-12;  // changes below this times max(1, |w|) say nothing

}  // namespace crfit
