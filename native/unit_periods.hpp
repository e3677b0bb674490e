// Periodic step sizes with a factor r for each weight (kComponent, kWindow), lazily.
//
// A unit that no step touches only shrinks, by 1 - eta r l2 B/N in each, while r falls by alpha in each period. It is
// brought up to date when a step is about to touch it:
//   factor = prod_s (1 - e x_s) = exp( -sum_k e^k (X_k(now) - X_k(last)) ),   X_k(t) = sum_{s<t} x_s^k / k
// with x_s = eta_s (l2 B/N) alpha^(period of s) and e = r alpha^-(period of last): six powers reach full precision for
// x_s < 0.006, above that the product is taken step by step. The factors of a unit's weights are one number until a
// period touches it in both halves, which most units never see. Until then a row is brought up to date by the step
// itself, and each occurrence counts in the scores as often as this number says. w0 and w_b are kept for those units of
// the present period alone that both of its halves touch.
#pragma once

#include <cstdint>
#include <vector>

#include "online_periods.hpp"
#include "period_job.hpp"

namespace crfit {

class UnitPeriods final : public OnlinePeriods {
 public:
  UnitPeriods(const DataView& data, OnlineWeights& weights, const PeriodRule& rule);

  void forget() override;
  void look_ahead(const int64_t* sequences, int64_t n, int64_t batch) override;
  void begin_step(double eta, double share, const OnlineSlot* slots, int64_t n_slots, int n_parts) override;
  void prepare(int part) override;
  void update(int part, int64_t next_sequence) override;
  void end_step() override;
  void end_part(int part) override;
  void end_period() override;
  void value(const OnlineSlot&, bool) const override {}  // prepare does
  bool valued() const override {
    return !window() && weights_.shape.layout.state_ptr == nullptr && data_.attr_values == nullptr;
  }
  void catch_up() override;

  int64_t n_factors() const override { return weights_.shape.layout.n_weights; }
  void get_factors(double* out) override;
  void restore(const double* factors, const double* steps, int64_t n_steps, int64_t n,
               const TouchedWeights& in) override;

 private:
  struct Part {  // memory of a PeriodPart
    std::vector<PeriodEntry> entries;
    std::vector<double> scratch;
  };
  int64_t n_touched_units() const override;
  int64_t get_touched_units(int64_t n, const TouchedWeights& out) const override;
  PeriodJob job(PeriodJob::Task task) const;
  void make_room();
  void restart_moments();
  void mark_later(bool touched);

  std::vector<PeriodUnit> units_;
  OnlineVector factors_;
  std::vector<PeriodMoment> moments_;  // the last one is now
  std::vector<double> shares_;         // x_s of the moments
  double largest_share_ = 0.0;
  bool up_to_date_ = true;
  int64_t begin_ = 0;                     // moment at which the present period began
  std::vector<uint64_t> later_;           // bits of units that the second half touches
  std::vector<int64_t> later_sequences_;  // whose they are
  bool later_known_ = false;
  PeriodPart parts_[kPeriodParts];
  Part memory_[kPeriodParts];
};

}  // namespace crfit
