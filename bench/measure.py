"""One task, in a process of its own: python -m bench.measure ORDER, with the order as JSON.

The rows go to a file that is there as a whole or not at all. Each has the group, the task with its settings,
the time of day and a stamp besides what was measured, so that a raw file needs no other to be understood.
The stamp is what a result depends on besides the settings; if that changes, the task is measured again:

    code       digest of the crfit package: its Python sources, templates and native module
    tool       version of the other tool that the task needs; None without one
    problem    data, features and penalty as `bench.problems` has them
    data       bytes of each file of the corpus
    machine    processor, cores, memory, Python, versions

How tables are made is not in it, nor how something is measured: whoever changes that changes the settings of
the task, or measures with ``--again``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import crfit
from bench import corpora
from bench.problems import problem
from bench.records import DONE, NOT_AVAILABLE, NotAvailable, Row, Task
from bench.setting import Setting, group_name
from bench.tools import tool
from crfit import _native
from crfit.checks import json_ready
from crfit.files import replacing
from crfit.threads import machine_facts

#: Columns of raw rows that are the same for all rows of a task, and say how it was measured.
FACTS = ("group", "when", "took", "processor", "load", "limit", "stamp")
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


@dataclass(frozen=True)
class Order:
    """What a process is asked to do: measure a task of a group, and write the rows to a file."""

    module: str
    task: str
    data: str | None
    quick: bool
    out: str
    file: str


class Watch:
    """Watches a task from its beginning: what it depends on, how long it takes, how busy the machine is."""

    def __init__(self, task: Task, setting: Setting) -> None:
        self._stamp, self._limit = stamp(task, setting.data), task.limit
        self._load = os.getloadavg()[0]
        self._clock, self._processor = time.perf_counter(), _processor_seconds()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._clock

    def facts(self) -> Row:
        """Time of day, seconds on the clock and of the processors, mean load of the minute before; stamp.

        Other work on the machine shows: by the load at the first task, and by a task that takes longer than
        in another run without more seconds of the processors.
        """
        return {
            "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "took": round(self.seconds, 1),
            "processor": round(_processor_seconds() - self._processor, 1),
            "load": round(self._load, 2),
            "limit": self._limit,
            "stamp": self._stamp,
        }


def _processor_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def main(order: Order) -> None:
    group = importlib.import_module(order.module)
    setting = Setting(None if order.data is None else Path(order.data), order.quick, Path(order.out))
    task = next(task for task in group.tasks(order.quick) if task.id == order.task)
    watch = Watch(task, setting)
    outcome, message = DONE, ""
    try:
        reason = tool(task.settings["tool"]).absent() if task.settings.get("tool") else None
        if reason is not None:
            raise NotAvailable(reason)
        rows = list(group.measure(task, setting))
        if not rows:
            raise ValueError(f"measure() gave no rows for {task.id}")
    except NotAvailable as error:
        rows, outcome, message = [{}], NOT_AVAILABLE, str(error)
    write_rows(group, task, Path(order.file), rows, outcome, message, watch)


def write_rows(
    group: ModuleType, task: Task, path: Path, rows: list[Row], outcome: str, message: str, watch: Watch
) -> None:
    """Write the raw file of a task."""
    shared = {"group": group_name(group), **task.columns, "outcome": outcome, "message": message}
    shared |= watch.facts()
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(json_ready("row", {**shared, **row})) + "\n")


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
