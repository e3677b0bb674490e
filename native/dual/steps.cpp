#include "dual/steps.hpp"

#include <algorithm>
#include <cmath>

#include "base/dispatch.hpp"

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

DualChains::DualChains(const DataView& data, const LayoutView& layout, int n_threads)
    : data(data),
      layout(layout),
      has_edges(data.edge_ptr != nullptr && layout.n_edge_attributes > 0),
      listed(!has_edges && few_pairs(layout)),
      pair_layout(label_pairs(layout, listed, pair_block)),
      YP(padded_labels(layout.n_labels)),
      table(listed ? (layout.ngrams[0].n + 7) / 8 * 8 : static_cast<int64_t>(layout.n_labels) * YP) {
  tables.assign(1, 0);
  for (int64_t n = 0; n < data.n_sequences; ++n) {
    const int64_t T = data.seq_ptr[n + 1] - data.seq_ptr[n];
    // pair tables of the sequence: one per position with edge attributes, else one for all, none for T = 1
    const int64_t count = has_edges ? T - 1 : std::min<int64_t>(T - 1, 1);
    tables.push_back(tables.back() + count);
    max_T = std::max(max_T, T);
    max_tables = std::max(max_tables, count);
  }
  attributes = merge(n_threads, data, data.attr_ptr, data.attr_ids, data.attr_values, layout.n_attributes, 0);
  if (has_edges) edges = merge(n_threads, data, data.edge_ptr, data.edge_ids, nullptr, layout.n_edge_attributes, 1);
  const NgramBlock& block = layout.ngrams[0];
  all_transitions = block.codes == nullptr && block.n == static_cast<int64_t>(layout.n_labels) * layout.n_labels;
  for (int64_t k = 0; k < block.n; ++k)
    transition_places.push_back(listed ? k
                                       : padded_pair(block.codes == nullptr ? k : block.codes[k], layout.n_labels, YP));
  // weights of attributes that the largest sequence touches
  for (int64_t n = 0; n < data.n_sequences; ++n) {
    int64_t size = (attributes.ptr[n + 1] - attributes.ptr[n]) * YP;
    if (layout.state_ptr != nullptr) {
      size = 0;
      for (int64_t k = attributes.ptr[n]; k < attributes.ptr[n + 1]; ++k)
        size += layout.state_ptr[attributes.ids[k] + 1] - layout.state_ptr[attributes.ids[k]];
    }
    max_sums = std::max(max_sums, size);
  }
  for (Buffer<double>* rows : {&nodes, &p}) rows->resize(data.n_positions * YP);
  for (Buffer<double>* values : {&pairs, &p_pairs}) values->resize(tables.back() * table);
  for (Buffer<double>* each : {&entropy, &eta}) each->resize(data.n_sequences);
}

