#include "decoder.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

#include "pool.hpp"
#include "scores.hpp"

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

// Exact n-best by A* from the end of the sequence. delta[t][y] is the score of the best prefix that ends in y at t, so
// that delta + score of the suffix is exact and the k-th completed path popped is the k-th best. Of equal priorities
// the longest partial path goes first: with many ties the search would otherwise visit all of them, breadth first.
struct Partial {
  double priority;  // delta[t][y] + suffix
  double suffix;    // score of what follows position t
  int64_t order;    // insertion number
  int64_t t;
  int32_t y;
  int64_t next;  // index of the partial path it extends, -1 at the end
  bool operator<(const Partial& other) const {
    if (priority != other.priority) return priority < other.priority;
    return t != other.t ? t > other.t : order > other.order;
  }
};

std::vector<Path> best_paths(const DataView& data, const Prepared& pre, bool has_edges, int64_t sequence, int n,
                             double log_z) {
  const int Y = pre.Y, YP = pre.YP;
  const int64_t begin = data.seq_ptr[sequence], T = data.seq_ptr[sequence + 1] - begin;
  const int64_t pair_size = static_cast<int64_t>(Y) * YP;
  std::vector<double> U(static_cast<std::size_t>(T * YP)), delta(U.size());
  node_scores(Width<0>(YP), data, pre, begin, T, U.data());
  std::vector<double> pairs(static_cast<std::size_t>((has_edges ? T : 0) * pair_size), 0.0);
  if (has_edges)
    for (int64_t t = 1; t < T; ++t) pair_scores(data, pre, begin + t, 1.0, pairs.data() + t * pair_size);
  const auto pair = [&](int64_t t, int i, int j) {
    return has_edges ? pairs[t * pair_size + i * YP + j] : pre.tr[i * YP + j];
  };
  for (int j = 0; j < Y; ++j) delta[j] = U[j];
  for (int64_t t = 1; t < T; ++t)
    for (int j = 0; j < Y; ++j) {
      double best = -INFINITY;
      for (int i = 0; i < Y; ++i) best = std::max(best, delta[(t - 1) * YP + i] + pair(t, i, j));
      delta[t * YP + j] = best + U[t * YP + j];
    }

  std::vector<Partial> popped;  // partial paths taken from the queue, for tracing back
  std::priority_queue<Partial> queue;
  int64_t order = 0;
  for (int j = 0; j < Y; ++j) queue.push({delta[(T - 1) * YP + j], 0.0, order++, T - 1, j, -1});
  std::vector<Path> paths;
  while (!queue.empty() && static_cast<int>(paths.size()) < n) {
    const Partial top = queue.top();
    queue.pop();
    if (top.t == 0) {
      Path path;
      path.labels.push_back(top.y);
      for (int64_t k = top.next; k >= 0; k = popped[k].next) path.labels.push_back(popped[k].y);
      path.log_probability = std::min(0.0, top.priority - log_z);  // with huge scores rounding would exceed it
      paths.push_back(std::move(path));
      continue;
    }
    const int64_t index = static_cast<int64_t>(popped.size());
    popped.push_back(top);
    for (int i = 0; i < Y; ++i) {
      const double suffix = top.suffix + U[top.t * YP + top.y] + pair(top.t, i, top.y);
      queue.push({delta[(top.t - 1) * YP + i] + suffix, suffix, order++, top.t - 1, i, index});
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
    WorkerScratch scratch(pre.Y, pre.YP, spans[k].max_T, has_edges(data));
    InferenceJob job = wanted;
    job.data = &data;
    job.weights = &pre;
    job.first_sequence = spans[k].first;
    job.n_sequences = spans[k].count;
    job.scratch = &scratch.view;
    kernels().infer(job);
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
