// Kernels of online steps by the plain rule, w += gain x residual, and code shared by all rules: the residuals of a
// sequence, the dense tables. Included by per-level files only.
//
//   solve    residual[t, j] = c ([y_t = j] - p(t, j));  pairs[i, j] = c (gold pairs - sum_t p(t, i, j))
//   update   rows[a, :] += gain x residual[t, :]        for each occurrence (t, a, x), in the order of the data
//   dense    tr = decay tr + mask * step(pairs)         transitions and boundary weights, unscaled
//
// The plain rule is linear in the residual, so occurrences are added one by one, without grouping or summing first. An
// update reads the same rows as the scores and is memory-bound. Two measures help: prefetching the rows of the next
// sequence while this one is computed (RowsAhead), and writing whole padded rows without a branch per label. With
// weights="observed" labels without a weight are masked out by bits, which costs less than a scatter.
#pragma once

#include <cmath>

#include "lattice/rows_ahead.hpp"
#include "lattice/scores.hpp"
#include "online/transform.hpp"

namespace {

using crfit::OnlineDenseJob;
using crfit::OnlineGroupJob;
using crfit::OnlineRows;
using crfit::OnlineSlot;
using crfit::OnlineSolveJob;
using crfit::OnlineTransitionJob;
using crfit::OnlineUpdateJob;
using crfit::part_of;
using crfit::Scratch;

// Distributes the occurrences of a sequence to the parts of their attributes; within a part they stay in order, so a
// weight's sum has the same order with and without parts.
inline void deal_out(const DataView& data, int64_t begin, int64_t T, int n_parts, OnlineSlot& slot) {
  const int64_t first = data.attr_ptr[begin], n = data.attr_ptr[begin + T] - first;
  for (int p = 0; p < n_parts; ++p) slot.n_touched[p] = 0;
  for (int64_t t = 0; t < T; ++t)
    for (int64_t k = data.attr_ptr[begin + t] - first; k < data.attr_ptr[begin + t + 1] - first; ++k) {
      const uint32_t p = part_of(data.attr_ids[first + k], n_parts);
      slot.touched[p * n + slot.n_touched[p]++] = {static_cast<int32_t>(t), static_cast<int32_t>(k)};
    }
}

// Before n-grams are summed; returns where those that are not outer products are added. Listed pairs have no such sums,
// unless the sequence is in the log domain or has edge attributes: then they are picked from sums [Y][YP].
template <class Worker>
inline double* begin_ngrams(const Prepared& pre, Scratch& s, const Worker& worker, double* out) {
  for (int64_t i = 0; i < pre.n_ngrams; ++i) s.outer[i] = out[i] = 0.0;
  if (!pre.listed_sums || worker.factored()) return out;
  for (int64_t i = 0; i < static_cast<int64_t>(pre.Y) * pre.YP; ++i) s.sums[i] = 0.0;
  return s.sums;
}

// The sums of n-grams, given what begin_ngrams returned: out += E * outer, or the listed entries of the sums.
inline void end_ngrams(const Prepared& pre, const Scratch& s, const double* sums, double* out) {
  for (int64_t i = 0; i < pre.n_ngrams; ++i)
    out[i] = pre.ngram_E[i] * s.outer[i] + (sums == out ? out[i] : sums[pre.places[i]]);
}

// out = c times the expected n-grams of a sequence, in the order of the weights' tables.
template <class Worker>
inline void expected_ngrams(const Prepared& pre, Scratch& s, Worker& worker, double* out, double* pairs) {
  double* sums = begin_ngrams(pre, s, worker, out);
  worker.add_expected(s.outer, sums, pairs);
  end_ngrams(pre, s, sums, out);
}

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
  // The lattice hardly reads memory, so prefetch the rows of the next sequence meanwhile.
  RowsAhead<0>(*job.data, pre, job.next_sequence).prefetch_rest();
  worker.solve(true);
  const double c = worker.c;
  const int32_t* y = job.data->labels + worker.begin;
  slot.loss = c * (worker.log_z - worker.gold);
  for (int64_t t = 0; t < worker.T; ++t) {
    // residual[t, :] = c ([y = gold] - p(t, :))
    worker.node(t, -c, slot.residual + t * YP);
    slot.residual[t * YP + y[t]] += c;
  }
  // gain T(residual) by position, for weights whose whole residual is one row (singles).
  // Without parts the update does this.
  if (job.rule->kind == OnlineRule::kTransform && job.n_parts > 0)
    transform(*job.rule, slot.residual, worker.T * YP, job.gain, slot.transformed);
  expected_ngrams(pre, s, worker, slot.pairs, slot.pair_residual);
  for (int64_t i = 0; i < pre.n_ngrams; ++i) slot.pairs[i] = -slot.pairs[i];
  for (int64_t t = 1; t < worker.T; ++t) {
    // pairs += c [gold n-gram], and pair_residual = c ([gold pair] - p(t, i, j)) for edge attributes; t = 0 has
    // neither.
    const int64_t gold = worker.gold_ngram(t);
    if (gold >= 0) slot.pairs[gold] += c;
    if (slot.pair_residual == nullptr) continue;
    double* out = slot.pair_residual + t * pair_size;
    for (int64_t i = 0; i < pair_size; ++i) out[i] = -out[i];
    out[y[t - 1] * YP + y[t]] += c;
  }
  if (job.n_parts > 0) deal_out(*job.data, worker.begin, worker.T, job.n_parts, slot);
  if (job.busy != nullptr) job.busy->lattice += crfit::lap(last);
}

