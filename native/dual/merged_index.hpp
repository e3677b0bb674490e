// The attributes of each sequence with their occurrences merged.
//
// A step on a sequence reads every weight that the sequence touches once and writes it once, however often its
// attribute occurs, and |E_old Phi - E_new Phi|^2 is a sum over distinct weights: occurrences of one attribute must be
// added up before they are squared. Done once per dataset, this costs a sort; done in each step it would cost a hash
// table.
#pragma once

#include <cstdint>
#include <vector>

#include "base/views.hpp"

namespace crfit {

// What fires in each sequence, sorted by id; see MergedAttributes.
struct MergedIndex {
  std::vector<int64_t> ptr{0};      // [n_sequences + 1] into ids and counts
  std::vector<int64_t> occ_ptr{0};  // [n_sequences + 1] into positions and values
  std::vector<int32_t> ids, counts, positions;
  std::vector<double> values;  // empty: all 1
};

// Merges what ptr [n_positions + 1] and ids say about each position. Ids from n_known on are left out, and so is what
// fires before position first_position of its sequence: the first position has no edge.
MergedIndex merge(int n_threads, const DataView& data, const int64_t* ptr, const int32_t* ids, const double* values,
                  int64_t n_known, int64_t first_position);

}  // namespace crfit
