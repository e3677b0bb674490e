#include "text/plain_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "text/python_objects.hpp"
#include "text/token_reader.hpp"

namespace crfit {
namespace {

constexpr int kMaxDepth = 16;  // of nested values

// Strings are all over the heap: some are prefetched, with the line after the one with the header.
constexpr Py_ssize_t kAhead = 8;
void prefetch_text(const PyObject* text) {
  __builtin_prefetch(text);
  __builtin_prefetch(reinterpret_cast<const char*>(text) + 63);
}

// UTF-8 with surrogateescape; null for other surrogates.
template <class Char>
char* encode(const Char* text, Py_ssize_t size, char* out) {
  for (Py_ssize_t i = 0; i < size; ++i) {
    const uint32_t c = text[i];
    if (c < 0x80) {
      *out++ = static_cast<char>(c);
    } else if (c < 0x800) {
      *out++ = static_cast<char>(0xC0 | c >> 6);
      *out++ = static_cast<char>(0x80 | (c & 0x3F));
    } else if (c >= 0xD800 && c < 0xE000) {
      if (c < 0xDC80 || c > 0xDCFF) return nullptr;
      *out++ = static_cast<char>(c & 0xFF);
    } else {
      if (c < 0x10000) {
        *out++ = static_cast<char>(0xE0 | c >> 12);
      } else {
        *out++ = static_cast<char>(0xF0 | c >> 18);
        *out++ = static_cast<char>(0x80 | (c >> 12 & 0x3F));
      }
      *out++ = static_cast<char>(0x80 | (c >> 6 & 0x3F));
      *out++ = static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return out;
}

// The value of a number whose type cannot run code; false for others and if it is not finite.
bool plain_number(PyObject* object, double& value) {
  if (PyFloat_Check(object)) {
    value = float_value(object);
    return std::isfinite(value);
  }
  if (!PyLong_CheckExact(object) && !PyBool_Check(object)) return false;
  int overflow = 0;
  value = static_cast<double>(PyLong_AsLongLongAndOverflow(object, &overflow));
  return overflow == 0;
}

}  // namespace

// The bytes of a name that is stored as they are, else null.
const char* PlainReader::stored_bytes(PyObject* text, std::size_t& size) const {
  if (PyUnicode_Check(text)) {
#if defined(Py_LIMITED_API)
    if (!with_gil_) return nullptr;
    Py_ssize_t n = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text, &n);
    if (bytes == nullptr) PyErr_Clear();  // surrogates
    size = static_cast<std::size_t>(n);
    return bytes;
#else
    if (!PyUnicode_IS_COMPACT_ASCII(text)) return nullptr;
    size = static_cast<std::size_t>(text_length(text));
    return static_cast<const char*>(PyUnicode_DATA(text));
#endif
  }
  size = static_cast<std::size_t>(bytes_size(text));
  return bytes_data(text);
}

// Bytes of a name, at most.
std::size_t PlainReader::most_bytes(PyObject* text) const {
  std::size_t size = 0;
  if (stored_bytes(text, size) != nullptr) return size;
  return 4 * static_cast<std::size_t>(text_length(text));
}

// Writes the bytes of a name and returns their end; null if it has none.
char* PlainReader::write_text(PyObject* text, char* out) const {
  std::size_t size = 0;
  if (const char* bytes = stored_bytes(text, size)) {
    std::memcpy(out, bytes, size);
    return out + size;
  }
  const Py_ssize_t length = text_length(text);
#if defined(Py_LIMITED_API)
  constexpr Py_ssize_t kShort = 256;
  Py_UCS4 points[kShort];
  if (length <= kShort) return PyUnicode_AsUCS4(text, points, kShort, 0) ? encode(points, length, out) : nullptr;
  for (Py_ssize_t i = 0; i < length && out != nullptr; ++i) {
    points[0] = PyUnicode_ReadChar(text, i);
    out = encode(points, 1, out);
  }
  return out;
#else
#if PY_VERSION_HEX < 0x030C0000
  if (!PyUnicode_IS_READY(text)) return nullptr;
#endif
  switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND: return encode(PyUnicode_1BYTE_DATA(text), length, out);
    case PyUnicode_2BYTE_KIND: return encode(PyUnicode_2BYTE_DATA(text), length, out);
    default: return encode(PyUnicode_4BYTE_DATA(text), length, out);
  }
#endif
}

bool PlainReader::read(PyObject* sequence, bool with_gil, Sequences& out) {
  with_gil_ = with_gil;
#if defined(Py_GIL_DISABLED)
  return false;  // other threads may change what it reads
#endif
  if (!is_array(sequence) || array_size(sequence) == 0) return false;
  if (features_ != nullptr) return read_tokens(sequence, out);
  const std::size_t n_positions = out.attr_ptr.size(), n_ids = out.attr_ids.size();
  out_ = &out;
  const Py_ssize_t T = array_size(sequence);
  for (Py_ssize_t t = 0; t < T; ++t) {
    if (t + 2 < T) __builtin_prefetch(array_item(sequence, t + 2));
    if (PyObject* next = t + 1 < T ? array_item(sequence, t + 1) : nullptr; next != nullptr && is_array(next))
      for (Py_ssize_t i = 0; i < std::min(kAhead, array_size(next)); ++i) prefetch_text(array_item(next, i));
    if (!read_item(array_item(sequence, t))) {
      n_ = n_composed_ = 0;
      prefix_.clear();
      depth_ = 0;
      out.attr_ptr.resize(n_positions);
      out.attr_ids.resize(n_ids);
      if (out.has_values) out.attr_values.resize(n_ids, 1.0);
      return false;
    }
    out.attr_ptr.push_back(static_cast<int64_t>(out.attr_ids.size() + n_));
  }
  look_up();
  out.seq_ptr.push_back(static_cast<int64_t>(out.attr_ptr.size()) - 1);
  return true;
}

bool PlainReader::read_tokens(PyObject* sequence, Sequences& out) {
  const Py_ssize_t T = array_size(sequence);
  const int64_t n_columns = features_->n_columns();
  cells_.clear();
  for (Py_ssize_t t = 0; t < T; ++t) {
    if (t + kAhead < T) prefetch_text(array_item(sequence, t + kAhead));
    PyObject* const token = array_item(sequence, t);
    if (!is_array(token)) {
      if (n_columns != 1 || !add_cell(token)) return false;
      continue;
    }
    if (array_size(token) != n_columns) return false;
    for (int64_t c = 0; c < n_columns; ++c)
      if (!add_cell(array_item(token, c))) return false;
  }
  append_attributes(*extractor_, cells_, n_columns, views_, out);
  return true;
}

bool PlainReader::add_cell(PyObject* text) {
  if (!is_text(text)) return false;
  const std::size_t begin = cells_.bytes.size();
  cells_.bytes.resize(begin + most_bytes(text));
  const char* const end = write_text(text, cells_.bytes.data() + begin);
  if (end == nullptr) return false;
  cells_.bytes.resize(static_cast<std::size_t>(end - cells_.bytes.data()));
  cells_.close();
  return true;
}

bool PlainReader::read_item(PyObject* item) {
  if (is_array(item)) return read_names(item);
  return iterates_as_dict(item) && read_dict(item);
}

bool PlainReader::read_names(PyObject* container) {
  const Py_ssize_t n = array_size(container);
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (i + kAhead < n) prefetch_text(array_item(container, i + kAhead));
    PyObject* const name = array_item(container, i);
    if (!is_text(name) || !add_name(name, 1.0)) return false;
  }
  return true;
}

