// Alphabets, templates and the text readers. Strings cross as bytes: what they mean is decided in Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "alphabet.hpp"
#include "bind.hpp"
#include "bind_arrays.hpp"
#include "reader.hpp"
#include "templates.hpp"
#include "text_error.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using crfit::Alphabet;

namespace {

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

template <class T>
nb::object to_numpy_or_none(std::vector<T>&& values, bool present) {
  return present ? nb::cast(to_numpy(std::move(values))) : nb::none();
}

// --- alphabets ---

nb::bytes string_of(const Alphabet& alphabet, int64_t id) {
  if (id < 0 || id >= alphabet.size()) throw nb::index_error("no string has this id");
  const std::string_view s = alphabet[id];
  return nb::bytes(s.data(), s.size());
}

// Strings that stand back to back in `bytes`, string i in bytes[offsets[i]:offsets[i + 1]].
struct Strings {
  const char* bytes;
  const int64_t* offsets;
  int64_t size;
  std::string_view operator[](int64_t i) const {
    return {bytes + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
  }
};

Strings checked(const Vector<uint8_t>& bytes, const Vector<int64_t>& offsets) {
  const int64_t* first = offsets.data();
  const int64_t* last = first + offsets.size();
  if (first == last || *first != 0 || last[-1] != static_cast<int64_t>(bytes.size()) || !std::is_sorted(first, last))
    throw nb::value_error("offsets must begin with 0, not fall, and end with the number of bytes");
  return {reinterpret_cast<const char*>(bytes.data()), first, static_cast<int64_t>(offsets.size()) - 1};
}

template <class Look>
NumpyVector<int32_t> ids_of(const Strings& strings, Look look) {
  std::vector<int32_t> ids(static_cast<std::size_t>(strings.size));
  for (int64_t i = 0; i < strings.size; ++i) ids[static_cast<std::size_t>(i)] = look(strings[i]);
  return to_numpy(std::move(ids));
}

nb::tuple arrays_of(const Alphabet& alphabet) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(alphabet.bytes().data());
  return nb::make_tuple(to_numpy(std::vector<uint8_t>(bytes, bytes + alphabet.bytes().size())),
                        to_numpy(std::vector<int64_t>(alphabet.offsets())));
}

// --- readers ---

nb::tuple read_texts(const std::vector<nb::bytes>& texts, crfit::Format format, const crfit::Template* templates,
                     bool labelled, const Alphabet* attributes, const Alphabet* labels, const Alphabet* edges,
                     int n_threads) {
  if (format == crfit::Format::columns && templates == nullptr) throw nb::value_error("column files need a template");
  std::vector<std::string_view> views(texts.size());
  std::transform(texts.begin(), texts.end(), views.begin(), view);
  crfit::ReadOptions options;
  options.format = format;
  options.templates = format == crfit::Format::columns ? templates : nullptr;
  options.labelled = labelled;
  options.attributes = attributes;
  options.labels = labels;
  options.edges = edges;
  options.n_threads = n_threads;
  crfit::ParsedText parsed;
  {
    nb::gil_scoped_release release;
    parsed = crfit::read_texts(views, options);
  }
  const bool with_values = !parsed.attr_values.empty(), with_edges = !parsed.edge_ptr.empty();
  const bool with_weights = !parsed.sequence_weights.empty();
  nb::dict arrays;
  arrays["seq_ptr"] = to_numpy(std::move(parsed.seq_ptr));
  arrays["attr_ptr"] = to_numpy(std::move(parsed.attr_ptr));
  arrays["attr_ids"] = to_numpy(std::move(parsed.attr_ids));
  arrays["attr_values"] = to_numpy_or_none(std::move(parsed.attr_values), with_values);
  arrays["labels"] = to_numpy_or_none(std::move(parsed.labels), labelled);
  arrays["edge_ptr"] = to_numpy_or_none(std::move(parsed.edge_ptr), with_edges);
  arrays["edge_ids"] = to_numpy_or_none(std::move(parsed.edge_ids), with_edges);
  arrays["sequence_weights"] = to_numpy_or_none(std::move(parsed.sequence_weights), with_weights);
  arrays["line_numbers"] = to_numpy(std::move(parsed.line_numbers));
  return nb::make_tuple(arrays, std::move(parsed.attribute_alphabet), std::move(parsed.label_alphabet),
                        std::move(parsed.edge_alphabet), parsed.n_dropped);
}

// TextError with args (message, text_id, line); the message may quote input that is no UTF-8.
void translate_text_error(const std::exception_ptr& pointer, void* type) {
  try {
    std::rethrow_exception(pointer);
  } catch (const crfit::TextError& error) {
    const std::string_view message = error.what();
    const nb::object text =
        nb::steal(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
    if (!text.is_valid()) return;
    PyErr_SetObject(static_cast<PyObject*>(type), nb::make_tuple(text, error.text_id, error.line).ptr());
  }
}

}  // namespace

void bind_text(nb::module_& m) {
  const nb::exception<crfit::TextError> text_error(m, "TextError", PyExc_ValueError);
  nb::register_exception_translator(translate_text_error, text_error.ptr());  // asked before the one made above

  nb::class_<Alphabet>(m, "Alphabet", "Byte strings and their ids, in order of first appearance.")
      .def(nb::init<>())
      .def(nb::init<const Alphabet&>(), "other"_a)
      .def("__len__", &Alphabet::size)
      .def("string", &string_of, "id"_a)
      .def(
          "find", [](const Alphabet& a, const nb::bytes& s) { return a.find(view(s)); }, "string"_a,
          "Id of the string, -1 when absent.")
      .def(
          "add", [](Alphabet& a, const nb::bytes& s) { return a.add(view(s)); }, "string"_a)
      .def(
          "find_all",
          [](const Alphabet& a, const Vector<uint8_t>& bytes, const Vector<int64_t>& offsets) {
            return ids_of(checked(bytes, offsets), [&](std::string_view s) { return a.find(s); });
          },
          "bytes"_a, "offsets"_a)
      .def(
          "add_all",
          [](Alphabet& a, const Vector<uint8_t>& bytes, const Vector<int64_t>& offsets) {
            const Strings strings = checked(bytes, offsets);
            a.reserve(a.size() + strings.size, static_cast<int64_t>(a.bytes().size() + bytes.size()));
            return ids_of(strings, [&](std::string_view s) { return a.add(s); });
          },
          "bytes"_a, "offsets"_a)
      .def("arrays", &arrays_of, nb::sig("def arrays(self) -> tuple[NDArray[numpy.uint8], NDArray[numpy.int64]]"),
           "All strings as (bytes, offsets).");

  nb::class_<crfit::Template>(m, "Template", "CRF++ templates, ready to expand.")
      .def(
          "__init__", [](crfit::Template* t, const nb::bytes& text) { new (t) crfit::Template(view(text)); }, "text"_a)
      .def_prop_ro("n_attributes", [](const crfit::Template& t) { return t.attributes().size(); })
      .def_prop_ro("n_edges", [](const crfit::Template& t) { return t.edges().size(); })
      .def_prop_ro("n_columns", &crfit::Template::n_columns)
      .def_prop_ro("plain_transitions", &crfit::Template::plain_transitions);

  nb::enum_<crfit::Format>(m, "Format")
      .value("columns", crfit::Format::columns)
      .value("crfsuite", crfit::Format::crfsuite)
      .value("jsonl", crfit::Format::jsonl);

  m.def(
      "count_columns", [](const nb::bytes& text) { return crfit::count_columns(view(text)); }, "text"_a,
      "Number of columns of the first row that is not blank, 0 if there is none.");
  m.def("read_texts", &read_texts, "texts"_a, "format"_a, "template"_a.none(), "labelled"_a, "attributes"_a.none(),
        "labels"_a.none(), "edges"_a.none(), "n_threads"_a = 0,
        nb::sig("def read_texts(texts: list[bytes], format: Format, template: Template | None, labelled: bool, "
                "attributes: Alphabet | None, labels: Alphabet | None, edges: Alphabet | None, n_threads: int = 0) -> "
                "tuple[dict[str, typing.Any], Alphabet, Alphabet, Alphabet, int]"),
        "Texts to (arrays, attribute alphabet, label alphabet, edge alphabet, n_dropped).\n\n"
        "Attributes and edges not in the given alphabets are dropped and counted, labels are added to a copy.");
}
