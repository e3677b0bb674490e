// Binding of stochastic meta-descent.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bind.hpp"
#include "bind_moving_weights.hpp"
#include "online_meta.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

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

}  // namespace

void bind_online_meta(nb::module_& m) {
  nb::class_<PyOnlineMeta> bound(m, "OnlineMeta", "Weights with rates of their own that are learned on the way.");
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
