// Rows of weights that come from memory while something else is computed. Included by per-level files only.
#pragma once

#include "kernels.hpp"

namespace {

using crfit::DataView;
using crfit::Prepared;

// Asks for the weights of a sequence that will be scored soon, a row with each call.
class RowsAhead {
 public:
  RowsAhead() = default;
  RowsAhead(const DataView& data, const Prepared& weights, int64_t sequence) {
    if (sequence < 0) return;
    const int64_t begin = data.seq_ptr[sequence], end = data.seq_ptr[sequence + 1];
    stride_ = weights.YP;
    if (weights.layout->state_ptr == nullptr) {
      rows_ = weights.w;
      next_ = data.attr_ids + data.attr_ptr[begin];
      end_ = data.attr_ids + data.attr_ptr[end];
    } else if (weights.tokens != nullptr) {
      const crfit::TokenIndex& index = *weights.tokens;
      rows_ = weights.hot_rows;
      next_ = index.dense_rows + index.dense_ptr[begin];
      end_ = index.dense_rows + index.dense_ptr[end];
      single_weights_ = weights.w;
      next_weight_ = index.sparse_weights + index.sparse_ptr[begin];
      end_weight_ = index.sparse_weights + index.sparse_ptr[end];
    }
  }
  void ask() {
    if (next_ != end_) {
      const double* row = rows_ + *next_++ * stride_;
      for (int64_t j = 0; j < stride_; j += 8) __builtin_prefetch(row + j);
    } else if (next_weight_ != end_weight_) {
      __builtin_prefetch(single_weights_ + *next_weight_++);
    }
  }
  void ask_for_rest() {
    while (next_ != end_ || next_weight_ != end_weight_) ask();
  }

 private:
  const double *rows_ = nullptr, *single_weights_ = nullptr;
  int64_t stride_ = 0;
  const int32_t *next_ = nullptr, *end_ = nullptr;
  const int64_t *next_weight_ = nullptr, *end_weight_ = nullptr;
};

}  // namespace
