// The dual of the objective with l2 > 0: a chain distribution a_n over label sequences for each training sequence, with
//
//   u(a) = (1/l2) sum_n c_n (Phi(x_n, y_n) - E_{a_n} Phi(x_n, .)),   w(a) = S(u(a), l1/l2), the soft threshold
//   D(a) = sum_n c_n Entropy(a_n) - (l2/2) |w(a)|^2
//   P(w(a)) - D(a) = sum_n c_n KL(a_n || p(. | x_n; w(a))) >= 0
//
// and exponentiated-gradient steps on one a_n at a time. A chain is stored as log-potentials theta, so a step is a
// mixture with the scores psi of the model w(a),
//
//   theta <- theta + eta (psi - theta),   u <- u + (c_n/l2) (E_old Phi - E_new Phi)
//
// (eta = 1: the chain equals the model). It is accepted if D does not decrease by more than rounding. With change =
// marginals before - after, <psi, change> = w . (E_old Phi - E_new Phi) and du the change of u,
//
//   dD = c_n (Entropy(new) - Entropy(old) - <psi, change>) - (l2/2) (|S(u + du)|^2 - |S(u)|^2 - 2 S(u) . du)
//
// The last term is (c_n^2 / (2 l2)) |E_old Phi - E_new Phi|^2 for l1 = 0. For l1 > 0 that would be an upper bound: most
// u are inside the threshold, where the term is 0, and the exact term allows far longer steps.
//
// Collins, Globerson, Koo, Carreras, Bartlett (2008). Exponentiated gradient algorithms for conditional random fields
// and max-margin Markov networks. JMLR 9, 1775-1822.
//
// Why potentials: a_n is a distribution over Y^T label sequences, and the step is a mixture only in terms of theta. The
// alternative, SDCA, mixes marginals instead, (1 - s) p + s q. It needs no forward-backward per trial, but a line
// search over entropies of marginals that must never be 0.
//
// Transitions that do not depend on x are the same at all positions, and so are those of a chain that starts without
// any: one pair table per sequence, with edge attributes one per position. A pair without a weight keeps the potential
// 0, so few pairs (few_pairs) are stored as a list. Memory: 2 (T YP + Y YP) doubles per sequence for potentials and
// marginals, or 2 (T YP + n) with n listed pairs. Marginals are stored because the step needs E_old, which would
// otherwise cost a second forward-backward.
//
// Steps are sequential: each uses the weights after the previous one. Threads are used only for preparation.
#pragma once

#include <cstdint>
#include <memory>
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

class Dual {
 public:
  // log_domain: never use the scaled domain. Threads are used only for preparation; steps are sequential.
  Dual(const DataView& data, const LayoutView& layout, bool log_domain, int n_threads);

  struct Epoch {
    int64_t trials = 0;    // number of trial steps
    int64_t accepted = 0;  // number of accepted steps
    double gain = 0.0;     // sum of dD
  };

  void start(double gold, double eta);  // node potential `gold` for the given labels, 0 for all others
  void solve();                         // marginals and entropies of all chains, from their potentials
  void weights(double l2, double* u);   // u(a)
  Epoch epoch(const int64_t* order, int64_t n, double l1, double l2, const EtaRule& rule, double* u);
  double entropy() const;  // sum_n c_n Entropy(a_n)

  int64_t n_positions() const { return data_.n_positions; }
  int64_t n_sequences() const { return data_.n_sequences; }
  int64_t n_tables() const { return tables_.back(); }
  int padded() const { return YP_; }
  double* nodes() { return nodes_.data(); }  // [n_positions][YP] potentials
  double* pairs() { return pairs_.data(); }  // [n_tables][table_size] potentials
  int64_t table_size() const { return table_; }
  bool lists_pairs() const { return listed_; }
  double* eta() { return eta_.data(); }  // [n_sequences]
  const PhaseSeconds& seconds() const { return seconds_; }

 private:
  void begin(int64_t sequence);
  void prefetch(int64_t sequence, const double* u) const;
  void score(double* u);
  void mix(double eta);
  void solve_trial();
  double change_features(const double* old_nodes, const double* old_pairs);
  double rest_of_change(double factor, const double* u);
  void update(double factor, double* u);
  double weight_of(int64_t sequence) const { return data_.weights == nullptr ? 1.0 : data_.weights[sequence]; }
  template <class F>
  void each_transition(F f) const;
  template <class F>
  void each_edge_sum(F f);

  DataView data_;
  LayoutView layout_;
  bool has_edges_;
  bool listed_;  // pair tables have an entry for each weight, in their order
  NgramBlock pair_block_;
  LayoutView pair_layout_;  // only label pairs, for chain_
  int n_threads_;
  int YP_;
  int64_t table_;                           // doubles of a pair table: [Y][YP], or of the listed pairs
  bool all_transitions_;                    // every label pair has a weight: rows of weights are rows of pair tables
  std::vector<int64_t> tables_;             // [n_sequences + 1] pair tables of a sequence
  std::vector<int64_t> transition_places_;  // in a pair table, of the label pairs that have a weight
  MergedIndex attributes_, edges_;
  Buffer<double> nodes_, pairs_, p_, p_pairs_, entropy_, eta_;
  Buffer<double> psi_, psi_pairs_, trial_, trial_pairs_, q_, q_pairs_, change_, change_pairs_, sums_, pair_weights_;
  PreparedWeights chain_;
  std::unique_ptr<WorkerScratch> scratch_;
  DualJob job_;
  PhaseSeconds seconds_;
};

}  // namespace crfit
