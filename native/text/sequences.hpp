// Sequences as they are read: the arrays of a dataset without labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/views.hpp"

namespace crfit {

struct Sequences {
  std::vector<int64_t> seq_ptr{0};   // [S + 1]
  std::vector<int64_t> attr_ptr{0};  // [N + 1]
  std::vector<int32_t> attr_ids;     // [nnz]
  std::vector<double> attr_values;   // [nnz] from the first value on that is not 1; before, all are 1 and it is empty
  bool has_values = false;
  int64_t n_dropped = 0;  // occurrences dropped

  int64_t size() const { return static_cast<int64_t>(seq_ptr.size()) - 1; }
  DataView view() const;
  void clear();

  // Notes the value of the next occurrence, after n others.
  void add_value(double value, std::size_t n) {
    if (value != 1.0 && !has_values) {
      attr_values.assign(n, 1.0);
      has_values = true;
    }
    if (has_values) attr_values.push_back(value);
  }

  void drop_unknown();                                               // occurrences with the id -1, from all arrays
  void drop_ones();                                                  // the values, if all are 1
  void append(const Sequences& other, int64_t first, int64_t last);  // its sequences first .. last - 1
};

}  // namespace crfit
