// One sequence with label histories, order k >= 2: forward-backward in the scaled domain, n-gram sums. Included by
// per-level files only.
//
// The state after position t is the last min(t + 1, k) labels: y = the last, h = all others. With i the label that is
// dropped (none while t < k), table m = min(t, k) of the n-gram scores tr and
// F_t[h, y] = exp(U[t, y] - max) exp(edge scores[t, last of h, y] - max):
//   v_0 = F_0;  v_t[h, y] = F_t[h, y] sum_i alpha_{t-1}[i, h] E_m[i, h, y];  c_t = sum v_t;  alpha_t = v_t / c_t
//   beta_{T-1} = 1;  z_t = F_t * beta_t / c_t;  beta_{t-1}[i, h] = sum_y E_m[i, h, y] z_t[h, y]
//   p(t, state) = alpha_t * beta_t;   p(t, i, h, y) = alpha_{t-1}[i, h] E_m[i, h, y] z_t[h, y]
// Edge attributes depend on labels within the state, so they are part of F, and n-gram sums remain
// E_m * sum_t outer(alpha_{t-1}, z_t). For correctness and the role of kTiny see forward_backward.hpp.
#pragma once

#include "lattice/forward_backward.hpp"

namespace {

// Memory layout of states: a table [rows][YP] per position, with the last label padded.
struct StateTables {
  explicit StateTables(const Prepared& pre)
      : Y(pre.Y), YP(pre.YP), order(pre.order), size(pre.tables[pre.order - 1].rows / pre.Y * pre.YP), pre_(pre) {}

  const int64_t Y, YP;
  const int order;
  const int64_t size;  // doubles from one position's table to the next

  // n-grams that end at position t >= 1.
  const crfit::HistoryTable& table(int64_t t) const { return pre_.tables[(t < order ? t : order) - 1]; }
  // Values of h after position t.
  int64_t rows(int64_t t) const { return t == 0 ? 1 : t < order ? table(t).rows : table(t).rows / Y; }
  // Values of i, the label that position t >= 1 drops from the state.
  int64_t dropped(int64_t t) const { return t < order ? 1 : Y; }
  // From the state (i, h) to (i + 1, h) in the table of position t - 1.
  int64_t step(int64_t t) const { return rows(t) / Y * YP; }
  // Index of the state with this code.
  int64_t place(int64_t code) const { return crfit::padded_pair(code, Y, YP); }

