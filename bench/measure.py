"""One task, in a process of its own: python -m bench.measure ORDER, with the order as JSON.

The rows go to a file that is there as a whole or not at all. Each has the group, the task with its settings,
the time of day and what it depends on (`bench.stamp`) besides what was measured, so that a raw file needs no
other to be understood. What the task prints goes to the log that `bench.run` keeps beside it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType

from crfit.atomic import replacing
from crfit.json_values import json_ready

from bench.figures import group_name
from bench.figures.base import DONE, NOT_AVAILABLE, NotAvailable, Row, Task
from bench.setting import Setting
from bench.stamp import stamp

__all__ = ["FACTS", "Order", "Watch", "write_rows"]

#: Columns of raw rows that are the same for all rows of a task, and tell how it was measured.
FACTS = ("group", "when", "took", "processor", "load", "limit", "stamp")


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
    """Looks at a task from its beginning: what it depends on, how long it takes, how busy the machine is."""

    def __init__(self, task: Task, setting: Setting) -> None:
        self._stamp, self._limit = stamp(task, setting.data), task.limit
        self._load = os.getloadavg()[0]
        self._clock, self._processor = time.perf_counter(), _processor_seconds()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
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
    shared = {
        "group": group_name(group),
        **task.columns,
        "outcome": outcome,
        "message": message,
        **watch.facts(),
    }
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(json_ready("row", {**shared, **row})) + "\n")


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
