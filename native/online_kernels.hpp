// Kernels of on-line trainers: the residual of one sequence, its sum into the touched weights, the transitions after
// it. Included by per-level files only.
#pragma once

#include <cmath>

#include "scores.hpp"

namespace {

using crfit::OnlineSlot;
using crfit::OnlineSolveJob;
using crfit::OnlineTransitionJob;
using crfit::OnlineUpdateJob;
using crfit::Scratch;

// Eight neighbouring attributes belong to one part: tasks do not write to one cache line in turn.
inline uint32_t part_of(int32_t id, int n_parts) {
  return (static_cast<uint32_t>(id) >> 3) & static_cast<uint32_t>(n_parts - 1);
}

// Deals the occurrences of a sequence out to the parts of their attributes; within a part they stay in order.
inline void deal_out(const DataView& data, int64_t begin, int64_t T, int n_parts, OnlineSlot& slot) {
  const int64_t first = data.attr_ptr[begin], n = data.attr_ptr[begin + T] - first;
  for (int p = 0; p < n_parts; ++p) slot.n_touched[p] = 0;
  for (int64_t t = 0; t < T; ++t)
    for (int64_t k = data.attr_ptr[begin + t] - first; k < data.attr_ptr[begin + t + 1] - first; ++k) {
      const uint32_t p = part_of(data.attr_ids[first + k], n_parts);
      slot.touched[p * n + slot.n_touched[p]++] = {static_cast<int32_t>(t), static_cast<int32_t>(k)};
    }
}

// Asks for the rows of a sequence that will be scored soon, one with each call: they come while this one is worked on.
class RowsAhead {
 public:
  RowsAhead(const DataView& data, const LayoutView& layout, const double* rows, int64_t stride, int64_t sequence)
      : rows_(rows), stride_(stride) {
    if (sequence < 0 || layout.state_ptr != nullptr) return;
    next_ = data.attr_ids + data.attr_ptr[data.seq_ptr[sequence]];
    end_ = data.attr_ids + data.attr_ptr[data.seq_ptr[sequence + 1]];
  }
  void ask() {
    if (next_ == end_) return;
    const double* row = rows_ + *next_++ * stride_;
    for (int64_t j = 0; j < stride_; j += 8) __builtin_prefetch(row + j);
  }
  void ask_for_rest() {
    while (next_ != end_) ask();
  }

