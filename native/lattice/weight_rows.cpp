#include "lattice/weight_rows.hpp"

#include <algorithm>

#include "base/pool.hpp"
#include "lattice/prepared.hpp"

namespace crfit {

namespace {

constexpr int64_t kBlock = 4096;  // attributes, or weights of edge attributes, copied by one task

int64_t blocks(int64_t n) { return (n + kBlock - 1) / kBlock; }

// Without pairs, as in classifiers, the empty list saves tables and passes over them.
bool lists_pairs(const LayoutView& layout, double share) {
  return few_pairs(layout, share) || (share > 0.0 && layout.order == 1 && layout.ngrams[0].n == 0);
}

}  // namespace

RowLayout::RowLayout(const LayoutView& layout, int n_threads, double listed_share)
    : layout(layout),
      n_threads(n_threads),
      YP(padded_labels(layout.n_labels)),
      listed(lists_pairs(layout, listed_share)),
      ngram_size(listed ? (layout.ngrams[0].n + 7) / 8 * 8 : crfit::ngram_size(layout)) {
  // Unpenalised attributes are last, and so are their rows and weights.
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
      // [rows][label_words] a bit for each label that has a weight
      uint64_t* words = hot_labels.data() + hot_row[a] * label_words;
      for (int64_t i = layout.state_ptr[a]; i < layout.state_ptr[a + 1]; ++i)
        words[layout.state_labels[i] / 64] |= uint64_t{1} << layout.state_labels[i] % 64;
    }
    //  weights="all"       [n_attributes][YP] | edge weights
    //  weights="observed"  single weights, numbered as in the plain vector | [n_hot][YP] | edge weights
    // Weights in a row also have an unused place among the single weights, which avoids a second numbering.
    hot_offset = (layout.transition_offset + 7) / 8 * 8;
    edge_offset = hot_offset + n_hot * YP;
  }
  size = edge_offset + layout.n_weights - layout.edge_offset;
}

WeightRows RowLayout::zeros() const {
  return {zero_buffer(size), zero_buffer(ngram_size), zero_buffer(YP), zero_buffer(YP)};
}

// Calls copy(block, plain, stored, n) for runs of n weights of attributes: first index in the plain vector, first index
// in the rows. Blocks are in order, each processed by one task.
template <class Copy>
void RowLayout::each_run(const Copy& copy) const {
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

// Calls copy(plain, dense) for each transition and boundary weight: its index in the plain vector, and its entry here.
template <class Copy>
void RowLayout::each_dense(WeightRows& vector, const Copy& copy) const {
  const int64_t Y = layout.n_labels;
  for (int m = 1; m <= layout.order; ++m) {
    const NgramBlock& block = layout.ngrams[m - 1];
    for (int64_t k = 0; k < block.n; ++k) copy(block.offset + k, vector.tr[ngram_place(m, k)]);
  }
  if (!layout.boundary) return;
  for (int j = 0; j < Y; ++j) copy(layout.start_offset + j, vector.start[j]);
  for (int j = 0; j < Y; ++j) copy(layout.end_offset + j, vector.end[j]);
}

void RowLayout::load(const double* plain, WeightRows& out) const {
  double* rows = out.rows.data();
  each_run([=](int64_t, int64_t from, int64_t to, int64_t n) { std::copy_n(plain + from, n, rows + to); });
  each_dense(out, [plain](int64_t from, double& dense) { dense = plain[from]; });
}

double RowLayout::save(WeightRows& from, double scale, double* plain) const {
  double* rows = from.rows.data();
  std::vector<double> squares(
      static_cast<std::size_t>(blocks(layout.n_attributes) + blocks(layout.n_weights - layout.edge_offset)), 0.0);
  each_run([&](int64_t block, int64_t to, int64_t stored, int64_t n) {
    double square = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      const double x = scale * rows[stored + i];
      // The scale is also applied to the rows, so the stored weights equal the returned ones bit for bit.
      rows[stored + i] = plain[to + i] = x;
      square += x * x;
    }
    squares[block] += square;
  });
  double total = 0.0;
  // in the order of the blocks
  for (const double square : squares) total += square;
  each_dense(from, [&](int64_t to, double& dense) {
    plain[to] = dense;
    total += dense * dense;
  });
  return total;
}

void RowLayout::add_and_save(WeightRows& to, double a, const WeightRows& x, double* plain) const {
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

}  // namespace crfit
