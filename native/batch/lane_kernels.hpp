// Loops over a chunk of sequences, several at once (lane_lattice.hpp). A sequence that would under- or overflow is
// computed again on its own in the log domain (chunk_kernels.hpp). Included by per-level files only.
#pragma once

#include "batch/chunk_kernels.hpp"
#include "lattice/history_tangent.hpp"
#include "lattice/lane_tangent.hpp"
#include "lattice/sequence.hpp"
#include "lattice/tangent.hpp"

namespace {

template <bool kHistories>
using Single = std::conditional_t<kHistories, HistoryWorker<0>, SequenceWorker<0>>;
template <bool kHistories>
using SingleTangent = std::conditional_t<kHistories, HistoryTangentWorker<0>, TangentWorker<0>>;

// Single sequences of a chunk, created when the first is needed: most chunks need none.
template <class Worker>
class Rescue {
 public:
  Rescue(const ChunkJob& job) : job_(job) {}
  // Calls compute(worker, k, sample) for the lanes of a group whose bit is set.
  template <class Lattice, class Make, class Compute>
  void each(const Lattice& lanes, uint32_t bits, int64_t first, const Make& make, const Compute& compute) {
    for (int l = 0; l < lanes.n; ++l) {
      if ((bits >> l & 1) == 0) continue;
      if (!started_) clear_sums(*job_.weights, *job_.scratch);
      started_ = true;
      Worker worker = make();
      Sample sample;
      compute(worker, first + lanes.slot[l], sample);
    }
  }
  void close() const {
    if (started_) close_sums(*job_.weights, *job_.scratch, job_.pair_sum);
  }

