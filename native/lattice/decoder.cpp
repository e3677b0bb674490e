#include "lattice/decoder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <queue>

#include "base/dispatch.hpp"
#include "base/pool.hpp"
#include "lattice/scores.hpp"

namespace crfit {

namespace {

constexpr int64_t kChunkTokens = 512;             // positions of a task
constexpr int64_t kWindow = 256;                  // sequences that are sorted by length
constexpr int64_t kLaneBytes = 1 << 30;           // tables of a group
constexpr int64_t kHistoryLaneBytes = 384 << 20;  // the same with order 2 and more
constexpr int64_t kKeptBytes = 1 << 26;           // tables of a group that are kept for the next call
constexpr int64_t kCachedPairs = 1 << 16;         // whose scores stay in the second-level cache

// Tasks of about kChunkTokens positions and whole groups of `lanes` sequences, neighbours of similar length together.
std::vector<std::vector<int64_t>> spans_of(const DataView& data, int64_t lanes) {
  std::vector<int64_t> order(static_cast<std::size_t>(data.n_sequences));
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](int64_t i) { return data.seq_ptr[i + 1] - data.seq_ptr[i]; };
  if (lanes > 1)
    for (int64_t first = 0; first < data.n_sequences; first += kWindow)
      std::stable_sort(order.begin() + first, order.begin() + std::min(data.n_sequences, first + kWindow),
                       [&](int64_t a, int64_t b) { return length(a) > length(b); });
  std::vector<std::vector<int64_t>> spans;
  int64_t tokens = kChunkTokens;
  for (int64_t k = 0; k < data.n_sequences; ++k) {
    if (tokens >= kChunkTokens && k % lanes == 0) {
      spans.emplace_back();
      tokens = 0;
    }
    spans.back().push_back(order[k]);
    tokens += length(order[k]);
  }
  return spans;
}

// Exact n-best by A* from the end of the sequence. A state is the code of the last min(t + 1, k) labels, and
// delta[t][state] the score of the best prefix that ends in it at t. delta + score of the suffix is therefore exact,
// and the k-th completed path popped is the k-th best. Ties are broken by the longest partial path; otherwise the
// search would visit all ties breadth first.
struct Partial {
  double priority;  // delta[t][state] + suffix
  double suffix;    // score of what follows position t
  int64_t order;    // insertion number
  int64_t t;
  int64_t state;
  int64_t next;  // index of the partial path it extends, -1 at the end
  bool operator<(const Partial& other) const {
    if (priority != other.priority) return priority < other.priority;
    return t != other.t ? t > other.t : order > other.order;
  }
};

// Scores of one sequence, label by label and history by history.
class Scores {
 public:
  Scores(const DataView& data, const Prepared& pre, bool has_edges, int64_t begin, int64_t T) : pre_(pre) {
    const int64_t pair_size = static_cast<int64_t>(pre.Y) * pre.YP;
    U_.resize(static_cast<std::size_t>(T * pre.YP));
    node_scores(Width<0>(pre.YP), data, pre, begin, T, U_.data());
    if (!has_edges) return;
    edges_.assign(static_cast<std::size_t>(T * pair_size), 0.0);
    for (int64_t t = 1; t < T; ++t) edge_scores(data, pre, begin + t, 1.0, edges_.data() + t * pair_size);
  }

  double first(int64_t y) const { return U_[y]; }

  // Of label y at position t >= 1 after a history of min(t, k) labels.
  double operator()(int64_t t, int64_t history, int64_t y) const {
    const int64_t YP = pre_.YP;
    const double score = U_[t * YP + y] + pre_.tables[std::min<int64_t>(t, pre_.order) - 1].tr[history * YP + y];
    return edges_.empty() ? score : score + edges_[(t * pre_.Y + history % pre_.Y) * YP + y];
  }

