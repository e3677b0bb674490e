#include "lattice/token_index.hpp"

#include <algorithm>

#include "lattice/select.hpp"

namespace crfit {

void TokenTable::build(const DataView& data, const LayoutView& layout, const int32_t* hot_row) {
  const bool valued = data.attr_values != nullptr;
  reserve(data, layout, hot_row);
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

// Room for exactly what the table holds: growing step by step would copy it and leave up to half of it unused.
void TokenTable::reserve(const DataView& data, const LayoutView& layout, const int32_t* hot_row) {
  std::vector<int64_t> counts(static_cast<std::size_t>(layout.n_attributes), 0);
  for (int64_t k = data.attr_ptr[0]; k < data.attr_ptr[data.n_positions]; ++k)
    if (data.attr_ids[k] < layout.n_attributes) ++counts[static_cast<std::size_t>(data.attr_ids[k])];
  std::size_t n_dense = 0, n_sparse = 0;
  for (int64_t a = 0; a < layout.n_attributes; ++a) {
    const auto count = static_cast<std::size_t>(counts[static_cast<std::size_t>(a)]);
    if (hot_row[a] >= 0) {
      n_dense += count;
    } else {
      n_sparse += count * static_cast<std::size_t>(layout.state_ptr[a + 1] - layout.state_ptr[a]);
    }
  }
  const std::size_t padding = kTokenPadding, n = static_cast<std::size_t>(data.n_positions) + 1;
  dense_ptr_.reserve(n);
  sparse_ptr_.reserve(n);
  dense_rows_.reserve(n_dense + padding);
  sparse_weights_.reserve(n_sparse + padding);
  sparse_labels_.reserve(n_sparse);
  if (data.attr_values == nullptr) return;
  dense_values_.reserve(n_dense);
  sparse_values_.reserve(n_sparse);
}

void TokenSelection::select(const TokenIndex& all, int64_t n_positions, const int32_t* row_of, const uint8_t* weights,
                            int n_threads) {
  // A list without entries has no values either.
  const bool dense_valued = all.dense_values != nullptr, sparse_valued = all.sparse_values != nullptr;
  select_entries(
      n_threads, n_positions, all.dense_ptr, dense_ptr_, [&](int64_t k) { return row_of[all.dense_rows[k]] >= 0; },
      [&](std::size_t n) {
        dense_rows_.resize(n + kTokenPadding);
        if (dense_valued) dense_values_.resize(n);
      },
      [&](int64_t k, int64_t at) {
        dense_rows_[at] = row_of[all.dense_rows[k]];
        if (dense_valued) dense_values_[at] = all.dense_values[k];
      });
  select_entries(
      n_threads, n_positions, all.sparse_ptr, sparse_ptr_,
      [&](int64_t k) { return weights[all.sparse_weights[k]] != 0; },
      [&](std::size_t n) {
        sparse_weights_.resize(n + kTokenPadding);
        sparse_labels_.resize(n);
        if (sparse_valued) sparse_values_.resize(n);
      },
      [&](int64_t k, int64_t at) {
        sparse_weights_[at] = all.sparse_weights[k];
        sparse_labels_[at] = all.sparse_labels[k];
        if (sparse_valued) sparse_values_[at] = all.sparse_values[k];
      });
  // Entries beyond the end are prefetched: any that exist.
  std::fill_n(dense_rows_.end() - kTokenPadding, kTokenPadding, 0);
  std::fill_n(sparse_weights_.end() - kTokenPadding, kTokenPadding, 0);
  index_ = {
      dense_ptr_.data(),      dense_rows_.data(),    dense_valued ? dense_values_.data() : nullptr,  sparse_ptr_.data(),
      sparse_weights_.data(), sparse_labels_.data(), sparse_valued ? sparse_values_.data() : nullptr};
}

}  // namespace crfit
