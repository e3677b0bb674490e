#include "period_rule.hpp"

#include <algorithm>
#include <cmath>

namespace crfit {

double PeriodRule::multiplier(double u) const { return 0.5 * (alpha + beta) + 0.5 * (alpha - beta) / kappa * u; }

double PeriodRule::estimate(const double (&products)[4]) const {
  const auto [s11, s12, s22, square] = products;
  if (s11 < kTinyChange * kTinyChange * std::max(1.0, square)) return kappa;
  if (gamma == 3 && !(s12 > 0.0)) return -kappa;
  return std::clamp(gamma == 1 ? s12 / s11 : gamma == 2 ? std::sqrt(s22 / s11) : s22 / s12, -kappa, kappa);
}

}  // namespace crfit
