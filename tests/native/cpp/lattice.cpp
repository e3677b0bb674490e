// Lattices against the enumeration of all label sequences, at every CPU level; the gradient against differences.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/dispatch.hpp"
#include "base/vectors.hpp"
#include "batch/core.hpp"
#include "check.hpp"
#include "lattice/decoder.hpp"

using namespace crfit;

namespace {

// A small random dataset and layout, with the memory that the views refer to.
struct Problem {
  int Y, order;
  std::vector<int64_t> seq_ptr{0}, attr_ptr{0};
  std::vector<int32_t> attr_ids, labels;
  std::vector<double> attr_values, w;
  std::vector<NgramBlock> ngrams;
  LayoutView layout;
  DataView data;

  Problem(int n_labels, int order_, bool boundary, double scale, const std::vector<int64_t>& lengths, uint32_t seed)
      : Y(n_labels), order(order_) {
    std::mt19937 random(seed);
    constexpr int32_t A = 5;
    for (const int64_t T : lengths) {
      for (int64_t t = 0; t < T; ++t) {
        for (int32_t a = 0; a < A; ++a) {
          if (random() % 2 == 0) continue;
          attr_ids.push_back(a);
          attr_values.push_back(0.25 * static_cast<double>(random() % 8));
        }
        attr_ptr.push_back(static_cast<int64_t>(attr_ids.size()));
        labels.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(Y)));
      }
      seq_ptr.push_back(seq_ptr.back() + T);
    }
    int64_t offset = A * Y, n = Y;
    layout.transition_offset = offset;
    for (int m = 1; m <= order; ++m) {
      n *= Y;
      ngrams.push_back({nullptr, n, offset});
      offset += n;
    }
    layout.n_labels = Y;
    layout.order = order;
    layout.n_attributes = A;
    layout.ngrams = ngrams.data();
    layout.boundary = boundary;
    layout.start_offset = offset;
    layout.end_offset = layout.start_offset + (boundary ? Y : 0);
    layout.edge_offset = layout.n_weights = layout.end_offset + (boundary ? Y : 0);
    w.resize(static_cast<std::size_t>(layout.n_weights));
    for (double& x : w) x = scale * (static_cast<double>(random() % 2001) / 1000.0 - 1.0);
    data.n_sequences = static_cast<int64_t>(lengths.size());
    data.n_positions = seq_ptr.back();
    data.seq_ptr = seq_ptr.data();
    data.attr_ptr = attr_ptr.data();
    data.attr_ids = attr_ids.data();
    data.attr_values = attr_values.data();
    data.labels = labels.data();
  }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  double score(int64_t i, const std::vector<int32_t>& y) const {
    double sum = 0;
    const int64_t T = static_cast<int64_t>(y.size());
    for (int64_t t = 0; t < T; ++t) {
      const int64_t n = seq_ptr[static_cast<std::size_t>(i)] + t;
      const int32_t label = y[static_cast<std::size_t>(t)];
      for (int64_t k = attr_ptr[static_cast<std::size_t>(n)]; k < attr_ptr[static_cast<std::size_t>(n) + 1]; ++k)
        sum += attr_values[static_cast<std::size_t>(k)] *
               w[static_cast<std::size_t>(attr_ids[static_cast<std::size_t>(k)] * Y + label)];
      for (int m = 1; m <= order && m <= t; ++m) {
        int64_t code = 0;
        for (int64_t s = t - m; s <= t; ++s) code = code * Y + y[static_cast<std::size_t>(s)];
        sum += w[static_cast<std::size_t>(ngrams[static_cast<std::size_t>(m) - 1].offset + code)];
      }
    }
    if (layout.boundary)
      sum += w[static_cast<std::size_t>(layout.start_offset + y.front())] +
             w[static_cast<std::size_t>(layout.end_offset + y.back())];
    return sum;
  }
};

// What the lattice computes, by enumeration.
struct Enumerated {
  double log_z = 0, best = -INFINITY;
  std::vector<double> marginals;  // [T][Y]
  std::vector<int32_t> path;

