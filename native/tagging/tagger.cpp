#include "tagging/tagger.hpp"

#include <optional>
#include <utility>

#include "base/pool.hpp"
#include "text/block_reader.hpp"
#include "text/python_objects.hpp"
#include "text/sequence_reader.hpp"
#include "text/token_reader.hpp"

namespace nb = nanobind;

namespace crfit {
namespace {

// Sums and maxima of a call; below this, releasing the GIL costs more than others gain.
constexpr int64_t kReleaseWork = int64_t{1} << 18;

nb::object new_list(Py_ssize_t n) {
  nb::object list = nb::steal(PyList_New(n));
  if (!list.is_valid()) throw nb::python_error();
  return list;
}

}  // namespace

// A list of the names of n labels.
nb::object Tagger::names(const int32_t* labels, int64_t n) const {
  nb::object list = new_list(n);
  for (int64_t i = 0; i < n; ++i) fill_item(list.ptr(), i, labels_[labels[i]].inc_ref().ptr());
  return list;
}

// False: the sequence is empty.
bool Tagger::read(PyObject* x, Desk& desk) const {
  desk.data.clear();
  if (desk.reader.read(x, true, desk.data)) {
    desk.data.drop_unknown();
    return true;
  }
  if (features_ != nullptr) {
    if (!read_token_sequence(x, 0, true, *features_, attributes_, desk.data)) return false;
    desk.data.drop_unknown();
    return true;
  }
  SequenceReader reader(attributes_, true, 1);
  if (!reader.read_sequence(x, 0)) return false;
  reader.finish();
  desk.data = std::move(reader.found);
  return true;
}

// Solves one sequence: answer.wanted(desk, T) is the job, answer.found(desk, T) the result.
template <class Answer>
nb::object Tagger::answer(PyObject* x, const Answer& answer) const {
  std::unique_ptr<Desk> desk = desks_.take();
  if (desk == nullptr) desk = std::make_unique<Desk>(attributes_, features_);
  nb::object result;
  if (read(x, *desk)) {
    const DataView data = desk->data.view();
    const int64_t Y = decoder_.n_labels(), T = data.n_positions;
    const InferenceJob job = answer.wanted(*desk, T);
    std::optional<nb::gil_scoped_release> release;
    if (T * Y * Y >= kReleaseWork) release.emplace();
    decoder_.infer(data, 1, job);
    release.reset();
    result = answer.found(*desk, T);
  } else {
    result = new_list(0);
  }
  desks_.give(std::move(desk));
  return result;
}

nb::object Tagger::tag(PyObject* x) const {
  struct Best {
    const Tagger& tagger;
    static InferenceJob wanted(Desk& desk, int64_t T) {
      desk.best.resize(static_cast<std::size_t>(T));
      desk.numbers.resize(1);
      InferenceJob job;
      job.best = desk.best.data();
      job.best_score = desk.numbers.data();
      return job;
    }
    nb::object found(const Desk& desk, int64_t T) const { return tagger.names(desk.best.data(), T); }
  };
  return answer(x, Best{*this});
}

nb::object Tagger::marginals(PyObject* x) const {
  struct Marginals {
    const std::vector<nb::object>& labels;
    InferenceJob wanted(Desk& desk, int64_t T) const {
      desk.numbers.resize(1 + static_cast<std::size_t>(T) * labels.size());
      InferenceJob job;
      job.log_z = desk.numbers.data();
      job.node_marginals = desk.numbers.data() + 1;
      return job;
    }
    nb::object found(const Desk& desk, int64_t T) const {
      nb::object list = new_list(T);
      const double* p = desk.numbers.data() + 1;
      for (int64_t t = 0; t < T; ++t) {
        nb::object row = nb::steal(PyDict_New());
        if (!row.is_valid()) throw nb::python_error();
        for (const nb::object& label : labels) {
          const nb::object number = nb::steal(PyFloat_FromDouble(*p++));
          if (!number.is_valid() || PyDict_SetItem(row.ptr(), label.ptr(), number.ptr()) != 0) throw nb::python_error();
        }
        fill_item(list.ptr(), t, row.release().ptr());
      }
      return list;
    }
  };
  return answer(x, Marginals{labels_});
}

nb::object Tagger::tag_many(PyObject* X, int n_threads) const {
  const nb::object sequences = list_of_sequences(X);
  BlockReader reader(attributes_, true, n_threads, features_);
  nb::object result = new_list(0);
  std::vector<std::vector<int32_t>> best;
  const auto solve = [&](const Sequences& data, int threads, std::vector<int32_t>& labels) {
    if (data.size() == 0) return;
    labels.resize(static_cast<std::size_t>(data.seq_ptr.back()));
    std::vector<double> scores(static_cast<std::size_t>(data.size()));
    InferenceJob job;
    job.best = labels.data();
    job.best_score = scores.data();
    decoder_.infer(data.view(), threads, job);
  };
  int64_t n = 0;
  for (int64_t first = 0; first < array_size(sequences.ptr()); first += n) {
    n = reader.read(sequences.ptr(), first);
    const int64_t n_parts = static_cast<int64_t>(reader.plain.size());
    best.resize(static_cast<std::size_t>(n_parts) + 1);
    {
      nb::gil_scoped_release release;
      parallel_for(n_threads, n_parts, [&](int64_t k, int) { solve(reader.plain[k].data, 1, best[k]); });
      solve(reader.others.data, n_threads, best.back());
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    std::vector<nb::object> lists(static_cast<std::size_t>(n));
    const auto name = [&](const BlockReader::Part& part, const std::vector<int32_t>& labels) {
      for (std::size_t k = 0; k < part.numbers.size(); ++k) {
        const int64_t begin = part.data.seq_ptr[k], end = part.data.seq_ptr[k + 1];
        lists[static_cast<std::size_t>(part.numbers[k] - first)] = names(labels.data() + begin, end - begin);
      }
    };
    for (int64_t k = 0; k < n_parts; ++k) name(reader.plain[k], best[k]);
    name(reader.others, best.back());
    for (nb::object& list : lists) {
      if (!list.is_valid()) list = new_list(0);  // of an empty sequence
      if (PyList_Append(result.ptr(), list.ptr()) != 0) throw nb::python_error();
    }
  }
  return result;
}

}  // namespace crfit
