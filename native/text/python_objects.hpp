// Helpers of the readers of Python objects. All of them need the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace crfit {

// Raises crfit.errors.DataError; negative sequence or position: unknown. An exception already set becomes the cause.
[[noreturn]] inline void raise_data_error(const std::string& message, int64_t sequence, int64_t position) {
  std::optional<nanobind::python_error> cause;
  if (PyErr_Occurred()) cause.emplace();  // takes ownership of the exception
  const nanobind::object text = nanobind::steal(
      PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  if (!text.is_valid()) throw nanobind::python_error();
  nanobind::dict place;
  if (sequence >= 0) place["sequence"] = sequence;
  if (position >= 0) place["position"] = position;
  const nanobind::object error = nanobind::module_::import_("crfit.errors").attr("DataError")(text, **place);
  if (cause) PyException_SetCause(error.ptr(), nanobind::borrow(cause->value()).release().ptr());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nanobind::python_error();
}

inline std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

// repr() shortened for a message; the type if repr() fails.
inline std::string shown(PyObject* object) {
  const nanobind::object repr = nanobind::steal(PyObject_Repr(object));
  Py_ssize_t size = 0;
  const char* text = repr.is_valid() ? PyUnicode_AsUTF8AndSize(repr.ptr(), &size) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    return "<" + type_name(object) + ">";
  }
  constexpr Py_ssize_t limit = 60;
  return size <= limit ? std::string(text, size) : std::string(text, limit) + "...";
}

inline bool is_text(PyObject* object) { return PyUnicode_Check(object) || PyBytes_Check(object); }

// Iterable, but not an ordered list. Only dict itself: a pandas Series has keys() too.
inline bool is_no_list(PyObject* object) { return is_text(object) || PyDict_Check(object) || PyAnySet_Check(object); }

// dict() also checks for `keys`. PyObject_HasAttrString would swallow every exception, not only AttributeError.
inline bool is_mapping(PyObject* object) {
  if (PyDict_Check(object)) return true;
  const nanobind::object keys = nanobind::steal(PyObject_GetAttrString(object, "keys"));
  if (keys.is_valid()) return !PyType_Check(object);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nanobind::python_error();
  PyErr_Clear();
  return false;
}

// dict and subclasses with the same iteration (not OrderedDict, which stores its order separately).
inline bool iterates_as_dict(PyObject* object) {
  return PyDict_Check(object) && Py_TYPE(object)->tp_iter == PyDict_Type.tp_iter;
}

inline bool is_number(PyObject* object) {
  const PyNumberMethods* methods = Py_TYPE(object)->tp_as_number;
  return methods != nullptr && (methods->nb_float != nullptr || methods->nb_index != nullptr);
}

// A list or tuple unchanged, any other iterable as a new list; invalid (no exception set) if it cannot be iterated.
inline nanobind::object as_list(PyObject* object) {
  if (PyList_Check(object) || PyTuple_Check(object)) return nanobind::borrow(object);
  nanobind::object list = nanobind::steal(PySequence_List(object));
  if (!list.is_valid()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nanobind::python_error();
    PyErr_Clear();
  }
  return list;
}

// X as a list or tuple of sequences; raises DataError for other objects.
inline nanobind::object list_of_sequences(PyObject* X) {
  nanobind::object sequences = is_no_list(X) ? nanobind::object() : as_list(X);
  if (!sequences.is_valid()) raise_data_error("X must be a list of sequences, not " + type_name(X), -1, -1);
  return sequences;
}

// Bytes of str or bytes: borrowed from the object, or from `holder` if the str has surrogates.
// Empty optional (no exception set): code points without an encoding.
inline std::optional<std::string_view> text_bytes(PyObject* text, nanobind::object& holder) {
  if (PyUnicode_Check(text) && PyUnicode_IS_COMPACT_ASCII(text))  // most names: direct access to the bytes
    return std::string_view(static_cast<const char*>(PyUnicode_DATA(text)), PyUnicode_GET_LENGTH(text));
  if (PyBytes_Check(text)) return std::string_view(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text));
  Py_ssize_t size = 0;
  if (const char* data = PyUnicode_AsUTF8AndSize(text, &size)) return std::string_view(data, size);
  if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nanobind::python_error();
  PyErr_Clear();
  holder = nanobind::steal(PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape"));
  if (holder.is_valid()) return std::string_view(PyBytes_AS_STRING(holder.ptr()), PyBytes_GET_SIZE(holder.ptr()));
  if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nanobind::python_error();
  PyErr_Clear();
  return std::nullopt;
}

}  // namespace crfit
