// Ids of the attributes of plain sequences: lists, tuples and dicts of str, bytes and numbers, to any depth. With
// features, sequences are lists and tuples of tokens.
//
// Only reads memory: it runs no Python code, makes no object and counts no references. Threads without the GIL may
// therefore read while their caller holds it and waits for them, and names need no copy: nothing can change or free
// them meanwhile. All other sequences, wrong ones among them, are left to SequenceReader, whose names are the same.
// With the stable ABI a str shows its bytes only to a thread with the GIL, because it may have to store them first;
// other threads copy its code points. In free-threaded Python nothing is plain.
#pragma once

#include <nanobind/nanobind.h>  // includes Python.h correctly

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/alphabet.hpp"
#include "text/features.hpp"
#include "text/names.hpp"
#include "text/sequences.hpp"

namespace crfit {

class PlainReader {
 public:
  explicit PlainReader(const Alphabet& alphabet, const Features* features = nullptr)
      : alphabet_(alphabet), features_(features) {
    if (features != nullptr) extractor_.emplace(*features, alphabet, nullptr, kKeptTokens);
  }

  // Appends a sequence, with the id -1 for unknown attributes. False: it is empty or not plain, and nothing changed.
  // with_gil: this thread holds the GIL.
  bool read(PyObject* sequence, bool with_gil, Sequences& out);

 private:
  bool read_tokens(PyObject* sequence, Sequences& out);
  bool add_cell(PyObject* text);
  bool read_item(PyObject* item);
  bool read_names(PyObject* container);
  bool read_dict(PyObject* dict);
  bool read_nested(PyObject* key, PyObject* value);
  bool add_joined(PyObject* key, PyObject* value);
  bool add_name(PyObject* name, double value);
  const char* stored_bytes(PyObject* text, std::size_t& size) const;
  std::size_t most_bytes(PyObject* text) const;
  char* write_text(PyObject* text, char* out) const;
  void add(std::string_view name, double value);
  char* room(std::size_t n);
  void look_up();

  static constexpr std::size_t kGroup = 64;
  static constexpr int64_t kKeptTokens = int64_t{1} << 14;  // readers live as long as a model: a few MB
  const Alphabet& alphabet_;
  const Features* const features_;
  std::optional<Extractor> extractor_;
  Names cells_;  // of the tokens of a sequence
  std::vector<std::string_view> views_;
  Sequences* out_ = nullptr;
  bool with_gil_ = false;
  // Names read, not yet looked up: they wait for memory together.
  std::size_t n_ = 0;
  std::string_view names_[kGroup];
  uint64_t hashes_[kGroup];
  std::vector<char> composed_;  // bytes of those that are not in an object as they are
  std::size_t n_composed_ = 0;
  std::string prefix_;  // `key:` of the enclosing containers
  int depth_ = 0;
};

}  // namespace crfit
