// One sequence: forward-backward in the scaled domain, pair sums. Included by per-level files only.
//
// psi(t, i, j) = U[t, j] + tr[i, j] (+ edge attributes at t). With m_t = max_j U[t, j], S = exp(U - m_t),
// E = exp(tr - tr_max) and the positions counted from 0:
//   v_0 = S_0;  v_t = (alpha_{t-1}^T E) * S_t;  c_t = sum v_t;  alpha_t = v_t / c_t
//   beta_{T-1} = 1;  z_t = S_t * beta_t / c_t;  beta_{t-1} = E z_t
//   log Z = sum_t (m_t + log c_t) + (T - 1) tr_max
//   p(t, j) = alpha_t[j] beta_t[j];   p(t, i, j) = alpha_{t-1}[i] E[i, j] z_t[j]
// T Y + Y Y exponentials instead of T Y Y. Expected pairs are E * sum_t outer(alpha_{t-1}, z_t): one outer product
// per position and one multiplication by E at the end.
//
// When is this correct? Products below 2e-308 underflow. If every c_t > kTiny = 1e-70, an underflowed alpha is below
// 2e-308 / kTiny^2 = 2e-168. Each beta is raised to at least kTiny, which makes it an upper bound of the true beta: the
// underflow of backward products, at most Y 2e-308 / kTiny, is negligible. If every beta < 1 / kTiny, an underflowed
// alpha corresponds to a probability below 2e-98. Raising betas adds at most T Y kTiny to any probability. Otherwise
// the sequence is computed again in the log domain (log_domain.hpp). Without a backward pass no underflow is allowed at
// all: kLost.
//
// Sparse pairs (SparsePairs) subtract: if nearly all of alpha is in labels i with E[i, j] < missing, alpha^T E loses
// digits: with sum alpha = 1 the error of (alpha^T E)[j] is eps missing. A sum below missing / kCancel is added again
// without a subtraction (uncancelled), so every sum keeps 11 digits; the same for the backward products.
// Derivatives along a direction are sums of terms of any sign, which cannot be repaired in this way. Their error is
// at most eps missing sum_j z[j] times the scores of the direction, so missing sum_j z[j] < kCancel keeps 11 digits;
// beyond, they are computed in the log domain.
#pragma once

#include <cmath>

#include "lattice/scores.hpp"

