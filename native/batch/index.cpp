// Plan of a dataset, computed once: chunks, rounds, and the order in which residual rows are summed.
#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "batch/batch.hpp"

namespace crfit {

namespace {

// With a weight for every pair, those that are 0 (l1) save work in values and gradients. Products need all of them,
// except on a face (face.cpp).
PairOptions pair_options(const LayoutView& layout, bool products) {
  return {PairOptions::kLanes, !products && layout.order == 1 && layout.ngrams[0].codes == nullptr};
}

constexpr int64_t kChunkTokens = 512;         // large enough to hide the scheduling, small enough to balance
constexpr int64_t kPairSumBytes = 256 << 20;  // all chunks' expected n-grams together
constexpr int64_t kMaxChunks = 512;
constexpr int64_t kGatherTasks = 256;
constexpr int64_t kLaneTableBytes = int64_t{1} << 30;  // of each table of a worker
constexpr int64_t kHistoryTableBytes = 128 << 20;      // the same with order 2 and more, where they grow quickly
constexpr int64_t kWindowGroups = 16;                  // groups of sequences in a window that is sorted by length
constexpr int64_t kFrequentBytes = 384 << 10;  // of one segment's sums, which should stay in the second-level cache
constexpr int64_t kFrequentCount = 64;         // minimum occurrences for summing position by position

}  // namespace

Batch::Batch(const DataView& data, const LayoutView& layout, const CoreOptions& options)
    : data_(data),
      sources_(data),
      layout_(layout),
      n_threads_(options.n_threads),
      round_bytes_(options.round_bytes),
      YP_(padded_labels(layout.n_labels)),
      log_domain_(options.log_domain),
      one_position_(one_position(data)),
      lanes_(layout.order == 1 ? kManyLanes : kFewLanes),
      n_ngrams_(one_position_ ? 0 : n_ngrams(layout)),
      weights_(layout, !one_position_, pair_options(layout, false), true) {
  has_edges_ = data_.edge_ptr != nullptr && layout_.n_edge_attributes > 0 && !one_position_;
  plan_rounds();
  if (rounds_.size() == 1) share_tokens(options.share_from);
  choose_frequent();
  for (Round& round : rounds_) index_round(round);
  if (layout_.state_ptr != nullptr) {
    tokens_.build(sources_, layout_, weights_.view().hot_row);
    weights_.use_index(&tokens_.index());
  }
  if (options.offsets != nullptr) {
    const int64_t Y = layout_.n_labels;
    offsets_.resize(data_.n_positions * YP_);
    offsets_.fill(0.0);
    for (int64_t t = 0; t < data_.n_positions; ++t) std::copy_n(options.offsets + t * Y, Y, &offsets_[t * YP_]);
    weights_.use_offsets(offsets_.data());
  }
  pair_sums_.resize(n_chunks_ * n_ngrams_);
  pair_total_.assign(static_cast<std::size_t>(n_ngrams_), 0.0);
  observed_pairs_.assign(static_cast<std::size_t>(n_ngrams_), 0.0);
  if (data_.labels != nullptr && !one_position_) count_observed();
}

// A second weight vector for the same scores: a point, with offsets and constraints, or a direction.
std::unique_ptr<PreparedWeights> Batch::prepare(bool is_point) const {
  auto prepared = std::make_unique<PreparedWeights>(layout_, !one_position_, pair_options(layout_, true), is_point);
  if (layout_.state_ptr != nullptr) prepared->use_index(&tokens_.index());
  if (is_point) prepared->use_offsets(offsets_.data());
  return prepared;
}

void Batch::share_tokens(double share_from) {
  const double N = static_cast<double>(data_.n_positions);
  if (static_cast<double>(data_.attr_ptr[data_.n_positions]) < share_from * N) return;
  auto shared = std::make_unique<SharedTokens>(data_);
  if (static_cast<double>(shared->n_saved()) < share_from * N) return;
  shared_ = std::move(shared);
  sources_ = shared_->distinct();
  rounds_.front().n_rows = sources_.n_positions;
}

void Batch::count_observed() {
  const int64_t Y = layout_.n_labels;
  for (int64_t i = 0; i < data_.n_sequences; ++i) {
    const double c = data_.weights == nullptr ? 1.0 : data_.weights[i];
    const int32_t* y = data_.labels + data_.seq_ptr[i];
    for (int64_t t = 1; t < data_.seq_ptr[i + 1] - data_.seq_ptr[i]; ++t) {
      const int m = static_cast<int>(std::min<int64_t>(t, layout_.order));
      // the longest n-gram at t, with min(t, order) previous labels
      const int64_t code = ngram_code(y + t, m, Y);
      const int64_t at = layout_.order == 1 ? find_ngram(layout_.ngrams[0], code)
                                            : table_offset(Y, YP_, m) + padded_pair(code, Y, YP_);
      if (at >= 0) observed_pairs_[at] += c;
    }
  }
}

// Whether sequences are solved in lanes. A very long one would take too much memory.
bool Batch::side_by_side() const {
  if (one_position_ || has_edges_ || log_domain_) return false;
  const int64_t n_states = n_histories(layout_.n_labels, layout_.order);
  return 8 * lanes_ * max_T_ * n_states <= (layout_.order == 1 ? kLaneTableBytes : kHistoryTableBytes);
}

// Chunks and rounds depend only on the dataset.
void Batch::plan_rounds() {
  const int64_t pair_size = static_cast<int64_t>(layout_.n_labels) * YP_;
  max_chunks_ = std::max<int64_t>(16, std::min(kMaxChunks, kPairSumBytes / (8 * std::max<int64_t>(1, n_ngrams_))));
  // Chunks are larger if their n-gram tables would take too much memory or there would be too many chunks.
  const int64_t chunk_tokens = std::max(kChunkTokens, data_.n_positions / max_chunks_ + 1);
  // Places in the rows are numbered by int32 in the index of occurrences.
  const int64_t row_bytes = 8 * (YP_ + (has_edges_ ? pair_size : 0));
  const int64_t round_rows =
      std::min<int64_t>(std::numeric_limits<int32_t>::max() / YP_, std::max<int64_t>(1, round_bytes_ / row_bytes));
  order_.resize(static_cast<std::size_t>(data_.n_sequences));
  std::iota(order_.begin(), order_.end(), 0);
  std::vector<int64_t> first;  // sequence of each round
  for (int64_t i = 0; i < data_.n_sequences; ++i) {
    const int64_t begin = data_.seq_ptr[i], end = data_.seq_ptr[i + 1];
    max_T_ = std::max(max_T_, end - begin);
    if ((end - begin) * YP_ > std::numeric_limits<int32_t>::max())
      throw std::length_error("a sequence is too long for this number of labels: split it");
    if (rounds_.empty() || end - rounds_.back().first_position > round_rows) {
      rounds_.emplace_back();
      rounds_.back().first_position = begin;
      first.push_back(i);
    }
    Round& round = rounds_.back();
    round.n_positions = round.n_rows = end - round.first_position;
  }
  first.push_back(data_.n_sequences);
  const int64_t group = side_by_side() ? lanes_ : 1;
  for (std::size_t r = 0; r < rounds_.size(); ++r) {
    if (group > 1) order_sequences(first[r], first[r + 1]);
    int64_t tokens = chunk_tokens;  // of the last chunk
    for (int64_t k = first[r]; k < first[r + 1]; ++k) {
      if (tokens >= chunk_tokens && (k - first[r]) % group == 0) {
        rounds_[r].chunks.push_back({k, 0});
        ++n_chunks_;
        tokens = 0;
      }
      ++rounds_[r].chunks.back().count;
      tokens += data_.seq_ptr[order_[k] + 1] - data_.seq_ptr[order_[k]];
    }
  }
}

// Sequences that are solved side by side should have like lengths. Sorted in windows, not as a whole: neighbours often
// share words, whose weights are then still in the cache.
void Batch::order_sequences(int64_t first, int64_t last) {
  const int64_t window = kWindowGroups * lanes_;
  const auto length = [&](int64_t i) { return data_.seq_ptr[i + 1] - data_.seq_ptr[i]; };
  for (int64_t begin = first; begin < last; begin += window)
    std::stable_sort(order_.begin() + begin, order_.begin() + std::min(last, begin + window),
                     [&](int64_t a, int64_t b) { return length(a) > length(b); });
}

// The most frequent attributes, as many as fit.
void Batch::choose_frequent() {
  const int64_t A = layout_.n_attributes;
  counts_.assign(static_cast<std::size_t>(A), 0);
  for (int64_t k = 0; k < sources_.attr_ptr[sources_.n_positions]; ++k)
    if (sources_.attr_ids[k] < A) ++counts_[sources_.attr_ids[k]];
  for (int64_t a = 0; a < A; ++a)
    // Rows of a frequent attribute are spread over the whole dataset. Gathered attribute by attribute, a row would be
    // fetched from memory once for each of its frequent attributes.
    if (counts_[a] >= kFrequentCount) frequent_.push_back(static_cast<int32_t>(a));
  std::stable_sort(frequent_.begin(), frequent_.end(), [&](int32_t a, int32_t b) { return counts_[a] > counts_[b]; });
  const int64_t room = kFrequentBytes / (8 * YP_);
  if (static_cast<int64_t>(frequent_.size()) > room) frequent_.resize(static_cast<std::size_t>(room));
  slot_of_.assign(static_cast<std::size_t>(A), -1);
  for (std::size_t slot = 0; slot < frequent_.size(); ++slot) {
    slot_of_[frequent_[slot]] = static_cast<int32_t>(slot);
    n_frequent_occurrences_ += static_cast<std::size_t>(counts_[frequent_[slot]]);
  }
  frequent_sums_.resize(kSegments * static_cast<int64_t>(frequent_.size()) * YP_);
}

// Where the sums of an attribute begin in a row: at its first label if it has few.
int64_t Batch::first_label(int64_t a) const {
  if (layout_.state_ptr == nullptr) return 0;
  const int64_t n = layout_.state_ptr[a + 1] - layout_.state_ptr[a];
  return n > 0 && n <= kFewLabels ? layout_.state_labels[layout_.state_ptr[a]] : 0;
}

// Frequent attributes per row; for the others the transpose: rows per attribute.
void Batch::index_round(Round& round) {
  const int64_t A = layout_.n_attributes;
  const bool valued = sources_.attr_values != nullptr;
  const int64_t first = round.first_position;
  // Counting sort: counts, then the index of the next row of each attribute.
  std::vector<int64_t> next(static_cast<std::size_t>(A) + 1, 0);
  round.slot_ptr.assign(1, 0);
  round.slot_ptr.reserve(static_cast<std::size_t>(round.n_rows) + 1);
  if (rounds_.size() == 1) {
    round.slots.reserve(n_frequent_occurrences_);
    if (valued) round.slot_values.reserve(n_frequent_occurrences_);
  }
  for (int64_t t = first; t < first + round.n_rows; ++t) {
    for (int64_t k = sources_.attr_ptr[t]; k < sources_.attr_ptr[t + 1]; ++k) {
      const int64_t a = sources_.attr_ids[k];
      if (a >= A) continue;
      if (slot_of_[a] < 0) {
        ++next[a + 1];
      } else {
        round.slots.push_back(slot_of_[a]);
        if (valued) round.slot_values.push_back(sources_.attr_values[k]);
      }
    }
    round.slot_ptr.push_back(static_cast<int64_t>(round.slots.size()));
  }
  round.occ_ptr.assign(1, 0);
  if (rounds_.size() == 1) round.occ_ptr.reserve(static_cast<std::size_t>(A) + 1);
  for (int64_t a = 0; a < A; ++a) {
    const int64_t count = next[a + 1];
    next[a + 1] += next[a];
    if (rounds_.size() == 1 || count > 0) {
      if (rounds_.size() > 1) round.attributes.push_back(static_cast<int32_t>(a));
      round.occ_ptr.push_back(next[a + 1]);
    }
  }
  round.occ_at.resize(static_cast<std::size_t>(next[A]));
  if (valued) round.occ_values.resize(static_cast<std::size_t>(next[A]));
  for (int64_t t = 0; t < round.n_rows; ++t)
    for (int64_t k = sources_.attr_ptr[first + t]; k < sources_.attr_ptr[first + t + 1]; ++k) {
      const int64_t a = sources_.attr_ids[k];
      if (a >= A || slot_of_[a] >= 0) continue;
      const int64_t at = next[a]++;
      // Rows of an attribute are in the order of the positions, which is the order of its sum.
      round.occ_at[at] = static_cast<int32_t>(t * YP_ + first_label(a));
      if (valued) round.occ_values[at] = sources_.attr_values[k];
    }
  index_tasks(round);
  if (has_edges_) index_edges(round);
}

// Gather tasks of about equal work: a row to add per occurrence, a row to write per attribute.
void Batch::index_tasks(Sums& sums) const {
  const int64_t n = static_cast<int64_t>(sums.occ_ptr.size()) - 1;
  // Tasks depend only on the dataset. Their borders do not change any sum: an attribute belongs to one task.
  const int64_t work = (sums.occ_ptr[n] + n) / kGatherTasks + 1;
  sums.task_ptr.assign(1, 0);
  for (int64_t e = 0; e < n; ++e) {
    const int64_t first = sums.task_ptr.back();
    if (sums.occ_ptr[e + 1] - sums.occ_ptr[first] + e + 1 - first >= work || e + 1 == n) sums.task_ptr.push_back(e + 1);
  }
}

void Batch::index_edges(Round& round) {
  const int64_t B = layout_.n_edge_attributes;
  round.edge_ptr.assign(static_cast<std::size_t>(B) + 1, 0);
  const int64_t first = round.first_position;
  for (int64_t k = data_.edge_ptr[first]; k < data_.edge_ptr[first + round.n_positions]; ++k)
    if (data_.edge_ids[k] < B) ++round.edge_ptr[data_.edge_ids[k] + 1];
  for (int64_t b = 0; b < B; ++b) round.edge_ptr[b + 1] += round.edge_ptr[b];
  round.edge_rows.resize(static_cast<std::size_t>(round.edge_ptr[B]));
  std::vector<int64_t> next(round.edge_ptr.begin(), round.edge_ptr.end() - 1);
  for (int64_t t = 0; t < round.n_positions; ++t)
    for (int64_t k = data_.edge_ptr[first + t]; k < data_.edge_ptr[first + t + 1]; ++k)
      if (data_.edge_ids[k] < B) round.edge_rows[next[data_.edge_ids[k]]++] = static_cast<int32_t>(t);
}

}  // namespace crfit
