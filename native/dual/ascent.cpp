#include "dual/ascent.hpp"

#include <algorithm>
#include <cmath>

#include "base/dispatch.hpp"
#include "base/pool.hpp"

namespace crfit {

namespace {

// Relative changes of D below this are rounding: dD is the difference of much larger numbers (log Z, inner products).
// Without it nearly certain chains would never move, and chains at the optimum would be tried again and again.
constexpr double kRounding = 2e-15;

// A model with only transitions, all or the listed ones: its lattice solves the chains, with their pair potentials as
// weights.
LayoutView label_pairs(const LayoutView& model, bool listed, NgramBlock& block) {
  LayoutView layout;
  layout.n_labels = model.n_labels;
  block.n = static_cast<int64_t>(model.n_labels) * model.n_labels;
  if (listed) block = {model.ngrams[0].codes, model.ngrams[0].n, 0};
  layout.n_weights = block.n;
  layout.ngrams = &block;
  layout.start_offset = layout.end_offset = layout.edge_offset = layout.n_weights;
  return layout;
}

double inner(const double* a, const double* b, int64_t n) {
  constexpr int64_t kSums = 8;  // n is a multiple of it: rows are padded
  double sums[kSums] = {};
  for (int64_t i = 0; i < n; i += kSums)
    for (int64_t lane = 0; lane < kSums; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace

Dual::Dual(const DataView& data, const LayoutView& layout, bool log_domain, int n_threads)
    : data_(data),
      layout_(layout),
      has_edges_(data.edge_ptr != nullptr && layout.n_edge_attributes > 0),
      listed_(!has_edges_ && few_pairs(layout)),
      pair_layout_(label_pairs(layout, listed_, pair_block_)),
      n_threads_(n_threads),
      YP_(padded_labels(layout.n_labels)),
      table_(listed_ ? (layout.ngrams[0].n + 7) / 8 * 8 : static_cast<int64_t>(layout.n_labels) * YP_),
      chain_(pair_layout_, true, PairOptions{PairOptions::kOneSequence, false}) {
  int64_t max_T = 1, max_tables = 0;
  tables_.assign(1, 0);
  for (int64_t n = 0; n < data_.n_sequences; ++n) {
    const int64_t T = data_.seq_ptr[n + 1] - data_.seq_ptr[n];
    // pair tables of the sequence: one per position with edge attributes, else one for all, none for T = 1
    const int64_t count = has_edges_ ? T - 1 : std::min<int64_t>(T - 1, 1);
    tables_.push_back(tables_.back() + count);
    max_T = std::max(max_T, T);
    max_tables = std::max(max_tables, count);
  }
  attributes_ = merge(n_threads, data_, data_.attr_ptr, data_.attr_ids, data_.attr_values, layout_.n_attributes, 0);
  if (has_edges_)
    edges_ = merge(n_threads, data_, data_.edge_ptr, data_.edge_ids, nullptr, layout_.n_edge_attributes, 1);
  const NgramBlock& block = layout_.ngrams[0];
  all_transitions_ = block.codes == nullptr && block.n == static_cast<int64_t>(layout_.n_labels) * layout_.n_labels;
  for (int64_t k = 0; k < block.n; ++k)
    transition_places_.push_back(
        listed_ ? k : padded_pair(block.codes == nullptr ? k : block.codes[k], layout_.n_labels, YP_));
  // weights of attributes that the largest sequence touches
  int64_t max_sums = 0;
  for (int64_t n = 0; n < data_.n_sequences; ++n) {
    int64_t size = (attributes_.ptr[n + 1] - attributes_.ptr[n]) * YP_;
    if (layout_.state_ptr != nullptr) {
      size = 0;
      for (int64_t k = attributes_.ptr[n]; k < attributes_.ptr[n + 1]; ++k)
        size += layout_.state_ptr[attributes_.ids[k] + 1] - layout_.state_ptr[attributes_.ids[k]];
    }
    max_sums = std::max(max_sums, size);
  }
  //  nodes_, p_ [positions][YP]         theta and marginals of all chains
  //  pairs_, p_pairs_ [tables][table]   the same of label pairs
  //  psi_, trial_, q_, change_          one sequence: scores of S(u), trial theta, its marginals, old - new marginals
  for (Buffer<double>* rows : {&nodes_, &p_}) rows->resize(data_.n_positions * YP_);
  for (Buffer<double>* tables : {&pairs_, &p_pairs_}) tables->resize(tables_.back() * table_);
  for (Buffer<double>* each : {&entropy_, &eta_}) each->resize(data_.n_sequences);
  for (Buffer<double>* rows : {&psi_, &trial_, &q_, &change_}) rows->resize(max_T * YP_);
  for (Buffer<double>* tables : {&psi_pairs_, &trial_pairs_, &q_pairs_, &change_pairs_}) {
    tables->resize(max_tables * table_);
    tables->fill(0.0);  // the padding stays 0
  }
  sums_.resize(max_sums);
  pair_weights_.resize(pair_layout_.n_weights);
  scratch_ = std::make_unique<WorkerScratch>(layout_, max_T, has_edges_);
  job_.data = &data_;
  job_.layout = &layout_;
  job_.chain = &chain_.view();
  job_.scratch = &scratch_->view;
  job_.YP = YP_;
  job_.table = table_;
  job_.log_domain = log_domain;
  job_.psi = psi_.data();
  job_.theta = trial_.data();
  job_.theta_pairs = trial_pairs_.data();
  job_.p = q_.data();
  job_.p_pairs = q_pairs_.data();
  job_.change = change_.data();
  job_.sums = sums_.data();
}

// f(weight, place in a pair table) for each label pair that has a weight.
template <class F>
void Dual::each_transition(F f) const {
  for (std::size_t k = 0; k < transition_places_.size(); ++k)
    f(layout_.transition_offset + static_cast<int64_t>(k), transition_places_[k]);
}

// f(weight, sum of the change at the places of its edge attribute) for each weight of an edge attribute in the
// sequence.
template <class F>
void Dual::each_edge_sum(F f) {
  if (!has_edges_) return;
  const int64_t Y = layout_.n_labels;
  int64_t o = edges_.occ_ptr[job_.sequence];
  for (int64_t k = edges_.ptr[job_.sequence]; k < edges_.ptr[job_.sequence + 1]; o += edges_.counts[k], ++k) {
    const auto [first, n] = edge_weights(layout_, edges_.ids[k]);
    for (int64_t i = first; i < first + n; ++i) {
      const int64_t place = padded_pair(layout_.pair_ptr == nullptr ? i - first : layout_.pair_codes[i], Y, YP_);
      double total = 0.0;
      for (int64_t e = o; e < o + edges_.counts[k]; ++e)
        total += change_pairs_[(edges_.positions[e] - 1) * table_ + place];
      f(layout_.edge_offset + i, total);
    }
  }
}

void Dual::start(double gold, double eta) {
  eta_.fill(eta);
  // The memory of all chains is touched for the first time here, which takes longer than the computation.
  constexpr int64_t kParts = 64;
  parallel_for(n_threads_, kParts, [&](int64_t part, int) {
    const auto fill = [&](Buffer<double>& values) {
      const int64_t n = values.size();
      std::fill(values.data() + n * part / kParts, values.data() + n * (part + 1) / kParts, 0.0);
    };
    for (Buffer<double>* values : {&nodes_, &p_, &pairs_, &p_pairs_}) fill(*values);
  });
  // theta = gold [y = label]: all chains start near their labels. With gold = infinity, w and the marginals of all
  // other labels would be 0, and a mixture of potentials would never change that.
  for (int64_t t = 0; t < data_.n_positions; ++t) nodes_[t * YP_ + data_.labels[t]] = gold;
  solve();
}

// Sets: the parts of the job that depend only on the sequence.
void Dual::begin(int64_t sequence) {
  job_.sequence = sequence;
  job_.T = data_.seq_ptr[sequence + 1] - data_.seq_ptr[sequence];
  job_.n_tables = tables_[sequence + 1] - tables_[sequence];
  // Attributes of the sequence by id, each with its positions: E Phi of a weight is one sum, written once.
  const MergedIndex& all = attributes_;
  const int64_t first = all.ptr[sequence], occurrence = all.occ_ptr[sequence];
  job_.attributes = {all.ids.data() + first, all.counts.data() + first, all.positions.data() + occurrence,
                     all.values.empty() ? nullptr : all.values.data() + occurrence, all.ptr[sequence + 1] - first};
}

// Sets: psi_, psi_pairs_ at the weights S(u).
void Dual::score(double* u) {
  const int64_t Y = layout_.n_labels, T = job_.T;
  const auto weight = [&](int64_t i) { return shrunk(u[i], job_.threshold); };
  job_.u = u;
  at_level<DualKernels>().scores(job_);
  if (layout_.boundary)
    for (int64_t j = 0; j < Y; ++j) {
      psi_[j] += weight(layout_.start_offset + j);
      psi_[(T - 1) * YP_ + j] += weight(layout_.end_offset + j);
    }
  for (int64_t k = 0; k < job_.n_tables; ++k) {
    double* M = psi_pairs_.data() + k * table_;
    // Without edge attributes, entries without a weight are never written and stay 0.
    if (has_edges_) std::fill_n(M, table_, 0.0);
    if (all_transitions_) {
      for (int64_t i = 0; i < Y; ++i)
        for (int64_t j = 0; j < Y; ++j) M[i * YP_ + j] = weight(layout_.transition_offset + i * Y + j);
    } else {
      each_transition([&](int64_t i, int64_t place) { M[place] = weight(i); });
    }
    if (!has_edges_) continue;
    const int64_t position = data_.seq_ptr[job_.sequence] + k + 1;
    for (int64_t e = data_.edge_ptr[position]; e < data_.edge_ptr[position + 1]; ++e) {
      const int64_t b = data_.edge_ids[e];
      if (b >= layout_.n_edge_attributes) continue;
      const auto [first, n] = edge_weights(layout_, b);
      for (int64_t i = first; i < first + n; ++i)
        M[padded_pair(layout_.pair_ptr == nullptr ? i - first : layout_.pair_codes[i], Y, YP_)] +=
            weight(layout_.edge_offset + i);
    }
  }
}

// Sets: trial_ = theta + eta (psi - theta), and its pair tables.
void Dual::mix(double eta) {
  const double *theta = nodes_.data() + data_.seq_ptr[job_.sequence] * YP_,
               *pairs = pairs_.data() + tables_[job_.sequence] * table_;
  for (int64_t i = 0; i < job_.T * YP_; ++i) trial_[i] = theta[i] + eta * (psi_[i] - theta[i]);
  for (int64_t i = 0; i < job_.n_tables * table_; ++i) trial_pairs_[i] = pairs[i] + eta * (psi_pairs_[i] - pairs[i]);
}

// Marginals of trial_ into q_.
void Dual::solve_trial() {
  if (listed_ && job_.n_tables > 0) {
    chain_.set(trial_pairs_.data());
  } else if (!has_edges_ && job_.n_tables > 0) {
    const int64_t Y = layout_.n_labels;
    for (int64_t i = 0; i < Y; ++i) std::copy_n(trial_pairs_.data() + i * YP_, Y, pair_weights_.data() + i * Y);
    // One pair table: its exponentials are computed once for the sequence. With edge attributes they differ by
    // position, and the kernel reads trial_pairs_ directly.
    chain_.set(pair_weights_.data());
  }
  at_level<DualKernels>().solve(job_);
}

void Dual::solve() {
  for (int64_t n = 0; n < data_.n_sequences; ++n) {
    begin(n);
    const int64_t row = data_.seq_ptr[n] * YP_, rows = job_.T * YP_;
    const int64_t pair = tables_[n] * table_, pairs = job_.n_tables * table_;
    std::copy_n(nodes_.data() + row, rows, trial_.data());
    std::copy_n(pairs_.data() + pair, pairs, trial_pairs_.data());
    solve_trial();
    std::copy_n(q_.data(), rows, p_.data() + row);
    std::copy_n(q_pairs_.data(), pairs, p_pairs_.data() + pair);
    // Entropy = log Z - <theta, marginals>, which rounding may make negative for a certain chain.
    entropy_[n] = std::max(0.0, job_.log_z - job_.inner);
  }
}

double Dual::entropy() const {
  double total = 0.0;
  for (int64_t n = 0; n < data_.n_sequences; ++n) total += weight_of(n) * entropy_[n];
  return total;
}

// |E_old Phi - E_new Phi|^2. Sets: change_ = old - q_, its pair tables, and the state weights' sums.
double Dual::change_features(const double* old_nodes, const double* old_pairs) {
  const int64_t Y = layout_.n_labels, T = job_.T;
  for (int64_t i = 0; i < T * YP_; ++i) change_[i] = old_nodes[i] - q_[i];
  for (int64_t i = 0; i < job_.n_tables * table_; ++i) change_pairs_[i] = old_pairs[i] - q_pairs_[i];
  at_level<DualKernels>().change(job_);
  // State weights: the kernel writes their sums to sums_, which update() adds to u if the trial is accepted.
  double square = job_.square;
  if (layout_.boundary)
    for (int64_t j = 0; j < Y; ++j)
      square += change_[j] * change_[j] + change_[(T - 1) * YP_ + j] * change_[(T - 1) * YP_ + j];
  if ((all_transitions_ || listed_) && job_.n_tables == 1) {
    square += inner(change_pairs_.data(), change_pairs_.data(), table_);
  } else {
    each_transition([&](int64_t, int64_t place) {
      double total = 0.0;
      for (int64_t k = 0; k < job_.n_tables; ++k) total += change_pairs_[k * table_ + place];
      square += total * total;
    });
  }
  each_edge_sum([&](int64_t, double total) { square += total * total; });
  return square;
}

// |S(u + du)|^2 - |S(u)|^2 - 2 S(u) . du for du = factor * (E_old Phi - E_new Phi).
double Dual::rest_of_change(double factor, const double* u) {
  const int64_t Y = layout_.n_labels, T = job_.T;
  job_.factor = factor;
  double total = at_level<DualKernels>().rest(job_);
  const auto add = [&](int64_t i, double change) { total += rest(u[i], factor * change, job_.threshold); };
  if (layout_.boundary)
    for (int64_t j = 0; j < Y; ++j) {
      add(layout_.start_offset + j, change_[j]);
      add(layout_.end_offset + j, change_[(T - 1) * YP_ + j]);
    }
  each_transition([&](int64_t i, int64_t place) {
    double change = 0.0;
    for (int64_t k = 0; k < job_.n_tables; ++k) change += change_pairs_[k * table_ + place];
    add(i, change);
  });
  each_edge_sum(add);
  return total;
}

// u += factor * (E_old Phi - E_new Phi).
void Dual::update(double factor, double* u) {
  const int64_t Y = layout_.n_labels, T = job_.T;
  job_.factor = factor;
  at_level<DualKernels>().update(job_);
  if (layout_.boundary)
    for (int64_t j = 0; j < Y; ++j) {
      u[layout_.start_offset + j] += factor * change_[j];
      u[layout_.end_offset + j] += factor * change_[(T - 1) * YP_ + j];
    }
  if (all_transitions_ && job_.n_tables == 1) {
    double* transitions = u + layout_.transition_offset;
    for (int64_t i = 0; i < Y; ++i)
      for (int64_t j = 0; j < Y; ++j) transitions[i * Y + j] += factor * change_pairs_[i * YP_ + j];
  } else {
    each_transition([&](int64_t i, int64_t place) {
      for (int64_t k = 0; k < job_.n_tables; ++k) u[i] += factor * change_pairs_[k * table_ + place];
    });
  }
  each_edge_sum([&](int64_t i, double total) { u[i] += factor * total; });
}

// u(a) by its definition: change = [gold] - p, one sequence after another, with the kernels of a step.
void Dual::weights(double l2, double* u) {
  int64_t last = now();
  std::fill_n(u, layout_.n_weights, 0.0);
  job_.u = u;
  std::vector<double> gold, gold_pairs;
  for (int64_t n = 0; n < data_.n_sequences; ++n) {
    begin(n);
    const int64_t row = data_.seq_ptr[n] * YP_, pair = tables_[n] * table_;
    std::copy_n(p_.data() + row, job_.T * YP_, q_.data());
    std::copy_n(p_pairs_.data() + pair, job_.n_tables * table_, q_pairs_.data());
    gold.assign(static_cast<std::size_t>(job_.T * YP_), 0.0);
    gold_pairs.assign(static_cast<std::size_t>(job_.n_tables * table_), 0.0);
    const int32_t* y = data_.labels + data_.seq_ptr[n];
    for (int64_t t = 0; t < job_.T; ++t) gold[t * YP_ + y[t]] = 1.0;
    for (int64_t t = 1; t < job_.T; ++t) {
      const int64_t Y = layout_.n_labels;
      const int64_t at = listed_ ? find_ngram(layout_.ngrams[0], y[t - 1] * Y + y[t]) : y[t - 1] * YP_ + y[t];
      if (at >= 0) gold_pairs[(has_edges_ ? t - 1 : 0) * table_ + at] += 1.0;
    }
    change_features(gold.data(), gold_pairs.data());
    update(weight_of(n) / l2, u);
  }
  seconds_.gather += lap(last);
}

// Prefetches what a step on the sequence reads first: its chain and the first rows of its weights. In random order
// they are not in the cache; the kernels prefetch the rest.
void Dual::prefetch(int64_t sequence, const double* u) const {
  const auto fetch = [](const double* x, int64_t n) {
    for (int64_t i = 0; i < n; i += 8) __builtin_prefetch(x + i);
  };
  const int64_t row = data_.seq_ptr[sequence] * YP_, rows = data_.seq_ptr[sequence + 1] * YP_ - row;
  const int64_t pair = tables_[sequence] * table_,
                pairs = std::min<int64_t>(1, tables_[sequence + 1] - tables_[sequence]);
  for (const Buffer<double>* nodes : {&nodes_, &p_}) fetch(nodes->data() + row, std::min<int64_t>(rows, 64 * YP_));
  for (const Buffer<double>* tables : {&pairs_, &p_pairs_})
    fetch(tables->data() + pair, std::min<int64_t>(pairs * table_, 4096));
  if (layout_.state_ptr != nullptr) return;
  const int64_t first = attributes_.ptr[sequence], last = std::min(first + 16, attributes_.ptr[sequence + 1]);
  for (int64_t k = first; k < last; ++k)
    fetch(u + attributes_.ids[k] * static_cast<int64_t>(layout_.n_labels), layout_.n_labels);
}

Dual::Epoch Dual::epoch(const int64_t* order, int64_t n, double l1, double l2, const EtaRule& rule, double* u) {
  Epoch result;
  job_.threshold = l1 / l2;
  int64_t last = now();
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = order[k];
    begin(i);
    score(u);
    if (k + 1 < n) prefetch(order[k + 1], u);
    seconds_.scores += lap(last);
    const int64_t rows = job_.T * YP_, pairs = job_.n_tables * table_;
    double* p = p_.data() + data_.seq_ptr[i] * YP_;
    double* p_pairs = p_pairs_.data() + tables_[i] * table_;
    const double c = weight_of(i);
    for (int trial = 0; trial < rule.max_trials; ++trial) {
      mix(eta_[i]);
      solve_trial();
      ++result.trials;
      seconds_.lattice += lap(last);
      // Entropy = log Z - <theta, marginals>
      const double entropy = std::max(0.0, job_.log_z - job_.inner);
      const double square = change_features(p, p_pairs);
      const double moved =
          inner(psi_.data(), change_.data(), rows) + inner(psi_pairs_.data(), change_pairs_.data(), pairs);
      // dD as in ascent.hpp, with <psi, change> in `moved`.
      const double penalty = l1 > 0.0 ? 0.5 * l2 * rest_of_change(c / l2, u) : 0.5 * c * c / l2 * square;
      const double gain = c * (entropy - entropy_[i] - moved) - penalty;
      // NaN fails the test below and shrinks eta, like a decrease of D.
      const double rounding = kRounding * c * (std::fabs(job_.log_z) + std::fabs(job_.inner) + entropy_[i]);
      if (!(gain >= -rounding)) {
        eta_[i] *= rule.shrink;
        seconds_.gather += lap(last);
        continue;
      }
      // Accepted: update u immediately, so u = u(a) before the next sequence.
      update(c / l2, u);
      std::copy_n(trial_.data(), rows, nodes_.data() + data_.seq_ptr[i] * YP_);
      std::copy_n(trial_pairs_.data(), pairs, pairs_.data() + tables_[i] * table_);
      std::copy_n(q_.data(), rows, p);
      std::copy_n(q_pairs_.data(), pairs, p_pairs);
      entropy_[i] = entropy;
      eta_[i] = std::min(1.0, eta_[i] * rule.grow);
      ++result.accepted;
      result.gain += gain;
      seconds_.gather += lap(last);
      break;
    }
  }
  return result;
}

}  // namespace crfit
