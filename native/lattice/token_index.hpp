// weights="observed": the attributes of each position of a dataset as dense rows and single weights.
#pragma once

#include <cstdint>

#include "base/buffers.hpp"
#include "lattice/prepared.hpp"

namespace crfit {

class TokenTable {
 public:
  TokenTable() = default;
  TokenTable(const TokenTable&) = delete;
  TokenTable& operator=(const TokenTable&) = delete;

  void build(const DataView& data, const LayoutView& layout, const int32_t* hot_row);
  const TokenIndex& index() const { return index_; }

 private:
  void reserve(const DataView& data, const LayoutView& layout, const int32_t* hot_row);

  Vector<int64_t> dense_ptr_, sparse_ptr_, sparse_weights_;
  Vector<int32_t> dense_rows_, sparse_labels_;
  Vector<double> dense_values_, sparse_values_;
  TokenIndex index_;
};

// The part of a table that reads some of the weights; all others count as 0.
class TokenSelection {
 public:
  // row_of: [n_hot] number of a dense row here, -1: not read; weights: [n_weights] which single weights are.
  void select(const TokenIndex& all, int64_t n_positions, const int32_t* row_of, const uint8_t* weights, int n_threads);
  const TokenIndex& index() const { return index_; }

 private:
  std::vector<int64_t> dense_ptr_, sparse_ptr_, sparse_weights_;
  std::vector<int32_t> dense_rows_, sparse_labels_;
  std::vector<double> dense_values_, sparse_values_;
  TokenIndex index_;
};

}  // namespace crfit
