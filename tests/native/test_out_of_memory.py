"""The pool without memory, compiled as a library of its own: only there do threads get their data late."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"
COMPILER = shutil.which("c++")
#: The second thread takes all memory and throws its first exception.
SOURCE = """
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/pool.hpp"

extern "C" int run() {
  std::atomic<int> started{0}, phase{0};
  crfit::parallel_for(2, 2, [&](int64_t, int) {
    for (++started; started < 2;) {
    }
  });
  try {
    crfit::parallel_for(2, 2, [&](int64_t, int worker) {
      if (worker == 0) {
        rlimit limit;
        getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = 1 << 20;
        setrlimit(RLIMIT_AS, &limit);
        for (phase = 1; phase < 2;) {
        }
        return;
      }
      while (phase < 1) {
      }
      for (size_t size : {1 << 16, 1 << 10, 64, 16}) {
        while (malloc(size) != nullptr) {
        }
      }
      phase = 2;
      throw std::bad_alloc();
    });
  } catch (const std::bad_alloc&) {
    return 7;
  }
  return 1;
}
"""


@pytest.mark.skipif(
    COMPILER is None or not NATIVE.exists() or not sys.platform.startswith("linux"),
    reason="needs the sources, a compiler and Linux",
)
def test_a_thread_without_memory_raises_and_does_not_end_the_process(tmp_path):
    source, library = tmp_path / "run.cpp", tmp_path / "run.so"
    source.write_text(SOURCE)
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", f"-I{NATIVE}", "-o", library]
    subprocess.run([COMPILER, *flags, NATIVE / "base" / "pool.cpp", source], check=True)
    script = f"import ctypes, os; os._exit(ctypes.CDLL({str(library)!r}).run())"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (7, "")
