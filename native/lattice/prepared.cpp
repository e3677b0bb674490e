#include "lattice/prepared.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/dispatch.hpp"
#include "lattice/kernels.hpp"

namespace crfit {

int64_t ngram_size(const LayoutView& layout) {
  return table_offset(layout.n_labels, padded_labels(layout.n_labels), layout.order + 1);
}

void add_longer_ngrams(const LayoutView& layout, double* counts) {
  const int64_t Y = layout.n_labels, YP = padded_labels(layout.n_labels);
  double* longer = counts + ngram_size(layout);
  for (int m = layout.order; m > 1; --m) {
    const int64_t size = n_histories(Y, m - 1) * YP;  // of the shorter table, and of the part of one first label
    longer -= Y * size;
    for (int64_t first = 0; first < Y; ++first)
      // counts[h, y] += sum over i of counts[i, h, y]: n-grams that differ in their first label are `size` apart.
      // Longest first, so a table is complete before it is added to the next.
      for (int64_t i = 0; i < size; ++i) (longer - size)[i] += longer[first * size + i];
  }
}

void exchange_labels(const LayoutView& layout, const double* longest, double* out) {
  const int64_t Y = layout.n_labels, YP = padded_labels(layout.n_labels);
  const int64_t shared = n_histories(Y, layout.order - 1);  // histories without their first label
  for (int64_t h = 0; h < shared; ++h)
    for (int64_t j = 0; j < Y; ++j)
      // [i, h, j] -> [h, j, i]
      for (int64_t i = 0; i < YP; ++i) out[(h * Y + j) * YP + i] = i < Y ? longest[(i * shared + h) * YP + j] : 0.0;
}

NgramTables::NgramTables(const LayoutView& layout)
    : layout_(layout), Y_(layout.n_labels), YP_(padded_labels(layout.n_labels)) {
  for (Buffer<double>* table : {&tr_, &E_}) {
    table->resize(ngram_size(layout));
    table->fill(0.0);
  }
  ET_.resize(n_histories(Y_, layout.order) * YP_);
  for (int m = 1; m <= layout.order; ++m) {
    const int64_t at = table_offset(Y_, YP_, m);
    tables_.push_back({n_histories(Y_, m), tr_.data() + at, E_.data() + at, 0.0});
  }
}

void NgramTables::set(const double* w) {
  tr_.fill(0.0);
  for (int m = 1; m <= layout_.order; ++m) {
    const NgramBlock& block = layout_.ngrams[m - 1];
    double* table = tr_.data() + table_offset(Y_, YP_, m);
    for (int64_t i = 0; i < block.n; ++i)
      table[padded_pair(block.codes == nullptr ? i : block.codes[i], Y_, YP_)] = w[block.offset + i];
  }
  add_shorter();
  exponentiate();
}

void NgramTables::set_own(const double* own) {
  std::copy_n(own, tr_.size(), tr_.data());
  add_shorter();
  exponentiate();
}

void NgramTables::set_line(const NgramTables& base, const NgramTables& step, double a) {
  for (int64_t i = 0; i < tr_.size(); ++i) tr_[i] = base.tr_[i] + a * step.tr_[i];
  exponentiate();
}

// Adds to each n-gram the score of the n-gram without its first label.
void NgramTables::add_shorter() {
  for (int m = 2; m <= layout_.order; ++m) {
    double* table = tr_.data() + table_offset(Y_, YP_, m);
    const int64_t part = tables_[m - 2].rows * YP_;
    for (int64_t first = 0; first < Y_; ++first)
      for (int64_t i = 0; i < part; ++i) table[first * part + i] += (table - part)[i];
  }
}

void NgramTables::exponentiate() {
  double* E = E_.data();
  for (HistoryTable& table : tables_) {
    // Each table has its own maximum: E = exp(tr - top) <= 1, and log Z adds `top` once for each position.
    double top = -INFINITY;
    for (int64_t h = 0; h < table.rows; ++h)
      for (int64_t j = 0; j < Y_; ++j) top = std::max(top, table.tr[h * YP_ + j]);
    table.top = top;
    at_level<LatticeKernels>().exponentials(
        {table.rows, static_cast<int>(Y_), static_cast<int>(YP_), table.tr, top, E});
    E += table.rows * YP_;
  }
  exchange_labels(layout_, tables_.back().E, ET_.data());
}

void NgramTables::show(Prepared& view) const {
  view.order = layout_.order;
  view.ngram_size = tr_.size();
  view.tables = tables_.data();
  view.tr = tr_.data();
  view.E = E_.data();
  view.ET = ET_.data();
  view.tr_max = tables_.front().top;
}

PreparedWeights::PreparedWeights(const LayoutView& layout, bool transitions) : layout_(layout) {
  if (transitions) ngrams_.emplace(layout);
  const int Y = layout.n_labels, YP = padded_labels(Y);
  view_.layout = &layout_;
  view_.Y = Y;
  view_.YP = YP;
  view_.row_stride = Y;
  if (layout.boundary) {
    for (Buffer<double>* row : {&start_, &end_}) {
      row->resize(YP);
      row->fill(0.0);
    }
    view_.start = start_.data();
    view_.end = end_.data();
  }
  if (layout.state_ptr == nullptr) {
    // The weights are Y wide and unpadded, but rows are read YP wide: the extra entries end up in the padding of
    // scores, which is not used. Only the last few rows, which would end outside the weight vector, are copied: a
    // padded copy of all weights would cost a pass over them.
    view_.direct_rows = std::clamp<int64_t>((layout.n_weights - YP) / Y + 1, 0, layout.n_attributes);
    if (layout.n_weights < YP) view_.direct_rows = 0;
    tail_.resize((layout.n_attributes - view_.direct_rows) * YP);
    tail_.fill(0.0);
    view_.tail_rows = tail_.data();
  } else {
    hot_row_.assign(static_cast<std::size_t>(layout.n_attributes), -1);
    for (int64_t a = 0; a < layout.n_attributes; ++a)
      // Attributes with many labels are added as padded rows, the others weight by weight.
      if (layout.state_ptr[a + 1] - layout.state_ptr[a] >= kHotLabels) {
        hot_row_[a] = static_cast<int32_t>(hot_attributes_.size());
        hot_attributes_.push_back(a);
      }
    hot_rows_.resize(static_cast<int64_t>(hot_attributes_.size()) * YP);
    hot_rows_.fill(0.0);
    view_.hot_row = hot_row_.data();
    view_.hot_rows = hot_rows_.data();
  }
}

void PreparedWeights::set(const double* w) {
  const int Y = view_.Y, YP = view_.YP;
  view_.w = w;
  view_.edges = w + layout_.edge_offset;
  if (layout_.state_ptr == nullptr) {
    for (int64_t a = view_.direct_rows; a < layout_.n_attributes; ++a)
      std::copy_n(w + a * Y, Y, tail_.data() + (a - view_.direct_rows) * YP);
  } else {
    for (std::size_t r = 0; r < hot_attributes_.size(); ++r) {
      const int64_t a = hot_attributes_[r];
      for (int64_t i = layout_.state_ptr[a]; i < layout_.state_ptr[a + 1]; ++i)
        hot_rows_[static_cast<int64_t>(r) * YP + layout_.state_labels[i]] = w[i];
    }
  }
  if (layout_.boundary) {
    std::copy_n(w + layout_.start_offset, Y, start_.data());
    std::copy_n(w + layout_.end_offset, Y, end_.data());
  }
  if (!ngrams_) return;
  ngrams_->set(w);
  ngrams_->show(view_);
}

double* PreparedWeights::share(const int32_t* token_of, int64_t size) {
  if (shared_.size() != size) shared_.resize(size);
  view_.token_of = token_of;
  view_.shared = shared_.data();
  return shared_.data();
}

void PreparedWeights::set_transitions(const PreparedWeights& base, const PreparedWeights& step, double a) {
  if (!ngrams_) return;
  ngrams_->set_line(*base.ngrams_, *step.ngrams_, a);
  ngrams_->show(view_);
}

WorkerScratch::WorkerScratch(const LayoutView& layout, int64_t max_T, bool has_edges)
    : scores_(max_T * padded_labels(layout.n_labels)),
      lattice_(scores_ * n_histories(layout.n_labels, layout.order - 1)) {
  const int64_t Y = layout.n_labels, YP = padded_labels(layout.n_labels), matrix = Y * YP;
  const int64_t scores = scores_, lattice = lattice_;
  const int64_t times = (max_T + 7) / 8 * 8;
  const int64_t pairs = has_edges ? max_T * matrix : 0;
  const int64_t ngrams = layout.order > 1 ? n_histories(Y, layout.order) * YP : 0;
  doubles_.resize(2 * scores + 3 * lattice + times + 2 * YP + ngram_size(layout) + 2 * matrix + ngrams + pairs);
  // One block of memory for all arrays of a worker, cut in order; each is a multiple of eight doubles long.
  double* p = doubles_.data();
  const auto take = [&p](int64_t n) { return std::exchange(p, p + n); };
  view.U = take(scores);
  view.S = take(scores);
  view.alpha = take(lattice);
  view.beta = take(lattice);
  view.z = take(lattice);
  view.inv = take(times);
  view.row = take(2 * YP);
  view.outer = take(ngram_size(layout));
  view.matrix = take(2 * matrix);
  view.ngrams = ngrams > 0 ? take(ngrams) : nullptr;
  view.pairs = has_edges ? take(pairs) : nullptr;
  for (int j = 0; j < YP; ++j) view.row[YP + j] = j < Y ? 0.0 : 1.0;
  if (layout.order > 1) {  // padding that is not written to
    std::fill_n(view.beta, lattice, 0.0);
    std::fill_n(view.ngrams, ngrams, 0.0);
  }
  back_.resize(lattice);
  view.back = back_.data();
}

void WorkerScratch::add_tangent() {
  if (view.q != nullptr) return;
  tangent_.resize(scores_ + 3 * lattice_);
  tangent_.fill(0.0);  // padding that is not written to
  view.q = tangent_.data();
  view.dalpha = view.q + scores_;
  view.dbeta = view.dalpha + lattice_;
  view.dz = view.dbeta + lattice_;
}

}  // namespace crfit
