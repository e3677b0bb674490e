// Reads a list of sequences block by block under a fixed alphabet, on all threads.
//
// The caller holds the GIL and waits while threads read plain sequences; then it reads the others itself. A block takes
// a few milliseconds, so other Python threads, which can run between two blocks, do not wait long.
#pragma once

#include <nanobind/nanobind.h>  // includes Python.h correctly

#include <cstdint>
#include <vector>

#include "text/plain_reader.hpp"
#include "text/sequences.hpp"

namespace crfit {

class BlockReader {
 public:
  struct Part {
    std::vector<int64_t> numbers;  // of the sequences, ascending
    Sequences data;
  };

  // Empty sequences are errors or are left out. 0 threads: all cores, determined only if there is enough work.
  // With features, sequences have tokens.
  BlockReader(const Alphabet& alphabet, bool allow_empty, int n_threads, const Features* features = nullptr)
      : alphabet_(alphabet), allow_empty_(allow_empty), n_threads_(n_threads), features_(features) {}

  // Reads sequences of a list or tuple from number `first` on into `plain` and `others`; returns how many.
  int64_t read(PyObject* sequences, int64_t first);

  // Appends the block in the order of the list.
  void append_to(Sequences& all) const;

  std::vector<Part> plain;  // of some neighbours each
  Part others;

 private:
  const Alphabet& alphabet_;
  const bool allow_empty_;
  int n_threads_;
  const Features* const features_;
  std::vector<PlainReader> readers_;           // [threads]
  std::vector<std::vector<int64_t>> skipped_;  // [parts] numbers of sequences that are not plain
};

// All sequences of X; unknown attributes are dropped.
Sequences read_known(PyObject* X, const Alphabet& alphabet, int n_threads);

}  // namespace crfit
