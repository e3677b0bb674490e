// Best paths of several sequences at once, a lane of the vector for each. Included by per-level files only.
//
//   delta_0 = U_0;   delta_t[j] = max_i (delta_{t-1}[i] + tr[i, j]) + U_t[j]
//
// The maxima are kept, and tracing back finds the label before as the first that reaches its maximum: ties go to the
// lower label. With order k, j stands for the state (h, j) and i for (i, h). With sparse pairs of order 1 a label takes
// the best of its listed predecessors and the best of all labels that lose nothing on the way to it. The latter is
// nearly always one of the four best labels, whatever the label after.
#pragma once

#include "lattice/history_forward_backward.hpp"
#include "lattice/lane_lattice.hpp"

namespace {

using crfit::HistoryTable;

template <int N, bool kHistories = false>
class LanePaths : public LaneLattice<N, kHistories> {
  using Base = LaneLattice<N, kHistories>;
  using Wide = Lanes<N>;
  static constexpr int G = Base::G;

 public:
  using Base::Base, Base::n, Base::T, Base::length;

  double score[G];  // of the best path

  // Sets: delta in the table A, maxima in the table z, gold.
  [[gnu::noinline]] void maximise() {
    const Prepared& pre = Base::pre_;
    LaneScratch& s = Base::s_;
    const int Y = pre.Y;
    const int64_t row = Base::row_;
    for (int l = 0; l < G; ++l) Base::gold[l] = 0.0;
    int here = n;
    for (int64_t t = 0; t < T; ++t) {
      here = Base::in_use(t, here);
      if (t % s.row_block == 0) Base::load_rows(t, here);
      double *delta = s.A + t * row, *maxima = s.z + t * row, *U = s.row;
      Base::rows_in(t % s.row_block, here, U);
      const auto arrive = [&](int64_t j, int64_t y, const Wide& best) __attribute__((always_inline)) {
        store_lanes(maxima + j * G, best);
        store_lanes(delta + j * G, best + load_lanes<N>(U + y * G));
      };
      if (t == 0) {
        for (int j = 0; j < Y; ++j) store_lanes(delta + j * G, load_lanes<N>(U + j * G));
      } else if (!kHistories && pre.sparse != nullptr) {
        listed_maxima(delta - row, here, ranking(t), maxima);
        for (int j = 0; j < Y; ++j) arrive(j, j, load_lanes<N>(maxima + j * G));
      } else {
        const int64_t H = Base::histories(t), n_dropped = t < pre.order ? 1 : Y;
        const double* tr = pre.tables[(t < pre.order ? t : pre.order) - 1].tr;
        for (int64_t h = 0; h < H; ++h)
          dense_maxima(n_dropped, H * pre.YP, tr + h * pre.YP, H * G, delta - row + h * G,
                       [&](int y, const Wide& best) __attribute__((always_inline)) { arrive(h * Y + y, y, best); });
      }
    }
  }

  // Writes the best path of each sequence: labels_of(lane) is where it goes. Sets: score.
  template <class Labels>
  void trace(const Labels& labels_of) {
    const int Y = Base::pre_.Y;
    const LaneScratch& s = Base::s_;
    for (int l = 0; l < n; ++l) {
      int32_t* out = labels_of(l);
      const double* last = s.A + (length[l] - 1) * Base::row_ + l;
      if constexpr (kHistories) {
        trace_states(l, last, out);
        continue;
      }
      int y = 0;
      for (int j = 1; j < Y; ++j)
        if (last[j * G] > last[y * G]) y = j;
      score[l] = last[y * G];
      for (int64_t t = length[l] - 1; t > 0; --t) {
        out[t] = y;
        const double *before = s.A + (t - 1) * Base::row_ + l, reached = s.z[t * Base::row_ + y * G + l];
        y = Base::pre_.sparse != nullptr ? listed_before(before, ranking(t) + l, reached, y)
                                         : label_before(before, reached, y);
      }
      out[0] = y;
    }
  }

 private:
  // done(y, max_i before[i] + tr[i, y]) for all labels y and n labels i, which are x_step and m_step apart.
  template <class Done>
  [[gnu::always_inline]] inline void dense_maxima(int64_t n_before, int64_t m_step, const double* tr, int64_t x_step,
                                                  const double* before, const Done& done) const {
    constexpr int kWide = kLanes == 8 ? 8 : N <= 4 ? 8 / N : 1;  // divides YP
    const int Y = Base::pre_.Y;
    for (int j0 = 0; j0 < Y; j0 += kWide) {
      Wide top[kWide];
      const Wide first = load_lanes<N>(before);
      const double* m = tr + j0;
      for (int k = 0; k < kWide; ++k) top[k] = first + all_lanes<N>(m[k]);
      for (int64_t i = 1; i < n_before; ++i) {
        m += m_step;
        const Wide x = load_lanes<N>(before + i * x_step);
        for (int k = 0; k < kWide; ++k) top[k] = largest(top[k], x + all_lanes<N>(m[k]));
      }
      for (int k = 0; k < kWide && j0 + k < Y; ++k) done(j0 + k, top[k]);
    }
  }

  // The same for states. Ties: lower last label, then lower second-last label, and so on.
  void trace_states(int l, const double* last, int32_t* out) {
    const int64_t Y = Base::pre_.Y, YP = Base::pre_.YP, H = Base::pre_.n_states / Y;
    const HistoryTable& longest = Base::pre_.tables[Base::pre_.order - 1];
    int64_t state = 0;
    for (int64_t other = 1; other < Base::states(length[l] - 1); ++other) {
      const double gain = last[other * G] - last[state * G];
      if (gain > 0.0 || (gain == 0.0 && lower_from_the_end(other, state, Y))) state = other;
    }
    score[l] = last[state * G];
    for (int64_t t = length[l] - 1; t >= 0; --t) {
      out[t] = static_cast<int32_t>(state % Y);
      const int64_t h = state / Y;
      int64_t from = 0;
      if (t >= Base::pre_.order) {
        const double *before = Base::s_.A + (t - 1) * Base::row_ + h * G + l, *tr = longest.tr + h * YP + state % Y;
        const double reached = Base::s_.z[t * Base::row_ + state * G + l];
        while (from + 1 < Y && before[from * H * G] + tr[from * H * YP] != reached) ++from;
      }
      state = from * H + h;
    }
  }

