// Kernels of steps on the dual, one sequence at a time, compiled once per CPU level; the formulas are in ascent.hpp.
#pragma once

#include <cstdint>

#include "base/views.hpp"
#include "lattice/tables.hpp"

namespace crfit {

// The distinct attributes of a sequence with their occurrences: each weight is read and written once in a step, and
// |dw|^2 is a plain sum of squares. Occurrences are sorted by attribute.
struct MergedAttributes {
  const int32_t* ids = nullptr;        // [n]
  const int32_t* counts = nullptr;     // [n] occurrences of each
  const int32_t* positions = nullptr;  // of the occurrences, counted from the first of the sequence
  const double* values = nullptr;      // of the occurrences, null: all 1
  int64_t n = 0;
};

struct DualJob {
  const DataView* data = nullptr;
  const LayoutView* layout = nullptr;
  const Prepared* chain = nullptr;  // transition tables of the chain to solve, without edge attributes
  Scratch* scratch = nullptr;
  int YP = 0;
  bool log_domain = false;  // never use the scaled domain
  int64_t sequence = 0, T = 0;
  int64_t table = 0;     // doubles of a pair table: [Y][YP], or of the listed pairs
  int64_t n_tables = 0;  // pair tables of the sequence: T - 1 with edge attributes, else one for all positions
  MergedAttributes attributes;
  double* u = nullptr;     // (1/l2) sum_n c_n (Phi - E Phi)
  double threshold = 0.0;  // l1/l2: the weights are S(u, threshold)

  double* psi = nullptr;            // [T][YP] node scores of the model, without boundary weights
  double* theta = nullptr;          // [T][YP] node scores of the chain to solve
  double* theta_pairs = nullptr;    // [n_tables][table]
  double* p = nullptr;              // [T][YP] its marginals
  double* p_pairs = nullptr;        // [n_tables][table] its expected label pairs, of each position or of all
  double log_z = 0.0, inner = 0.0;  // its log Z, and <p, theta>

  const double* change = nullptr;  // [T][YP] of the marginals
  double* sums = nullptr;          // its contribution to each state weight of the sequence
  double square = 0.0;             // sum of their squares
  double factor = 0.0;             // u += factor * sums
};

// The soft threshold S(u, t) = sign(u) max(|u| - t, 0); u itself if t = 0.
// Static, like `rest`: every CPU level has its own.
static inline double shrunk(double u, double t) {
  const double cut = u > t ? t : u;
  return u - (cut < -t ? -t : cut);
}

// |S(u + du)|^2 - |S(u)|^2 - 2 S(u) du: du^2 where u stays outside of the threshold on one side, 0 inside.
static inline double rest(double u, double du, double t) {
  const double before = shrunk(u, t), after = shrunk(u + du, t);
  return (after - before) * (after + before) - (before + before) * du;
}

struct DualKernels {
  static const DualKernels v2, v3, v4;
  void (*scores)(const DualJob&);  // sets psi
  void (*solve)(DualJob&);         // sets p, p_pairs, log_z, inner from theta
  void (*change)(DualJob&);        // sets sums, square from change
  double (*rest)(const DualJob&);  // sum of rest(u, factor * sums) over the state weights of the sequence
  void (*update)(const DualJob&);  // u += factor * sums
};

}  // namespace crfit
