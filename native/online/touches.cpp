#include "online/touches.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace crfit {

OnlineTouches::OnlineTouches(const DataView& data, const RowLayout& shape)
    : data_(data), shape_(shape), has_edges_(data.edge_ptr != nullptr && shape.layout.n_edge_attributes > 0) {
  // Units: with weights="all" one per attribute; with "observed" the rows of attributes with many labels, and one per
  // weight of the others (numbered like the weights, so some numbers are never used).
  const bool all = shape.layout.state_ptr == nullptr;
  make_kind(all ? shape.layout.n_attributes : shape.n_hot, dense_);
  make_kind(all ? 0 : shape.layout.transition_offset, sparse_);
  make_kind(has_edges_ ? shape.layout.n_edge_attributes : 0, edges_);
  count_sequences();
  if (shape.layout.n_free == 0) return;
  // Unpenalised attributes are last.
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::fill(dense_.sequences.begin() + shape.free_row, dense_.sequences.end(), kNone);
  if (!all) std::fill(sparse_.sequences.begin() + shape.free_weight, sparse_.sequences.end(), kNone);
}

void OnlineTouches::make_kind(int64_t units, Kind& kind) {
  for (std::vector<int32_t>* numbers : {&kind.count, &kind.n_sequences, &kind.place})
    numbers->assign(static_cast<std::size_t>(units), 0);
  kind.sequences.assign(static_cast<std::size_t>(units), 0.0);
  kind.last_sequence.assign(static_cast<std::size_t>(units), -1);
}

// Counts are collected sequence by sequence, so a unit counts once per sequence.
void OnlineTouches::count_sequences() {
  Collecting found;
  const auto take = [](Kind& kind, Collected& collected) {
    for (const int32_t unit : collected.distinct) {
      ++kind.sequences[unit];
      kind.count[unit] = kind.n_sequences[unit] = 0;
      kind.last_sequence[unit] = -1;
    }
    collected.distinct.clear();
    collected.items.clear();
  };
  for (int64_t i = 0; i < data_.n_sequences; ++i) {
    for (int64_t t = data_.seq_ptr[i]; t < data_.seq_ptr[i + 1]; ++t)
      for (int64_t k = data_.attr_ptr[t]; k < data_.attr_ptr[t + 1]; ++k) add_attribute(found, k, 0, i);
    if (has_edges_) add_edges(found, i, i, 0, 0, 0);
    take(dense_, found.dense);
    take(sparse_, found.sparse);
    take(edges_, found.edges);
  }
}

void OnlineTouches::add(Kind& kind, Collected& to, int64_t unit, int64_t from, double value, int64_t sequence) {
  // count: occurrences in the step; n_sequences: its sequences with the unit. Sequences are processed one after
  // another, so remembering the last one is enough.
  if (kind.count[unit]++ == 0) to.distinct.push_back(static_cast<int32_t>(unit));
  if (kind.last_sequence[unit] != sequence) {
    kind.last_sequence[unit] = static_cast<int32_t>(sequence);
    ++kind.n_sequences[unit];
  }
  to.items.push_back({static_cast<int32_t>(unit), static_cast<uint32_t>(from), value});
}

void OnlineTouches::add_attribute(Collecting& to, int64_t occurrence, int64_t row, int64_t sequence) {
  const LayoutView& layout = shape_.layout;
  const int64_t a = data_.attr_ids[occurrence];
  if (a >= layout.n_attributes) return;
  const double x = data_.attr_values == nullptr ? 1.0 : data_.attr_values[occurrence];
  if (layout.state_ptr == nullptr) return add(dense_, to.dense, a, row, x, sequence);
  if (shape_.hot_row[a] >= 0) return add(dense_, to.dense, shape_.hot_row[a], row, x, sequence);
  for (int64_t i = layout.state_ptr[a]; i < layout.state_ptr[a + 1]; ++i)
    // `from` of a single weight is the entry of its label in the residual row.
    add(sparse_, to.sparse, i, row * shape_.YP + layout.state_labels[i], x, sequence);
}

