// Logistic regression: sequences of one position, two labels, and one weight per attribute (for label 1). Every
// attribute of the data has a weight.
//
//   s_i = x_i.w + offset_i      p_i = 1 / (1 + exp(-s_i))      loss = sum_i c_i log(1 + exp(-+s_i))
//   gradient  sum_i c_i (p_i - y_i) x_i        H v = sum_i d_i (x_i.v) x_i,  d_i = c_i p_i (1 - p_i)
//
// A row is read once for its score and, while still in the cache, again for its share of the sum: no transposed index
// is needed. Rows are split into parts that depend only on the dataset. The sums of the parts are added in order, so
// the result does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/core.hpp"
#include "batch/kernels.hpp"
#include "lattice/prepared.hpp"

namespace crfit {

class Binary final : public Core {
 public:
  Binary(const DataView& data, const LayoutView& layout, const CoreOptions& options);
  // Whether this class can compute the objective of the data and the layout.
  static bool fits(const DataView& data, const LayoutView& layout);

  double loss(const double* w) override;
  double loss_on(const double* w, const int64_t* sequences, int64_t n) override;
  double loss_and_grad(const double* w, double l2, double* g) override;
  double loss_and_grad_on(const double* w, double l2, const int64_t* sequences, int64_t n, double* g) override;
  void expectations(const double* w, double* out) override;
  void set_line(const double* w, const double* d) override;
  void along(double a, double& loss, double& slope) override;
  void keep_curvature(bool, bool, int64_t, int64_t, bool, bool) override {}  // one number per row: always cached
  int64_t kept_bytes() const override { return 8 * curvature_.size(); }
  int64_t table_bytes() const override;
  void hessian_product(const double* w, const double* v, double l2, double* out) override;
  void hessian_diagonal(const double* w, double* out) override;
  int64_t n_distinct() const override { return data_.n_positions; }

 private:
  BinaryJob job(const double* w) const;
  double walk(void (*kernel)(const BinaryJob&), const BinaryJob& settings, const double* x, double l2, double* out);

  DataView data_;
  int64_t n_attributes_;
  int n_threads_;
  bool repeats_ = false;           // an attribute occurs twice in some row
  std::vector<int64_t> part_ptr_;  // rows of each part
  Buffer<double> offsets_;         // [n_rows] score of label 1 minus score of label 0, empty: 0
  Buffer<double> sums_;            // [n_parts][n_attributes]
  Buffer<double> curvature_;       // [n_rows] d_i at the point of the last loss_and_grad
  Buffer<double> base_, step_;     // [n_rows] scores of the line
};

}  // namespace crfit
