// Hessian-vector products, the approximate diagonal, and their cache at a point.
#include <algorithm>
#include <numeric>

#include "base/dispatch.hpp"
#include "base/pool.hpp"
#include "batch/batch.hpp"

namespace crfit {

namespace {
constexpr int64_t kKeptBytes = int64_t{4} << 30;  // default limit: order 2 and more has large tables
}

// Longest sequences first: each cached number saves the same work, and long sequences need the fewest blocks.
void Batch::keep_curvature(bool pairs, bool floats, int64_t max_sequences, int64_t max_bytes, bool at_gradients,
                           bool propagate) {
  pairs = pairs || one_position_;  // a single position has only p
  keeps_ = at_gradients;
  propagate_ = propagate;
  pinned_ = false;
  const std::size_t n = static_cast<std::size_t>(data_.n_sequences);
  const auto length = [&](int64_t i) { return data_.seq_ptr[i + 1] - data_.seq_ptr[i]; };
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  const int64_t Y = layout_.n_labels;
  if (max_sequences < data_.n_sequences || max_bytes < 8 * kept_size(pairs, data_.n_positions, Y, layout_.order))
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });
  kept_offset_.assign(n, -1);
  kept_filled_.assign(n, 0);
  kept_size_ = 0;
  if (propagate) max_sequences = 0;
  floats = floats && side_by_side() && !pairs;
  if (side_by_side() && !pairs) {
    keep_groups(floats, max_sequences, max_bytes);
  } else {
    for (int64_t k = 0; k < std::min(max_sequences, data_.n_sequences); ++k) {
      const int64_t size = kept_size(pairs, length(order[k]), Y, layout_.order);
      if (8 * (kept_size_ + size) > max_bytes) continue;
      kept_offset_[order[k]] = kept_size_;
      kept_size_ += size;
    }
  }
  kept_values_.resize(0);
  kept_ = {pairs, floats, kept_offset_.data(), nullptr, kept_filled_.data()};
}

std::vector<Batch::Group> Batch::groups() const {
  const int64_t lanes = lanes_;
  std::vector<Group> found;
  for (const Round& round : rounds_)
    for (const Chunk& chunk : round.chunks)
      for (int64_t k = 0; k < chunk.count; k += lanes) {
        const int64_t i = order_[chunk.first + k];  // the longest
        found.push_back({i, std::min(lanes, chunk.count - k), data_.seq_ptr[i + 1] - data_.seq_ptr[i]});
      }
  return found;
}

int64_t Batch::group_size(const Group& group) const {
  return lane_block(group.T, layout_.n_labels, n_histories(layout_.n_labels, layout_.order), lanes_);
}

// Groups are cached as a whole, in the block of their first sequence, longest first.
void Batch::keep_groups(bool floats, int64_t max_sequences, int64_t max_bytes) {
  std::vector<Group> order = groups();
  std::stable_sort(order.begin(), order.end(), [](const Group& a, const Group& b) { return a.T > b.T; });
  for (const Group& group : order) {
    const int64_t size = floats ? group_size(group) / 2 : group_size(group);
    if (group.count > max_sequences || 8 * (kept_size_ + size) > max_bytes) continue;
    kept_offset_[group.first] = kept_size_;
    kept_size_ += size;
    max_sequences -= group.count;
  }
}

int64_t Batch::table_bytes() const {
  int64_t total = 0;
  if (side_by_side()) {
    for (const Group& group : groups()) total += group_size(group);
    return 8 * total;
  }
  for (int64_t i = 0; i < data_.n_sequences; ++i)
    total += kept_size(one_position_, data_.seq_ptr[i + 1] - data_.seq_ptr[i], layout_.n_labels, layout_.order);
  return 8 * total;
}

const Kept& Batch::make_room() {
  if (kept_values_.size() != kept_size_) {
    kept_values_.resize(kept_size_);
    kept_.values = kept_values_.data();
  }
  std::fill(kept_filled_.begin(), kept_filled_.end(), uint8_t{0});
  return kept_;
}

// The cache now belongs to w; pair_total_ holds the expected n-grams at w.
void Batch::pin(const double* w) {
  if (pinned_weights_ == nullptr) {
    pinned_weights_ = prepare(true);
    tangent_weights_ = prepare(false);
  }
  const Prepared& point = ready(*pinned_weights_, w);
  if ((point.sparse == nullptr || point.order > 1) && ER_.size() == 0 && !one_position_) {
    ER_.resize(point.ngram_size);
    ERT_.resize(n_histories(layout_.n_labels, layout_.order) * YP_);
  }
  expected_pairs_ = pair_total_;
  pinned_ = true;
}

// Positions of the largest chunk.
int64_t Batch::longest_chunk(const Round& round) const {
  int64_t longest = 0;
  for (const Chunk& chunk : round.chunks) longest = std::max(longest, chunk.count);
  return longest;
}

