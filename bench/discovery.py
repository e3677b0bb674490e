"""Modules of a package by name: a corpus, tool or figure is there because its file is."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from bench.setting import BenchError

#: What the modules of a package share lives in one with this name, which is not one of them.
SHARED = "base"


def modules(package: ModuleType) -> dict[str, ModuleType]:
    """Import every module of a package, in the order of their names."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    found = [name for name in names if name != SHARED]
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in found}


def one_of(known: dict[str, ModuleType], name: str, what: str) -> ModuleType:
    """The module with a name; says which ones there are if there is none."""
    if name not in known:
        raise BenchError(f"there is no {what} {name!r}; there are {', '.join(known)}")
    return known[name]