// The same for several sequences side by side.
template <int N>
void solve_online_group(const OnlineGroupJob& job) {
  constexpr int G = N * kLanes;
  const Prepared& pre = *job.each.weights;
  const DataView& data = *job.each.data;
  crfit::LaneScratch& s = job.each.scratch->lanes;
  LaneLattice<N> lanes(data, pre, nullptr, s);
  int64_t ids[G];
  for (int k = 0; k < job.n_slots; ++k) ids[k] = job.slots[k]->sequence;
  lanes.take(ids, job.n_slots);
  lanes.forward(true);
  // residual[t, :] = c ([y = gold] - p(t, :))
  lanes.backward(s.z, false, -1.0 * lanes.weights(), [&](int64_t t, int here, double* p) {
    for (int l = 0; l < here; ++l) p[data.labels[lanes.begin[l] + t] * G + l] += lanes.c[l];
    lanes.rows_out(p, here, [&](int l) { return job.slots[lanes.slot[l]]->residual + t * pre.YP; });
  });
  for (int64_t k = 0; k < pre.n_ngrams; ++k) s.sums[k] = 0.0;
  lanes.weigh(s.z);
  lanes.add_pairs(s.A, s.z, s.sums);
  double* pairs = job.slots[0]->pairs;  // of all of them
  for (int64_t k = 0; k < pre.n_ngrams; ++k) pairs[k] = -pre.ngram_E[k] * s.sums[k];
  for (int l = 0; l < lanes.n; ++l) {
    OnlineSlot& slot = *job.slots[lanes.slot[l]];
    OnlineSolveJob one = job.each;
    if ((lanes.failed >> l & 1) != 0) {  // on its own; its pairs join those of the group
      OnlineSlot alone = slot;
      alone.pairs = s.squares;
      one.slot = &alone;
      one.next_sequence = -1;
      one.busy = nullptr;
      solve_online<SequenceWorker<0>>(one);
      slot.loss = alone.loss;
      for (int64_t k = 0; k < pre.n_ngrams; ++k) pairs[k] += s.squares[k];
      continue;
    }
    slot.loss = lanes.c[l] * (lanes.log_z[l] - lanes.gold[l]);
    const int32_t* y = data.labels + lanes.begin[l];
    for (int64_t t = 1; t < lanes.length[l]; ++t) {
      const int64_t gold = crfit::find_ngram(pre.layout->ngrams[0], int64_t{y[t - 1]} * pre.Y + y[t]);
      if (gold >= 0) pairs[gold] += lanes.c[l];
    }
    if (one.rule->kind == OnlineRule::kTransform && one.n_parts > 0)
      transform(*one.rule, slot.residual, lanes.length[l] * pre.YP, one.gain, slot.transformed);
    if (one.n_parts > 0) deal_out(data, lanes.begin[l], lanes.length[l], one.n_parts, slot);
  }
  if (job.each.busy != nullptr) job.each.busy->scores += lanes.score_seconds();
}

// row += x * change, with weights="observed" where there is a weight.
template <int P>
inline void add_row(Width<P> width, double x, const double* change, const uint64_t* labels, double* row) {
  for (int j = 0; j < width.yp(); j += kLanes) {
    const Vec before = load(row + j), after = before + splat(x) * load(change + j);
    store(row + j, labels == nullptr ? after : select(labels[j / 64] >> j % 64, after, before));
  }
}

// The same for the row of an attribute and for its row in the sum of weights.
template <int P>
inline void add_to_row(Width<P> width, const OnlineRows& to, int64_t row, double x, const double* change) {
  const int64_t at = to.hot_offset + row * width.yp();  // hot_offset is 0 with weights="all"
  const uint64_t* labels = to.hot_labels == nullptr ? nullptr : to.hot_labels + row * to.label_words;
  add_row(width, x, change, labels, to.rows + at);
  if (to.sum != nullptr) add_row(width, to.sum_factor * x, change, labels, to.sum + at);
}