void OnlineTouches::add_edges(Collecting& to, int64_t sequence, int64_t visit, int64_t row, int part, int n_parts) {
  const int64_t begin = data_.seq_ptr[sequence], T = data_.seq_ptr[sequence + 1] - begin;
  for (int64_t t = 1; t < T; ++t)
    for (int64_t k = data_.edge_ptr[begin + t]; k < data_.edge_ptr[begin + t + 1]; ++k) {
      const int32_t b = data_.edge_ids[k];
      if (b < shape_.layout.n_edge_attributes && (n_parts == 0 || part_of(b, n_parts) == static_cast<uint32_t>(part)))
        add(edges_, to.edges, b, row + t, 1.0, visit);
    }
}

// Groups the collected items in order of first appearance, so sums do not depend on the order of a hash table. Resets
// the counters to 0. `all`: no unit is a single; needed with values, because residual rows do not include them.
void OnlineTouches::group(Kind& kind, Collected& from, bool all, Lists& out) const {
  int32_t n_groups = 0;
  for (const int32_t unit : from.distinct) {
    kind.place[unit] = -1;
    if (!all && kind.count[unit] == 1) continue;
    kind.place[unit] = n_groups;
    out.group.push_back(unit);
    out.group_sum.push_back(n_groups++);
    out.group_sequences.push_back(kind.n_sequences[unit]);
  }
  out.n_sums += n_groups;
  // Items keep the order of the data, which is the order of the terms of a sum.
  for (const Item& item : from.items) {
    const int32_t place = kind.place[item.unit];
    if (place < 0) {
      out.singles.push_back({item.unit, item.from});
      continue;
    }
    out.summed.push_back({place, item.from});
    if (data_.attr_values != nullptr) out.values.push_back(item.value);
  }
  for (const int32_t unit : from.distinct) {
    kind.count[unit] = kind.n_sequences[unit] = 0;
    kind.last_sequence[unit] = -1;
  }
  from.items.clear();
  from.distinct.clear();
}

// Groups of the last sequence that occur at the same places share a sum; not with values.
void OnlineTouches::merge_sums(int64_t first_summed, int64_t first_group, Lists& lists) {
  const auto n_groups = lists.group.size() - static_cast<std::size_t>(first_group);
  // [groups] rows of residuals in which the unit occurs
  std::vector<std::vector<uint32_t>> places(n_groups);
  for (auto i = static_cast<std::size_t>(first_summed); i < lists.summed.size(); ++i)
    places[lists.summed[i].to].push_back(lists.summed[i].from);
  // An ordered map: the numbering of sums depends only on the order of the groups, not on addresses or a hash.
  std::map<std::vector<uint32_t>, int32_t> sum_of;
  lists.summed.resize(static_cast<std::size_t>(first_summed));
  for (std::size_t g = 0; g < n_groups; ++g) {
    const auto [found, is_new] = sum_of.emplace(places[g], static_cast<int32_t>(sum_of.size()));
    lists.group_sum[static_cast<std::size_t>(first_group) + g] = found->second;
    if (!is_new) continue;
    for (const uint32_t from : places[g]) lists.summed.push_back({found->second, from});
  }
  lists.n_sums -= static_cast<int64_t>(n_groups - sum_of.size());
}

void OnlineTouches::index_sequences() {
  if (!all_dense_.ends.empty()) return;
  Collecting found;
  const bool valued = data_.attr_values != nullptr;
  for (Lists* lists : {&all_dense_, &all_sparse_, &all_edges_}) lists->close();
  for (int64_t i = 0; i < data_.n_sequences; ++i) {
    const int64_t begin = data_.seq_ptr[i], end = data_.seq_ptr[i + 1];
    for (int64_t t = begin; t < end; ++t)
      for (int64_t k = data_.attr_ptr[t]; k < data_.attr_ptr[t + 1]; ++k) add_attribute(found, k, t - begin, i);
    if (has_edges_) add_edges(found, i, i, 0, 0, 0);
    group(dense_, found.dense, valued, all_dense_);
    if (!valued) merge_sums(all_dense_.ends.back().summed, all_dense_.ends.back().group, all_dense_);
    group(sparse_, found.sparse, valued, all_sparse_);
    group(edges_, found.edges, true, all_edges_);
    for (Lists* lists : {&all_dense_, &all_sparse_, &all_edges_}) lists->close();
  }
}

StepTouches OnlineTouches::of_sequence(int64_t sequence) const {
  const auto view = [&](const Lists& lists) { return lists.view(lists.ends[sequence], lists.ends[sequence + 1]); };
  StepTouches touches{view(all_dense_), view(all_sparse_), view(all_edges_)};
  touches.room = room(touches);
  return touches;
}

