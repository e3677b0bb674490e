// Periodic step sizes for on-line steps: each weight, or group of weights, has a factor r of the rate.
//
//   w <- w - eta r (u + (l2 B/N) w),     u = sum_i c_i (E Phi - Phi) over the B sequences of a step
//
// After every 2b steps r <- v(gamma) r by the changes D1, D2 of the weight over the two halves of the period:
//   gamma = D2/D1, u = sgn(gamma) min(|gamma|, kappa), v = (alpha + beta)/2 + (alpha - beta) u / (2 kappa)
// which needs the weights w0, w_b, w_2b at the begin of the halves and at the end. crfit.online.Periodic has the rules
// for weights that a period touches in one half or in none, and the other estimates of gamma.
//
// Lazily: a unit (the weights of an attribute) that no step touches only shrinks, by 1 - eta r l2 B/N in each, while r
// falls by alpha in each period. It is brought up to date when a step is about to touch it:
//   factor = prod_s (1 - e x_s) = exp( -sum_k e^k (X_k(now) - X_k(last)) ),   X_k(t) = sum_{s<t} x_s^k / k
// with x_s = eta_s (l2 B/N) alpha^(period of s) and e = r alpha^-(period of last): six powers reach full precision for
// x_s < 0.006, above that the product is taken step by step. A step itself leaves its own shrinking to this too:
//   (1 - y) w + eta r d = (1 - y) (w + eta r / (1 - y) d)
// so that each occurrence adds to the row and nothing else. The factors of a unit's weights are one number until a
// period touches it in both halves, which most units never see. w0 and w_b are kept for those units of the present
// period alone that both of its halves touch. Where weights of a group share r, a product Z of the factors so far and
// its value at the unit's last touch are enough. Where it is one number a row is brought up to date by the step itself:
// until then each occurrence counts in the scores as often as this number says.
#pragma once

#include <cstdint>
#include <vector>

#include "online_weights.hpp"
#include "period_job.hpp"
#include "pool.hpp"

namespace crfit {

class OnlinePeriods {
 public:
  // groups: [attributes | edge attributes | transitions | boundary], empty unless kShared.
  OnlinePeriods(const DataView& data, OnlineWeights& weights, const PeriodRule& rule, std::vector<int32_t> groups,
                int64_t n_groups);
  OnlinePeriods(const OnlinePeriods&) = delete;
  OnlinePeriods& operator=(const OnlinePeriods&) = delete;

  void forget();  // all factors 1, at the begin of a period

  bool begins() const { return steps_.empty(); }  // whether the next step is the first of a period
  // Then: the sequences of the period's second half, null if they are not known.
  void look_ahead(const int64_t* sequences, int64_t n);
  // A step: begin, prepare and update of each part of the units (or of all: no parts), the tables of transitions and
  // boundary weights, end; then the sequences' rows may be scored again.
  void begin_step(double eta, double share, const OnlineSlot* slots, int64_t n_slots, int n_parts);
  void prepare(int part);
  void update(int part, int64_t next_sequence);
  // w, masked where there is no weight, moves by what `residual` says; tables: 0 transitions, 1 start, 2 end.
  void update_table(int table, const double* residual);
  bool end_step();  // whether the period has ended; then end_part for each part and end_period
  void end_part(int part);
  void end_period();

  void catch_up();  // all weights are as they should be

  bool shared() const { return rule_.scope == PeriodRule::kShared; }
  // Whether rows are scored before they are brought up to date, each occurrence with a factor: OnlineSlot::scales.
  bool scaled() const {
    return !window() && weights_.shape.layout.state_ptr == nullptr && data_.attr_values == nullptr;
  }
  bool window() const { return rule_.scope == PeriodRule::kWindow; }
  int64_t n_groups() const { return n_groups_; }
  int64_t half() const { return rule_.half; }
  // State, after catch_up(): factors of weights or groups; rates times share of the present period's steps; its
  // weights.
  void get_factors(double* out);
  const std::vector<double>& steps() const { return steps_; }
  int64_t n_touched() const;
  struct Touched {  // [n_touched]; steps [b][n_touched]
    int64_t *weights = nullptr, *halves = nullptr;
    double *start = nullptr, *middle = nullptr, *steps = nullptr, *products = nullptr, *squares = nullptr;
  };
  void get_touched(const Touched& out) const;
  // After the weights were set. `in` is not written to.
  void restore(const double* factors, const double* steps, int64_t n_steps, int64_t n_touched, const Touched& in);

 private:
  struct Part {  // memory of a PeriodPart
    std::vector<PeriodEntry> entries;
    std::vector<double> scratch, sums;
  };
  struct Table {  // transitions or boundary weights, all of which are touched by each step
    double *w = nullptr, *r = nullptr;
    const double* mask = nullptr;
    int64_t n = 0, group = 0;
    std::vector<int64_t> plain;
    std::vector<double> start, middle, steps, products, squares;
  };
  PeriodJob job(PeriodJob::Task task) const;
  void make_room();
  void restart_moments();
  void end_table(Table& table);
  double shrinkage(double r, int64_t from, int64_t to) const;  // over steps of the present period
  void show_factors();
  void mark_later(bool touched);
  template <class Visit>
  void each_weight(int64_t unit, const Visit& visit) const;
  int64_t room(int64_t unit) const;
  int64_t unit_of(int64_t plain) const;

  DataView data_;
  OnlineWeights& weights_;
  PeriodRule rule_;
  std::vector<int32_t> groups_;
  int64_t n_groups_;
  int64_t n_units_;
  std::vector<PeriodUnit> units_;
  OnlineVector factors_;
  std::vector<double> group_factors_, Z_, Z_inverse_, Z_begin_, Z_middle_, gains_;  // [n_groups]
  std::vector<PeriodMoment> moments_;                                               // the last one is now
  std::vector<double> shares_;                                                      // x_s of the moments
  double largest_share_ = 0.0;
  bool up_to_date_ = true;
  int64_t begin_ = 0;                     // moment at which the present period began
  std::vector<double> steps_;             // eta l2 B/N of its steps
  std::vector<uint64_t> later_;           // bits of units that the second half touches
  std::vector<int64_t> later_sequences_;  // whose they are
  bool later_known_ = false;
  PeriodPart parts_[kPeriodParts];
  Part memory_[kPeriodParts];
  Table tables_[3];
  double eta_ = 0.0, share_ = 0.0;
  const OnlineSlot* slots_ = nullptr;
  int64_t n_slots_ = 0;
  int n_parts_ = 0;
};

}  // namespace crfit
