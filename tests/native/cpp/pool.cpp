// The pool: every task once, errors, nested loops, several callers, teams; CPU levels; memory.
#include "base/pool.hpp"

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/buffers.hpp"
#include "base/dispatch.hpp"
#include "base/spares.hpp"
#include "check.hpp"

using crfit::parallel_for;

TEST(each_task_runs_once_with_a_worker_of_the_loop) {
  for (const int threads : {1, 2, 5}) {
    for (const int64_t n : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(n));
      std::atomic<bool> worker_fits{true};
      parallel_for(threads, n, [&](int64_t task, int worker) {
        ++runs[static_cast<std::size_t>(task)];
        if (worker < 0 || worker >= threads) worker_fits = false;
      });
      CHECK(worker_fits);
      bool once = true;
      for (const auto& count : runs) once = once && count == 1;
      CHECK(once);
    }
  }
}

TEST(an_error_in_a_task_is_thrown_by_the_loop_and_the_next_loop_works) {
  for (int round = 0; round < 20; ++round) {
    const auto fail = [](int64_t task, int) {
      if (task == 7) throw std::runtime_error("task 7");
    };
    CHECK_THROWS(parallel_for(3, 100, fail), std::runtime_error);
    std::atomic<int64_t> sum{0};
    parallel_for(3, 100, [&](int64_t task, int) { sum += task; });
    CHECK(sum == 4950);
  }
}

TEST(loops_in_loops_and_from_several_threads) {
  std::atomic<int64_t> sum{0};
  const auto outer = [&] {
    parallel_for(3, 20, [&](int64_t, int) { parallel_for(3, 50, [&](int64_t task, int) { sum += task; }); });
  };
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) threads.emplace_back(outer);
  for (std::thread& thread : threads) thread.join();
  CHECK(sum == 4 * 20 * 1225);
}

TEST(a_team_runs_short_loops_one_after_another) {
  for (const int threads : {1, 2, 4}) {
    crfit::Team team;
    std::vector<int64_t> values(64, 0);
    team.lead(threads, [&] {
      for (int loop = 0; loop < 200; ++loop)
        team.run(64, [&](int64_t task, int) { values[static_cast<std::size_t>(task)] += task; });
    });
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == 200 * static_cast<int64_t>(i));
  }
}

TEST(levels_by_name) {
  const std::string first = crfit::cpu_level_name();
  crfit::choose_level("v2");
  CHECK(std::string(crfit::cpu_level_name()) == "v2");
  CHECK(crfit::cpu_level() == 0);
  CHECK_THROWS(crfit::choose_level("v9"), std::invalid_argument);
  CHECK_THROWS(crfit::choose_level(""), std::invalid_argument);
  crfit::choose_level(first.c_str());
  CHECK(crfit::cpu_level_name() == first);
  CHECK(crfit::available_threads() >= 1);
}

TEST(memory_is_aligned_and_moves) {
  for (const int64_t n : {1, 7, 64, 1 << 20}) {
    crfit::Buffer<double> buffer = crfit::zero_buffer(n);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64 == 0);
    CHECK(buffer[n - 1] == 0.0);
    buffer[n - 1] = 3.0;
    crfit::Buffer<double> other(std::move(buffer));
    CHECK(other.size() == n && other[n - 1] == 3.0);
    other.resize(0);
    CHECK(other.data() == nullptr);
  }
}

TEST(spares_are_given_once) {
  crfit::Spares<int> spares;
  std::atomic<int> made{0}, bad{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        std::unique_ptr<int> mine = spares.take();
        if (mine == nullptr) mine = std::make_unique<int>(++made * 0);
        if (++*mine != 1) ++bad;
        --*mine;
        spares.give(std::move(mine));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(bad == 0);
}
