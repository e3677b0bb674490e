"""Shared by the stages: paths, the run that is meant, threads, errors."""

import hashlib
import importlib
import pkgutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import click

from crfit.files import replacing

HOME = Path(__file__).parent
ROOT = HOME.parent
THREADS = 2  # of everything that can use them


class BenchError(click.ClickException):
    """Wrong use or missing data: a message without traceback."""

    exit_code = 2


@dataclass(frozen=True)
class Setting:
    """Which run is meant: the folder with the corpora, whether it is the short version, and where files go.

    `out` has ``raw/`` (what was measured), ``results/`` (its numbers) and, unless it is bench/, ``made/``.
    """

    data: Path | None = None
    quick: bool = False
    out: Path = HOME

    def raw(self, group: str) -> Path:
        return self.out / "raw" / self._run(group)

    def results(self, group: str) -> Path:
        return self.out / "results" / self._run(group)

    def made(self, group: str) -> Path:
        return (ROOT / "docs" if self.out == HOME else self.out) / "made" / self._run(group)

    def _run(self, group: str) -> str:
        return f"{group}-quick" if self.quick else group


def seconds_of(call: Callable[[], object]) -> float:
    """How long one call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def write_text(path: Path, text: str) -> None:
    """Replace a file as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def digest(path: Path) -> str:
    """By which configurations name their table, and pictures the configuration that they were drawn with."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


@cache
def groups() -> dict[str, ModuleType]:
    """All groups by name: a module in bench.papers or bench.speed is one by being there."""
    found = {}
    for package in ("bench.papers", "bench.speed"):
        folder = importlib.import_module(package).__path__
        for name in sorted(module.name for module in pkgutil.iter_modules(folder)):
            found[name] = importlib.import_module(f"{package}.{name}")
    return found


def group(name: str) -> ModuleType:
    if name not in groups():
        raise BenchError(f"there is no group {name!r}; there are {', '.join(groups())}")
    return groups()[name]


def group_name(module: ModuleType) -> str:
    """Name under which a group's files are stored."""
    return module.__name__.rpartition(".")[2]
