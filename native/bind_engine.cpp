// Binding of the engine: array shapes and index ranges are checked here, the GIL is released, the core is called.
// Weight-sized arguments are never converted: a copy of an output would be lost, one of an input would cost a sweep.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind.hpp"
#include "bind_views.hpp"
#include "core.hpp"
#include "decoder.hpp"
#include "pool.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// Batch and Decoder hold views into arrays: these keep the owners alive.
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

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

struct PyDecoder {
  nb::object layout_owner;
  Vector<double> weights;
  crfit::Decoder decoder;

  PyDecoder(nb::object layout_object, Vector<double> w)
      : layout_owner(layout_object), weights(w), decoder(view_of(layout_object, w), w.data()) {}

  static const crfit::LayoutView& view_of(const nb::object& layout_object, const Vector<double>& w) {
    const crfit::LayoutView& layout = nb::cast<Layout&>(layout_object).view;
    check_weights(w, layout);
    return layout;
  }
};

using Out2 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out3 = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void infer(const PyDecoder& self, const Data& data, int n_threads, std::optional<OutVector<int32_t>> best,
           std::optional<OutVector<double>> best_score, std::optional<OutVector<double>> log_z,
           std::optional<Out2> nodes, std::optional<Out3> pairs, std::optional<OutVector<double>> path_score) {
  const int Y = nb::cast<Layout&>(self.layout_owner).view.n_labels;
  checked_threads(n_threads);
  const std::size_t S = static_cast<std::size_t>(data.view.n_sequences),
                    N = static_cast<std::size_t>(data.view.n_positions);
  const std::size_t labels = static_cast<std::size_t>(Y);
  require(best.has_value() == best_score.has_value(), "best and best_score go together");
  require(!best || (best->size() == N && best_score->size() == S), "best or best_score has a wrong shape");
  require(!log_z || log_z->size() == S, "log_z has a wrong shape");
  require((!nodes && !pairs) || log_z, "marginals need log_z");
  require(!nodes || (nodes->shape(0) == N && nodes->shape(1) == labels), "node marginals have a wrong shape");
  require(!pairs || (pairs->shape(0) == N && pairs->shape(1) == labels && pairs->shape(2) == labels),
          "pair marginals have a wrong shape");
  require(!path_score || path_score->size() == S, "path_score has a wrong shape");
  if (path_score) data.check_labels(Y);
  crfit::InferenceJob job;
  job.best = best ? best->data() : nullptr;
  job.best_score = best ? best_score->data() : nullptr;
  job.log_z = log_z ? log_z->data() : nullptr;
  job.node_marginals = nodes ? nodes->data() : nullptr;
  job.pair_marginals = pairs ? pairs->data() : nullptr;
  job.path_score = path_score ? path_score->data() : nullptr;
  crfit::DataView view = data.view;
  if (!path_score) view.labels = nullptr;  // held-out labels may lie outside the label set
  nb::gil_scoped_release release;
  self.decoder.infer(view, n_threads, job);
}

using PathList = nb::typed<nb::list, nb::typed<nb::tuple, NumpyVector<int32_t>, double>>;

// list over sequences of list of (labels, log probability)
nb::typed<nb::list, PathList> nbest(const PyDecoder& self, const Data& data, int n, int n_threads) {
  require(n >= 1, "n must be at least 1");
  checked_threads(n_threads);
  std::vector<std::vector<crfit::Path>> found;
  {
    crfit::DataView view = data.view;
    view.labels = nullptr;
    nb::gil_scoped_release release;
    found = self.decoder.nbest(view, n, n_threads);
  }
  nb::typed<nb::list, PathList> result;
  for (std::vector<crfit::Path>& paths : found) {
    PathList entries;
    for (crfit::Path& path : paths)
      entries.append(nb::make_tuple(to_numpy(std::move(path.labels)), path.log_probability));
    result.append(entries);
  }
  return result;
}

}  // namespace

void bind_engine(nb::module_& m) {
  m.def(
      "cpu_level", [] { return std::string(crfit::kernel_level()); }, "CPU level of the kernels in use: v2, v3 or v4.");
  m.def(
      "choose_cpu_level", [](const std::string& name) { crfit::choose_level(name.c_str()); }, "name"_a,
      "Switch to the kernels of another CPU level.");
  m.def("available_threads", &crfit::available_threads, "Cores that this process may use.");

  nb::class_<Data>(m, "Data", "Views of a dataset's arrays.")
      .def(nb::init<Vector<int64_t>, Vector<int64_t>, Vector<int32_t>, OptionalVector<double>, OptionalVector<int32_t>,
                    OptionalVector<int64_t>, OptionalVector<int32_t>, OptionalVector<double>>(),
           "seq_ptr"_a, "attr_ptr"_a, "attr_ids"_a, "attr_values"_a.none(), "labels"_a.none(), "edge_ptr"_a.none(),
           "edge_ids"_a.none(), "weights"_a.none());

  nb::class_<Layout>(m, "Layout", "Views of a weight layout's arrays.")
      .def(nb::init<int, int64_t, int64_t, OptionalVector<int64_t>, OptionalVector<int32_t>,
                    std::vector<OptionalVector<int64_t>>, OptionalVector<int64_t>, OptionalVector<int32_t>, bool,
                    int64_t>(),
           "n_labels"_a, "n_attributes"_a, "n_edge_attributes"_a, "state_ptr"_a.none(), "state_labels"_a.none(),
           "transition_codes"_a, "pair_ptr"_a.none(), "pair_codes"_a.none(), "boundary"_a, "n_free"_a = 0)
      .def_prop_ro("n_weights", [](const Layout& self) { return self.view.n_weights; });

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
          [](PyBatch& self, bool pairs, int64_t max_sequences, int64_t max_bytes, bool at_gradients, bool propagate) {
            self.core->keep_curvature(pairs, max_sequences, max_bytes, at_gradients, propagate);
          },
          "pairs"_a, "max_sequences"_a, "max_bytes"_a, "at_gradients"_a, "propagate"_a)
      .def_prop_ro("n_distinct", [](const PyBatch& self) { return self.core->n_distinct(); })
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
          "phase_seconds",
          [](const PyBatch& self) {
            const crfit::PhaseSeconds& seconds = self.core->seconds();
            return std::tuple(seconds.scores, seconds.lattice, seconds.gather);
          },
          "Wall time of all calls so far: scores, lattice, gather.");

  nb::class_<PyDecoder>(m, "Decoder", "Inference with fixed weights.")
      .def(nb::init<nb::object, Vector<double>>(), "layout"_a, "weights"_a.noconvert())
      .def("infer", &infer, "data"_a, "n_threads"_a, "best"_a.noconvert() = nb::none(),
           "best_score"_a.noconvert() = nb::none(), "log_z"_a.noconvert() = nb::none(),
           "node_marginals"_a.noconvert() = nb::none(), "pair_marginals"_a.noconvert() = nb::none(),
           "path_score"_a.noconvert() = nb::none())
      .def("nbest", &nbest, "data"_a, "n"_a, "n_threads"_a);
}
