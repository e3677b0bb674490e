#include "online_weights.hpp"

#include <algorithm>
#include <cmath>

#include "pool.hpp"
#include "vectors.hpp"

namespace crfit {

namespace {

constexpr double kSmallestScale = 1e-9;  // of w = scale rows
constexpr double kSmallestScaleOfSum = 1e-3;
constexpr int64_t kBlock = 4096;  // attributes, or weights of edge attributes, that are copied by one task

int64_t blocks(int64_t n) { return (n + kBlock - 1) / kBlock; }

Buffer<double> zeros_of(int64_t n) {
  Buffer<double> buffer;
  buffer.resize(n);
  buffer.fill(0.0);
  return buffer;
}

}  // namespace

OnlineShape::OnlineShape(const LayoutView& layout, int n_threads)
    : layout(layout), n_threads(n_threads), YP(padded_labels(layout.n_labels)), ngram_size(crfit::ngram_size(layout)) {
  const int64_t first_free = layout.n_attributes - layout.n_free;
  if (layout.state_ptr == nullptr) {
    edge_offset = layout.n_attributes * YP;
    free_row = first_free;
  } else {
    hot_row.assign(static_cast<std::size_t>(layout.n_attributes), -1);
    for (int64_t a = 0; a < layout.n_attributes; ++a)
      if (layout.state_ptr[a + 1] - layout.state_ptr[a] >= kHotLabels) {
        hot_row[a] = static_cast<int32_t>(n_hot++);
        free_row += a < first_free;
      }
    free_weight = layout.state_ptr[first_free];
    label_words = (YP + 63) / 64;
    hot_labels.assign(static_cast<std::size_t>(n_hot * label_words), 0);
    for (int64_t a = 0; a < layout.n_attributes; ++a) {
      if (hot_row[a] < 0) continue;
      uint64_t* words = hot_labels.data() + hot_row[a] * label_words;
      for (int64_t i = layout.state_ptr[a]; i < layout.state_ptr[a + 1]; ++i)
        words[layout.state_labels[i] / 64] |= uint64_t{1} << layout.state_labels[i] % 64;
    }
    hot_offset = (layout.transition_offset + 7) / 8 * 8;
    edge_offset = hot_offset + n_hot * YP;
  }
  size = edge_offset + layout.n_weights - layout.edge_offset;
}

OnlineVector OnlineShape::zeros() const { return {zeros_of(size), zeros_of(ngram_size), zeros_of(YP), zeros_of(YP)}; }

OnlineRows OnlineShape::rows(OnlineVector& vector) const {
  OnlineRows rows;
  rows.rows = vector.rows.data();
  rows.hot_row = hot_row.data();
  rows.hot_labels = layout.state_ptr == nullptr ? nullptr : hot_labels.data();
  rows.label_words = label_words;
  rows.hot_offset = hot_offset;
  rows.edge_offset = edge_offset;
  return rows;
}

// Calls copy(block, plain, stored, n) for runs of n weights of attributes: first place in the plain vector, first place
// in the rows. Blocks are in order and each is walked by one task.
template <class Copy>
void OnlineShape::each_run(const Copy& copy) const {
  const int64_t Y = layout.n_labels, n_edges = layout.n_weights - layout.edge_offset;
  const int64_t n_blocks = blocks(layout.n_attributes);
  parallel_for(n_threads, n_blocks + blocks(n_edges), [&](int64_t block, int) {
    if (block >= n_blocks) {
      const int64_t first = (block - n_blocks) * kBlock;
      return copy(block, layout.edge_offset + first, edge_offset + first, std::min(kBlock, n_edges - first));
    }
    const int64_t last = std::min(layout.n_attributes, (block + 1) * kBlock);
    for (int64_t a = block * kBlock; a < last; ++a) {
      if (layout.state_ptr == nullptr) {
        copy(block, a * Y, a * YP, Y);
        continue;
      }
      const int64_t begin = layout.state_ptr[a], end = layout.state_ptr[a + 1];
      if (hot_row[a] < 0) {
        copy(block, begin, begin, end - begin);
      } else {
        const int64_t row = hot_offset + static_cast<int64_t>(hot_row[a]) * YP;
        for (int64_t i = begin; i < end; ++i) copy(block, i, row + layout.state_labels[i], 1);
      }
    }
  });
}

template <class Visit>
void OnlineShape::each_free(const Visit& visit) const {
  if (layout.n_free == 0) return;
  if (layout.state_ptr != nullptr)
    for (int64_t i = free_weight; i < layout.transition_offset; ++i) visit(i);
  for (int64_t i = hot_offset + free_row * YP; i < edge_offset; ++i) visit(i);
}

// Calls copy(plain, dense) for each transition and boundary weight: its place in the plain vector, and our entry.
template <class Copy>
void OnlineShape::each_dense(OnlineVector& vector, const Copy& copy) const {
  const int64_t Y = layout.n_labels;
  for (int m = 1; m <= layout.order; ++m) {
    const NgramBlock& block = layout.ngrams[m - 1];
    double* table = vector.tr.data() + table_offset(Y, YP, m);
    for (int64_t k = 0; k < block.n; ++k)
      copy(block.offset + k, table[padded_pair(block.codes == nullptr ? k : block.codes[k], Y, YP)]);
  }
  if (!layout.boundary) return;
  for (int j = 0; j < Y; ++j) copy(layout.start_offset + j, vector.start[j]);
  for (int j = 0; j < Y; ++j) copy(layout.end_offset + j, vector.end[j]);
}

void OnlineShape::load(const double* plain, OnlineVector& out) const {
  double* rows = out.rows.data();
  each_run([=](int64_t, int64_t from, int64_t to, int64_t n) { std::copy_n(plain + from, n, rows + to); });
  each_dense(out, [plain](int64_t from, double& dense) { dense = plain[from]; });
}

double OnlineShape::save(OnlineVector& from, double scale, double* plain) const {
  double* rows = from.rows.data();
  std::vector<double> squares(
      static_cast<std::size_t>(blocks(layout.n_attributes) + blocks(layout.n_weights - layout.edge_offset)), 0.0);
  each_run([&](int64_t block, int64_t to, int64_t stored, int64_t n) {
    double square = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      const double x = scale * rows[stored + i];
      rows[stored + i] = plain[to + i] = x;
      square += x * x;
    }
    squares[block] += square;
  });
  double total = 0.0;
  for (const double square : squares) total += square;
  each_dense(from, [&](int64_t to, double& dense) {
    plain[to] = dense;
    total += dense * dense;
  });
  return total;
}

