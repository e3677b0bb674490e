// Validation of arrays from Python; kernels read them without bounds checks. All functions throw std::invalid_argument,
// which becomes ValueError in Python.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace crfit {

inline void require(bool ok, const char* message) {
  if (!ok) throw std::invalid_argument(message);
}

// ptr [n + 1] starts with 0, never decreases and ends with total.
void check_offsets(const int64_t* ptr, int64_t n, int64_t total, const char* message);
// 0 <= ids[i] < limit.
void check_ids(const int32_t* ids, int64_t n, int64_t limit, const char* message);
void check_ids(const int64_t* ids, int64_t n, int64_t limit, const char* message);
// -1 <= rows[i] < limit.
void check_rows(const int32_t* rows, int64_t n, int64_t limit, const char* message);
// Ids ascend strictly within each of the n_rows rows.
void check_ascending(const int64_t* ptr, int64_t n_rows, const int32_t* ids, const char* message);
// Codes ascend strictly and lie in [0, limit).
void check_codes(const int64_t* codes, int64_t n, int64_t limit, const char* message);
// Every row has an entry.
void check_filled(const int64_t* ptr, int64_t n_rows, const char* message);

}  // namespace crfit
