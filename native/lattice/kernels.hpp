// Kernels of the lattice, compiled once per CPU level: inference, and the tables of transitions.
#pragma once

#include <cstdint>

#include "base/views.hpp"
#include "lattice/tables.hpp"

namespace crfit {

// Inference on some sequences. A null output is not computed; marginals need log_z, best needs best_score.
struct InferenceJob {
  const DataView* data = nullptr;
  const Prepared* weights = nullptr;
  const int64_t* sequences = nullptr;  // ids
  int64_t n_sequences = 0;
  Scratch* scratch = nullptr;
  int32_t* best = nullptr;           // [n_positions] Viterbi labels
  double* best_score = nullptr;      // [n_sequences of the dataset]
  double* log_z = nullptr;           // [n_sequences of the dataset]
  double* path_score = nullptr;      // [n_sequences of the dataset] score of data->labels
  double* node_marginals = nullptr;  // [n_positions][Y]
  double* pair_marginals = nullptr;  // [n_positions][Y][Y]
  // [positions of the sequences in order][Y] scores of the best paths to each label; order 1 without edge attributes
  double* prefixes = nullptr;
};

// E = exp(scores - top) in rows of Y labels, padding 0.
struct ExponentialsJob {
  int64_t rows = 0;
  int Y = 0, YP = 0;
  const double* scores = nullptr;  // [rows][YP], at most top; the padding is not read
  double top = 0.0;
  double* E = nullptr;  // [rows][YP]
};

struct LatticeKernels {
  static const LatticeKernels v2, v3, v4;
  void (*infer)(const InferenceJob&);  // marginals, log Z, Viterbi
  void (*exponentials)(const ExponentialsJob&);
};

}  // namespace crfit