  static constexpr int kBest = 4;

  // Scores and numbers of the best labels before position t, [2][kBest][lanes].
  double* ranking(int64_t t) const { return Base::s_.b + t * 2 * kBest * G; }

  void listed_maxima(const double* before, int here, double* rank, double* maxima) const {
    const SparsePairs& pairs = *Base::pre_.sparse;
    const int Y = Base::pre_.Y, YP = Base::pre_.YP;
    // The best labels of each lane, ties to the lower label.
    Wide best[kBest], label[kBest];
    for (int r = 0; r < kBest; ++r) {
      best[r] = all_lanes<N>(-INFINITY);
      label[r] = all_lanes<N>(0.0);
    }
    for (int i = 0; i < Y; ++i) {
      const Wide x = load_lanes<N>(before + static_cast<int64_t>(i) * G);
      for (int m = 0; m < N; ++m) {
        Vec value = x.v[m], index = splat(i);
        VecInt better = {};  // from where it is inserted, all others move down: equal scores stay in order
        for (int r = 0; r < kBest; ++r) {
          better |= value > best[r].v[m];
          const Vec out = best[r].v[m], out_index = label[r].v[m];
          best[r].v[m] = better ? value : out;
          label[r].v[m] = better ? index : out_index;
          value = better ? out : value;
          index = better ? out_index : index;
        }
      }
    }
    for (int r = 0; r < kBest; ++r) {
      store_lanes(rank + r * G, best[r]);
      store_lanes(rank + (kBest + r) * G, label[r]);
    }
    // Without a loss the best label leads everywhere but to its listed successors with a negative score.
    double* listed = Base::s_.row + Base::row_;
    for (int j = 0; j < Y; ++j) {
      Wide top = all_lanes<N>(-INFINITY);
      for (int32_t k = pairs.before_ptr[j]; k < pairs.before_ptr[j + 1]; ++k)
        top = largest(top, load_lanes<N>(before + static_cast<int64_t>(pairs.before[k]) * G) +
                               all_lanes<N>(pairs.before_score[k]));
      store_lanes(listed + j * G, top);
      store_lanes(maxima + j * G, largest(top, best[0]));
    }
    const double *values = rank, *labels = rank + kBest * G;
    for (int l = 0; l < here; ++l) {
      const int top = static_cast<int>(labels[l]);
      for (int32_t k = pairs.after_ptr[top]; k < pairs.after_ptr[top + 1]; ++k) {
        if (pairs.after_score[k] >= 0.0) continue;
        const int j = pairs.after[k];
        // Further labels are no better than the last one checked.
        double value = listed[j * G + l];
        int r = 1;
        for (; r < kBest && values[r * G + l] > value; ++r)
          if (Base::pre_.tr[static_cast<int64_t>(labels[r * G + l]) * YP + j] >= 0.0) {
            value = values[r * G + l];
            break;
          }
        if (r == kBest) value = std::fmax(value, best_without_loss(before + l, j));
        maxima[j * G + l] = value;
      }
    }
  }

  // The best of the labels whose score to label j is not negative; -inf without one.
  double best_without_loss(const double* before, int j) const {
    const SparsePairs& pairs = *Base::pre_.sparse;
    double top = -INFINITY;
    int32_t k = pairs.before_ptr[j];
    for (int i = 0; i < Base::pre_.Y; ++i) {
      const bool listed = k < pairs.before_ptr[j + 1] && pairs.before[k] == i;
      const bool loses = listed && pairs.before_score[k] < 0.0;
      k += listed;
      if (!loses && before[static_cast<int64_t>(i) * G] > top) top = before[static_cast<int64_t>(i) * G];
    }
    return top;
  }

  // The first label whose path reaches this maximum at label y.
  int label_before(const double* before, double reached, int y) const {
    const int Y = Base::pre_.Y, YP = Base::pre_.YP;
    for (int i = 0; i < Y - 1; ++i)
      if (before[static_cast<int64_t>(i) * G] + Base::pre_.tr[static_cast<int64_t>(i) * YP + y] == reached) return i;
    return Y - 1;
  }

  // The same with sparse pairs: a listed label, or one of the best.
  int listed_before(const double* before, const double* rank, double reached, int y) const {
    const SparsePairs& pairs = *Base::pre_.sparse;
    int found = Base::pre_.Y;
    for (int32_t k = pairs.before_ptr[y]; k < pairs.before_ptr[y + 1]; ++k)
      if (before[static_cast<int64_t>(pairs.before[k]) * G] + pairs.before_score[k] == reached) {
        found = pairs.before[k];
        break;
      }
    if (!(rank[0] >= reached)) return found < Base::pre_.Y ? found : label_before(before, reached, y);
    // Labels with the same score are ranked by their number, so the first that loses nothing is the lowest.
    for (int r = 0; r < kBest; ++r) {
      const int i = static_cast<int>(rank[(kBest + r) * G]);
      if (rank[r * G] == reached && Base::pre_.tr[static_cast<int64_t>(i) * Base::pre_.YP + y] >= 0.0)
        return i < found ? i : found;
    }
    const int i = label_before(before, reached, y);
    return i < found ? i : found;
  }
};

}  // namespace
