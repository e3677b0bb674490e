// The loops have no early exit, so the compiler can vectorise them.
#include "base/checks.hpp"

namespace crfit {

namespace {

template <class Id>
void check_range(const Id* ids, int64_t n, int64_t least, int64_t limit, const char* message) {
  bool ok = true;
  for (int64_t i = 0; i < n; ++i) ok &= ids[i] >= least && ids[i] < limit;
  require(ok, message);
}

}  // namespace

void check_offsets(const int64_t* ptr, int64_t n, int64_t total, const char* message) {
  bool ok = ptr[0] == 0 && ptr[n] == total;
  for (int64_t i = 0; i < n; ++i) ok &= ptr[i] <= ptr[i + 1];
  require(ok, message);
}

void check_ids(const int32_t* ids, int64_t n, int64_t limit, const char* message) {
  check_range(ids, n, 0, limit, message);
}

void check_ids(const int64_t* ids, int64_t n, int64_t limit, const char* message) {
  check_range(ids, n, 0, limit, message);
}

void check_rows(const int32_t* rows, int64_t n, int64_t limit, const char* message) {
  check_range(rows, n, -1, limit, message);
}

void check_ascending(const int64_t* ptr, int64_t n_rows, const int32_t* ids, const char* message) {
  bool ok = true;
  for (int64_t row = 0; row < n_rows; ++row)
    for (int64_t i = ptr[row] + 1; i < ptr[row + 1]; ++i) ok &= ids[i - 1] < ids[i];
  require(ok, message);
}

void check_codes(const int64_t* codes, int64_t n, int64_t limit, const char* message) {
  bool ok = true;
  for (int64_t i = 0; i < n; ++i) ok &= codes[i] >= 0 && codes[i] < limit && (i == 0 || codes[i - 1] < codes[i]);
  require(ok, message);
}

void check_filled(const int64_t* ptr, int64_t n_rows, const char* message) {
  bool ok = true;
  for (int64_t row = 0; row < n_rows; ++row) ok &= ptr[row] < ptr[row + 1];
  require(ok, message);
}

}  // namespace crfit
