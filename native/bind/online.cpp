// Binding of the steps of online trainers: Online for rules with one rate, OnlineMeta for learned rates.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>

#include "bind/bind.hpp"
#include "bind/moving_weights.hpp"
#include "online/meta.hpp"
#include "online/steps.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

crfit::Rate make_rate(const std::string& schedule, double eta0, double alpha) {
  using crfit::Rate;
  if (schedule == "constant") return {Rate::kConstant, eta0, alpha};
  if (schedule == "inverse") return {Rate::kInverse, eta0, alpha};
  if (schedule == "exponential") return {Rate::kExponential, eta0, alpha};
  if (schedule == "bottou") return {Rate::kBottou, eta0, alpha};
  require(schedule == "power", "the schedule must be constant, inverse, exponential, bottou or power");
  return {Rate::kPower, eta0, alpha};
}

// The name is "plain", "adaptive" or a potential.
crfit::OnlineRule make_rule(const std::string& name, bool derivative, double parameter) {
  using crfit::OnlineRule;
  OnlineRule rule;
  if (name == "plain") return rule;
  rule.kind = name == "adaptive" ? OnlineRule::kAdaptive : OnlineRule::kTransform;
  rule.epsilon = rule.parameter = parameter;
  rule.derivative = derivative;
  if (name == "erf") rule.potential = OnlineRule::kErf;
  if (name == "gd") rule.potential = OnlineRule::kGudermann;
  require(name == "adaptive" || name == "arctan" || name == "erf" || name == "gd",
          "the rule must be plain, adaptive, arctan, erf or gd");
  return rule;
}

crfit::PeriodRule make_periods(const std::string& scope, double alpha, double beta, double kappa, int gamma,
                               int64_t half) {
  using crfit::PeriodRule;
  require(scope == "component" || scope == "window" || scope == "shared", "the scope: component, window or shared");
  require(half >= 1 && half < 1 << 20 && gamma >= 1 && gamma <= 3, "half a period or gamma is out of range");
  const auto kind = scope == "shared"   ? PeriodRule::kShared
                    : scope == "window" ? PeriodRule::kWindow
                                        : PeriodRule::kComponent;
  return {kind, alpha, beta, kappa, gamma, half};
}

// Groups of attributes, edge attributes, transitions and boundary weights.
std::vector<int32_t> checked_groups(Vector<int32_t> groups, int64_t n_groups, const crfit::LayoutView& layout) {
  const auto size = static_cast<int64_t>(groups.size());
  require(n_groups == 0 ? size == 0 : size == layout.n_attributes + layout.n_edge_attributes + 2,
          "a group for each attribute, for transitions and for boundary weights");
  crfit::check_ids(groups.data(), size, n_groups, "a group is out of range");
  return std::vector<int32_t>(groups.data(), groups.data() + size);
}

struct PyOnline {
  nb::object data_owner, layout_owner;
  const crfit::LayoutView& layout;
  int64_t n_sequences;
  crfit::Online core;

  PyOnline(nb::object data, nb::object layout_object, const std::string& rule, bool derivative, double parameter,
           bool table, int64_t batch, int n_threads)
      : data_owner(data),
        layout_owner(layout_object),
        layout(nb::cast<Layout&>(layout_object).view),
        n_sequences(nb::cast<Data&>(data).view.n_sequences),
        core(labelled_view(data, layout), layout, make_rule(rule, derivative, parameter), table, batch,
             checked_threads(n_threads)) {}
  PyOnline(nb::object data, nb::object layout_object, const std::string& scope, double alpha, double beta, double kappa,
           int gamma, int64_t half, Vector<int32_t> groups, int64_t n_groups, int n_threads)
      : data_owner(data),
        layout_owner(layout_object),
        layout(nb::cast<Layout&>(layout_object).view),
        n_sequences(nb::cast<Data&>(data).view.n_sequences),
        core(labelled_view(data, layout), layout, make_periods(scope, alpha, beta, kappa, gamma, half),
             checked_groups(groups, n_groups, layout), n_groups, checked_threads(n_threads)) {
    require((scope == "shared") == (n_groups > 0), "groups are for the scope shared");
  }

