// Strings to ids and back: one byte arena, offsets, and an open-addressing table of ids.
//
// Ids follow the order of first appearance. Look-ups on a locked alphabet are thread-safe.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace crfit {

// Both halves of the product, folded into one.
inline uint64_t multiply_fold(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
  __extension__ typedef unsigned __int128 Wide;
  const Wide m = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(m) ^ static_cast<uint64_t>(m >> 64);
#else
  const uint64_t half = 0xFFFFFFFF, a0 = a & half, a1 = a >> 32, b0 = b & half, b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & half);
  return (a * b) ^ (a1 * b1 + (middle >> 32) + (other >> 32));
#endif
}

// 64-bit hash of a byte string, eight bytes at a time (multiply and fold). Not collision-resistant: an attacker can
// only slow down their own training.
inline uint64_t hash_bytes(std::string_view s) {
  const char* p = s.data();
  std::size_t n = s.size();
  uint64_t h = 0x9E3779B97F4A7C15ull ^ n, word = 0;
  for (; n >= 8; p += 8, n -= 8) {
    std::memcpy(&word, p, 8);
    h = multiply_fold(h ^ word, 0xD6E8FEB86659FD93ull);
  }
  // The last 0 to 7 bytes in two loads of fixed size, which may overlap: a copy of n bytes would be a function call.
  word = 0;
  if (n >= 4) {
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    word = static_cast<uint64_t>(high) << 32 | low;
  } else if (n > 0) {
    const auto byte = [&](std::size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(p[i])); };
    word = byte(0) << 16 | byte(n / 2) << 8 | byte(n - 1);
  }
  return multiply_fold(h ^ word, 0xA0761D6478BD642Full);
}

// Strings concatenated in `bytes`; string i is bytes[offsets[i]:offsets[i + 1]].
struct Strings {
  const char* bytes;
  const int64_t* offsets;
  int64_t size;
  std::string_view operator[](int64_t i) const {
    return {bytes + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
  }
};

class Alphabet {
 public:
  Alphabet();

  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  std::string_view operator[](int64_t id) const {
    return {bytes_.data() + offsets_[id], static_cast<std::size_t>(offsets_[id + 1] - offsets_[id])};
  }

  int32_t find(std::string_view s) const { return find(s, hash_bytes(s)); }  // -1 if absent
  int32_t find(std::string_view s, uint64_t hash) const;
  int32_t add(std::string_view s) { return add(s, hash_bytes(s)); }  // id, new or old
  int32_t add(std::string_view s, uint64_t hash);
  void reserve(int64_t n_strings, int64_t n_bytes);

  // Ids of n strings given by string(i), -1 where absent.
  template <class String>
  void find_all(std::size_t n, String string, int32_t* ids) const {
    constexpr std::size_t kGroup = 32;
    std::string_view strings[kGroup];
    uint64_t hashes[kGroup];
    for (std::size_t first = 0; first < n; first += kGroup) {
      const std::size_t count = n - first < kGroup ? n - first : kGroup;
      for (std::size_t k = 0; k < count; ++k) {
        strings[k] = string(first + k);
        hashes[k] = hash_bytes(strings[k]);
        prefetch(hashes[k]);
      }
      find_hashed(count, strings, hashes, ids + first);
    }
  }

  // The same for a few strings with these hashes, whose slots were prefetched. In large alphabets a look-up mostly
  // waits for the slot, the offset and the bytes in turn, so the strings wait for each of them together.
  void find_hashed(std::size_t n, const std::string_view* strings, const uint64_t* hashes, int32_t* ids) const {
    for (std::size_t k = 0; k < n; ++k) {
      ids[k] = first_with_tag(hashes[k]);
      if (ids[k] >= 0) __builtin_prefetch(&offsets_[static_cast<std::size_t>(ids[k])]);
    }
    for (std::size_t k = 0; k < n; ++k)
      if (ids[k] >= 0) __builtin_prefetch(bytes_.data() + offsets_[static_cast<std::size_t>(ids[k])]);
    for (std::size_t k = 0; k < n; ++k)
      if (ids[k] >= 0 && !same((*this)[ids[k]], strings[k])) ids[k] = find(strings[k], hashes[k]);
  }

  std::vector<int32_t> find_all(const Strings& strings) const;  // ids, -1 where absent
  std::vector<int32_t> add_all(const Strings& strings);         // ids, new or old

  // Prefetches what a look-up with this hash reads: first the slot, later the offset of its string.
  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[slot_begin(hash)]); }
  void prefetch_string(uint64_t hash) const {
    const int32_t id = slots_[slot_begin(hash)].id;
    if (id >= 0) __builtin_prefetch(&offsets_[static_cast<std::size_t>(id)]);
  }

  const std::vector<char>& bytes() const { return bytes_; }
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  struct Slot {
    uint32_t tag;  // upper half of the hash; its low bits are the slot where the search starts
    int32_t id;    // -1: free
  };
  void grow();
  std::size_t slot_begin(uint64_t hash) const { return (hash >> 32) & (slots_.size() - 1); }
  std::size_t slot_of(std::string_view s, uint64_t hash) const;

  // The id of the first string whose hash has the same tag, nearly always the one with this hash; -1 without one.
  int32_t first_with_tag(uint64_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = slot_begin(hash);
    while (slots_[i].id >= 0 && slots_[i].tag != static_cast<uint32_t>(hash >> 32)) i = (i + 1) & mask;
    return slots_[i].id;
  }

  // Whether two strings are equal, without a function call for short ones.
  static bool same(std::string_view a, std::string_view b) {
    const std::size_t n = a.size();
    if (n != b.size()) return false;
    if (n < 8 || n > 32) return n == 0 || std::memcmp(a.data(), b.data(), n) == 0;  // without bytes data() may be null
    const auto differ = [&](std::size_t at) {
      uint64_t x, y;
      std::memcpy(&x, a.data() + at, 8);
      std::memcpy(&y, b.data() + at, 8);
      return x ^ y;
    };
    uint64_t bits = differ(n - 8);
    for (std::size_t at = 0; at + 8 < n; at += 8) bits |= differ(at);
    return bits == 0;
  }

  std::vector<char> bytes_;
  std::vector<int64_t> offsets_;  // [size + 1]
  std::vector<Slot> slots_;       // power of two, at most 3/5 full
};

}  // namespace crfit
