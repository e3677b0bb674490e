// Binding of alphabets, templates, and the readers of texts and of Python objects. Strings are passed as bytes; Python
// decodes them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/bind.hpp"
#include "text/alphabet.hpp"
#include "text/block_reader.hpp"
#include "text/error.hpp"
#include "text/json_members.hpp"
#include "text/reader.hpp"
#include "text/sequence_reader.hpp"
#include "text/templates.hpp"
#include "text/token_reader.hpp"

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

crfit::Strings checked(const Vector<uint8_t>& bytes, const Vector<int64_t>& offsets) {
  const char* message = "offsets must begin with 0, not fall, and end with the number of bytes";
  const int64_t n = static_cast<int64_t>(offsets.size()) - 1;
  require(n >= 0, message);
  crfit::check_offsets(offsets.data(), n, static_cast<int64_t>(bytes.size()), message);
  return {reinterpret_cast<const char*>(bytes.data()), offsets.data(), n};
}

nb::tuple arrays_of(const Alphabet& alphabet) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(alphabet.bytes().data());
  return nb::make_tuple(to_numpy(std::vector<uint8_t>(bytes, bytes + alphabet.bytes().size())),
                        to_numpy(std::vector<int64_t>(alphabet.offsets())));
}

// --- readers ---

nb::tuple read_texts(const std::vector<nb::bytes>& texts, crfit::Format format, const crfit::Template* templates,
                     bool labelled, const Alphabet* attributes, const Alphabet* labels, const Alphabet* edges,
                     int n_threads, const crfit::Features* features, int64_t n_columns,
                     const std::vector<int64_t>& lines_before) {
  require(lines_before.empty() || lines_before.size() == texts.size(), "lines_before needs a number for each text");
  if (format == crfit::Format::columns && templates == nullptr && features == nullptr)
    throw nb::value_error("column files need a template or features");
  if (format == crfit::Format::crfsuite && features != nullptr)
    throw nb::value_error("attribute files have no tokens for features");
  std::vector<std::string_view> views(texts.size());
  std::transform(texts.begin(), texts.end(), views.begin(), view);
  crfit::ReadOptions options;
  options.format = format;
  options.templates = format == crfit::Format::columns ? templates : nullptr;
  options.features = features;
  options.labelled = labelled;
  options.attributes = attributes;
  options.labels = labels;
  options.edges = edges;
  options.n_threads = n_threads;
  options.n_columns = n_columns;
  options.lines_before = lines_before;
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

nb::tuple json_members(const nb::bytes& text) {
  crfit::JsonMembers found;
  {
    nb::gil_scoped_release release;
    found = crfit::json_members(view(text));
  }
  return nb::make_tuple(to_numpy(std::move(found.line_ptr)), to_numpy(std::move(found.begins)),
                        to_numpy(std::move(found.key_ends)), to_numpy(std::move(found.ends)));
}

// TextError with args (message, text_id, line); the message may quote input that is not UTF-8.
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

// --- Python objects ---

nb::tuple read_sequences(nb::handle X, Alphabet& alphabet, bool grow, int n_threads) {
  crfit::Sequences found =
      grow ? crfit::read_growing(X.ptr(), alphabet, n_threads) : crfit::read_known(X.ptr(), alphabet, n_threads);
  const bool with_values = found.has_values;
  return nb::make_tuple(to_numpy(std::move(found.seq_ptr)), to_numpy(std::move(found.attr_ptr)),
                        to_numpy(std::move(found.attr_ids)),
                        to_numpy_or_none(std::move(found.attr_values), with_values), found.n_dropped);
}

// (kind, argument, column, resource), (name, [(atom, offset)]) and (is it a gazetteer, exact, lines)
using AtomRow = std::tuple<int32_t, int32_t, int32_t, int32_t>;
using RuleRow = std::pair<nb::bytes, std::vector<std::pair<int32_t, int32_t>>>;
using ResourceRow = std::tuple<bool, bool, nb::bytes>;

crfit::Features make_features(const std::vector<AtomRow>& atoms, const std::vector<RuleRow>& rules,
                              const std::vector<ResourceRow>& resources) {
  std::vector<crfit::Atom> own_atoms;
  for (const auto& [kind, argument, column, resource] : atoms)
    own_atoms.push_back({static_cast<crfit::AtomKind>(kind), argument, column, resource});
  std::vector<crfit::Rule> own_rules;
  for (const auto& [name, pieces] : rules) {
    crfit::Rule& rule = own_rules.emplace_back();
    rule.name = view(name);
    for (const auto& [atom, offset] : pieces) rule.pieces.push_back({atom, offset});
  }
  std::vector<crfit::Resource> own_resources;
  for (const auto& [gazetteer, exact, lines] : resources) {
    crfit::Resource& resource = own_resources.emplace_back();
    if (gazetteer) {
      resource.gazetteer = std::make_unique<crfit::Gazetteer>(view(lines), exact);
    } else {
      resource.clusters = std::make_unique<crfit::Clusters>(view(lines));
    }
  }
  return {std::move(own_atoms), std::move(own_rules), std::move(own_resources)};
}

nb::tuple read_tokens(nb::handle X, const crfit::Features& features, const Alphabet* attributes, int n_threads) {
  const crfit::Tokens tokens = crfit::tokens_of(X.ptr(), features.n_columns());
  crfit::ReadOptions options;
  options.features = &features;
  options.labelled = false;
  options.attributes = attributes;
  // Counting the cores would take longer than reading a sentence.
  options.n_threads = n_threads == 0 && tokens.cells.size() < 4096 ? 1 : n_threads;
  crfit::ParsedText found;
  {
    nb::gil_scoped_release release;
    found = crfit::read_tokens(tokens, options);
  }
  return nb::make_tuple(to_numpy(std::move(found.seq_ptr)), to_numpy(std::move(found.attr_ptr)),
                        to_numpy(std::move(found.attr_ids)), std::move(found.attribute_alphabet), found.n_dropped);
}

NumpyVector<int32_t> read_labels(nb::handle y, const Vector<int64_t>& seq_ptr, Alphabet& alphabet, bool flat) {
  const char* message = "seq_ptr must start with 0 and not fall";
  const int64_t n = static_cast<int64_t>(seq_ptr.size()) - 1;
  require(n >= 0, message);
  crfit::check_offsets(seq_ptr.data(), n, seq_ptr(n), message);
  crfit::LabelReader reader(alphabet, seq_ptr.data(), n);
  flat ? reader.read_flat(y.ptr()) : reader.read_nested(y.ptr());
  return to_numpy(std::move(reader.labels));
}

NumpyVector<int64_t> count_positions(const Vector<int64_t>& ptr, const Vector<int32_t>& ids, int64_t n) {
  return to_numpy(crfit::count_positions(ptr.data(), static_cast<int64_t>(ptr.size()) - 1, ids.data(),
                                         static_cast<int64_t>(ids.size()), n));
}

void bind_readers(nb::module_& m) {
  const nb::exception<crfit::TextError> text_error(m, "TextError", PyExc_ValueError);
  nb::register_exception_translator(translate_text_error, text_error.ptr());  // takes precedence over the one above

  // Locked against other threads where there is no GIL. Those of models do not grow, and are read without.
  nb::class_<Alphabet>(m, "Alphabet", "Byte strings and their ids, in order of first appearance.")
      .def(nb::init<>())
      .def(nb::init<const Alphabet&>(), "other"_a)
      .def("__len__", &Alphabet::size, nb::lock_self())
      .def("string", &string_of, "id"_a, nb::lock_self())
      .def(
          "find", [](const Alphabet& a, const nb::bytes& s) { return a.find(view(s)); }, "string"_a, nb::lock_self(),
          "Id of the string, or -1 if absent.")
      .def(
          "add", [](Alphabet& a, const nb::bytes& s) { return a.add(view(s)); }, "string"_a, nb::lock_self())
      .def(
          "find_all",
          [](const Alphabet& a, const Vector<uint8_t>& bytes, const Vector<int64_t>& offsets) {
            return to_numpy(a.find_all(checked(bytes, offsets)));
          },
          "bytes"_a, "offsets"_a)
      .def(
          "add_all",
          [](Alphabet& a, const Vector<uint8_t>& bytes, const Vector<int64_t>& offsets) {
            return to_numpy(a.add_all(checked(bytes, offsets)));
          },
          "bytes"_a, "offsets"_a, nb::lock_self())
      .def("arrays", &arrays_of, nb::lock_self(),
           nb::sig("def arrays(self) -> tuple[NDArray[numpy.uint8], NDArray[numpy.int64]]"),
           "All strings as (bytes, offsets).");

  nb::enum_<crfit::Dialect>(m, "Dialect").value("crfpp", crfit::Dialect::crfpp).value("wapiti", crfit::Dialect::wapiti);

  nb::class_<crfit::Template>(m, "Template", "Templates of CRF++ or Wapiti, ready to expand.")
      .def(
          "__init__",
          [](crfit::Template* t, const nb::bytes& text, crfit::Dialect dialect) {
            new (t) crfit::Template(view(text), dialect);
          },
          "text"_a, "dialect"_a)
      .def_prop_ro("n_attributes", [](const crfit::Template& t) { return t.attributes().size(); })
      .def_prop_ro("n_edges", [](const crfit::Template& t) { return t.edges().size(); })
      .def_prop_ro("n_columns", &crfit::Template::n_columns)
      .def_prop_ro("plain_transitions", &crfit::Template::plain_transitions);

  nb::class_<crfit::Features>(m, "Features", "Attributes of tokens, ready to make.")
      .def(
          "__init__",
          [](crfit::Features* f, const std::vector<AtomRow>& atoms, const std::vector<RuleRow>& rules,
             const std::vector<ResourceRow>& resources) {
            new (f) crfit::Features(make_features(atoms, rules, resources));
          },
          "atoms"_a, "rules"_a, "resources"_a)
      .def_prop_ro("n_columns", &crfit::Features::n_columns);

  nb::enum_<crfit::Format>(m, "Format")
      .value("columns", crfit::Format::columns)
      .value("crfsuite", crfit::Format::crfsuite)
      .value("jsonl", crfit::Format::jsonl);

  m.def(
      "count_columns", [](const nb::bytes& text) { return crfit::count_columns(view(text)); }, "text"_a,
      "Number of columns of the first non-blank row, or 0.");
  m.def("read_texts", &read_texts, "texts"_a, "format"_a, "template"_a.none(), "labelled"_a, "attributes"_a.none(),
        "labels"_a.none(), "edges"_a.none(), "n_threads"_a = 0, "features"_a.none() = nb::none(), "n_columns"_a = 0,
        "lines_before"_a = std::vector<int64_t>(),
        nb::sig("def read_texts(texts: list[bytes], format: Format, template: Template | None, labelled: bool, "
                "attributes: Alphabet | None, labels: Alphabet | None, edges: Alphabet | None, n_threads: int = 0, "
                "features: Features | None = None, n_columns: int = 0, "
                "lines_before: collections.abc.Sequence[int] = ()) -> "
                "tuple[dict[str, typing.Any], Alphabet, Alphabet, Alphabet, int]"),
        "Convert texts to (arrays, attribute alphabet, label alphabet, edge alphabet, n_dropped).\n\n"
        "Attributes and edges not in the given alphabets are dropped and counted; new labels are added to a copy.\n"
        "For texts that continue files: n_columns of the rows before them (0: unknown), and lines_before each text.");
  m.def("json_members", &json_members, "text"_a,
        nb::sig("def json_members(text: bytes) -> "
                "tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64]]"),
        "Members of the objects on the lines of a text: (line_ptr, begins, ends of the keys, ends).");
}

void bind_objects(nb::module_& m) {
  m.def("read_sequences", &read_sequences, nb::arg("X").none(), nb::arg("alphabet"), nb::arg("grow"),
        nb::arg("n_threads") = 0,
        nb::sig("def read_sequences(X: object, alphabet: Alphabet, grow: bool, n_threads: int = 0) -> "
                "tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int32], "
                "NDArray[numpy.float64] | None, int]"),
        "Convert sequences of items to (seq_ptr, attr_ptr, attr_ids, attr_values or None, n_dropped).\n\n"
        "grow: add new attributes to the alphabet; otherwise they are dropped and counted.");
  m.def("read_tokens", &read_tokens, nb::arg("X").none(), nb::arg("features"), nb::arg("attributes").none(),
        nb::arg("n_threads") = 0,
        nb::sig("def read_tokens(X: object, features: Features, attributes: Alphabet | None, n_threads: int = 0) -> "
                "tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int32], Alphabet, int]"),
        "Convert sequences of tokens to (seq_ptr, attr_ptr, attr_ids, new attributes, n_dropped).\n\n"
        "attributes: those not in this alphabet are dropped and counted; None: number new ones.");
  m.def("read_labels", &read_labels, nb::arg("y").none(), nb::arg("seq_ptr"), nb::arg("alphabet").lock(),
        nb::arg("flat"),
        "Label ids of the positions described by seq_ptr; new labels are added to the alphabet.\n\n"
        "flat: y is one list over all positions; otherwise one list per sequence.");
  m.def("count_positions", &count_positions, nb::arg("ptr"), nb::arg("ids"), nb::arg("n"),
        "Number of positions at which each of n attributes occurs.");
}

}  // namespace

void bind_text(nb::module_& m) {
  bind_readers(m);
  bind_objects(m);
}
