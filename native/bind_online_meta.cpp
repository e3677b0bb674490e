// Binding of stochastic meta-descent.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bind.hpp"
#include "bind_views.hpp"
#include "online_meta.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

struct PyOnlineMeta {
  nb::object data_owner, layout_owner;
  const crfit::LayoutView& layout;
  int64_t n_sequences;
  crfit::OnlineMeta online;

  PyOnlineMeta(nb::object data, nb::object layout_object, double meta_rate, double memory, int n_threads)
      : data_owner(data),
        layout_owner(layout_object),
        layout(nb::cast<Layout&>(layout_object).view),
        n_sequences(nb::cast<Data&>(data).view.n_sequences),
        online(labelled_view(data, layout), layout, meta_rate, memory, checked_threads(n_threads)) {}
};

}  // namespace

void bind_online_meta(nb::module_& m) {
  nb::class_<PyOnlineMeta>(m, "OnlineMeta", "Weights with rates of their own that are learned on the way.")
      .def(nb::init<nb::object, nb::object, double, double, int>(), "data"_a, "layout"_a, "meta_rate"_a, "memory"_a,
           "n_threads"_a)
      .def(
          "set",
          [](PyOnlineMeta& self, Vector<double> w) {
            check_weights(w, self.layout);
            nb::gil_scoped_release release;
            self.online.set(w.data());
          },
          "w"_a.noconvert())
      .def(
          "get",
          [](PyOnlineMeta& self, OutVector<double> out) {
            check_weights(out, self.layout);
            nb::gil_scoped_release release;
            return self.online.get(out.data());
          },
          "out"_a.noconvert())
      .def(
          "visit",
          [](PyOnlineMeta& self, Vector<int64_t> sequences, int64_t batch, double eta0, double l2) {
            check_sequences(sequences, self.n_sequences);
            require(batch >= 1 && batch < 1 << 20, "the batch must lie between 1 and 2^20");
            nb::gil_scoped_release release;
            return self.online.visit(sequences.data(), static_cast<int64_t>(sequences.size()), batch, eta0, l2);
          },
          "sequences"_a.noconvert(), "batch"_a, "eta0"_a, "l2"_a)
      .def(
          "loss",
          [](PyOnlineMeta& self, Vector<int64_t> sequences) {
            check_sequences(sequences, self.n_sequences);
            nb::gil_scoped_release release;
            return self.online.loss(sequences.data(), static_cast<int64_t>(sequences.size()));
          },
          "sequences"_a.noconvert())
      .def(
          "begin_sum",
          [](PyOnlineMeta& self, std::optional<Vector<double>> total) {
            if (total) check_weights(*total, self.layout);
            nb::gil_scoped_release release;
            self.online.begin_sum(total ? total->data() : nullptr);
          },
          "total"_a.noconvert().none())
      .def(
          "get_sum",
          [](PyOnlineMeta& self, OutVector<double> out) {
            check_weights(out, self.layout);
            require(self.online.summing(), "begin_sum() comes first");
            nb::gil_scoped_release release;
            self.online.get_sum(out.data());
          },
          "out"_a.noconvert())
      .def(
          "set_state",
          [](PyOnlineMeta& self, Vector<double> gains, Vector<double> v) {
            check_weights(gains, self.layout);
            check_weights(v, self.layout);
            nb::gil_scoped_release release;
            self.online.set_state(gains.data(), v.data());
          },
          "gains"_a.noconvert(), "v"_a.noconvert())
      .def(
          "get_state",
          [](PyOnlineMeta& self, OutVector<double> gains, OutVector<double> v) {
            check_weights(gains, self.layout);
            check_weights(v, self.layout);
            nb::gil_scoped_release release;
            self.online.get_state(gains.data(), v.data());
          },
          "gains"_a.noconvert(), "v"_a.noconvert())
      .def(
          "phase_seconds",
          [](const PyOnlineMeta& self) {
            const crfit::PhaseSeconds& seconds = self.online.seconds();
            return std::tuple(seconds.scores, seconds.lattice, seconds.gather);
          },
          "Wall time of all calls so far: scores, lattice, gather.");
}