DualSteps::DualSteps(DualChains& chains, bool log_domain)
    : chains_(chains),
      data_(chains.data),
      layout_(chains.layout),
      YP_(chains.YP),
      table_(chains.table),
      chain_(chains.pair_layout, true, PairOptions{PairOptions::kOneSequence, false}),
      scratch_(chains.layout, chains.max_T, chains.has_edges) {
  for (Buffer<double>* rows : {&psi_, &trial_, &q_, &change_}) rows->resize(chains.max_T * YP_);
  for (Buffer<double>* tables : {&psi_pairs_, &trial_pairs_, &q_pairs_, &change_pairs_}) {
    tables->resize(chains.max_tables * table_);
    tables->fill(0.0);  // the padding stays 0
  }
  sums_.resize(chains.max_sums);
  pair_weights_.resize(chains.pair_layout.n_weights);
  job_.data = &data_;
  job_.layout = &layout_;
  job_.chain = &chain_.view();
  job_.scratch = &scratch_.view;
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
void DualSteps::each_transition(F f) const {
  for (std::size_t k = 0; k < chains_.transition_places.size(); ++k)
    f(layout_.transition_offset + static_cast<int64_t>(k), chains_.transition_places[k]);
}

// f(weight, sum of the change at the places of its edge attribute) for each weight of an edge attribute in the
// sequence.
template <class F>
void DualSteps::each_edge_sum(F f) {
  if (!chains_.has_edges) return;
  const int64_t Y = layout_.n_labels;
  int64_t o = chains_.edges.occ_ptr[job_.sequence];
  for (int64_t k = chains_.edges.ptr[job_.sequence]; k < chains_.edges.ptr[job_.sequence + 1];
       o += chains_.edges.counts[k], ++k) {
    const auto [first, n] = edge_weights(layout_, chains_.edges.ids[k]);
    for (int64_t i = first; i < first + n; ++i) {
      const int64_t place = padded_pair(layout_.pair_ptr == nullptr ? i - first : layout_.pair_codes[i], Y, YP_);
      double total = 0.0;
      for (int64_t e = o; e < o + chains_.edges.counts[k]; ++e)
        total += change_pairs_[(chains_.edges.positions[e] - 1) * table_ + place];
      f(layout_.edge_offset + i, total);
    }
  }
}

// Sets: the parts of the job that depend only on the sequence.
void DualSteps::begin(int64_t sequence) {
  job_.sequence = sequence;
  job_.T = data_.seq_ptr[sequence + 1] - data_.seq_ptr[sequence];
  job_.n_tables = chains_.tables[sequence + 1] - chains_.tables[sequence];
  // Attributes of the sequence by id, each with its positions: E Phi of a weight is one sum, written once.
  const MergedIndex& all = chains_.attributes;
  const int64_t first = all.ptr[sequence], occurrence = all.occ_ptr[sequence];
  job_.attributes = {all.ids.data() + first, all.counts.data() + first, all.positions.data() + occurrence,
                     all.values.empty() ? nullptr : all.values.data() + occurrence, all.ptr[sequence + 1] - first};
}

// Sets: psi_, psi_pairs_ at the weights S(u).
void DualSteps::score(double* u) {
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
    if (chains_.has_edges) std::fill_n(M, table_, 0.0);
    if (chains_.all_transitions) {
      for (int64_t i = 0; i < Y; ++i)
        for (int64_t j = 0; j < Y; ++j) M[i * YP_ + j] = weight(layout_.transition_offset + i * Y + j);
    } else {
      each_transition([&](int64_t i, int64_t place) { M[place] = weight(i); });
    }
    if (!chains_.has_edges) continue;
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
void DualSteps::mix(double eta) {
  const double *theta = chains_.nodes.data() + data_.seq_ptr[job_.sequence] * YP_,
               *pairs = chains_.pairs.data() + chains_.tables[job_.sequence] * table_;
  for (int64_t i = 0; i < job_.T * YP_; ++i) trial_[i] = theta[i] + eta * (psi_[i] - theta[i]);
  for (int64_t i = 0; i < job_.n_tables * table_; ++i) trial_pairs_[i] = pairs[i] + eta * (psi_pairs_[i] - pairs[i]);
}

// Marginals of trial_ into q_.
void DualSteps::solve_trial() {
  if (chains_.listed && job_.n_tables > 0) {
    chain_.set(trial_pairs_.data());
  } else if (!chains_.has_edges && job_.n_tables > 0) {
    const int64_t Y = layout_.n_labels;
    for (int64_t i = 0; i < Y; ++i) std::copy_n(trial_pairs_.data() + i * YP_, Y, pair_weights_.data() + i * Y);
    // One pair table: its exponentials are computed once for the sequence. With edge attributes they differ by
    // position, and the kernel reads trial_pairs_ directly.
    chain_.set(pair_weights_.data());
  }
  at_level<DualKernels>().solve(job_);
}

void DualSteps::solve(int64_t n) {
  begin(n);
  const int64_t row = data_.seq_ptr[n] * YP_, rows = job_.T * YP_;
  const int64_t pair = chains_.tables[n] * table_, pairs = job_.n_tables * table_;
  std::copy_n(chains_.nodes.data() + row, rows, trial_.data());
  std::copy_n(chains_.pairs.data() + pair, pairs, trial_pairs_.data());
  solve_trial();
  std::copy_n(q_.data(), rows, chains_.p.data() + row);
  std::copy_n(q_pairs_.data(), pairs, chains_.p_pairs.data() + pair);
  // Entropy = log Z - <theta, marginals>, which rounding may make negative for a certain chain.
  chains_.entropy[n] = std::max(0.0, job_.log_z - job_.inner);
}

// |E_old Phi - E_new Phi|^2. Sets: change_ = old - q_, its pair tables, and the state weights' sums.
double DualSteps::change_features(const double* old_nodes, const double* old_pairs) {
  const int64_t Y = layout_.n_labels, T = job_.T;
  for (int64_t i = 0; i < T * YP_; ++i) change_[i] = old_nodes[i] - q_[i];
  for (int64_t i = 0; i < job_.n_tables * table_; ++i) change_pairs_[i] = old_pairs[i] - q_pairs_[i];
  at_level<DualKernels>().change(job_);
  // State weights: the kernel writes their sums to sums_, which update() adds to u if the trial is accepted.
  double square = job_.square;
  if (layout_.boundary)
    for (int64_t j = 0; j < Y; ++j)
      square += change_[j] * change_[j] + change_[(T - 1) * YP_ + j] * change_[(T - 1) * YP_ + j];
  if ((chains_.all_transitions || chains_.listed) && job_.n_tables == 1) {
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
double DualSteps::rest_of_change(double factor, const double* u) {
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
void DualSteps::update(double factor, double* u) {
  const int64_t Y = layout_.n_labels, T = job_.T;
  job_.factor = factor;
  at_level<DualKernels>().update(job_);
  if (layout_.boundary)
    for (int64_t j = 0; j < Y; ++j) {
      u[layout_.start_offset + j] += factor * change_[j];
      u[layout_.end_offset + j] += factor * change_[(T - 1) * YP_ + j];
    }
  if (chains_.all_transitions && job_.n_tables == 1) {
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

// By its definition: change = [gold] - p, with the kernels of a step.
void DualSteps::add_weights(int64_t n, double l2, double* u) {
  const int64_t Y = layout_.n_labels;
  job_.u = u;
  begin(n);
  const int64_t row = data_.seq_ptr[n] * YP_, pair = chains_.tables[n] * table_;
  std::copy_n(chains_.p.data() + row, job_.T * YP_, q_.data());
  std::copy_n(chains_.p_pairs.data() + pair, job_.n_tables * table_, q_pairs_.data());
  std::vector<double> gold(static_cast<std::size_t>(job_.T * YP_), 0.0);
  std::vector<double> gold_pairs(static_cast<std::size_t>(job_.n_tables * table_), 0.0);
  const int32_t* y = data_.labels + data_.seq_ptr[n];
  for (int64_t t = 0; t < job_.T; ++t) gold[t * YP_ + y[t]] = 1.0;
  for (int64_t t = 1; t < job_.T; ++t) {
    const int64_t at = chains_.listed ? find_ngram(layout_.ngrams[0], y[t - 1] * Y + y[t]) : y[t - 1] * YP_ + y[t];
    if (at >= 0) gold_pairs[(chains_.has_edges ? t - 1 : 0) * table_ + at] += 1.0;
  }
  change_features(gold.data(), gold_pairs.data());
  update(chains_.weight_of(n) / l2, u);
}

// Prefetches what a step on the sequence reads first: its chain and the first rows of its weights. In random order
// they are not in the cache; the kernels prefetch the rest.
void DualSteps::prefetch(int64_t sequence, const double* u) const {
  const auto fetch = [](const double* x, int64_t n) {
    for (int64_t i = 0; i < n; i += 8) __builtin_prefetch(x + i);
  };
  const int64_t row = data_.seq_ptr[sequence] * YP_, rows = data_.seq_ptr[sequence + 1] * YP_ - row;
  const int64_t pair = chains_.tables[sequence] * table_,
                pairs = std::min<int64_t>(1, chains_.tables[sequence + 1] - chains_.tables[sequence]);
  for (const Buffer<double>* nodes : {&chains_.nodes, &chains_.p})
    fetch(nodes->data() + row, std::min<int64_t>(rows, 64 * YP_));
  for (const Buffer<double>* tables : {&chains_.pairs, &chains_.p_pairs})
    fetch(tables->data() + pair, std::min<int64_t>(pairs * table_, 4096));
  if (layout_.state_ptr != nullptr) return;
  const int64_t first = chains_.attributes.ptr[sequence],
                last = std::min(first + 16, chains_.attributes.ptr[sequence + 1]);
  for (int64_t k = first; k < last; ++k)
    fetch(u + chains_.attributes.ids[k] * static_cast<int64_t>(layout_.n_labels), layout_.n_labels);
}

DualEpoch DualSteps::epoch(const int64_t* order, int64_t n, double l1, double l2, const EtaRule& rule, double* u) {
  DualEpoch result;
  job_.threshold = l1 / l2;
  int64_t last = now();
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = order[k];
    begin(i);
    score(u);
    if (k + 1 < n) prefetch(order[k + 1], u);
    seconds.scores += lap(last);
    const int64_t rows = job_.T * YP_, pairs = job_.n_tables * table_;
    double* p = chains_.p.data() + data_.seq_ptr[i] * YP_;
    double* p_pairs = chains_.p_pairs.data() + chains_.tables[i] * table_;
    const double c = chains_.weight_of(i);
    for (int trial = 0; trial < rule.max_trials; ++trial) {
      mix(chains_.eta[i]);
      solve_trial();
      ++result.trials;
      seconds.lattice += lap(last);
      // Entropy = log Z - <theta, marginals>
      const double entropy = std::max(0.0, job_.log_z - job_.inner);
      const double square = change_features(p, p_pairs);
      const double moved =
          inner(psi_.data(), change_.data(), rows) + inner(psi_pairs_.data(), change_pairs_.data(), pairs);
      // dD as in ascent.hpp, with <psi, change> in `moved`.
      const double penalty = l1 > 0.0 ? 0.5 * l2 * rest_of_change(c / l2, u) : 0.5 * c * c / l2 * square;
      const double gain = c * (entropy - chains_.entropy[i] - moved) - penalty;
      // NaN fails the test below and shrinks eta, like a decrease of D.
      const double rounding = kRounding * c * (std::fabs(job_.log_z) + std::fabs(job_.inner) + chains_.entropy[i]);
      if (!(gain >= -rounding)) {
        chains_.eta[i] *= rule.shrink;
        seconds.gather += lap(last);
        continue;
      }
      // Accepted: update u immediately, so u = u(a) before the next sequence.
      update(c / l2, u);
      std::copy_n(trial_.data(), rows, chains_.nodes.data() + data_.seq_ptr[i] * YP_);
      std::copy_n(trial_pairs_.data(), pairs, chains_.pairs.data() + chains_.tables[i] * table_);
      std::copy_n(q_.data(), rows, p);
      std::copy_n(q_pairs_.data(), pairs, p_pairs);
      chains_.entropy[i] = entropy;
      chains_.eta[i] = std::min(1.0, chains_.eta[i] * rule.grow);
      ++result.accepted;
      result.gain += gain;
      seconds.gather += lap(last);
      break;
    }
  }
  return result;
}

}  // namespace crfit