// The first product at a point without a cache: forward-backward of every sequence, without summing the residual rows.
void Batch::keep_now(const double* w) {
  if (kept_offset_.empty()) keep_curvature(false, false, data_.n_sequences, kKeptBytes, false, false);
  const Prepared& weights = ready(weights_, w);
  const Kept& kept = make_room();
  make_scratch();
  int64_t last = now();
  std::fill(pair_total_.begin(), pair_total_.end(), 0.0);
  for (const Round& round : rounds_) {
    const int64_t n_chunks = static_cast<int64_t>(round.chunks.size());
    std::vector<double> losses(static_cast<std::size_t>(n_chunks), 0.0);
    std::vector<PhaseSeconds> busy(losses.size());
    // Single positions write their rows always: each worker overwrites those of its last chunk.
    std::vector<Buffer<double>> rows(one_position_ ? scratch_.size() : 0);
    for (Buffer<double>& buffer : rows) buffer.resize(longest_chunk(round) * YP_);
    parallel_for(n_threads_, n_chunks, [&](int64_t k, int worker) {
      ChunkJob job = job_of(round.chunks[k], worker);
      job.weights = &weights;
      job.kept = &kept;
      job.loss = &losses[k];
      job.pair_sum = pair_sums_.data() + k * n_ngrams_;
      std::fill_n(job.pair_sum, n_ngrams_, 0.0);
      if (one_position_) job.residual = rows[worker].data();
      job.first_position = data_.seq_ptr[round.chunks[k].first];
      job.subtract_gold = false;
      job.busy = &busy[k];
      at_level<BatchKernels>().gradient(job);
    });
    add_loop(lap(last), busy);
    sum_ngrams(n_chunks);
  }
  pin(w);
}

void Batch::hessian_product(const double* w, const double* v, double l2, double* out) {
  if (!pinned_) keep_now(w);
  int64_t last = now();
  make_scratch();
  for (WorkerScratch& scratch : scratch_) {
    scratch.add_tangent();
    if (side_by_side()) scratch.add_lanes(layout_, lanes_, max_T_, true);
  }
  const Face* face = face_.active ? &face_ : nullptr;
  const Prepared& step = ready(face != nullptr ? *face->step : *tangent_weights_, v, face);
  Prepared point = pinned_weights_->view();
  if (face_.listed != nullptr) {
    face_.listed->set(w);
    face_.listed->show(point);
  }
  // d E = E * R along v, and with labels exchanged, as the backward pass reads it.
  if (point.sparse != nullptr) turned_.set(point, step);
  if (point.E != nullptr && !one_position_) {
    for (int64_t i = 0; i < point.ngram_size; ++i) ER_[i] = point.E[i] * step.tr[i];
    exchange_labels(layout_, ER_.data() + (ER_.size() - ERT_.size()), ERT_.data());
  }
  seconds_.scores += lap(last);
  const Tangent tangent{
      &step, ER_.data(), ERT_.data(), propagate_, turned_.before.data(), turned_.after.data(), turned_.base.data()};
  ChunkJob settings;
  settings.weights = &point;
  settings.tangent = &tangent;
  settings.kept = &kept_;
  double loss = 0.0, square = 0.0;
  walk(at_level<BatchKernels>().product, settings, v, l2, out, loss, square, face);
  // The part p R of d p(n-gram) needs only the sum of p over all chunks, which is known since the gradient.
  for (int64_t i = 0; i < n_ngrams_; ++i) pair_total_[i] += step.ngram_tr[i] * expected_pairs_[i];
  if (!one_position_) add_longer_ngrams(layout_, pair_total_.data());
  add_to_transitions(out);
}

namespace {

// Squares of the sums of values at the same place: the first entry gets the square, the others 0. same(k, first) is
// true if entry k is at the place of the earlier entry `first`; start(k) is where to search from. Empty if every square
// is 1.
template <class Start, class Same>
std::vector<double> squares(const std::vector<double>& values, int64_t n, Start start, Same same) {
  std::vector<double> sums(values);
  if (sums.empty()) sums.assign(static_cast<std::size_t>(n), 1.0);
  bool ones = values.empty();
  for (int64_t k = 0; k < n; ++k)
    for (int64_t first = start(k); first < k; ++first)
      if (same(k, first)) {
        // (a + b)^2, not a^2 + b^2: the first entry carries the sum.
        sums[first] += sums[k];
        sums[k] = 0.0;
        ones = false;
        break;
      }
  if (ones) return {};
  for (double& x : sums) x *= x;
  return sums;
}

}  // namespace

// An attribute that occurs twice at a position has the variance of the sum of its values.
void Batch::square_values() {
  if (squared_) return;
  squared_ = true;
  for (Round& round : rounds_) {
    const int64_t n_occurrences = static_cast<int64_t>(round.occ_at.size());
    int64_t entry = 0, run = 0;  // of occ_ptr; first occurrence in the same row
    round.occ_squares = squares(
        round.occ_values, n_occurrences,
        [&](int64_t k) {
          bool next = k == 0;
          for (; k >= round.occ_ptr[entry + 1]; ++entry) next = true;
          if (next || round.occ_at[k] != round.occ_at[run]) run = k;
          return run;
        },
        [](int64_t, int64_t) { return true; });
    int64_t row = 0;
    round.slot_squares = squares(
        round.slot_values, static_cast<int64_t>(round.slots.size()),
        [&](int64_t k) {
          while (k >= round.slot_ptr[row + 1]) ++row;
          return round.slot_ptr[row];
        },
        [&](int64_t k, int64_t first) { return round.slots[k] == round.slots[first]; });
  }
}

void Batch::hessian_diagonal(const double* w, double* out) {
  square_values();
  double loss = 0.0, square = 0.0;
  ChunkJob settings;
  settings.weights = &ready(weights_, w);
  walk(at_level<BatchKernels>().variance, settings, w, 0.0, out, loss, square);
  add_to_transitions(out);  // variances of shorter n-grams are not sums of those of longer ones
}

}  // namespace crfit
