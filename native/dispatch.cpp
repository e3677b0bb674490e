// Chooses the kernel table once, at import: the highest level this processor runs, unless CRFIT_CPU_LEVEL names one.
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "kernels.hpp"

namespace crfit {

extern const Kernels kernels_v2;
#if CRFIT_X86
extern const Kernels kernels_v3;
extern const Kernels kernels_v4;
#endif

namespace {

struct Level {
  const Kernels* table;
  bool supported;
};

// Lowest first. v2 is the baseline of the build: SSE4.2 on x86-64, the compiler's default elsewhere.
const Level* find_level(const std::string& name) {
  static const Level levels[] = {
      {&kernels_v2, true},
#if CRFIT_X86
      {&kernels_v3, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")},
      {&kernels_v4, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")},
#endif
  };
  const Level* found = nullptr;
  for (const Level& level : levels)
    if (name.empty() ? level.supported : name == level.table->level) found = &level;
  return found;
}

const Kernels* default_table() {
  const char* wish = std::getenv("CRFIT_CPU_LEVEL");
  if (wish != nullptr && *wish != '\0') {
    const Level* level = find_level(wish);
    if (level != nullptr && level->supported) return level->table;
  }
  return find_level("")->table;
}

std::atomic<const Kernels*>& current() {
  static std::atomic<const Kernels*> table{default_table()};
  return table;
}

}  // namespace

const Kernels& kernels() { return *current().load(std::memory_order_relaxed); }

const char* kernel_level() { return kernels().level; }

void choose_level(const char* name) {
  const Level* level = find_level(name);
  if (level == nullptr) throw std::invalid_argument(std::string("unknown CPU level '") + name + "': use v2, v3 or v4");
  if (!level->supported) throw std::invalid_argument(std::string("this processor does not run CPU level ") + name);
  current().store(level->table, std::memory_order_relaxed);
}

}  // namespace crfit