 private:
  const Prepared& pre_;
};

// Whether state a is lower than b when compared from the last label backwards.
inline bool lower_from_the_end(int64_t a, int64_t b, int64_t Y) {
  for (; a % Y == b % Y && a != b; a /= Y, b /= Y) {
  }
  return a % Y < b % Y;
}

// out[j] = sum_{i < n} x[i * x_step] M[i * m_step + j] for j < YP.
template <int P>
inline void sum_dropped(Width<P> width, int64_t n, const double* __restrict x, int64_t x_step,
                        const double* __restrict M, int64_t m_step, double* __restrict out) {
  constexpr int kBlock = P > 0 ? P : 32;
  constexpr int kVecs = kBlock / kLanes;
  // To hide the latency of additions, rows alternate between sets of accumulators, which are added at the end.
  constexpr int kSets = kVecs >= 8 ? 1 : kVecs >= 3 ? 2 : 4;
  for (int j0 = 0; j0 < width.yp(); j0 += kBlock) {
    Vec acc[kSets][kVecs] = {};
    const double* m = M + j0;
    int64_t i = 0;
    for (; i + kSets <= n; i += kSets)
      for (int s = 0; s < kSets; ++s, m += m_step) {
        const Vec xi = splat(x[(i + s) * x_step]);
        for (int k = 0; k < kVecs; ++k) acc[s][k] += xi * load(m + k * kLanes);
      }
    for (; i < n; ++i, m += m_step) {
      const Vec xi = splat(x[i * x_step]);
      for (int k = 0; k < kVecs; ++k) acc[0][k] += xi * load(m + k * kLanes);
    }
    for (int s = 1; s < kSets; ++s)
      for (int k = 0; k < kVecs; ++k) acc[0][k] += acc[s][k];
    for (int k = 0; k < kVecs; ++k) store(out + j0 + k * kLanes, acc[0][k]);
  }
}

// G[r * g_step + j] += sum_{t < n} left[t * size + r * left_step] right[t * size + j] for r < kRows, j < YP, the block
// of G in registers.
template <int P, int kRows>
inline void add_outer_rows(Width<P> width, int64_t n, int64_t size, const double* left, int64_t left_step,
                           const double* right, double* G, int64_t g_step) {
  constexpr int kBlock = P > 0 ? P : 32;
  constexpr int kVecs = kBlock / kLanes;
  for (int j0 = 0; j0 < width.yp(); j0 += kBlock) {
    // kRows x YP sums in registers: a row of `right` is loaded once for all of them
    Vec acc[kRows][kVecs] = {};
    for (int64_t t = 0; t < n; ++t)
      for (int k = 0; k < kVecs; ++k) {
        const Vec x = load(right + t * size + j0 + k * kLanes);
        for (int r = 0; r < kRows; ++r) acc[r][k] += splat(left[t * size + r * left_step]) * x;
      }
    for (int r = 0; r < kRows; ++r)
      for (int k = 0; k < kVecs; ++k) {
        double* g = G + r * g_step + j0 + k * kLanes;
        store(g, load(g) + acc[r][k]);
      }
  }
}

// G += sum_{t=1}^{T-1} outer(left_{t-1}, right_t), G the concatenated tables of all m.
template <int P>
inline void add_history_outer(Width<P> width, const StateTables& states, int64_t T, const double* left,
                              const double* right, double* G) {
  constexpr int kVecs = (P > 0 ? P : 32) / kLanes;
  // Accumulators that leave registers for operands: 24 of 32 with AVX-512, 12 of 16 else.
  constexpr int kFit = (kLanes == 8 ? 24 : 12) / kVecs;
  constexpr int kRows = kFit >= 8 ? 8 : kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
  const int64_t Y = states.Y, YP = width.yp(), size = states.size, k = states.order;
  // The first k - 1 positions drop no label: they use shorter tables, each once per sequence.
  for (int64_t t = 1; t < T && t < k; ++t) {
    const int64_t rows = states.rows(t);
    for (int64_t h = 0; h < rows; ++h)
      add_outer_rows<P, 1>(width, 1, size, left + (t - 1) * size + states.place(h), 0, right + t * size + h * YP,
                           G + h * YP, 0);
    G += rows * YP;
  }
  if (T <= k) return;
  // From position k on all tables have the same shape: for each (i, h) one sum over t, instead of a pass over the whole
  // table for each t.
  const int64_t rows = states.rows(k), step = states.step(k), n = T - k;
  for (int64_t h = 0; h < rows; ++h) {
    const double *x = left + (k - 1) * size + states.place(h), *z = right + k * size + h * YP;
    double* g = G + h * YP;
    int64_t i = 0;
    for (; i + kRows <= Y; i += kRows)
      add_outer_rows<P, kRows>(width, n, size, x + i * step, step, z, g + i * rows * YP, rows * YP);
    for (; i < Y; ++i) add_outer_rows<P, 1>(width, n, size, x + i * step, step, z, g + i * rows * YP, 0);
  }
}

// Forward-backward of one sequence on node scores in scratch.U and scores of edge attributes in scratch.pairs. The
// lattice of the last sequence stays in scratch.
template <int P>
class HistoryLattice {
 public:
  HistoryLattice(const Prepared& pre, Scratch& scratch, bool has_edges)
      : states(pre), width_(pre.YP), pre_(pre), s_(scratch), has_edges_(has_edges) {}

  const StateTables states;

  // Sets: S, alpha, inv. Returns false when the scaled domain cannot hold this sequence.
  bool forward(int64_t T, double& log_z) {
    const int YP = width_.yp();
    double shift = exponentials(width_, pre_.Y, s_.U, s_.S);
    for (int64_t t = 1; t < T; ++t) {
      shift += exponentials(width_, pre_.Y, s_.U + t * YP, s_.S + t * YP) + states.table(t).top;
    }
    if (has_edges_) shift += edge_exponentials(T);
    LogProduct product;
    Vec smallest = splat(1.0);
    const double* padding_one = s_.row + YP;
    for (int64_t t = 0; t < T; ++t) {
      const int64_t rows = states.rows(t);
      double* here = s_.alpha + t * states.size;
      Vec total = {};
      for (int64_t h = 0; h < rows; ++h) {
        const double* edge = edge_row(t, h);
        // v_t[h, y] = F_t[h, y] sum_i alpha_{t-1}[i, h] E_m[i, h, y]
        if (t > 0) arrive(t, h, s_.alpha, states.table(t).E, s_.row);
        for (int j = 0; j < YP; j += kLanes) {
          const Vec arrived = t > 0 ? load(s_.row + j) : splat(1.0);
          const Vec value = arrived * factor(t, edge, j);
          store(here + h * YP + j, value);
          total += value;
          // The padding is 0 by design, not by underflow: row[YP ..] has ones there and zeros elsewhere.
          smallest = vmin(smallest, vmin(value, arrived) + load(padding_one + j));
        }
      }
      const double c = sum(total);
      // Also false for NaN.
      if (!(c > kTiny && c < 1e100)) return false;
      s_.inv[t] = 1.0 / c;
      product.multiply(c);
      for (int64_t i = 0; i < rows * YP; i += kLanes) store(here + i, load(here + i) * splat(s_.inv[t]));
    }
    product.flush();
    log_z = shift + product.total;
    lost_ = !(min_lane(smallest) > kLost);
    return std::isfinite(log_z);
  }