  crfit::OnlinePeriods& periods() {
    require(core.periods() != nullptr, "the run has no periods");
    return *core.periods();
  }
  // Arrays of equal size, if the scope needs them.
  crfit::TouchedWeights touched(OutVector<double> factors, OutVector<int64_t> weights, OutVector<int64_t> halves,
                                OutVector<double> start, OutVector<double> middle, OutVector<double> steps) {
    const std::size_t n = weights.size(), n_window = periods().window() ? n : 0;
    require(factors.size() == static_cast<std::size_t>(periods().n_factors()) && halves.size() == n &&
                start.size() == n - n_window && middle.size() == n - n_window &&
                steps.size() == n_window * static_cast<std::size_t>(2 * periods().half()),
            "the state of a period does not fit");
    return {weights.data(), halves.data(), start.data(), middle.data(), steps.data()};
  }
};

struct PyOnlineMeta {
  nb::object data_owner, layout_owner;
  const crfit::LayoutView& layout;
  int64_t n_sequences;
  crfit::OnlineMeta core;

  PyOnlineMeta(nb::object data, nb::object layout_object, double meta_rate, double memory, int n_threads)
      : data_owner(data),
        layout_owner(layout_object),
        layout(nb::cast<Layout&>(layout_object).view),
        n_sequences(nb::cast<Data&>(data).view.n_sequences),
        core(labelled_view(data, layout), layout, meta_rate, memory, checked_threads(n_threads)) {}
};

void bind_steps(nb::module_& m) {
  nb::class_<PyOnline> bound(m, "Online", "Online steps: weights change after each mini-batch.");
  bind_moving_weights<PyOnline>(bound);
  bind_loss<PyOnline>(bound);
  bound
      .def(nb::init<nb::object, nb::object, const std::string&, bool, double, bool, int64_t, int>(), "data"_a,
           "layout"_a, "rule"_a, "derivative"_a, "parameter"_a, "table"_a, "batch"_a, "n_threads"_a)
      .def(
          "visit",
          [](PyOnline& self, Vector<int64_t> sequences, int64_t batch, const std::string& schedule, double eta0,
             double alpha, double l2, int64_t k) {
            check_sequences(sequences, self.n_sequences);
            check_batch(batch);
            const crfit::Rate rate = make_rate(schedule, eta0, alpha);
            nb::gil_scoped_release release;
            return self.core.visit(sequences.data(), static_cast<int64_t>(sequences.size()), batch, rate, l2, k);
          },
          "sequences"_a.noconvert(), "batch"_a, "schedule"_a, "eta0"_a, "alpha"_a, "l2"_a, "k"_a)
      .def(
          "set_squares",
          [](PyOnline& self, Vector<double> h) {
            check_weights(h, self.layout);
            require(self.core.adaptive(), "squares are for the adaptive rule");
            nb::gil_scoped_release release;
            self.core.set_squares(h.data());
          },
          "h"_a.noconvert())
      .def(
          "get_squares",
          [](PyOnline& self, OutVector<double> out) {
            check_weights(out, self.layout);
            require(self.core.adaptive(), "squares are for the adaptive rule");
            nb::gil_scoped_release release;
            self.core.get_squares(out.data());
          },
          "out"_a.noconvert())
      .def(nb::init<nb::object, nb::object, const std::string&, double, double, double, int, int64_t, Vector<int32_t>,
                    int64_t, int>(),
           "data"_a, "layout"_a, "scope"_a, "alpha"_a, "beta"_a, "kappa"_a, "gamma"_a, "half"_a, "groups"_a.noconvert(),
           "n_groups"_a, "n_threads"_a)
      .def(
          "period_sizes",
          [](PyOnline& self) {
            crfit::OnlinePeriods& periods = self.periods();
            {
              nb::gil_scoped_release release;
              periods.catch_up();
            }
            return std::tuple(periods.n_factors(), periods.steps_made(), periods.n_touched());
          },
          "Number of factors, of steps in the current period, and of weights touched by them.")
      .def(
          "get_period",
          [](PyOnline& self, OutVector<double> factors, OutVector<int64_t> weights, OutVector<int64_t> halves,
             OutVector<double> start, OutVector<double> middle, OutVector<double> steps) {
            crfit::OnlinePeriods& periods = self.periods();
            periods.catch_up();
            require(static_cast<int64_t>(weights.size()) == periods.n_touched(),
                    "the size differs from period_sizes()");
            const auto touched = self.touched(factors, weights, halves, start, middle, steps);
            nb::gil_scoped_release release;
            periods.get_factors(factors.data());
            periods.get_touched(touched);
          },
          "factors"_a.noconvert(), "weights"_a.noconvert(), "halves"_a.noconvert(), "start"_a.noconvert(),
          "middle"_a.noconvert(), "steps"_a.noconvert())
      .def(
          "set_period",
          [](PyOnline& self, int64_t steps_made, OutVector<double> factors, OutVector<int64_t> weights,
             OutVector<int64_t> halves, OutVector<double> start, OutVector<double> middle, OutVector<double> steps) {
            crfit::OnlinePeriods& periods = self.periods();
            const auto touched = self.touched(factors, weights, halves, start, middle, steps);
            const auto n = static_cast<int64_t>(weights.size());
            require(steps_made >= 0 && steps_made < 2 * periods.half() && (steps_made > 0 || n == 0),
                    "the state of a period does not fit");
            crfit::check_ids(touched.weights, n, self.layout.n_weights, "there is no such weight");
            nb::gil_scoped_release release;
            periods.restore(factors.data(), steps_made, n, touched);
          },
          "steps_made"_a, "factors"_a.noconvert(), "weights"_a.noconvert(), "halves"_a.noconvert(),
          "start"_a.noconvert(), "middle"_a.noconvert(), "steps"_a.noconvert());
}

