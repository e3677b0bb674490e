#include "batch/core.hpp"

#include <cmath>

#include "batch/batch.hpp"
#include "batch/binary.hpp"

namespace crfit {

std::unique_ptr<Core> make_core(const DataView& data, const LayoutView& layout, const CoreOptions& options) {
  if (Binary::fits(data, layout)) return std::make_unique<Binary>(data, layout, options);
  return std::make_unique<Batch>(data, layout, options);
}

bool one_position(const DataView& data) { return data.n_sequences == data.n_positions; }  // no sequence is empty

double sum_in_order(const double* parts, int64_t n) {
  double total = 0.0, lost = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    const double x = parts[i], next = total + x;
    lost += std::fabs(total) >= std::fabs(x) ? (total - next) + x : (x - next) + total;
    total = next;
  }
  return std::isfinite(lost) ? total + lost : total;
}

}  // namespace crfit
