"""Stage 1, run: measure the tasks of a group one after another, each in its own process.

A tool that crashes or hangs until the task's time limit is a result and does not end the run. Rows go to
raw/GROUP/TASK.jsonl with the settings of the task, how it ended and a stamp; output goes to TASK.log. An
interrupted run resumes. A task is measured again if it failed, lacked its tool, has more time now, or if its
settings or its stamp have changed:

    code       digest of the crfit package: its Python sources, templates and native module
    tool       version of the other tool that the task needs; None without one
    problem    data, features and penalty as `bench.problems` has them
    data       bytes of each file of the corpus
    machine    processor, cores, memory, Python, versions

The stamp does not cover how something is measured: if you change that, change the settings of the task or use
``--again``.
"""

import contextlib
import dataclasses
import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.markup import escape

import crfit
from bench import corpora
from bench.problems import problem
from bench.records import DONE, FAILED, NOT_AVAILABLE, TIMED_OUT, NotAvailable, Row, Task
from bench.setting import ROOT, BenchError, Setting, group_name, write_text
from bench.tools import tool
from crfit import _native
from crfit.checks import json_ready
from crfit.threads import machine_facts

POLL_SECONDS = 0.2
#: Columns of raw rows that are the same for all rows of a task, and say how it was measured.
FACTS = ("group", "when", "took", "processor", "load", "limit", "stamp")


def prepare(groups: Iterable[ModuleType], setting: Setting, *, again: bool = False, only: str = "") -> None:
    """Check data and tools before anything runs; with `again`, delete old results."""
    chosen = [(group, task) for group in groups for task in chosen_tasks(group, setting, only)]
    if not chosen:
        raise BenchError(f"no task id contains {only!r}")
    problems = [problem(task.problem) for _, task in chosen]
    corpora.check_present([(p.corpus, p.chosen_variant) for p in problems], setting.data)
    needed = [tool(name) for name in sorted({task.tool for _, task in chosen} - {""})]
    absent = [one.TITLE for one in needed if one.absent()]
    if absent:
        remedy = "`make bench` installs what it can, `python -m bench list` says how to get each"
        _console().print(f"not available: {', '.join(absent)}; {remedy}", markup=False)
    for group, task in chosen if again else ():
        raw_file(group, task, setting).unlink(missing_ok=True)


def chosen_tasks(group: ModuleType, setting: Setting, only: str = "") -> list[Task]:
    """The tasks of a group whose ids contain a text; ids must differ, because raw files are named by them."""
    tasks: list[Task] = group.tasks(setting.quick)
    if len({task.id for task in tasks}) < len(tasks):
        raise BenchError(f"{group.__name__} has two tasks with the same id")
    return [task for task in tasks if only in task.id]


def run(group: ModuleType, setting: Setting, *, only: str = "") -> None:
    """Measure what is new or outdated; only tasks whose id contains a text."""
    console, tasks = _console(), chosen_tasks(group, setting, only)
    for number, task in enumerate(tasks, start=1):
        title = f"[{number}/{len(tasks)}] {group_name(group)}: {task.id}"
        why = _why(group, task, setting)
        if why:
            title += "" if why == NEW else f", again ({why})"
            console.print(f"{title}: {_measure(group, task, setting, title)}", markup=False)
        else:
            console.print(f"{title}: measured before", markup=False)


def _console() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


def raw_file(group: ModuleType, task: Task, setting: Setting) -> Path:
    """Where the rows of a task are."""
    return setting.raw(group_name(group)) / f"{task.id}.jsonl"


def raw_rows(group: ModuleType, task: Task, setting: Setting) -> list[Row]:
    """Rows of a task measured with its present settings."""
    path, wanted = raw_file(group, task, setting), json.loads(json.dumps(task.columns))
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    fit = rows and "stamp" in rows[0] and all(rows[0].get(name) == value for name, value in wanted.items())
    return rows if fit else []


NEW = "new"  # reason to measure; others are outcomes and the names of what has changed


