// Binding of mistake-driven steps.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>

#include "bind.hpp"
#include "bind_views.hpp"
#include "margin.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

crfit::MarginRule make_rule(const std::string& rule, double c, bool error_sensitive, double variance) {
  using crfit::MarginRule;
  if (rule == "perceptron") return {MarginRule::kPerceptron, c, error_sensitive, variance};
  require(c > 0.0, "c and gamma must be above 0");
  if (rule == "PA") return {MarginRule::kPa, c, error_sensitive, variance};
  if (rule == "PA-I") return {MarginRule::kPa1, c, error_sensitive, variance};
  if (rule == "PA-II") return {MarginRule::kPa2, c, error_sensitive, variance};
  require(rule == "arow", "the rule must be perceptron, PA, PA-I, PA-II or arow");
  require(variance > 0.0, "the variance must be above 0");
  return {MarginRule::kArow, c, error_sensitive, variance};
}

struct PyMargin {
  nb::object data_owner, layout_owner;
  const crfit::LayoutView& layout;
  int64_t n_sequences;
  crfit::Margin margin;

  PyMargin(nb::object data, nb::object layout_object, int n_threads, const std::string& rule, double c,
           bool error_sensitive, double variance)
      : data_owner(data),
        layout_owner(layout_object),
        layout(nb::cast<Layout&>(layout_object).view),
        n_sequences(nb::cast<Data&>(data).view.n_sequences),
        margin(labelled_view(data, layout), layout, checked_threads(n_threads),
               make_rule(rule, c, error_sensitive, variance)) {}

  void require_variances() const {
    require(margin.rule().kind == crfit::MarginRule::kArow, "variances are those of arow");
  }
};

}  // namespace

void bind_margin(nb::module_& m) {
  nb::class_<PyMargin>(m, "Margin", "Weights that are changed by wrong best paths.")
      .def(nb::init<nb::object, nb::object, int, const std::string&, double, bool, double>(), "data"_a, "layout"_a,
           "n_threads"_a, "rule"_a, "c"_a, "error_sensitive"_a, "variance"_a)
      .def(
          "set",
          [](PyMargin& self, Vector<double> w) {
            check_weights(w, self.layout);
            nb::gil_scoped_release release;
            self.margin.set(w.data());
          },
          "w"_a.noconvert())
      .def(
          "get",
          [](PyMargin& self, OutVector<double> out) {
            check_weights(out, self.layout);
            nb::gil_scoped_release release;
            return self.margin.get(out.data());
          },
          "out"_a.noconvert())
      .def(
          "visit",
          [](PyMargin& self, Vector<int64_t> sequences, int64_t batch) {
            check_sequences(sequences, self.n_sequences);
            require(batch >= 1 && batch < 1 << 20, "the batch must lie between 1 and 2^20");
            nb::gil_scoped_release release;
            const auto outcome = self.margin.visit(sequences.data(), static_cast<int64_t>(sequences.size()), batch);
            return std::tuple(outcome.loss, outcome.mistakes);
          },
          "sequences"_a.noconvert(), "batch"_a, "Sum of the losses, number of wrong sequences.")
      .def(
          "begin_sum",
          [](PyMargin& self, std::optional<Vector<double>> total) {
            if (total) check_weights(*total, self.layout);
            nb::gil_scoped_release release;
            self.margin.begin_sum(total ? total->data() : nullptr);
          },
          "total"_a.noconvert().none())
      .def(
          "get_sum",
          [](PyMargin& self, OutVector<double> out) {
            check_weights(out, self.layout);
            require(self.margin.summing(), "begin_sum() comes first");
            nb::gil_scoped_release release;
            self.margin.get_sum(out.data());
          },
          "out"_a.noconvert())
      .def(
          "get_variances",
          [](PyMargin& self, OutVector<double> out) {
            check_weights(out, self.layout);
            self.require_variances();
            nb::gil_scoped_release release;
            self.margin.get_variances(out.data());
          },
          "out"_a.noconvert())
      .def(
          "set_variances",
          [](PyMargin& self, Vector<double> s) {
            check_weights(s, self.layout);
            self.require_variances();
            nb::gil_scoped_release release;
            self.margin.set_variances(s.data());
          },
          "s"_a.noconvert())
      .def(
          "phase_seconds",
          [](const PyMargin& self) {
            const crfit::PhaseSeconds& seconds = self.margin.seconds();
            return std::tuple(seconds.scores, seconds.lattice, seconds.gather);
          },
          "Wall time of all calls so far: scores, lattice, gather.");
}
