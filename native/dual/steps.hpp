// One worker's exponentiated-gradient steps on the chains of the dual (ascent.hpp): its temporaries, and the work on
// one sequence after another.
#pragma once

#include <cstdint>
#include <vector>

#include "base/phases.hpp"
#include "dual/kernels.hpp"
#include "dual/merged_index.hpp"
#include "lattice/prepared.hpp"

namespace crfit {

// How the step size eta_n of a sequence changes: times grow after a step, up to 1, where the chain equals the model;
// times shrink after a trial that lowers D. After max_trials of these the sequence is skipped.
struct EtaRule {
  double grow = 1.05, shrink = 0.5;
  int max_trials = 5;
};

struct DualEpoch {
  int64_t trials = 0;    // number of trial steps
  int64_t accepted = 0;  // number of accepted steps
  double gain = 0.0;     // sum of dD
};

// The chains a_n, shared by all workers; a sequence belongs to one worker at a time.
struct DualChains {
  DualChains(const DataView& data, const LayoutView& layout, int n_threads);

  DataView data;
  LayoutView layout;
  bool has_edges;
  bool listed;  // pair tables have an entry for each weight, in their order
  NgramBlock pair_block;
  LayoutView pair_layout;  // only label pairs, whose lattice solves the chains
  int YP;
  int64_t table;         // doubles of a pair table: [Y][YP], or of the listed pairs
  bool all_transitions;  // every label pair has a weight: rows of weights are rows of pair tables
  int64_t max_T = 1, max_tables = 0, max_sums = 0;  // of a sequence
  std::vector<int64_t> tables;                      // [n_sequences + 1] pair tables of a sequence
  std::vector<int64_t> transition_places;           // in a pair table, of the label pairs that have a weight
  MergedIndex attributes, edges;
  Buffer<double> nodes, p;        // [positions][YP] theta and marginals
  Buffer<double> pairs, p_pairs;  // [tables][table] the same of label pairs
  Buffer<double> entropy, eta;    // [n_sequences]

  double weight_of(int64_t sequence) const { return data.weights == nullptr ? 1.0 : data.weights[sequence]; }
};

class DualSteps {
 public:
  DualSteps(DualChains& chains, bool log_domain);
  DualSteps(const DualSteps&) = delete;
  DualSteps& operator=(const DualSteps&) = delete;

  void solve(int64_t sequence);                              // its marginals and entropy, from its potentials
  void add_weights(int64_t sequence, double l2, double* u);  // u += (c_n/l2) (Phi(x_n, y_n) - E Phi)
  // A step on each sequence of `order`. Sets: u.
  DualEpoch epoch(const int64_t* order, int64_t n, double l1, double l2, const EtaRule& rule, double* u);
  PhaseSeconds seconds;

 private:
  void begin(int64_t sequence);
  void prefetch(int64_t sequence, const double* u) const;
  void score(double* u);
  void mix(double eta);
  void solve_trial();
  double change_features(const double* old_nodes, const double* old_pairs);
  double rest_of_change(double factor, const double* u);
  void update(double factor, double* u);
  template <class F>
  void each_transition(F f) const;
  template <class F>
  void each_edge_sum(F f);

  DualChains& chains_;
  const DataView& data_;
  const LayoutView& layout_;
  const int YP_;
  const int64_t table_;
  // One sequence: scores of S(u), trial theta, its marginals, old - new marginals.
  Buffer<double> psi_, psi_pairs_, trial_, trial_pairs_, q_, q_pairs_, change_, change_pairs_;
  Buffer<double> sums_, pair_weights_;
  PreparedWeights chain_;
  WorkerScratch scratch_;
  DualJob job_;
};

}  // namespace crfit
