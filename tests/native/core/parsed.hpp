// What must hold of any text that a reader accepts; shared with the fuzzers.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>

#include "text/reader.hpp"

namespace check {

inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(std::string("broken: ") + what);
}

template <class Id>
void require_ids(const std::vector<Id>& ids, int64_t low, int64_t n, const char* what) {
  for (const Id id : ids) require(id >= low && id < n, what);
}

inline void require_offsets(const std::vector<int64_t>& offsets, std::size_t n, std::size_t total, const char* what) {
  require(offsets.size() == n + 1 && offsets.front() == 0 && offsets.back() == static_cast<int64_t>(total), what);
  for (std::size_t i = 0; i < n; ++i) require(offsets[i] <= offsets[i + 1], what);
}

// Offsets rise and end with the data; ids are in their alphabets; values and weights are finite.
inline void require_consistent(const crfit::ParsedText& parsed, const crfit::ReadOptions& options) {
  const std::size_t S = parsed.seq_ptr.size() - 1, N = parsed.attr_ptr.size() - 1;
  require_offsets(parsed.seq_ptr, S, N, "seq_ptr");
  for (std::size_t i = 0; i < S; ++i) require(parsed.seq_ptr[i] < parsed.seq_ptr[i + 1], "no empty sequence");
  require_offsets(parsed.attr_ptr, N, parsed.attr_ids.size(), "attr_ptr");
  const crfit::Alphabet& attributes = options.attributes != nullptr ? *options.attributes : parsed.attribute_alphabet;
  require_ids(parsed.attr_ids, 0, attributes.size(), "attr_ids");
  require(parsed.attr_values.empty() || parsed.attr_values.size() == parsed.attr_ids.size(), "attr_values");
  for (const double value : parsed.attr_values) require(std::isfinite(value), "finite values");
  require(parsed.line_numbers.size() == N, "line_numbers");
  if (options.labelled) {
    require(parsed.labels.size() == N, "labels");
    require_ids(parsed.labels, -1, parsed.label_alphabet.size(), "labels");
  }
  if (!parsed.edge_ptr.empty()) {
    require_offsets(parsed.edge_ptr, N, parsed.edge_ids.size(), "edge_ptr");
    const crfit::Alphabet& edges = options.edges != nullptr ? *options.edges : parsed.edge_alphabet;
    require_ids(parsed.edge_ids, 0, edges.size(), "edge_ids");
  }
  require(parsed.sequence_weights.empty() || parsed.sequence_weights.size() == S, "sequence_weights");
  for (const double weight : parsed.sequence_weights) require(std::isfinite(weight) && weight >= 0.0, "weights");
}

// Whether two readings are the same.
inline void require_same(const crfit::ParsedText& a, const crfit::ParsedText& b) {
  require(a.seq_ptr == b.seq_ptr && a.attr_ptr == b.attr_ptr && a.attr_ids == b.attr_ids, "the same attributes");
  require(a.attr_values == b.attr_values && a.labels == b.labels, "the same values and labels");
  require(a.edge_ptr == b.edge_ptr && a.edge_ids == b.edge_ids, "the same edge attributes");
  require(a.sequence_weights == b.sequence_weights && a.line_numbers == b.line_numbers, "the same lines and weights");
  require(a.attribute_alphabet.bytes() == b.attribute_alphabet.bytes() &&
              a.attribute_alphabet.offsets() == b.attribute_alphabet.offsets(),
          "the same attribute alphabet");
  require(a.label_alphabet.bytes() == b.label_alphabet.bytes(), "the same label alphabet");
}

}  // namespace check
