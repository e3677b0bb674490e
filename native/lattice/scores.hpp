// Log-domain scores of the labels at a position and of the label pairs that end there.
// Everything is in an anonymous namespace: each including file has its own copy, at its own CPU level.
#pragma once

#include "base/vmath.hpp"
#include "lattice/tables.hpp"

namespace {

using crfit::DataView;
using crfit::LayoutView;
using crfit::Prepared;

// Width of a padded label row: a compile-time constant for small label sets (P > 0), else read from the weights.
template <int P>
struct Width {
  explicit Width(int yp) : dynamic(yp) {}
  int dynamic;
  constexpr int yp() const { return P > 0 ? P : dynamic; }
};

// Calls call.operator()<P>() with the padded width P, or 0 for widths without a specialisation.
template <class Call>
void by_width(int yp, Call call) {
  switch (yp) {
    case 8: return call.template operator()<8>();
    case 16: return call.template operator()<16>();
    case 24: return call.template operator()<24>();
    case 32: return call.template operator()<32>();
    case 40: return call.template operator()<40>();
    case 48: return call.template operator()<48>();
    case 56: return call.template operator()<56>();
    case 64: return call.template operator()<64>();
    default: return call.template operator()<0>();
  }
}

constexpr int64_t kAheadScores = 12;  // rows prefetched ahead, at most kTokenPadding

inline void prefetch_row(const double* row, int YP) {
  for (int j = 0; j < YP; j += 8) __builtin_prefetch(row + j);
}

// weights="all": u = sum of whole rows of w.
template <int P>
inline void scores_from_rows(Width<P> width, const DataView& data, const Prepared& pre, int64_t position, double* u) {
  constexpr int kVecs = P > 0 ? P / kLanes : 1;
  const int YP = width.yp();
  const int64_t stride = pre.row_stride, n_known = pre.layout->n_attributes;
  const int64_t first = data.attr_ptr[position], last = data.attr_ptr[position + 1];
  const int64_t end = data.attr_ptr[data.n_positions];
  if constexpr (P > 0) {
    Vec acc[kVecs] = {};
    for (int64_t k = first; k < last; ++k) {
      if (k + kAheadScores < end) prefetch_row(pre.w + data.attr_ids[k + kAheadScores] * stride, YP);
      const int64_t a = data.attr_ids[k];
      if (a >= n_known) continue;
      const double* row = a < pre.direct_rows ? pre.w + a * stride : pre.tail_rows + (a - pre.direct_rows) * YP;
      if (data.attr_values == nullptr) {
        for (int v = 0; v < kVecs; ++v) acc[v] += load(row + v * kLanes);
      } else {
        const Vec x = splat(data.attr_values[k]);
        for (int v = 0; v < kVecs; ++v) acc[v] += x * load(row + v * kLanes);
      }
    }
    for (int v = 0; v < kVecs; ++v) store(u + v * kLanes, acc[v]);
  } else {
    constexpr int kBlock = 32;  // labels in registers at a time
    const auto row_of = [&](int64_t a) {
      return a < pre.direct_rows ? pre.w + a * stride : pre.tail_rows + (a - pre.direct_rows) * YP;
    };
    int j0 = 0;
    for (; j0 + kBlock <= YP; j0 += kBlock) {
      Vec acc[kBlock / kLanes] = {};
      for (int64_t k = first; k < last; ++k) {
        const int64_t a = data.attr_ids[k];
        if (a >= n_known) continue;
        const double* row = row_of(a);
        const Vec x = splat(data.attr_values == nullptr ? 1.0 : data.attr_values[k]);
        for (int v = 0; v < kBlock / kLanes; ++v) acc[v] += x * load(row + j0 + v * kLanes);
      }
      for (int v = 0; v < kBlock / kLanes; ++v) store(u + j0 + v * kLanes, acc[v]);
    }
    for (; j0 < YP; j0 += kLanes) {
      Vec acc = {};
      for (int64_t k = first; k < last; ++k) {
        const int64_t a = data.attr_ids[k];
        if (a >= n_known) continue;
        acc += splat(data.attr_values == nullptr ? 1.0 : data.attr_values[k]) * load(row_of(a) + j0);
      }
      store(u + j0, acc);
    }
  }
}

// u += x * dense row, in registers if the width is known. kAhead: prefetch the rows of the following entries.
template <int P, bool kAhead>
inline void add_dense_rows(Width<P> width, const Prepared& pre, const int32_t* rows, const double* values, int64_t n,
                           double* u) {
  constexpr int kVecs = P > 0 ? P / kLanes : 1;
  const int YP = width.yp();
  if constexpr (P > 0) {
    Vec acc[kVecs];
    for (int v = 0; v < kVecs; ++v) acc[v] = load(u + v * kLanes);
    for (int64_t k = 0; k < n; ++k) {
      if constexpr (kAhead) prefetch_row(pre.hot_rows + static_cast<int64_t>(rows[k + kAheadScores]) * YP, YP);
      const double* row = pre.hot_rows + static_cast<int64_t>(rows[k]) * YP;
      if (values == nullptr) {
        for (int v = 0; v < kVecs; ++v) acc[v] += load(row + v * kLanes);
      } else {
        const Vec x = splat(values[k]);
        for (int v = 0; v < kVecs; ++v) acc[v] += x * load(row + v * kLanes);
      }
    }
    for (int v = 0; v < kVecs; ++v) store(u + v * kLanes, acc[v]);
  } else {
    for (int64_t k = 0; k < n; ++k) {
      const double* row = pre.hot_rows + static_cast<int64_t>(rows[k]) * YP;
      const Vec x = splat(values == nullptr ? 1.0 : values[k]);
      for (int j = 0; j < YP; j += kLanes) store(u + j, load(u + j) + x * load(row + j));
    }
  }
}

// weights="observed" on training data, through the sorted index.
template <int P>
inline void scores_from_index(Width<P> width, const Prepared& pre, int64_t position, double* u) {
  const crfit::TokenIndex& index = *pre.tokens;
  for (int j = 0; j < width.yp(); ++j) u[j] = 0.0;
  const int64_t dense = index.dense_ptr[position];
  add_dense_rows<P, true>(width, pre, index.dense_rows + dense,
                          index.dense_values == nullptr ? nullptr : index.dense_values + dense,
                          index.dense_ptr[position + 1] - dense, u);
  for (int64_t k = index.sparse_ptr[position]; k < index.sparse_ptr[position + 1]; ++k) {
    __builtin_prefetch(pre.w + index.sparse_weights[k + crfit::kTokenPadding]);
    u[index.sparse_labels[k]] +=
        (index.sparse_values == nullptr ? 1.0 : index.sparse_values[k]) * pre.w[index.sparse_weights[k]];
  }
}

// weights="observed" on any data, by attribute id: single weights at once, dense rows together, in registers.
template <int P>
inline void scores_from_ids(Width<P> width, const DataView& data, const Prepared& pre, int64_t position, double* u) {
  constexpr int64_t kGroup = 64;  // dense rows gathered before they are added
  const int64_t* ptr = pre.layout->state_ptr;
  const int32_t* label = pre.layout->state_labels;
  const int64_t first = data.attr_ptr[position], last = data.attr_ptr[position + 1];
  const int64_t total = data.attr_ptr[data.n_positions];
  for (int j = 0; j < width.yp(); ++j) u[j] = 0.0;
  for (int64_t begin = first; begin < last; begin += kGroup) {
    const int64_t end = last - begin < kGroup ? last : begin + kGroup;
    int32_t rows[kGroup];
    double values[kGroup];
    int64_t n = 0;
    const auto gather = [&](int32_t row, double x) {
      rows[n] = row;
      values[n++] = x;
      prefetch_row(pre.hot_rows + static_cast<int64_t>(row) * width.yp(), width.yp());
    };
    for (int64_t k = begin; k < end; ++k) {
      const int64_t a = data.attr_ids[k];
      if (a >= pre.layout->n_attributes) continue;
      const double x = data.attr_values == nullptr ? 1.0 : data.attr_values[k];
      if (pre.attributes != nullptr) {
        if (k + kAheadScores < total) __builtin_prefetch(pre.attributes + data.attr_ids[k + kAheadScores]);
        const crfit::AttributeWeights& entry = pre.attributes[a];
        if (entry.row >= 0)
          gather(entry.row, x);
        else
          for (int i = 0; i < crfit::kHotLabels - 1; ++i) u[entry.label[i]] += x * entry.weight[i];
      } else if (pre.hot_row[a] >= 0) {
        gather(pre.hot_row[a], x);
      } else {
        for (int64_t i = ptr[a]; i < ptr[a + 1]; ++i) u[label[i]] += x * pre.w[i];
      }
    }
    add_dense_rows<P, false>(width, pre, rows, data.attr_values == nullptr ? nullptr : values, n, u);
  }
}

// Scores computed once for all positions with the same attributes.
template <int P>
inline void shared_scores(Width<P> width, const DataView& data, const Prepared& pre, int64_t position, double* u) {
  constexpr int64_t kAheadShared = 8;
  const int YP = width.yp();
  if (position + kAheadShared < data.n_positions)
    prefetch_row(pre.shared + static_cast<int64_t>(pre.token_of[position + kAheadShared]) * YP, YP);
  const double* row = pre.shared + static_cast<int64_t>(pre.token_of[position]) * YP;
  for (int j = 0; j < YP; j += kLanes) store(u + j, load(row + j));
}

// Prefetches what the scores of a position read first; they prefetch the rest themselves.
inline void prefetch_scores(const DataView& data, const Prepared& pre, int64_t position) {
  if (pre.shared != nullptr) {
    for (int64_t t = position; t < position + 8 && t < data.n_positions; ++t)
      prefetch_row(pre.shared + static_cast<int64_t>(pre.token_of[t]) * pre.YP, pre.YP);
  } else if (pre.layout->state_ptr == nullptr) {
    const int64_t first = data.attr_ptr[position], end = data.attr_ptr[data.n_positions];
    for (int64_t k = first; k < first + kAheadScores && k < end; ++k)
      prefetch_row(pre.w + data.attr_ids[k] * pre.row_stride, pre.YP);
  } else if (pre.attributes != nullptr) {
    const int64_t first = data.attr_ptr[position], end = data.attr_ptr[data.n_positions];
    for (int64_t k = first; k < first + kAheadScores && k < end; ++k)
      __builtin_prefetch(pre.attributes + data.attr_ids[k]);
  } else if (pre.tokens != nullptr) {
    const int32_t* rows = pre.tokens->dense_rows + pre.tokens->dense_ptr[position];
    for (int64_t k = 0; k < kAheadScores; ++k)
      prefetch_row(pre.hot_rows + static_cast<int64_t>(rows[k]) * pre.YP, pre.YP);
  }
}

// Node scores of n positions of a sequence, from position `first` on: U[t] = sum_a x_a w[a, :]. The sequence has T
// positions from `begin` on. The padding of U is left undefined.
template <int P>
inline void node_scores(Width<P> width, const DataView& data, const Prepared& pre, int64_t begin, int64_t T,
                        int64_t first, int64_t n, double* U) {
  const int YP = width.yp();
  begin += first;
  for (int64_t t = 0; t < n; ++t) {
    double* u = U + t * YP;
    if (pre.shared != nullptr)
      shared_scores(width, data, pre, begin + t, u);
    else if (pre.layout->state_ptr == nullptr)
      scores_from_rows(width, data, pre, begin + t, u);
    else if (pre.tokens != nullptr)
      scores_from_index(width, pre, begin + t, u);
    else
      scores_from_ids(width, data, pre, begin + t, u);
  }
  if (pre.scale != 1.0)
    for (int64_t i = 0; i < n * YP; i += kLanes) store(U + i, splat(pre.scale) * load(U + i));
  if (pre.offsets != nullptr)
    for (int64_t i = 0; i < n * YP; i += kLanes) store(U + i, load(U + i) + load(pre.offsets + begin * YP + i));
  if (data.mask_of != nullptr)
    for (int64_t t = 0; t < n; ++t)
      if (const int64_t row = data.mask_of[begin + t]; row >= 0)
        for (int j = 0; j < pre.Y; ++j) U[t * YP + j] += data.masks[row * pre.Y + j];
  if (pre.start == nullptr) return;
  if (first == 0)
    for (int j = 0; j < YP; ++j) U[j] += pre.start[j];
  if (first + n == T)
    for (int j = 0; j < YP; ++j) U[(n - 1) * YP + j] += pre.end[j];
}

// The same of all its positions.
template <int P>
inline void node_scores(Width<P> width, const DataView& data, const Prepared& pre, int64_t begin, int64_t T,
                        double* U) {
  node_scores(width, data, pre, begin, T, 0, T, U);
}

// n node scores at base + a * step, from place `first` of the tables on.
inline void line_scores(const crfit::Direction& direction, int64_t first, int64_t n, double* U) {
  const double *u0 = direction.base_scores + first, *u1 = direction.step_scores + first;
  for (int64_t i = 0; i < n; i += kLanes) store(U + i, load(u0 + i) + splat(direction.a) * load(u1 + i));
}

// Adds the edge attributes' scores of the label pairs that end at position t >= 1: out [Y][YP].
inline void edge_scores(const DataView& data, const Prepared& pre, int64_t position, double factor, double* out) {
  const int Y = pre.Y, YP = pre.YP;
  const LayoutView& layout = *pre.layout;
  if (data.edge_ptr == nullptr) return;
  factor *= pre.scale;
  for (int64_t k = data.edge_ptr[position]; k < data.edge_ptr[position + 1]; ++k) {
    const int64_t b = data.edge_ids[k];
    if (b >= layout.n_edge_attributes) continue;
    if (layout.pair_ptr == nullptr) {
      const double* row = pre.edges + b * Y * Y;
      for (int i = 0; i < Y; ++i)
        for (int j = 0; j < Y; ++j) out[i * YP + j] += factor * row[i * Y + j];
    } else {
      for (int64_t e = layout.pair_ptr[b]; e < layout.pair_ptr[b + 1]; ++e) {
        const int code = layout.pair_codes[e];
        out[crfit::padded_pair(code, Y, YP)] += factor * pre.edges[e];
      }
    }
  }
}

// The same with the shared transitions of order 1.
inline void pair_scores(const DataView& data, const Prepared& pre, int64_t position, double factor, double* out) {
  const int Y = pre.Y, YP = pre.YP;
  for (int i = 0; i < Y; ++i)
    for (int j = 0; j < Y; ++j) out[i * YP + j] += factor * pre.tr[i * YP + j];
  edge_scores(data, pre, position, factor, out);
}

}  // namespace
