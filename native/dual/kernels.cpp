// The hot loops of dual steps, compiled once per CPU level (CRFIT_LEVEL).
#include "dual/kernels.hpp"

#include "dual/step_kernels.hpp"

namespace {

void scores(const DualJob& job) {
  by_width(job.YP, [&]<int P>() {
    if (job.threshold > 0.0)
      dual_scores_of<P, false>(job);
    else
      dual_scores_of<P, true>(job);
  });
}
void solve(DualJob& job) {
  by_width(job.YP, [&]<int P>() { dual_solve_of<P>(job); });
}
void change(DualJob& job) {
  by_width(job.YP, [&]<int P>() { dual_change_of<P>(job); });
}
double rest(const DualJob& job) {
  double total = 0.0;
  by_width(job.YP, [&]<int P>() { total = dual_rest_of<P>(job); });
  return total;
}
void update(const DualJob& job) {
  by_width(job.YP, [&]<int P>() { dual_update_of<P>(job); });
}

}  // namespace

const crfit::DualKernels crfit::DualKernels::CRFIT_LEVEL = {
    .scores = ::scores,
    .solve = ::solve,
    .change = ::change,
    .rest = ::rest,
    .update = ::update,
};
