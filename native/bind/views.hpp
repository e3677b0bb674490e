// Datasets and layouts in the binding: NumPy arrays, validated once and held alive.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/views.hpp"
#include "bind/arrays.hpp"

template <class T>
using OptionalVector = std::optional<Vector<T>>;

template <class T>
const T* pointer(const OptionalVector<T>& a) {
  return a ? a->data() : nullptr;
}

// Offsets of n rows; `message` says what is wrong.
inline void check_offsets(const Vector<int64_t>& ptr, int64_t n, int64_t total, const char* message) {
  require(static_cast<int64_t>(ptr.size()) == n + 1, message);
  crfit::check_offsets(ptr.data(), n, total, message);
}

inline void check_ids(const Vector<int32_t>& ids, int64_t limit, const char* message) {
  crfit::check_ids(ids.data(), static_cast<int64_t>(ids.size()), limit, message);
}

constexpr int64_t kNoLimit = int64_t{1} << 31;
constexpr int64_t kMaxNgrams = int64_t{1} << 32;  // of one length

// Arrays of a dataset, validated once and held alive.
struct Data {
  Vector<int64_t> seq_ptr, attr_ptr;
  Vector<int32_t> attr_ids;
  OptionalVector<double> attr_values;
  OptionalVector<int32_t> labels;
  OptionalVector<int64_t> edge_ptr;
  OptionalVector<int32_t> edge_ids;
  OptionalVector<double> weights;
  crfit::DataView view;

  Data(Vector<int64_t> seq_ptr_, Vector<int64_t> attr_ptr_, Vector<int32_t> attr_ids_,
       OptionalVector<double> attr_values_, OptionalVector<int32_t> labels_, OptionalVector<int64_t> edge_ptr_,
       OptionalVector<int32_t> edge_ids_, OptionalVector<double> weights_)
      : seq_ptr(seq_ptr_),
        attr_ptr(attr_ptr_),
        attr_ids(attr_ids_),
        attr_values(attr_values_),
        labels(labels_),
        edge_ptr(edge_ptr_),
        edge_ids(edge_ids_),
        weights(weights_) {
    require(seq_ptr.size() > 0 && attr_ptr.size() > 0, "seq_ptr and attr_ptr must not be empty");
    const int64_t n_sequences = static_cast<int64_t>(seq_ptr.size()) - 1;
    const int64_t n_positions = static_cast<int64_t>(attr_ptr.size()) - 1;
    check_offsets(seq_ptr, n_sequences, n_positions, "seq_ptr does not cut the positions into sequences");
    crfit::check_filled(seq_ptr.data(), n_sequences, "a sequence has no positions");
    check_offsets(attr_ptr, n_positions, static_cast<int64_t>(attr_ids.size()), "attr_ptr does not fit attr_ids");
    check_ids(attr_ids, kNoLimit, "attr_ids must not be negative");
    require(!attr_values || attr_values->size() == attr_ids.size(), "attr_values and attr_ids differ in length");
    require(!labels || static_cast<int64_t>(labels->size()) == n_positions, "labels must have one id per position");
    require(edge_ptr.has_value() == edge_ids.has_value(), "edge_ptr and edge_ids go together");
    if (edge_ptr) {
      check_offsets(*edge_ptr, n_positions, static_cast<int64_t>(edge_ids->size()), "edge_ptr does not fit edge_ids");
      check_ids(*edge_ids, kNoLimit, "edge_ids must not be negative");
    }
    require(!weights || static_cast<int64_t>(weights->size()) == n_sequences, "one weight per sequence is needed");
    view = {n_sequences,          n_positions,     seq_ptr.data(),    attr_ptr.data(),   attr_ids.data(),
            pointer(attr_values), pointer(labels), pointer(edge_ptr), pointer(edge_ids), pointer(weights)};
  }

  void check_labels(int n_labels) const {
    require(labels.has_value(), "labels are needed");
    check_ids(*labels, n_labels, "a label id is outside the label set");
  }
};

// Arrays of a layout, validated once and held alive.
struct Layout {
  OptionalVector<int64_t> state_ptr;
  OptionalVector<int32_t> state_labels;
  std::vector<OptionalVector<int64_t>> transition_codes;
  OptionalVector<int64_t> pair_ptr;
  OptionalVector<int32_t> pair_codes;
  OptionalVector<uint8_t> may_follow, may_begin, may_end;
  std::vector<crfit::NgramBlock> ngrams;
  crfit::LayoutView view;

