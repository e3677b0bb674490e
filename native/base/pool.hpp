// Worker pool: parallel loops over tasks whose results do not depend on which thread runs them.
//
// Threads stay alive between calls (spawning them for each gradient costs more than a short gradient). Tasks are
// handed out by a counter, because sequences differ in length. Sums must not depend on the number of threads, so the
// caller writes one result per task and adds them in task order.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace crfit {

// A borrowed callable: no allocation, valid only during the call.
class TaskBody {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, TaskBody>)
  TaskBody(F&& f)  // NOLINT: implicit on purpose, so lambdas read naturally at the call
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
// An exception in a task stops the loop and is rethrown here. If another thread of the process is using the pool, the
// loop runs only on the caller: same result, no waiting.
void parallel_for(int n_threads, int64_t n_tasks, TaskBody body);

// Threads that stay awake between short loops. Waking a sleeping worker takes tens of microseconds, so helpers of
// short loops spin instead. Late helpers are not waited for: the others do their tasks.
class Team {
 public:
  // Calls work() on one thread while up to n_threads - 1 others help in its loops.
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
  // Runs body(task, worker) for every task in [0, n_tasks), n_tasks < 2^20; only inside work(). It must not throw.
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

// Cores that this process may use, respecting affinity mask and cgroup quota; at least 1.
int available_threads();

}  // namespace crfit
