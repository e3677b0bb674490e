#include "online.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "vectors.hpp"

namespace crfit {

namespace {

constexpr double kSmallestScale = 1e-9;  // of w = scale v
constexpr double kSmallestScaleOfSum = 1e-3;
constexpr int kHotLabels = 3;     // attributes with at least so many observed labels get a dense row
constexpr int64_t kBlock = 4096;  // attributes, or weights of edge attributes, that are copied by one task
constexpr int64_t kTimed = 128;   // positions from one sequence whose phases are timed to the next

int64_t blocks(int64_t n) { return (n + kBlock - 1) / kBlock; }

void zeros(Buffer<double>& buffer, int64_t n) {
  buffer.resize(n);
  buffer.fill(0.0);
}

}  // namespace

double Rate::at(int64_t k, int64_t N, double l2) const {
  const double epochs = static_cast<double>(k) / static_cast<double>(N);
  switch (schedule) {
    case kInverse: return eta0 / (1.0 + epochs);
    case kExponential: return eta0 * std::pow(alpha, epochs);
    case kBottou: return eta0 / (1.0 + eta0 * l2 * epochs);
    default: return eta0;
  }
}

Online::Online(const DataView& data, const LayoutView& layout, int n_threads)
    : data_(data),
      layout_(layout),
      n_threads_(n_threads),
      YP_(padded_labels(layout.n_labels)),
      ngram_size_(ngram_size(layout)) {
  const int Y = layout.n_labels;
  int64_t max_T = 1;
  has_edges_ = data.edge_ptr != nullptr && layout.n_edge_attributes > 0;
  for (int64_t i = 0; i < data.n_sequences; ++i) {
    const int64_t begin = data.seq_ptr[i], end = data.seq_ptr[i + 1];
    max_T = std::max(max_T, end - begin);
  }
  if (layout.state_ptr == nullptr) {
    edge_offset_ = layout.n_attributes * YP_;
  } else {
    hot_row_.assign(static_cast<std::size_t>(layout.n_attributes), -1);
    int32_t n_hot = 0;
    for (int64_t a = 0; a < layout.n_attributes; ++a)
      if (layout.state_ptr[a + 1] - layout.state_ptr[a] >= kHotLabels) hot_row_[a] = n_hot++;
    hot_offset_ = (layout.transition_offset + 7) / 8 * 8;
    edge_offset_ = hot_offset_ + static_cast<int64_t>(n_hot) * YP_;
  }
  zeros(v_, edge_offset_ + layout.n_weights - layout.edge_offset);
  for (Buffer<double>* table : {&tr_, &mask_}) zeros(*table, ngram_size_);
  if (layout.order == 1)
    for (Buffer<double>* matrix : {&E_, &ET_}) zeros(*matrix, ngram_size_);
  else
    histories_ = std::make_unique<NgramTables>(layout);
  each_ngram(mask_, [](int64_t, double& mask) { mask = 1.0; });
  for (Buffer<double>* row : {&start_, &end_}) zeros(*row, YP_);

  view_.layout = &layout_;
  view_.Y = Y;
  view_.YP = YP_;
  view_.w = v_.data();
  view_.row_stride = YP_;
  view_.direct_rows = layout.n_attributes;
  view_.hot_row = hot_row_.data();
  view_.hot_rows = v_.data() + hot_offset_;
  view_.edges = v_.data() + edge_offset_;
  view_.ngram_size = ngram_size_;
  view_.tr = tr_.data();
  view_.E = E_.data();
  view_.ET = ET_.data();
  if (layout.boundary) {
    view_.start = start_.data();
    view_.end = end_.data();
  }
  for (int worker = 0; worker < n_threads; ++worker) scratch_.emplace_back(layout_, max_T, has_edges_);
  finish_dense(0, 1.0, 0.0);
}

// Calls copy(block, plain, stored, n) for runs of n weights of attributes: first place in the plain vector, first place
// in v. Blocks are in order and each is walked by one task.
template <class Copy>
void Online::each_run(const Copy& copy) {
  const int64_t Y = layout_.n_labels, n_edges = layout_.n_weights - layout_.edge_offset;
  const int64_t n_blocks = blocks(layout_.n_attributes);
  parallel_for(n_threads_, n_blocks + blocks(n_edges), [&](int64_t block, int) {
    if (block >= n_blocks) {
      const int64_t first = (block - n_blocks) * kBlock;
      return copy(block, layout_.edge_offset + first, edge_offset_ + first, std::min(kBlock, n_edges - first));
    }
    const int64_t last = std::min(layout_.n_attributes, (block + 1) * kBlock);
    for (int64_t a = block * kBlock; a < last; ++a) {
      if (layout_.state_ptr == nullptr) {
        copy(block, a * Y, a * YP_, Y);
        continue;
      }
      const int64_t begin = layout_.state_ptr[a], end = layout_.state_ptr[a + 1];
      if (hot_row_[a] < 0) {
        copy(block, begin, begin, end - begin);
      } else {
        const int64_t row = hot_offset_ + static_cast<int64_t>(hot_row_[a]) * YP_;
        for (int64_t i = begin; i < end; ++i) copy(block, i, row + layout_.state_labels[i], 1);
      }
    }
  });
}

// Calls copy(plain, dense) for each transition weight: its place in the plain vector, and our entry.
template <class Copy>
void Online::each_ngram(Buffer<double>& tr, const Copy& copy) {
  const int64_t Y = layout_.n_labels;
  for (int m = 1; m <= layout_.order; ++m) {
    const NgramBlock& block = layout_.ngrams[m - 1];
    double* table = tr.data() + table_offset(Y, YP_, m);
    for (int64_t k = 0; k < block.n; ++k)
      copy(block.offset + k, table[padded_pair(block.codes == nullptr ? k : block.codes[k], Y, YP_)]);
  }
}

// The same for each transition and boundary weight.
template <class Copy>
void Online::each_dense(Buffer<double>& tr, Buffer<double>& start, Buffer<double>& end, const Copy& copy) {
  each_ngram(tr, copy);
  if (!layout_.boundary) return;
  for (int j = 0; j < layout_.n_labels; ++j) copy(layout_.start_offset + j, start[j]);
  for (int j = 0; j < layout_.n_labels; ++j) copy(layout_.end_offset + j, end[j]);
}

void Online::set(const double* w) {
  int64_t last = now();
  double* v = v_.data();
  each_run([=](int64_t, int64_t plain, int64_t stored, int64_t n) { std::copy_n(w + plain, n, v + stored); });
  each_dense(tr_, start_, end_, [w](int64_t plain, double& dense) { dense = w[plain]; });
  view_.scale = scale_ = 1.0;
  summing_ = false;
  lag_.resize(0);
  finish_dense(0, 1.0, 0.0);
  seconds_.scores += lap(last);
}

// Also makes the scale 1, so that a run which is set to these weights goes on with the same bytes.
double Online::get(double* out) {
  int64_t last = now();
  if (summing_) restart_lag();
  double* v = v_.data();
  const double scale = scale_;
  std::vector<double> squares(
      static_cast<std::size_t>(blocks(layout_.n_attributes) + blocks(layout_.n_weights - layout_.edge_offset)), 0.0);
  each_run([&](int64_t block, int64_t plain, int64_t stored, int64_t n) {
    double square = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      const double x = scale * v[stored + i];
      v[stored + i] = out[plain + i] = x;
      square += x * x;
    }
    squares[block] += square;
  });
  double total = 0.0;
  for (const double square : squares) total += square;
  each_dense(tr_, start_, end_, [&](int64_t plain, double& dense) {
    out[plain] = dense;
    total += dense * dense;
  });
  view_.scale = scale_ = 1.0;
  seconds_.gather += lap(last);
  return total;
}

