#include "online/steps.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/dispatch.hpp"
#include "online/kernels.hpp"
#include "online/loss.hpp"

namespace crfit {

namespace {

// Periodic steps apply one sequence after another on one thread. With fewer sequences than this, reading residuals
// written by another core costs more than computing them in parallel saves.
constexpr int64_t kManySequences = 16;
constexpr int64_t kTimed = 128;  // time the phases of one sequence every this many positions

}  // namespace

// kInverse, kExponential: as in other CRF tools. kBottou: eta0 / (1 + eta0 lambda k) with lambda = l2 / N; its sum
// diverges, the sum of its squares converges. kPower: the same to the power 0.75, for averaging, as in Bottou's
// crfasgd.
double Rate::at(int64_t k, int64_t N, double l2) const {
  const double epochs = static_cast<double>(k) / static_cast<double>(N);
  switch (schedule) {
    case kInverse: return eta0 / (1.0 + epochs);
    case kExponential: return eta0 * std::pow(alpha, epochs);
    case kBottou: return eta0 / (1.0 + eta0 * l2 * epochs);
    case kPower: return eta0 / std::pow(1.0 + eta0 * l2 * epochs, 0.75);
    default: return eta0;
  }
}

Online::Online(const DataView& data, const LayoutView& layout, const OnlineRule& rule, bool table, int64_t batch,
               int n_threads)
    : data_(data),
      n_threads_(n_threads),
      has_edges_(data.edge_ptr != nullptr && layout.n_edge_attributes > 0),
      weights_(layout, n_threads, batch >= kFewLanes ? PairOptions::kLanes : PairOptions::kOneSequence),
      rule_(rule) {
  const int64_t max_T = longest_sequence(data);
  for (int worker = 0; worker < n_threads; ++worker) {
    scratch_.emplace_back(weights_.shape.layout, max_T, has_edges_);
    if (weights_.shape.listed && !has_edges_) scratch_.back().add_lanes(layout, kFewLanes, max_T, false);
  }
  if (layout.state_ptr != nullptr) {
    tokens_.build(data, layout, weights_.shape.hot_row.data());
    weights_.view.tokens = &tokens_.index();
  }
  first_.resize(weights_.shape.YP);
  last_.resize(weights_.shape.YP);
  dense_steps_.resize(2 * std::max<int64_t>(weights_.shape.ngram_size, weights_.shape.YP));
  for (int64_t block = 0; block < weights_.shape.YP; block += 8) row_blocks_.push_back(block);
  if (rule_.kind != OnlineRule::kPlain) touches_ = std::make_unique<OnlineTouches>(data, weights_.shape);
  if (rule_.kind == OnlineRule::kAdaptive) squares_ = weights_.shape.zeros();
  if (rule_.kind == OnlineRule::kTransform && table) {
    // T at the points of [0, 1], from the kernel without a table; T is odd, and beyond 1 it is computed (Tabled).
    table_.resize(kTablePoints + 6);  // whole vectors
    Buffer<double> points;
    points.resize(table_.size());
    for (int64_t i = 0; i < points.size(); ++i) points[i] = static_cast<double>(i) / kTableIntervals;
    at_level<OnlineKernels>().transform(rule_, points.data(), points.size(), 1.0, table_.data());
    rule_.table = table_.data();
  }
}

// The delegated constructor sees only the kind kPeriodic. Periods need touches_ by single sequences, because a period
// is planned from the sequences ahead (look_ahead).
Online::Online(const DataView& data, const LayoutView& layout, const PeriodRule& periods, std::vector<int32_t> groups,
               int64_t n_groups, int n_threads)
    : Online(data, layout, OnlineRule{.kind = OnlineRule::kPeriodic}, false, 1, n_threads) {
  touches_->index_sequences();
  periods_ =
      std::make_unique<OnlinePeriods>(weights_, *touches_, data.n_sequences, periods, std::move(groups), n_groups);
}

void Online::set(const double* w) {
  int64_t last = now();
  weights_.set(w);
  if (periods_ != nullptr) periods_->forget();
  if (rule_.kind == OnlineRule::kAdaptive) squares_ = weights_.shape.zeros();
  seconds_.scores += lap(last);
}

double Online::get(double* out) {
  int64_t last = now();
  if (periods_ != nullptr) periods_->catch_up();
  const double square = weights_.get(out);
  seconds_.gather += lap(last);
  return square;
}

void Online::get_sum(double* out) {
  int64_t last = now();
  weights_.get_sum(out);
  seconds_.gather += lap(last);
}

double Online::visit(const int64_t* sequences, int64_t n, int64_t batch, const Rate& rate, double l2, int64_t k) {
  int64_t last = now(), left = 0;
  batch = std::min(batch, n);
  // A power of two, and more parts than threads, so a late helper does not delay the others. Periodic steps apply one
  // sequence after another: only their residuals are computed in parallel.
  const bool side_by_side = batch >= (periods_ == nullptr ? 2 : kManySequences) && n_threads_ > 1;
  const int n_parts = side_by_side && periods_ == nullptr ? static_cast<int>(std::bit_ceil(2u * n_threads_)) : 0;
  make_room(sequences, n, batch, n_parts);
  PhaseSeconds busy;
  double total = 0.0;
  Team team;
  team.lead(side_by_side ? n_threads_ : 1, [&] {
    for (int64_t begin = 0; begin < n && std::isfinite(total); begin += batch) {
      Step step;
      step.size = std::min(batch, n - begin);
      step.n_parts = n_parts;
      // The index of tokens sorts the rows of a position by kind, so its sums have another order than those of larger
      // steps: this depends on the batch size, never on threads.
      step.by_token = batch == 1 && weights_.view.tokens != nullptr;
      step.eta = rate.at(k + begin, data_.n_sequences, l2);
      step.l2 = l2;
      step.share = l2 * static_cast<double>(step.size) / static_cast<double>(data_.n_sequences);
      const bool decays = rule_.kind == OnlineRule::kPlain || rule_.kind == OnlineRule::kTransform;
      step.decay = decays ? 1.0 - step.eta * step.share : 1.0;
      // w_new = z (scale rows) - eta u = (z scale) (rows - eta / (z scale) u): u is computed at the old weights but
      // added to rows with the new scale.
      step.gain = step.eta / (weights_.scale * step.decay);
      // In parallel loops each worker prefetches the sequence of its own next task.
      step.next_sequence = !side_by_side && begin + step.size < n ? sequences[begin + step.size] : -1;
      const bool groups = in_groups(batch);
      step.n_positions = place_slots(sequences + begin, step.size, n_parts, groups);
      if (side_by_side || groups) sort_slots(step.size);
      if (batch == 1) prefetch_ids(sequences + begin, n - begin);
      // One sequence every kTimed positions is timed; wall time is split in the same proportions.
      const bool timed = left <= 0;
      if (timed) left = kTimed;
      left -= step.n_positions;
      if (periods_ != nullptr) {
        if (begin == 0 || periods_->begins()) periods_->look_ahead(sequences + begin, n - begin, batch);
        periods_->begin_step(step.eta, l2);
      }
      // All sequences of the step use the same weights: this loop reads rows and writes slots, the next one reads slots
      // and writes rows. Slots are handed out longest first but do not move, so the order of the sums below does not
      // depend on which worker solved them.
      if (groups)  // the sequences of a group share a table of n-grams
        for (int64_t i = 0; i < step.size; ++i)
          slots_[longest_first_[i]].pairs = pairs_.data() + i / kFewLanes * weights_.shape.ngram_size;
      step.n_tables = n_tables(step.size, batch);
      team.run(step.n_tables, [&](int64_t task, int worker) {
        if (groups) return solve_group(step, task * kFewLanes, worker, timed && task == 0 ? &busy : nullptr);
        const int64_t slot = side_by_side ? longest_first_[task] : task;
        const int64_t later = task + (side_by_side ? n_threads_ : 1);
        const int64_t next = later < step.size ? slots_[side_by_side ? longest_first_[later] : later].sequence : -1;
        solve(step, slot, next, worker, timed && task == 0 ? &busy : nullptr);
      });
      // S_{j-1} of weights.hpp: the sum of scales before shrink() adds the scale of this step.
      step.sum_factor = -weights_.scale_sum;
      weights_.shrink(step.decay);
      int64_t before = timed ? now() : 0;
      // Task 0: tables that every sequence touches; the others: parts of the attributes. No weight belongs to two
      // tasks, and each task processes the slots in order: identical bytes for any number of threads.
      team.run(1 + std::max(1, n_parts), [&](int64_t task, int) {
        const int part = static_cast<int>(task) - 1;
        if (periods_ != nullptr) return task == 0 ? update_periodic_dense(step) : update_periodic(step);
        if (task == 0) return update_dense(step);
        rule_.kind == OnlineRule::kPlain ? update(step, part) : update_by_rule(step, part);
      });
      if (periods_ != nullptr) periods_->end_step();
      if (timed) busy.gather += lap(before) / static_cast<double>(step.size);
      weights_.keep_range();
      // In the order of the slots, not in the order of solution.
      for (int64_t slot = 0; slot < step.size; ++slot) total += slots_[slot].loss;
    }
  });
  if (periods_ != nullptr && !std::isfinite(total)) periods_->forget();  // it may have ended within a period
  add_in_proportion(lap(last), busy, seconds_);
  return total;
}

// Temporaries for the largest step of a visit.
void Online::make_room(const int64_t* sequences, int64_t n, int64_t batch, int n_parts) {
  const RowLayout& shape = weights_.shape;
  const int64_t YP = shape.YP, pair_size = shape.layout.n_labels * YP;
  int64_t most_positions = 0, most_occurrences = 0;
  for (int64_t begin = 0; begin < n; begin += batch) {
    int64_t positions = 0, occurrences = 0;
    for (int64_t i = begin; i < std::min(n, begin + batch); ++i) {
      const int64_t first = data_.seq_ptr[sequences[i]], last = data_.seq_ptr[sequences[i] + 1];
      positions += last - first;
      occurrences += data_.attr_ptr[last] - data_.attr_ptr[first];
    }
    most_positions = std::max(most_positions, positions);
    most_occurrences = std::max(most_occurrences, occurrences);
  }
  const auto grow = [](auto& items, int64_t count) {
    if (static_cast<int64_t>(items.size()) < count) items.resize(static_cast<std::size_t>(count));
  };
  grow(residual_, most_positions * YP);
  if (rule_.kind == OnlineRule::kTransform) grow(transformed_, most_positions * YP);
  if (has_edges_) grow(pair_residual_, most_positions * pair_size);
  const int64_t n_pairs = n_tables(batch, batch) * shape.ngram_size;
  if (pairs_.size() < n_pairs) pairs_ = zero_buffer(n_pairs);  // padding stays 0
  grow(touched_, most_occurrences * n_parts);
  grow(n_touched_, batch * n_parts);
  grow(slots_, batch);
  grow(sums_, std::max(1, n_parts));
  if (touches_ != nullptr) touches_->make_parts(std::max(1, n_parts));
  if (touches_ != nullptr && n_parts == 0) touches_->index_sequences();
}

// Steps on single sequences are limited by memory access: ids, then the rows they name. In random order nothing is in
// the cache, so prefetching runs three sequences ahead: offsets of the third, ids of the second, and rows of the next
// sequence (RowsAhead).
void Online::prefetch_ids(const int64_t* sequences, int64_t n) const {
  const TokenIndex* tokens = weights_.view.tokens;
  const int64_t* ptr = tokens == nullptr ? data_.attr_ptr : tokens->dense_ptr;
  if (n > 3)
    for (const int64_t position : {data_.seq_ptr[sequences[3]], data_.seq_ptr[sequences[3] + 1]}) {
      __builtin_prefetch(ptr + position);
      if (tokens != nullptr) __builtin_prefetch(tokens->sparse_ptr + position);
    }
  if (n <= 2) return;
  const int64_t begin = data_.seq_ptr[sequences[2]], end = data_.seq_ptr[sequences[2] + 1];
  const auto fetch = [](const auto* first, const auto* last) {
    for (const auto* at = first; at < last; at += 64 / sizeof *at) __builtin_prefetch(at);
  };
  const int32_t* ids = tokens == nullptr ? data_.attr_ids : tokens->dense_rows;
  fetch(ptr + begin, ptr + end);
  fetch(ids + ptr[begin], ids + ptr[end]);
  if (tokens != nullptr) {
    const int64_t first = tokens->sparse_ptr[begin], last = tokens->sparse_ptr[end];
    fetch(tokens->sparse_ptr + begin, tokens->sparse_ptr + end);
    fetch(tokens->sparse_weights + first, tokens->sparse_weights + last);
    fetch(tokens->sparse_labels + first, tokens->sparse_labels + last);
  }
  if (touches_ != nullptr && periods_ == nullptr) touches_->prefetch(sequences[2]);
}

// Assigns temporaries to the sequences of a step; returns their number of positions.
int64_t Online::place_slots(const int64_t* sequences, int64_t n, int n_parts, bool groups) {
  const RowLayout& shape = weights_.shape;
  const int64_t YP = shape.YP, pair_size = shape.layout.n_labels * YP;
  int64_t positions = 0, occurrences = 0;
  for (int64_t i = 0; i < n; ++i) {
    OnlineSlot& slot = slots_[i];
    const int64_t first = data_.seq_ptr[sequences[i]], last = data_.seq_ptr[sequences[i] + 1];
    slot.sequence = sequences[i];
    slot.residual = residual_.data() + positions * YP;
    slot.transformed = rule_.kind == OnlineRule::kTransform ? transformed_.data() + positions * YP : nullptr;
    slot.pair_residual = has_edges_ ? pair_residual_.data() + positions * pair_size : nullptr;
    if (!groups) slot.pairs = pairs_.data() + i * shape.ngram_size;
    // Space for all occurrences in each part: their distribution is unknown, and counting first would read the ids
    // twice.
    slot.touched = touched_.data() + occurrences * n_parts;
    slot.n_touched = n_touched_.data() + i * n_parts;
    positions += last - first;
    occurrences += data_.attr_ptr[last] - data_.attr_ptr[first];
  }
  return positions;
}

// Longest first: short sequences fill the gaps at the end of the loop.
void Online::sort_slots(int64_t n) {
  longest_first_.resize(static_cast<std::size_t>(n));
  std::iota(longest_first_.begin(), longest_first_.end(), 0);
  std::sort(longest_first_.begin(), longest_first_.end(), [&](int64_t a, int64_t b) {
    const int64_t *p = data_.seq_ptr + slots_[a].sequence, *q = data_.seq_ptr + slots_[b].sequence;
    return p[1] - p[0] > q[1] - q[0];
  });
}

// Steps of several sequences solve them side by side where pairs are listed: a group takes little longer than a single
// one. With dense tables several threads gain more: a group takes 1.4 to 1.7 times less processor time from 120 labels
// on, but a step has an eighth of the tasks. The periodic rule needs the pairs of each sequence.
bool Online::in_groups(int64_t batch) const {
  return weights_.shape.listed && !has_edges_ && periods_ == nullptr && batch >= kFewLanes;
}

// Tables of n-gram residuals for `size` sequences in steps of `batch`: one per group or sequence.
int64_t Online::n_tables(int64_t size, int64_t batch) const {
  return in_groups(batch) ? (size + kFewLanes - 1) / kFewLanes : size;
}

void Online::solve_group(const Step& step, int64_t first, int worker, PhaseSeconds* busy) {
  OnlineSlot* slots[kFewLanes];
  OnlineGroupJob job;
  job.n_slots = static_cast<int>(std::min<int64_t>(kFewLanes, step.size - first));
  for (int k = 0; k < job.n_slots; ++k) slots[k] = &slots_[longest_first_[first + k]];
  job.slots = slots;
  job.each = solve_job(step, -1, worker, busy);
  int64_t last = now();
  const double before = busy != nullptr ? busy->scores : 0.0;
  at_level<OnlineKernels>().solve_group(job);
  if (busy != nullptr) busy->lattice += lap(last) - (busy->scores - before);
}

OnlineSolveJob Online::solve_job(const Step& step, int64_t next_sequence, int worker, PhaseSeconds* busy) {
  OnlineSolveJob job;
  job.data = &data_;
  job.weights = &weights_.view;
  job.scratch = &scratch_[worker].view;
  job.rule = &rule_;
  job.gain = step.gain;
  job.n_parts = step.n_parts;
  job.next_sequence = next_sequence;
  job.busy = busy;
  return job;
}

void Online::solve(const Step& step, int64_t slot, int64_t next_sequence, int worker, PhaseSeconds* busy) {
  OnlineSolveJob job = solve_job(step, next_sequence, worker, busy);
  job.slot = &slots_[slot];
  at_level<OnlineKernels>().solve(job);
}

OnlineRows Online::rows(const Step& step) {
  OnlineRows rows = rows_of(weights_.shape, weights_.current);
  rows.sum = weights_.summing ? weights_.sum.rows.data() : nullptr;
  rows.sum_factor = step.sum_factor;
  return rows;
}

// Attributes, or one part of them, by the plain rule.
void Online::update(const Step& step, int part) {
  OnlineUpdateJob job;
  job.data = &data_;
  job.layout = &weights_.shape.layout;
  job.weights = &weights_.view;
  job.by_token = step.by_token;
  job.YP = weights_.shape.YP;
  job.slots = slots_.data();
  job.n_slots = step.size;
  job.part = part;
  job.n_parts = step.n_parts;
  job.gain = step.gain;
  job.to = rows(step);
  job.next_sequence = step.next_sequence;
  at_level<OnlineKernels>().update(job);
}

// The same for a rule that needs each weight's whole residual.
void Online::update_by_rule(const Step& step, int part) {
  const bool one_sequence = step.size == 1 && step.n_parts == 0;
  const StepTouches touches = one_sequence
                                  ? touches_->of_sequence(slots_[0].sequence)
                                  : touches_->of_part(part, step.n_parts, slots_.data(), step.size, residual_.data());
  // The sums, then the same space for T of them. Each part has its own, so parts share no output.
  if (sums_[part].size() < 2 * touches.room) sums_[part].resize(2 * touches.room);
  OnlineRuleJob job = rule_job(step);
  job.rule = &rule_;
  job.dense = touches.dense;
  job.sparse = touches.sparse;
  job.edges = touches.edges;
  job.residual = residual_.data();
  job.transformed = transformed_.data();
  // With parts, the tasks that solved the residual rows also transformed them; without, one task does all here.
  job.n_rows = step.n_parts == 0 && rule_.kind == OnlineRule::kTransform ? step.n_positions : 0;
  job.pair_residual = pair_residual_.data();
  job.sums = sums_[part].data();
  job.sums_room = touches.room;
  job.dense_counts = touches_->dense_counts().data();
  job.sparse_counts = touches_->sparse_counts().data();
  job.edge_counts = touches_->edge_counts().data();
  job.squares = squares_.rows.data();
  job.next_sequence = step.next_sequence;
  at_level<OnlineKernels>().update_by_rule(job);
}

// The job fields shared by all sequences and parts of a step.
OnlineRuleJob Online::rule_job(const Step& step) {
  OnlineRuleJob job;
  job.layout = &weights_.shape.layout;
  job.YP = weights_.shape.YP;
  job.gain = step.gain;
  job.l2 = step.l2;
  job.to = rows(step);
  job.data = &data_;
  job.weights = &weights_.view;
  return job;
}

// Attributes with periodic step sizes.
void Online::update_periodic(const Step& step) {
  OnlineRuleJob job = rule_job(step);
  for (int64_t i = 0; i < step.size; ++i) {
    job.residual = slots_[i].residual;
    job.pair_residual = slots_[i].pair_residual;
    const bool last = i + 1 == step.size;
    job.next_sequence = last ? step.next_sequence : -1;  // the rows of the others are already in the cache
    // One sequence after another: each updates the weights left by the previous ones, with residuals at the weights
    // before the step.
    periods_->update(slots_[i].sequence, last ? step.next_sequence : slots_[i + 1].sequence, job);
  }
}

// Residuals of the n-grams of all sequences of a step, in the first table.
void Online::sum_pairs(const Step& step) {
  const RowLayout& shape = weights_.shape;
  // [ngram_size], concatenated tables of all n-gram lengths; in the order of the slots or groups.
  double* total = pairs_.data();
  for (int64_t k = 1; k < step.n_tables; ++k) {
    const double* table = total + k * shape.ngram_size;
    for (int64_t i = 0; i < shape.ngram_size; ++i) total[i] += table[i];
  }
  // Longer n-grams also count for the shorter ones that they end with.
  if (shape.layout.order > 1) add_longer_ngrams(shape.layout, total);
}

void Online::sum_boundary(const Step& step) {
  const RowLayout& shape = weights_.shape;
  first_.fill(0.0);
  last_.fill(0.0);
  for (int64_t i = 0; i < step.size; ++i) {
    const OnlineSlot& slot = slots_[i];
    const int64_t T = data_.seq_ptr[slot.sequence + 1] - data_.seq_ptr[slot.sequence];
    for (int j = 0; j < shape.YP; ++j) first_[j] += slot.residual[j];
    for (int j = 0; j < shape.YP; ++j) last_[j] += slot.residual[(T - 1) * shape.YP + j];
  }
}

// Transitions and boundary weights with periodic step sizes.
void Online::update_periodic_dense(const Step& step) {
  const RowLayout& shape = weights_.shape;
  const bool transitions = shape.layout.start_offset > shape.layout.transition_offset;
  for (int64_t i = 0; i < step.size; ++i) {
    const OnlineSlot& slot = slots_[i];
    if (transitions) {
      // A lattice returns the longest n-grams at each position; shorter n-grams get the sums over those that end with
      // them.
      if (shape.layout.order > 1) add_longer_ngrams(shape.layout, slot.pairs);
      periods_->update_table(PeriodTables::kTransitions, slot.pairs);
    }
    if (shape.layout.boundary) {
      const int64_t T = data_.seq_ptr[slot.sequence + 1] - data_.seq_ptr[slot.sequence];
      periods_->update_table(PeriodTables::kStart, slot.residual);
      periods_->update_table(PeriodTables::kEnd, slot.residual + (T - 1) * shape.YP);
    }
  }
  if (transitions) weights_.show_transitions();
  if (weights_.summing) weights_.add_transitions_to_sum();
}

// Transitions and boundary weights.
void Online::update_dense(const Step& step) {
  const RowLayout& shape = weights_.shape;
  OnlineDenseJob job;
  job.rule = &rule_;
  job.steps = dense_steps_.data();
  job.decay = step.decay;
  job.eta = step.eta;
  job.share = step.share;
  if (shape.layout.start_offset > shape.layout.transition_offset) {
    sum_pairs(step);
    job.blocks = weights_.blocks.data();
    job.n_blocks = static_cast<int64_t>(weights_.blocks.size());
    job.sums = pairs_.data();
    job.mask = weights_.mask.data();
    job.w = weights_.current.tr.data();
    job.squares = squares_.tr.data();
    at_level<OnlineKernels>().dense(job);
    weights_.show_transitions();
  }
  if (shape.layout.boundary) {
    sum_boundary(step);
    job.blocks = row_blocks_.data();
    job.n_blocks = static_cast<int64_t>(row_blocks_.size());
    job.mask = weights_.boundary_mask.data();
    for (auto [sums, w, squares] : {std::tuple{&first_, &weights_.current.start, &squares_.start},
                                    std::tuple{&last_, &weights_.current.end, &squares_.end}}) {
      job.sums = sums->data();
      job.w = w->data();
      job.squares = squares->data();
      at_level<OnlineKernels>().dense(job);
    }
  }
  if (weights_.summing) weights_.add_transitions_to_sum();
}

double Online::loss(const int64_t* sequences, int64_t n) {
  int64_t last = now();
  if (periods_ != nullptr) periods_->catch_up();
  const double total = online_loss(data_, weights_.view, scratch_, sequences, n, n_threads_);
  seconds_.lattice += lap(last);
  return total;
}

}  // namespace crfit
