// Binding of tagging from Python sequences.
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "bind/bind.hpp"
#include "bind/decoder.hpp"
#include "tagging/tagger.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

struct PyTagger {
  nb::object decoder_owner, alphabet_owner, features_owner;
  std::vector<nb::object> labels;
  crfit::Tagger tagger;

  PyTagger(nb::object decoder, nb::object attributes, std::vector<nb::object> names, nb::object features)
      : decoder_owner(decoder),
        alphabet_owner(attributes),
        features_owner(features),
        labels(std::move(names)),
        tagger(nb::cast<PyDecoder&>(decoder).decoder, nb::cast<crfit::Alphabet&>(attributes), labels,
               features.is_none() ? nullptr : &nb::cast<const crfit::Features&>(features)) {
    const crfit::LayoutView& layout = nb::cast<Layout&>(nb::cast<PyDecoder&>(decoder).layout_owner).view;
    require(layout.order == 1, "the order must be 1");
    require(static_cast<int>(labels.size()) == layout.n_labels, "give the name of each label");
    for (const nb::object& label : labels) require(nb::isinstance<nb::str>(label), "names of labels must be str");
  }
};

}  // namespace

void bind_tagging(nb::module_& m) {
  nb::class_<PyTagger>(m, "Tagger", "Labels of Python sequences, with the names of a model of order 1.")
      .def(nb::init<nb::object, nb::object, std::vector<nb::object>, nb::object>(), "decoder"_a, "attributes"_a,
           "labels"_a, "features"_a.none() = nb::none())
      .def(
          "tag", [](const PyTagger& self, nb::handle x) { return self.tagger.tag(x.ptr()); }, nb::arg("x").none(),
          nb::sig("def tag(self, x: object) -> list[str]"))
      .def(
          "marginals", [](const PyTagger& self, nb::handle x) { return self.tagger.marginals(x.ptr()); },
          nb::arg("x").none(), nb::sig("def marginals(self, x: object) -> list[dict[str, float]]"))
      .def(
          "tag_many",
          [](const PyTagger& self, nb::handle X, int n_threads) {
            return self.tagger.tag_many(X.ptr(), checked_threads(n_threads));
          },
          nb::arg("X").none(), nb::arg("n_threads"),
          nb::sig("def tag_many(self, X: object, n_threads: int) -> list[list[str]]"));
}
