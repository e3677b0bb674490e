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
  double* w = nullptr;

  double* psi = nullptr;            // [T][YP] node scores of the model, without boundary weights
  double* theta = nullptr;          // [T][YP] node scores of the chain to solve
  double* theta_pairs = nullptr;    // [n_tables][table]
  double* p = nullptr;              // [T][YP] its marginals
  double* p_pairs = nullptr;        // [n_tables][table] its expected label pairs, of each position or of all
  double log_z = 0.0, inner = 0.0;  // its log Z, and <p, theta>

  const double* change = nullptr;  // [T][YP] of the marginals
  double* sums = nullptr;          // its contribution to each state weight of the sequence
  double square = 0.0;             // sum of their squares
  double factor = 0.0;             // w += factor * sums
};

struct DualKernels {
  static const DualKernels v2, v3, v4;
  void (*scores)(const DualJob&);  // sets psi
  void (*solve)(DualJob&);         // sets p, p_pairs, log_z, inner from theta
  void (*change)(DualJob&);        // sets sums, square from change
  void (*update)(const DualJob&);  // w += factor * sums
};

}  // namespace crfit
