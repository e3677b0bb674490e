// Worker pool: one pattern, a loop over tasks whose results do not depend on who ran them.
//
// Threads are kept alive between calls (spawning them for each gradient costs more than a short gradient).
// Tasks are handed out by a counter, because sequences differ in length. What must not depend on the number of
// threads (sums) is written per task by the caller and added in task order afterwards.
#pragma once

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

// Cores this process may use: affinity mask and cgroup quota taken into account, at least 1.
int available_threads();

}  // namespace crfit