// v <- scale v, with a scale of 1 from then on.
void Online::fold() {
  if (summing_) restart_lag();
  scale_into(n_threads_, v_.size(), scale_, v_.data(), v_.data());
  view_.scale = scale_ = 1.0;
}

// lag <- -(sum of the weights so far), S <- 0: both grow while the scale falls, and their difference would lose digits.
void Online::restart_lag() {
  axpy(n_threads_, v_.size(), lag_.data(), -scale_sum_, v_.data(), lag_.data());
  scale_sum_ = 0.0;
}

void Online::begin_sum(const double* total) {
  for (Buffer<double>* dense : {&tr_total_, &start_total_, &end_total_}) zeros(*dense, tr_.size());  // rows are shorter
  zeros(lag_, v_.size());
  scale_sum_ = 0.0;
  summing_ = true;
  if (total == nullptr) return;
  double* lag = lag_.data();
  each_run([=](int64_t, int64_t plain, int64_t stored, int64_t n) {
    for (int64_t i = 0; i < n; ++i) lag[stored + i] = -total[plain + i];
  });
  each_dense(tr_total_, start_total_, end_total_, [=](int64_t plain, double& dense) { dense = total[plain]; });
}

void Online::get_sum(double* out) {
  int64_t last = now();
  restart_lag();
  const double* lag = lag_.data();
  each_run([=](int64_t, int64_t plain, int64_t stored, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[plain + i] = -lag[stored + i];
  });
  each_dense(tr_total_, start_total_, end_total_, [=](int64_t plain, double& dense) { out[plain] = dense; });
  seconds_.gather += lap(last);
}

