// weights="observed": the attributes of each position of a dataset as dense rows and single weights.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.hpp"

namespace crfit {

class TokenTable {
 public:
  TokenTable() = default;
  TokenTable(const TokenTable&) = delete;
  TokenTable& operator=(const TokenTable&) = delete;

  void build(const DataView& data, const LayoutView& layout, const int32_t* hot_row);
  const TokenIndex& index() const { return index_; }

 private:
  std::vector<int64_t> dense_ptr_, sparse_ptr_, sparse_weights_;
  std::vector<int32_t> dense_rows_, sparse_labels_;
  std::vector<double> dense_values_, sparse_values_;
  TokenIndex index_;
};

}  // namespace crfit