void bind_meta(nb::module_& m) {
  nb::class_<PyOnlineMeta> bound(m, "OnlineMeta", "Online steps with a learned rate for each weight.");
  bind_moving_weights<PyOnlineMeta>(bound);
  bind_loss<PyOnlineMeta>(bound);
  bound
      .def(nb::init<nb::object, nb::object, double, double, int>(), "data"_a, "layout"_a, "meta_rate"_a, "memory"_a,
           "n_threads"_a)
      .def(
          "visit",
          [](PyOnlineMeta& self, Vector<int64_t> sequences, int64_t batch, double eta0, double l2) {
            check_sequences(sequences, self.n_sequences);
            check_batch(batch);
            nb::gil_scoped_release release;
            return self.core.visit(sequences.data(), static_cast<int64_t>(sequences.size()), batch, eta0, l2);
          },
          "sequences"_a.noconvert(), "batch"_a, "eta0"_a, "l2"_a)
      .def(
          "set_state",
          [](PyOnlineMeta& self, Vector<double> gains, Vector<double> v) {
            check_weights(gains, self.layout);
            check_weights(v, self.layout);
            nb::gil_scoped_release release;
            self.core.set_state(gains.data(), v.data());
          },
          "gains"_a.noconvert(), "v"_a.noconvert())
      .def(
          "get_state",
          [](PyOnlineMeta& self, OutVector<double> gains, OutVector<double> v) {
            check_weights(gains, self.layout);
            check_weights(v, self.layout);
            nb::gil_scoped_release release;
            self.core.get_state(gains.data(), v.data());
          },
          "gains"_a.noconvert(), "v"_a.noconvert());
}

}  // namespace

void bind_online(nb::module_& m) {
  bind_steps(m);
  bind_meta(m);
}
