#include "text/block_reader.hpp"

#include <algorithm>
#include <utility>

#include "base/pool.hpp"
#include "text/python_objects.hpp"
#include "text/sequence_reader.hpp"
#include "text/token_reader.hpp"

namespace nb = nanobind;

namespace crfit {
namespace {

constexpr int64_t kPart = 128;         // sequences of a task: enough for groups of similar length
constexpr int64_t kPartsOfThread = 2;  // in a block

// Lets other Python threads run, and raises KeyboardInterrupt after Ctrl-C.
void give_others_a_turn() {
  {
    nb::gil_scoped_release release;
  }
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

int64_t BlockReader::read(PyObject* sequences, int64_t first) {
  const int64_t left = array_size(sequences) - first;
  if (n_threads_ == 0 && left > kPart) n_threads_ = available_threads();
  const int threads = std::max(n_threads_, 1);
  const int64_t n = std::min(left, threads * kPartsOfThread * kPart), n_parts = (n + kPart - 1) / kPart;
  while (static_cast<int>(readers_.size()) < threads) readers_.emplace_back(alphabet_, features_);
  plain.resize(n_parts);
  skipped_.resize(n_parts);
  parallel_for(threads, n_parts, [&](int64_t k, int worker) {
    Part& part = plain[k];
    part.numbers.clear();
    part.data.clear();
    skipped_[k].clear();
    for (int64_t i = first + k * kPart; i < std::min(first + n, first + (k + 1) * kPart); ++i)
      (readers_[worker].read(array_item(sequences, i), worker == 0, part.data) ? part.numbers : skipped_[k])
          .push_back(i);
    part.data.drop_unknown();
  });
  others.numbers.clear();
  others.data.clear();
  std::vector<std::pair<int64_t, nb::object>> held;  // reading them may run code that changes the list
  for (const std::vector<int64_t>& numbers : skipped_)
    for (const int64_t i : numbers) held.emplace_back(i, nb::borrow(array_item(sequences, i)));
  if (held.empty()) return n;
  if (features_ != nullptr) {
    for (const auto& [i, sequence] : held)
      if (read_token_sequence(sequence.ptr(), i, allow_empty_, *features_, alphabet_, others.data))
        others.numbers.push_back(i);
    others.data.drop_unknown();
    return n;
  }
  SequenceReader reader(alphabet_, allow_empty_, n_threads_);
  for (const auto& [i, sequence] : held)
    if (reader.read_sequence(sequence.ptr(), i)) others.numbers.push_back(i);
  reader.finish();
  others.data = std::move(reader.found);
  return n;
}

void BlockReader::append_to(Sequences& all) const {
  std::size_t other = 0;
  const auto append_others = [&](int64_t before) {
    for (; other < others.numbers.size() && others.numbers[other] < before; ++other)
      all.append(others.data, static_cast<int64_t>(other), static_cast<int64_t>(other) + 1);
  };
  for (const Part& part : plain) {
    int64_t done = 0;
    for (int64_t k = 0; k < part.data.size(); ++k) {
      if (other == others.numbers.size() || others.numbers[other] > part.numbers[k]) continue;
      all.append(part.data, done, k);
      append_others(part.numbers[k]);
      done = k;
    }
    all.append(part.data, done, part.data.size());
    all.n_dropped += part.data.n_dropped;
  }
  append_others(INT64_MAX);
  all.n_dropped += others.data.n_dropped;
}

Sequences read_known(PyObject* X, const Alphabet& alphabet, int n_threads) {
  const nb::object sequences = list_of_sequences(X);
  BlockReader reader(alphabet, false, n_threads);
  Sequences all;
  for (int64_t first = 0; first < array_size(sequences.ptr());) {
    first += reader.read(sequences.ptr(), first);
    reader.append_to(all);
    give_others_a_turn();
  }
  all.drop_ones();
  return all;
}

}  // namespace crfit
