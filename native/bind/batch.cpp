// Binding of the objective over a dataset. Each function checks array shapes and index ranges, releases the GIL and
// calls the core. Weight-sized arguments are never converted: a copy of an output would be lost, and a copy of an input
// would cost a sweep over memory.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "batch/core.hpp"
#include "bind/bind.hpp"
#include "bind/views.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Batch holds views into arrays: the owners are kept alive here.
struct PyBatch {
  nb::object data_owner, layout_owner;
  const crfit::LayoutView& layout;
  int64_t n_sequences;
  std::unique_ptr<crfit::Core> core;

  PyBatch(nb::object data, nb::object layout_object, int n_threads, bool log_domain, int64_t round_bytes,
          std::optional<Matrix> offsets, double share_from)
      : data_owner(data),
        layout_owner(layout_object),
        layout(nb::cast<Layout&>(layout_object).view),
        n_sequences(nb::cast<Data&>(data).view.n_sequences) {
    const crfit::DataView& view = labelled_view(data, layout);
    require(!offsets || (static_cast<int64_t>(offsets->shape(0)) == view.n_positions &&
                         static_cast<int>(offsets->shape(1)) == layout.n_labels),
            "offsets must have a row per position and a column per label");
    core = crfit::make_core(
        view, layout,
        {checked_threads(n_threads), log_domain, round_bytes, offsets ? offsets->data() : nullptr, share_from});
  }
};

}  // namespace

void bind_batch(nb::module_& m) {
  nb::class_<PyBatch>(m, "Batch", "The objective over a dataset.")
      .def(nb::init<nb::object, nb::object, int, bool, int64_t, std::optional<Matrix>, double>(), "data"_a, "layout"_a,
           "n_threads"_a, "log_domain"_a = false, "round_bytes"_a = crfit::Core::kRoundBytes,
           "offsets"_a.noconvert() = nb::none(), "share_from"_a = crfit::Core::kShareFrom)
      .def(
          "loss",
          [](PyBatch& self, Vector<double> w) {
            check_weights(w, self.layout);
            nb::gil_scoped_release release;
            return self.core->loss(w.data());
          },
          "w"_a.noconvert())
      .def(
          "loss_on",
          [](PyBatch& self, Vector<double> w, Vector<int64_t> sequences) {
            check_weights(w, self.layout);
            check_sequences(sequences, self.n_sequences);
            nb::gil_scoped_release release;
            return self.core->loss_on(w.data(), sequences.data(), static_cast<int64_t>(sequences.size()));
          },
          "w"_a.noconvert(), "sequences"_a.noconvert())
      .def(
          "loss_and_grad",
          [](PyBatch& self, Vector<double> w, double l2, OutVector<double> g) {
            check_weights(w, self.layout);
            check_weights(g, self.layout);
            nb::gil_scoped_release release;
            return self.core->loss_and_grad(w.data(), l2, g.data());
          },
          "w"_a.noconvert(), "l2"_a, "out"_a.noconvert())
      .def(
          "loss_and_grad_on",
          [](PyBatch& self, Vector<double> w, double l2, Vector<int64_t> sequences, OutVector<double> g) {
            check_weights(w, self.layout);
            check_weights(g, self.layout);
            check_sequences(sequences, self.n_sequences);
            nb::gil_scoped_release release;
            return self.core->loss_and_grad_on(w.data(), l2, sequences.data(), static_cast<int64_t>(sequences.size()),
                                               g.data());
          },
          "w"_a.noconvert(), "l2"_a, "sequences"_a.noconvert(), "out"_a.noconvert())
      .def(
          "expectations",
          [](PyBatch& self, Vector<double> w, OutVector<double> out) {
            check_weights(w, self.layout);
            check_weights(out, self.layout);
            nb::gil_scoped_release release;
            self.core->expectations(w.data(), out.data());
          },
          "w"_a.noconvert(), "out"_a.noconvert())
      .def(
          "set_line",
          [](PyBatch& self, Vector<double> w, Vector<double> d) {
            check_weights(w, self.layout);
            check_weights(d, self.layout);
            nb::gil_scoped_release release;
            self.core->set_line(w.data(), d.data());
          },
          "w"_a.noconvert(), "d"_a.noconvert())
      .def(
          "along",
          [](PyBatch& self, double a) {
            double loss = 0.0, slope = 0.0;
            {
              nb::gil_scoped_release release;
              self.core->along(a, loss, slope);
            }
            return std::pair(loss, slope);
          },
          "a"_a)
      .def(
          "keep_curvature",
          [](PyBatch& self, bool pairs, bool floats, int64_t max_sequences, int64_t max_bytes, bool at_gradients,
             bool propagate) {
            self.core->keep_curvature(pairs, floats, max_sequences, max_bytes, at_gradients, propagate);
          },
          "pairs"_a, "floats"_a, "max_sequences"_a, "max_bytes"_a, "at_gradients"_a, "propagate"_a)
      .def_prop_ro("n_distinct", [](const PyBatch& self) { return self.core->n_distinct(); })
      .def_prop_ro("table_bytes", [](const PyBatch& self) { return self.core->table_bytes(); })
      .def_prop_ro("kept_bytes", [](const PyBatch& self) { return self.core->kept_bytes(); })
      .def(
          "hessian_product",
          [](PyBatch& self, Vector<double> w, Vector<double> v, double l2, OutVector<double> out) {
            check_weights(w, self.layout);
            check_weights(v, self.layout);
            check_weights(out, self.layout);
            nb::gil_scoped_release release;
            self.core->hessian_product(w.data(), v.data(), l2, out.data());
          },
          "w"_a.noconvert(), "v"_a.noconvert(), "l2"_a, "out"_a.noconvert())
      .def(
          "hessian_diagonal",
          [](PyBatch& self, Vector<double> w, OutVector<double> out) {
            check_weights(w, self.layout);
            check_weights(out, self.layout);
            nb::gil_scoped_release release;
            self.core->hessian_diagonal(w.data(), out.data());
          },
          "w"_a.noconvert(), "out"_a.noconvert())
      .def(
          "restrict_products",
          [](PyBatch& self, OptionalVector<bool> weights) {
            if (weights) check_weights(*weights, self.layout);
            nb::gil_scoped_release release;
            self.core->restrict_products(weights ? reinterpret_cast<const uint8_t*>(weights->data()) : nullptr);
          },
          "weights"_a.noconvert().none())
      .def(
          "phase_seconds",
          [](const PyBatch& self) {
            const crfit::PhaseSeconds& seconds = self.core->seconds();
            return std::tuple(seconds.scores, seconds.lattice, seconds.gather);
          },
          "Wall-clock seconds of all calls so far: scores, lattice, gather.");
}