 private:
  const double* rows_;
  int64_t stride_;
  const int32_t *next_ = nullptr, *end_ = nullptr;
};

template <class Worker>
void solve_online(const OnlineSolveJob& job) {
  const Prepared& pre = *job.weights;
  Scratch& s = *job.scratch;
  OnlineSlot& slot = *job.slot;
  const int YP = pre.YP;
  const int64_t pair_size = static_cast<int64_t>(pre.Y) * YP;
  Worker worker(*job.data, pre, s);
  int64_t last = job.busy != nullptr ? crfit::now() : 0;
  worker.load(slot.sequence);
  if (job.busy != nullptr) job.busy->scores += crfit::lap(last);
  RowsAhead(*job.data, *pre.layout, pre.w, pre.row_stride, job.next_sequence).ask_for_rest();
  worker.solve(true);
  const double c = worker.c, step = job.gain * c;
  const int32_t* y = job.data->labels + worker.begin;
  slot.loss = c * (worker.log_z - worker.gold);
  for (int64_t t = 0; t < worker.T; ++t) {
    worker.node(t, -step, slot.residual + t * YP);
    slot.residual[t * YP + y[t]] += step;
  }
  for (int64_t i = 0; i < pre.ngram_size; ++i) s.outer[i] = slot.pairs[i] = 0.0;
  worker.add_expected(s.outer, slot.pairs, slot.pair_residual);
  for (int64_t i = 0; i < pre.ngram_size; ++i) slot.pairs[i] = -(slot.pairs[i] + pre.E[i] * s.outer[i]);
  for (int64_t t = 1; t < worker.T; ++t) {
    slot.pairs[worker.gold_ngram(t)] += c;
    if (slot.pair_residual == nullptr) continue;
    double* out = slot.pair_residual + t * pair_size;
    for (int64_t i = 0; i < pair_size; ++i) out[i] *= -job.gain;
    out[y[t - 1] * YP + y[t]] += step;
  }
  if (job.n_parts > 0) deal_out(*job.data, worker.begin, worker.T, job.n_parts, slot);
  if (job.busy != nullptr) job.busy->lattice += crfit::lap(last);
}

// row += x * residual
template <int P>
inline void add_row(Width<P> width, double x, const double* residual, double* row) {
  for (int j = 0; j < width.yp(); j += kLanes) store(row + j, load(row + j) + splat(x) * load(residual + j));
}

// What one occurrence adds to the weights of its attribute. `target` is v or lag.
template <int P>
inline void add_occurrence(Width<P> width, const OnlineUpdateJob& job, int64_t a, double x, const double* residual,
                           double* target) {
  const LayoutView& layout = *job.layout;
  if (layout.state_ptr == nullptr) {
    add_row(width, x, residual, target + a * width.yp());  // the padding of the residual is 0
    return;
  }
  const int64_t begin = layout.state_ptr[a], end = layout.state_ptr[a + 1];
  const int32_t* label = layout.state_labels;
  if (job.hot_row[a] >= 0) {
    double* row = target + job.hot_offset + static_cast<int64_t>(job.hot_row[a]) * width.yp();
    for (int64_t i = begin; i < end; ++i) row[label[i]] += x * residual[label[i]];
  } else {
    for (int64_t i = begin; i < end; ++i) target[i] += x * residual[label[i]];
  }
}

template <int P>
inline void update_occurrence(Width<P> width, const OnlineUpdateJob& job, const OnlineSlot& slot, int64_t t,
                              int64_t occurrence) {
  const DataView& data = *job.data;
  const int64_t a = data.attr_ids[occurrence];
  if (a >= job.layout->n_attributes) return;
  const double x = data.attr_values == nullptr ? 1.0 : data.attr_values[occurrence];
  const double* residual = slot.residual + t * width.yp();
  add_occurrence(width, job, a, x, residual, job.v);
  if (job.lag != nullptr) add_occurrence(width, job, a, job.lag_factor * x, residual, job.lag);
}

// Edge attributes of one slot; each is updated by the task of its part.
inline void update_edges(const OnlineUpdateJob& job, const OnlineSlot& slot) {
  const DataView& data = *job.data;
  const LayoutView& layout = *job.layout;
  const int64_t Y = layout.n_labels, pair_size = Y * job.YP;
  const int64_t begin = data.seq_ptr[slot.sequence], T = data.seq_ptr[slot.sequence + 1] - begin;
  const bool all = layout.pair_ptr == nullptr;
  for (int64_t t = 1; t < T; ++t)
    for (int64_t k = data.edge_ptr[begin + t]; k < data.edge_ptr[begin + t + 1]; ++k) {
      const int32_t b = data.edge_ids[k];
      if (b >= layout.n_edge_attributes ||
          (job.n_parts > 0 && part_of(b, job.n_parts) != static_cast<uint32_t>(job.part)))
        continue;
      const int64_t first = all ? b * Y * Y : layout.pair_ptr[b], last = all ? first + Y * Y : layout.pair_ptr[b + 1];
      for (int64_t i = first; i < last; ++i) {
        const int64_t code = all ? i - first : layout.pair_codes[i];
        const double d = slot.pair_residual[t * pair_size + crfit::padded_pair(code, Y, job.YP)];
        job.v[job.edge_offset + i] += d;
        if (job.lag != nullptr) job.lag[job.edge_offset + i] += job.lag_factor * d;
      }
    }
}

template <int P>
void update_online(const OnlineUpdateJob& job) {
  constexpr int64_t kAheadUpdates = 8;  // occurrences: in a part their rows were last in another core's cache
  const Width<P> width(job.YP);
  const DataView& data = *job.data;
  RowsAhead ahead(data, *job.layout, job.v, job.YP, job.next_sequence);
  for (int64_t i = 0; i < job.n_slots; ++i) {
    const OnlineSlot& slot = job.slots[i];
    const int64_t begin = data.seq_ptr[slot.sequence], end = data.seq_ptr[slot.sequence + 1];
    if (job.n_parts == 0) {
      for (int64_t position = begin; position < end; ++position)
        for (int64_t k = data.attr_ptr[position]; k < data.attr_ptr[position + 1]; ++k) {
          ahead.ask();
          update_occurrence(width, job, slot, position - begin, k);
        }
    } else {
      const int64_t first = data.attr_ptr[begin], n_occurrences = data.attr_ptr[end] - first;
      const OnlineSlot::Touch* touch = slot.touched + job.part * n_occurrences;
      const OnlineSlot::Touch* stop = touch + slot.n_touched[job.part];
      for (; touch < stop; ++touch) {
        if (touch + kAheadUpdates < stop && job.layout->state_ptr == nullptr) {
          const double* row =
              job.v + static_cast<int64_t>(data.attr_ids[first + touch[kAheadUpdates].occurrence]) * job.YP;
          for (int j = 0; j < job.YP; j += 8) __builtin_prefetch(row + j);
        }
        update_occurrence(width, job, slot, touch->t, first + touch->occurrence);
      }
    }
    if (slot.pair_residual != nullptr) update_edges(job, slot);
  }
  ahead.ask_for_rest();
}

inline void online_transitions(const OnlineTransitionJob& job) {
  const int Y = job.Y, YP = job.YP;
  const Vec decay = splat(job.decay), rate = splat(job.rate);
  for (int64_t i = 0; i < job.size; i += kLanes) {
    Vec pairs = {};
    for (int64_t n = 0; n < job.n_slots; ++n) pairs += load(job.slots[n].pairs + i);
    const Vec tr = decay * load(job.tr + i) + rate * load(job.mask + i) * pairs;
    store(job.tr + i, tr);
    if (job.total != nullptr) store(job.total + i, load(job.total + i) + tr);
  }
  if (job.E == nullptr) return;
  const int whole = Y / kLanes * kLanes;
  Vec tops = splat(-INFINITY);
  double top = -INFINITY;
  for (int i = 0; i < Y; ++i) {
    for (int j = 0; j < whole; j += kLanes) tops = vmax(tops, load(job.tr + i * YP + j));
    for (int j = whole; j < Y; ++j) top = job.tr[i * YP + j] > top ? job.tr[i * YP + j] : top;
  }
  top = max_lane(tops) > top ? max_lane(tops) : top;
  *job.tr_max = top;
  for (int i = 0; i < Y; ++i) {
    double* row = job.E + i * YP;
    for (int j = 0; j < YP; j += kLanes) store(row + j, vexp(load(job.tr + i * YP + j) - splat(top)));
    for (int j = Y; j < YP; ++j) row[j] = 0.0;
    for (int j = 0; j < Y; ++j) job.ET[j * YP + i] = row[j];
  }
}

}  // namespace
