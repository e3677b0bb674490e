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
// Steps are sequential: each uses the weights after the previous one. To use several cores, an epoch can be split into
// K shards of the sequences. Each makes its steps from a copy of u with l1 / sigma and l2 / sigma for the penalties,
// and
//
//   u <- u + (1/sigma) sum_k (u_k - u)
//
// With sigma = K, D rises at least by the sum of the shards' gains, since the penalty's conjugate is convex and u + the
// sum of the changes is the mean of u + K times each (CoCoA+ with added changes). A smaller sigma takes longer steps,
// which may lower D. The result depends on the number of shards, not on that of threads.
//
// Ma, Smith, Jaggi, Jordan, Richtarik, Takac (2015). Adding vs. averaging in distributed primal-dual optimization.
// ICML.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dual/steps.hpp"

namespace crfit {

class Dual {
 public:
  // log_domain: never use the scaled domain.
  Dual(const DataView& data, const LayoutView& layout, bool log_domain, int n_threads);

  void start(double gold, double eta);  // node potential `gold` for the given labels, 0 for all others
  void solve();                         // marginals and entropies of all chains, from their potentials
  void weights(double l2, double* u);   // u(a)
  DualEpoch epoch(const int64_t* order, int64_t n, double l1, double l2, const EtaRule& rule, int shards, double sigma,
                  double* u);
  double entropy() const;  // sum_n c_n Entropy(a_n)

  int64_t n_positions() const { return chains_.data.n_positions; }
  int64_t n_sequences() const { return chains_.data.n_sequences; }
  int64_t n_tables() const { return chains_.tables.back(); }
  int padded() const { return chains_.YP; }
  double* nodes() { return chains_.nodes.data(); }  // [n_positions][YP] potentials
  double* pairs() { return chains_.pairs.data(); }  // [n_tables][table_size] potentials
  int64_t table_size() const { return chains_.table; }
  bool lists_pairs() const { return chains_.listed; }
  double* eta() { return chains_.eta.data(); }  // [n_sequences]
  const PhaseSeconds& seconds() const { return seconds_; }

 private:
  DualSteps& worker(std::size_t k);

  DualChains chains_;
  bool log_domain_;
  int n_threads_;
  std::vector<std::unique_ptr<DualSteps>> workers_;  // one for each shard
  std::vector<Buffer<double>> copies_;               // of u, one for each shard
  PhaseSeconds seconds_;
};

}  // namespace crfit
