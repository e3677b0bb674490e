// The hot loops of online steps, compiled once per CPU level (CRFIT_LEVEL).
#include "online/kernels.hpp"

#include "lattice/history_tangent.hpp"
#include "lattice/lane_lattice.hpp"
#include "lattice/tangent.hpp"
#include "online/meta_kernels.hpp"
#include "online/period_kernels.hpp"
#include "online/rule_kernels.hpp"
#include "online/step_kernels.hpp"

namespace {

void solve(const OnlineSolveJob& job) {
  by_width(job.weights->YP, [&]<int P>() {
    job.weights->order > 1 ? solve_online<HistoryWorker<P>>(job) : solve_online<SequenceWorker<P>>(job);
  });
}
void solve_group(const OnlineGroupJob& job) { solve_online_group<crfit::kFewLanes / kLanes>(job); }
void update(const OnlineUpdateJob& job) {
  by_width(job.YP, [&]<int P>() { update_online<P>(job); });
}
void update_by_rule(const OnlineRuleJob& job) {
  by_width(job.YP, [&]<int P>() { update_touched<P>(job); });
}
void period_update(const PeriodUpdateJob& job) {
  by_width(job.touched.YP, [&]<int P>() { period_update_sequence<P>(job); });
}
void meta_solve(const MetaSolveJob& job) {
  by_width(job.weights->YP, [&]<int P>() {
    job.weights->order > 1 ? solve_meta<HistoryTangentWorker<P>>(job) : solve_meta<TangentWorker<P>>(job);
  });
}
void meta_ready(const MetaReadyJob& job) {
  by_width(job.to.YP, [&]<int P>() { meta_ready_units<P>(job); });
}
void meta_update(const MetaUpdateJob& job) {
  by_width(job.to.YP, [&]<int P>() { meta_update_units<P>(job); });
}

}  // namespace

const crfit::OnlineKernels crfit::OnlineKernels::CRFIT_LEVEL = {
    .solve = ::solve,
    .solve_group = ::solve_group,
    .update = ::update,
    .update_by_rule = ::update_by_rule,
    .dense = ::online_dense,
    .transitions = ::online_transitions,
    .transform = ::transform,
    .period_update = ::period_update,
    .period_middle = ::period_middle,
    .period_end = ::period_end,
    .period_table = ::period_table,
    .period_factors = ::period_factors,
    .meta_solve = ::meta_solve,
    .meta_ready = ::meta_ready,
    .meta_update = ::meta_update,
    .meta_dense = ::meta_dense,
};
