#include "text/token_reader.hpp"

#include <optional>
#include <string>

#include "text/python_objects.hpp"

namespace nb = nanobind;

namespace crfit {
namespace {

constexpr int64_t kCheckTokens = int64_t{1} << 16;  // between two looks for Ctrl-C

void append_cell(PyObject* text, int64_t sequence, int64_t position, Tokens& out) {
  const nb::object held = nb::borrow(text);
  if (!is_text(text))
    raise_data_error(
        "a token must be a str, not " + type_name(text) + " " + shown(text) + "; the features make its attributes",
        sequence, position);
  nb::object holder;
  const std::optional<std::string_view> bytes = text_bytes(text, holder);
  if (!bytes)
    raise_data_error("token " + shown(text) +
                         " has surrogate code points that cannot be written as UTF-8; "
                         "only those made by errors='surrogateescape' (U+DC80 to U+DCFF) can",
                     sequence, position);
  out.cells.bytes.append(*bytes);
  out.cells.close();
}

}  // namespace

bool append_tokens(PyObject* sequence, int64_t number, bool allow_empty, int64_t n_columns, Tokens& out) {
  if (is_no_list(sequence))
    raise_data_error("a sequence must be a list of tokens, not " + type_name(sequence) +
                         (is_text(sequence) ? "; split a text into tokens first, for example with split()" : ""),
                     number, -1);
  const nb::object tokens = as_list(sequence);
  if (!tokens.is_valid())
    raise_data_error("a sequence must be a list of tokens, not " + type_name(sequence), number, -1);
  if (array_size(tokens.ptr()) == 0) {
    if (allow_empty) return false;
    raise_data_error("the sequence is empty; leave it out", number, -1);
  }
  int64_t t = 0;
  for (; t < array_size(tokens.ptr()); ++t) {
    nb::object token = nb::borrow(array_item(tokens.ptr(), t));
    const bool several = is_array(token.ptr());
    if (several) token = unshared_array(token.ptr());
    if (!several && n_columns == 1) {
      append_cell(token.ptr(), number, t, out);
      continue;
    }
    if (!several || array_size(token.ptr()) != n_columns) {
      const std::string wanted = n_columns == 1 ? "a token must be a str; the features make its attributes"
                                                : "the features use " + std::to_string(n_columns) +
                                                      " columns: give each token as a list or tuple of as many str";
      raise_data_error(wanted + ", not " + type_name(token.ptr()) + " " + shown(token.ptr()), number, t);
    }
    for (int64_t c = 0; c < n_columns; ++c) append_cell(array_item(token.ptr(), c), number, t, out);
  }
  out.seq_ptr.push_back(out.seq_ptr.back() + t);
  return true;
}

Tokens tokens_of(PyObject* X, int64_t n_columns) {
  const nb::object sequences = list_of_sequences(X);
  Tokens tokens;
  int64_t checked = 0;
  for (Py_ssize_t i = 0; i < array_size(sequences.ptr()); ++i) {
    const nb::object sequence = nb::borrow(array_item(sequences.ptr(), i));
    append_tokens(sequence.ptr(), i, false, n_columns, tokens);
    if (tokens.seq_ptr.back() - checked < kCheckTokens) continue;
    checked = tokens.seq_ptr.back();
    {
      nb::gil_scoped_release release;  // lets other Python threads run
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return tokens;
}

void append_attributes(Extractor& extractor, const Names& cells, int64_t n_columns,
                       std::vector<std::string_view>& views, Sequences& out) {
  views.clear();
  for (std::size_t i = 0; i < cells.size(); ++i) views.push_back(cells[i]);
  const int64_t n_rows = static_cast<int64_t>(views.size()) / n_columns;
  extractor.begin(Cells{views.data(), n_rows, n_columns});
  for (int64_t t = 0; t < n_rows; ++t) {
    extractor.make(t);
    out.attr_ids.insert(out.attr_ids.end(), extractor.ids.begin(), extractor.ids.end());
    out.attr_ptr.push_back(static_cast<int64_t>(out.attr_ids.size()));
  }
  out.seq_ptr.push_back(static_cast<int64_t>(out.attr_ptr.size()) - 1);
}

bool read_token_sequence(PyObject* sequence, int64_t number, bool allow_empty, const Features& features,
                         const Alphabet& alphabet, Sequences& out) {
  Tokens tokens;
  if (!append_tokens(sequence, number, allow_empty, features.n_columns(), tokens)) return false;
  Extractor extractor(features, alphabet);
  std::vector<std::string_view> views;
  append_attributes(extractor, tokens.cells, features.n_columns(), views, out);
  return true;
}

}  // namespace crfit
