// Inference with fixed weights: Viterbi, n-best, marginals, log Z, path scores. Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

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

 private:
  int lanes_for(const DataView& data) const;
  template <class Body>
  void each_span(const DataView& data, int n_threads, int lanes, const Body& body) const;
  bool has_edges(const DataView& data) const {
    return data.edge_ptr != nullptr && weights_.view().layout->n_edge_attributes > 0;
  }

  PreparedWeights weights_;
};

}  // namespace crfit
