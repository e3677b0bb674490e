// Python objects to arrays: sequences of items, labels.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "alphabet.hpp"
#include "bind.hpp"
#include "bind_arrays.hpp"
#include "sequence_reader.hpp"

namespace nb = nanobind;
using crfit::Alphabet;

namespace {

nb::tuple read_sequences(nb::handle X, Alphabet& alphabet, bool grow, int n_threads) {
  crfit::SequenceReader reader(alphabet, grow, n_threads);
  reader.read(X.ptr());
  const nb::object values = reader.attr_values.empty() ? nb::none() : nb::cast(to_numpy(std::move(reader.attr_values)));
  return nb::make_tuple(to_numpy(std::move(reader.seq_ptr)), to_numpy(std::move(reader.attr_ptr)),
                        to_numpy(std::move(reader.attr_ids)), values, reader.n_dropped);
}

NumpyVector<int32_t> read_labels(nb::handle y, const Vector<int64_t>& seq_ptr, Alphabet& alphabet, bool flat) {
  if (seq_ptr.size() == 0 || seq_ptr(0) != 0 || !std::is_sorted(seq_ptr.data(), seq_ptr.data() + seq_ptr.size()))
    throw nb::value_error("seq_ptr must start with 0 and not fall");
  crfit::LabelReader reader(alphabet, seq_ptr.data(), static_cast<int64_t>(seq_ptr.size()) - 1);
  flat ? reader.read_flat(y.ptr()) : reader.read_nested(y.ptr());
  return to_numpy(std::move(reader.labels));
}

// counts[a] = number of positions t with a among ids[ptr[t]:ptr[t+1]], once even when a position repeats it.
NumpyVector<int64_t> count_positions(const Vector<int64_t>& ptr, const Vector<int32_t>& ids, int64_t n) {
  const int64_t N = static_cast<int64_t>(ptr.size()) - 1;
  std::vector<int64_t> counts(n, 0), last(n, -1);  // last: latest position seen with the attribute
  for (int64_t t = 0; t < N; ++t) {
    if (ptr(t) < 0 || ptr(t + 1) > static_cast<int64_t>(ids.size())) throw nb::value_error("ptr out of range");
    for (int64_t k = ptr(t); k < ptr(t + 1); ++k) {
      const int32_t id = ids(k);
      if (id < 0 || id >= n) throw nb::value_error("id out of range");
      if (std::exchange(last[id], t) != t) ++counts[id];
    }
  }
  return to_numpy(std::move(counts));
}

}  // namespace

void bind_sequences(nb::module_& m) {
  m.def("read_sequences", &read_sequences, nb::arg("X").none(), nb::arg("alphabet"), nb::arg("grow"),
        nb::arg("n_threads") = 0,
        nb::sig("def read_sequences(X: object, alphabet: Alphabet, grow: bool, n_threads: int = 0) -> "
                "tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int32], "
                "NDArray[numpy.float64] | None, int]"),
        "Sequences of items to (seq_ptr, attr_ptr, attr_ids, attr_values or None, n_dropped).\n\n"
        "grow: new attributes are added to the alphabet; otherwise they are dropped and counted.");
  m.def("read_labels", &read_labels, nb::arg("y").none(), nb::arg("seq_ptr"), nb::arg("alphabet"), nb::arg("flat"),
        "Labels of the positions that seq_ptr describes; new ones are added to the alphabet.\n\n"
        "flat: y is one list over all positions; otherwise a list for each sequence.");
  m.def("count_positions", &count_positions, nb::arg("ptr"), nb::arg("ids"), nb::arg("n"),
        "Number of positions at which each of n attributes occurs.");
}
