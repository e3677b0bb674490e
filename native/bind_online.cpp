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
      .def(
          "phase_seconds",
          [](const PyOnline& self) {
            const crfit::PhaseSeconds& seconds = self.online.seconds();
            return std::tuple(seconds.scores, seconds.lattice, seconds.gather);
          },
          "Wall time of all calls so far: scores, lattice, gather.");
}