 private:
  const ChunkJob& job_;
  bool started_ = false;
};

// Calls body(lanes, first) for each group of a chunk, with the index of its first sequence.
template <int N, class Lattice, class Body>
void each_group(const ChunkJob& job, Lattice& lanes, const Body& body) {
  constexpr int G = N * kLanes;
  crfit::PhaseSeconds busy;
  const int64_t begin = crfit::now();
  for (int64_t k = 0; k < job.n_sequences; k += G) {
    const int count = static_cast<int>(job.n_sequences - k < G ? job.n_sequences - k : G);
    lanes.take(job.sequences + k, count);
    body(k);
  }
  if (job.far_rows) finish_far_stores();
  busy.scores = lanes.score_seconds();
  busy.lattice = 1e-9 * static_cast<double>(crfit::now() - begin) - busy.scores;
  *job.busy = busy;
}

template <int N, bool kHistories>
void loss_lanes(const ChunkJob& job) {
  LaneLattice<N, kHistories> lanes(*job.data, *job.weights, nullptr, job.scratch->lanes);
  Rescue<Single<kHistories>> rescue(job);
  each_group<N>(job, lanes, [&](int64_t first) {
    lanes.forward(false);
    lanes.check_lost();
    for (int l = 0; l < lanes.n; ++l)
      if ((lanes.failed >> l & 1) == 0) *job.loss += lanes.c[l] * (lanes.log_z[l] - lanes.gold[l]);
    rescue.each(
        lanes, lanes.failed, first, [&] { return Single<kHistories>(*job.data, *job.weights, *job.scratch); },
        [&](Single<kHistories>& worker, int64_t k, Sample&) {
          worker.load(sequence_of(job, k));
          worker.solve(false, true);
          *job.loss += worker.c * (worker.log_z - worker.gold);
        });
  });
}

// Writes the residual rows of a position, [Y][lanes].
template <class Lattice>
inline void write_rows(const ChunkJob& job, const Lattice& lanes, int64_t t, int here, const double* p,
                       const int64_t* first_rows) {
  const int YP = job.weights->YP;
  const auto row_of = [&](int l) { return job.residual + (first_rows[l] + t) * YP; };
  job.far_rows ? lanes.template rows_out<true>(p, here, row_of) : lanes.rows_out(p, here, row_of);
}

template <class Lattice>
inline void find_rows(const ChunkJob& job, const Lattice& lanes, int64_t first, int64_t* first_rows) {
  for (int l = 0; l < lanes.n; ++l) first_rows[l] = first_row_of(job, first + lanes.slot[l], lanes.sequence[l]);
}

template <int N, bool kHistories>
void gradient_lanes(const ChunkJob& job) {
  constexpr int G = N * kLanes;
  const Prepared& pre = *job.weights;
  crfit::LaneScratch s = job.scratch->lanes;
  LaneLattice<N, kHistories> lanes(*job.data, pre, nullptr, s);
  Rescue<Single<kHistories>> rescue(job);
  const LaneSums<N> sums(pre, s.sums);
  each_group<N>(job, lanes, [&](int64_t first) {
    int64_t first_rows[G];
    find_rows(job, lanes, first, first_rows);
    double* block = job.kept != nullptr ? job.kept->block(lanes.sequence[0]) : nullptr;
    s = job.scratch->lanes;
    double* z = s.z;
    if (block != nullptr && !job.kept->floats) lanes.place_tables(block);  // where products will read them
    if (block != nullptr && job.kept->floats) z = s.z_apart;
    lanes.forward(true);
    // residual[t, :] = c (p(t, :) - [y = gold])
    lanes.backward(z, block != nullptr, lanes.weights(), [&](int64_t t, int here, double* p) {
      if (job.residual == nullptr) return;
      for (int l = 0; job.subtract_gold && l < here; ++l) p[job.data->labels[lanes.begin[l] + t] * G + l] -= lanes.c[l];
      write_rows(job, lanes, t, here, p, first_rows);
    });
    uint32_t not_kept = lanes.failed;
    if (block != nullptr && job.kept->floats) not_kept |= lanes.keep_floats(reinterpret_cast<float*>(block));
    for (int l = 0; l < lanes.n; ++l) {
      if (job.kept != nullptr) job.kept->filled[lanes.sequence[l]] = block != nullptr && (not_kept >> l & 1) == 0;
      if ((lanes.failed >> l & 1) != 0) continue;
      *job.loss += lanes.c[l] * (lanes.log_z[l] - lanes.gold[l]);
    }
    lanes.weigh(z);
    lanes.add_pairs(s.A, z, sums.data());
    rescue.each(
        lanes, lanes.failed, first, [&] { return Single<kHistories>(*job.data, pre, *job.scratch); },
        [&](Single<kHistories>& worker, int64_t k, Sample& sample) {
          ChunkJob one = job;
          one.kept = nullptr;
          gradient_sequence(one, worker, k, true, sample);
        });
  });
  sums.add_to(job.pair_sum);
  rescue.close();
}

template <int N, bool kHistories>
void along_lanes(const ChunkJob& job) {
  constexpr int G = N * kLanes;
  const Prepared& pre = *job.weights;
  const crfit::Direction& direction = *job.direction;
  const int YP = pre.YP;
  crfit::LaneScratch& s = job.scratch->lanes;
  LaneLattice<N, kHistories> lanes(*job.data, pre, &direction, s);
  Rescue<Single<kHistories>> rescue(job);
  const LaneSums<N> sums(pre, s.sums);
  each_group<N>(job, lanes, [&](int64_t first) {
    lanes.forward(true);
    double slopes[G] = {};
    lanes.backward(s.z, false, all_lanes<N>(1.0), [&](int64_t t, int here, const double* p) {
      lanes.rows_out(p, here, [&](int l) { return s.rows + l * s.row_block * YP; });
      for (int l = 0; l < here; ++l) {
        const double *row = s.rows + l * s.row_block * YP, *q = direction.step_scores + (lanes.begin[l] + t) * YP;
        // d loss / d a = c (sum_t p(t, :).q_t - q_t[gold]) for scores u + a q, plus that of transitions
        double slope = 0.0;
        for (int j = 0; j < pre.Y; ++j) slope += row[j] * q[j];
        const int32_t* y = job.data->labels + lanes.begin[l] + t;
        slopes[l] += slope - q[y[0]];
        if (t > 0) slopes[l] -= direction.step->tr[lanes.gold_ngram(y, t)];
      }
    });
    for (int l = 0; l < lanes.n; ++l) {
      if ((lanes.failed >> l & 1) != 0) continue;
      *job.loss += lanes.c[l] * (lanes.log_z[l] - lanes.gold[l]);
      *job.slope += lanes.c[l] * slopes[l];
    }
    lanes.weigh(s.z);
    lanes.add_pairs(s.A, s.z, sums.data());
    rescue.each(
        lanes, lanes.failed, first, [&] { return Single<kHistories>(*job.data, pre, *job.scratch); },
        [&](Single<kHistories>& worker, int64_t k, Sample& sample) { along_sequence(job, worker, k, true, sample); });
  });
  sums.add_to(job.pair_sum);
  rescue.close();
  add_transition_slope(job);
}

template <int N, bool kHistories>
void variance_lanes(const ChunkJob& job) {
  constexpr int G = N * kLanes;
  const Prepared& pre = *job.weights;
  crfit::LaneScratch& s = job.scratch->lanes;
  LaneLattice<N, kHistories> lanes(*job.data, pre, nullptr, s);
  Rescue<Single<kHistories>> rescue(job);
  const LaneSums<N> sums(pre, s.sums), squares(pre, s.squares);
  each_group<N>(job, lanes, [&](int64_t first) {
    int64_t first_rows[G];
    find_rows(job, lanes, first, first_rows);
    lanes.forward(true);
    const Lanes<N> weights = lanes.weights(), one = all_lanes<N>(1.0);
    lanes.backward(s.z, kHistories, one, [&](int64_t t, int here, double* p) {
      for (double* x = p; x < p + lanes.node_row(); x += G) {
        const Lanes<N> value = load_lanes<N>(x);
        store_lanes(x, weights * value * (one - value));
      }
      write_rows(job, lanes, t, here, p, first_rows);
    });
    // c sum_t p (1 - p) = E sum_t A c z - E^2 sum_t A^2 c z^2, of the longest n-grams
    lanes.give_up(lanes.lanes_above(1e150, s.z));
    if constexpr (kHistories) lanes.add_variances(job.pair_sum);
    lanes.square(s.z, s.b);
    lanes.weigh(s.z);
    lanes.weigh(s.b);
    lanes.add_pairs(s.A, s.z, sums.data());
    lanes.square(s.A, s.A);
    lanes.add_pairs(s.A, s.b, squares.data());
    rescue.each(
        lanes, lanes.failed, first, [&] { return Single<kHistories>(*job.data, pre, *job.scratch); },
        [&](Single<kHistories>& worker, int64_t k, Sample& sample) {
          variance_sequence(job, worker, k, true, sample);
        });
  });
  sums.each([&](int64_t k, double E, int64_t at) {
    if (k >= sums.longest()) job.pair_sum[k] += E * (s.sums[at] - E * s.squares[at]);
  });
  rescue.close();
}

template <int N, bool kHistories>
void product_lanes(const ChunkJob& job) {
  constexpr int G = N * kLanes;
  const Prepared& pre = *job.weights;
  crfit::LaneScratch s = job.scratch->lanes;
  LaneTangent<N, kHistories> lanes(*job.data, pre, *job.tangent, s);
  Rescue<SingleTangent<kHistories>> rescue(job);
  const LaneSums<N> sums(pre, s.sums);
  each_group<N>(job, lanes, [&](int64_t first) {
    int64_t first_rows[G];
    find_rows(job, lanes, first, first_rows);
    s = job.scratch->lanes;
    double* block = job.kept != nullptr ? job.kept->block(lanes.sequence[0]) : nullptr;
    lanes.failed = 0;
    if (block != nullptr) {
      if (job.kept->floats)
        lanes.load_floats(reinterpret_cast<const float*>(block));
      else
        lanes.place_tables(block);
      for (int l = 0; l < lanes.n; ++l) lanes.failed |= uint32_t{!job.kept->filled[lanes.sequence[l]]} << l;
    } else {
      lanes.forward(true);
      lanes.backward(s.z_apart, true, lanes.weights(), [](int64_t, int, const double*) {});
    }
    lanes.differentiate();
    const Lanes<N> weights = lanes.weights();
    lanes.emit([&](int64_t t, int here, double* dp) {
      for (double* x = dp; x < dp + lanes.node_row(); x += G) store_lanes(x, load_lanes<N>(x) * weights);
      write_rows(job, lanes, t, here, dp, first_rows);
    });
    lanes.weigh(s.z_apart);
    lanes.weigh(s.dz);
    lanes.add_pairs(s.dA, s.z_apart, sums.data());
    lanes.add_pairs(s.A, s.dz, sums.data());
    rescue.each(
        lanes, lanes.failed, first,
        [&] { return SingleTangent<kHistories>(*job.data, pre, *job.tangent, nullptr, true, *job.scratch); },
        [&](SingleTangent<kHistories>& worker, int64_t k, Sample& sample) {
          product_sequence(job, worker, k, sample);
        });
  });
  sums.add_to(job.pair_sum);
  rescue.close();
}

}  // namespace