void OnlineShape::add_and_save(OnlineVector& to, double a, const OnlineVector& x, double* plain) const {
  const double* from = x.rows.data();
  double* rows = to.rows.data();
  each_run([=](int64_t, int64_t at, int64_t stored, int64_t n) {
    for (int64_t i = 0; i < n; ++i) plain[at + i] = rows[stored + i] += a * from[stored + i];
  });
  for (int64_t i = 0; i < ngram_size; ++i) to.tr[i] += a * x.tr[i];
  for (int j = 0; j < YP; ++j) to.start[j] += a * x.start[j];
  for (int j = 0; j < YP; ++j) to.end[j] += a * x.end[j];
  each_dense(to, [plain](int64_t at, double& dense) { plain[at] = dense; });
}

OnlineWeights::OnlineWeights(const LayoutView& layout, int n_threads)
    : shape(layout, n_threads),
      current(shape.zeros()),
      mask(zeros_of(shape.ngram_size)),
      boundary_mask(zeros_of(shape.YP)) {
  if (layout.order == 1) {
    E_ = zeros_of(shape.ngram_size);
    ET_ = zeros_of(shape.ngram_size);
  } else {
    histories_ = std::make_unique<NgramTables>(layout);
  }
  const int64_t Y = layout.n_labels;
  for (int m = 1; m <= layout.order; ++m) {
    const NgramBlock& block = layout.ngrams[m - 1];
    for (int64_t k = 0; k < block.n; ++k)
      mask[table_offset(Y, shape.YP, m) + padded_pair(block.codes == nullptr ? k : block.codes[k], Y, shape.YP)] = 1.0;
  }
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
  view.ngram_size = shape.ngram_size;
  view.tr = current.tr.data();
  view.E = E_.data();
  view.ET = ET_.data();
  if (layout.boundary) {
    view.start = current.start.data();
    view.end = current.end.data();
  }
  show_transitions();
}

void OnlineWeights::set(const double* w) {
  // Also what has no weight: a run that diverged may have left something there.
  for (Buffer<double>* part : {&current.rows, &current.tr, &current.start, &current.end}) part->fill(0.0);
  shape.load(w, current);
  view.scale = scale = 1.0;
  summing = false;
  sum = {};
  show_transitions();
}

// Also makes the scale 1, so that a run which is set to these weights goes on with the same bytes.
double OnlineWeights::get(double* out) {
  if (summing) restart_sum();
  const double square = shape.save(current, scale, out);
  view.scale = scale = 1.0;
  return square;
}

void OnlineWeights::shrink(double factor) {
  if (factor != 1.0)
    shape.each_free([&](int64_t i) {
      const double before = current.rows[i], after = before / factor;
      if (summing) sum.rows[i] -= scale_sum * (after - before);
      current.rows[i] = after;
    });
  scale *= factor;
  scale_sum += scale;
}

void OnlineWeights::keep_range() {
  view.scale = scale;
  if (scale < (summing ? kSmallestScaleOfSum : kSmallestScale)) fold();
}

// rows <- scale rows, with a scale of 1 from then on.
void OnlineWeights::fold() {
  if (summing) restart_sum();
  scale_into(shape.n_threads, current.rows.size(), scale, current.rows.data(), current.rows.data());
  view.scale = scale = 1.0;
}

// Rows of the sum <- the sum of the weights so far, S <- 0: both grow while the scale falls, and their difference would
// lose digits.
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
  if (histories_ != nullptr) {
    histories_->set_own(current.tr.data());
    histories_->show(view);
    return;
  }
  OnlineTransitionJob job;
  job.Y = shape.layout.n_labels;
  job.YP = shape.YP;
  job.tr = current.tr.data();
  job.E = E_.data();
  job.ET = ET_.data();
  job.tr_max = &view.tr_max;
  kernels().online_transitions(job);
}

}  // namespace crfit
