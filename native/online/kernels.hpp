// Kernels of online steps, compiled once per CPU level. steps.hpp has the formulas of the plain, transformed and
// adaptive rules, periods.hpp those of periodic step sizes, meta.hpp those of stochastic meta-descent.
#pragma once

#include "online/jobs.hpp"
#include "online/meta_jobs.hpp"
#include "online/period_jobs.hpp"

namespace crfit {

struct OnlineKernels {
  static const OnlineKernels v2, v3, v4;
  // Steps.
  void (*solve)(const OnlineSolveJob&);             // residuals of one sequence
  void (*solve_group)(const OnlineGroupJob&);       // of several
  void (*update)(const OnlineUpdateJob&);           // attributes, plain rule
  void (*update_by_rule)(const OnlineRuleJob&);     // attributes, transformed and adaptive rules
  void (*dense)(const OnlineDenseJob&);             // transitions and boundary weights
  void (*transitions)(const OnlineTransitionJob&);  // their exponentials
  void (*transform)(const OnlineRule&, const double* in, int64_t n, double gain, double* out);
  // Periodic step sizes.
  void (*period_update)(const PeriodUpdateJob&);
  void (*period_middle)(const PeriodState&);
  void (*period_end)(const PeriodEndJob&);
  void (*period_table)(const PeriodTableJob&);
  void (*period_factors)(const PeriodFactorsJob&);
  // Stochastic meta-descent.
  void (*meta_solve)(const MetaSolveJob&);
  void (*meta_ready)(const MetaReadyJob&);
  void (*meta_update)(const MetaUpdateJob&);
  void (*meta_dense)(const MetaDenseJob&);
};

}  // namespace crfit
