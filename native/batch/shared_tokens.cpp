#include "batch/shared_tokens.hpp"

#include <bit>
#include <cstring>

namespace crfit {

namespace {

uint64_t mixed(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

uint64_t hash_of(const DataView& data, int64_t position) {
  uint64_t h = 0;
  for (int64_t k = data.attr_ptr[position]; k < data.attr_ptr[position + 1]; ++k) {
    h = mixed(h, static_cast<uint64_t>(data.attr_ids[k]) + 1);
    if (data.attr_values != nullptr) h = mixed(h, std::bit_cast<uint64_t>(data.attr_values[k]));
  }
  return h;
}

bool same(const DataView& data, int64_t a, int64_t b) {
  const int64_t first = data.attr_ptr[a], other = data.attr_ptr[b];
  const std::size_t n = static_cast<std::size_t>(data.attr_ptr[a + 1] - first);
  if (static_cast<std::size_t>(data.attr_ptr[b + 1] - other) != n) return false;
  if (n == 0) return true;
  return std::memcmp(data.attr_ids + first, data.attr_ids + other, 4 * n) == 0 &&
         (data.attr_values == nullptr || std::memcmp(data.attr_values + first, data.attr_values + other, 8 * n) == 0);
}

}  // namespace

SharedTokens::SharedTokens(const DataView& data) {
  const int64_t N = data.n_positions;
  // Open addressing, at most half full.
  const std::size_t capacity = std::bit_ceil(static_cast<std::size_t>(2 * N + 2));
  std::vector<int32_t> table(capacity, -1);  // distinct tokens by hash
  std::vector<int64_t> first;                // a position of each
  std::vector<uint64_t> hashes;
  token_of_.resize(static_cast<std::size_t>(N));
  position_ptr_.assign(1, 0);
  for (int64_t t = 0; t < N; ++t) {
    const uint64_t h = hash_of(data, t);
    std::size_t at = h & (capacity - 1);
    // Attributes in the same order with the same values, bit for bit: equal scores to the last bit.
    while (table[at] >= 0 && !(hashes[table[at]] == h && same(data, first[table[at]], t)))
      at = (at + 1) & (capacity - 1);
    if (table[at] < 0) {
      table[at] = static_cast<int32_t>(first.size());
      first.push_back(t);
      hashes.push_back(h);
      position_ptr_.push_back(0);
    }
    token_of_[t] = table[at];
    ++position_ptr_[token_of_[t] + 1];
  }
  const int64_t D = size();
  for (int64_t d = 0; d < D; ++d) position_ptr_[d + 1] += position_ptr_[d];
  std::vector<int64_t> next(position_ptr_.begin(), position_ptr_.end() - 1);
  positions_.resize(static_cast<std::size_t>(N));
  // Positions of a token ascend: the order in which their residual rows are summed.
  for (int64_t t = 0; t < N; ++t) positions_[next[token_of_[t]]++] = static_cast<int32_t>(t);

  attr_ptr_.assign(1, 0);
  for (int64_t d = 0; d < D; ++d) {
    const int64_t begin = data.attr_ptr[first[d]], end = data.attr_ptr[first[d] + 1];
    attr_ids_.insert(attr_ids_.end(), data.attr_ids + begin, data.attr_ids + end);
    if (data.attr_values != nullptr)
      attr_values_.insert(attr_values_.end(), data.attr_values + begin, data.attr_values + end);
    attr_ptr_.push_back(static_cast<int64_t>(attr_ids_.size()));
    // Each distinct token as a sequence of one position.
    seq_ptr_.push_back(d);
  }
  seq_ptr_.push_back(D);
  n_saved_ = data.attr_ptr[N] - attr_ptr_.back();
  distinct_.n_sequences = distinct_.n_positions = D;
  distinct_.seq_ptr = seq_ptr_.data();
  distinct_.attr_ptr = attr_ptr_.data();
  distinct_.attr_ids = attr_ids_.data();
  distinct_.attr_values = data.attr_values == nullptr ? nullptr : attr_values_.data();
}

}  // namespace crfit
