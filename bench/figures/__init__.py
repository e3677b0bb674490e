"""Figure groups: one module each, found by being there; `bench.figures.base` says what is in it."""

from __future__ import annotations

import sys
from types import ModuleType

from bench.discovery import modules, one_of

__all__ = ["group", "group_name", "groups"]


def groups() -> dict[str, ModuleType]:
    """All groups by name."""
    return modules(sys.modules[__name__])


def group(name: str) -> ModuleType:
    """Find a group by its name."""
    return one_of(groups(), name, "figure group")


def group_name(module: ModuleType) -> str:
    """Name under which a group's files are stored."""
    return module.__name__.rpartition(".")[2]
