#include "lattice/decoder.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

#include "base/dispatch.hpp"
#include "base/pool.hpp"
#include "lattice/scores.hpp"

namespace crfit {

namespace {

constexpr int64_t kChunkTokens = 256;

struct Span {
  int64_t first, count, max_T;
};

// Consecutive sequences of about kChunkTokens positions together.
std::vector<Span> spans_of(const DataView& data) {
  std::vector<Span> spans;
  for (int64_t i = 0; i < data.n_sequences; ++i) {
    if (spans.empty() || data.seq_ptr[i] - data.seq_ptr[spans.back().first] >= kChunkTokens) spans.push_back({i, 0, 1});
    ++spans.back().count;
    spans.back().max_T = std::max(spans.back().max_T, data.seq_ptr[i + 1] - data.seq_ptr[i]);
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

std::vector<Path> best_paths(const DataView& data, const Prepared& pre, bool has_edges, int64_t sequence, int n,
                             double log_z) {
  const int64_t Y = pre.Y;
  const int64_t begin = data.seq_ptr[sequence], T = data.seq_ptr[sequence + 1] - begin;
  const Scores score(data, pre, has_edges, begin, T);
  const std::vector<std::vector<double>> delta = best_prefixes(score, Y, pre.order, T);
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

Decoder::Decoder(const LayoutView& layout, const double* w) : weights_(layout) { weights_.set(w); }

void Decoder::infer(const DataView& data, int n_threads, InferenceJob wanted) const {
  const Prepared& pre = weights_.view();
  const std::vector<Span> spans = spans_of(data);
  parallel_for(n_threads, static_cast<int64_t>(spans.size()), [&](int64_t k, int) {
    // Sized for the span: the longest sequence of the dataset may be an outlier.
    WorkerScratch scratch(*pre.layout, spans[k].max_T, has_edges(data));
    InferenceJob job = wanted;
    job.data = &data;
    job.weights = &pre;
    job.first_sequence = spans[k].first;
    job.n_sequences = spans[k].count;
    job.scratch = &scratch.view;
    at_level<LatticeKernels>().infer(job);
  });
}

std::vector<std::vector<Path>> Decoder::nbest(const DataView& data, int n, int n_threads) const {
  std::vector<double> log_z(static_cast<std::size_t>(data.n_sequences));
  InferenceJob wanted;
  wanted.log_z = log_z.data();
  infer(data, n_threads, wanted);
  std::vector<std::vector<Path>> result(static_cast<std::size_t>(data.n_sequences));
  parallel_for(n_threads, data.n_sequences,
               [&](int64_t i, int) { result[i] = best_paths(data, weights_.view(), has_edges(data), i, n, log_z[i]); });
  return result;
}

}  // namespace crfit
