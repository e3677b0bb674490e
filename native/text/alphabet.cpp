#include "text/alphabet.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace crfit {

Alphabet::Alphabet() : offsets_(1, 0), slots_(64, Slot{0, -1}) {}

// The slot that holds s, or the free slot for it.
std::size_t Alphabet::slot_of(std::string_view s, uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const uint32_t tag = static_cast<uint32_t>(hash >> 32);
  std::size_t i = slot_begin(hash);
  for (; slots_[i].id >= 0; i = (i + 1) & mask)
    // The tag, the upper half of the hash, saves most comparisons with strings elsewhere in memory.
    if (slots_[i].tag == tag && (*this)[slots_[i].id] == s) break;
  return i;
}

int32_t Alphabet::find(std::string_view s, uint64_t hash) const { return slots_[slot_of(s, hash)].id; }

int32_t Alphabet::add(std::string_view s, uint64_t hash) {
  std::size_t i = slot_of(s, hash);
  if (slots_[i].id >= 0) return slots_[i].id;
  if (size() == std::numeric_limits<int32_t>::max()) throw std::length_error("more than 2^31 - 1 distinct strings");
  // At most three slots in five are in use: beyond that linear probing gets slow.
  if (5 * static_cast<std::size_t>(size() + 1) > 3 * slots_.size()) {
    grow();
    i = slot_of(s, hash);
  }
  const int32_t id = static_cast<int32_t>(size());
  bytes_.insert(bytes_.end(), s.begin(), s.end());
  offsets_.push_back(static_cast<int64_t>(bytes_.size()));
  slots_[i] = Slot{static_cast<uint32_t>(hash >> 32), id};
  return id;
}

void Alphabet::reserve(int64_t n_strings, int64_t n_bytes) {
  offsets_.reserve(static_cast<std::size_t>(n_strings) + 1);
  bytes_.reserve(static_cast<std::size_t>(n_bytes));
  while (5 * static_cast<std::size_t>(n_strings) > 3 * slots_.size()) grow();
}

void Alphabet::grow() {
  std::vector<Slot> old(2 * slots_.size(), Slot{0, -1});
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id < 0) continue;
    // The search also starts at the tag (slot_begin), so growing does not hash the strings again.
    std::size_t i = slot.tag & mask;
    while (slots_[i].id >= 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

std::vector<int32_t> Alphabet::find_all(const Strings& strings) const {
  const auto n = static_cast<std::size_t>(strings.size);
  std::vector<int32_t> ids(n);
  find_all(n, [&](std::size_t i) { return strings[static_cast<int64_t>(i)]; }, ids.data());
  return ids;
}

std::vector<int32_t> Alphabet::add_all(const Strings& strings) {
  reserve(size() + strings.size, static_cast<int64_t>(bytes_.size()) + strings.offsets[strings.size]);
  std::vector<int32_t> ids(static_cast<std::size_t>(strings.size));
  constexpr int64_t kGroup = 32;  // strings that wait for their slots together
  uint64_t hashes[kGroup];
  for (int64_t first = 0; first < strings.size; first += kGroup) {
    const int64_t count = std::min(strings.size - first, kGroup);
    for (int64_t k = 0; k < count; ++k) prefetch(hashes[k] = hash_bytes(strings[first + k]));
    for (int64_t k = 0; k < count; ++k) ids[static_cast<std::size_t>(first + k)] = add(strings[first + k], hashes[k]);
  }
  return ids;
}

}  // namespace crfit
