"""The number of threads to use, and facts about the machine.

``None`` means all cores that the process may use (respecting the affinity mask and control-group quota), or
the value of the environment variable ``CRFIT_NUM_THREADS``. In a joblib worker process (scikit-learn's
``n_jobs``) it means the worker's share of the cores. Negative numbers count back from there: -1 is all, -2
all but one. Results depend on the number of threads only through `batch` of newton_cg, which auto sets.
"""

import contextlib
import functools
import operator
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import crfit
from crfit import _native
from crfit.errors import CrfitWarning, OptionError

VARIABLE = "CRFIT_NUM_THREADS"
LEVEL_VARIABLE = "CRFIT_CPU_LEVEL"
MAX_THREADS = 1024

_wanted_level = os.environ.get(LEVEL_VARIABLE, "")
_level = _native.cpu_level()


@functools.cache
def _check_level() -> None:
    """Warn once if the requested level is not available; not at import, where users cannot catch it."""
    if _wanted_level not in ("", _level):
        warnings.warn(
            f"{LEVEL_VARIABLE}={_wanted_level!r} is not available on this processor, using {_level}; "
            "choose v2, v3 or v4",
            CrfitWarning,
            stacklevel=3,
        )


def resolve_threads(n_threads: int | None) -> int:
    """Number of threads, 1 or more, for an option value; None and negative values as described above."""
    _check_level()
    name: str = "n_threads"
    if n_threads is None:
        text = os.environ.get(VARIABLE, "").strip()
        if not text:
            return _share()
        name = VARIABLE
        try:
            n_threads = int(text)
        except ValueError:
            raise OptionError(VARIABLE, text, "give a whole number") from None
    try:
        n_threads = operator.index(n_threads)
    except TypeError:
        raise OptionError(name, n_threads, "give a whole number") from None
    if n_threads == 0 or n_threads > MAX_THREADS:
        raise OptionError(name, n_threads, f"give 1 to {MAX_THREADS}, or -1 for all cores")
    return n_threads if n_threads > 0 else max(1, _native.available_threads() + 1 + n_threads)


def _share() -> int:
    """Threads for this process: all, or in a joblib worker its share, cores // workers.

    joblib passes the share through the variables of other thread pools, unless the user has set them.
    """
    available, text = _native.available_threads(), os.environ.get("OMP_NUM_THREADS", "")
    workers = sys.modules.get("multiprocessing.process")  # imported in every worker, slow to import elsewhere
    if workers is None or workers.parent_process() is None or not text.isdigit():
        return available
    return max(1, min(available, int(text)))


def cpu_level() -> str:
    """Return the CPU level of the kernels in use: "v2" (baseline), "v3" (AVX2) or "v4" (AVX-512).

    The highest level that the processor supports is selected at import; set the environment variable
    ``CRFIT_CPU_LEVEL`` to force a lower one.
    """
    _check_level()
    return _native.cpu_level()


def cpu_levels() -> list[str]:
    """Return the CPU levels that the processor supports, lowest first."""
    found = []
    for level in ("v2", "v3", "v4"):
        with contextlib.suppress(ValueError), at_cpu_level(level):
            found.append(level)
    return found


@contextlib.contextmanager
def at_cpu_level(level: str) -> Iterator[None]:
    """Context in which the whole process uses this CPU level; ValueError if the processor lacks it."""
    before = _native.cpu_level()
    _native.choose_cpu_level(level)
    try:
        yield
    finally:
        _native.choose_cpu_level(before)


#: Memory limit of a container on Linux, for both versions of control groups.
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_facts() -> dict[str, Any]:
    """Facts about the machine to store with a timing, as JSON types; ``memory_gb`` is None if unknown."""
    import platform

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "cpu_level": cpu_level(),
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": {"crfit": crfit.__version__, "numpy": np.__version__},
    }


def _processor() -> str:
    """Name of the processor; on Linux read from /proc, where Python's platform module does not look."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    import platform

    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    n_bytes = _memory_bytes()
    return None if n_bytes is None else round(n_bytes / 1e9, 1)


def memory_limit() -> int | None:
    """Bytes of memory that this process may use, free or not; None if unknown.

    The memory of the machine or container, or the limit of the process (``ulimit -v`` and ``-d``).
    """
    limits = [_memory_bytes(), *map(_number_in, _GROUP_LIMITS), *_process_limits()]
    return min((limit for limit in limits if limit is not None), default=None)


def _process_limits() -> list[int]:
    """Limits on the memory of this process, such as those that batch systems set."""
    try:
        import resource
    except ImportError:  # Windows
        return []
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return [limit for limit in limits if limit != resource.RLIM_INFINITY]


def _memory_bytes() -> int | None:
    try:
        n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # no sysconf on Windows, no such name elsewhere
        return None
    return n_bytes if n_bytes > 0 else None  # -1: unknown


def _number_in(path: str) -> int | None:
    """The number in a file; None if it holds a word such as ``max`` or does not exist."""
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