inline void add_to_weight(const OnlineRows& to, int64_t weight, double change) {
  to.rows[weight] += change;
  if (to.sum != nullptr) to.sum[weight] += to.sum_factor * change;
}

// Contribution of one occurrence to the weights of its attribute.
template <int P>
inline void update_occurrence(Width<P> width, const OnlineUpdateJob& job, const OnlineSlot& slot, int64_t t,
                              int64_t occurrence) {
  const DataView& data = *job.data;
  const LayoutView& layout = *job.layout;
  const int64_t a = data.attr_ids[occurrence];
  if (a >= layout.n_attributes) return;
  const double x = job.gain * (data.attr_values == nullptr ? 1.0 : data.attr_values[occurrence]);
  const double* residual = slot.residual + t * width.yp();  // its padding is 0
  if (layout.state_ptr == nullptr) return add_to_row(width, job.to, a, x, residual);
  if (job.to.hot_row[a] >= 0) return add_to_row(width, job.to, job.to.hot_row[a], x, residual);
  for (int64_t i = layout.state_ptr[a]; i < layout.state_ptr[a + 1]; ++i)
    add_to_weight(job.to, i, x * residual[layout.state_labels[i]]);
}

// weights="observed", one position through the sorted index (TokenIndex): first its dense rows, then single weights.
// All rows of a position get the same change, which stays in registers if there are no values and no sum of weights.
template <int P>
inline void update_token(Width<P> width, const OnlineUpdateJob& job, const OnlineRows& to, int64_t position,
                         const double* residual, RowsAhead<P>& ahead) {
  const crfit::TokenIndex& index = *job.weights->tokens;
  const double gain = job.gain;
  const int64_t dense = index.dense_ptr[position], dense_end = index.dense_ptr[position + 1];
  const int64_t sparse = index.sparse_ptr[position], sparse_end = index.sparse_ptr[position + 1];
  if constexpr (P > 0 && P <= 64) {
    // The common case: change = gain residual[t, :] is computed once, in registers, for all rows of the position.
    if (index.dense_values == nullptr && index.sparse_values == nullptr && to.sum == nullptr) {
      constexpr int kVecs = P / kLanes;
      Vec change[kVecs];
      for (int v = 0; v < kVecs; ++v) change[v] = gain * load(residual + v * kLanes);
      const int32_t *rows = index.dense_rows, *labels = index.sparse_labels;
      const int64_t* weights = index.sparse_weights;
      double* hot = to.rows + to.hot_offset;
      for (int64_t k = dense; k < dense_end; ++k) {
        ahead.prefetch_next();
        double* row = hot + static_cast<int64_t>(rows[k]) * P;
        // Labels without a weight must stay 0, because scores read whole rows.
        const uint64_t bits = to.hot_labels[rows[k]];
        for (int v = 0; v < kVecs; ++v) {
          const Vec before = load(row + v * kLanes);
          store(row + v * kLanes, select(bits >> v * kLanes, before + change[v], before));
        }
      }
      for (int64_t k = sparse; k < sparse_end; ++k) {
        ahead.prefetch_next();
        to.rows[weights[k]] += gain * residual[labels[k]];
      }
      return;
    }
  }
  for (int64_t k = dense; k < dense_end; ++k) {
    ahead.prefetch_next();
    add_to_row(width, to, index.dense_rows[k], gain * (index.dense_values == nullptr ? 1.0 : index.dense_values[k]),
               residual);
  }
  for (int64_t k = sparse; k < sparse_end; ++k) {
    ahead.prefetch_next();
    add_to_weight(
        to, index.sparse_weights[k],
        gain * (index.sparse_values == nullptr ? 1.0 : index.sparse_values[k]) * residual[index.sparse_labels[k]]);
  }
}

// Edge attributes of one slot; the task of its part updates each.
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
        // w[b, i, j] += gain c ([gold pair] - p(t, i, j)), for the label pairs that attribute b has weights for
        const double d = slot.pair_residual[t * pair_size + crfit::padded_pair(code, Y, job.YP)];
        add_to_weight(job.to, job.to.edge_offset + i, job.gain * d);
      }
    }
}

