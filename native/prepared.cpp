#include "prepared.hpp"

#include <algorithm>
#include <cmath>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace crfit {

namespace {
constexpr std::size_t kLine = 64, kHugePage = 2 << 20;
constexpr int kHotLabels = 3;  // attributes with at least so many observed labels get a dense row
}  // namespace

template <class T>
void Buffer<T>::resize(int64_t n) {
  std::free(data_);
  data_ = nullptr;
  size_ = n;
  if (n == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
  const std::size_t unit = bytes >= 2 * kHugePage ? kHugePage : kLine;
  const std::size_t whole = (bytes + unit - 1) / unit * unit;
  data_ = static_cast<T*>(std::aligned_alloc(unit, whole));
  if (data_ == nullptr) {
    size_ = 0;
    throw std::bad_alloc();
  }
#if defined(__linux__)
  if (unit == kHugePage) madvise(data_, whole, MADV_HUGEPAGE);  // a wish: failure costs speed only
#endif
}

template class Buffer<double>;
template class Buffer<int32_t>;

PreparedWeights::PreparedWeights(const LayoutView& layout) : layout_(layout) {
  const int Y = layout.n_labels, YP = padded_labels(Y);
  view_.layout = &layout_;
  view_.Y = Y;
  view_.YP = YP;
  view_.row_stride = Y;
  for (Buffer<double>* matrix : {&tr_, &E_, &ET_}) {
    matrix->resize(static_cast<int64_t>(Y) * YP);
    matrix->fill(0.0);
  }
  view_.tr = tr_.data();
  view_.E = E_.data();
  view_.ET = ET_.data();
  if (layout.boundary) {
    for (Buffer<double>* row : {&start_, &end_}) {
      row->resize(YP);
      row->fill(0.0);
    }
    view_.start = start_.data();
    view_.end = end_.data();
  }
  if (layout.state_ptr == nullptr) {
    // A row read YP wide must end inside the weight vector.
    view_.direct_rows = std::clamp<int64_t>((layout.n_weights - YP) / Y + 1, 0, layout.n_attributes);
    if (layout.n_weights < YP) view_.direct_rows = 0;
    tail_.resize((layout.n_attributes - view_.direct_rows) * YP);
    tail_.fill(0.0);
    view_.tail_rows = tail_.data();
  } else {
    hot_row_.assign(static_cast<std::size_t>(layout.n_attributes), -1);
    for (int64_t a = 0; a < layout.n_attributes; ++a)
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
  const double* t = w + layout_.transition_offset;
  for (int64_t k = 0; k < layout_.n_transitions; ++k) {
    const int64_t code = layout_.all_transitions ? k : layout_.transition_codes[k];
    tr_[padded_pair(code, Y, YP)] = t[k];
  }
  if (layout_.boundary) {
    std::copy_n(w + layout_.start_offset, Y, start_.data());
    std::copy_n(w + layout_.end_offset, Y, end_.data());
  }
  exponentiate();
}

void PreparedWeights::set_transitions(const PreparedWeights& base, const PreparedWeights& step, double a) {
  for (int64_t i = 0; i < tr_.size(); ++i) tr_[i] = base.tr_[i] + a * step.tr_[i];
  exponentiate();
}

void PreparedWeights::exponentiate() {
  const int Y = view_.Y, YP = view_.YP;
  double top = -INFINITY;
  for (int i = 0; i < Y; ++i)
    for (int j = 0; j < Y; ++j) top = std::max(top, tr_[i * YP + j]);
  view_.tr_max = top;
  for (int i = 0; i < Y; ++i)
    for (int j = 0; j < Y; ++j) ET_[j * YP + i] = E_[i * YP + j] = std::exp(tr_[i * YP + j] - top);
}

WorkerScratch::WorkerScratch(int Y, int YP, int64_t max_T, bool has_edges) : lattice_(max_T * YP) {
  const int64_t lattice = lattice_, matrix = static_cast<int64_t>(Y) * YP;
  const int64_t times = (max_T + 7) / 8 * 8;
  const int64_t pairs = has_edges ? max_T * matrix : 0;
  doubles_.resize(5 * lattice + times + 2 * YP + 3 * matrix + pairs);
  double* p = doubles_.data();
  const auto take = [&p](int64_t n) { return std::exchange(p, p + n); };
  view.U = take(lattice);
  view.S = take(lattice);
  view.alpha = take(lattice);
  view.beta = take(lattice);
  view.z = take(lattice);
  view.inv = take(times);
  view.row = take(2 * YP);
  view.outer = take(matrix);
  view.matrix = take(2 * matrix);
  view.pairs = has_edges ? take(pairs) : nullptr;
  for (int j = 0; j < YP; ++j) view.row[YP + j] = j < Y ? 0.0 : 1.0;
  back_.resize(lattice);
  view.back = back_.data();
}

void WorkerScratch::add_tangent() {
  if (view.q != nullptr) return;
  tangent_.resize(4 * lattice_);
  view.q = tangent_.data();
  view.dalpha = view.q + lattice_;
  view.dbeta = view.dalpha + lattice_;
  view.dz = view.dbeta + lattice_;
}

}  // namespace crfit
