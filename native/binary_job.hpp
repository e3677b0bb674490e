// What the kernels of logistic regression take and give (binary.hpp).
#pragma once

#include <cstdint>

#include "views.hpp"

namespace crfit {

struct BinaryJob {
  const DataView* data = nullptr;
  const double* w = nullptr;        // [n_attributes]
  const double* offsets = nullptr;  // [n_rows], null: 0
  int64_t n_attributes = 0;         // all ids are smaller
  const int64_t* rows = nullptr;    // ids, or null for first, first + 1, ...
  int64_t first = 0, last = 0;
  bool subtract_gold = true;    // p - y, else p
  bool repeats = false;         // an attribute may be given twice in a row
  double* loss = nullptr;       // += sum c_i (-log p(y_i))
  double* slope = nullptr;      // += its derivative along the line
  double* sums = nullptr;       // [n_attributes] += the rows' shares
  double* curvature = nullptr;  // [n_rows] c p (1 - p): written by gradients unless null, read by products
  double* scores = nullptr;     // [n_rows] x.w, plus the offsets if there are any
  const double *base = nullptr, *step = nullptr;  // [n_rows] scores of a line
  double a = 0.0;
};

}  // namespace crfit
