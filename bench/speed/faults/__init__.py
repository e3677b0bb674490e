"""What faults cost: kills, full disks, closed folders, files that change, clocks, memory, threads, load.

Every try does something to a program or a call of the library while it works, and looks at what is left: no
half file, the old model or the new one, no temporary file, and an error with a message. Then the program is
run again, or resumed, and must give the same result as without the fault. ``load`` repeats calls in equal
windows, so that memory or handles that grow are seen. ``rivals`` gives the same bad input to other tools.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from bench.records import Check, NotAvailable, Results, Row, Task
from bench.setting import Setting
from bench.speed.faults import files, load, memory, rivals, threads
from bench.speed.faults.jobs import Scene
from bench.tables import Column, markdown, table_of

__all__ = ["TITLE", "checks", "measure", "tables", "tasks"]

TITLE = "faults of files, memory, clocks and threads; load; bad input, also to other tools"
#: Faults by kind: what is done, and tries for each program or call in the full and the quick version.
KINDS: dict[str, tuple[str, Callable[[Scene, int], Iterator[Row]], int, int]] = {
    "kills": ("killed by `kill -9`", files.kills, 60, 4),
    "disks": ("full disk", files.disks, 12, 2),
    "permissions": ("read-only or secret files", files.permissions, 64, 16),
    "changes": ("files that change during the work", files.changes, 50, 3),
    "clocks": ("clocks that jump by up to a day", files.clocks, 10, 1),
    "memory": ("not enough memory", memory.memory, 20, 2),
    "threads": ("threads and processes", threads.threads, 20, 1),
}
#: What is counted of tries.
COUNTED = ("tries", "refused", "ended", "lost")
#: Calls, trainings, loads.
LOADS, QUICK_LOADS = (1_000_000, 10_000, 1_000), (4000, 100, 50)
#: Damaged models of each kind.
MUTANTS, QUICK_MUTANTS = 60, 4
#: Growth of memory in bytes that is still flat.
FLAT = 4e6


def tasks(quick: bool) -> list[Task]:
    def made(name: str, **facts: object) -> Task:
        return Task(name, "recipes-few", {"kind": name, **facts}, 1800.0)

    calls, trainings, loads = QUICK_LOADS if quick else LOADS
    return [
        *(made(name, n=few if quick else many) for name, (_, _, many, few) in KINDS.items()),
        made("load", calls=calls, trainings=trainings, loads=loads),
        made("rivals", n=QUICK_MUTANTS if quick else MUTANTS),
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    if not sys.platform.startswith("linux"):
        raise NotAvailable("limits, mounts and /proc are those of Linux")
    given = task.settings
    with tempfile.TemporaryDirectory() as folder:
        if given["kind"] == "rivals":
            yield from rivals.rivals(Path(folder), given["n"])
            return
        scene = Scene(Path(folder))
        if given["kind"] == "load":
            yield from load.load(scene, given["calls"], given["trainings"], given["loads"])
        else:
            yield from KINDS[given["kind"]][1](scene, given["n"])


# --- what follows ------------------------------------------------------------------------------------------


def _tried(results: Results) -> list[Row]:
    return [row for row in results.where() if row["kind"] in KINDS and row.get("tries")]


def _windows(results: Results) -> list[Row]:
    """The first and the last window of each kind of load, as one row."""
    found = []
    for what, rows in groupby(results.where(kind="load"), itemgetter("what")):
        first, *_, last = rows
        found.append(
            {
                "what": what,
                "done": last["done"],
                "wrong": last["wrong"],
                **{f"{name}_first": first[name] for name in load.MEASURED},
                **{f"{name}_last": last[name] for name in load.MEASURED},
            }
        )
    return found


def tables(results: Results) -> dict[str, str]:
    tried = _tried(results)
    columns: list[Column[Any]] = [
        Column("fault", lambda row: KINDS[row["kind"]][0]),
        Column("what it happened to", itemgetter("what")),
        Column("tries", itemgetter("tries"), ",d"),
        Column("ended with an error message", itemgetter("refused"), ",d"),
        Column("ended by the C library", itemgetter("ended"), ",d"),
        Column("something lost", itemgetter("lost"), ",d"),
    ]
    total = {name: sum(row[name] for row in tried) for name in COUNTED}
    kinds = [
        [title, *(f"{sum(row[name] for row in tried if row['kind'] == kind):,}" for name in total)]
        for kind, (title, *_) in KINDS.items()
        if any(row["kind"] == kind for row in tried)
    ]
    short = markdown(
        ["fault", "tries", "ended with an error message", "ended by the C library", "something lost"],
        [*kinds, ["all", *(f"{n:,}" for n in total.values())]],
    )
    loads: list[Column[Any]] = [
        Column("", itemgetter("what")),
        Column("done", itemgetter("done"), ",d"),
        Column("wrong answers", itemgetter("wrong"), "d"),
        Column("memory after the first window, MB", lambda row: row["bytes_first"] / 1e6, ".1f"),
        Column("after the last, MB", lambda row: row["bytes_last"] / 1e6, ".1f"),
        Column("open files", lambda row: f"{row['files_first']} and {row['files_last']}"),
        Column("threads", lambda row: f"{row['threads_first']} and {row['threads_last']}"),
    ]
    return {
        "lost": short if tried else "",
        "tried": table_of(tried, *columns),
        "load": table_of(_windows(results), *loads),
        **rivals.tables(results.where(kind="rivals")),
    }


def checks(results: Results) -> list[Check]:
    made = []
    for kind, (title, *_) in KINDS.items():
        rows = [row for row in _tried(results) if row["kind"] == kind]
        tries, lost = (sum(row[name] for row in rows) for name in ("tries", "lost"))
        made.append(Check(kind, f"{title}: {tries:,} tries, {lost} lost something.", lost == 0 < tries))
    for row in _windows(results):
        grown = (row["bytes_last"] - row["bytes_first"]) / 1e6
        text = f"{row['done']:,} {row['what']}: {row['wrong']} wrong, memory grew by {grown:.1f} MB"
        text += f" (at most {FLAT / 1e6:g} MB), open files and threads by nothing."
        same = all(row[f"{name}_last"] <= row[f"{name}_first"] for name in ("files", "threads"))
        made.append(Check(f"load.{row['what']}", text, grown * 1e6 <= FLAT and same and row["wrong"] == 0))
    return [*made, *rivals.checks(results.where(kind="rivals"))]
