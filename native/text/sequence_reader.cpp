#include "text/sequence_reader.hpp"

#include <nanobind/nanobind.h>

#include <cmath>
#include <optional>
#include <string_view>

#include "text/python_objects.hpp"

namespace nb = nanobind;

namespace crfit {
namespace {

constexpr std::size_t kBlockNames = std::size_t{1} << 18;    // names per block: some MB, which stay in the cache
constexpr std::size_t kBlockBytes = std::size_t{1} << 24;    // or bytes per block, whichever comes first
constexpr std::size_t kReleaseNames = std::size_t{1} << 12;  // below this, releasing the GIL costs more than it saves
constexpr int kMaxDepth = 64;                                // of nested values; stops at a dict that contains itself

}  // namespace

void SequenceReader::fail(const std::string& message) const { raise_data_error(message, sequence_, position_); }

bool SequenceReader::read_sequence(PyObject* sequence, int64_t number) {
  sequence_ = number;
  position_ = -1;
  if (is_no_list(sequence))
    fail("a sequence must be a list of items, not " + type_name(sequence) +
         "; X is a list of sequences: one sequence x is given as [x]");
  const nb::object items = as_list(sequence);
  if (!items.is_valid()) fail("a sequence must be a list of items, not " + type_name(sequence));
  if (array_size(items.ptr()) == 0) {
    if (allow_empty_) return false;
    fail("the sequence is empty; leave it out");
  }
  for (Py_ssize_t t = 0; t < array_size(items.ptr()); ++t) {
    position_ = t;
    const nb::object item = nb::borrow(array_item(items.ptr(), t));
    read_item(item.ptr());
    found.attr_ptr.push_back(static_cast<int64_t>(n_read()));
    // Names are copied with the GIL and looked up in blocks without it, on all threads: looking up each name at once
    // would cost a cache miss each and block other Python threads.
    if (names_.size() >= kBlockNames || names_.bytes.size() >= kBlockBytes) intern_block();
  }
  found.seq_ptr.push_back(static_cast<int64_t>(found.attr_ptr.size()) - 1);
  return true;
}

void SequenceReader::finish() {
  intern_block();
  if (growing_ == nullptr) found.drop_unknown();
  found.drop_ones();
}

void SequenceReader::read_item(PyObject* item) {
  if (is_array(item)) {
    read_names(unshared_array(item).ptr());
  } else if (iterates_as_dict(item)) {
    read_dict(item);
  } else if (PyAnySet_Check(item)) {
    read_set(item);
  } else if (is_text(item)) {
    fail("an item must be a list, tuple or set of str or a dict, not " + type_name(item) + " " + shown(item) +
         "; X is a list of sequences of items: one sequence x is given as [x], one attribute a as the item [a]; "
         "features='default' makes the attributes of tokens");
  } else if (is_mapping(item)) {
    read_mapping(item);
  } else {
    const nb::object list = as_list(item);
    if (!list.is_valid())
      fail("an item must be a list, tuple or set of str or a dict, not " + type_name(item) +
           "; numeric arrays go through Dataset.from_csr or Dataset.from_dense");
    read_names(list.ptr());
  }
}

// Strings of a list or tuple, each with the current prefix and value 1.
void SequenceReader::read_names(PyObject* container) {
  constexpr Py_ssize_t kAhead = 6;  // strings are all over the heap: prefetch some
  for (Py_ssize_t i = 0; i < array_size(container); ++i) {
    if (i + kAhead < array_size(container)) __builtin_prefetch(array_item(container, i + kAhead));
    PyObject* name = array_item(container, i);
    if (!is_text(name)) {
      const nb::object held = nb::borrow(name);
      fail("an attribute must be a str, not " + type_name(name) + " " + shown(name) +
           "; attributes with values are given as a dict");
    }
    add_name(name, 1.0);
  }
}

void SequenceReader::read_set(PyObject* set) {
  const nb::object elements = nb::steal(PySequence_List(set));
  if (!elements.is_valid()) throw nb::python_error();
  // Sets iterate by hash, which differs between runs for str: sort, so ids and models are reproducible.
  const std::size_t first = names_.size();
  read_names(elements.ptr());
  names_.sort_from(first);
}

void SequenceReader::read_dict(PyObject* shared) {
  const nb::object held = unshared_dict(shared);
  PyObject* const dict = held.ptr();
  const Py_ssize_t size = PyDict_Size(dict);
  Py_ssize_t cursor = 0;
  PyObject *key = nullptr, *value = nullptr;
  while (PyDict_Next(dict, &cursor, &key, &value)) {
    read_pair(key, value);
    // A value's __float__ may run any code.
    if (PyDict_Size(dict) != size) fail("the dict changed while it was read");
  }
}

void SequenceReader::read_mapping(PyObject* mapping) {
  const nb::object pairs = nb::steal(PyMapping_Items(mapping));
  if (!pairs.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < array_size(pairs.ptr()); ++i) {
    const nb::object pair = nb::borrow(array_item(pairs.ptr(), i));
    if (!PyTuple_Check(pair.ptr()) || array_size(pair.ptr()) != 2)
      fail("items() of " + type_name(mapping) + " must give (name, value) pairs");
    read_pair(array_item(pair.ptr(), 0), array_item(pair.ptr(), 1));
  }
}

// Values that run no Python code come first and need no extra reference.
void SequenceReader::read_pair(PyObject* key, PyObject* value) {
  if (!is_text(key)) {
    const nb::object held = nb::borrow(key);
    fail("a dict key must be a str, not " + type_name(key) + " " + shown(key));
  }
  if (is_text(value)) {
    names_.bytes.append(prefix_);
    append(key, "attribute", names_.bytes);
    names_.bytes.push_back(':');
    append(value, "value", names_.bytes);
    close_name(1.0);
  } else if (PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value)) {
    add_name(key, number(key, value));
  } else {
    const nb::object held_key = nb::borrow(key), held_value = nb::borrow(value);
    read_nested(key, value);
  }
}

