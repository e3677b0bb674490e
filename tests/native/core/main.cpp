// Runs all tests, or those whose name contains the argument. Every test runs at each CPU level of this machine.
#include <cstring>
#include <stdexcept>

#include "base/dispatch.hpp"
#include "check.hpp"

int main(int argc, char** argv) {
  const char* wanted = argc > 1 ? argv[1] : "";
  int n_run = 0;
  for (const char* level : {"v2", "v3", "v4"}) {
    try {
      crfit::choose_level(level);
    } catch (const std::invalid_argument&) {
      std::cout << level << ": not on this machine\n";
      continue;
    }
    for (const check::Case& one : check::cases()) {
      if (std::strstr(one.name, wanted) == nullptr) continue;
      const int before = check::n_failures();
      one.run();
      ++n_run;
      if (check::n_failures() > before) std::cerr << "FAILED at " << level << ": " << one.name << '\n';
    }
  }
  std::cout << n_run << " tests, " << check::n_failures() << " checks failed\n";
  return n_run == 0 || check::n_failures() > 0 ? 1 : 0;
}
