// The state part of the gradient: for each attribute, the sum of the residual rows of its positions. Every weight is
// written by one task in a fixed order: no atomics, no private copies, identical bytes for any number of threads.
// Included by per-level files only.
#pragma once

#include "base/vmath.hpp"
#include "batch/kernels.hpp"

namespace {

using crfit::GatherJob;

constexpr int64_t kAhead = 24;  // rows prefetched ahead

// acc[j] = sum over occurrences [first, last) of residual[row][j0 + j].
template <int kVecs>
inline void sum_rows(const GatherJob& job, int64_t first, int64_t last, int64_t end, int j0, Vec* acc) {
  for (int k = 0; k < kVecs; ++k) acc[k] = Vec{};
  const int64_t step = job.occ_step;
  for (int64_t o = first; o < last; ++o) {
    if (o + kAhead < end) {
      // Also beyond this attribute's rows, up to the end of the task: most attributes have only a few rows.
      const double* ahead = job.residual + job.occ_at[o + kAhead] * step + j0;
      for (int k = 0; k < kVecs * kLanes; k += 8) __builtin_prefetch(ahead + k);
    }
    const double* row = job.residual + job.occ_at[o] * step + j0;
    if (job.occ_values == nullptr) {
      for (int k = 0; k < kVecs; ++k) acc[k] += load(row + k * kLanes);
    } else {
      const Vec x = splat(job.occ_values[o]);
      for (int k = 0; k < kVecs; ++k) acc[k] += x * load(row + k * kLanes);
    }
  }
}

template <int P>
void frequent_rows(const crfit::FrequentJob& job) {
  constexpr int kBlock = P > 0 ? P : 32;
  constexpr int kVecs = kBlock / kLanes;
  const int64_t YP = job.YP;
  for (int64_t r = job.first_row; r < job.last_row; ++r)
    // A row in registers, added to the sums [slots][YP] of all its frequent attributes.
    for (int64_t j0 = 0; j0 < YP; j0 += kBlock) {
      Vec row[kVecs];
      for (int k = 0; k < kVecs; ++k) row[k] = load(job.residual + r * YP + j0 + k * kLanes);
      for (int64_t i = job.slot_ptr[r]; i < job.slot_ptr[r + 1]; ++i) {
        double* sums = job.sums + job.slots[i] * YP + j0;
        if (job.values == nullptr) {
          for (int k = 0; k < kVecs; ++k) store(sums + k * kLanes, load(sums + k * kLanes) + row[k]);
        } else {
          const Vec x = splat(job.values[i]);
          for (int k = 0; k < kVecs; ++k) store(sums + k * kLanes, load(sums + k * kLanes) + x * row[k]);
        }
      }
    }
}

template <int P>
void add_listed_rows(const crfit::GatherRowsJob& job) {
  constexpr int kBlock = P > 0 ? P : 32;
  constexpr int kVecs = kBlock / kLanes;
  GatherJob sums;
  sums.YP = job.YP;
  sums.occ_at = job.rows;
  sums.occ_step = job.YP;
  sums.residual = job.residual;
  Vec acc[kVecs];
  for (int64_t e = job.first; e < job.last; ++e)
    for (int j0 = 0; j0 < job.YP; j0 += kBlock) {
      sum_rows<kVecs>(sums, job.row_ptr[e], job.row_ptr[e + 1], job.row_ptr[job.last], j0, acc);
      for (int k = 0; k < kVecs; ++k) store(job.out + e * job.YP + j0 + k * kLanes, acc[k]);
    }
}

template <int P>
void gather_rows(const GatherJob& job) {
  constexpr int kBlock = P > 0 ? P : 32;
  constexpr int kVecs = kBlock / kLanes;
  const crfit::LayoutView& layout = *job.layout;
  const int64_t Y = layout.n_labels, YP = job.YP;
  const int64_t end = job.occ_ptr[job.last];
  const bool all = layout.state_ptr == nullptr;
  alignas(64) double sums[kBlock];
  Vec acc[kVecs];

  for (int64_t e = job.first; e < job.last; ++e) {
    const int64_t a = job.attributes != nullptr ? job.attributes[e] : e;
    const int64_t first = job.occ_ptr[e], last = job.occ_ptr[e + 1];
    const int64_t w_begin = all ? a * Y : layout.state_ptr[a];
    const int64_t w_end = all ? w_begin + Y : layout.state_ptr[a + 1];

    if (!all && w_end - w_begin <= crfit::kFewLabels) {  // whole rows would waste work
      // g[a, y] = sum of x residual[t, y] + l2 w[a, y], in the order of the positions; occ_at is at the first label
      static_assert(crfit::kFewLabels == 2);
      const int64_t other = w_end - w_begin == 2 ? layout.state_labels[w_begin + 1] - layout.state_labels[w_begin] : 0;
      double totals[2] = {};
      for (int64_t o = first; o < last; ++o) {
        if (o + kAhead < end) __builtin_prefetch(job.residual + job.occ_at[o + kAhead]);
        const double* row = job.residual + job.occ_at[o];
        const double x = job.occ_values == nullptr ? 1.0 : job.occ_values[o];
        totals[0] += x * row[0];
        totals[1] += x * row[other];
      }
      for (int64_t i = w_begin; i < w_end; ++i)
        job.g[i] = job.accumulate ? job.g[i] + totals[i - w_begin] : totals[i - w_begin] + job.l2 * job.w[i];
      continue;
    }
    // A row may be read and written YP wide when all it spills over into are later rows of this task: they are
    // written after it. With few labels that may be several rows.
    const bool spill = all && P > 0 && !job.accumulate && job.attributes == nullptr && w_begin + YP <= job.last * Y;
    if (spill) {
      sum_rows<kVecs>(job, first, last, end, 0, acc);
      for (int k = 0; k < kVecs; ++k)
        store(job.g + w_begin + k * kLanes, acc[k] + splat(job.l2) * load(job.w + w_begin + k * kLanes));
      continue;
    }
    int64_t i = w_begin;
    for (int j0 = 0; j0 < YP; j0 += kBlock) {
      sum_rows<kVecs>(job, first, last, end, j0, acc);
      for (int k = 0; k < kVecs; ++k) store(sums + k * kLanes, acc[k]);
      for (; i < w_end; ++i) {
        const int64_t j = (all ? i - w_begin : layout.state_labels[i]) - j0;
        // state_labels ascend, so the weights of a block of labels follow one another.
        if (j >= kBlock) break;
        job.g[i] = job.accumulate ? job.g[i] + sums[j] : sums[j] + job.l2 * job.w[i];
      }
    }
  }

  if (job.square != nullptr && job.first < job.last) {
    const int64_t begin = all ? job.first * Y : layout.state_ptr[job.first];
    const int64_t stop = all ? job.last * Y : layout.state_ptr[job.last];
    double total = 0.0;
    int64_t i = begin;
    // Four sums, so additions need not wait for each other; their order is fixed.
    Vec squares[4] = {};
    for (; i + 4 * kLanes <= stop; i += 4 * kLanes)
      for (int k = 0; k < 4; ++k) squares[k] += load(job.w + i + k * kLanes) * load(job.w + i + k * kLanes);
    for (; i < stop; ++i) total += job.w[i] * job.w[i];
    *job.square += total + sum((squares[0] + squares[1]) + (squares[2] + squares[3]));
  }
}

}  // namespace
