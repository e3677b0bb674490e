// Steps on the dual, one sequence at a time; ascent.hpp has the formulas. Included by per-level files only.
//
//   scores   psi[t, :] = sum of x S(u[a, :]) over the attributes of position t
//   solve    p, p_pairs = marginals of the chain theta;  inner = <p, theta>, so Entropy = log Z - inner
//   change   sums[a, :] = sum over the occurrences of a of x change[t, :];  square = |sums|^2
//   rest     sum of rest(u[a, :], factor sums[a, :]), for l1 > 0
//   update   u[a, :] += factor sums[a, :]
//
// Shapes: psi, theta, p, change [T][YP]; pair tables [n_tables][Y][YP] or of the listed pairs, one for all positions
// unless there are edge attributes; sums: a row [YP] for each distinct attribute, or one number for each of its weights
// (weights="observed"). The padding of theta, p and change is 0, so inner products can run over whole rows.
//
// Attributes are merged (MergedAttributes): a rejected trial reads each weight once, an accepted one also writes it
// once. Processing position by position, as the primal does, would read and write the row of an attribute for each
// occurrence and could not compute |E_old Phi - E_new Phi|^2, which needs the sum of the occurrences. u is a
// plain vector, without a scale, because u(a) has no decay.
#pragma once

#include "dual/kernels.hpp"
#include "lattice/sequence.hpp"

