#include "dual/ascent.hpp"

#include <algorithm>

#include "base/pool.hpp"

namespace crfit {

namespace {
constexpr int64_t kParts = 64;  // of loops over memory
}

Dual::Dual(const DataView& data, const LayoutView& layout, bool log_domain, int n_threads)
    : chains_(data, layout, n_threads), log_domain_(log_domain), n_threads_(n_threads) {}

DualSteps& Dual::worker(std::size_t k) {
  while (workers_.size() <= k) workers_.push_back(std::make_unique<DualSteps>(chains_, log_domain_));
  return *workers_[k];
}

void Dual::start(double gold, double eta) {
  chains_.eta.fill(eta);
  // The memory of all chains is touched for the first time here, which takes longer than the computation.
  parallel_for(n_threads_, kParts, [&](int64_t part, int) {
    const auto fill = [&](Buffer<double>& values) {
      const int64_t n = values.size();
      std::fill(values.data() + n * part / kParts, values.data() + n * (part + 1) / kParts, 0.0);
    };
    for (Buffer<double>* values : {&chains_.nodes, &chains_.p, &chains_.pairs, &chains_.p_pairs}) fill(*values);
  });
  // theta = gold [y = label]: all chains start near their labels. With gold = infinity, w and the marginals of all
  // other labels would be 0, and a mixture of potentials would never change that.
  const int64_t YP = chains_.YP;
  for (int64_t t = 0; t < n_positions(); ++t) chains_.nodes[t * YP + chains_.data.labels[t]] = gold;
  solve();
}

void Dual::solve() {
  worker(static_cast<std::size_t>(n_threads_) - 1);
  parallel_for(n_threads_, kParts, [&](int64_t part, int k) {
    for (int64_t n = n_sequences() * part / kParts; n < n_sequences() * (part + 1) / kParts; ++n)
      workers_[static_cast<std::size_t>(k)]->solve(n);
  });
}

double Dual::entropy() const {
  double total = 0.0;
  for (int64_t n = 0; n < n_sequences(); ++n) total += chains_.weight_of(n) * chains_.entropy[n];
  return total;
}

void Dual::weights(double l2, double* u) {
  int64_t last = now();
  std::fill_n(u, chains_.layout.n_weights, 0.0);
  for (int64_t n = 0; n < n_sequences(); ++n) worker(0).add_weights(n, l2, u);
  seconds_.gather += lap(last);
}

DualEpoch Dual::epoch(const int64_t* order, int64_t n, double l1, double l2, const EtaRule& rule, int shards,
                      double sigma, double* u) {
  const std::size_t K = static_cast<std::size_t>(std::max<int64_t>(1, std::min<int64_t>(shards, n)));
  int64_t last = now();
  worker(K - 1);
  for (auto& one : workers_) one->seconds = {};
  DualEpoch total;
  if (K == 1) {
    total = workers_[0]->epoch(order, n, l1, l2, rule, u);
  } else {
    const int64_t n_weights = chains_.layout.n_weights, count = static_cast<int64_t>(K);
    if (copies_.size() < K) copies_.resize(K);
    std::vector<DualEpoch> done(K);
    parallel_for(n_threads_, count, [&](int64_t k, int) {
      Buffer<double>& copy = copies_[static_cast<std::size_t>(k)];
      if (copy.size() < n_weights) copy.resize(n_weights);
      std::copy_n(u, n_weights, copy.data());
      const int64_t first = n * k / count, end = n * (k + 1) / count;
      done[k] = workers_[k]->epoch(order + first, end - first, l1 / sigma, l2 / sigma, rule, copy.data());
    });
    parallel_for(n_threads_, kParts, [&](int64_t part, int) {
      for (int64_t i = n_weights * part / kParts; i < n_weights * (part + 1) / kParts; ++i) {
        double change = 0.0;
        for (std::size_t k = 0; k < K; ++k) change += copies_[k][i] - u[i];
        u[i] += change / sigma;
      }
    });
    for (const DualEpoch& one : done) {
      total.trials += one.trials;
      total.accepted += one.accepted;
      total.gain += one.gain;
    }
  }
  // The wall time, split as the time of the workers is.
  PhaseSeconds busy;
  for (const auto& one : workers_) {
    busy.scores += one->seconds.scores;
    busy.lattice += one->seconds.lattice;
    busy.gather += one->seconds.gather;
  }
  const double all = busy.scores + busy.lattice + busy.gather, wall = lap(last);
  if (all > 0.0) {
    seconds_.scores += wall * busy.scores / all;
    seconds_.lattice += wall * busy.lattice / all;
    seconds_.gather += wall * busy.gather / all;
  }
  return total;
}

}  // namespace crfit
