// The level is chosen once, at first use: the highest that this processor supports, unless CRFIT_CPU_LEVEL names
// another. An unknown or unsupported level is ignored in the environment variable, which may be inherited, but is an
// error in choose_level().
#include "base/dispatch.hpp"

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace crfit {

namespace {

constexpr const char* kNames[] = {"v2", "v3", "v4"};
#if CRFIT_X86
constexpr int kLevels = 3;
#else
constexpr int kLevels = 1;
#endif

bool supported(int level) {
#if CRFIT_X86
  if (level == 1)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (level == 2)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
  return level == 0;
}

// -1: unknown.
int find_level(const std::string& name) {
  for (int level = 0; level < kLevels; ++level)
    if (name == kNames[level]) return level;
  return -1;
}

int default_level() {
  const char* wish = std::getenv("CRFIT_CPU_LEVEL");
  if (wish != nullptr && *wish != '\0') {
    const int level = find_level(wish);
    if (level >= 0 && supported(level)) return level;
  }
  int best = 0;
  for (int level = 0; level < kLevels; ++level)
    if (supported(level)) best = level;
  return best;
}

std::atomic<int>& current() {
  static std::atomic<int> level{default_level()};
  return level;
}

}  // namespace

int cpu_level() { return current().load(std::memory_order_relaxed); }

const char* cpu_level_name() { return kNames[cpu_level()]; }

void choose_level(const char* name) {
  const int level = find_level(name);
  if (level < 0) throw std::invalid_argument(std::string("unknown CPU level '") + name + "': use v2, v3 or v4");
  if (!supported(level)) throw std::invalid_argument(std::string("this processor does not run CPU level ") + name);
  current().store(level, std::memory_order_relaxed);
}

}  // namespace crfit
