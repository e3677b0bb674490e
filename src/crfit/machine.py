"""Facts about the machine, without which a measured time means nothing."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

import crfit
from crfit.threads import cpu_level

__all__ = ["machine_facts"]


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
    try:
        n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, other systems lack the names
        return None
    return round(n_bytes / 1e9, 1)
