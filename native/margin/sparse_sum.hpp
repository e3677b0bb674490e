// Differences of two label paths, summed per weight.
//
// An open-addressing table of entry numbers and a list of entries in order of first appearance. Sums over the list do
// not depend on the table, and clearing takes time in proportion to the entries, not to the table. A dense vector with
// one mark per weight would miss the cache at every addition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace crfit {

class SparseSum {
 public:
  struct Entry {
    int64_t place;
    double value;
    std::size_t slot;
  };
  SparseSum();
  void add(int64_t place, double x);
  void clear();
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::size_t find(int64_t place) const;  // its slot, or the free slot for it
  void grow();

  std::vector<Entry> entries_;
  std::vector<int32_t> slots_;  // [power of two] number of the entry, counted from 1; 0: free
};

}  // namespace crfit
