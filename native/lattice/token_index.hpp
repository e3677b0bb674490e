// weights="observed": the attributes of each position of a dataset as dense rows and single weights.
#pragma once

#include <cstdint>

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

}  // namespace crfit