  Enumerated(const Problem& problem, int64_t i) {
    const int64_t T = problem.seq_ptr[static_cast<std::size_t>(i) + 1] - problem.seq_ptr[static_cast<std::size_t>(i)];
    std::vector<std::vector<int32_t>> all;
    std::vector<double> scores;
    std::vector<int32_t> y(static_cast<std::size_t>(T), 0);
    for (;;) {
      all.push_back(y);
      scores.push_back(problem.score(i, y));
      int64_t t = T - 1;
      while (t >= 0 && ++y[static_cast<std::size_t>(t)] == problem.Y) y[static_cast<std::size_t>(t--)] = 0;
      if (t < 0) break;
    }
    const auto top = std::max_element(scores.begin(), scores.end());
    best = *top;
    path = all[static_cast<std::size_t>(top - scores.begin())];
    double z = 0;
    for (const double s : scores) z += std::exp(s - best);
    log_z = best + std::log(z);
    marginals.assign(static_cast<std::size_t>(T * problem.Y), 0.0);
    for (std::size_t k = 0; k < all.size(); ++k)
      for (int64_t t = 0; t < T; ++t)
        marginals[static_cast<std::size_t>(t * problem.Y + all[k][static_cast<std::size_t>(t)])] +=
            std::exp(scores[k] - log_z);
  }
};

std::vector<std::string> levels() {
  std::vector<std::string> found;
  const std::string now = cpu_level_name();
  for (const char* level : {"v2", "v3", "v4"}) {
    try {
      choose_level(level);
      found.push_back(level);
    } catch (const std::invalid_argument&) {
      continue;  // this processor does not have it
    }
  }
  choose_level(now.c_str());
  return found;
}

void compare(const Problem& problem, int n_threads) {
  const std::size_t N = static_cast<std::size_t>(problem.data.n_positions), Y = static_cast<std::size_t>(problem.Y);
  const std::size_t S = static_cast<std::size_t>(problem.data.n_sequences);
  std::vector<int32_t> best(N);
  std::vector<double> score(S), log_z(S), path(S), marginals(N * Y);
  InferenceJob job;
  job.best = best.data();
  job.best_score = score.data();
  job.log_z = log_z.data();
  job.path_score = path.data();
  job.node_marginals = marginals.data();
  const Decoder decoder(problem.layout, problem.w.data());
  decoder.infer(problem.data, n_threads, job);
  double loss = 0;
  for (std::size_t i = 0; i < S; ++i) {
    const Enumerated wanted(problem, static_cast<int64_t>(i));
    const auto begin = static_cast<std::size_t>(problem.seq_ptr[i]),
               end = static_cast<std::size_t>(problem.seq_ptr[i + 1]);
    const std::vector<int32_t> gold(problem.labels.begin() + static_cast<int64_t>(begin),
                                    problem.labels.begin() + static_cast<int64_t>(end));
    CHECK(check::near(log_z[i], wanted.log_z, 1e-10));
    CHECK(check::near(score[i], wanted.best, 1e-10));
    CHECK(check::near(path[i], problem.score(static_cast<int64_t>(i), gold), 1e-10));
    CHECK(std::equal(wanted.path.begin(), wanted.path.end(), best.begin() + static_cast<int64_t>(begin)));
    for (std::size_t k = 0; k < (end - begin) * Y; ++k)
      CHECK(std::abs(marginals[begin * Y + k] - wanted.marginals[k]) < 1e-9);
    loss += wanted.log_z - problem.score(static_cast<int64_t>(i), gold);
  }
  CoreOptions options;
  options.n_threads = n_threads;
  const std::unique_ptr<Core> core = make_core(problem.data, problem.layout, options);
  CHECK(check::near(core->loss(problem.w.data()), loss, 1e-10));
}

}  // namespace

TEST(lattices_equal_the_enumeration_of_all_label_sequences) {
  const std::string now = cpu_level_name();
  for (const std::string& level : levels()) {
    choose_level(level.c_str());
    uint32_t seed = 1;
    for (const int Y : {1, 2, 3, 5})
      for (const int order : {1, 2, 3})
        for (const double scale : {0.0, 1.0, 30.0})
          if (Y > 1 || order == 1) {
            ++seed;
            const Problem problem(Y, order, seed % 2 == 0, scale, {1, 2, 5, 3, 4, 5, 1, 2}, seed);
            compare(problem, 1 + static_cast<int>(seed % 3));
          }
  }
  choose_level(now.c_str());
}

