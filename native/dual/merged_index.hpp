// The attributes of each sequence with their occurrences merged.
//
// A step on a sequence reads and writes every weight it touches once, however often the attribute occurs.
// |E_old Phi - E_new Phi|^2 is a sum over distinct weights, so occurrences of an attribute must be added before
// squaring. Doing this once per dataset costs a sort; doing it in each step would need a hash table.
#pragma once

#include <cstdint>
#include <vector>

#include "base/views.hpp"

namespace crfit {

// Occurrences in each sequence, sorted by id; see MergedAttributes.
struct MergedIndex {
  std::vector<int64_t> ptr{0};      // [n_sequences + 1] into ids and counts
  std::vector<int64_t> occ_ptr{0};  // [n_sequences + 1] into positions and values
  std::vector<int32_t> ids, counts, positions;
  std::vector<double> values;  // empty: all 1
};

// Merges the occurrences given by ptr [n_positions + 1] and ids. Ids from n_known on are skipped, and so are positions
// before first_position of a sequence: the first position has no edge.
MergedIndex merge(int n_threads, const DataView& data, const int64_t* ptr, const int32_t* ids, const double* values,
                  int64_t n_known, int64_t first_position);

}  // namespace crfit
