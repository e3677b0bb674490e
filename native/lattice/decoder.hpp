// Inference with fixed weights: Viterbi, n-best, marginals, log Z, path scores. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/spares.hpp"
#include "lattice/kernels.hpp"
#include "lattice/prepared.hpp"

namespace crfit {

struct Path {
  std::vector<int32_t> labels;
  double log_probability = 0.0;
};

class Decoder {
 public:
  Decoder(const LayoutView& layout, const double* w);

  // Fills the outputs of `wanted` (see InferenceJob); its data, weights, scratch and sequences are set here.
  void infer(const DataView& data, int n_threads, const InferenceJob& wanted) const;

  // The n most probable label sequences of every sequence, best first.
  std::vector<std::vector<Path>> nbest(const DataView& data, int n, int n_threads) const;

  int n_labels() const { return weights_.view().Y; }

 private:
  int lanes_for(const DataView& data, bool only_best) const;
  template <class Body>
  void each_span(const DataView& data, int n_threads, int lanes, const Body& body) const;
  bool has_edges(const DataView& data) const {
    return data.edge_ptr != nullptr && weights_.view().layout->n_edge_attributes > 0;
  }

  // A worker's temporaries, which other calls may have used before.
  struct Room {
    Room(const LayoutView& layout, int64_t max_T, bool has_edges, int lanes);
    const int64_t max_T;
    WorkerScratch scratch;
  };

  PreparedWeights weights_;
  mutable std::array<Spares<Room>, 3> rooms_;  // without edge attributes: one by one, few lanes, many lanes
};

}  // namespace crfit
