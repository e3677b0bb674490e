#include "batch/binary.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/dispatch.hpp"
#include "base/pool.hpp"
#include "base/vectors.hpp"
#include "batch/kernels.hpp"

namespace crfit {

namespace {
constexpr int64_t kFewestParts = 4, kMostParts = 32;  // each has a vector of sums, which must be added up
}

bool Binary::fits(const DataView& data, const LayoutView& layout) {
  if (layout.n_labels != 2 || layout.state_ptr == nullptr || layout.n_weights != layout.n_attributes ||
      layout.state_ptr[layout.n_attributes] != layout.n_attributes || !one_position(data))
    return false;
  // One weight per attribute, that of label 1: p = 1 / (1 + exp(-x.w))
  for (int64_t a = 0; a < layout.n_attributes; ++a)
    if (layout.state_ptr[a] != a || layout.state_labels[a] != 1) return false;
  return std::all_of(data.attr_ids, data.attr_ids + data.attr_ptr[data.n_positions],
                     [&](int32_t a) { return a < layout.n_attributes; });
}

Binary::Binary(const DataView& data, const LayoutView& layout, const CoreOptions& options)
    : data_(data), n_attributes_(layout.n_attributes), n_threads_(options.n_threads) {
  const int64_t n_rows = data.n_positions, n_occurrences = data.attr_ptr[n_rows];
  // Parts depend only on the dataset, so sums do not depend on threads. Each part has a vector [n_attributes] of sums;
  // use few parts if these vectors would cost more than the rows.
  const int64_t n_parts = std::clamp(n_occurrences / std::max<int64_t>(1, n_attributes_), kFewestParts, kMostParts);
  part_ptr_.assign(1, 0);  // about as many occurrences in each
  for (int64_t part = 1; part <= n_parts; ++part) {
    const int64_t* end = std::lower_bound(data.attr_ptr, data.attr_ptr + n_rows, n_occurrences * part / n_parts);
    part_ptr_.push_back(part == n_parts ? n_rows
                                        : std::max(part_ptr_.back(), static_cast<int64_t>(end - data.attr_ptr)));
  }
  sums_.resize(n_parts * n_attributes_);
  std::vector<int64_t> last_row(static_cast<std::size_t>(n_attributes_), -1);
  for (int64_t i = 0; i < n_rows; ++i)
    for (int64_t k = data.attr_ptr[i]; k < data.attr_ptr[i + 1]; ++k)
      // whether a row has an attribute twice, which matters for squares
      repeats_ |= std::exchange(last_row[data.attr_ids[k]], i) == i;
  if (options.offsets != nullptr) {
    offsets_.resize(n_rows);
    // Two labels: only the difference of their offsets matters.
    for (int64_t i = 0; i < n_rows; ++i) offsets_[i] = options.offsets[2 * i + 1] - options.offsets[2 * i];
  }
}

BinaryJob Binary::job(const double* w) const {
  BinaryJob job;
  job.data = &data_;
  job.w = w;
  job.offsets = offsets_.data();
  job.n_attributes = n_attributes_;
  return job;
}

// Runs the kernel on every part and returns the sum of the losses. Unless out is null: out = sums of the parts + l2 x.
double Binary::walk(void (*kernel)(const BinaryJob&), const BinaryJob& settings, const double* x, double l2,
                    double* out) {
  int64_t last = now();
  const int64_t n_parts = static_cast<int64_t>(part_ptr_.size()) - 1;
  std::vector<double> losses(static_cast<std::size_t>(n_parts), 0.0);
  parallel_for(n_threads_, n_parts, [&](int64_t part, int) {
    BinaryJob job = settings;
    job.first = part_ptr_[part];
    job.last = part_ptr_[part + 1];
    job.loss = &losses[part];
    job.sums = sums_.data() + part * n_attributes_;
    if (out != nullptr) std::fill_n(job.sums, n_attributes_, 0.0);
    kernel(job);
  });
  seconds_.scores += lap(last);
  if (out != nullptr) {
    constexpr int64_t kBlock = 4096;  // weights per task
    parallel_for(n_threads_, (n_attributes_ + kBlock - 1) / kBlock, [&](int64_t block, int) {
      const int64_t first = block * kBlock, end = std::min(n_attributes_, first + kBlock);
      for (int64_t a = first; a < end; ++a) out[a] = l2 * x[a];
      for (int64_t part = 0; part < n_parts; ++part)
        // in the order of the parts
        for (int64_t a = first; a < end; ++a) out[a] += sums_[part * n_attributes_ + a];
    });
    seconds_.gather += lap(last);
  }
  return sum_in_order(losses.data(), n_parts);
}

double Binary::loss(const double* w) { return walk(at_level<BatchKernels>().binary_loss, job(w), w, 0.0, nullptr); }

double Binary::loss_and_grad(const double* w, double l2, double* g) {
  if (curvature_.size() == 0) curvature_.resize(data_.n_positions);
  BinaryJob settings = job(w);
  settings.curvature = curvature_.data();
  const double loss = walk(at_level<BatchKernels>().binary_gradient, settings, w, l2, g);
  return loss + 0.5 * l2 * norms(n_threads_, n_attributes_, w).square;
}

void Binary::expectations(const double* w, double* out) {
  BinaryJob settings = job(w);
  settings.subtract_gold = false;
  walk(at_level<BatchKernels>().binary_gradient, settings, w, 0.0, out);
}

double Binary::loss_on(const double* w, const int64_t* sequences, int64_t n) {
  double loss = 0.0;
  BinaryJob settings = job(w);
  settings.rows = sequences;
  settings.last = n;
  settings.loss = &loss;
  at_level<BatchKernels>().binary_loss(settings);
  return loss;
}

double Binary::loss_and_grad_on(const double* w, double l2, const int64_t* sequences, int64_t n, double* g) {
  double loss = 0.0;
  scale_into(n_threads_, n_attributes_, l2, w, g);
  BinaryJob settings = job(w);
  settings.rows = sequences;
  settings.last = n;
  settings.loss = &loss;
  settings.sums = g;
  at_level<BatchKernels>().binary_gradient(settings);
  return loss + 0.5 * l2 * norms(n_threads_, n_attributes_, w).square;
}

void Binary::set_line(const double* w, const double* d) {
  if (base_.size() == 0) {
    base_.resize(data_.n_positions);
    step_.resize(data_.n_positions);
  }
  BinaryJob settings = job(w);
  settings.scores = base_.data();
  walk(at_level<BatchKernels>().binary_scores, settings, w, 0.0, nullptr);
  settings = job(d);
  settings.offsets = nullptr;
  settings.scores = step_.data();
  walk(at_level<BatchKernels>().binary_scores, settings, d, 0.0, nullptr);
}

void Binary::along(double a, double& loss, double& slope) {
  if (base_.size() == 0) throw std::logic_error("along() before set_line()");
  const int64_t n_parts = static_cast<int64_t>(part_ptr_.size()) - 1;
  std::vector<double> losses(static_cast<std::size_t>(n_parts), 0.0), slopes(losses);
  int64_t last = now();
  parallel_for(n_threads_, n_parts, [&](int64_t part, int) {
    BinaryJob settings = job(nullptr);
    settings.base = base_.data();
    settings.step = step_.data();
    settings.a = a;
    settings.first = part_ptr_[part];
    settings.last = part_ptr_[part + 1];
    settings.loss = &losses[part];
    settings.slope = &slopes[part];
    at_level<BatchKernels>().binary_along(settings);
  });
  seconds_.scores += lap(last);
  loss = sum_in_order(losses.data(), n_parts);
  slope = sum_in_order(slopes.data(), n_parts);
}

void Binary::hessian_product(const double*, const double* v, double l2, double* out) {
  if (curvature_.size() == 0) throw std::logic_error("hessian_product() before loss_and_grad()");
  BinaryJob settings = job(v);
  settings.offsets = nullptr;
  settings.curvature = curvature_.data();
  walk(at_level<BatchKernels>().binary_product, settings, v, l2, out);
}

void Binary::hessian_diagonal(const double* w, double* out) {
  if (curvature_.size() == 0) throw std::logic_error("hessian_diagonal() before loss_and_grad()");
  BinaryJob settings = job(w);
  settings.curvature = curvature_.data();
  settings.repeats = repeats_;
  walk(at_level<BatchKernels>().binary_squares, settings, w, 0.0, out);
}

int64_t Binary::table_bytes() const { return 8 * data_.n_positions; }

}  // namespace crfit
