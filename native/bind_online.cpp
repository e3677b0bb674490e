// Binding of the steps of on-line trainers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>

#include "bind.hpp"
#include "bind_views.hpp"
#include "online.hpp"

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

// "plain" and "adaptive" are rules, and so is each potential.
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
  std::vector<int32_t> own(groups.data(), groups.data() + size);
  for (const int32_t group : own) require(group >= 0 && group < n_groups, "a group is out of range");
  return own;
}

struct PyOnline {
  nb::object data_owner, layout_owner;
  const crfit::LayoutView& layout;
  int64_t n_sequences;
  crfit::Online online;

  PyOnline(nb::object data, nb::object layout_object, const std::string& rule, bool derivative, double parameter,
           bool table, int n_threads)
      : data_owner(data),
        layout_owner(layout_object),
        layout(nb::cast<Layout&>(layout_object).view),
        n_sequences(nb::cast<Data&>(data).view.n_sequences),
        online(labelled_view(data, layout), layout, make_rule(rule, derivative, parameter), table,
               checked_threads(n_threads)) {}
  PyOnline(nb::object data, nb::object layout_object, const std::string& scope, double alpha, double beta, double kappa,
           int gamma, int64_t half, Vector<int32_t> groups, int64_t n_groups, int n_threads)
      : data_owner(data),
        layout_owner(layout_object),
        layout(nb::cast<Layout&>(layout_object).view),
        n_sequences(nb::cast<Data&>(data).view.n_sequences),
        online(labelled_view(data, layout), layout, make_periods(scope, alpha, beta, kappa, gamma, half),
               checked_groups(groups, n_groups, layout), n_groups, checked_threads(n_threads)) {
    require((scope == "shared") == (n_groups > 0), "groups are for the scope shared");
  }

  crfit::OnlinePeriods& periods() {
    require(online.periods() != nullptr, "the run has no periods");
    return *online.periods();
  }
  int64_t n_factors() { return periods().shared() ? periods().n_groups() : layout.n_weights; }
};

}  // namespace