namespace {

using crfit::Scratch;

constexpr double kTiny = 1e-70;
constexpr double kLost = 1e-290;  // forward entries of at least this size had no underflow
constexpr double kCancel = 1e5;

// out[j] = sum_i x[i] M[i][j] for j < YP. Independent accumulators hide the latency of the multiply-adds.
template <int P>
inline void vecmat(Width<P> width, int Y, const double* __restrict x, const double* __restrict M,
                   double* __restrict out) {
  constexpr int kBlock = P > 0 ? P : 32;
  constexpr int kVecs = kBlock / kLanes;
  constexpr int kSets = kVecs >= 8 ? 1 : kVecs >= 3 ? 2 : 4;
  const int YP = width.yp();
  for (int j0 = 0; j0 < YP; j0 += kBlock) {
    Vec acc[kSets][kVecs] = {};
    const double* m = M + j0;
    int i = 0;
    for (; i + kSets <= Y; i += kSets)
      for (int s = 0; s < kSets; ++s, m += YP) {
        const Vec xi = splat(x[i + s]);
        for (int k = 0; k < kVecs; ++k) acc[s][k] += xi * load(m + k * kLanes);
      }
    for (; i < Y; ++i, m += YP) {
      const Vec xi = splat(x[i]);
      for (int k = 0; k < kVecs; ++k) acc[0][k] += xi * load(m + k * kLanes);
    }
    for (int s = 1; s < kSets; ++s)
      for (int k = 0; k < kVecs; ++k) acc[0][k] += acc[s][k];
    for (int k = 0; k < kVecs; ++k) store(out + j0 + k * kLanes, acc[0][k]);
  }
}

// out[i] = sum_j M[i][j] x[j]: the backward step without a transposed matrix (edge attributes).
template <int P>
inline void matvec(Width<P> width, int Y, const double* M, const double* x, double* out) {
  const int YP = width.yp();
  for (int i = 0; i < Y; ++i) {
    Vec acc = {};
    for (int j = 0; j < YP; j += kLanes) acc += load(M + i * YP + j) * load(x + j);
    out[i] = sum(acc);
  }
  for (int i = Y; i < YP; ++i) out[i] = 0.0;
}

// out[j] = missing total + sum over the listed pairs (i, j) of excess x[i], with total = sum_i x[i]. `ptr`, `other` and
// `excess` list the pairs by the label before or after.
inline void sparse_product(int Y, int YP, double missing, const int32_t* ptr, const int32_t* other,
                           const double* excess, const double* x, double total, double* out) {
  const double all = missing * total;
  for (int j = 0; j < Y; ++j) {
    double sum = all;
    for (int32_t k = ptr[j]; k < ptr[j + 1]; ++k) sum += excess[k] * x[other[k]];
    out[j] = sum;
  }
  for (int j = Y; j < YP; ++j) out[j] = 0.0;
}

// One sum of such a product without a subtraction, in Y steps: missing sum over the labels i that are not listed of
// x[i] + sum over the listed ones, other .. end in ascending order, of E x[i]. at(i) is x[i], a Number or one for each
// lane. Four sums hide the latency.
template <class Number, class At>
inline Number uncancelled(int Y, double missing, const int32_t* other, const int32_t* end, const double* E,
                          const Number& zero, const At& at) {
  Number rest[4] = {zero, zero, zero, zero}, listed = zero;
  const auto add_rest = [&](int i, int stop) {
    for (; i + 4 <= stop; i += 4)
      for (int k = 0; k < 4; ++k) rest[k] += at(i + k);
    for (; i < stop; ++i) rest[0] += at(i);
  };
  int i = 0;
  for (; other < end; ++other, ++E) {
    add_rest(i, *other);
    listed += *E * at(*other);
    i = *other + 1;
  }
  add_rest(i, Y);
  return listed + missing * ((rest[0] + rest[1]) + (rest[2] + rest[3]));
}

// sparse_product for x >= 0, without loss of digits.
inline void positive_product(int Y, int YP, double missing, const int32_t* ptr, const int32_t* other,
                             const double* excess, const double* E, const double* x, double total, double* out) {
  sparse_product(Y, YP, missing, ptr, other, excess, x, total, out);
  for (int j = 0; j < Y; ++j)
    if (kCancel * out[j] < missing * total)
      out[j] =
          uncancelled(Y, missing, other + ptr[j], other + ptr[j + 1], E + ptr[j], 0.0, [&](int i) { return x[i]; });
}

// G[i][:] += sum_{t=1}^{T-1} alpha[t-1][i] z[t][:], a block of rows of G in registers at a time.
template <int P>
inline void add_outer(Width<P> width, int Y, int64_t T, const double* alpha, const double* z, double* G) {
  constexpr int kBlock = P > 0 ? P : 32;
  constexpr int kVecs = kBlock / kLanes;
  constexpr int kRegisters = kLanes == 8 ? 24 : 12;
  constexpr int kRows = kRegisters / kVecs >= 8 ? 8 : kRegisters / kVecs >= 4 ? 4 : kRegisters / kVecs >= 2 ? 2 : 1;
  const int YP = width.yp();
  for (int j0 = 0; j0 < YP; j0 += kBlock) {
    int i = 0;
    for (; i + kRows <= Y; i += kRows) {
      Vec acc[kRows][kVecs] = {};
      for (int64_t t = 1; t < T; ++t) {
        const double* zt = z + t * YP + j0;
        const double* at = alpha + (t - 1) * YP + i;
        for (int k = 0; k < kVecs; ++k) {
          const Vec zk = load(zt + k * kLanes);
          for (int r = 0; r < kRows; ++r) acc[r][k] += splat(at[r]) * zk;
        }
      }
      for (int r = 0; r < kRows; ++r)
        for (int k = 0; k < kVecs; ++k) {
          double* g = G + (i + r) * YP + j0 + k * kLanes;
          store(g, load(g) + acc[r][k]);
        }
    }
    for (; i < Y; ++i) {
      Vec acc[kVecs] = {};
      for (int64_t t = 1; t < T; ++t) {
        const Vec a = splat(alpha[(t - 1) * YP + i]);
        for (int k = 0; k < kVecs; ++k) acc[k] += a * load(z + t * YP + j0 + k * kLanes);
      }
      for (int k = 0; k < kVecs; ++k) {
        double* g = G + i * YP + j0 + k * kLanes;
        store(g, load(g) + acc[k]);
      }
    }
  }
}

// S = exp(U - max U), padding 0; returns the maximum.
template <int P>
inline double exponentials(Width<P> width, int Y, double* U, double* S) {
  const int YP = width.yp();
  for (int j = Y; j < YP; ++j) U[j] = -INFINITY;
  Vec top = load(U);
  for (int j = kLanes; j < YP; j += kLanes) top = vmax(top, load(U + j));
  const double m = max_lane(top);
  for (int j = 0; j < YP; j += kLanes) store(S + j, vexp(load(U + j) - splat(m)));
  return m;
}

// M = exp(M - max M) for scores of label pairs [Y][YP], padding 0; returns the maximum.
inline double pair_exponentials(int Y, int YP, double* M) {
  double m = -INFINITY;
  for (int i = 0; i < Y; ++i)
    for (int j = 0; j < Y; ++j) m = M[i * YP + j] > m ? M[i * YP + j] : m;
  for (int i = 0; i < Y; ++i) {
    for (int j = Y; j < YP; ++j) M[i * YP + j] = -INFINITY;
    for (int j = 0; j < YP; j += kLanes) store(M + i * YP + j, vexp(load(M + i * YP + j) - splat(m)));
  }
  return m;
}

// Running product of scales with few logarithms; each factor is in (1e-70, 1e5).
struct LogProduct {
  double product = 1.0, total = 0.0;
  void multiply(double c) {
    product *= c;
    if (product < 1e-150 || product > 1e150) flush();
  }
  void flush() {
    total += std::log(product);
    product = 1.0;
  }
};

// Forward-backward of one sequence on scores that are already in scratch.U (and scratch.pairs in the log domain with
// edge attributes). The lattice of the last sequence stays in scratch.
template <int P>
class Lattice {
 public:
  Lattice(const Prepared& pre, Scratch& scratch, bool has_edges)
      : width_(pre.YP), pre_(pre), s_(scratch), has_edges_(has_edges) {}

