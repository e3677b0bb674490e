// A test is TEST(name) { ... CHECK(condition); }. main() runs all, or those whose names contain an argument.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*run)();
};
inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}
inline int failures = 0;

struct Registered {
  Registered(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

inline void that(bool holds, const char* text, const char* file, int line) {
  if (holds) return;
  ++failures;
  std::printf("%s:%d: %s\n", file, line, text);
}

inline bool near(double a, double b, double relative) {
  return std::abs(a - b) <= relative * std::max({1.0, std::abs(a), std::abs(b)});
}

inline int run(const char* wanted) {
  int n = 0;
  for (const Test& test : tests()) {
    if (wanted != nullptr && std::strstr(test.name, wanted) == nullptr) continue;
    ++n;
    try {
      test.run();
    } catch (const std::exception& error) {
      ++failures;
      std::printf("%s: %s\n", test.name, error.what());
    }
  }
  std::printf("%d tests, %d failures\n", n, failures);
  return failures != 0 || n == 0;
}

}  // namespace check

#define TEST(name)                                               \
  static void name();                                            \
  static const check::Registered registered_##name{#name, name}; \
  static void name()
#define CHECK(condition) check::that(condition, #condition, __FILE__, __LINE__)
// The statement throws this exception.
#define CHECK_THROWS(statement, Exception)                                     \
  do {                                                                         \
    bool thrown = false;                                                       \
    try {                                                                      \
      statement;                                                               \
    } catch (const Exception&) {                                               \
      thrown = true;                                                           \
    }                                                                          \
    check::that(thrown, #statement " throws " #Exception, __FILE__, __LINE__); \
  } while (false)
