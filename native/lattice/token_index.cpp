#include "lattice/token_index.hpp"

namespace crfit {

void TokenTable::build(const DataView& data, const LayoutView& layout, const int32_t* hot_row) {
  const bool valued = data.attr_values != nullptr;
  dense_ptr_.assign(1, 0);
  sparse_ptr_.assign(1, 0);
  // For each position first the rows, then the single weights with their labels: two loops without branches instead of
  // one with a branch per attribute.
  for (int64_t t = 0; t < data.n_positions; ++t) {
    for (int64_t k = data.attr_ptr[t]; k < data.attr_ptr[t + 1]; ++k) {
      const int64_t a = data.attr_ids[k];
      if (a >= layout.n_attributes) continue;
      if (hot_row[a] >= 0) {
        dense_rows_.push_back(hot_row[a]);
        if (valued) dense_values_.push_back(data.attr_values[k]);
        continue;
      }
      for (int64_t i = layout.state_ptr[a]; i < layout.state_ptr[a + 1]; ++i) {
        sparse_weights_.push_back(i);
        sparse_labels_.push_back(layout.state_labels[i]);
        if (valued) sparse_values_.push_back(data.attr_values[k]);
      }
    }
    dense_ptr_.push_back(static_cast<int64_t>(dense_rows_.size()));
    sparse_ptr_.push_back(static_cast<int64_t>(sparse_weights_.size()));
  }
  // Prefetching reads entries beyond the end.
  for (int64_t i = 0; i < kTokenPadding; ++i) {
    dense_rows_.push_back(0);
    sparse_weights_.push_back(0);
  }
  index_ = {dense_ptr_.data(),      dense_rows_.data(),    valued ? dense_values_.data() : nullptr, sparse_ptr_.data(),
            sparse_weights_.data(), sparse_labels_.data(), valued ? sparse_values_.data() : nullptr};
}

}  // namespace crfit
