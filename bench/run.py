"""Stage 1, run: measure the tasks of a group, one after another, each in a process of its own.

A tool that crashes, or hangs until the task's limit of seconds, is a result like any other and does not end
the run. Rows go to raw/GROUP/TASK.jsonl, what the process printed to TASK.log. A task that was measured, or
ran out of time, is not repeated: an interrupted run goes on where it was. One that failed, or whose tool was
not available, is tried again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from bench import corpora
from bench.figures import group_name
from bench.figures.base import Row, Task
from bench.measure import DONE, FAILED, NOT_AVAILABLE, TIMED_OUT, Order, write_rows
from bench.problems import problem
from bench.setting import HOME, BenchError, Setting

__all__ = ["raw_file", "raw_rows", "run"]

POLL_SECONDS = 0.2


def run(group: ModuleType, setting: Setting, *, again: bool = False, only: str = "") -> None:
    """Measure what is not measured yet, or everything again; only tasks whose id has some text in it."""
    _check_tasks(group, group.tasks(setting.quick))
    tasks = [task for task in group.tasks(setting.quick) if only in task.id]
    check_data(tasks, setting)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for number, task in enumerate(tasks, start=1):
        title = f"[{number}/{len(tasks)}] {group_name(group)}: {task.id}"
        if not again and _is_done(task, raw_file(group, task, setting)):
            console.print(f"{title}: measured before", markup=False)
            continue
        with console.status("") as status:
            words = _measure(group, task, setting, _Ticker(status, title))
        console.print(f"{title}: {words}", markup=False)


def check_data(tasks: list[Task], setting: Setting) -> None:
    """Refuse to begin where the corpora of the tasks are not all there."""
    problems = [problem(task.problem) for task in tasks]
    corpora.check_present([(p.corpus, p.chosen_variant) for p in problems], setting.data)


def raw_file(group: ModuleType, task: Task, setting: Setting) -> Path:
    """Where the rows of a task are."""
    return setting.raw(group_name(group)) / f"{task.id}.jsonl"


def raw_rows(task: Task, path: Path) -> list[Row]:
    """Rows of a task that were measured with its present settings; none if there are no such."""
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    wanted = json.loads(json.dumps(task.columns))
    return rows if all(rows[0].get(name) == value for name, value in wanted.items()) else []


def _is_done(task: Task, path: Path) -> bool:
    rows = raw_rows(task, path)
    return bool(rows) and rows[0]["outcome"] in (DONE, TIMED_OUT)


def _check_tasks(group: ModuleType, tasks: list[Task]) -> None:
    ids = [task.id for task in tasks]
    if len(set(ids)) < len(ids):
        raise BenchError(f"{group.__name__} has two tasks with the same id")


class _Ticker:
    """Shows how long a task has been running."""

    def __init__(self, status: Status, title: str) -> None:
        self._status, self._title = status, escape(title)

    def __call__(self, seconds: float) -> None:
        self._status.update(f"{self._title}, {seconds:.0f} s")


def _measure(group: ModuleType, task: Task, setting: Setting, waiting: Callable[[float], None]) -> str:
    """Measure a task; says in words how it ended."""
    path = raw_file(group, task, setting)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    data = None if setting.data is None else str(setting.data.resolve())
    order = Order(
        group.__name__, task.id, data, setting.quick, str(setting.out.resolve()), str(path.resolve())
    )
    command = [sys.executable, "-m", "bench.measure", json.dumps(dataclasses.asdict(order))]
    log = path.with_suffix(".log")
    begin = time.perf_counter()
    with log.open("wb") as output:
        code = _finish(command, output.fileno(), task.limit, waiting)
    seconds = time.perf_counter() - begin
    if code == 0 and path.exists():
        rows = raw_rows(task, path)
        words = rows[0]["message"] if rows[0]["outcome"] == NOT_AVAILABLE else f"{len(rows)} rows"
        return f"{rows[0]['outcome']} after {seconds:.1f} s: {words}"
    if code is None:
        outcome, message = TIMED_OUT, f"ended after its limit of {task.limit:g} s"
    elif code < 0:
        outcome, message = FAILED, f"its process was ended by {signal.Signals(-code).name}"
    else:
        outcome, message = FAILED, _last_line(log) or f"its process ended with exit code {code}"
    write_rows(group, task, path, [{}], outcome, message, seconds)
    return f"{outcome} after {seconds:.1f} s: {message} (see {log})"


def _finish(command: list[str], output: int, limit: float, waiting: Callable[[float], None]) -> int | None:
    """Exit code of a process; None if it had to be ended. Whatever it started ends with it."""
    path = os.pathsep.join(filter(None, [str(HOME.parent), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1"},
    )
    begin = time.perf_counter()
    try:
        while (seconds := time.perf_counter() - begin) < limit:
            waiting(seconds)
            try:
                return process.wait(timeout=min(POLL_SECONDS, limit - seconds))
            except subprocess.TimeoutExpired:
                continue
        return None
    finally:
        # After a normal end too: a tool may have left processes of its own behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
