#include "text/sequences.hpp"

#include <algorithm>

namespace crfit {

DataView Sequences::view() const {
  DataView view;
  view.n_sequences = size();
  view.n_positions = static_cast<int64_t>(attr_ptr.size()) - 1;
  view.seq_ptr = seq_ptr.data();
  view.attr_ptr = attr_ptr.data();
  view.attr_ids = attr_ids.data();
  view.attr_values = has_values ? attr_values.data() : nullptr;
  return view;
}

void Sequences::clear() {
  seq_ptr.resize(1);
  attr_ptr.resize(1);
  attr_ids.clear();
  attr_values.clear();
  has_values = false;
  n_dropped = 0;
}

void Sequences::drop_unknown() {
  int64_t kept = 0, begin = 0;
  for (std::size_t t = 0; t + 1 < attr_ptr.size(); ++t) {
    const int64_t end = attr_ptr[t + 1];
    for (int64_t k = begin; k < end; ++k) {
      // Stored before it is decided: whether a name is known is hard to predict.
      const int32_t id = attr_ids[k];
      attr_ids[kept] = id;
      if (has_values) attr_values[kept] = attr_values[k];
      kept += id >= 0;
    }
    begin = end;
    attr_ptr[t + 1] = kept;
  }
  n_dropped += begin - kept;
  attr_ids.resize(kept);
  if (has_values) attr_values.resize(kept);
}

void Sequences::drop_ones() {
  if (!std::all_of(attr_values.begin(), attr_values.end(), [](double v) { return v == 1.0; })) return;
  attr_values.clear();
  has_values = false;
}

void Sequences::append(const Sequences& other, int64_t first, int64_t last) {
  const int64_t begin = other.seq_ptr[first], end = other.seq_ptr[last];
  const int64_t from = other.attr_ptr[begin], to = other.attr_ptr[end];
  const int64_t positions = seq_ptr.back() - begin, occurrences = attr_ptr.back() - from;
  if (other.has_values && !has_values) {
    attr_values.assign(attr_ids.size(), 1.0);
    has_values = true;
  }
  for (int64_t i = first; i < last; ++i) seq_ptr.push_back(other.seq_ptr[i + 1] + positions);
  for (int64_t t = begin; t < end; ++t) attr_ptr.push_back(other.attr_ptr[t + 1] + occurrences);
  attr_ids.insert(attr_ids.end(), other.attr_ids.begin() + from, other.attr_ids.begin() + to);
  if (other.has_values)
    attr_values.insert(attr_values.end(), other.attr_values.begin() + from, other.attr_values.begin() + to);
  else if (has_values)
    attr_values.resize(attr_ids.size(), 1.0);
}

}  // namespace crfit
