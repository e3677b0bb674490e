// The loss along a line, on scores that are computed once per line.
#include <algorithm>
#include <stdexcept>

#include "base/dispatch.hpp"
#include "base/pool.hpp"
#include "batch/batch.hpp"

namespace crfit {

void Batch::set_line(const double* w, const double* d) {
  if (line_base_ == nullptr) {
    line_base_ = prepare(true);
    line_step_ = prepare(false);
    // [n_positions][YP]: scores of w and of d. Each trial of a line search is then u + a q, without reading the
    // attributes, which would be most of the work.
    base_scores_.resize(data_.n_positions * YP_);
    step_scores_.resize(data_.n_positions * YP_);
  }
  ready(*line_base_, w);
  ready(*line_step_, d);
  int64_t last = now();
  for (const Round& round : rounds_)
    parallel_for(n_threads_, static_cast<int64_t>(round.chunks.size()), [&](int64_t k, int) {
      NodeScoreJob job;
      job.data = &data_;
      job.sequences = order_.data() + round.chunks[k].first;
      job.n_sequences = round.chunks[k].count;
      job.weights = &line_base_->view();
      job.out = base_scores_.data();
      at_level<BatchKernels>().node_scores(job);
      job.weights = &line_step_->view();
      job.out = step_scores_.data();
      at_level<BatchKernels>().node_scores(job);
    });
  seconds_.scores += lap(last);
}

void Batch::along(double a, double& loss, double& slope) {
  if (line_base_ == nullptr) throw std::logic_error("along() before set_line()");
  int64_t last = now();
  make_scratch();
  // Transitions at w + a d; node scores of weights_ are not used.
  weights_.set_transitions(*line_base_, *line_step_, a);
  const Direction direction{base_scores_.data(), step_scores_.data(), &line_base_->view(), &line_step_->view(), a};
  std::vector<double> losses, slopes;
  for (const Round& round : rounds_) {
    const int64_t n_chunks = static_cast<int64_t>(round.chunks.size());
    std::vector<double> round_losses(static_cast<std::size_t>(n_chunks), 0.0), round_slopes(round_losses);
    std::vector<PhaseSeconds> busy(round_losses.size());
    seconds_.scores += lap(last);
    parallel_for(n_threads_, n_chunks, [&](int64_t k, int worker) {
      ChunkJob job = job_of(round.chunks[k], worker);
      job.weights = &weights_.view();
      job.direction = &direction;
      job.loss = &round_losses[k];
      job.slope = &round_slopes[k];
      job.pair_sum = pair_sums_.data() + k * n_ngrams_;
      std::fill_n(job.pair_sum, n_ngrams_, 0.0);
      job.busy = &busy[k];
      at_level<BatchKernels>().along(job);
    });
    add_loop(lap(last), busy);
    losses.insert(losses.end(), round_losses.begin(), round_losses.end());
    slopes.insert(slopes.end(), round_slopes.begin(), round_slopes.end());
  }
  loss = sum_in_order(losses.data(), static_cast<int64_t>(losses.size()));
  slope = sum_in_order(slopes.data(), static_cast<int64_t>(slopes.size()));
}

}  // namespace crfit
