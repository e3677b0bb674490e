#include "margin/steps.hpp"

#include <algorithm>
#include <cmath>

#include "base/dispatch.hpp"
#include "base/pool.hpp"

namespace crfit {

namespace {

constexpr int64_t kTimed = 128;  // time the phases of one sequence every this many positions

}  // namespace

Margin::Margin(const DataView& data, const LayoutView& layout, int n_threads, const MarginRule& rule)
    : data_(data),
      rule_(rule),
      shape_(layout, n_threads, false),
      now_(shape_.zeros()),
      has_edges_(data.edge_ptr != nullptr && layout.n_edge_attributes > 0) {
  const int64_t Y = layout.n_labels, YP = shape_.YP;
  // [ngram_size] whether there is a weight: a best path can have n-grams that were not observed
  has_ngram_.assign(static_cast<std::size_t>(shape_.ngram_size), 0);
  if (layout.order > 1) {
    ngrams_.resize(shape_.ngram_size);
    ngrams_.fill(0.0);
  }
  // Order 1 decodes with the weights themselves. The score of a longer n-gram is a sum over all lengths that end with
  // it: a separate table, updated entry by entry (show_change), because a mistake changes only a few.
  const double* tr = layout.order > 1 ? ngrams_.data() : now_.tr.data();
  for (int m = 1; m <= layout.order; ++m) {
    const NgramBlock& block = layout.ngrams[m - 1];
    const int64_t offset = table_offset(Y, YP, m);
    for (int64_t k = 0; k < block.n; ++k)
      has_ngram_[offset + padded_pair(block.codes == nullptr ? k : block.codes[k], Y, YP)] = 1;
    tables_.push_back({n_histories(Y, m), tr + offset, nullptr, 0.0});
  }
  if (rule.kind == MarginRule::kArow) variances_ = shape_.zeros();
  view_.layout = &shape_.layout;
  view_.Y = layout.n_labels;
  view_.YP = shape_.YP;
  view_.order = layout.order;
  view_.w = now_.rows.data();
  view_.row_stride = YP;
  // Rows are read in place: preparing weights would cost more than a mistake-driven step saves.
  view_.direct_rows = layout.n_attributes;
  view_.hot_row = shape_.hot_row.data();
  view_.hot_rows = now_.rows.data() + shape_.hot_offset;
  view_.edges = now_.rows.data() + shape_.edge_offset;
  view_.ngram_size = shape_.ngram_size;
  view_.tables = tables_.data();
  view_.tr = tr;
  if (layout.state_ptr != nullptr) {
    tokens_.build(data, layout, shape_.hot_row.data());
    view_.tokens = &tokens_.index();
  }
  if (layout.boundary) {
    view_.start = now_.start.data();
    view_.end = now_.end.data();
  }
  const int64_t max_T = longest_sequence(data);
  for (int worker = 0; worker < n_threads; ++worker) scratch_.emplace_back(layout, max_T, has_edges_);
}

void Margin::set(const double* w) {
  int64_t last = now();
  shape_.load(w, now_);
  summing_ = false;
  sum_ = {};
  for (Buffer<double>* part : {&variances_.rows, &variances_.tr, &variances_.start, &variances_.end})
    part->fill(rule_.variance);
  for (int m = 1; shape_.layout.order > 1 && m <= shape_.layout.order; ++m)
    for (int64_t place = 0; place < tables_[m - 1].rows * shape_.YP; ++place) show_ngram(m, place);
  seconds_.scores += lap(last);
}

double Margin::get(double* out) {
  int64_t last = now();
  const double square = shape_.save(now_, 1.0, out);
  seconds_.gather += lap(last);
  return square;
}

void Margin::begin_sum(const double* total) {
  sum_ = shape_.zeros();
  n_summed_ = 0.0;
  summing_ = true;
  if (total != nullptr) shape_.load(total, sum_);
}

// Adds K w_K to the sum, so a run resumed from it continues with the same bytes.
void Margin::get_sum(double* out) {
  int64_t last = now();
  shape_.add_and_save(sum_, n_summed_, now_, out);
  n_summed_ = 0.0;
  seconds_.gather += lap(last);
}

void Margin::get_variances(double* out) { shape_.save(variances_, 1.0, out); }

void Margin::set_variances(const double* s) { shape_.load(s, variances_); }

Margin::Outcome Margin::visit(const int64_t* sequences, int64_t n, int64_t batch) {
  int64_t last = now(), left = 0;
  const int64_t n_threads = std::min({static_cast<int64_t>(shape_.n_threads), batch, n});
  PhaseSeconds busy;
  Outcome outcome;
  Team team;
  team.lead(static_cast<int>(n_threads), [&] {
    for (int64_t begin = 0; begin < n && std::isfinite(outcome.loss); begin += batch) {
      const int64_t size = std::min(batch, n - begin);
      const bool timed = left <= 0;
      if (timed) left = kTimed;
      left -= place_slots(sequences + begin, size);
      // In parallel: best paths at the same weights. One thread then learns from them in order.
      team.run(size, [&](int64_t task, int worker) {
        MarginDecodeJob job;
        job.data = &data_;
        job.weights = &view_;
        job.scratch = &scratch_[worker].view;
        job.slot = &slots_[task];
        const int64_t later = begin + task + n_threads;
        if (later < n) job.next_sequence = sequences[later];
        job.busy = timed && task == 0 ? &busy : nullptr;
        at_level<MarginKernels>().decode(job);
      });
      int64_t before = timed ? now() : 0, wrong = 0;
      for (int64_t i = 0; i < size; ++i) wrong += slots_[i].n_wrong > 0;
      // One delta for all mistakes of the step.
      if (wrong > 0) outcome.loss += learn(size);
      outcome.mistakes += wrong;
      // Steps without a mistake count in the average too.
      n_summed_ += 1.0;
      if (timed) busy.gather += lap(before) / static_cast<double>(size);
    }
  });
  add_in_proportion(lap(last), busy, seconds_);
  return outcome;
}

// Assigns slots to sequences; returns their number of positions.
int64_t Margin::place_slots(const int64_t* sequences, int64_t n) {
  if (static_cast<int64_t>(slots_.size()) < n) slots_.resize(static_cast<std::size_t>(n));
  int64_t positions = 0;
  for (int64_t i = 0; i < n; ++i) positions += data_.seq_ptr[sequences[i] + 1] - data_.seq_ptr[sequences[i]];
  if (static_cast<int64_t>(best_.size()) < positions) best_.resize(static_cast<std::size_t>(positions));
  int32_t* best = best_.data();
  for (int64_t i = 0; i < n; ++i) {
    slots_[i] = {sequences[i], best, 0, 0.0};
    best += data_.seq_ptr[sequences[i] + 1] - data_.seq_ptr[sequences[i]];
  }
  return positions;
}

// Changes the weights for the mistakes of a step of `size` sequences; returns its loss. The formulas are in steps.hpp.
double Margin::learn(int64_t size) {
  //  miss      sum c (score of the best path - score of the labels)
  //  shares    sum c (wrong labels / labels), the perceptron's loss
  //  weighted  sum c (wrong labels);  wrong  sum of wrong labels
  double miss = 0.0, shares = 0.0, weighted = 0.0, wrong = 0.0;
  delta_.clear();
  for (int64_t i = 0; i < size; ++i) {
    const MarginSlot& slot = slots_[i];
    if (slot.n_wrong == 0) continue;
    const double c = data_.weights == nullptr ? 1.0 : data_.weights[slot.sequence], d = slot.n_wrong;
    const int64_t T = data_.seq_ptr[slot.sequence + 1] - data_.seq_ptr[slot.sequence];
    add_slot(slot, c);
    miss += c * slot.miss;
    shares += c * d / static_cast<double>(T);
    weighted += c * d;
    wrong += d;
  }
  // delta|^2, with AROW delta' diag(s) delta; in the order of first appearance, not in that of the hash table
  double square = 0.0;
  if (rule_.kind == MarginRule::kArow)
    for (const SparseSum::Entry& e : delta_.entries()) square += e.value * e.value * at(variances_, e.place);
  else
    for (const SparseSum::Entry& e : delta_.entries()) square += e.value * e.value;
  const double c = weighted / wrong;  // mean weight of the wrong labels
  double loss = miss + c * (rule_.error_sensitive ? std::sqrt(wrong) : 1.0), factor = 1.0;
  switch (rule_.kind) {
    case MarginRule::kPerceptron: loss = shares; break;
    case MarginRule::kPa: factor = loss / square; break;
    case MarginRule::kPa1: factor = std::min(rule_.c, loss / square); break;
    case MarginRule::kPa2: factor = loss / (square + 0.5 / rule_.c); break;
    case MarginRule::kArow:
      loss = miss + c * wrong;
      factor = loss / (rule_.c + square);
      break;
  }
  // delta = 0: both paths use the same weights, so no step can separate them.
  if (square > 0.0) change(factor);
  return loss;
}

// delta += c (Phi(x, y) - Phi(x, y^)). If the last m + 1 labels of both paths are equal (counted by `same`), the n-gram
// with m previous labels cancels and is skipped.
void Margin::add_slot(const MarginSlot& slot, double c) {
  const LayoutView& layout = shape_.layout;
  const int64_t begin = data_.seq_ptr[slot.sequence], T = data_.seq_ptr[slot.sequence + 1] - begin;
  const int32_t *y = data_.labels + begin, *best = slot.best;
  const int64_t first_ngram = shape_.size + shape_.ngram_size;
  int64_t same = 0;  // consecutive equal labels up to here
  for (int64_t t = 0; t < T; ++t) {
    const bool right = y[t] == best[t];
    same = right ? same + 1 : 0;
    if (!right)
      for (int64_t k = data_.attr_ptr[begin + t]; k < data_.attr_ptr[begin + t + 1]; ++k) {
        const int64_t a = data_.attr_ids[k];
        if (a >= layout.n_attributes) continue;
        const double x = c * (data_.attr_values == nullptr ? 1.0 : data_.attr_values[k]);
        add_attribute(a, y[t], x);
        add_attribute(a, best[t], -x);
      }
    for (int m = 1; m <= std::min<int64_t>(t, layout.order); ++m) {
      if (same > m) continue;
      add_ngram(y + t, m, c);
      add_ngram(best + t, m, -c);
    }
    if (t == 0 || !has_edges_ || same > 1) continue;
    for (int64_t k = data_.edge_ptr[begin + t]; k < data_.edge_ptr[begin + t + 1]; ++k) {
      if (data_.edge_ids[k] >= layout.n_edge_attributes) continue;
      add_edge(data_.edge_ids[k], ngram_code(y + t, 1, layout.n_labels), c);
      add_edge(data_.edge_ids[k], ngram_code(best + t, 1, layout.n_labels), -c);
    }
  }
  if (!layout.boundary) return;
  if (y[0] != best[0]) {
    delta_.add(first_ngram + y[0], c);
    delta_.add(first_ngram + best[0], -c);
  }
  if (y[T - 1] != best[T - 1]) {
    delta_.add(first_ngram + shape_.YP + y[T - 1], c);
    delta_.add(first_ngram + shape_.YP + best[T - 1], -c);
  }
}

void Margin::add_attribute(int64_t a, int32_t label, double x) {
  const LayoutView& layout = shape_.layout;
  int64_t place = a * shape_.YP + label;
  if (layout.state_ptr != nullptr) {
    const int32_t *begin = layout.state_labels + layout.state_ptr[a],
                  *end = layout.state_labels + layout.state_ptr[a + 1];
    // A few labels in order: a linear search is faster than a binary one here.
    const int32_t* found = std::find(begin, end, label);
    if (found == end) return;
    place = shape_.hot_row[a] < 0 ? layout.state_ptr[a] + (found - begin)
                                  : shape_.hot_offset + static_cast<int64_t>(shape_.hot_row[a]) * shape_.YP + label;
  }
  if (summing_) __builtin_prefetch(sum_.rows.data() + place, 1);
  delta_.add(place, x);
}

void Margin::add_ngram(const int32_t* label, int m, double x) {
  const int64_t Y = shape_.layout.n_labels, YP = shape_.YP;
  const int64_t place = table_offset(Y, YP, m) + padded_pair(ngram_code(label, m, Y), Y, YP);
  if (has_ngram_[place]) delta_.add(shape_.size + place, x);
}

void Margin::add_edge(int64_t b, int64_t code, double x) {
  const LayoutView& layout = shape_.layout;
  int64_t place = b * layout.n_labels * layout.n_labels + code;
  if (layout.pair_ptr != nullptr) {
    const int32_t *begin = layout.pair_codes + layout.pair_ptr[b], *end = layout.pair_codes + layout.pair_ptr[b + 1];
    const int32_t* found = std::find(begin, end, static_cast<int32_t>(code));
    if (found == end) return;
    place = found - layout.pair_codes;
  }
  delta_.add(shape_.edge_offset + place, x);
}

// w += factor delta, or factor s delta with AROW, whose variances s are updated too. sum_j w_j as in steps.hpp.
void Margin::change(double factor) {
  const bool arow = rule_.kind == MarginRule::kArow;
  for (const SparseSum::Entry& entry : delta_.entries()) {
    double step = factor * entry.value;
    if (arow) {
      double& s = at(variances_, entry.place);
      step *= s;
      s /= 1.0 + s * entry.value * entry.value / rule_.c;  // 1/s <- 1/s + delta^2 / gamma
    }
    at(now_, entry.place) += step;
    // sum_j w_j = K w_K - sum_j (j - 1) step_j: only changed weights need an update
    if (summing_) at(sum_, entry.place) -= n_summed_ * step;
  }
  if (shape_.layout.order == 1) return;
  for (const SparseSum::Entry& entry : delta_.entries())
    if (entry.place >= shape_.size && entry.place < shape_.size + shape_.ngram_size)
      show_change(entry.place - shape_.size);
}

// Places: rows, then n-grams, first labels, last labels.
double& Margin::at(WeightRows& vector, int64_t place) {
  if (place < shape_.size) return vector.rows[place];
  place -= shape_.size;
  if (place < shape_.ngram_size) return vector.tr[place];
  place -= shape_.ngram_size;
  return place < shape_.YP ? vector.start[place] : vector.end[place - shape_.YP];
}

// Score of an n-gram with m previous labels, including all shorter n-grams that end with it: computed from the weights,
// so it does not depend on their history.
void Margin::show_ngram(int m, int64_t place) {
  const int64_t offset = table_offset(shape_.layout.n_labels, shape_.YP, m);
  const double* shorter = m > 1 ? tables_[m - 2].tr : nullptr;
  const int64_t n_shorter = m > 1 ? tables_[m - 2].rows * shape_.YP : 1;
  ngrams_[offset + place] = now_.tr[offset + place] + (m > 1 ? shorter[place % n_shorter] : 0.0);
}

// Updates the n-gram at a place of now.tr, and all longer ones that end with it.
void Margin::show_change(int64_t place) {
  int m = 1;
  // the length whose table contains the place
  while (m < shape_.layout.order && place >= tables_[m].tr - ngrams_.data()) ++m;
  const int64_t size = tables_[m - 1].rows * shape_.YP;
  for (int longer = m; longer <= shape_.layout.order; ++longer)
    // Longer histories with the same end are `size` entries apart. Length by length: each is computed from the next
    // shorter one.
    for (int64_t at = place - (tables_[m - 1].tr - ngrams_.data()); at < tables_[longer - 1].rows * shape_.YP;
         at += size)
      show_ngram(longer, at);
}

}  // namespace crfit