void OnlineTouches::prefetch(int64_t sequence) const {
  for (const Lists* lists : {&all_dense_, &all_sparse_}) lists->prefetch(sequence);
}

void OnlineTouches::make_parts(int n_parts) {
  if (static_cast<int>(parts_.size()) < n_parts) parts_.resize(static_cast<std::size_t>(n_parts));
}

Touches OnlineTouches::grouped(Kind& kind, Collected& collected, bool all) const {
  collected.lists.clear();
  group(kind, collected, all, collected.lists);
  collected.lists.close();
  return collected.lists.view({}, collected.lists.ends.back());
}

StepTouches OnlineTouches::of_part(int part, int n_parts, const OnlineSlot* slots, int64_t n_slots,
                                   const double* residual) {
  Collecting& found = parts_[part];
  for (int64_t n = 0; n < n_slots; ++n) {
    const OnlineSlot& slot = slots[n];
    const int64_t begin = data_.seq_ptr[slot.sequence], end = data_.seq_ptr[slot.sequence + 1];
    const int64_t row = (slot.residual - residual) / shape_.YP, first = data_.attr_ptr[begin];
    if (n_parts == 0 || slot.touched == nullptr) {
      for (int64_t t = begin; t < end; ++t)
        for (int64_t k = data_.attr_ptr[t]; k < data_.attr_ptr[t + 1]; ++k)
          if (n_parts == 0 || part_of(data_.attr_ids[k], n_parts) == static_cast<uint32_t>(part))
            add_attribute(found, k, row + t - begin, n);
    } else {
      // Already distributed by the task that solved the sequence.
      const OnlineSlot::Place* touch = slot.touched + part * (data_.attr_ptr[end] - first);
      for (int32_t i = 0; i < slot.n_touched[part]; ++i)
        add_attribute(found, first + touch[i].occurrence, row + touch[i].t, n);
    }
    if (has_edges_) add_edges(found, slot.sequence, n, row, part, n_parts);
  }
  const bool valued = data_.attr_values != nullptr;
  StepTouches touches{grouped(dense_, found.dense, valued), grouped(sparse_, found.sparse, valued),
                      grouped(edges_, found.edges, true)};
  touches.room = room(touches);
  return touches;
}

int64_t OnlineTouches::room(const StepTouches& touches) const {
  const int64_t Y = shape_.layout.n_labels;
  // The three kinds use the same space one after another. Whole vectors, because T is applied to all of it.
  return std::max({touches.dense.n_sums * shape_.YP, (touches.sparse.n_sums + 7) / 8 * 8,
                   touches.edges.n_sums * ((Y * Y + 7) / 8 * 8)});
}

void OnlineTouches::Lists::clear() {
  singles.clear();
  summed.clear();
  values.clear();
  group.clear();
  group_sum.clear();
  group_sequences.clear();
  n_sums = 0;
  ends.clear();
}

void OnlineTouches::Lists::close() {
  ends.push_back({static_cast<int64_t>(singles.size()), static_cast<int64_t>(summed.size()),
                  static_cast<int64_t>(group.size()), n_sums});
}

Touches OnlineTouches::Lists::view(End begin, End end) const {
  Touches touches;
  touches.singles = singles.data() + begin.single;
  touches.n_singles = end.single - begin.single;
  touches.summed = summed.data() + begin.summed;
  touches.n_summed = end.summed - begin.summed;
  touches.values = values.empty() ? nullptr : values.data() + begin.summed;
  touches.group = group.data() + begin.group;
  touches.group_sum = group_sum.data() + begin.group;
  touches.group_sequences = group_sequences.data() + begin.group;
  touches.n_groups = end.group - begin.group;
  touches.n_sums = end.sum - begin.sum;
  return touches;
}

void OnlineTouches::Lists::prefetch(int64_t sequence) const {
  const auto fetch = [](const auto& list, int64_t begin, int64_t end) {
    const char* last = reinterpret_cast<const char*>(list.data() + end);
    for (const char* at = reinterpret_cast<const char*>(list.data() + begin); at < last; at += 64)
      __builtin_prefetch(at);
  };
  const End &begin = ends[sequence], &end = ends[sequence + 1];
  fetch(singles, begin.single, end.single);
  fetch(summed, begin.summed, end.summed);
  fetch(group, begin.group, end.group);
  fetch(group_sum, begin.group, end.group);
}

}  // namespace crfit
