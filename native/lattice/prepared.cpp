#include "lattice/prepared.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/dispatch.hpp"
#include "lattice/kernels.hpp"

namespace crfit {

namespace {
int64_t padded(int64_t n) { return (n + 7) / 8 * 8; }
}  // namespace

int64_t ngram_size(const LayoutView& layout) {
  return table_offset(layout.n_labels, padded_labels(layout.n_labels), layout.order + 1);
}

int64_t n_ngrams(const LayoutView& layout) { return layout.order == 1 ? layout.ngrams[0].n : ngram_size(layout); }

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

bool few_pairs(const LayoutView& layout, double share) {
  const double all = static_cast<double>(layout.n_labels) * layout.n_labels;
  return layout.order == 1 && layout.ngrams[0].codes != nullptr && layout.ngrams[0].n > 0 &&
         static_cast<double>(layout.ngrams[0].n) <= share * all;
}

NgramTables::NgramTables(const LayoutView& layout, const PairOptions& options, bool constrained)
    : layout_(layout),
      options_(options),
      constrained_(constrained && layout.may_follow != nullptr),
      Y_(layout.n_labels),
      YP_(padded_labels(layout.n_labels)) {
  if (constrained_) options_ = {};
  tr_ = zero_buffer(ngram_size(layout));
  for (int m = 1; m <= layout.order; ++m)
    tables_.push_back({n_histories(Y_, m), tr_.data() + table_offset(Y_, YP_, m), nullptr, 0.0});
  if (layout.order == 1) {
    const NgramBlock& block = layout.ngrams[0];
    own_ = zero_buffer(padded(block.n));
    own_E_ = zero_buffer(padded(block.n));
    for (int64_t k = 0; k < block.n; ++k)
      places_.push_back(padded_pair(block.codes == nullptr ? k : block.codes[k], Y_, YP_));
  }
}

void NgramTables::set(const double* w) {
  if (layout_.order == 1) {
    const NgramBlock& block = layout_.ngrams[0];
    std::copy_n(w + block.offset, block.n, own_.data());
    return show_pairs();
  }
  tr_.fill(0.0);
  for (int m = 1; m <= layout_.order; ++m) {
    const NgramBlock& block = layout_.ngrams[m - 1];
    double* table = tr_.data() + table_offset(Y_, YP_, m);
    for (int64_t i = 0; i < block.n; ++i)
      table[padded_pair(block.codes == nullptr ? i : block.codes[i], Y_, YP_)] = w[block.offset + i];
  }
  add_shorter();
  forbid();
  exponentiate();
}

void NgramTables::set_own(const double* own) {
  if (layout_.order == 1) {
    std::copy_n(own, layout_.ngrams[0].n, own_.data());
    return show_pairs();
  }
  std::copy_n(own, tr_.size(), tr_.data());
  add_shorter();
  forbid();
  exponentiate();
}

void NgramTables::set_line(const NgramTables& base, const NgramTables& step, double a) {
  if (layout_.order == 1) {
    for (int64_t i = 0; i < own_.size(); ++i) own_[i] = base.own_[i] + a * step.own_[i];
    return show_pairs();
  }
  for (int64_t i = 0; i < tr_.size(); ++i) tr_[i] = base.tr_[i] + a * step.tr_[i];
  forbid();
  exponentiate();
}

// Order 1: all tables from own_.
void NgramTables::show_pairs() {
  const int64_t n = static_cast<int64_t>(places_.size());
  for (int64_t k = 0; k < n; ++k) tr_[places_[k]] = own_[k];
  int64_t n_listed = n;
  if (options_.drop_zeros) {
    n_listed = 0;
    for (int64_t k = 0; k < n; ++k) n_listed += is_listed(k);
  }
  sparse_ = !constrained_ && static_cast<double>(n_listed) <= options_.share * static_cast<double>(Y_ * Y_);
  if (!sparse_) {
    forbid();
    exponentiate();
    for (int64_t k = 0; k < n; ++k) own_E_[k] = E_[places_[k]];
    return;
  }
  double top = 0.0;  // the score of pairs that are not listed
  for (int64_t k = 0; k < n; ++k) top = std::max(top, own_[k]);
  tables_[0].top = top;
  at_level<LatticeKernels>().exponentials(
      {1, static_cast<int>(n), static_cast<int>(own_.size()), own_.data(), top, own_E_.data()});
  if (options_.drop_zeros || after_ptr_.empty()) list_pairs(n_listed);
  list_scores();
}

bool NgramTables::is_listed(int64_t k) const {
  if (!options_.drop_zeros) return true;
  return options_.listed != nullptr ? options_.listed[k] != 0 : own_[k] != 0.0;
}

// Sets: which pairs are listed.
void NgramTables::list_pairs(int64_t n) {
  listed_.clear();
  after_.clear();
  after_ptr_.assign(1, 0);
  before_ptr_.assign(static_cast<std::size_t>(Y_) + 1, 0);
  const int64_t n_all = static_cast<int64_t>(places_.size());
  for (int64_t i = 0, k = 0; i < Y_; ++i) {  // codes ascend: by the label before
    for (; k < n_all && places_[k] < (i + 1) * YP_; ++k) {
      if (!is_listed(k)) continue;
      listed_.push_back(static_cast<int32_t>(k));
      after_.push_back(static_cast<int32_t>(places_[k] - i * YP_));
      ++before_ptr_[after_.back() + 1];
    }
    after_ptr_.push_back(static_cast<int32_t>(after_.size()));
  }
  sort_listed(Y_);
  for (Buffer<double>* values : {&before_score_, &before_excess_, &before_E_, &after_score_, &after_excess_, &after_E_})
    if (values->size() < padded(n)) *values = zero_buffer(padded(n));
}

// The pairs of `after` by the state after; before_ptr_ has how many precede each.
void NgramTables::sort_listed(int64_t n_states) {
  for (int64_t j = 0; j < n_states; ++j) before_ptr_[j + 1] += before_ptr_[j];
  before_.resize(after_.size());
  before_place_.resize(after_.size());
  std::vector<int32_t> next(before_ptr_.begin(), before_ptr_.end() - 1);
  for (int32_t i = 0; i < n_states; ++i)
    for (int32_t k = after_ptr_[i]; k < after_ptr_[i + 1]; ++k) {
      const int32_t at = next[after_[k]]++;
      before_[at] = i;
      before_place_[at] = k;
    }
}

// Order k >= 2: lists the longest n-grams that have a weight, if they are few.
void NgramTables::list_longest() {
  const NgramBlock& block = layout_.ngrams[layout_.order - 1];
  const int64_t n_states = n_histories(Y_, layout_.order), H = n_states / Y_;
  sparse_ = block.codes != nullptr && options_.share > 0.0 &&
            static_cast<double>(block.n) <= options_.share * static_cast<double>(n_states) * static_cast<double>(Y_);
  if (!sparse_) return;
  const HistoryTable &longest = tables_.back(), &shorter = tables_[tables_.size() - 2];
  if (after_ptr_.empty()) {
    after_ptr_.assign(static_cast<std::size_t>(n_states) + 1, 0);
    before_ptr_ = after_ptr_;
    for (int64_t k = 0; k < block.n; ++k) {  // codes ascend: by the state before
      const int64_t after = block.codes[k] % (H * Y_);
      after_.push_back(static_cast<int32_t>(after));
      ++after_ptr_[block.codes[k] / Y_ + 1];
      ++before_ptr_[after + 1];
    }
    for (int64_t i = 0; i < n_states; ++i) after_ptr_[i + 1] += after_ptr_[i];
    sort_listed(n_states);
    before_excess_ = zero_buffer(padded(block.n));
    after_excess_ = zero_buffer(padded(block.n));
    base_ = zero_buffer(padded(n_states));
  }
  for (int64_t j = 0; j < n_states; ++j) base_[j] = std::exp(shorter.tr[padded_pair(j, Y_, YP_)] - longest.top);
  for (int64_t k = 0; k < block.n; ++k)
    after_excess_[k] = longest.E[padded_pair(block.codes[k], Y_, YP_)] - base_[after_[k]];
  for (int64_t k = 0; k < block.n; ++k) before_excess_[k] = after_excess_[before_place_[k]];
  pairs_ = {};
  pairs_.n = block.n;
  pairs_.base = base_.data();
  pairs_.before_ptr = before_ptr_.data();
  pairs_.before = before_.data();
  pairs_.before_excess = before_excess_.data();
  pairs_.before_place = before_place_.data();
  pairs_.after_ptr = after_ptr_.data();
  pairs_.after = after_.data();
  pairs_.after_excess = after_excess_.data();
}

void TurnedPairs::set(const Prepared& point, const Prepared& step) {
  const SparsePairs& pairs = *point.sparse;
  if (before.size() < pairs.n) {
    before.resize(padded(pairs.n));
    after.resize(padded(pairs.n));
  }
  if (point.order > 1 && base.size() == 0) base.resize(point.n_states);
  if (point.order == 1) {
    for (int64_t i = 0, k = 0; i < point.Y; ++i)
      for (; k < pairs.after_ptr[i + 1]; ++k) after[k] = pairs.after_E[k] * step.tr[i * point.YP + pairs.after[k]];
  } else {
    const int64_t Y = point.Y, YP = point.YP, longest = point.tables[point.order - 1].tr - point.tr;
    const int64_t shorter = point.tables[point.order - 2].tr - point.tr;
    for (int64_t j = 0; j < point.n_states; ++j) base[j] = pairs.base[j] * step.tr[shorter + padded_pair(j, Y, YP)];
    for (int64_t i = 0, k = 0; i < point.n_states; ++i)
      for (; k < pairs.after_ptr[i + 1]; ++k) {
        const int64_t at = longest + i * YP + pairs.after[k] % Y;
        after[k] = point.E[at] * step.tr[at] - base[pairs.after[k]];
      }
  }
  for (int64_t k = 0; k < pairs.n; ++k) before[k] = after[pairs.before_place[k]];
}

void NgramTables::list_scores() {
  const double missing = std::exp(-tables_[0].top);
  const int64_t n = static_cast<int64_t>(after_.size());
  for (int64_t k = 0; k < n; ++k) {
    after_score_[k] = own_[listed_[k]];
    after_E_[k] = own_E_[listed_[k]];
    after_excess_[k] = after_E_[k] - missing;
  }
  for (int64_t k = 0; k < n; ++k) {
    before_score_[k] = after_score_[before_place_[k]];
    before_excess_[k] = after_excess_[before_place_[k]];
    before_E_[k] = after_E_[before_place_[k]];
  }
  pairs_ = {n,
            missing,
            nullptr,
            before_ptr_.data(),
            before_.data(),
            before_score_.data(),
            before_excess_.data(),
            before_E_.data(),
            before_place_.data(),
            after_ptr_.data(),
            after_.data(),
            after_score_.data(),
            after_excess_.data(),
            after_E_.data()};
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

// The score of pairs that must not occur, at the end of any history.
void NgramTables::forbid() {
  if (!constrained_) return;
  for (const HistoryTable& table : tables_) {
    double* scores = tr_.data() + (table.tr - tr_.data());
    for (int64_t h = 0; h < table.rows; ++h)
      for (int64_t j = 0; j < Y_; ++j)
        if (layout_.may_follow[h % Y_ * Y_ + j] == 0) scores[h * YP_ + j] = -INFINITY;
  }
}

void NgramTables::exponentiate() {
  if (E_.size() == 0) {
    E_ = zero_buffer(tr_.size());
    ET_.resize(n_histories(Y_, layout_.order) * YP_);
  }
  double* E = E_.data();
  for (HistoryTable& table : tables_) {
    table.E = E;
    // Each table has its own maximum: E = exp(tr - top) <= 1, and log Z adds `top` once for each position.
    double top = -INFINITY;
    for (int64_t h = 0; h < table.rows; ++h)
      for (int64_t j = 0; j < Y_; ++j) top = std::max(top, table.tr[h * YP_ + j]);
    if (top == -INFINITY) top = 0.0;  // no label may follow another
    table.top = top;
    at_level<LatticeKernels>().exponentials(
        {table.rows, static_cast<int>(Y_), static_cast<int>(YP_), table.tr, top, E});
    E += table.rows * YP_;
  }
  exchange_labels(layout_, tables_.back().E, ET_.data());
  if (layout_.order > 1) list_longest();
}

void NgramTables::show(Prepared& view) const {
  const bool pairs = layout_.order == 1;
  view.order = layout_.order;
  view.n_states = n_histories(Y_, layout_.order);
  view.ngram_size = tr_.size();
  view.tables = tables_.data();
  view.tr = tr_.data();
  view.E = sparse_ && pairs ? nullptr : E_.data();
  view.ET = sparse_ && pairs ? nullptr : ET_.data();
  view.tr_max = tables_.front().top;
  view.sparse = sparse_ ? &pairs_ : nullptr;
  view.n_ngrams = pairs ? static_cast<int64_t>(places_.size()) : tr_.size();
  view.ngram_E = pairs ? own_E_.data() : E_.data();
  view.ngram_tr = pairs ? own_.data() : tr_.data();
  view.places = pairs ? places_.data() : nullptr;
  view.listed_sums = pairs && sparse_ && !options_.drop_zeros;
}

PreparedWeights::PreparedWeights(const LayoutView& layout, bool transitions, const PairOptions& pairs, bool constrained)
    : layout_(layout), constrained_(constrained && layout.may_begin != nullptr) {
  if (transitions) ngrams_.emplace(layout, pairs, constrained);
  const int Y = layout.n_labels, YP = padded_labels(Y);
  view_.layout = &layout_;
  view_.Y = Y;
  view_.YP = YP;
  view_.row_stride = Y;
  if (layout.boundary || constrained_) {
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
  if (constrained_)
    for (int j = 0; j < Y; ++j) {
      if (layout_.may_begin[j] == 0) start_[j] = -INFINITY;
      if (layout_.may_end[j] == 0) end_[j] = -INFINITY;
    }
  if (!ngrams_) return;
  ngrams_->set(w);
  ngrams_->show(view_);
}

const std::vector<int32_t>& PreparedWeights::choose_rows(const uint8_t* attributes) {
  if (all_hot_.empty()) all_hot_ = hot_attributes_;
  hot_attributes_.clear();
  chosen_.clear();
  for (const int64_t a : all_hot_) {
    chosen_.push_back(attributes[a] != 0 ? static_cast<int32_t>(hot_attributes_.size()) : -1);
    if (attributes[a] != 0) hot_attributes_.push_back(a);
  }
  // A row may have been that of an attribute with other labels.
  std::fill_n(hot_rows_.data(), static_cast<int64_t>(hot_attributes_.size()) * view_.YP, 0.0);
  return chosen_;
}

void PreparedWeights::prepare_tagging() {
  if (ngrams_ && layout_.order == 1) {
    row_low_.resize(view_.Y);
    row_high_.resize(view_.Y);
    for (int64_t i = 0; i < view_.Y; ++i) {
      const double* row = view_.tr + i * view_.YP;
      row_low_[i] = *std::min_element(row, row + view_.Y);
      row_high_[i] = *std::max_element(row, row + view_.Y);
    }
    view_.row_low = row_low_.data();
    view_.row_high = row_high_.data();
  }
  if (layout_.state_ptr == nullptr) return;
  attributes_.assign(static_cast<std::size_t>(layout_.n_attributes), AttributeWeights{});
  for (int64_t a = 0; a < layout_.n_attributes; ++a) {
    AttributeWeights& entry = attributes_[static_cast<std::size_t>(a)];
    entry.row = hot_row_[static_cast<std::size_t>(a)];
    if (entry.row >= 0) continue;
    for (int64_t i = layout_.state_ptr[a], k = 0; i < layout_.state_ptr[a + 1]; ++i, ++k) {
      entry.weight[k] = view_.w[i];
      entry.label[k] = layout_.state_labels[i];
    }
  }
  view_.attributes = attributes_.data();
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
  doubles_.resize(2 * scores + 3 * lattice + times + 2 * YP + 2 * ngram_size(layout) + 2 * matrix + ngrams + pairs);
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
  view.sums = take(ngram_size(layout));
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

void WorkerScratch::add_lanes(const LayoutView& layout, int lanes, int64_t max_T, bool tangent) {
  const int64_t Y = layout.n_labels, YP = padded_labels(layout.n_labels), n_states = n_histories(Y, layout.order);
  // Dense sums read a few labels beyond the end; best paths keep eight numbers of a position.
  const int64_t table = (max_T * std::max<int64_t>(n_states, 8) + 8) * lanes;
  const int64_t nodes = layout.order == 1 ? table : max_T * Y * lanes;
  // Positions whose scores are computed at a time: many, so weights can be prefetched, but not more than fit into the
  // second-level cache.
  const int64_t row_block = std::min(max_T, std::clamp<int64_t>((256 << 10) / (8 * lanes * YP), 8, 32));
  const int64_t times = max_T * lanes, rows = lanes * row_block * YP;
  int64_t sums = std::max(padded(n_ngrams(layout)), Y * YP);
  if (layout.order > 1)
    sums = std::max(sums,
                    table_offset(Y, YP, layout.order) + padded(layout.ngrams[layout.order - 1].n) + n_states * lanes);
  if (view.lanes.S == nullptr) {
    lanes_.resize(nodes + (layout.order == 1 ? 2 : 3) * table + times + rows + 2 * Y * lanes + 2 * sums);
    double* p = lanes_.data();
    view.lanes.lanes = lanes;
    const auto take = [&p](int64_t n) { return std::exchange(p, p + n); };
    view.lanes.S = take(nodes);
    view.lanes.A = take(table);
    view.lanes.b = take(table);
    view.lanes.z = layout.order == 1 ? view.lanes.S : take(table);
    view.lanes.inv = take(times);
    view.lanes.rows = take(rows);
    view.lanes.row_block = row_block;
    view.lanes.row = take(2 * Y * lanes);
    view.lanes.sums = take(sums);
    view.lanes.squares = take(sums);
  }
  if (!tangent || view.lanes.q != nullptr) return;
  lane_tangent_.resize(nodes + (layout.order == 1 ? 3 : 2) * table);
  view.lanes.q = lane_tangent_.data();
  view.lanes.dA = view.lanes.q + nodes;
  view.lanes.dz = view.lanes.dA + table;
  view.lanes.z_apart = layout.order == 1 ? view.lanes.dz + table : view.lanes.z;
}

}  // namespace crfit