  // Scores of edge attributes become exp(score - max); returns the sum of the maxima.
  double edge_exponentials(int64_t T) {
    const int64_t size = states.Y * states.YP;
    double shift = 0.0;
    for (int64_t t = 1; t < T; ++t) shift += pair_exponentials(pre_.Y, pre_.YP, s_.pairs + t * size);
    return shift;
  }

  bool lost() const { return lost_; }  // some forward entry may have underflowed

  // Sets: beta, z. Returns false when the scaled domain cannot hold this sequence.
  bool backward(int64_t T) {
    const int YP = width_.yp(), Y = pre_.Y;
    Vec total = {};
    double* last = s_.beta + (T - 1) * states.size;
    for (int64_t h = 0; h < states.rows(T - 1); ++h)
      for (int j = 0; j < YP; ++j) last[h * YP + j] = j < Y ? 1.0 : 0.0;
    for (int64_t t = T - 1; t > 0; --t) {
      const double* beta = s_.beta + t * states.size;
      double *z = s_.z + t * states.size, *before = s_.beta + (t - 1) * states.size;
      const Vec inv = splat(s_.inv[t]);
      for (int64_t h = 0; h < states.rows(t); ++h) {
        const double* edge = edge_row(t, h);
        for (int j = 0; j < YP; j += kLanes) store(z + h * YP + j, factor(t, edge, j) * load(beta + h * YP + j) * inv);
        // beta_{t-1}[i, h] = sum_y E_m[i, h, y] z_t[h, y], raised to kTiny
        leave(t, h, z, states.table(t).E, pre_.ET, s_.row);
        for (int j = 0; j < YP; j += kLanes) {
          const Vec raised = vmax(load(s_.row + j), splat(kTiny));
          store(s_.row + j, raised);
          total += raised;
        }
        for (int64_t i = 0; i < states.dropped(t); ++i) before[i * states.step(t) + states.place(h)] = s_.row[i];
      }
    }
    return sum(total) < 1.0 / kTiny;  // false for NaN too
  }

  // out[y] = sum_i left_{t-1}[i, h] M[i, h, y], M the table of position t.
  void arrive(int64_t t, int64_t h, const double* left, const double* M, double* out) const {
    const int64_t YP = width_.yp();
    sum_dropped(width_, states.dropped(t), left + (t - 1) * states.size + states.place(h), states.step(t), M + h * YP,
                states.rows(t) * YP, out);
  }

  // out[i] = sum_y M[i, h, y] right[h, y]. MT is the longest table with i and y exchanged; padding 0.
  void leave(int64_t t, int64_t h, const double* right, const double* M, const double* MT, double* out) const {
    const int64_t YP = width_.yp();
    if (t >= states.order) {
      // For each h a matrix [Y][YP] over (y, i), whose rows are contiguous; in the table itself y is last.
      vecmat(width_, pre_.Y, right + h * YP, MT + h * pre_.Y * YP, out);
      return;
    }
    Vec acc = {};
    for (int64_t j = 0; j < YP; j += kLanes) acc += load(M + h * YP + j) * load(right + h * YP + j);
    for (int64_t j = 1; j < YP; ++j) out[j] = 0.0;
    out[0] = sum(acc);
  }

  // exp(edge scores - max) of the labels after h; null without edge attributes.
  const double* edge_row(int64_t t, int64_t h) const {
    return has_edges_ && t > 0 ? s_.pairs + (t * pre_.Y + h % pre_.Y) * width_.yp() : nullptr;
  }

  // F_t[h, j .. j + kLanes - 1] with edge = edge_row(t, h).
  Vec factor(int64_t t, const double* edge, int64_t j) const {
    const Vec node = load(s_.S + t * width_.yp() + j);
    return edge != nullptr ? node * load(edge + j) : node;
  }

 private:
  Width<P> width_;
  const Prepared& pre_;
  Scratch& s_;
  bool has_edges_;
  bool lost_ = false;
};

}  // namespace
