// A block of concatenated names, and their ids.
//
// Ids follow first appearance. Chunks are interned in parallel with local alphabets, which are merged in chunk order,
// so ids depend on neither chunks nor threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/alphabet.hpp"

namespace crfit {

// Name i is bytes[ends[i-1]:ends[i]].
struct Names {
  std::string bytes;
  std::vector<std::size_t> ends;

  std::size_t size() const { return ends.size(); }
  std::size_t begin_of(std::size_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  std::string_view operator[](std::size_t i) const { return {bytes.data() + begin_of(i), ends[i] - begin_of(i)}; }
  void close() { ends.push_back(bytes.size()); }
  void clear() {
    bytes.clear();
    ends.clear();
  }

  // Sorts the names from `first` on by their bytes (for UTF-8: by code point).
  void sort_from(std::size_t first);
};

// ids[i] = id of names[i], added if new. 0 threads: all cores.
void add_names(const Names& names, Alphabet& alphabet, int n_threads, int32_t* ids);

// ids[i] = id of names[i], -1 if unknown.
void find_names(const Names& names, const Alphabet& alphabet, int n_threads, int32_t* ids);

}  // namespace crfit
