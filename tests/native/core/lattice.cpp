// The objective and inference against sums over all label sequences, for random layouts, data and weights.
#include <algorithm>
#include <functional>
#include <limits>

#include "batch/core.hpp"
#include "check.hpp"
#include "lattice/decoder.hpp"
#include "lattice/prepared.hpp"
#include "lattice/weight_rows.hpp"

using namespace crfit;

namespace {

// A layout, data and weights, with the memory that their views need.
struct Problem {
  LayoutView layout;
  DataView data;
  std::vector<double> w;

  std::vector<int64_t> state_ptr{0}, seq_ptr{0}, attr_ptr{0}, edge_ptr{0};
  std::vector<int32_t> state_labels, attr_ids, edge_ids, labels;
  std::vector<double> values, weights;
  std::vector<std::vector<int64_t>> codes;
  std::vector<NgramBlock> ngrams;

  Problem(uint64_t seed, int Y, int order, bool observed, bool boundary, bool edges) {
    check::Random random(seed);
    const int A = 6, B = edges ? 2 : 0;
    layout.n_labels = Y;
    layout.order = order;
    layout.n_attributes = A;
    layout.n_edge_attributes = B;
    layout.boundary = boundary;
    int64_t offset = int64_t{A} * Y;
    if (observed) {
      for (int a = 0; a < A; ++a) {
        for (int32_t y = 0; y < Y; ++y)
          if (random.below(2) == 0) state_labels.push_back(y);
        state_ptr.push_back(static_cast<int64_t>(state_labels.size()));
      }
      layout.state_ptr = state_ptr.data();
      layout.state_labels = state_labels.data();
      offset = state_ptr.back();
    }
    layout.transition_offset = offset;
    int64_t n = Y;
    codes.resize(static_cast<std::size_t>(order));
    for (auto& some : codes) {
      n *= Y;
      some.reserve(1);  // a null pointer would mean all
      for (int64_t code = 0; code < n; ++code)
        if (!observed || random.below(3) == 0) some.push_back(code);
      const auto n_weights = static_cast<int64_t>(some.size());
      ngrams.push_back({observed ? some.data() : nullptr, n_weights, offset});
      offset += n_weights;
    }
    layout.ngrams = ngrams.data();
    layout.start_offset = offset;
    layout.end_offset = offset + (boundary ? Y : 0);
    layout.edge_offset = layout.end_offset + (boundary ? Y : 0);
    layout.n_weights = layout.edge_offset + int64_t{B} * Y * Y;
    for (int64_t i = 0; i < layout.n_weights; ++i) w.push_back(random.uniform(-1.5, 1.5));

    for (const int T : {1, 4, 2, 5, 3, 1, 4, 4, 4, 5, 2, 4}) {
      for (int t = 0; t < T; ++t) {
        for (int k = random.below(3); k >= 0; --k) {
          attr_ids.push_back(random.below(A));
          values.push_back(random.below(2) == 0 ? 1.0 : random.uniform(-1, 2));
        }
        attr_ptr.push_back(static_cast<int64_t>(attr_ids.size()));
        labels.push_back(random.below(Y));
        if (t > 0 && B > 0) edge_ids.push_back(random.below(B));
        edge_ptr.push_back(static_cast<int64_t>(edge_ids.size()));
      }
      seq_ptr.push_back(static_cast<int64_t>(attr_ptr.size()) - 1);
      weights.push_back(random.uniform(0.5, 2));
    }
    data.n_sequences = static_cast<int64_t>(seq_ptr.size()) - 1;
    data.n_positions = seq_ptr.back();
    data.seq_ptr = seq_ptr.data();
    data.attr_ptr = attr_ptr.data();
    data.attr_ids = attr_ids.data();
    data.attr_values = values.data();
    data.labels = labels.data();
    data.weights = weights.data();
    if (edges) {
      data.edge_ptr = edge_ptr.data();
      data.edge_ids = edge_ids.data();
    }
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  // Score of labels y of sequence i.
  double score(int64_t i, const std::vector<int32_t>& y, const std::vector<double>& v) const {
    const int64_t begin = seq_ptr[static_cast<std::size_t>(i)], T = static_cast<int64_t>(y.size()), Y = layout.n_labels;
    const auto weight = [&](int64_t at) { return v[static_cast<std::size_t>(at)]; };
    double total = 0.0;
    for (int64_t t = 0; t < T; ++t) {
      const int32_t* label = y.data() + t;
      for (int64_t k = data.attr_ptr[begin + t]; k < data.attr_ptr[begin + t + 1]; ++k) {
        const int64_t a = data.attr_ids[k];
        if (layout.state_ptr == nullptr) {
          total += data.attr_values[k] * weight(a * Y + *label);
        } else {
          for (int64_t s = layout.state_ptr[a]; s < layout.state_ptr[a + 1]; ++s)
            if (layout.state_labels[s] == *label) total += data.attr_values[k] * weight(s);
        }
      }
      for (int m = 1; m <= std::min<int64_t>(layout.order, t); ++m) {
        const int64_t at = find_ngram(layout.ngrams[m - 1], ngram_code(label, m, Y));
        if (at >= 0) total += weight(layout.ngrams[m - 1].offset + at);
      }
      if (t > 0 && data.edge_ptr != nullptr)
        for (int64_t k = data.edge_ptr[begin + t]; k < data.edge_ptr[begin + t + 1]; ++k)
          total += weight(layout.edge_offset + (data.edge_ids[k] * Y + label[-1]) * Y + *label);
    }
    if (layout.boundary) total += weight(layout.start_offset + y.front()) + weight(layout.end_offset + y.back());
    return total;
  }

  // Calls see(y, score) for all label sequences of sequence i.
  void each(int64_t i, const std::vector<double>& v,
            const std::function<void(const std::vector<int32_t>&, double)>& see) const {
    const auto s = static_cast<std::size_t>(i);
    std::vector<int32_t> y(static_cast<std::size_t>(seq_ptr[s + 1] - seq_ptr[s]), 0);
    while (true) {
      see(y, score(i, y, v));
      std::size_t t = 0;
      while (t < y.size() && ++y[t] == layout.n_labels) y[t++] = 0;
      if (t == y.size()) return;
    }
  }

  double log_z(int64_t i, const std::vector<double>& v) const {
    double top = -INFINITY, sum = 0.0;
    each(i, v, [&](const auto&, double score) { top = std::max(top, score); });
    each(i, v, [&](const auto&, double score) { sum += std::exp(score - top); });
    return top + std::log(sum);
  }

  double loss(const std::vector<double>& v) const {
    double total = 0.0;
    for (int64_t i = 0; i < data.n_sequences; ++i) {
      const std::vector<int32_t> gold(labels.begin() + seq_ptr[static_cast<std::size_t>(i)],
                                      labels.begin() + seq_ptr[static_cast<std::size_t>(i) + 1]);
      total += weights[static_cast<std::size_t>(i)] * (log_z(i, v) - score(i, gold, v));
    }
    return total;
  }
};

void each_problem(const std::function<void(const Problem&)>& see) {
  uint64_t seed = 0;
  for (const int Y : {2, 3})
    for (const int order : {1, 2})
      for (const bool observed : {false, true})
        for (const bool boundary : {false, true})
          for (const bool edges : {false, true})
            if (order == 1 || !edges) see(Problem(++seed, Y, order, observed, boundary, edges));
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

TEST(loss_is_the_sum_over_all_label_sequences) {
  each_problem([](const Problem& p) {
    CoreOptions options;
    const double expected = p.loss(p.w);
    CHECK_CLOSE(make_core(p.data, p.layout, options)->loss(p.w.data()), expected, 1e-12);
    options.log_domain = true;
    CHECK_CLOSE(make_core(p.data, p.layout, options)->loss(p.w.data()), expected, 1e-12);
  });
}

TEST(gradient_and_products_agree_with_differences) {
  each_problem([](const Problem& p) {
    const auto n = p.w.size();
    const double l2 = 0.7, h = 1e-5;
    const auto core = make_core(p.data, p.layout, {});
    std::vector<double> g(n), up(n), down(n), v(n), product(n);
    check::Random random(9);
    for (double& x : v) x = random.uniform(-1, 1);
    const auto at = [&](double step) {
      std::vector<double> moved = p.w;
      for (std::size_t i = 0; i < n; ++i) moved[i] += step * v[i];
      return moved;
    };
    const auto smooth = [&](const std::vector<double>& w) { return p.loss(w) + 0.5 * l2 * dot(w, w); };
    const double value = core->loss_and_grad(p.w.data(), l2, g.data());
    CHECK_CLOSE(value, smooth(p.w), 1e-12);
    CHECK_CLOSE(dot(g, v), (smooth(at(h)) - smooth(at(-h))) / (2 * h), 1e-7);
    core->hessian_product(p.w.data(), v.data(), l2, product.data());
    make_core(p.data, p.layout, {})->loss_and_grad(at(h).data(), l2, up.data());
    make_core(p.data, p.layout, {})->loss_and_grad(at(-h).data(), l2, down.data());
    for (std::size_t i = 0; i < n; ++i) CHECK_CLOSE(product[i], (up[i] - down[i]) / (2 * h), 1e-6);
    // The expected counts are the gradient without the observed counts: at two points the difference is the same.
    std::vector<double> expected(n), g0(n), zero(n, 0.0), expected0(n);
    core->expectations(p.w.data(), expected.data());
    core->loss_and_grad(p.w.data(), 0.0, g.data());
    core->loss_and_grad(zero.data(), 0.0, g0.data());
    core->expectations(zero.data(), expected0.data());
    for (std::size_t i = 0; i < n; ++i) CHECK_CLOSE(expected[i] - g[i], expected0[i] - g0[i], 1e-10);
    double loss = 0, slope = 0;
    core->set_line(p.w.data(), v.data());
    core->along(0.4, loss, slope);
    CHECK_CLOSE(loss, p.loss(at(0.4)), 1e-11);
    CHECK_CLOSE(slope, (p.loss(at(0.4 + h)) - p.loss(at(0.4 - h))) / (2 * h), 1e-7);
  });
}

TEST(threads_do_not_change_the_gradient) {
  each_problem([](const Problem& p) {
    std::vector<double> one(p.w.size()), many(p.w.size());
    CoreOptions options;
    const double value = make_core(p.data, p.layout, options)->loss_and_grad(p.w.data(), 1.0, one.data());
    options.n_threads = 4;
    CHECK(make_core(p.data, p.layout, options)->loss_and_grad(p.w.data(), 1.0, many.data()) == value);
    CHECK(one == many);
  });
}

TEST(best_paths_and_marginals_are_those_of_all_label_sequences) {
  each_problem([](const Problem& p) {
    const Decoder decoder(p.layout, p.w.data());
    const auto N = static_cast<std::size_t>(p.data.n_positions), S = static_cast<std::size_t>(p.data.n_sequences);
    const auto Y = static_cast<std::size_t>(p.layout.n_labels);
    std::vector<int32_t> best(N);
    std::vector<double> best_score(S), log_z(S), nodes(N * Y);
    InferenceJob wanted;
    wanted.best = best.data();
    wanted.best_score = best_score.data();
    wanted.log_z = log_z.data();
    wanted.node_marginals = nodes.data();
    for (const int n_threads : {1, 3}) {
      decoder.infer(p.data, n_threads, wanted);
      const auto paths = decoder.nbest(p.data, 3, n_threads);
      for (std::size_t i = 0; i < S; ++i) {
        const auto begin = static_cast<std::size_t>(p.seq_ptr[i]), end = static_cast<std::size_t>(p.seq_ptr[i + 1]);
        const double z = p.log_z(static_cast<int64_t>(i), p.w);
        CHECK_CLOSE(log_z[i], z, 1e-12);
        std::vector<double> expected((end - begin) * Y, 0.0), scores;
        p.each(static_cast<int64_t>(i), p.w, [&](const auto& y, double score) {
          for (std::size_t t = 0; t < y.size(); ++t)
            expected[t * Y + static_cast<std::size_t>(y[t])] += std::exp(score - z);
          scores.push_back(score);
        });
        for (std::size_t k = 0; k < expected.size(); ++k) CHECK_CLOSE(nodes[begin * Y + k], expected[k], 1e-12);
        std::sort(scores.rbegin(), scores.rend());
        CHECK_CLOSE(best_score[i], scores[0], 1e-12);
        const std::vector<int32_t> path(best.begin() + static_cast<std::ptrdiff_t>(begin),
                                        best.begin() + static_cast<std::ptrdiff_t>(end));
        CHECK_CLOSE(p.score(static_cast<int64_t>(i), path, p.w), scores[0], 1e-12);
        CHECK(paths[i].size() == std::min<std::size_t>(3, scores.size()));
        for (std::size_t k = 0; k < paths[i].size(); ++k)
          CHECK_CLOSE(paths[i][k].log_probability, scores[k] - z, 1e-11);
      }
    }
  });
}

TEST(huge_weights_stay_finite) {
  each_problem([](const Problem& p) {
    std::vector<double> w = p.w, g(w.size());
    for (double& x : w) x *= 1e5;
    const double loss = make_core(p.data, p.layout, {})->loss_and_grad(w.data(), 0.0, g.data());
    CHECK_CLOSE(loss, p.loss(w), 1e-11);
    for (const double x : g) CHECK(std::isfinite(x));
  });
}

// With thousands of classes, tables of all label pairs would take all memory and time.
TEST(steps_without_label_pairs_have_no_tables) {
  const NgramBlock none{nullptr, 0, 0};
  LayoutView layout;
  layout.n_labels = 3000;
  layout.order = 1;
  layout.ngrams = &none;
  CHECK(RowLayout(layout, 1, PairOptions::kOneSequence).ngram_size == 0);
  CHECK(RowLayout(layout, 1, 0.0).ngram_size >= 3000 * 3000);
}