bool PlainReader::read_dict(PyObject* dict) {
  Py_ssize_t cursor = 0;
  PyObject *key = nullptr, *value = nullptr;
  while (PyDict_Next(dict, &cursor, &key, &value)) {
    if (!is_text(key)) return false;
    double number = 0.0;
    if (is_text(value)                ? !add_joined(key, value)
        : plain_number(value, number) ? !add_name(key, number)
                                      : !read_nested(key, value))
      return false;
  }
  return true;
}

// {"a": {"b": 2}} is the attribute "a:b" with value 2: the prefix is "a:" while the inner dict is read.
bool PlainReader::read_nested(PyObject* key, PyObject* value) {
  if (!is_array(value) && !iterates_as_dict(value)) return false;
  if (++depth_ > kMaxDepth) return false;
  const std::size_t outer = prefix_.size();
  prefix_.resize(outer + most_bytes(key) + 1);
  char* end = write_text(key, prefix_.data() + outer);
  if (end == nullptr) return false;
  *end++ = ':';
  prefix_.resize(static_cast<std::size_t>(end - prefix_.data()));
  if (!read_item(value)) return false;
  prefix_.resize(outer);
  --depth_;
  return true;
}

// `key:value`
bool PlainReader::add_joined(PyObject* key, PyObject* value) {
  char* const begin = room(prefix_.size() + most_bytes(key) + 1 + most_bytes(value));
  std::memcpy(begin, prefix_.data(), prefix_.size());
  char* end = write_text(key, begin + prefix_.size());
  if (end == nullptr) return false;
  *end++ = ':';
  end = write_text(value, end);
  if (end == nullptr) return false;
  n_composed_ += static_cast<std::size_t>(end - begin);
  add({begin, static_cast<std::size_t>(end - begin)}, 1.0);
  return true;
}

bool PlainReader::add_name(PyObject* name, double value) {
  std::size_t size = 0;
  const char* bytes = prefix_.empty() ? stored_bytes(name, size) : nullptr;
  if (bytes == nullptr) {
    char* const begin = room(prefix_.size() + most_bytes(name));
    std::memcpy(begin, prefix_.data(), prefix_.size());
    const char* end = write_text(name, begin + prefix_.size());
    if (end == nullptr) return false;
    bytes = begin;
    size = static_cast<std::size_t>(end - begin);
    n_composed_ += size;
  }
  add({bytes, size}, value);
  return true;
}

void PlainReader::add(std::string_view name, double value) {
  out_->add_value(value, out_->attr_ids.size() + n_);
  names_[n_] = name;
  hashes_[n_] = hash_bytes(name);
  alphabet_.prefetch(hashes_[n_]);
  if (++n_ == kGroup) look_up();
}

// Memory for n bytes that stays where it is until the names are looked up; never null, even for none.
char* PlainReader::room(std::size_t n) {
  if (n_composed_ + n >= composed_.size()) {
    look_up();
    if (n >= composed_.size()) composed_.resize(n + (std::size_t{1} << 14));
  }
  return composed_.data() + n_composed_;
}

void PlainReader::look_up() {
  const std::size_t first = out_->attr_ids.size();
  out_->attr_ids.resize(first + n_);
  alphabet_.find_hashed(n_, names_, hashes_, out_->attr_ids.data() + first);
  n_ = n_composed_ = 0;
}

}  // namespace crfit