template <int P>
void update_online(const OnlineUpdateJob& job) {
  constexpr int64_t kAheadUpdates = 8;  // occurrences: in a part their rows may be in another core's cache
  const Width<P> width(job.YP);
  const DataView& data = *job.data;
  RowsAhead<P> ahead(data, *job.weights, job.next_sequence);
  const OnlineRows to = job.to;  // a copy, so stores to rows cannot alias
  for (int64_t i = 0; i < job.n_slots; ++i) {
    const OnlineSlot& slot = job.slots[i];
    const int64_t begin = data.seq_ptr[slot.sequence], end = data.seq_ptr[slot.sequence + 1];
    if (job.n_parts == 0) {
      for (int64_t position = begin; position < end; ++position) {
        if (job.by_token) {
          update_token(width, job, to, position, slot.residual + (position - begin) * job.YP, ahead);
          continue;
        }
        for (int64_t k = data.attr_ptr[position]; k < data.attr_ptr[position + 1]; ++k) {
          ahead.prefetch_next();
          update_occurrence(width, job, slot, position - begin, k);
        }
      }
    } else {
      // The part's occurrences in this sequence, distributed by the task that solved it: each id is read by one task.
      const int64_t first = data.attr_ptr[begin], n_occurrences = data.attr_ptr[end] - first;
      const OnlineSlot::Place* touch = slot.touched + job.part * n_occurrences;
      const OnlineSlot::Place* stop = touch + slot.n_touched[job.part];
      for (; touch < stop; ++touch) {
        if (touch + kAheadUpdates < stop && job.layout->state_ptr == nullptr) {
          const double* row =
              job.to.rows + static_cast<int64_t>(data.attr_ids[first + touch[kAheadUpdates].occurrence]) * job.YP;
          for (int j = 0; j < job.YP; j += 8) __builtin_prefetch(row + j);
        }
        update_occurrence(width, job, slot, touch->t, first + touch->occurrence);
      }
    }
    if (slot.pair_residual != nullptr) update_edges(job, slot);
  }
  ahead.prefetch_rest();
}

inline Vec root(Vec x) {
  // The compiler turns this into one vector square root (-fno-math-errno).
  for (int i = 0; i < kLanes; ++i) x[i] = std::sqrt(x[i]);
  return x;
}

// AdaGrad's step, which is returned: u = share w - residual; h += u^2; -eta u / (sqrt(h) + epsilon).
inline Vec adapted(Vec residual, Vec w, double share, double eta, double epsilon, Vec& h) {
  const Vec u = share * w - residual;
  h += u * u;
  return -eta * u / (root(h) + epsilon);
}

// w = decay w + mask * step(sums), on the blocks of eight with weights.
inline void online_dense(const OnlineDenseJob& job) {
  constexpr int kBlock = 8;
  const OnlineRule& rule = *job.rule;
  for (int64_t b = 0; b < job.n_blocks; ++b)
    for (int i = 0; i < kBlock; i += kLanes) store(job.steps + b * kBlock + i, load(job.sums + job.blocks[b] + i));
  double* steps = job.steps;
  if (rule.kind == OnlineRule::kTransform) {
    steps += job.n_blocks * kBlock;
    transform(rule, job.steps, job.n_blocks * kBlock, job.eta, steps);
  }
  for (int64_t b = 0; b < job.n_blocks; ++b)
    for (int i = 0; i < kBlock; i += kLanes) {
      const int64_t at = job.blocks[b] + i;
      const Vec w = load(job.w + at), mask = load(job.mask + at);
      Vec step = load(steps + b * kBlock + i);
      if (rule.kind == OnlineRule::kAdaptive) {
        Vec h = load(job.squares + at);
        step = adapted(step, w, job.share, job.eta, rule.epsilon, h);
        // The residual of an entry without a weight may differ from 0 (expected n-grams without a weight): the mask
        // keeps h and w at 0.
        store(job.squares + at, mask * h);
      } else if (rule.kind == OnlineRule::kPlain) {
        step *= job.eta;
      }
      store(job.w + at, job.decay * w + mask * step);
    }
}

// E = exp(tr - max tr) and its transpose, which the backward pass reads by rows.
inline void online_transitions(const OnlineTransitionJob& job) {
  const int Y = job.Y, YP = job.YP;
  // The padding of tr is not a score and must be excluded from the maximum.
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
  }
  for (int i0 = 0; i0 < YP; i0 += kLanes)
    for (int j0 = 0; j0 < YP; j0 += kLanes) {
      Vec x[kLanes];
      for (int k = 0; k < kLanes; ++k) x[k] = i0 + k < Y ? load(job.E + (i0 + k) * YP + j0) : Vec{};
      transpose(x);
      for (int k = 0; k < kLanes && j0 + k < Y; ++k) store(job.ET + (j0 + k) * YP + i0, x[k]);
    }
}

}  // namespace