def _why(group: ModuleType, task: Task, setting: Setting) -> str:
    """Why a task has to be measured, in a word or two; empty if it does not."""
    rows = raw_rows(group, task, setting)
    if not rows:
        return "settings" if raw_file(group, task, setting).exists() else NEW
    first = rows[0]
    if first["outcome"] in (FAILED, NOT_AVAILABLE):
        return str(first["outcome"])
    if first["outcome"] == TIMED_OUT and first["limit"] < task.limit:
        return "limit"
    now = stamp(task, setting.data)
    return next((name for name, value in now.items() if first["stamp"].get(name) != value), "")


def stamp(task: Task, folder: Path | None) -> dict[str, Any]:
    """What the result of a task depends on, as read back from JSON."""
    asked = problem(task.problem)
    facts = {
        "code": _code(),
        "tool": None if not task.tool or tool(task.tool).absent() else str(tool(task.tool).version()),
        "problem": dataclasses.asdict(asked),
        "data": corpora.sizes(asked.corpus, asked.chosen_variant, folder),
        "machine": machine_facts(),
    }
    made: dict[str, Any] = json.loads(json.dumps(facts))
    return made


@cache
def _code() -> str:
    package, digest = Path(crfit.__file__).parent, hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.suffix in (".py", ".template")):
        digest.update(f"{path.relative_to(package).as_posix()} {path.stat().st_size} ".encode())
        digest.update(path.read_bytes())
    digest.update(Path(_native.__file__).read_bytes())
    return digest.hexdigest()[:16]


def _measure(group: ModuleType, task: Task, setting: Setting, title: str) -> str:
    """Measure a task, write its raw file with load and processor seconds, and say how it ended."""
    path = raw_file(group, task, setting)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    log, answer = path.with_suffix(".log"), path.with_suffix(".rows")
    facts = {"limit": task.limit, "stamp": stamp(task, setting.data), "load": round(os.getloadavg()[0], 2)}
    data = None if setting.data is None else str(setting.data.resolve())
    order = [group.__name__, task.id, data, setting.quick, str(setting.out.resolve()), str(answer.resolve())]
    begin, processor = time.perf_counter(), _processor_seconds()
    code = _finish([sys.executable, "-m", "bench.run", json.dumps(order)], log, task.limit, title)
    seconds = time.perf_counter() - begin
    facts |= {"took": round(seconds, 1), "processor": round(_processor_seconds() - processor, 1)}
    facts["when"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    rows: list[Row] = [{}]
    if code == 0:
        outcome, message, rows = json.loads(answer.read_text(encoding="utf-8"))
    elif code is None:
        outcome, message = TIMED_OUT, f"ended after its limit of {task.limit:g} s"
    elif code < 0:
        outcome, message = FAILED, f"its process was ended by {signal.Signals(-code).name}"
    else:
        printed = [line.strip() for line in log.read_text("utf-8", errors="replace").split("\n")]
        outcome, message = FAILED, next(filter(None, reversed(printed)), f"ended with exit code {code}")
    answer.unlink(missing_ok=True)
    shared = {"group": group_name(group), **task.columns, "outcome": outcome, "message": message, **facts}
    write_text(path, "".join(json.dumps({**shared, **row}) + "\n" for row in rows))
    told = f"{len(rows)} rows" if outcome == DONE else message
    return f"{outcome} after {seconds:.1f} s: {told}{f' (see {log})' if code != 0 else ''}"


def _processor_seconds() -> float:
    """Of the processes that were started here and have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


def _finish(command: list[str], log: Path, limit: float, title: str) -> int | None:
    """Exit code of a process; None if it had to be ended. Whatever it started ends with it."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with log.open("wb") as output, _console().status("") as status:
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
                status.update(f"{escape(title)}, {seconds:.0f} s")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(timeout=min(POLL_SECONDS, limit - seconds))
            return None
        finally:
            # After a normal end too: a tool may have left processes of its own behind.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _answer(module: str, task_id: str, data: str | None, quick: bool, out: str, file: str) -> None:
    """In the process of a task: measure it, and write how it ended, a message and its rows."""
    group = importlib.import_module(module)
    setting = Setting(None if data is None else Path(data), quick, Path(out))
    task = next(task for task in group.tasks(quick) if task.id == task_id)
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
    write_text(Path(file), json.dumps([outcome, message, json_ready("rows", rows)]))


if __name__ == "__main__":
    _answer(*json.loads(sys.argv[1]))