void SequenceReader::read_nested(PyObject* key, PyObject* value) {
  const bool container = PyDict_Check(value) || is_array(value) || PyAnySet_Check(value);
  if (!container && is_number(value)) {
    add_name(key, number(key, value));
    return;
  }
  if (!container && !is_mapping(value))
    fail("attribute " + shown(key) + " has a value of type " + type_name(value) +
         "; a value is a number, a str, or a dict, list or set of attributes");
  if (++depth_ > kMaxDepth)
    fail("attribute " + shown(key) + " is nested deeper than " + std::to_string(kMaxDepth) +
         " levels; does a dict contain itself?");
  // {"a": {"b": 2}} is the attribute "a:b" with value 2: the prefix is "a:" while the inner dict is read.
  const std::size_t outer = prefix_.size();
  append(key, "attribute", prefix_);
  prefix_.push_back(':');
  if (is_array(value)) {
    read_names(unshared_array(value).ptr());
  } else if (PyAnySet_Check(value)) {
    read_set(value);
  } else if (iterates_as_dict(value)) {
    read_dict(value);
  } else {
    read_mapping(value);
  }
  prefix_.resize(outer);
  --depth_;
}

double SequenceReader::number(PyObject* key, PyObject* value) const {
  const double v = PyFloat_AsDouble(value);
  if (v == -1.0 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
        !PyErr_ExceptionMatches(PyExc_OverflowError))
      throw nb::python_error();
    nb::python_error cause;  // saved, because the message calls repr
    const std::string message =
        "attribute " + shown(key) + " has a value of type " + type_name(value) + " that does not convert to a float";
    cause.restore();
    fail(message);
  }
  if (!std::isfinite(v))
    fail("attribute " + shown(key) + " has the value " + std::to_string(v) + "; values must be finite");
  return v;
}

void SequenceReader::append(PyObject* text, const char* role, std::string& target) const {
  nb::object holder;
  const std::optional<std::string_view> bytes = text_bytes(text, holder);
  if (!bytes)
    fail(std::string(role) + " " + shown(text) +
         " has surrogate code points that cannot be written as UTF-8; "
         "only those made by errors='surrogateescape' (U+DC80 to U+DCFF) can");
  target.append(*bytes);
}

void SequenceReader::add_name(PyObject* name, double value) {
  if (!prefix_.empty()) names_.bytes.append(prefix_);
  append(name, "attribute", names_.bytes);
  close_name(value);
}

void SequenceReader::close_name(double value) {
  found.add_value(value, n_read());
  names_.close();
}

void SequenceReader::intern_block() {
  const std::size_t first = found.attr_ids.size();
  found.attr_ids.resize(n_read());
  const auto intern = [&] {
    int32_t* ids = found.attr_ids.data() + first;
    growing_ != nullptr ? add_names(names_, *growing_, n_threads_, ids)
                        : find_names(names_, alphabet_, n_threads_, ids);
  };
  if (names_.size() < kReleaseNames) {
    intern();
  } else {
    {
      nb::gil_scoped_release release;
      intern();
    }
    // Ctrl-C, between blocks.
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  names_.clear();
}

Sequences read_growing(PyObject* X, Alphabet& alphabet, int n_threads) {
  const nb::object sequences = list_of_sequences(X);
  SequenceReader reader(alphabet, n_threads);
  for (Py_ssize_t i = 0; i < array_size(sequences.ptr()); ++i) {
    const nb::object sequence = nb::borrow(array_item(sequences.ptr(), i));
    reader.read_sequence(sequence.ptr(), i);
  }
  reader.finish();
  return std::move(reader.found);
}

}  // namespace crfit