void bind_online(nb::module_& m) {
  nb::class_<PyOnline>(m, "Online", "Weights that are changed by a few sequences at a time.")
      .def(nb::init<nb::object, nb::object, const std::string&, bool, double, bool, int>(), "data"_a, "layout"_a,
           "rule"_a, "derivative"_a, "parameter"_a, "table"_a, "n_threads"_a)
      .def(
          "set",
          [](PyOnline& self, Vector<double> w) {
            check_weights(w, self.layout);
            nb::gil_scoped_release release;
            self.online.set(w.data());
          },
          "w"_a.noconvert())
      .def(
          "get",
          [](PyOnline& self, OutVector<double> out) {
            check_weights(out, self.layout);
            nb::gil_scoped_release release;
            return self.online.get(out.data());
          },
          "out"_a.noconvert())
      .def(
          "visit",
          [](PyOnline& self, Vector<int64_t> sequences, int64_t batch, const std::string& schedule, double eta0,
             double alpha, double l2, int64_t k) {
            check_sequences(sequences, self.n_sequences);
            require(batch >= 1 && batch < 1 << 20, "the batch must lie between 1 and 2^20");
            const crfit::Rate rate = make_rate(schedule, eta0, alpha);
            nb::gil_scoped_release release;
            return self.online.visit(sequences.data(), static_cast<int64_t>(sequences.size()), batch, rate, l2, k);
          },
          "sequences"_a.noconvert(), "batch"_a, "schedule"_a, "eta0"_a, "alpha"_a, "l2"_a, "k"_a)
      .def(
          "loss",
          [](PyOnline& self, Vector<int64_t> sequences) {
            check_sequences(sequences, self.n_sequences);
            nb::gil_scoped_release release;
            return self.online.loss(sequences.data(), static_cast<int64_t>(sequences.size()));
          },
          "sequences"_a.noconvert())
      .def(
          "begin_sum",
          [](PyOnline& self, std::optional<Vector<double>> total) {
            if (total) check_weights(*total, self.layout);
            nb::gil_scoped_release release;
            self.online.begin_sum(total ? total->data() : nullptr);
          },
          "total"_a.noconvert().none())
      .def(
          "get_sum",
          [](PyOnline& self, OutVector<double> out) {
            check_weights(out, self.layout);
            require(self.online.summing(), "begin_sum() comes first");
            nb::gil_scoped_release release;
            self.online.get_sum(out.data());
          },
          "out"_a.noconvert())
      .def(
          "set_squares",
          [](PyOnline& self, Vector<double> h) {
            check_weights(h, self.layout);
            require(self.online.adaptive(), "squares are for the adaptive rule");
            nb::gil_scoped_release release;
            self.online.set_squares(h.data());
          },
          "h"_a.noconvert())
      .def(
          "get_squares",
          [](PyOnline& self, OutVector<double> out) {
            check_weights(out, self.layout);
            require(self.online.adaptive(), "squares are for the adaptive rule");
            nb::gil_scoped_release release;
            self.online.get_squares(out.data());
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
            periods.catch_up();
            return std::tuple(self.n_factors(), static_cast<int64_t>(periods.steps().size()), periods.n_touched());
          },
          "Numbers of factors, of steps of the present period, and of weights that these touched.")
      .def(
          "get_period",
          [](PyOnline& self, OutVector<double> factors, OutVector<double> shares, OutVector<int64_t> weights,
             OutVector<int64_t> halves, OutVector<double> start, OutVector<double> middle, OutVector<double> steps,
             OutVector<double> products, OutVector<double> squares) {
            crfit::OnlinePeriods& periods = self.periods();
            periods.catch_up();
            const auto n = static_cast<std::size_t>(periods.n_touched());
            const std::size_t n_window = periods.window() ? n : 0;
            require(factors.size() == static_cast<std::size_t>(self.n_factors()) &&
                        shares.size() == periods.steps().size() && weights.size() == n && halves.size() == n &&
                        start.size() == n - n_window && middle.size() == n - n_window &&
                        steps.size() == n_window * periods.half() && products.size() == n_window &&
                        squares.size() == n_window,
                    "the arrays must be of the sizes that period_sizes() tells");
            nb::gil_scoped_release release;
            periods.get_factors(factors.data());
            std::copy(periods.steps().begin(), periods.steps().end(), shares.data());
            periods.get_touched({weights.data(), halves.data(), start.data(), middle.data(), steps.data(),
                                 products.data(), squares.data()});
          },
          "factors"_a.noconvert(), "shares"_a.noconvert(), "weights"_a.noconvert(), "halves"_a.noconvert(),
          "start"_a.noconvert(), "middle"_a.noconvert(), "steps"_a.noconvert(), "products"_a.noconvert(),
          "squares"_a.noconvert())
      .def(
          "set_period",
          [](PyOnline& self, OutVector<double> factors, OutVector<double> shares, OutVector<int64_t> weights,
             OutVector<int64_t> halves, OutVector<double> start, OutVector<double> middle, OutVector<double> steps,
             OutVector<double> products, OutVector<double> squares) {
            crfit::OnlinePeriods& periods = self.periods();
            const std::size_t n = weights.size(), n_window = periods.window() ? n : 0;
            require(factors.size() == static_cast<std::size_t>(self.n_factors()) &&
                        shares.size() < static_cast<std::size_t>(2 * periods.half()) && halves.size() == n &&
                        start.size() == n - n_window && middle.size() == n - n_window &&
                        steps.size() == n_window * periods.half() && products.size() == n_window &&
                        squares.size() == n_window,
                    "the state of a period does not fit");
            for (std::size_t i = 0; i < n; ++i)
              require(weights.data()[i] >= 0 && weights.data()[i] < self.layout.n_weights, "there is no such weight");
            nb::gil_scoped_release release;
            periods.restore(factors.data(), shares.data(), static_cast<int64_t>(shares.size()), static_cast<int64_t>(n),
                            {weights.data(), halves.data(), start.data(), middle.data(), steps.data(), products.data(),
                             squares.data()});
          },
          "factors"_a.noconvert(), "shares"_a.noconvert(), "weights"_a.noconvert(), "halves"_a.noconvert(),
          "start"_a.noconvert(), "middle"_a.noconvert(), "steps"_a.noconvert(), "products"_a.noconvert(),
          "squares"_a.noconvert())
      .def(
          "phase_seconds",
          [](const PyOnline& self) {
            const crfit::PhaseSeconds& seconds = self.online.seconds();
            return std::tuple(seconds.scores, seconds.lattice, seconds.gather);
          },
          "Wall time of all calls so far: scores, lattice, gather.");
}
