// Binding of mistake-driven steps.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>

#include "bind/bind.hpp"
#include "bind/moving_weights.hpp"
#include "margin/steps.hpp"

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
  crfit::Margin core;

  PyMargin(nb::object data, nb::object layout_object, int n_threads, const std::string& rule, double c,
           bool error_sensitive, double variance)
      : data_owner(data),
        layout_owner(layout_object),
        layout(nb::cast<Layout&>(layout_object).view),
        n_sequences(nb::cast<Data&>(data).view.n_sequences),
        core(labelled_view(data, layout), layout, checked_threads(n_threads),
             make_rule(rule, c, error_sensitive, variance)) {}

  void require_variances() const {
    require(core.rule().kind == crfit::MarginRule::kArow, "variances are those of arow");
  }
};

}  // namespace

void bind_margin(nb::module_& m) {
  nb::class_<PyMargin> bound(m, "Margin", "Mistake-driven steps: weights change where best paths are wrong.");
  bind_moving_weights<PyMargin>(bound);
  bound
      .def(nb::init<nb::object, nb::object, int, const std::string&, double, bool, double>(), "data"_a, "layout"_a,
           "n_threads"_a, "rule"_a, "c"_a, "error_sensitive"_a, "variance"_a)
      .def(
          "visit",
          [](PyMargin& self, Vector<int64_t> sequences, int64_t batch) {
            check_sequences(sequences, self.n_sequences);
            check_batch(batch);
            nb::gil_scoped_release release;
            const auto outcome = self.core.visit(sequences.data(), static_cast<int64_t>(sequences.size()), batch);
            return std::tuple(outcome.loss, outcome.mistakes);
          },
          "sequences"_a.noconvert(), "batch"_a, "Return the sum of the losses and the number of wrong sequences.")
      .def(
          "get_variances",
          [](PyMargin& self, OutVector<double> out) {
            check_weights(out, self.layout);
            self.require_variances();
            nb::gil_scoped_release release;
            self.core.get_variances(out.data());
          },
          "out"_a.noconvert())
      .def(
          "set_variances",
          [](PyMargin& self, Vector<double> s) {
            check_weights(s, self.layout);
            self.require_variances();
            nb::gil_scoped_release release;
            self.core.set_variances(s.data());
          },
          "s"_a.noconvert());
}
