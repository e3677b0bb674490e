// Loops over tasks: each runs once, errors come out, and loops may be nested or started by several threads at once.
#include "base/pool.hpp"

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>

#include "base/buffers.hpp"
#include "base/dispatch.hpp"
#include "base/spares.hpp"
#include "base/vectors.hpp"
#include "check.hpp"

using crfit::parallel_for;

TEST(every_task_runs_once) {
  for (const int n_threads : {1, 2, 3, 8}) {
    for (const int64_t n_tasks : {0, 1, 2, 7, 1000}) {
      std::vector<int> runs(static_cast<std::size_t>(n_tasks), 0);
      std::atomic<bool> workers_valid{true};
      parallel_for(n_threads, n_tasks, [&](int64_t task, int worker) {
        ++runs[static_cast<std::size_t>(task)];
        if (worker < 0 || worker >= n_threads) workers_valid = false;
      });
      for (const int n : runs) CHECK(n == 1);
      CHECK(workers_valid.load());
    }
  }
}

TEST(an_exception_stops_the_loop_and_comes_out) {
  for (const int n_threads : {1, 4}) {
    CHECK_THROWS(std::runtime_error, parallel_for(n_threads, 100, [](int64_t task, int) {
                   if (task == 13) throw std::runtime_error("task 13");
                 }));
    std::atomic<int> n{0};
    parallel_for(n_threads, 10, [&](int64_t, int) { ++n; });  // the pool works afterwards
    CHECK(n == 10);
  }
}

TEST(loops_inside_loops) {
  std::atomic<int> n{0};
  parallel_for(4, 6, [&](int64_t, int) { parallel_for(4, 5, [&](int64_t, int) { ++n; }); });
  CHECK(n == 30);
}

TEST(loops_of_several_threads_at_once) {
  std::atomic<int> n{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int k = 0; k < 50; ++k) parallel_for(3, 20, [&](int64_t, int) { ++n; });
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(n == 4 * 50 * 20);
}

TEST(short_loops_of_a_team) {
  for (const int n_threads : {1, 2, 4}) {
    crfit::Team team;
    std::vector<int> runs(64, 0);
    team.lead(n_threads, [&] {
      for (int k = 0; k < 200; ++k) {
        team.run(64, [&](int64_t task, int) { ++runs[static_cast<std::size_t>(task)]; });
        for (const int n : runs) CHECK(n == k + 1);  // all tasks are done when run() returns
      }
    });
  }
}

TEST(unknown_levels_are_refused) { CHECK_THROWS(std::invalid_argument, crfit::choose_level("v9")); }

TEST(sums_do_not_depend_on_the_number_of_threads) {
  check::Random random(5);
  const int64_t n = 300'001;
  std::vector<double> a(static_cast<std::size_t>(n)), b(a), one(a), many(a);
  for (double& x : a) x = random.uniform(-1, 1);
  for (double& x : b) x = random.uniform(-1, 1);
  const double dot = crfit::dot(1, n, a.data(), b.data());
  long double exact = 0;
  for (std::size_t i = 0; i < a.size(); ++i) exact += static_cast<long double>(a[i]) * b[i];
  CHECK_CLOSE(dot, static_cast<double>(exact), 1e-10);
  crfit::axpy(1, n, a.data(), 0.3, b.data(), one.data());
  for (const int n_threads : {2, 5}) {
    CHECK(crfit::dot(n_threads, n, a.data(), b.data()) == dot);
    crfit::axpy(n_threads, n, a.data(), 0.3, b.data(), many.data());
    CHECK(many == one);
  }
}

TEST(vectors_equal_plain_loops) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{100'003}}) {
    std::vector<double> a(n), out(n);
    for (std::size_t i = 0; i < n; ++i) a[i] = std::sin(static_cast<double>(i));
    double sum = 0, largest = 0;
    for (const double x : a) {
      sum += std::fabs(x);
      largest = std::fmax(largest, std::fabs(x));
    }
    const auto N = static_cast<int64_t>(n);
    CHECK_CLOSE(crfit::sum_abs(2, N, a.data()), sum, 1e-10);
    CHECK(crfit::norms(2, N, a.data()).inf == largest);
    crfit::scale_into(2, N, -2.0, a.data(), out.data());
    for (std::size_t i = 0; i < n; ++i) CHECK(out[i] == -2.0 * a[i]);
  }
}

TEST(memory_is_aligned_and_moves) {
  for (const int64_t n : {1, 7, 64, 1 << 20}) {
    crfit::Buffer<double> buffer = crfit::zero_buffer(n);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
    CHECK(buffer[n - 1] == 0.0);
    buffer[n - 1] = 3.0;
    const crfit::Buffer<double> other(std::move(buffer));
    CHECK(other.size() == n && other[n - 1] == 3.0);
  }
}

TEST(spares_have_one_owner_at_a_time) {
  crfit::Spares<int> spares;
  std::atomic<int> n_shared{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        std::unique_ptr<int> mine = spares.take();
        if (mine == nullptr) mine = std::make_unique<int>(0);
        if (++*mine != 1) ++n_shared;
        --*mine;
        spares.give(std::move(mine));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(n_shared == 0);
}
