#include "margin/sparse_sum.hpp"

namespace crfit {

namespace {

constexpr std::size_t kFewSlots = 1024;  // initial size; doubled whenever half are in use

// Indices of neighbouring weights differ only in their last bits: a multiplication spreads them.
std::size_t mixed(int64_t place) {
  const uint64_t product = static_cast<uint64_t>(place) * 0x9E3779B97F4A7C15u;
  return static_cast<std::size_t>(product ^ (product >> 32));
}

}  // namespace

SparseSum::SparseSum() : slots_(kFewSlots, 0) {}

std::size_t SparseSum::find(int64_t place) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = mixed(place) & mask;
  while (slots_[slot] != 0 && entries_[slots_[slot] - 1].place != place) slot = (slot + 1) & mask;
  return slot;
}

void SparseSum::add(int64_t place, double x) {
  const std::size_t slot = find(place);
  if (slots_[slot] != 0) {
    entries_[slots_[slot] - 1].value += x;
    return;
  }
  entries_.push_back({place, x, slot});
  slots_[slot] = static_cast<int32_t>(entries_.size());
  if (2 * entries_.size() > slots_.size()) grow();
}

void SparseSum::grow() {
  slots_.assign(2 * slots_.size(), 0);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].slot = find(entries_[i].place);
    slots_[entries_[i].slot] = static_cast<int32_t>(i + 1);
  }
}

void SparseSum::clear() {
  for (const Entry& entry : entries_) slots_[entry.slot] = 0;
  entries_.clear();
}

}  // namespace crfit
