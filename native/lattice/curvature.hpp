// Cache of a point for Hessian-vector products without forward-backward: a block of doubles for each sequence that
// fits.
//
//   tables  [3][T][Y]                  alpha, beta, S / c (forward_backward.hpp): 3 Y numbers per position
//           [3][T][Y][lanes]           the same of a group (lane_lattice.hpp), in the block of its first sequence;
//                                      also as floats
//   pairs   [T][Y], [T - 1][Y][Y]      p(t, j) and p(t, i, j): the form of Tsuboi et al. (2011)
//
// Order k >= 2 stores alpha and beta of the last min(t + 1, k) labels, or p of the last min(t, k) + 1 labels, position
// by position.
//
// The blocks belong to one weight vector. A sequence that needs the log domain has no tables and is computed again in
// each product.
#pragma once

#include <cstdint>

namespace crfit {

struct Kept {
  bool pairs = false;               // which of the two forms
  bool floats = false;              // tables of groups in single precision
  const int64_t* offset = nullptr;  // [n_sequences] of a block in `values`, -1: not cached
  double* values = nullptr;
  uint8_t* filled = nullptr;  // [n_sequences] whether the block is valid

  double* block(int64_t sequence) const { return offset[sequence] < 0 ? nullptr : values + offset[sequence]; }
};

// Numbers in the block of a sequence of T positions.
static inline int64_t kept_size(bool pairs, int64_t T, int64_t Y, int order) {
  if (order == 1) return pairs ? T * Y + (T - 1) * Y * Y : 3 * T * Y;
  int64_t total = pairs ? 0 : T * Y, size = Y, t = 0;
  for (; t < T && t < order - (pairs ? 0 : 1); ++t, size *= Y) total += pairs ? size : 2 * size;
  return total + (T - t) * (pairs ? size : 2 * size);
}

}  // namespace crfit