  // Sets: S, alpha, inv. Returns false when the scaled domain cannot hold this sequence.
  // Never inlined: fusing of multiplications and additions depends on the surrounding code, and a sequence must have
  // the same log Z for every caller.
  [[gnu::noinline]] bool forward(int64_t T, double& log_z) {
    const int YP = width_.yp(), Y = pre_.Y;
    LogProduct product;
    double shift = 0.0;
    Vec smallest = splat(1.0);
    const crfit::SparsePairs* sparse = has_edges_ ? nullptr : pre_.sparse;
    for (int64_t t = 0; t < T; ++t) shift += exponentials(width_, Y, s_.U + t * YP, s_.S + t * YP);
    shift += has_edges_ ? all_pair_exponentials(T) : static_cast<double>(T - 1) * pre_.tr_max;
    double* moved = s_.row;  // alpha_{t-1}^T E
    double scale = 1.0;
    for (int64_t t = 0; t < T; ++t) {
      double* v = s_.alpha + t * YP;
      const double* S = s_.S + t * YP;
      // alpha_{t-1} is still unnormalised here; its 1/c is computed while the product runs.
      if (t > 0 && sparse != nullptr)
        positive_product(Y, YP, sparse->missing, sparse->before_ptr, sparse->before, sparse->before_excess,
                         sparse->before_E, v - YP, 1.0 / scale, moved);
      else if (t > 0)
        vecmat(width_, Y, v - YP, has_edges_ ? s_.pairs + t * Y * YP : pre_.E, moved);
      Vec total = {};
      const Vec inv = splat(scale);
      for (int j = 0; j < YP; j += kLanes) {
        const Vec arrived = t > 0 ? load(moved + j) : splat(1.0);
        const Vec value = t > 0 ? arrived * inv * load(S + j) : load(S + j);
        if (t > 0) store(v - YP + j, load(v - YP + j) * inv);
        store(v + j, value);
        total += value;
        smallest = vmin(smallest, vmin(value, arrived) + load(padding_one() + j));
      }
      const double c = sum(total);
      if (!(c > kTiny && c < 1e100)) return false;
      scale = 1.0 / c;
      s_.inv[t] = scale;
      product.multiply(c);
    }
    double* v = s_.alpha + (T - 1) * YP;
    for (int j = 0; j < YP; ++j) v[j] *= scale;
    product.flush();
    log_z = shift + product.total;
    lost_ = !(min_lane(smallest) > kLost);
    cancels_ = false;
    return std::isfinite(log_z);
  }