double Online::visit(const int64_t* sequences, int64_t n, int64_t batch, const Rate& rate, double l2, int64_t k) {
  int64_t last = now(), left = 0;
  batch = std::min(batch, n);
  // A power of two, and more parts than threads, so that a helper which is late does not hold up the others.
  const int n_parts = batch > 1 && n_threads_ > 1 ? static_cast<int>(std::bit_ceil(2u * n_threads_)) : 0;
  make_room(sequences, n, batch, n_parts);
  PhaseSeconds busy;
  double total = 0.0;
  Team team;
  team.lead(n_parts > 0 ? n_threads_ : 1, [&] {
    for (int64_t begin = 0; begin < n && std::isfinite(total); begin += batch) {
      const int64_t size = std::min(batch, n - begin);
      const double eta = rate.at(k + begin, data_.n_sequences, l2);
      const double decay = 1.0 - eta * l2 * static_cast<double>(size) / static_cast<double>(data_.n_sequences);
      const double gain = eta / (scale_ * decay);  // expectations are at the old weights, the sum is of the new scale
      const int64_t positions = place_slots(sequences + begin, size, n_parts);
      const bool timed = left <= 0;
      if (timed) left = kTimed;
      left -= positions;
      team.run(size, [&](int64_t task, int worker) {
        const int64_t slot = n_parts > 0 ? longest_first_[task] : task;
        OnlineSolveJob job;
        job.data = &data_;
        job.weights = &view_;
        job.scratch = &scratch_[worker].view;
        job.slot = &slots_[slot];
        job.gain = gain;
        job.n_parts = n_parts;
        const int64_t later = task + (n_parts > 0 ? n_threads_ : 1);
        if (later < size) job.next_sequence = slots_[n_parts > 0 ? longest_first_[later] : later].sequence;
        job.busy = timed && task == 0 ? &busy : nullptr;
        kernels().online_solve(job);
      });
      const double lag_factor = scale_sum_;
      scale_ *= decay;
      scale_sum_ += scale_;
      int64_t before = timed ? now() : 0;
      team.run(1 + std::max(1, n_parts), [&](int64_t task, int) {
        if (task == 0) return finish_dense(size, decay, eta);
        OnlineUpdateJob job;
        job.data = &data_;
        job.layout = &layout_;
        job.YP = YP_;
        job.slots = slots_.data();
        job.n_slots = size;
        job.part = static_cast<int>(task) - 1;
        job.n_parts = n_parts;
        job.v = v_.data();
        job.lag = summing_ ? lag_.data() : nullptr;
        job.lag_factor = lag_factor;
        job.hot_row = hot_row_.data();
        job.hot_offset = hot_offset_;
        job.edge_offset = edge_offset_;
        job.next_sequence = n_parts == 0 && begin + size < n ? sequences[begin + size] : -1;
        kernels().online_update(job);
      });
      if (timed) busy.gather += lap(before) / static_cast<double>(size);
      view_.scale = scale_;
      if (scale_ < (summing_ ? kSmallestScaleOfSum : kSmallestScale)) fold();
      for (int64_t slot = 0; slot < size; ++slot) total += slots_[slot].loss;
    }
  });
  const double wall = lap(last), all = busy.scores + busy.lattice + busy.gather;
  if (all > 0.0) {
    seconds_.scores += wall * busy.scores / all;
    seconds_.lattice += wall * busy.lattice / all;
    seconds_.gather += wall * busy.gather / all;
  }
  return total;
}

// Temporaries for the largest step of a visit.
void Online::make_room(const int64_t* sequences, int64_t n, int64_t batch, int n_parts) {
  const int64_t pair_size = static_cast<int64_t>(layout_.n_labels) * YP_;
  int64_t most_positions = 0, most_occurrences = 0;
  for (int64_t begin = 0; begin < n; begin += batch) {
    int64_t positions = 0, occurrences = 0;
    for (int64_t i = begin; i < std::min(n, begin + batch); ++i) {
      const int64_t first = data_.seq_ptr[sequences[i]], last = data_.seq_ptr[sequences[i] + 1];
      positions += last - first;
      occurrences += data_.attr_ptr[last] - data_.attr_ptr[first];
    }
    most_positions = std::max(most_positions, positions);
    most_occurrences = std::max(most_occurrences, occurrences);
  }
  if (residual_.size() < most_positions * YP_) residual_.resize(most_positions * YP_);
  if (has_edges_ && pair_residual_.size() < most_positions * pair_size)
    pair_residual_.resize(most_positions * pair_size);
  if (pairs_.size() < batch * ngram_size_) pairs_.resize(batch * ngram_size_);
  const auto grow = [](auto& items, int64_t count) {
    if (static_cast<int64_t>(items.size()) < count) items.resize(static_cast<std::size_t>(count));
  };
  grow(touched_, most_occurrences * n_parts);
  grow(n_touched_, batch * n_parts);
  grow(slots_, batch);
}

