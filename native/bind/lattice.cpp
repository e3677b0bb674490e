// Binding of inference with fixed weights: checks shapes, releases the GIL and calls the core.
#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>
#include <vector>

#include "bind/bind.hpp"
#include "bind/decoder.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Out2 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Out3 = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

using Masks = std::optional<nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>>;

// The data without its labels, which may be unknown to the model, and with the labels that positions may have.
crfit::DataView masked(const Data& data, int n_labels, const OptionalVector<int32_t>& mask_of, const Masks& masks) {
  crfit::DataView view = data.view;
  view.labels = nullptr;
  require(mask_of.has_value() == masks.has_value(), "mask_of and masks go together");
  if (!masks) return view;
  require(static_cast<int64_t>(mask_of->size()) == view.n_positions, "mask_of must have one row per position");
  require(static_cast<int>(masks->shape(1)) == n_labels, "masks must have a column per label");
  crfit::check_rows(mask_of->data(), view.n_positions, static_cast<int64_t>(masks->shape(0)),
                    "mask_of must be -1 or a row of masks");
  view.mask_of = mask_of->data();
  view.masks = masks->data();
  return view;
}

void infer(const PyDecoder& self, const Data& data, int n_threads, std::optional<OutVector<int32_t>> best,
           std::optional<OutVector<double>> best_score, std::optional<OutVector<double>> log_z,
           std::optional<Out2> nodes, std::optional<Out3> pairs, std::optional<OutVector<double>> path_score,
           OptionalVector<int32_t> mask_of, Masks masks) {
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
  crfit::DataView view = masked(data, Y, mask_of, masks);
  if (path_score) view.labels = data.view.labels;
  nb::gil_scoped_release release;
  self.decoder.infer(view, n_threads, job);
}

using PathList = nb::typed<nb::list, nb::typed<nb::tuple, NumpyVector<int32_t>, double>>;

// list over sequences of list of (labels, log probability)
nb::typed<nb::list, PathList> nbest(const PyDecoder& self, const Data& data, int n, int n_threads,
                                    OptionalVector<int32_t> mask_of, Masks masks) {
  require(n >= 1, "n must be at least 1");
  checked_threads(n_threads);
  std::vector<std::vector<crfit::Path>> found;
  {
    const crfit::DataView view = masked(data, self.decoder.n_labels(), mask_of, masks);
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

void bind_lattice(nb::module_& m) {
  m.def(
      "few_pairs", [](const Layout& layout) { return crfit::few_pairs(layout.view); }, "layout"_a,
      "Whether steps on single sequences list the label pairs that have a weight.");
  nb::class_<PyDecoder>(m, "Decoder", "Inference with fixed weights.")
      .def(nb::init<nb::object, Vector<double>>(), "layout"_a, "weights"_a.noconvert())
      .def("infer", &infer, "data"_a, "n_threads"_a, "best"_a.noconvert() = nb::none(),
           "best_score"_a.noconvert() = nb::none(), "log_z"_a.noconvert() = nb::none(),
           "node_marginals"_a.noconvert() = nb::none(), "pair_marginals"_a.noconvert() = nb::none(),
           "path_score"_a.noconvert() = nb::none(), "mask_of"_a = nb::none(), "masks"_a = nb::none())
      .def("nbest", &nbest, "data"_a, "n"_a, "n_threads"_a, "mask_of"_a = nb::none(), "masks"_a = nb::none());
}
