"""Whether any input breaks a reader: `tests/fuzz/`, ten minutes for each target, quickly ten seconds."""

import csv
import subprocess
import tempfile
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

from bench.records import Check, Results, Row, Task
from bench.setting import Setting
from bench.tables import Column, table_of

TITLE = "fuzzing of readers and file formats"
ROOT = Path(__file__).resolve().parents[2]
#: Inputs that once failed, by target; the tests read them.
FOUND = ROOT / "tests" / "fuzz" / "found"
#: Targets of tests/fuzz/targets.py, and what they read.
READS = {
    "columns": "column files",
    "crfsuite": "CRFsuite attribute files",
    "jsonl": "JSON lines",
    "templates": "templates of CRF++ and Wapiti",
    "items": "items of classifiers",
    "annotations": "corrections and annotated texts",
    "texts": "JSON lines with texts",
    "features": "the language of features",
    "models": "models",
    "crfsuite_models": "models of CRFsuite",
    "crfpp_models": "models of CRF++",
    "wapiti_models": "models of Wapiti",
    "datasets": "datasets",
    "checkpoints": "checkpoints",
}
SECONDS, QUICK_SECONDS = 600, 10


def tasks(quick: bool) -> list[Task]:
    seconds = QUICK_SECONDS if quick else SECONDS
    return [
        Task(name, "recipes-observed", {"target": name, "seconds": seconds}, seconds + 600.0)
        for name in READS
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "fuzzing.csv"
        given = [f"SECONDS={task.settings['seconds']}", f"TARGETS={task.settings['target']}", f"OUT={out}"]
        subprocess.run(["make", "fuzz", *given], cwd=ROOT, check=False)
        with out.open(newline="") as file:
            (row,) = csv.DictReader(file)
    yield {
        "fuzzer": row["fuzzer"],
        **{name: int(row[name]) for name in ("executions", "covered", "kept", "failed")},
    }


def tables(results: Results) -> dict[str, str]:
    columns: list[Column[Any]] = [
        Column("", lambda row: READS[row["target"]]),
        Column("fuzzer", itemgetter("fuzzer")),
        Column("seconds", itemgetter("seconds"), "d"),
        Column("inputs tried", itemgetter("executions"), ","),
        Column("edges covered", itemgetter("covered"), ","),
        Column("inputs kept", itemgetter("kept"), ","),
        Column("faults found", itemgetter("failed"), "d"),
    ]
    return {"targets": table_of(_done(results), *columns)}


def checks(results: Results) -> list[Check]:
    rows = _done(results)
    tried, failed = (sum(row[name] for row in rows) for name in ("executions", "failed"))
    text = f"{tried:,} inputs of {len(rows)} kinds are read or refused with an error of crfit"
    if failed:
        text += f", except {failed}, mended since and kept as a test"
    mended = all(row["failed"] <= len(list((FOUND / row["target"]).glob("*"))) for row in rows)
    return [Check("mended", text + ".", mended)]


def _done(results: Results) -> list[Row]:
    return [row for row in results.where() if row.get("executions") is not None]
