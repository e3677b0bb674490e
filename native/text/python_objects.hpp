// Helpers of the readers of Python objects. All of them need the GIL, but those under "Memory only".
//
// Three builds share this code. Version wheels read objects through macros. The stable ABI (Python 3.12 and later) has
// functions instead, and a str shows its bytes only as copies. In free-threaded Python nothing stops other threads from
// changing a list while it is read: lists and dicts are copied first, by functions that lock them.
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

// --- Memory only: no Python code, no new object, no reference count ---

#if defined(Py_LIMITED_API)
inline Py_ssize_t array_size(PyObject* array) { return Py_SIZE(array); }
inline PyObject* array_item(PyObject* array, Py_ssize_t i) {
  return PyList_Check(array) ? PyList_GetItem(array, i) : PyTuple_GetItem(array, i);
}
inline void fill_item(PyObject* list, Py_ssize_t i, PyObject* stolen) { PyList_SetItem(list, i, stolen); }
inline Py_ssize_t text_length(PyObject* text) { return PyUnicode_GetLength(text); }
inline const char* bytes_data(PyObject* bytes) { return PyBytes_AsString(bytes); }
inline double float_value(PyObject* number) { return PyFloat_AsDouble(number); }
#else
// Of a list or tuple; the item is borrowed.
inline Py_ssize_t array_size(PyObject* array) { return PySequence_Fast_GET_SIZE(array); }
inline PyObject* array_item(PyObject* array, Py_ssize_t i) { return PySequence_Fast_GET_ITEM(array, i); }
inline void fill_item(PyObject* list, Py_ssize_t i, PyObject* stolen) { PyList_SET_ITEM(list, i, stolen); }
inline Py_ssize_t text_length(PyObject* text) { return PyUnicode_GET_LENGTH(text); }  // code points
inline const char* bytes_data(PyObject* bytes) { return PyBytes_AS_STRING(bytes); }
inline double float_value(PyObject* number) { return PyFloat_AS_DOUBLE(number); }
#endif
inline Py_ssize_t bytes_size(PyObject* bytes) { return Py_SIZE(bytes); }

// The slot of a type, such as Py_tp_iter; null if it has none.
inline void* slot(PyObject* object, int number) { return PyType_GetSlot(Py_TYPE(object), number); }

inline bool is_array(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

inline bool is_text(PyObject* object) { return PyUnicode_Check(object) || PyBytes_Check(object); }

// Iterable, but not an ordered list. Only dict itself: a pandas Series has keys() too.
inline bool is_no_list(PyObject* object) { return is_text(object) || PyDict_Check(object) || PyAnySet_Check(object); }

// dict and subclasses with the same iteration (not OrderedDict, which stores its order separately).
inline bool iterates_as_dict(PyObject* object) {
  if (PyDict_CheckExact(object)) return true;
  return PyDict_Check(object) && slot(object, Py_tp_iter) == PyType_GetSlot(&PyDict_Type, Py_tp_iter);
}

inline bool is_number(PyObject* object) {
  return slot(object, Py_nb_float) != nullptr || slot(object, Py_nb_index) != nullptr;
}

// --- With the GIL ---

// `int`, `Thing`; types of extension modules with their module, as `numpy.ndarray`.
inline std::string type_name(PyObject* object) {
  const nanobind::handle type(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  const std::string name = nanobind::str(type.attr("__name__")).c_str();
  if (PyType_GetFlags(Py_TYPE(object)) & Py_TPFLAGS_HEAPTYPE) return name;
  const std::string module = nanobind::str(type.attr("__module__")).c_str();
  return module == "builtins" ? name : module + "." + name;
}

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

// dict() also checks for `keys`. PyObject_HasAttrString would swallow every exception, not only AttributeError.
inline bool is_mapping(PyObject* object) {
  if (PyDict_Check(object)) return true;
  const nanobind::object keys = nanobind::steal(PyObject_GetAttrString(object, "keys"));
  if (keys.is_valid()) return !PyType_Check(object);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nanobind::python_error();
  PyErr_Clear();
  return false;
}

// A list that other threads cannot change: itself where they wait for the GIL, else a copy.
inline nanobind::object unshared_array(PyObject* array) {
#if defined(Py_GIL_DISABLED)
  nanobind::object copy = nanobind::steal(PySequence_Tuple(array));
  if (!copy.is_valid()) throw nanobind::python_error();
  return copy;
#else
  return nanobind::borrow(array);
#endif
}
inline nanobind::object unshared_dict(PyObject* dict) {
#if defined(Py_GIL_DISABLED)
  nanobind::object copy = nanobind::steal(PyDict_Copy(dict));
  if (!copy.is_valid()) throw nanobind::python_error();
  return copy;
#else
  return nanobind::borrow(dict);
#endif
}

// A list or tuple, any other iterable as a new list; invalid (no exception set) if it cannot be iterated.
inline nanobind::object as_list(PyObject* object) {
  if (is_array(object)) return unshared_array(object);
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
#if !defined(Py_LIMITED_API)
  if (PyUnicode_Check(text) && PyUnicode_IS_COMPACT_ASCII(text))  // most names: direct access to the bytes
    return std::string_view(static_cast<const char*>(PyUnicode_DATA(text)), PyUnicode_GET_LENGTH(text));
#endif
  if (PyBytes_Check(text)) return std::string_view(bytes_data(text), bytes_size(text));
  Py_ssize_t size = 0;
  if (const char* data = PyUnicode_AsUTF8AndSize(text, &size)) return std::string_view(data, size);
  if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nanobind::python_error();
  PyErr_Clear();
  holder = nanobind::steal(PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape"));
  if (holder.is_valid()) return std::string_view(bytes_data(holder.ptr()), bytes_size(holder.ptr()));
  if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nanobind::python_error();
  PyErr_Clear();
  return std::nullopt;
}

}  // namespace crfit
