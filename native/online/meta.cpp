#include "online/meta.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/dispatch.hpp"
#include "online/kernels.hpp"
#include "online/loss.hpp"

namespace crfit {

OnlineMeta::OnlineMeta(const DataView& data, const LayoutView& layout, double meta_rate, double memory, int n_threads)
    : data_(data),
      n_threads_(n_threads),
      has_edges_(data.edge_ptr != nullptr && layout.n_edge_attributes > 0),
      weights_(layout, n_threads, PairOptions::kOneSequence),
      direction_(layout, n_threads, PairOptions::kOneSequence),
      gains_(weights_.shape.zeros()),
      meta_rate_(meta_rate),
      memory_(memory),
      touches_(data, weights_.shape) {
  const RowLayout& shape = weights_.shape;
  const int64_t max_T = longest_sequence(data);
  for (int worker = 0; worker < n_threads; ++worker) {
    scratch_.emplace_back(shape.layout, max_T, has_edges_);
    scratch_.back().add_tangent();
  }
  if (layout.state_ptr != nullptr) {
    tokens_.build(data, layout, shape.hot_row.data());
    weights_.view.tokens = direction_.view.tokens = &tokens_.index();
  }
  // [units] the step since which a unit's w and v are out of date
  ready_.dense.resize(touches_.dense_counts().size());
  ready_.sparse.resize(touches_.sparse_counts().size());
  ready_.edges.resize(touches_.edge_counts().size());
  // E * R for the direction v, and the longest table with first and last label exchanged, as the tangent of the lattice
  // needs them; computed in each step.
  ER_.resize(shape.ngram_size);
  ERT_.resize(shape.listed ? shape.ngram_size : n_histories(layout.n_labels, layout.order) * shape.YP);
  // With listed pairs the two tables are in the order of the labels after and before (SparsePairs).
  tangent_ = {&direction_.view, ER_.data(), ERT_.data(), false, ERT_.data(), ER_.data()};
  boundary_.resize(4 * shape.YP);
}

void OnlineMeta::set(const double* w) {
  int64_t last = now();
  weights_.set(w);
  for (Buffer<double>* part :
       {&direction_.current.rows, &direction_.current.tr, &direction_.current.start, &direction_.current.end})
    part->fill(0.0);
  for (Buffer<double>* part : {&gains_.rows, &gains_.tr, &gains_.start, &gains_.end}) part->fill(1.0);
  direction_.show_transitions();
  summing_ = false;
  sum_ = {};
  seconds_.scores += lap(last);
}

double OnlineMeta::get(double* out) {
  int64_t last = now();
  const double square = weights_.get(out);
  seconds_.gather += lap(last);
  return square;
}

void OnlineMeta::begin_sum(const double* total) {
  sum_ = weights_.shape.zeros();
  summing_ = true;
  if (total != nullptr) weights_.shape.load(total, sum_);
}

void OnlineMeta::get_sum(double* out) {
  int64_t last = now();
  weights_.shape.save(sum_, 1.0, out);
  seconds_.gather += lap(last);
}

void OnlineMeta::set_state(const double* gains, const double* v) {
  weights_.shape.load(gains, gains_);
  weights_.shape.load(v, direction_.current);
  direction_.show_transitions();
}

void OnlineMeta::get_state(double* gains, double* v) {
  weights_.shape.save(gains_, 1.0, gains);
  weights_.shape.save(direction_.current, 1.0, v);
}

double OnlineMeta::visit(const int64_t* sequences, int64_t n, int64_t batch, double eta0, double l2) {
  batch = std::min(batch, n);
  // A power of two, and more parts than threads, so a late helper does not delay the others.
  const int n_parts = batch > 1 && n_threads_ > 1 ? static_cast<int>(std::bit_ceil(2u * n_threads_)) : 0;
  make_room(sequences, n, batch);
  touched_.resize(static_cast<std::size_t>(std::max(1, n_parts)));
  sums_.resize(touched_.size());
  touches_.make_parts(static_cast<int>(touched_.size()));
  eta0_ = eta0;
  double total = 0.0;
  Team team;
  team.lead(n_parts > 0 ? n_threads_ : 1, [&] {
    for (int64_t begin = 0; begin < n && std::isfinite(total); begin += batch) {
      int64_t last = now();
      const int64_t size = std::min(batch, n - begin), n_tasks = static_cast<int64_t>(touched_.size());
      const double share = l2 * static_cast<double>(size) / static_cast<double>(data_.n_sequences);
      // Missed steps must have the same share: before a step of another size (the last of an epoch) all weights are
      // brought up to date.
      if (share != share_) make_all_ready(team);
      share_ = share;
      //  ready   w and v of what the step touches, before the lattices read them; E * R meanwhile
      //  solve   slots = residuals and their derivatives, all sequences at the same w and v
      //  update  gains, w, v; each weight by one task, in the order of the slots
      place_slots(sequences + begin, size);
      team.run(1 + n_tasks, [&](int64_t task, int) {
        task == 0 ? show_direction() : make_ready(static_cast<int>(task) - 1, n_parts);
      });
      seconds_.scores += lap(last);
      team.run(size, [&](int64_t slot, int worker) { solve(slot, worker); });
      seconds_.lattice += lap(last);
      team.run(1 + n_tasks,
               [&](int64_t task, int) { task == 0 ? update_dense() : update(static_cast<int>(task) - 1); });
      ++step_;
      // In the order of the slots: identical bytes for any number of threads.
      for (const OnlineSlot& slot : slots_) total += slot.loss;
      seconds_.gather += lap(last);
    }
    int64_t last = now();
    make_all_ready(team);
    seconds_.gather += lap(last);
  });
  return total;
}

double OnlineMeta::loss(const int64_t* sequences, int64_t n) {
  int64_t last = now();
  const double total = online_loss(data_, weights_.view, scratch_, sequences, n, n_threads_);
  seconds_.lattice += lap(last);
  return total;
}

// Temporaries for the largest step of a visit.
void OnlineMeta::make_room(const int64_t* sequences, int64_t n, int64_t batch) {
  const RowLayout& shape = weights_.shape;
  // positions of the largest step
  int64_t most = 0;
  for (int64_t begin = 0; begin < n; begin += batch) {
    int64_t positions = 0;
    for (int64_t i = begin; i < std::min(n, begin + batch); ++i)
      positions += data_.seq_ptr[sequences[i] + 1] - data_.seq_ptr[sequences[i]];
    most = std::max(most, positions);
  }
  const auto grow = [](Buffer<double>& buffer, int64_t count) {
    if (buffer.size() < count) buffer.resize(count);
  };
  for (Buffer<double>* rows : {&residual_, &rows_}) grow(*rows, most * shape.YP);
  if (has_edges_)
    for (Buffer<double>* pairs : {&pair_residual_, &pairs_}) grow(*pairs, most * shape.layout.n_labels * shape.YP);
  for (Buffer<double>* ngrams : {&expected_, &ngrams_})
    if (ngrams->size() < batch * shape.ngram_size) *ngrams = zero_buffer(batch * shape.ngram_size);  // padding stays 0
}

// Assigns temporaries to the sequences of a step.
void OnlineMeta::place_slots(const int64_t* sequences, int64_t n) {
  const RowLayout& shape = weights_.shape;
  int64_t positions = 0;
  slots_.resize(static_cast<std::size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    OnlineSlot& slot = slots_[i];
    slot.sequence = sequences[i];
    slot.residual = residual_.data() + positions * shape.YP;
    slot.pair_residual = has_edges_ ? pair_residual_.data() + positions * shape.layout.n_labels * shape.YP : nullptr;
    slot.pairs = expected_.data() + i * shape.ngram_size;
    positions += data_.seq_ptr[sequences[i] + 1] - data_.seq_ptr[sequences[i]];
  }
}

MetaWeights OnlineMeta::attributes() {
  const RowLayout& shape = weights_.shape;
  MetaWeights to;
  to.layout = &shape.layout;
  to.YP = shape.YP;
  to.w = rows_of(shape, weights_.current);
  if (summing_) to.w.sum = sum_.rows.data();
  to.v = direction_.current.rows.data();
  to.gains = gains_.rows.data();
  to.dense = ready_.dense.data();
  to.sparse = ready_.sparse.data();
  to.edges = ready_.edges.data();
  to.meta_rate = meta_rate_;
  to.memory = memory_;
  to.eta0 = eta0_;
  to.share = share_;
  to.free_row = shape.free_row;
  to.free_weight = shape.free_weight;
  return to;
}

// Brings up to date what the step touches in one part of the attributes.
void OnlineMeta::make_ready(int part, int n_parts) {
  StepTouches& touches = touched_[part];
  touches = touches_.of_part(part, n_parts, slots_.data(), static_cast<int64_t>(slots_.size()), residual_.data());
  at_level<OnlineKernels>().meta_ready({attributes(), touches.dense, touches.sparse, touches.edges, step_});
}

void OnlineMeta::make_all_ready(Team& team) {
  constexpr int64_t kBlock = 4096;  // units of one task
  if (step_ == 0) return;
  for (auto [units, of_kind] :
       {std::pair{&ready_.dense, &MetaReadyJob::dense}, std::pair{&ready_.sparse, &MetaReadyJob::sparse},
        std::pair{&ready_.edges, &MetaReadyJob::edges}}) {
    const auto kind = of_kind;  // Clang before version 16 captures no structured bindings
    const int64_t n = static_cast<int64_t>(units->size());
    team.run((n + kBlock - 1) / kBlock, [&](int64_t task, int) {
      // The kernel takes units as the groups of a step: here all units of a block.
      std::vector<int32_t> all(static_cast<std::size_t>(std::min(kBlock, n - task * kBlock)));
      std::iota(all.begin(), all.end(), static_cast<int32_t>(task * kBlock));
      MetaReadyJob job;
      job.to = attributes();
      job.step = step_;
      (job.*kind).group = all.data();
      (job.*kind).n_groups = static_cast<int64_t>(all.size());
      at_level<OnlineKernels>().meta_ready(job);
    });
    std::fill(units->begin(), units->end(), 0);
  }
  step_ = 0;
}

// E * R and its exchanged form, for the lattices.
void OnlineMeta::show_direction() {
  const Prepared &point = weights_.view, &step = direction_.view;
  for (int64_t i = 0; i < point.n_ngrams; ++i) ER_[i] = point.ngram_E[i] * step.ngram_tr[i];
  if (point.sparse != nullptr) {
    for (int64_t i = 0; i < point.n_ngrams; ++i) ERT_[i] = ER_[point.sparse->before_place[i]];
    return;
  }
  exchange_labels(weights_.shape.layout, ER_.data() + (ER_.size() - ERT_.size()), ERT_.data());
}

void OnlineMeta::solve(int64_t slot, int worker) {
  const int64_t row = slots_[slot].residual - residual_.data();
  MetaSolveJob job;
  job.data = &data_;
  job.weights = &weights_.view;
  job.tangent = &tangent_;
  job.scratch = &scratch_[worker].view;
  job.slot = &slots_[slot];
  job.rows = rows_.data() + row;
  job.pairs = has_edges_ ? pairs_.data() + row * weights_.shape.layout.n_labels : nullptr;
  job.ngrams = ngrams_.data() + slot * weights_.shape.ngram_size;
  at_level<OnlineKernels>().meta_solve(job);
}

void OnlineMeta::update(int part) {
  const StepTouches& touches = touched_[part];
  if (sums_[part].size() < 2 * touches.room) sums_[part].resize(2 * touches.room);
  MetaUpdateJob job;
  job.to = attributes();
  job.dense = touches.dense;
  job.sparse = touches.sparse;
  job.edges = touches.edges;
  job.residual = residual_.data();
  job.tangent = rows_.data();
  job.pair_residual = pair_residual_.data();
  job.pair_tangent = pairs_.data();
  job.sums = sums_[part].data();
  // Residual sums and derivative sums of a unit have the same number, in two halves of the part's room.
  job.tangent_sums = job.sums + touches.room;
  at_level<OnlineKernels>().meta_update(job);
}

// Transitions and boundary weights.
void OnlineMeta::update_dense() {
  const RowLayout& shape = weights_.shape;
  MetaDenseJob job;
  job.meta_rate = meta_rate_;
  job.memory = memory_;
  job.eta0 = eta0_;
  job.share = share_;
  if (shape.layout.start_offset > shape.layout.transition_offset) {
    // Into the first slot's table, in the order of the slots: [slots][ngram_size].
    for (double* total : {expected_.data(), ngrams_.data()}) {
      for (std::size_t slot = 1; slot < slots_.size(); ++slot)
        for (int64_t i = 0; i < shape.ngram_size; ++i) total[i] += total[slot * shape.ngram_size + i];
      // Longer n-grams also count for the shorter ones that they end with.
      if (shape.layout.order > 1) add_longer_ngrams(shape.layout, total);
    }
    job.n = shape.ngram_size;
    job.residual = expected_.data();
    job.tangent = ngrams_.data();
    job.mask = weights_.mask.data();
    job.w = weights_.current.tr.data();
    job.v = direction_.current.tr.data();
    job.gains = gains_.tr.data();
    at_level<OnlineKernels>().meta_dense(job);
    weights_.show_transitions();
    direction_.show_transitions();
  }
  if (shape.layout.boundary) {
    boundary_.fill(0.0);
    // [4][YP]: residuals at first and last positions, then derivatives at first and last positions
    double* first = boundary_.data();
    for (const OnlineSlot& slot : slots_) {
      const int64_t T = data_.seq_ptr[slot.sequence + 1] - data_.seq_ptr[slot.sequence];
      const double* rows = rows_.data() + (slot.residual - residual_.data());
      double* to = first;
      for (const double* from : {static_cast<const double*>(slot.residual), rows})
        for (const int64_t t : {int64_t{0}, T - 1}) {
          for (int j = 0; j < shape.YP; ++j) to[j] += from[t * shape.YP + j];
          to += shape.YP;
        }
    }
    job.n = shape.YP;
    job.mask = weights_.boundary_mask.data();
    for (auto part : {&WeightRows::start, &WeightRows::end}) {
      job.residual = first;
      job.tangent = first + 2 * shape.YP;
      job.w = (weights_.current.*part).data();
      job.v = (direction_.current.*part).data();
      job.gains = (gains_.*part).data();
      at_level<OnlineKernels>().meta_dense(job);
      first += shape.YP;
    }
  }
  // Attributes are added to the sum when touched, and for missed steps when brought up to date (power).
  if (!summing_) return;
  for (int64_t i = 0; i < shape.ngram_size; ++i) sum_.tr[i] += weights_.current.tr[i];
  for (int j = 0; j < shape.YP; ++j) sum_.start[j] += weights_.current.start[j];
  for (int j = 0; j < shape.YP; ++j) sum_.end[j] += weights_.current.end[j];
}

}  // namespace crfit