  // With edge attributes: scores of label pairs become exp(psi - max); returns the sum of the maxima.
  double all_pair_exponentials(int64_t T) {
    double shift = 0.0;
    const int64_t size = static_cast<int64_t>(pre_.Y) * pre_.YP;
    for (int64_t t = 1; t < T; ++t) shift += pair_exponentials(pre_.Y, pre_.YP, s_.pairs + t * size);
    return shift;
  }

  bool lost() const { return lost_; }        // some forward entry may have underflowed
  bool cancels() const { return cancels_; }  // derivatives along a direction would lose digits

  // Sets: beta, z. Returns false when the scaled domain cannot hold this sequence.
  [[gnu::noinline]] bool backward(int64_t T) {
    const int YP = width_.yp(), Y = pre_.Y;
    Vec total = {};
    double* last = s_.beta + (T - 1) * YP;
    for (int j = 0; j < YP; ++j) last[j] = j < Y ? 1.0 : 0.0;
    for (int64_t t = T - 1; t > 0; --t) {
      const double *S = s_.S + t * YP, *beta = s_.beta + t * YP;
      double *z = s_.z + t * YP, *before = s_.beta + (t - 1) * YP;
      const Vec inv = splat(s_.inv[t]);
      Vec all = {};
      for (int j = 0; j < YP; j += kLanes) {
        const Vec value = load(S + j) * load(beta + j) * inv;
        store(z + j, value);
        all += value;
      }
      if (has_edges_) {
        matvec(width_, Y, s_.pairs + t * Y * YP, z, before);
      } else if (const crfit::SparsePairs* sparse = pre_.sparse) {
        const double z_total = sum(all);
        cancels_ = cancels_ || !(z_total * sparse->missing < kCancel);
        positive_product(Y, YP, sparse->missing, sparse->after_ptr, sparse->after, sparse->after_excess,
                         sparse->after_E, z, z_total, before);
      } else
        vecmat(width_, Y, z, pre_.ET, before);
      for (int j = 0; j < YP; j += kLanes) {
        const Vec raised = vmax(load(before + j), splat(kTiny));
        store(before + j, raised);
        total += raised;
      }
    }
    return sum(total) < 1.0 / kTiny;  // false for NaN too
  }

 private:
  const double* padding_one() const { return s_.row + width_.yp(); }  // [YP] 0 for labels, 1 for padding

  Width<P> width_;
  const Prepared& pre_;
  Scratch& s_;
  bool has_edges_;
  bool lost_ = false, cancels_ = false;
};

}  // namespace