  Layout(int n_labels, int64_t n_attributes, int64_t n_edge_attributes, OptionalVector<int64_t> state_ptr_,
         OptionalVector<int32_t> state_labels_, std::vector<OptionalVector<int64_t>> transition_codes_,
         OptionalVector<int64_t> pair_ptr_, OptionalVector<int32_t> pair_codes_, bool boundary, int64_t n_free,
         OptionalVector<uint8_t> may_follow_, OptionalVector<uint8_t> may_begin_, OptionalVector<uint8_t> may_end_)
      : state_ptr(state_ptr_),
        state_labels(state_labels_),
        transition_codes(std::move(transition_codes_)),
        pair_ptr(pair_ptr_),
        pair_codes(pair_codes_),
        may_follow(may_follow_),
        may_begin(may_begin_),
        may_end(may_end_) {
    require(n_labels >= 1 && n_labels <= 1 << 15, "the number of labels must lie between 1 and 32768");
    require(n_attributes >= 0 && n_edge_attributes >= 0, "counts must not be negative");
    require(n_free >= 0 && n_free <= n_attributes, "n_free must lie between 0 and n_attributes");
    require(state_ptr.has_value() == state_labels.has_value(), "state_ptr and state_labels go together");
    require(pair_ptr.has_value() == pair_codes.has_value(), "pair_ptr and pair_codes go together");
    const int64_t Y = n_labels;
    require(may_follow.has_value() == may_begin.has_value() && may_begin.has_value() == may_end.has_value(),
            "may_follow, may_begin and may_end go together");
    require(!may_follow || (static_cast<int64_t>(may_follow->size()) == Y * Y &&
                            static_cast<int64_t>(may_begin->size()) == Y && static_cast<int64_t>(may_end->size()) == Y),
            "may_follow, may_begin or may_end has a wrong size");
    if (state_ptr) {
      check_offsets(*state_ptr, n_attributes, static_cast<int64_t>(state_labels->size()), "state_ptr is not valid");
      check_ids(*state_labels, Y, "a state label is outside the label set");
      crfit::check_ascending(state_ptr->data(), n_attributes, state_labels->data(),
                             "the labels of an attribute must ascend");
    }
    require(!transition_codes.empty(), "the order must be at least 1");
    int64_t offset = state_ptr ? static_cast<int64_t>(state_labels->size()) : n_attributes * Y;
    view.transition_offset = offset;
    int64_t n_ngrams = Y;
    for (const OptionalVector<int64_t>& codes : transition_codes) {
      n_ngrams *= Y;
      require(n_ngrams <= kMaxNgrams, "there are too many label n-grams");
      if (codes)
        crfit::check_codes(codes->data(), static_cast<int64_t>(codes->size()), n_ngrams,
                           "transition codes must ascend and lie below Y^(m+1)");
      ngrams.push_back({pointer(codes), codes ? static_cast<int64_t>(codes->size()) : n_ngrams, offset});
      offset += ngrams.back().n;
    }
    if (pair_ptr) {
      check_offsets(*pair_ptr, n_edge_attributes, static_cast<int64_t>(pair_codes->size()), "pair_ptr is not valid");
      check_ids(*pair_codes, Y * Y, "a pair code is out of range");
      crfit::check_ascending(pair_ptr->data(), n_edge_attributes, pair_codes->data(),
                             "the pairs of an edge attribute must ascend");
    }
    view.n_labels = n_labels;
    view.n_attributes = n_attributes;
    view.n_edge_attributes = n_edge_attributes;
    view.n_free = n_free;
    view.state_ptr = pointer(state_ptr);
    view.state_labels = pointer(state_labels);
    view.order = static_cast<int>(ngrams.size());
    view.ngrams = ngrams.data();
    view.pair_ptr = pointer(pair_ptr);
    view.pair_codes = pointer(pair_codes);
    view.boundary = boundary;
    view.may_follow = pointer(may_follow);
    view.may_begin = pointer(may_begin);
    view.may_end = pointer(may_end);
    view.start_offset = offset;
    view.end_offset = view.start_offset + (boundary ? Y : 0);
    view.edge_offset = view.end_offset + (boundary ? Y : 0);
    view.n_weights =
        view.edge_offset + (pair_ptr ? static_cast<int64_t>(pair_codes->size()) : n_edge_attributes * Y * Y);
  }
};

inline int checked_threads(int n_threads) {
  require(n_threads >= 1, "n_threads must be at least 1");
  return n_threads;
}

template <class A>
void check_weights(const A& w, const crfit::LayoutView& layout) {
  require(static_cast<int64_t>(w.size()) == layout.n_weights, "the vector does not have n_weights elements");
}

inline void check_sequences(const Vector<int64_t>& ids, int64_t n_sequences) {
  crfit::check_ids(ids.data(), static_cast<int64_t>(ids.size()), n_sequences, "a sequence id is out of range");
}

// A dataset with at least one sequence, whose labels exist and belong to the layout.
inline const crfit::DataView& labelled_view(nanobind::handle data, const crfit::LayoutView& layout) {
  const Data& d = nanobind::cast<Data&>(data);
  require(d.view.n_sequences > 0, "there are no sequences");
  d.check_labels(layout.n_labels);
  return d.view;
}
