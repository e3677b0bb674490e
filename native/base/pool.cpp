#include "base/pool.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif
#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace crfit {
namespace {

#if defined(_WIN32)
int64_t process() { return 0; }  // processes are not forked
#else
int64_t process() { return getpid(); }
#endif

struct Job {
  const TaskBody* body = nullptr;
  int64_t n_tasks = 0;
  int n_workers = 0;             // requested workers, without the caller
  std::atomic<int64_t> next{0};  // next task to hand out
  std::atomic<int> running{0};   // workers that have not finished this job
  std::mutex error_mutex;
  std::exception_ptr error;

  void run(int worker) {
    inside = true;
    hand_out(worker);
    inside = false;
  }

  static thread_local bool inside;  // this thread is running a task: a nested loop runs on this thread only

 private:
  void hand_out(int worker) {
    for (;;) {
      const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
      if (task >= n_tasks) return;
      try {
        (*body)(task, worker);
      } catch (...) {
        std::lock_guard<std::mutex> lock(error_mutex);
        if (!error) error = std::current_exception();
        next.store(n_tasks, std::memory_order_relaxed);  // no further task starts
      }
    }
  }
};

thread_local bool Job::inside = false;

// The first exception of a thread allocates libstdc++'s thread-local data, and glibc ends the process if it cannot. So
// each thread throws one while it still has memory.
void prepare_exceptions() {
  try {
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
  }
}

class Pool {
 public:
  std::mutex in_use;  // held for the duration of a parallel loop
  const int64_t pid = process();

  void run(Job& job) {
    try {
      while (n_threads_ < job.n_workers) {
        std::thread(&Pool::loop, this, n_threads_ + 1, generation_).detach();
        ++n_threads_;
      }
    } catch (const std::system_error&) {
      // No more threads available: use those already started.
    }
    job.running.store(n_threads_, std::memory_order_relaxed);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = &job;
      ++generation_;
    }
    wake_.notify_all();
    job.run(0);
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [&] { return job.running.load(std::memory_order_acquire) == 0; });
    job_ = nullptr;
  }

 private:
  void loop(int worker, uint64_t seen) {
    prepare_exceptions();
    for (;;) {
      Job* job;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return generation_ != seen; });
        seen = generation_;
        job = job_;
      }
      if (worker <= job->n_workers) job->run(worker);
      if (job->running.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        std::lock_guard<std::mutex> lock(mutex_);
        done_.notify_one();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Job* job_ = nullptr;
  uint64_t generation_ = 0;
  int n_threads_ = 0;
};

// Never destroyed: its threads may be waiting when the process ends. After a fork the child has no worker threads,
// so it gets a new pool.
Pool& pool() {
  static std::atomic<Pool*> current{nullptr};
  Pool* p = current.load(std::memory_order_acquire);
  while (p == nullptr || p->pid != process()) {
    Pool* fresh = new Pool();
    if (current.compare_exchange_strong(p, fresh, std::memory_order_acq_rel)) return *fresh;
    delete fresh;
  }
  return *p;
}

// Cores granted by a control group (version 2, then version 1), or a large number.
double cgroup_cores() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  std::ifstream q1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), p1("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota1 = 0;
  if (q1 >> quota1 && p1 >> period && quota1 > 0 && period > 0) return quota1 / period;
  return std::numeric_limits<int>::max();
}

}  // namespace

void parallel_for(int n_threads, int64_t n_tasks, TaskBody body) {
  if (n_tasks <= 0) return;
  const int n_workers = static_cast<int>(std::min<int64_t>(n_threads, n_tasks)) - 1;
  if (n_workers > 0 && !Job::inside) {
    Pool& p = pool();
    std::unique_lock<std::mutex> lock(p.in_use, std::try_to_lock);
    if (lock.owns_lock()) {
      Job job;
      job.body = &body;
      job.n_tasks = n_tasks;
      job.n_workers = n_workers;
      p.run(job);
      if (job.error) std::rethrow_exception(job.error);
      return;
    }
  }
  for (int64_t task = 0; task < n_tasks; ++task) body(task, 0);
}

namespace {

// Waits: first by spinning, after some tens of microseconds by yielding the processor.
class Patience {
 public:
  void wait() {
    if (++waited_ > kSpins) return std::this_thread::yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  void renew() { waited_ = 0; }

 private:
  static constexpr int kSpins = 1000;
  int waited_ = 0;
};

constexpr int kTaskBits = 20;
constexpr uint64_t kTaskMask = (uint64_t{1} << kTaskBits) - 1;

}  // namespace

void Team::run(int64_t n_tasks, TaskBody body) {
  if (alone_ || n_tasks <= 1) {
    for (int64_t task = 0; task < n_tasks; ++task) body(task, leader_);
    return;
  }
  body_ = &body;
  done_.store(0, std::memory_order_relaxed);
  ++n_loops_;
  state_.store(n_loops_ << (2 * kTaskBits) | static_cast<uint64_t>(n_tasks) << kTaskBits, std::memory_order_release);
  take_tasks(leader_);
  Patience patience;
  while (done_.load(std::memory_order_acquire) < n_tasks) patience.wait();
}

// Returns whether there was one.
bool Team::take_tasks(int worker) {
  bool any = false;
  uint64_t state = state_.load(std::memory_order_acquire);
  while ((state & kTaskMask) < (state >> kTaskBits & kTaskMask)) {
    if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    (*body_)(static_cast<int64_t>(state & kTaskMask), worker);
    done_.fetch_add(1, std::memory_order_release);
    any = true;
    state = state_.load(std::memory_order_acquire);
  }
  return any;
}

void Team::help(int worker) {
  Patience patience;
  while (!closed_.load(std::memory_order_acquire)) {
    if (take_tasks(worker))
      patience.renew();
    else
      patience.wait();
  }
}

int available_threads() {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = CPU_COUNT(&set);
#endif
  const double granted = cgroup_cores();
  if (granted < cores) cores = static_cast<int>(std::lround(granted));
  return cores < 1 ? 1 : cores;
}

}  // namespace crfit
