// Prefetching of weight rows during other computations. Included by per-level files only.
#pragma once

#include "lattice/scores.hpp"

namespace {

// Into the second-level cache: in the first-level cache it would evict data in use.
inline void prefetch_far(const void* at) { __builtin_prefetch(at, 0, 2); }

// Prefetches the weights of a sequence that will be scored soon, one row per call.
template <int P>
class RowsAhead {
 public:
  RowsAhead(const DataView& data, const Prepared& weights, int64_t sequence) : width_(weights.YP) {
    if (sequence < 0) return;
    const int64_t begin = data.seq_ptr[sequence], end = data.seq_ptr[sequence + 1];
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
  // The same for code that is not specialised by width.
  RowsAhead<0> any_width() const {
    RowsAhead<0> other(width_.yp());
    other.rows_ = rows_;
    other.single_weights_ = single_weights_;
    other.next_ = next_;
    other.end_ = end_;
    other.next_weight_ = next_weight_;
    other.end_weight_ = end_weight_;
    return other;
  }
  [[gnu::always_inline]] void prefetch_next() {
    if (next_ != end_) {
      const double* row = rows_ + static_cast<int64_t>(*next_++) * width_.yp();
      for (int j = 0; j < width_.yp(); j += 8) prefetch_far(row + j);
    } else if (next_weight_ != end_weight_) {
      prefetch_far(single_weights_ + *next_weight_++);
    }
  }
  void prefetch_rest() {
    while (next_ != end_ || next_weight_ != end_weight_) prefetch_next();
  }

 private:
  template <int Q>
  friend class RowsAhead;
  explicit RowsAhead(int yp) : width_(yp) {}

  Width<P> width_;
  const double *rows_ = nullptr, *single_weights_ = nullptr;
  const int32_t *next_ = nullptr, *end_ = nullptr;
  const int64_t *next_weight_ = nullptr, *end_weight_ = nullptr;
};

}  // namespace
