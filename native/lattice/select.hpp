// Some of the entries of lists, in their order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/pool.hpp"

namespace crfit {

// List r has the entries ptr[r] .. ptr[r + 1] - 1; those with keep(k) are left. Sets out_ptr in the same way, calls
// make_room(n) for n entries in all, then move(k, at) to copy them.
template <class Keep, class Room, class Move>
void select_entries(int n_threads, int64_t n_lists, const int64_t* ptr, std::vector<int64_t>& out_ptr, const Keep& keep,
                    const Room& make_room, const Move& move) {
  constexpr int64_t kPart = 4096;  // lists per task
  const int64_t n_parts = (n_lists + kPart - 1) / kPart;
  out_ptr.resize(static_cast<std::size_t>(n_lists) + 1);
  out_ptr[0] = 0;
  // Ends of the lists, counted from the begin of their part.
  parallel_for(n_threads, n_parts, [&](int64_t part, int) {
    int64_t n = 0;
    for (int64_t r = part * kPart; r < std::min(n_lists, (part + 1) * kPart); ++r) {
      for (int64_t k = ptr[r]; k < ptr[r + 1]; ++k) n += keep(k);
      out_ptr[r + 1] = n;
    }
  });
  std::vector<int64_t> begin(static_cast<std::size_t>(n_parts) + 1, 0);
  for (int64_t part = 0; part < n_parts; ++part)
    begin[part + 1] = begin[part] + out_ptr[std::min(n_lists, (part + 1) * kPart)];
  make_room(static_cast<std::size_t>(begin[n_parts]));
  parallel_for(n_threads, n_parts, [&](int64_t part, int) {
    int64_t at = begin[part];
    const int64_t end = begin[part + 1];
    for (int64_t r = part * kPart; r < std::min(n_lists, (part + 1) * kPart); ++r) {
      // Entries that are left out are overwritten by the next: no branch that depends on the data.
      for (int64_t k = ptr[r]; k < ptr[r + 1] && at < end; ++k) {
        move(k, at);
        at += keep(k);
      }
      out_ptr[r + 1] += begin[part];
    }
  });
}

}  // namespace crfit
