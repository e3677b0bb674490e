// Binding of the dual: checks ranges, releases the GIL and calls the core.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bind/bind.hpp"
#include "bind/views.hpp"
#include "dual/ascent.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// Views of the core's arrays; they keep the core alive.
using View1 = nb::ndarray<nb::numpy, double, nb::ndim<1>, nb::c_contig>;
using View2 = nb::ndarray<nb::numpy, double, nb::ndim<2>, nb::c_contig>;

std::size_t size(int64_t n) { return static_cast<std::size_t>(n); }

struct PyDual {
  nb::object data_owner, layout_owner;
  const crfit::LayoutView& layout;
  crfit::Dual dual;

  PyDual(nb::object data, nb::object layout_object, bool log_domain, int n_threads)
      : data_owner(data),
        layout_owner(layout_object),
        layout(nb::cast<Layout&>(layout_object).view),
        dual(labelled_view(data, layout), layout, log_domain, checked_threads(n_threads)) {}

  void check(const OutVector<double>& u, double l2) const {
    check_weights(u, layout);
    require(l2 > 0.0, "l2 must be above 0");
  }
};

std::tuple<int64_t, int64_t, double> epoch(PyDual& self, OutVector<double> u, Vector<int64_t> order, double l1,
                                           double l2, double grow, double shrink, int max_trials) {
  self.check(u, l2);
  require(l1 >= 0.0, "l1 must be 0 or above");
  require(max_trials >= 1, "max_trials must be at least 1");
  check_sequences(order, self.dual.n_sequences());
  nb::gil_scoped_release release;
  const crfit::EtaRule rule{grow, shrink, max_trials};
  const int64_t n = static_cast<int64_t>(order.size());
  const crfit::Dual::Epoch done = self.dual.epoch(order.data(), n, l1, l2, rule, u.data());
  return {done.trials, done.accepted, done.gain};
}

}  // namespace

void bind_dual(nb::module_& m) {
  nb::class_<PyDual>(m, "Dual", "The dual of the objective: one chain per sequence.")
      .def(nb::init<nb::object, nb::object, bool, int>(), "data"_a, "layout"_a, "log_domain"_a = false,
           "n_threads"_a = 1)
      .def(
          "start",
          [](PyDual& self, double gold, double eta) {
            nb::gil_scoped_release release;
            self.dual.start(gold, eta);
          },
          "gold"_a, "eta"_a)
      .def(
          "solve",
          [](PyDual& self) {
            nb::gil_scoped_release release;
            self.dual.solve();
          },
          "Compute marginals and entropies from the potentials.")
      .def(
          "weights",
          [](PyDual& self, double l2, OutVector<double> out) {
            self.check(out, l2);
            nb::gil_scoped_release release;
            self.dual.weights(l2, out.data());
          },
          "l2"_a, "out"_a.noconvert())
      .def("epoch", &epoch, "u"_a.noconvert(), "order"_a.noconvert(), "l1"_a, "l2"_a, "grow"_a, "shrink"_a,
           "max_trials"_a, "Return the numbers of trial steps and accepted steps, and the increase of the dual.")
      .def_prop_ro("entropy", [](const PyDual& self) { return self.dual.entropy(); })
      .def_prop_ro(
          "nodes",
          [](PyDual& self) {
            return View2(self.dual.nodes(), {size(self.dual.n_positions()), size(self.dual.padded())});
          },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "pairs",
          [](PyDual& self) {
            // Tables of all pairs by rows of labels, tables of listed pairs as they are.
            const std::size_t columns = size(self.dual.lists_pairs() ? self.dual.table_size() : self.dual.padded());
            const std::size_t entries = size(self.dual.n_tables() * self.dual.table_size());
            return View2(self.dual.pairs(), {entries / columns, columns});
          },
          nb::rv_policy::reference_internal)
      .def_prop_ro(
          "eta", [](PyDual& self) { return View1(self.dual.eta(), {size(self.dual.n_sequences())}); },
          nb::rv_policy::reference_internal)
      .def(
          "phase_seconds",
          [](const PyDual& self) {
            const crfit::PhaseSeconds& seconds = self.dual.seconds();
            return std::tuple(seconds.scores, seconds.lattice, seconds.gather);
          },
          "Wall-clock seconds of all calls so far: scores, lattice, gather.");
}
