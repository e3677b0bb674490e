"""Stage 1, run: measure the tasks of a group, one after another, each in a process of its own.

A tool that crashes, or hangs until the task's limit of seconds, is a result like any other and does not end
the run. Rows go to raw/GROUP/TASK.jsonl, what the process printed to TASK.log. A task that was measured is
not repeated: an interrupted run is resumed. It is measured again when its settings or what it depends on
(`bench.measure`) have changed, when it failed or its tool was not available, and when it ran out of time but
has more of it now.
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
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from bench import corpora
from bench.measure import Order, Watch, stamp, write_rows
from bench.problems import problem
from bench.records import FAILED, NOT_AVAILABLE, TIMED_OUT, Row, Task
from bench.setting import ROOT, BenchError, Setting, group_name
from bench.tools import tool

POLL_SECONDS = 0.2


def prepare(groups: Iterable[ModuleType], setting: Setting, *, again: bool = False, only: str = "") -> None:
    """Refuse what cannot be run before anything is; say what is missing; with `again`, forget old results."""
    chosen = [(group, task) for group in groups for task in _tasks(group, setting, only)]
    if not chosen:
        raise BenchError(f"no task has {only!r} in its id")
    problems = [problem(task.problem) for _, task in chosen]
    corpora.check_present([(p.corpus, p.chosen_variant) for p in problems], setting.data)
    needed = [tool(name) for name in sorted({task.tool for _, task in chosen} - {""})]
    absent = [module.TITLE for module in needed if module.absent()]
    if absent:
        _console().print(
            f"not available: {', '.join(absent)}; `make bench` or `pip install '.[bench]'` installs what it "
            "can of them, `python -m bench list` says how to get each",
            markup=False,
        )
    if again:
        for group, task in chosen:
            raw_file(group, task, setting).unlink(missing_ok=True)


def run(group: ModuleType, setting: Setting, *, only: str = "") -> None:
    """Measure what is not measured yet; only tasks whose id has some text in it."""
    console = _console()
    tasks = _tasks(group, setting, only)
    for number, task in enumerate(tasks, start=1):
        title = f"[{number}/{len(tasks)}] {group_name(group)}: {task.id}"
        why = _why(task, raw_file(group, task, setting), setting)
        if not why:
            console.print(f"{title}: measured before", markup=False)
            continue
        if why != NEW:
            title += f", again ({why})"
        with console.status("") as status:
            words = _measure(group, task, setting, partial(_tick, status, escape(title)))
        console.print(f"{title}: {words}", markup=False)


def _tick(status: Status, title: str, seconds: float) -> None:
    status.update(f"{title}, {seconds:.0f} s")


def _console() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


def _tasks(group: ModuleType, setting: Setting, only: str) -> list[Task]:
    return [task for task in unique_tasks(group, setting.quick) if only in task.id]


def unique_tasks(group: ModuleType, quick: bool) -> list[Task]:
    """The tasks of a group; two with one id would share a raw file."""
    tasks: list[Task] = group.tasks(quick)
    if len({task.id for task in tasks}) < len(tasks):
        raise BenchError(f"{group.__name__} has two tasks with the same id")
    return tasks


def raw_file(group: ModuleType, task: Task, setting: Setting) -> Path:
    """Where the rows of a task are."""
    return setting.raw(group_name(group)) / f"{task.id}.jsonl"


def raw_rows(task: Task, path: Path) -> list[Row]:
    """Rows of a task that were measured with its present settings; none if there are no such."""
    rows = _rows(path)
    wanted = json.loads(json.dumps(task.columns))
    fit = rows and "stamp" in rows[0] and all(rows[0].get(name) == value for name, value in wanted.items())
    return rows if fit else []


def _rows(path: Path) -> list[Row]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


NEW = "new"  # a reason to measure, as the names of what has changed are, and the outcomes


def _why(task: Task, path: Path, setting: Setting) -> str:
    """Why a task is to be measured, in a word or two; nothing if it need not be."""
    rows = raw_rows(task, path)
    if not rows:
        return "settings" if path.exists() else NEW
    first = rows[0]
    if first["outcome"] in (FAILED, NOT_AVAILABLE):
        return str(first["outcome"])
    if first["outcome"] == TIMED_OUT and first["limit"] < task.limit:
        return "limit"
    now = stamp(task, setting.data)
    return next((name for name, value in now.items() if first["stamp"].get(name) != value), "")


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
    watch = Watch(task, setting)
    with log.open("wb") as output:
        code = _finish(command, output.fileno(), task.limit, waiting)
    seconds = watch.seconds
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
    write_rows(group, task, path, [{}], outcome, message, watch)
    return f"{outcome} after {seconds:.1f} s: {message} (see {log})"


def _finish(command: list[str], output: int, limit: float, waiting: Callable[[float], None]) -> int | None:
    """Exit code of a process; None if it had to be ended. Whatever it started ends with it."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
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
