// What the kernels of periodic step sizes take and give; the formulas are in online_periods.hpp.
#pragma once

#include <cstdint>

#include "kernels.hpp"
#include "online_job.hpp"

namespace crfit {

struct PeriodRule {
  enum Scope { kComponent, kWindow, kShared };  // kShared: weights of a group have one factor
  Scope scope = kComponent;
  double alpha = 0.9999, beta = 0.99, kappa = 0.9;
  int gamma = 1;
  int64_t half = 1;  // steps b in half a period
};

constexpr int kPeriodParts = 8;   // of the units; sums do not depend on the number of threads
constexpr int kPeriodPowers = 6;  // terms of log(1 - x)
constexpr double kTinyChange = 1e-12;

// A state or edge attribute. kShared: value is 1/Z, Z the product of its group when it was last brought up to date,
// last is the group. Otherwise value is the factor r of all its weights, or, below 0, minus a number that their own
// ones are to be multiplied by; last is twice the moment at which it was brought up to date, plus 1 if its period
// touched it in the first half alone so far.
struct PeriodUnit {
  double value = 1.0;
  int32_t last = 0;
  int32_t slot = 0;  // of its entry, if it has one: then entries[slot].unit is this unit
};

// A unit that the first half of the present period touched, and that the second touches too, as far as is known.
struct PeriodEntry {
  int32_t unit = 0;
  int32_t halves = 0;    // 1: touched in the first, 2: in the second
  int64_t at = 0;        // first number in scratch
  int32_t pending = -1;  // kWindow: moment before the step whose change is not yet written down
  // kComponent: the unit as it was when its weights were kept, to bring them back from there; last -1: they are those
  // at the begin of the period.
  PeriodUnit before;
};

// Entries of one part of the units, and numbers for them, each a row of the unit's padded length:
//   kComponent, kShared   weights at the begin of the first half, or as they were found then; at that of the second
//   kWindow               weights before the last step that touched it, changes of the first b steps, their products
//                         with those of the second half, squares of these
struct PeriodPart {
  PeriodEntry* entries = nullptr;
  int32_t n = 0;
  double* scratch = nullptr;
  int64_t used = 0;
  double* sums = nullptr;  // kShared: [n_groups][4] D1.D1, D1.D2, D2.D2, w.w
};

// Before a step. x_s = eta_s l2 B/N alpha^(p_s), p_s its period counted from the first one of the list.
struct PeriodMoment {
  double powers[kPeriodPowers] = {};  // sum over earlier steps of x^k / k
  double scale = 1.0, falls = 1.0;    // alpha^-p, alpha^p
  int64_t end = 0;                    // moment at which the period ends
};

struct PeriodJob {
  enum Task { kPrepare, kUpdate, kEnd, kCatchUp };
  Task task = kPrepare;
  const PeriodRule* rule = nullptr;
  const DataView* data = nullptr;
  const LayoutView* layout = nullptr;
  int YP = 0;
  OnlineRows to;
  double* factors = nullptr;  // like to.rows, where a unit's weights have their own
  PeriodUnit* units = nullptr;
  PeriodPart* parts = nullptr;  // [kPeriodParts]
  const OnlineSlot* slots = nullptr;
  int64_t n_slots = 0;
  int part = 0, n_parts = 0;               // with no parts all units
  int64_t first_unit = 0, last_unit = 0;   // kCatchUp
  int64_t now_is = 0;                      // kCatchUp: what `now` is called from then on
  const PeriodMoment* moments = nullptr;   // up to `now`
  const double* shares = nullptr;          // x_s
  bool series = true;                      // all x_s are small enough for the powers
  bool tiny = false;                       // and for the first four of them
  bool scaled = false;                     // rows are multiplied when they are scored, by slot.scales
  int64_t begin = 0, middle = 0, now = 0;  // moments
  double eta = 0.0, share = 0.0;           // of the step; share = l2 B / N
  double first_alone = 1.0;                // v(0) / alpha
  const double *Z = nullptr, *Z_inverse = nullptr, *Z_begin = nullptr, *Z_middle = nullptr;  // kShared: [n_groups]
  const double* gains = nullptr;      // kShared: [n_groups] eta r / (1 - eta r share)
  const uint64_t* later = nullptr;    // bits of the units that the second half touches; null: not known
  const Prepared* weights = nullptr;  // for rows that are asked for meanwhile
  int64_t next_sequence = -1;         // whose they are; -1: none
};

}  // namespace crfit
