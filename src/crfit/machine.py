"""Facts about the machine, without which a measured time means nothing."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

import crfit
from crfit.threads import cpu_level

__all__ = ["machine_facts", "memory_limit"]

#: Where Linux says how much memory a container may take, of both kinds of control groups.
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_facts() -> dict[str, Any]:
    """Say what a time was measured on.

    Returns
    -------
    dict
        ``processor``, ``cores``, ``memory_gb`` (None where the system does not tell), ``cpu_level`` of the
        kernels, ``python``, ``system``, and ``versions`` of crfit and numpy. Ready for JSON.
    """
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
    """Name of the processor; Linux has it in a file, and Python does not look there."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    n_bytes = _memory_bytes()
    return None if n_bytes is None else round(n_bytes / 1e9, 1)


def memory_limit() -> int | None:
    """Return how many bytes of memory there are for this process, free or not; None where nobody tells.

    That is the memory of the machine, or what the container that it runs in may take; the limit of a job
    within either, which a batch system may set, is not looked at.
    """
    limits = [_memory_bytes(), *map(_number_in, _GROUP_LIMITS)]
    return min((limit for limit in limits if limit is not None), default=None)


def _memory_bytes() -> int | None:
    try:
        n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, other systems lack the names
        return None
    return n_bytes if n_bytes > 0 else None  # -1 is a system that does not know


def _number_in(path: str) -> int | None:
    """The number that a file holds; None if it holds a word, such as max, or is not there."""
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
