// The rule of periodic step sizes: how the changes of weights over two halves of a period become a factor of rates.
// Internal linkage: per-level files must not share these functions with the rest of the program.
#pragma once

#include <cmath>
#include <cstdint>

namespace crfit {

struct PeriodRule {
  enum Scope { kComponent, kWindow, kShared };  // kShared: weights of a group have one factor
  Scope scope = kComponent;
  double alpha = 0.9999, beta = 0.99, kappa = 0.9;
  int gamma = 1;
  int64_t half = 1;  // steps b in half a period
};

constexpr double kTinyChange = 1e-12;  // changes below this times max(1, |w|) say nothing

// The line from beta at u = -kappa to alpha at kappa.
static inline double multiplier(const PeriodRule& rule, double u) {
  return 0.5 * (rule.alpha + rule.beta) + 0.5 * (rule.alpha - rule.beta) / rule.kappa * u;
}

static inline double cut_to_kappa(const PeriodRule& rule, double gamma) {
  const double low = gamma < -rule.kappa ? -rule.kappa : gamma;
  return low > rule.kappa ? rule.kappa : low;
}

// u of vectors with the products s11 = D1.D1, s12 = D1.D2, s22 = D2.D2 and w.w.
static inline double estimate(const PeriodRule& rule, double s11, double s12, double s22, double square) {
  if (s11 < kTinyChange * kTinyChange * (square > 1.0 ? square : 1.0)) return rule.kappa;
  if (rule.gamma == 3 && !(s12 > 0.0)) return -rule.kappa;
  return cut_to_kappa(rule, rule.gamma == 1 ? s12 / s11 : rule.gamma == 2 ? std::sqrt(s22 / s11) : s22 / s12);
}

// u of one weight that is w now and was changed by d1, then by d2.
static inline double estimate_of_weight(const PeriodRule& rule, double w, double d1, double d2) {
  const double size = std::abs(w) > 1.0 ? std::abs(w) : 1.0;
  const bool nothing = std::abs(d1) < kTinyChange * size;
  const double u = nothing ? rule.kappa : cut_to_kappa(rule, d2 / (nothing ? 1.0 : d1));
  return rule.gamma == 2 ? std::abs(u) : u;
}

}  // namespace crfit