TEST(weights_that_overflow_are_solved_in_the_log_domain) {
  for (const int order : {1, 2}) {
    Problem problem(3, order, true, 2000.0, {4, 5, 1}, 7);
    compare(problem, 2);
  }
}

TEST(the_gradient_equals_differences_of_the_loss_and_products_those_of_gradients) {
  for (const int order : {1, 2}) {
    const Problem problem(3, order, true, 0.7, {4, 2, 6, 1, 3}, 11);
    CoreOptions options;
    options.n_threads = 2;
    const std::unique_ptr<Core> core = make_core(problem.data, problem.layout, options);
    const std::size_t n = problem.w.size();
    std::vector<double> g(n), plus(n), minus(n), w = problem.w, v(n), product(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(static_cast<double>(i) + 1.0);
    const double h = 1e-5;
    core->loss_and_grad(w.data(), 0.5, g.data());
    core->hessian_product(w.data(), v.data(), 0.5, product.data());
    for (std::size_t i = 0; i < n; i += 3) {
      double f[2];
      for (const int side : {0, 1}) {
        w[i] = problem.w[i] + (side == 0 ? h : -h);
        f[side] = core->loss(w.data()) + 0.25 * dot(1, static_cast<int64_t>(n), w.data(), w.data());
      }
      w[i] = problem.w[i];
      CHECK(std::abs((f[0] - f[1]) / (2 * h) - g[i]) < 1e-6);
    }
    for (std::size_t i = 0; i < n; ++i) w[i] = problem.w[i] + h * v[i];
    core->loss_and_grad(w.data(), 0.5, plus.data());
    for (std::size_t i = 0; i < n; ++i) w[i] = problem.w[i] - h * v[i];
    core->loss_and_grad(w.data(), 0.5, minus.data());
    for (std::size_t i = 0; i < n; ++i) CHECK(std::abs((plus[i] - minus[i]) / (2 * h) - product[i]) < 1e-5);
  }
}

TEST(threads_do_not_change_a_bit_of_the_gradient) {
  std::vector<int64_t> lengths;
  for (int i = 0; i < 300; ++i) lengths.push_back(1 + i * 37 % 29);
  const Problem problem(9, 1, true, 0.5, lengths, 5);
  std::vector<std::vector<double>> gradients;
  for (const int threads : {1, 2, 5}) {
    CoreOptions options;
    options.n_threads = threads;
    gradients.emplace_back(problem.w.size());
    make_core(problem.data, problem.layout, options)->loss_and_grad(problem.w.data(), 1.0, gradients.back().data());
  }
  CHECK(gradients[0] == gradients[1]);
  CHECK(gradients[0] == gradients[2]);
}

TEST(vectors_equal_plain_loops) {
  const std::string now = cpu_level_name();
  for (const std::string& level : levels()) {
    choose_level(level.c_str());
    for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{100003}}) {
      std::vector<double> a(n), b(n), out(n);
      for (std::size_t i = 0; i < n; ++i) {
        a[i] = std::sin(static_cast<double>(i));
        b[i] = std::cos(3.0 * static_cast<double>(i));
      }
      double sum = 0, size = 0, most = 0;
      for (std::size_t i = 0; i < n; ++i) {
        sum += a[i] * b[i];
        size += std::abs(a[i]);
        most = std::max(most, std::abs(a[i]));
      }
      const auto N = static_cast<int64_t>(n);
      CHECK(check::near(dot(2, N, a.data(), b.data()), sum, 1e-10));
      CHECK(check::near(sum_abs(2, N, a.data()), size, 1e-10));
      CHECK(norms(2, N, a.data()).inf == most);
      axpy(2, N, a.data(), 0.5, b.data(), out.data());
      for (std::size_t i = 0; i < n; i += 997) CHECK(check::near(out[i], a[i] + 0.5 * b[i], 1e-14));
    }
  }
  choose_level(now.c_str());
}
