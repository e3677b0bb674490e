// A test program in one header: TEST(name) { CHECK(...); CHECK_CLOSE(...); CHECK_THROWS(...); }, and main() in
// main.cpp.
#pragma once

#include <cmath>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace check {

struct Case {
  const char* name;
  void (*run)();
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

inline int& n_failures() {
  static int n = 0;
  return n;
}

struct Register {
  Register(const char* name, void (*run)()) { cases().push_back({name, run}); }
};

inline void fail(const char* file, int line, const std::string& what) {
  if (++n_failures() <= 50) std::cerr << file << ':' << line << ": " << what << '\n';
}

// Equal to within tol, relative to the larger of 1 and the size of b; NaN equals nothing.
inline bool close(double a, double b, double tol) {
  return a == b || std::fabs(a - b) <= tol * std::fmax(1.0, std::fabs(b));
}

template <class Error, class Body>
bool throws(Body body) {
  try {
    body();
  } catch (const Error&) {
    return true;
  }
  return false;
}

// Numbers that look random and are the same everywhere (xorshift*).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Dull;
  }
  int below(int n) { return static_cast<int>((next() >> 33) % static_cast<uint64_t>(n)); }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace check

#define TEST(name)                                             \
  static void test_##name();                                   \
  static const check::Register add_##name{#name, test_##name}; \
  static void test_##name()
#define CHECK(...)                                                                  \
  do {                                                                              \
    if (!(__VA_ARGS__)) check::fail(__FILE__, __LINE__, "not true: " #__VA_ARGS__); \
  } while (false)
#define CHECK_CLOSE(a, b, tol)                                                                            \
  do {                                                                                                    \
    const double check_a = (a), check_b = (b);                                                            \
    if (!check::close(check_a, check_b, tol))                                                             \
      check::fail(__FILE__, __LINE__,                                                                     \
                  std::string(#a " is ") + std::to_string(check_a) + ", not " + std::to_string(check_b)); \
  } while (false)
#define CHECK_THROWS(Error, ...)                                                   \
  do {                                                                             \
    if (!check::throws<Error>([&] { __VA_ARGS__; }))                               \
      check::fail(__FILE__, __LINE__, "does not throw " #Error ": " #__VA_ARGS__); \
  } while (false)
