"""Stage 2, collect: write results.csv and config.json, which are in git, from the raw files of a group.

The table has a row for everything that was measured. config.json has what many rows share: machine and code,
how and when each task ended, types of columns, and the digest of the table. All tasks must come from one
machine and one version of the code.
"""

import csv
import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.records import Results, Row, Task
from bench.run import FACTS, chosen_tasks, raw_rows
from bench.setting import BenchError, Setting, digest, group_name, write_text

TABLE, CONFIG = "results.csv", "config.json"
#: What must be equal for all tasks with the same value of a column; "" stands for all tasks.
_SHARED = {"code": "", "machine": "", "tool": "tool", "problem": "problem", "data": "problem"}
#: Facts of each task in the configuration.
_NOTED = ("task", "when", "took", "processor", "load", "limit", "outcome")


def collect(group: ModuleType, setting: Setting) -> Path:
    """Write results.csv and config.json of a group; every task must have been run."""
    name, tasks = group_name(group), chosen_tasks(group, setting)
    measured = {task.id: raw_rows(group, task, setting) for task in tasks}
    words = f"{name}{' --quick' * setting.quick}"
    absent = ", ".join(task for task, rows in measured.items() if not rows)
    if absent:
        raise BenchError(
            f"not measured yet, or with other settings: {absent}; `python -m bench run {words}` does it"
        )
    firsts = {task: rows[0] for task, rows in measured.items()}
    odd = "".join(f"\n  other {what}: {', '.join(ids)}" for what, ids in _odd(tasks, firsts).items())
    if odd:
        raise BenchError(
            f"not measured alike, compared with the latest; `python -m bench run {words}` mends it:{odd}"
        )
    rows = [{k: v for k, v in row.items() if k not in FACTS} for task in tasks for row in measured[task.id]]
    columns, folder, common = _columns(rows), setting.results(name), firsts[tasks[0].id]["stamp"]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")  # None is written as nothing
    writer.writeheader()
    writer.writerows(rows)
    write_text(folder / TABLE, text.getvalue())
    config = {
        "group": name,
        "quick": setting.quick,
        "command": f"python -m bench reproduce {words} --data DIR",
        "table": digest(folder / TABLE),
        "code": common["code"],
        "machines": [common["machine"]],
        "data": {path: size for first in firsts.values() for path, size in first["stamp"]["data"].items()},
        "columns": columns,
        "tasks": [{key: first[key] for key in _NOTED} for first in firsts.values()],
    }
    write_text(folder / CONFIG, json.dumps(config, indent=1) + "\n")
    return folder / TABLE


def _odd(tasks: list[Task], firsts: dict[str, Row]) -> dict[str, list[str]]:
    """Ids of tasks that differ from the one measured last, by what is different."""
    odd: dict[str, list[str]] = {}
    latest_first = sorted(tasks, key=lambda task: str(firsts[task.id]["when"]), reverse=True)
    for what, of in _SHARED.items():
        known: dict[str, object] = {}
        for task in latest_first:
            value = firsts[task.id]["stamp"][what]
            if known.setdefault(getattr(task, of) if of else "", value) != value:
                odd.setdefault(what, []).append(task.id)
    return odd


def _columns(rows: list[Row]) -> dict[str, str]:
    """Columns in order of appearance, and their types."""
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for column, value in row.items():
            found = kinds.setdefault(column, set())
            if value is not None:
                number = "number" if isinstance(value, int | float) else "text"
                found.add("truth" if isinstance(value, bool) else number)
    for column, found in kinds.items():
        if len(found) > 1:
            raise BenchError(f"column {column} has {' in one row and '.join(sorted(found))} in another")
    return {column: next(iter(found), "number") for column, found in kinds.items()}


def load_results(folder: Path) -> Results:
    """Read stored results."""
    for name in (TABLE, CONFIG):
        if not (folder / name).exists():
            raise BenchError(f"there is no {folder / name}; run and collect make it")
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        kinds = config["columns"]
        with (folder / TABLE).open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file)
            rows = [{name: _value(cell, kinds[name]) for name, cell in row.items()} for row in table]
    except (ValueError, LookupError, TypeError) as error:
        raise BenchError(f"{folder / TABLE} and {CONFIG} do not fit together: {error!r}") from None
    return Results(rows, config)


def _value(cell: str, kind: str) -> object:
    if cell == "":
        return "" if kind == "text" else None
    if kind == "number":
        return float(cell) if set(cell) & set(".en") else int(cell)
    return cell == "True" if kind == "truth" else cell