// Gives the sequences of a step their temporaries; returns how many positions they have.
int64_t Online::place_slots(const int64_t* sequences, int64_t n, int n_parts) {
  const int64_t pair_size = static_cast<int64_t>(layout_.n_labels) * YP_;
  int64_t positions = 0, occurrences = 0;
  for (int64_t i = 0; i < n; ++i) {
    OnlineSlot& slot = slots_[i];
    const int64_t first = data_.seq_ptr[sequences[i]], last = data_.seq_ptr[sequences[i] + 1];
    slot.sequence = sequences[i];
    slot.residual = residual_.data() + positions * YP_;
    slot.pair_residual = has_edges_ ? pair_residual_.data() + positions * pair_size : nullptr;
    slot.pairs = pairs_.data() + i * ngram_size_;
    slot.touched = touched_.data() + occurrences * n_parts;
    slot.n_touched = n_touched_.data() + i * n_parts;
    positions += last - first;
    occurrences += data_.attr_ptr[last] - data_.attr_ptr[first];
  }
  if (n_parts > 0) {
    longest_first_.resize(static_cast<std::size_t>(n));
    std::iota(longest_first_.begin(), longest_first_.end(), 0);
    std::sort(longest_first_.begin(), longest_first_.end(), [&](int64_t a, int64_t b) {
      const int64_t *p = data_.seq_ptr + sequences[a], *q = data_.seq_ptr + sequences[b];
      return p[1] - p[0] > q[1] - q[0];
    });
  }
  return positions;
}

// Transitions and boundary weights after a step; with no slots what depends on them is made anew.
void Online::finish_dense(int64_t n_slots, double decay, double eta) {
  OnlineTransitionJob job;
  job.Y = layout_.n_labels;
  job.YP = YP_;
  job.slots = slots_.data();
  job.n_slots = n_slots;
  job.mask = mask_.data();
  job.decay = decay;
  job.rate = eta;
  job.size = ngram_size_;
  job.tr = tr_.data();
  job.E = histories_ == nullptr ? E_.data() : nullptr;
  job.ET = ET_.data();
  job.total = summing_ && n_slots > 0 ? tr_total_.data() : nullptr;
  job.tr_max = &view_.tr_max;
  if (histories_ != nullptr && n_slots > 0) {  // what longer n-grams say about the shorter ones that they end with
    double* total = slots_[0].pairs;
    for (int64_t slot = 1; slot < n_slots; ++slot)
      for (int64_t i = 0; i < ngram_size_; ++i) total[i] += slots_[slot].pairs[i];
    add_longer_ngrams(layout_, total);
    job.n_slots = 1;
  }
  if (n_slots == 0 || layout_.start_offset > layout_.transition_offset) {
    kernels().online_transitions(job);
    if (histories_ != nullptr) {
      histories_->set_own(tr_.data());
      histories_->show(view_);
    }
  }
  if (!layout_.boundary || n_slots == 0) return;
  for (int j = 0; j < layout_.n_labels; ++j) {
    double first = 0.0, last = 0.0;
    for (int64_t i = 0; i < n_slots; ++i) {
      const OnlineSlot& slot = slots_[i];
      const int64_t T = data_.seq_ptr[slot.sequence + 1] - data_.seq_ptr[slot.sequence];
      first += slot.residual[j];
      last += slot.residual[(T - 1) * YP_ + j];
    }
    start_[j] = decay * start_[j] + scale_ * first;  // residuals hold eta / scale
    end_[j] = decay * end_[j] + scale_ * last;
    if (summing_) start_total_[j] += start_[j];
    if (summing_) end_total_[j] += end_[j];
  }
}

double Online::loss(const int64_t* sequences, int64_t n) {
  constexpr int64_t kPart = 8;  // sequences per task
  int64_t last = now();
  const int64_t n_tasks = (n + kPart - 1) / kPart;
  std::vector<double> losses(static_cast<std::size_t>(n_tasks), 0.0);
  std::vector<PhaseSeconds> busy(losses.size());
  parallel_for(n_threads_, n_tasks, [&](int64_t task, int worker) {
    ChunkJob job;
    job.data = &data_;
    job.weights = &view_;
    job.sequences = sequences + task * kPart;
    job.n_sequences = std::min(kPart, n - task * kPart);
    job.scratch = &scratch_[worker].view;
    job.loss = &losses[task];
    job.busy = &busy[task];
    kernels().loss(job);
  });
  double total = 0.0;
  for (const double part : losses) total += part;
  seconds_.lattice += lap(last);
  return total;
}

}  // namespace crfit
