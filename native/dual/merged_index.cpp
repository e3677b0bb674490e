#include "dual/merged_index.hpp"

#include <algorithm>

#include "base/pool.hpp"

namespace crfit {

namespace {

// Sorts the occurrences in each of the sequences [first_sequence, last_sequence), from position first_position, by id.
MergedIndex merge_part(const DataView& data, const int64_t* ptr, const int32_t* ids, const double* values,
                       int64_t n_known, int64_t first_position, int64_t first_sequence, int64_t last_sequence) {
  MergedIndex index;
  std::vector<uint64_t> found;       // id, then occurrence counted from the first of the sequence
  std::vector<int32_t> position_of;  // of the occurrences
  for (int64_t n = first_sequence; n < last_sequence; ++n) {
    const int64_t begin = data.seq_ptr[n], end = data.seq_ptr[n + 1], first = ptr[begin];
    found.clear();
    position_of.clear();
    for (int64_t t = begin; t < end; ++t)
      for (int64_t k = ptr[t]; k < ptr[t + 1]; ++k) {
        position_of.push_back(static_cast<int32_t>(t - begin));
        if (t - begin >= first_position && ids[k] < n_known)
          found.push_back(static_cast<uint64_t>(ids[k]) << 32 | static_cast<uint64_t>(k - first));
      }
    std::sort(found.begin(), found.end());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const uint32_t occurrence = static_cast<uint32_t>(found[i]);
      if (i == 0 || found[i] >> 32 != found[i - 1] >> 32) {
        index.ids.push_back(static_cast<int32_t>(found[i] >> 32));
        index.counts.push_back(0);
      }
      ++index.counts.back();
      index.positions.push_back(position_of[occurrence]);
      if (values != nullptr) index.values.push_back(values[first + occurrence]);
    }
    index.ptr.push_back(static_cast<int64_t>(index.ids.size()));
    index.occ_ptr.push_back(static_cast<int64_t>(index.positions.size()));
  }
  return index;
}

}  // namespace

// In parts, which depend only on the dataset and are joined in order.
MergedIndex merge(int n_threads, const DataView& data, const int64_t* ptr, const int32_t* ids, const double* values,
                  int64_t n_known, int64_t first_position) {
  constexpr int64_t kParts = 64;
  std::vector<MergedIndex> parts(kParts);
  parallel_for(n_threads, kParts, [&](int64_t k, int) {
    parts[k] = merge_part(data, ptr, ids, values, n_known, first_position, data.n_sequences * k / kParts,
                          data.n_sequences * (k + 1) / kParts);
  });
  MergedIndex index;
  const auto append = [](auto& all, const auto& part) { all.insert(all.end(), part.begin(), part.end()); };
  for (const MergedIndex& part : parts) {
    const int64_t merged = index.ptr.back(), occurrences = index.occ_ptr.back();
    for (std::size_t n = 1; n < part.ptr.size(); ++n) {
      index.ptr.push_back(merged + part.ptr[n]);
      index.occ_ptr.push_back(occurrences + part.occ_ptr[n]);
    }
    append(index.ids, part.ids);
    append(index.counts, part.counts);
    append(index.positions, part.positions);
    append(index.values, part.values);
  }
  return index;
}

}  // namespace crfit