 private:
  const Prepared& pre_;
  std::vector<double> U_, edges_;  // [T][YP], [T][Y][YP]
};

// delta[t]: score of the best path to each state after position t.
std::vector<std::vector<double>> best_prefixes(const Scores& score, int64_t Y, int order, int64_t T) {
  const int64_t longest = n_histories(Y, order);
  std::vector<std::vector<double>> delta(static_cast<std::size_t>(T));
  for (int64_t y = 0; y < Y; ++y) delta[0].push_back(score.first(y));
  for (int64_t t = 1; t < T; ++t) {
    const std::vector<double>& before = delta[t - 1];
    const int64_t n_histories = static_cast<int64_t>(before.size());
    delta[t].assign(static_cast<std::size_t>(std::min(longest, n_histories * Y)), -INFINITY);
    const int64_t n_states = static_cast<int64_t>(delta[t].size());
    for (int64_t h = 0; h < n_histories; ++h)
      for (int64_t y = 0; y < Y; ++y) {
        // State code: h Y + y without the dropped (most significant) label.
        double& best = delta[t][(h * Y + y) % n_states];
        best = std::max(best, before[h] + score(t, h, y));
      }
  }
  return delta;
}

// Reverses the digits of a code: the last label becomes the most significant.
int64_t reversed(int64_t code, int64_t Y, int n_labels) {
  int64_t result = 0;
  for (int i = 0; i < n_labels; ++i, code /= Y) result = result * Y + code % Y;
  return result;
}

// `prefixes` [T][Y] are the scores of the best paths to each label, or null: computed here.
std::vector<Path> best_paths(const DataView& data, const Prepared& pre, bool has_edges, int64_t sequence, int n,
                             double log_z, const double* prefixes) {
  const int64_t Y = pre.Y;
  const int64_t begin = data.seq_ptr[sequence], T = data.seq_ptr[sequence + 1] - begin;
  const Scores score(data, pre, has_edges, begin, T);
  std::vector<std::vector<double>> delta;
  if (prefixes == nullptr)
    delta = best_prefixes(score, Y, pre.order, T);
  else
    for (int64_t t = 0; t < T; ++t) delta.emplace_back(prefixes + t * Y, prefixes + (t + 1) * Y);
  const int64_t shared = n_histories(Y, pre.order - 1);  // distance of states that differ only in their first label

  std::vector<Partial> popped;  // partial paths taken from the queue, for tracing back
  std::priority_queue<Partial> queue;
  int64_t order = 0;
  const int n_last = static_cast<int>(std::min<int64_t>(T, pre.order));
  for (int64_t r = 0; r < static_cast<int64_t>(delta[T - 1].size()); ++r) {  // ties: lower last label first
    const int64_t state = reversed(r, Y, n_last);
    queue.push({delta[T - 1][state], 0.0, order++, T - 1, state, -1});
  }
  std::vector<Path> paths;
  while (!queue.empty() && static_cast<int>(paths.size()) < n) {
    const Partial top = queue.top();
    if (top.priority == -INFINITY) break;  // all others are forbidden
    queue.pop();
    // The path is complete: the state contains all labels to the left, and delta is their score.
    if (top.t < pre.order) {  // the state holds all labels up to t
      Path path;
      path.labels.resize(static_cast<std::size_t>(T));
      int64_t state = top.state;
      for (int64_t t = top.t; t >= 0; --t, state /= Y) path.labels[t] = static_cast<int32_t>(state % Y);
      int64_t t = top.t + 1;
      for (int64_t k = top.next; k >= 0; k = popped[k].next)
        path.labels[t++] = static_cast<int32_t>(popped[k].state % Y);
      path.log_probability = std::min(0.0, top.priority - log_z);  // rounding of huge scores could exceed 0
      paths.push_back(std::move(path));
      continue;
    }
    const int64_t index = static_cast<int64_t>(popped.size());
    popped.push_back(top);
    for (int64_t i = 0; i < Y; ++i) {
      // Any label i can precede the state: (i, state without its last label) is the history that ends at t - 1.
      const int64_t history = i * shared + top.state / Y;
      const double suffix = top.suffix + score(top.t, history, top.state % Y);
      queue.push({delta[top.t - 1][history] + suffix, suffix, order++, top.t - 1, history, index});
    }
  }
  return paths;
}

}  // namespace

Decoder::Decoder(const LayoutView& layout, const double* w)
    : weights_(layout, true, PairOptions{PairOptions::kLanes, true}, true) {
  weights_.set(w);
  weights_.prepare_tagging();
}

