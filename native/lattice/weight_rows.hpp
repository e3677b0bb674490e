// A weight vector for training that changes few weights at a time: padded rows, read and written in place.
//
// The plain vector of the layout has Y weights per attribute, or one per observed (attribute, label). Here a row has YP
// entries; the padding and labels without a weight stay 0. Scores and steps can therefore process whole vectors, and
// the next sequence's scores see a change without a copy. Attributes with few observed labels (fewer than kHotLabels)
// keep single weights: a row for each would multiply the memory.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffers.hpp"
#include "base/views.hpp"

namespace crfit {

// A vector over the weights, laid out for steps on single sequences.
struct WeightRows {
  Buffer<double> rows;        // weights of attributes, then of edge attributes: RowLayout
  Buffer<double> tr;          // [ngram_size] each length's own n-grams (RowLayout::ngram_place), padding 0
  Buffer<double> start, end;  // [YP]
};

// Location of the weights in a WeightRows.
class RowLayout {
 public:
  // With order 1 and at most this share of label pairs with a weight, tr has an entry for each weight instead of each
  // pair of labels.
  RowLayout(const LayoutView& layout, int n_threads, double listed_share);

  WeightRows zeros() const;
  void load(const double* plain, WeightRows& out) const;
  // Writes the plain weights, those of attributes times `scale`, which is also applied to the rows; returns |w|^2.
  double save(WeightRows& from, double scale, double* plain) const;
  // to += a x, and the result as plain weights.
  void add_and_save(WeightRows& to, double a, const WeightRows& x, double* plain) const;

  // Where tr has weight k of the n-grams with m previous labels.
  int64_t ngram_place(int m, int64_t k) const {
    const NgramBlock& block = layout.ngrams[m - 1];
    if (listed) return k;
    return table_offset(layout.n_labels, YP, m) +
           padded_pair(block.codes == nullptr ? k : block.codes[k], layout.n_labels, YP);
  }

  LayoutView layout;
  int n_threads;
  int YP;
  bool listed;
  int64_t ngram_size;
  // rows: with weights="all" a row [YP] for each attribute; with "observed" single weights in the order of the plain
  // vector, then a row for each attribute with many labels, from hot_offset on. Edge attributes last.
  std::vector<int32_t> hot_row;      // [n_attributes] or -1; empty with weights="all"
  std::vector<uint64_t> hot_labels;  // [n_hot][label_words] bits of the labels that have a weight
  int64_t n_hot = 0, label_words = 0;
  int64_t hot_offset = 0, edge_offset = 0, size = 0;
  // Unpenalised: rows of attributes from free_row on, single weights from free_weight on.
  int64_t free_row = 0, free_weight = 0;
  // Calls visit(place) for each of these in the rows.
  template <class Visit>
  void each_free(const Visit& visit) const {
    if (layout.n_free == 0) return;
    if (layout.state_ptr != nullptr)
      for (int64_t i = free_weight; i < layout.transition_offset; ++i) visit(i);
    for (int64_t i = hot_offset + free_row * YP; i < edge_offset; ++i) visit(i);
  }

 private:
  template <class Copy>
  void each_run(const Copy& copy) const;
  template <class Copy>
  void each_dense(WeightRows& vector, const Copy& copy) const;
};

}  // namespace crfit
