#include "online/period_tables.hpp"

#include <algorithm>
#include <cmath>

#include "base/dispatch.hpp"
#include "online/kernels.hpp"

namespace crfit {

namespace {

// Index in the plain weight vector of each entry of a table, -1 without a weight.
std::vector<int64_t> plain_places(const RowLayout& shape, PeriodTables::Name name, int64_t n) {
  const LayoutView& layout = shape.layout;
  std::vector<int64_t> places(static_cast<std::size_t>(n), -1);
  const int64_t Y = layout.n_labels;
  if (n == 0) return places;
  if (name != PeriodTables::kTransitions) {
    const int64_t offset = name == PeriodTables::kStart ? layout.start_offset : layout.end_offset;
    for (int64_t j = 0; j < Y; ++j) places[j] = offset + j;
    return places;
  }
  for (int m = 1; m <= layout.order; ++m)
    for (int64_t k = 0; k < layout.ngrams[m - 1].n; ++k)
      places[shape.ngram_place(m, k)] = layout.ngrams[m - 1].offset + k;
  return places;
}

}  // namespace

PeriodTables::PeriodTables(OnlineWeights& weights, const PeriodRule& rule) : rule_(rule) {
  const RowLayout& shape = weights.shape;
  const LayoutView& layout = shape.layout;
  tables_[kTransitions].w = weights.current.tr.data();
  tables_[kStart].w = weights.current.start.data();
  tables_[kEnd].w = weights.current.end.data();
  tables_[kTransitions].mask = weights.mask.data();
  tables_[kStart].mask = tables_[kEnd].mask = weights.boundary_mask.data();
  tables_[kTransitions].n = layout.start_offset > layout.transition_offset ? shape.ngram_size : 0;
  tables_[kStart].n = tables_[kEnd].n = layout.boundary ? shape.YP : 0;
  first_plain_ = layout.transition_offset;
  entry_of_.assign(static_cast<std::size_t>(layout.edge_offset - layout.transition_offset), -1);
  // entries of the tables before this one
  int64_t before = 0;
  for (const Name name : {kTransitions, kStart, kEnd}) {
    Table& table = tables_[name];
    const auto size = static_cast<std::size_t>(table.n);
    table.plain = plain_places(shape, name, table.n);
    for (int64_t i = 0; i < table.n; ++i)
      if (table.plain[i] >= 0) entry_of_[table.plain[i] - first_plain_] = before + i;
    before += table.n;
    table.r.assign(size, 1.0);
    table.start.resize(size);
    table.middle.resize(size);
    if (!window()) continue;
    table.before.resize(size);
    table.steps.resize(size * static_cast<std::size_t>(2 * rule_.half));
  }
}

void PeriodTables::set_factors(double transitions, double boundary) {
  for (const Name name : {kTransitions, kStart, kEnd})
    std::fill(tables_[name].r.begin(), tables_[name].r.end(), name == kTransitions ? transitions : boundary);
}

void PeriodTables::set_factors(const double* plain) {
  for (Table& table : tables_)
    for (int64_t i = 0; i < table.n; ++i)
      if (table.plain[i] >= 0) table.r[i] = plain[table.plain[i]];
}

void PeriodTables::get_factors(double* plain) const {
  for (const Table& table : tables_)
    for (int64_t i = 0; i < table.n; ++i)
      if (table.plain[i] >= 0) plain[table.plain[i]] = table.r[i];
}

void PeriodTables::begin_step(int64_t k) {
  for (Table& table : tables_) {
    if (k == 0) std::copy_n(table.w, table.n, table.start.data());
    if (k == rule_.half) std::copy_n(table.w, table.n, table.middle.data());
    if (window()) std::copy_n(table.w, table.n, table.before.data());
  }
}

void PeriodTables::end_step(int64_t k) {
  if (!window()) return;
  for (Table& table : tables_)
    // steps: [2b][n], what step k changed each weight by
    for (int64_t i = 0; i < table.n; ++i) table.steps[k * table.n + i] = table.w[i] - table.before[i];
}

void PeriodTables::update(Name name, const double* residual, double eta, double penalty) {
  const Table& table = tables_[name];
  at_level<OnlineKernels>().period_table({table.n, table.r.data(), table.mask, residual, eta, penalty, table.w});
}

void PeriodTables::adapt() {
  const int64_t b = rule_.half;
  for (Table& table : tables_) {
    double* r = table.r.data();
    if (!window()) {
      at_level<OnlineKernels>().period_factors(
          {rule_, table.n, table.w, table.start.data(), table.middle.data(), 1.0, r, r});
      continue;
    }
    for (int64_t i = 0; i < table.n; ++i) {
      // D1 = the changes in the b steps of the first half, D2 = those of the second, paired step by step
      double s11 = 0.0, s12 = 0.0, s22 = 0.0;
      for (int64_t k = 0; k < b; ++k) {
        const double d1 = table.steps[k * table.n + i], d2 = table.steps[(b + k) * table.n + i];
        s11 += d1 * d1, s12 += d1 * d2, s22 += d2 * d2;
      }
      r[i] *= multiplier(rule_, estimate(rule_, s11, s12, s22, table.w[i] * table.w[i]));
    }
  }
}

void PeriodTables::add_products(Name name, double* sums) const {
  const Table& table = tables_[name];
  for (int64_t i = 0; i < table.n; ++i) {
    if (table.mask[i] == 0.0) continue;
    const double w = table.w[i], d1 = table.middle[i] - table.start[i], d2 = w - table.middle[i];
    // D1 = middle - start, D2 = now - middle
    sums[0] += d1 * d1, sums[1] += d1 * d2, sums[2] += d2 * d2, sums[3] += w * w;
  }
}

int64_t PeriodTables::n_weights() const {
  return std::count_if(entry_of_.begin(), entry_of_.end(), [](int64_t entry) { return entry >= 0; });
}

int64_t PeriodTables::get(int64_t k, int64_t to, int64_t n, const TouchedWeights& out) const {
  const int64_t b = rule_.half;
  for (const Table& table : tables_)
    for (int64_t i = 0; i < table.n; ++i) {
      if (table.plain[i] < 0) continue;
      out.weights[to] = table.plain[i];
      // Every sequence touches these weights: after step b both halves have touched them.
      out.halves[to] = k > b ? 3 : 1;
      if (window()) {
        for (int64_t s = 0; s < 2 * b; ++s) out.steps[s * n + to] = s < k ? table.steps[s * table.n + i] : 0.0;
      } else {
        out.start[to] = table.start[i];
        out.middle[to] = k > b ? table.middle[i] : 0.0;
      }
      ++to;
    }
  return to;
}

bool PeriodTables::restore(int64_t from, int64_t n, const TouchedWeights& in) {
  const int64_t place = in.weights[from] - first_plain_;
  if (place < 0 || place >= static_cast<int64_t>(entry_of_.size())) return false;
  int64_t i = entry_of_[place];
  Table* table = tables_;
  for (; i >= table->n; ++table) i -= table->n;
  if (window()) {
    for (int64_t s = 0; s < 2 * rule_.half; ++s) table->steps[s * table->n + i] = in.steps[s * n + from];
  } else {
    table->start[i] = in.start[from];
    table->middle[i] = in.middle[from];
  }
  return true;
}

}  // namespace crfit
