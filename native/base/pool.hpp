// Worker pool: one pattern, a loop over tasks whose results do not depend on who ran them.
//
// Threads are kept alive between calls (spawning them for each gradient costs more than a short gradient).
// Tasks are handed out by a counter, because sequences differ in length. What must not depend on the number of
// threads (sums) is written per task by the caller and added in task order afterwards.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace crfit {

// A borrowed callable: no allocation, valid for the duration of the call only.
class TaskBody {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, TaskBody>)
  TaskBody(F&& f)  // NOLINT: implicit on purpose, so that lambdas read naturally at the call
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, int64_t task, int worker) {
          (*static_cast<std::remove_reference_t<F>*>(object))(task, worker);
        }) {}
  void operator()(int64_t task, int worker) const { call_(object_, task, worker); }

 private:
  void* object_;
  void (*call_)(void*, int64_t, int);
};

// Runs body(task, worker) for every task in [0, n_tasks), worker in [0, n_threads). The calling thread is worker 0.
// An exception in a task stops the hand-out and is rethrown here. When the pool is in use by another thread of the
// process the loop runs on the caller alone: same result, no waiting.
void parallel_for(int n_threads, int64_t n_tasks, TaskBody body);

// Threads that stay awake between short loops. Waking a sleeping worker takes tens of microseconds; where a loop takes
// not much longer, helpers spin instead. A helper that is late is not waited for: the others do its tasks.
class Team {
 public:
  // Calls work() on one thread while up to n_threads - 1 others help in the loops that it runs.
  template <class Work>
  void lead(int n_threads, Work work) {
    alone_ = n_threads <= 1;
    parallel_for(n_threads, n_threads, [&](int64_t task, int worker) {
      if (task > 0) return help(worker);
      const Closing closing{*this};
      leader_ = worker;
      work();
    });
  }
  // Runs body(task, worker) for every task in [0, n_tasks), n_tasks < 2^20; within work() only. It must not throw.
  void run(int64_t n_tasks, TaskBody body);

 private:
  struct Closing {
    Team& team;
    ~Closing() { team.closed_.store(true, std::memory_order_release); }
  };
  bool take_tasks(int worker);
  void help(int worker);

  // Number of the loop (24 bits), its tasks (20), the next one (20): a late helper cannot take a task of another loop.
  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int64_t> done_{0};
  alignas(64) std::atomic<bool> closed_{false};
  const TaskBody* body_ = nullptr;
  uint64_t n_loops_ = 0;
  int leader_ = 0;
  bool alone_ = false;
};

// Cores this process may use: affinity mask and cgroup quota taken into account, at least 1.
int available_threads();

}  // namespace crfit
