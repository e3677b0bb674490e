// Positions with the same attributes and values, which have the same node scores.
#pragma once

#include <cstdint>
#include <vector>

#include "base/views.hpp"

namespace crfit {

class SharedTokens {
 public:
  explicit SharedTokens(const DataView& data);
  SharedTokens(const SharedTokens&) = delete;
  SharedTokens& operator=(const SharedTokens&) = delete;

  // Attribute occurrences that scores no longer have to read.
  int64_t n_saved() const { return n_saved_; }
  int64_t size() const { return static_cast<int64_t>(position_ptr_.size()) - 1; }
  const int32_t* token_of() const { return token_of_.data(); }          // [n_positions] number of the distinct token
  const int64_t* position_ptr() const { return position_ptr_.data(); }  // [size + 1] positions of each, ascending
  const int32_t* positions() const { return positions_.data(); }
  // A dataset of the distinct tokens, in order of first appearance, without labels.
  const DataView& distinct() const { return distinct_; }

 private:
  std::vector<int32_t> token_of_, positions_, attr_ids_;
  std::vector<int64_t> position_ptr_, seq_ptr_, attr_ptr_;
  std::vector<double> attr_values_;
  int64_t n_saved_ = 0;
  DataView distinct_;
};

}  // namespace crfit
