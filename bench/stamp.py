"""What a result depends on besides the settings of its task; if that changes, the task is measured again.

    code       digest of the crfit package: its Python sources, templates and native module
    tool       version of the other tool that the task needs; None without one
    problem    data, features and penalty as `bench.problems` has them
    data       bytes of each file of the corpus
    machine    processor, cores, memory, Python, versions

How tables and pictures are made is not in it, for they can be made anew of the same numbers. Nor is how
something is measured: whoever changes that changes the settings of the task, or measures with ``--again``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from crfit.machine import machine_facts

import crfit
from bench import corpora
from bench.figures.base import Task
from bench.problems import problem
from bench.tools import tool
from crfit import _native

__all__ = ["difference", "stamp"]

_SOURCES = (".py", ".template")


def stamp(task: Task, folder: Path | None) -> dict[str, Any]:
    """What the result of a task depends on now, as it is read back from JSON."""
    asked = problem(task.problem)
    facts = {
        "code": _code(),
        "tool": _version(task.tool),
        "problem": dataclasses.asdict(asked),
        "data": corpora.sizes(asked.corpus, asked.chosen_variant, folder),
        "machine": machine_facts(),
    }
    made: dict[str, Any] = json.loads(json.dumps(facts))
    return made


def difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The first thing that has changed, in a word; nothing if nothing has."""
    return next((name for name, value in now.items() if before.get(name) != value), "")


@cache
def _code() -> str:
    package = Path(crfit.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.suffix in _SOURCES):
        digest.update(f"{path.relative_to(package).as_posix()} {path.stat().st_size} ".encode())
        digest.update(path.read_bytes())
    digest.update(Path(_native.__file__).read_bytes())
    return digest.hexdigest()[:16]


@cache
def _version(name: str) -> str | None:
    """Version of a tool; None if there is no such or it is not installed."""
    return None if not name or tool(name).absent() else str(tool(name).version())
