"""One task, in a process of its own: python -m bench.measure ORDER, with the order as JSON.

The rows go to a file that is there as a whole or not at all. Each has the group, the task with its settings,
the time of day and the machine besides what was measured, so that a raw file needs no other to be understood.
What the task prints goes to the log that `bench.run` keeps beside it.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType

from bench.figures import group_name
from bench.figures.base import NotAvailable, Row, Task
from bench.setting import Setting
from crfit.atomic import replacing
from crfit.json_values import json_ready
from crfit.machine import machine_facts

DONE, NOT_AVAILABLE, FAILED, TIMED_OUT = "done", "not available", "failed", "timed out"


@dataclass(frozen=True)
class Order:
    """What a process is asked to do: measure a task of a group, and write the rows to a file."""

    module: str
    task: str
    data: str | None
    quick: bool
    out: str
    file: str


def main(order: Order) -> None:
    group = importlib.import_module(order.module)
    setting = Setting(None if order.data is None else Path(order.data), order.quick, Path(order.out))
    task = next(task for task in group.tasks(order.quick) if task.id == order.task)
    begin = time.perf_counter()
    outcome, message = DONE, ""
    try:
        rows = list(group.measure(task, setting))
        if not rows:
            raise ValueError(f"measure() gave no rows for {task.id}")
    except NotAvailable as error:
        rows, outcome, message = [{}], NOT_AVAILABLE, str(error)
    write_rows(group, task, Path(order.file), rows, outcome, message, time.perf_counter() - begin)


def write_rows(
    group: ModuleType, task: Task, path: Path, rows: list[Row], outcome: str, message: str, seconds: float
) -> None:
    """Write the raw file of a task."""
    facts = {
        "group": group_name(group),
        **task.columns,
        "outcome": outcome,
        "message": message,
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "took": round(seconds, 1),
        "machine": machine_facts(),
    }
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(json_ready("row", {**facts, **row})) + "\n")


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
