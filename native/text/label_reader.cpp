// Labels from Python lists: str, or -1 for None and sets, which crfit.data.label_sets reads afterwards. Other types
// would need a conversion back.
#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <string_view>

#include "text/python_objects.hpp"
#include "text/sequence_reader.hpp"

namespace nb = nanobind;

namespace crfit {
namespace {

nb::object list_of(PyObject* object, const char* rule, int64_t sequence) {
  nb::object list = is_no_list(object) ? nb::object() : as_list(object);
  if (!list.is_valid()) raise_data_error(std::string(rule) + ", not " + type_name(object), sequence, -1);
  return list;
}

void check_count(int64_t given, int64_t wanted, const char* of_y, const char* of_x, int64_t sequence) {
  if (given != wanted)
    raise_data_error(
        "y has " + std::to_string(given) + " " + of_y + " and X has " + std::to_string(wanted) + " " + of_x, sequence,
        -1);
}

}  // namespace

void LabelReader::read_nested(PyObject* y) {
  const nb::object sequences = list_of(y, "y must be a list with a list of labels for each sequence", -1);
  check_count(array_size(sequences.ptr()), n_sequences_, "sequences", "sequences", -1);
  for (int64_t i = 0; i < n_sequences_; ++i) {
    // An iterator over an earlier sequence may have run code that changed y.
    check_count(array_size(sequences.ptr()), n_sequences_, "sequences", "sequences", -1);
    const nb::object sequence = nb::borrow(array_item(sequences.ptr(), i));
    const nb::object labels_of = list_of(sequence.ptr(), "the labels of a sequence must be a list of str", i);
    const int64_t length = seq_ptr_[i + 1] - seq_ptr_[i];
    // Before reading the first label, so the message is about the list and not about one label.
    check_count(array_size(labels_of.ptr()), length, "labels", "positions", i);
    for (int64_t t = 0; t < length; ++t) add(array_item(labels_of.ptr(), t), i, t);
  }
}

void LabelReader::read_flat(PyObject* y) {
  const nb::object labels_of = list_of(y, "y must be a list of str, one label for each position", -1);
  check_count(array_size(labels_of.ptr()), seq_ptr_[n_sequences_], "labels", "positions", -1);
  for (int64_t i = 0; i < n_sequences_; ++i)
    for (int64_t n = seq_ptr_[i]; n < seq_ptr_[i + 1]; ++n) add(array_item(labels_of.ptr(), n), i, n - seq_ptr_[i]);
}

// Runs no Python code unless it raises, so the enclosing list keeps its size.
void LabelReader::add(PyObject* label, int64_t sequence, int64_t position) {
  if (!PyUnicode_Check(label)) {
    if (label == Py_None || PyAnySet_Check(label)) {
      labels.push_back(-1);
      return;
    }
    const nb::object held = nb::borrow(label);
    raise_data_error("a label must be a str, not " + type_name(label) + " " + shown(label), sequence, position);
  }
  nb::object holder;
  const std::optional<std::string_view> bytes = text_bytes(label, holder);
  if (!bytes)
    raise_data_error("label " + shown(label) + " has surrogate code points that cannot be written as UTF-8", sequence,
                     position);
  labels.push_back(alphabet_.add(*bytes));
}

}  // namespace crfit