namespace {

using crfit::DualJob;
using crfit::MergedAttributes;

constexpr int64_t kAheadRows = 16;  // rows of weights prefetched ahead
constexpr int64_t kFewLabels =
    3;  // weights="observed": up to this many labels of an attribute are processed one by one

inline double value_of(const MergedAttributes& attributes, int64_t occurrence) {
  return attributes.values == nullptr ? 1.0 : attributes.values[occurrence];
}

// Whether the row of an attribute can be read and written YP wide in the plain vector: there are weights after it, and
// they do not change, because the padding of `sums` is 0.
inline bool wide(const DualJob& job, int64_t a) { return a * job.layout->n_labels + job.YP <= job.layout->n_weights; }

// psi[t] = sum over attributes x S(u[a, :]); with Plain S(u) = u.
template <int P, bool Plain>
void dual_scores_of(const DualJob& job) {
  const Width<P> width(job.YP);
  const int YP = width.yp(), Y = job.layout->n_labels;
  const MergedAttributes& m = job.attributes;
  const int64_t* ptr = job.layout->state_ptr;
  double* row = job.scratch->row;  // [YP]
  const double threshold = job.threshold;
  for (int j = 0; j < YP; ++j) row[j] = 0.0;
  for (int64_t i = 0; i < job.T * YP; ++i) job.psi[i] = 0.0;
  int64_t o = 0;
  for (int64_t k = 0; k < m.n; o += m.counts[k], ++k) {
    const int64_t a = m.ids[k];
    if (ptr == nullptr) {
      if (k + kAheadRows < m.n) prefetch_row(job.u + m.ids[k + kAheadRows] * static_cast<int64_t>(Y), Y);
      const double* w = job.u + a * Y;
      if (!Plain || !wide(job, a)) {
        for (int j = 0; j < Y; ++j) row[j] = Plain ? w[j] : crfit::shrunk(w[j], threshold);
        w = row;
      }
      for (int64_t i = o; i < o + m.counts[k]; ++i) {
        double* psi = job.psi + m.positions[i] * YP;
        const Vec x = splat(value_of(m, i));
        for (int j = 0; j < YP; j += kLanes) store(psi + j, load(psi + j) + x * load(w + j));
      }
    } else {
      if (k + kAheadRows < m.n) __builtin_prefetch(job.u + ptr[m.ids[k + kAheadRows]]);
      for (int64_t i = o; i < o + m.counts[k]; ++i) {
        double* psi = job.psi + m.positions[i] * YP;
        const double x = value_of(m, i);
        for (int64_t e = ptr[a]; e < ptr[a + 1]; ++e)
          psi[job.layout->state_labels[e]] += x * (Plain ? job.u[e] : crfit::shrunk(job.u[e], threshold));
      }
    }
  }
  for (int64_t t = 0; t < job.T; ++t)
    for (int j = Y; j < YP; ++j) job.psi[t * YP + j] = 0.0;
}

// Sets: p, p_pairs, log_z, inner of the chain theta.
template <int P>
void dual_solve_of(DualJob& job) {
  const Width<P> width(job.YP);
  const int YP = width.yp();
  const bool listed = job.chain->listed_sums;
  const int64_t table = job.table;
  Scratch& s = *job.scratch;
  for (int64_t i = 0; i < job.T * YP; ++i) s.U[i] = job.theta[i];
  SequenceWorker<P> worker(*job.data, *job.chain, s);
  worker.take(job.sequence, job.theta_pairs);
  worker.solve(true, job.log_domain);
  Vec inner = {};
  for (int64_t t = 0; t < job.T; ++t) {
    double* p = job.p + t * YP;
    worker.node(t, 1.0, p);
    for (int j = 0; j < YP; j += kLanes) inner += load(p + j) * load(job.theta + t * YP + j);
  }
  for (int64_t i = 0; i < job.n_tables * table; ++i) job.p_pairs[i] = 0.0;
  if (worker.factored()) {
    if (job.n_tables > 0) {
      worker.add_products(s.alpha, s.z, job.p_pairs);
      // E of listed pairs is in the order of the table, as is that of all pairs.
      const double* E = listed ? job.chain->ngram_E : job.chain->E;
      for (int64_t i = 0; i < (listed ? job.chain->n_ngrams : table); ++i) job.p_pairs[i] *= E[i];
    }
  } else {
    for (int64_t t = 1; t < job.T; ++t) {
      double* sum = job.p_pairs + (s.pairs != nullptr ? (t - 1) * table : 0);
      worker.pair(t, 1.0, s.matrix);
      if (listed)
        for (int64_t k = 0; k < job.chain->n_ngrams; ++k) sum[k] += s.matrix[job.chain->places[k]];
      else
        for (int64_t i = 0; i < table; ++i) sum[i] += s.matrix[i];
    }
  }
  for (int64_t i = 0; i < job.n_tables * table; i += kLanes) inner += load(job.p_pairs + i) * load(job.theta_pairs + i);
  job.inner = sum(inner);
  job.log_z = worker.log_z;
}

// Sets: sums, square from change.
template <int P>
void dual_change_of(DualJob& job) {
  const Width<P> width(job.YP);
  const int YP = width.yp();
  const MergedAttributes& m = job.attributes;
  const int64_t* ptr = job.layout->state_ptr;
  const int32_t* label = job.layout->state_labels;
  double* out = job.sums;
  double* row = job.scratch->row;
  double square = 0.0;
  Vec squares = {};
  int64_t o = 0;
  for (int64_t k = 0; k < m.n; o += m.counts[k], ++k) {
    const int64_t end = o + m.counts[k];
    const auto total_at = [&](int j) {
      Vec total = splat(value_of(m, o)) * load(job.change + m.positions[o] * YP + j);
      for (int64_t i = o + 1; i < end; ++i) total += splat(value_of(m, i)) * load(job.change + m.positions[i] * YP + j);
      return total;
    };
    if (ptr == nullptr) {
      for (int j = 0; j < YP; j += kLanes) {
        const Vec total = total_at(j);
        store(out + j, total);
        squares += total * total;
      }
      out += YP;
      continue;
    }
    const int64_t first = ptr[m.ids[k]], last = ptr[m.ids[k] + 1];
    if (last - first > kFewLabels) {
      for (int j = 0; j < YP; j += kLanes) store(row + j, total_at(j));
      for (int64_t e = first; e < last; ++e) *out++ = row[label[e]];
    } else {
      for (int64_t e = first; e < last; ++e) {
        *out = 0.0;
        for (int64_t i = o; i < end; ++i) *out += value_of(m, i) * job.change[m.positions[i] * YP + label[e]];
        ++out;
      }
    }
    for (const double* x = out - (last - first); x < out; ++x) square += *x * *x;
  }
  job.square = square + sum(squares);
}

// f(u, sums, n, padded) for the weights of each distinct attribute, in the order in which dual_change_of wrote the
// sums.
template <int P, class F>
void each_row(const DualJob& job, F f) {
  const int YP = Width<P>(job.YP).yp(), Y = job.layout->n_labels;
  const MergedAttributes& m = job.attributes;
  const int64_t* ptr = job.layout->state_ptr;
  const double* sums = job.sums;
  for (int64_t k = 0; k < m.n; ++k) {
    const int64_t a = m.ids[k];
    const int64_t first = ptr == nullptr ? a * Y : ptr[a], n = ptr == nullptr ? Y : ptr[a + 1] - first;
    f(job.u + first, sums, n, ptr == nullptr && wide(job, a));
    sums += ptr == nullptr ? YP : n;
  }
}

template <int P>
double dual_rest_of(const DualJob& job) {
  double total = 0.0;
  each_row<P>(job, [&](const double* u, const double* sums, int64_t n, bool) {
    for (int64_t j = 0; j < n; ++j) total += crfit::rest(u[j], job.factor * sums[j], job.threshold);
  });
  return total;
}

// u += factor * sums.
template <int P>
void dual_update_of(const DualJob& job) {
  const int YP = Width<P>(job.YP).yp();
  each_row<P>(job, [&](double* u, const double* sums, int64_t n, bool padded) {
    if (padded) {
      for (int j = 0; j < YP; j += kLanes) store(u + j, load(u + j) + splat(job.factor) * load(sums + j));
    } else {
      for (int64_t j = 0; j < n; ++j) u[j] += job.factor * sums[j];
    }
  });
}

}  // namespace
