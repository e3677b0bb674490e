// Converts Python lists of sequences of items to flat arrays.
//
// An item describes one position, in the form of python-crfsuite:
//   list, tuple, set of str      each string is an attribute of value 1
//   dict                         number: `key` with that value (bool: 1 or 0); str: `key:value` with value 1;
//                                dict, list, tuple, set: `key:` before each name inside, to any depth
// Nothing is escaped; bytes are used unchanged; str is encoded as UTF-8 with surrogateescape.
//
// Two phases alternate. The walk holds the GIL and copies names into a block of bytes; interning turns a block into ids
// without the GIL. Names are copied (a few ns each) instead of keeping pointers into str objects, so other Python
// threads can change X without leaving dangling pointers. For the same reason the walk owns a reference to every
// enclosing container and reads sizes again at each step: number conversion and iterators may run any Python code.
//
// Ids follow first appearance: sequence, position, order within the item (sets: sorted by bytes). With a fixed
// alphabet, PlainReader is tried first (BlockReader).
#pragma once

#include <nanobind/nanobind.h>  // includes Python.h correctly

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "text/alphabet.hpp"
#include "text/names.hpp"
#include "text/sequences.hpp"

namespace crfit {

class SequenceReader {
 public:
  // New attributes are added to the alphabet.
  SequenceReader(Alphabet& alphabet, int n_threads) : alphabet_(alphabet), growing_(&alphabet), n_threads_(n_threads) {}
  // New attributes are dropped; an empty sequence is an error or is left out.
  SequenceReader(const Alphabet& alphabet, bool allow_empty, int n_threads)
      : alphabet_(alphabet), allow_empty_(allow_empty), n_threads_(n_threads) {}

  // One sequence, the one with this number in errors. False: it was left out. After the last one call finish().
  bool read_sequence(PyObject* sequence, int64_t number);
  void finish();

  Sequences found;

 private:
  [[noreturn]] void fail(const std::string& message) const;  // DataError at the current position

  void read_item(PyObject* item);
  void read_names(PyObject* container);
  void read_set(PyObject* set);
  void read_dict(PyObject* dict);
  void read_mapping(PyObject* mapping);
  void read_pair(PyObject* key, PyObject* value);
  void read_nested(PyObject* key, PyObject* value);
  double number(PyObject* key, PyObject* value) const;

  void append(PyObject* text, const char* role, std::string& target) const;
  void add_name(PyObject* name, double value);
  void close_name(double value);
  std::size_t n_read() const { return found.attr_ids.size() + names_.size(); }
  void intern_block();

  const Alphabet& alphabet_;
  Alphabet* const growing_ = nullptr;  // the same, or null
  const bool allow_empty_ = false;
  const int n_threads_;  // 0: all cores
  Names names_;          // read, not yet interned
  std::string prefix_;   // `key:` of the enclosing containers
  int depth_ = 0;
  int64_t sequence_ = -1, position_ = -1;
};

// All sequences of X; new attributes are added to the alphabet.
Sequences read_growing(PyObject* X, Alphabet& alphabet, int n_threads);

// Labels of sequences that were already read. Positions of sequence i are seq_ptr[i]:seq_ptr[i+1].
class LabelReader {
 public:
  LabelReader(Alphabet& alphabet, const int64_t* seq_ptr, int64_t n_sequences)
      : alphabet_(alphabet), seq_ptr_(seq_ptr), n_sequences_(n_sequences) {
    labels.reserve(seq_ptr[n_sequences]);
  }

  void read_nested(PyObject* y);  // y[i][t] for position t of sequence i
  void read_flat(PyObject* y);    // y[n] over all positions

  std::vector<int32_t> labels;  // [N], -1: None or a set

 private:
  void add(PyObject* label, int64_t sequence, int64_t position);

  Alphabet& alphabet_;
  const int64_t* seq_ptr_;
  int64_t n_sequences_;
};

}  // namespace crfit
