#include "online/weights.hpp"

#include <algorithm>
#include <cmath>

#include "base/dispatch.hpp"
#include "base/pool.hpp"
#include "base/vectors.hpp"
#include "online/kernels.hpp"

namespace crfit {

namespace {

constexpr double kSmallestScale = 1e-9;       // of w = scale rows: folding is a sweep over memory, so it should be rare
constexpr double kSmallestScaleOfSum = 1e-3;  // three digits of the sum may cancel

}  // namespace

OnlineRows rows_of(const RowLayout& shape, WeightRows& vector) {
  OnlineRows rows;
  rows.rows = vector.rows.data();
  rows.hot_row = shape.hot_row.data();
  rows.hot_labels = shape.layout.state_ptr == nullptr ? nullptr : shape.hot_labels.data();
  rows.label_words = shape.label_words;
  rows.hot_offset = shape.hot_offset;
  rows.edge_offset = shape.edge_offset;
  return rows;
}

OnlineWeights::OnlineWeights(const LayoutView& layout, int n_threads, double listed_share)
    : shape(layout, n_threads, listed_share),
      current(shape.zeros()),
      mask(zero_buffer(shape.ngram_size)),
      boundary_mask(zero_buffer(shape.YP)) {
  if (layout.order == 1 && !shape.listed) {
    E_ = zero_buffer(shape.ngram_size);
    ET_ = zero_buffer(shape.ngram_size);
  } else {
    // With order 2 and more only lanes read listed n-grams.
    const PairOptions pairs = layout.order == 1 ? PairOptions{listed_share, false} : PairOptions{};
    tables_ = std::make_unique<NgramTables>(layout, pairs);
  }
  const int64_t Y = layout.n_labels;
  for (int m = 1; m <= layout.order; ++m) {
    for (int64_t k = 0; k < layout.ngrams[m - 1].n; ++k) mask[shape.ngram_place(m, k)] = 1.0;
  }
  // Steps skip blocks of tables without a weight (when few of many n-grams are observed).
  for (int64_t block = 0; block < shape.ngram_size; block += 8)
    if (std::any_of(mask.data() + block, mask.data() + block + 8, [](double x) { return x != 0.0; }))
      blocks.push_back(block);
  std::fill_n(boundary_mask.data(), Y, 1.0);
  view.layout = &shape.layout;
  view.Y = layout.n_labels;
  view.YP = shape.YP;
  view.w = current.rows.data();
  view.row_stride = shape.YP;
  view.direct_rows = layout.n_attributes;
  view.hot_row = shape.hot_row.data();
  view.hot_rows = current.rows.data() + shape.hot_offset;
  view.edges = current.rows.data() + shape.edge_offset;
  view.ngram_size = view.n_ngrams = shape.ngram_size;
  view.tr = view.ngram_tr = current.tr.data();
  view.E = view.ngram_E = E_.data();
  view.ET = ET_.data();
  if (layout.boundary) {
    view.start = current.start.data();
    view.end = current.end.data();
  }
  show_transitions();
}

void OnlineWeights::set(const double* w) {
  // Everything, including padding: a diverged run may have left NaN there, and 0 * NaN is not 0.
  for (Buffer<double>* part : {&current.rows, &current.tr, &current.start, &current.end}) part->fill(0.0);
  shape.load(w, current);
  view.scale = scale = 1.0;
  summing = false;
  sum = {};
  show_transitions();
}

// Folds the scale, so a run resumed from these weights continues with the same bytes.
double OnlineWeights::get(double* out) {
  if (summing) restart_sum();
  const double square = shape.save(current, scale, out);
  view.scale = scale = 1.0;
  return square;
}

void OnlineWeights::shrink(double factor) {
  if (factor != 1.0)
    shape.each_free([&](int64_t i) {
      // scale * rows does not change
      const double before = current.rows[i], after = before / factor;
      if (summing) sum.rows[i] -= scale_sum * (after - before);
      current.rows[i] = after;
    });
  scale *= factor;
  // S_j = S_{j-1} + scale_j
  scale_sum += scale;
}

void OnlineWeights::keep_range() {
  view.scale = scale;
  if (scale < (summing ? kSmallestScaleOfSum : kSmallestScale)) fold();
}

// rows <- scale rows, scale <- 1.
void OnlineWeights::fold() {
  if (summing) restart_sum();
  scale_into(shape.n_threads, current.rows.size(), scale, current.rows.data(), current.rows.data());
  view.scale = scale = 1.0;
}

// Rows of the sum <- the sum of the weights so far, S <- 0: both grow while the scale decreases, and their difference
// would lose digits.
void OnlineWeights::restart_sum() {
  axpy(shape.n_threads, sum.rows.size(), sum.rows.data(), scale_sum, current.rows.data(), sum.rows.data());
  scale_sum = 0.0;
}

void OnlineWeights::begin_sum(const double* total) {
  sum = shape.zeros();
  scale_sum = 0.0;
  summing = true;
  if (total != nullptr) shape.load(total, sum);
}

void OnlineWeights::get_sum(double* out) {
  restart_sum();
  shape.save(sum, 1.0, out);
}

void OnlineWeights::add_transitions_to_sum() {
  for (int64_t i = 0; i < shape.ngram_size; ++i) sum.tr[i] += current.tr[i];
  for (int j = 0; j < shape.YP; ++j) sum.start[j] += current.start[j];
  for (int j = 0; j < shape.YP; ++j) sum.end[j] += current.end[j];
}

void OnlineWeights::show_transitions() {
  if (tables_ != nullptr) {
    tables_->set_own(current.tr.data());
    tables_->show(view);
    return;
  }
  OnlineTransitionJob job;
  job.Y = shape.layout.n_labels;
  job.YP = shape.YP;
  job.tr = current.tr.data();
  job.E = E_.data();
  job.ET = ET_.data();
  job.tr_max = &view.tr_max;
  at_level<OnlineKernels>().transitions(job);
}

}  // namespace crfit
