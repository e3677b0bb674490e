// Labels of Python sequences: attributes to ids, best paths, and lists of str, in one call.
#pragma once

#include <nanobind/nanobind.h>  // includes Python.h correctly

#include <cstdint>
#include <memory>
#include <vector>

#include "base/spares.hpp"
#include "lattice/decoder.hpp"
#include "text/plain_reader.hpp"
#include "text/sequences.hpp"

namespace crfit {

// For models of order 1 without edge attributes. All functions need the GIL and may be called from many threads.
class Tagger {
 public:
  // `labels` has the str of each label id. With features, sequences have tokens. All must outlive this object.
  Tagger(const Decoder& decoder, const Alphabet& attributes, const std::vector<nanobind::object>& labels,
         const Features* features)
      : decoder_(decoder), attributes_(attributes), labels_(labels), features_(features) {}

  nanobind::object tag(PyObject* x) const;        // a list of str
  nanobind::object marginals(PyObject* x) const;  // a list of dicts: probabilities of the labels
  // A list of lists of str; an empty sequence has an empty one. The threads are used while this one waits.
  nanobind::object tag_many(PyObject* X, int n_threads) const;

 private:
  // What reading and solving a sequence needs, kept for the next call.
  struct Desk {
    Desk(const Alphabet& alphabet, const Features* features) : reader(alphabet, features) {}
    PlainReader reader;
    Sequences data;
    std::vector<int32_t> best;
    std::vector<double> numbers;
  };

  bool read(PyObject* x, Desk& desk) const;
  template <class Answer>
  nanobind::object answer(PyObject* x, const Answer& answer) const;
  nanobind::object names(const int32_t* labels, int64_t n) const;

  const Decoder& decoder_;
  const Alphabet& attributes_;
  const std::vector<nanobind::object>& labels_;
  const Features* const features_;
  mutable Spares<Desk> desks_;
};

}  // namespace crfit