// Sequences of a group; 1: each on its own. For marginals also single sequences are solved in a lane, so that their
// results do not depend on the other sequences of a call. Only very long ones would take too much memory. Best paths
// are the same either way, sums and maxima of the same numbers. A vector of labels finds them faster if there are few
// sequences, unless most pairs have no weight, and if all pairs of many labels have one: lanes wait for the longest of
// their sequences (49 and 190 labels 1.2 times as fast; 22 labels are faster in lanes).
int Decoder::lanes_for(const DataView& data, bool only_best) const {
  const Prepared& pre = weights_.view();
  if (has_edges(data)) return 1;
  const bool few_sequences = data.n_sequences < kFewLanes;
  if (pre.order > 1) {
    const bool large = 3 * 8 * kFewLanes * longest_sequence(data) * pre.n_states > kHistoryLaneBytes;
    return large || (only_best && few_sequences) ? 1 : kFewLanes;
  }
  const int64_t n_pairs = static_cast<int64_t>(pre.Y) * pre.YP;
  const bool few_pairs = pre.sparse != nullptr && (!few_sequences || pre.sparse->n * kFewLanes < n_pairs);
  if (only_best && !few_pairs && (few_sequences || (pre.Y > 32 && n_pairs <= kCachedPairs))) return 1;
  const int lanes = data.n_sequences <= kFewLanes ? kFewLanes : kManyLanes;
  return 3 * 8 * lanes * longest_sequence(data) * pre.Y > kLaneBytes ? 1 : lanes;
}

Decoder::Room::Room(const LayoutView& layout, int64_t max_T, bool has_edges, int lanes)
    : max_T(max_T), scratch(layout, max_T, has_edges) {
  if (lanes > 1) scratch.add_lanes(layout, lanes, max_T, false);
}

// Calls body(job, sequences) for parts of the data; the job has their sequences and a worker's temporaries.
template <class Body>
void Decoder::each_span(const DataView& data, int n_threads, int lanes, const Body& body) const {
  const Prepared& pre = weights_.view();
  const int64_t max_T = longest_sequence(data);
  const bool kept = !has_edges(data) && pre.order == 1 && 3 * 8 * lanes * max_T * pre.YP <= kKeptBytes;
  Spares<Room>& spares = rooms_[lanes == 1 ? 0 : lanes == kFewLanes ? 1 : 2];
  const std::vector<std::vector<int64_t>> spans = spans_of(data, lanes);
  std::vector<std::unique_ptr<Room>> rooms(static_cast<std::size_t>(n_threads));
  parallel_for(n_threads, static_cast<int64_t>(spans.size()), [&](int64_t k, int worker) {
    std::unique_ptr<Room>& room = rooms[worker];
    if (room == nullptr && kept) room = spares.take();
    if (room == nullptr || room->max_T < max_T) {
      // Sizes that differ little share a size.
      const int64_t size = kept ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(max_T))) : max_T;
      room = std::make_unique<Room>(*pre.layout, size, has_edges(data), lanes);
    }
    InferenceJob job;
    job.data = &data;
    job.weights = &pre;
    job.sequences = spans[k].data();
    job.n_sequences = static_cast<int64_t>(spans[k].size());
    job.scratch = &room->scratch.view;
    body(job, spans[k]);
  });
  for (std::unique_ptr<Room>& room : rooms)
    if (room != nullptr && kept) spares.give(std::move(room));
}

void Decoder::infer(const DataView& data, int n_threads, const InferenceJob& wanted) const {
  const bool only_best = wanted.log_z == nullptr && wanted.path_score == nullptr;
  each_span(data, n_threads, lanes_for(data, only_best), [&](const InferenceJob& span, const std::vector<int64_t>&) {
    InferenceJob job = wanted;
    job.data = span.data;
    job.weights = span.weights;
    job.sequences = span.sequences;
    job.n_sequences = span.n_sequences;
    job.scratch = span.scratch;
    at_level<LatticeKernels>().infer(job);
  });
}

std::vector<std::vector<Path>> Decoder::nbest(const DataView& data, int n, int n_threads) const {
  const Prepared& pre = weights_.view();
  const int lanes = lanes_for(data, false);
  const auto length = [&](int64_t i) { return data.seq_ptr[i + 1] - data.seq_ptr[i]; };
  std::vector<double> log_z(static_cast<std::size_t>(data.n_sequences));
  std::vector<std::vector<Path>> result(static_cast<std::size_t>(data.n_sequences));
  each_span(data, n_threads, lanes, [&](InferenceJob& job, const std::vector<int64_t>& sequences) {
    int64_t positions = 0;
    for (const int64_t i : sequences) positions += length(i);
    Buffer<double> prefixes;
    if (lanes > 1 && pre.order == 1) prefixes.resize(positions * pre.Y);
    job.log_z = log_z.data();
    job.prefixes = prefixes.data();
    at_level<LatticeKernels>().infer(job);
    const double* of_sequence = prefixes.data();
    for (const int64_t i : sequences) {
      result[i] = best_paths(data, pre, has_edges(data), i, n, log_z[i], of_sequence);
      if (of_sequence != nullptr) of_sequence += length(i) * pre.Y;
    }
  });
  return result;
}

}  // namespace crfit
