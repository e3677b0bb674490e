// Differences of two label paths, summed per weight.
//
// An open-addressing table of entry numbers beside a list of entries: a step of a few thousand additions ends with a
// list in order of first appearance, so that sums over it do not depend on the table, and clearing costs time for what
// was added and not for the table. A dense vector of marks, one for each weight, would miss the cache at every
// addition.
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
  std::size_t find(int64_t place) const;  // its slot, or the free one where it belongs
  void grow();

  std::vector<Entry> entries_;
  std::vector<int32_t> slots_;  // [power of two] number of the entry, counted from 1; 0: free
};

}  // namespace crfit
