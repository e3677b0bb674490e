// Rows of weights that come from memory while something else is computed. Included by per-level files only.
#pragma once

#include "kernels.hpp"

namespace {

using crfit::DataView;
using crfit::LayoutView;

// Asks for the rows of a sequence that will be scored soon, one with each call: they come while this one is worked on.
class RowsAhead {
 public:
  RowsAhead() = default;
  RowsAhead(const DataView& data, const LayoutView& layout, const double* rows, int64_t stride, int64_t sequence)
      : rows_(rows), stride_(stride) {
    if (sequence < 0 || layout.state_ptr != nullptr) return;
    next_ = data.attr_ids + data.attr_ptr[data.seq_ptr[sequence]];
    end_ = data.attr_ids + data.attr_ptr[data.seq_ptr[sequence + 1]];
  }
  void ask() {
    if (next_ == end_) return;
    const double* row = rows_ + *next_++ * stride_;
    for (int64_t j = 0; j < stride_; j += 8) __builtin_prefetch(row + j);
  }
  void ask_for_rest() {
    while (next_ != end_) ask();
  }

 private:
  const double* rows_ = nullptr;
  int64_t stride_ = 0;
  const int32_t *next_ = nullptr, *end_ = nullptr;
};

}  // namespace
