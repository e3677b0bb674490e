// Methods shared by the bindings of all runs that change weights after each mini-batch. The bound object has the run as
// `core`, and a `layout`.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "base/phases.hpp"
#include "bind/views.hpp"

namespace {

template <class Object, class Class>
void bind_moving_weights(Class& bound) {
  namespace nb = nanobind;
  using namespace nb::literals;
  bound
      .def(
          "set",
          [](Object& self, Vector<double> w) {
            check_weights(w, self.layout);
            nb::gil_scoped_release release;
            self.core.set(w.data());
          },
          "w"_a.noconvert())
      .def(
          "get",
          [](Object& self, OutVector<double> out) {
            check_weights(out, self.layout);
            nb::gil_scoped_release release;
            return self.core.get(out.data());
          },
          "out"_a.noconvert())
      .def(
          "begin_sum",
          [](Object& self, std::optional<Vector<double>> total) {
            if (total) check_weights(*total, self.layout);
            nb::gil_scoped_release release;
            self.core.begin_sum(total ? total->data() : nullptr);
          },
          "total"_a.noconvert().none())
      .def(
          "get_sum",
          [](Object& self, OutVector<double> out) {
            check_weights(out, self.layout);
            require(self.core.summing(), "begin_sum() comes first");
            nb::gil_scoped_release release;
            self.core.get_sum(out.data());
          },
          "out"_a.noconvert())
      .def(
          "phase_seconds",
          [](const Object& self) {
            const crfit::PhaseSeconds& seconds = self.core.seconds();
            return std::tuple(seconds.scores, seconds.lattice, seconds.gather);
          },
          "Wall-clock seconds of all calls so far: scores, lattice, gather.");
}

// The same for gradient-based runs, which can also compute the loss of sequences.
template <class Object, class Class>
void bind_loss(Class& bound) {
  namespace nb = nanobind;
  using namespace nb::literals;
  bound.def(
      "loss",
      [](Object& self, Vector<int64_t> sequences) {
        check_sequences(sequences, self.n_sequences);
        nb::gil_scoped_release release;
        return self.core.loss(sequences.data(), static_cast<int64_t>(sequences.size()));
      },
      "sequences"_a.noconvert());
}

inline void check_batch(int64_t batch) {
  require(batch >= 1 && batch < 1 << 20, "the batch must lie between 1 and 2^20");
}

}  // namespace
