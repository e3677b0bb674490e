"""Stage 2, collect: the raw files of a group become results.csv and config.json, which are kept in git.

The table has a row for everything that was measured, without the machine and the time of day, which are the
same for hundreds of rows: config.json has them, with the tasks, how each ended, and which columns are text.
Numbers are written so that they are read back the same.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.figures import group_name
from bench.figures.base import Results, Row
from bench.run import raw_file, raw_rows
from bench.setting import BenchError, Setting
from crfit.atomic import replacing

__all__ = ["collect", "load_results", "write_text"]

TABLE, CONFIG = "results.csv", "config.json"
_ELSEWHERE = ("group", "when", "took", "machine")  # columns of raw rows that config.json has


def collect(group: ModuleType, setting: Setting) -> Path:
    """Write results.csv and config.json of a group; every task must have been run."""
    name, tasks = group_name(group), group.tasks(setting.quick)
    measured = {task.id: raw_rows(task, raw_file(group, task, setting)) for task in tasks}
    absent = [task for task, rows in measured.items() if not rows]
    if absent:
        command = f"python -m bench run {name}{' --quick' if setting.quick else ''}"
        raise BenchError(
            f"not measured yet, or with other settings: {', '.join(absent)}; `{command}` does it"
        )
    machines: list[dict[str, Any]] = []
    records, rows = [], []
    for task in tasks:
        first = measured[task.id][0]
        if first["machine"] not in machines:
            machines.append(first["machine"])
        record = {"task": task.id, **{key: first[key] for key in ("when", "took", "outcome")}}
        records.append(record | {"machine": machines.index(first["machine"])})
        rows += [{k: v for k, v in row.items() if k not in _ELSEWHERE} for row in measured[task.id]]
    columns = _columns(rows)
    config = {
        "group": name,
        "quick": setting.quick,
        "command": f"python -m bench reproduce {name}{' --quick' if setting.quick else ''} --data DIR",
        "machines": machines,
        "columns": columns,
        "tasks": records,
    }
    folder = setting.results(name)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / TABLE, _table(columns, rows))
    write_text(folder / CONFIG, json.dumps(config, indent=1) + "\n")
    return folder / TABLE


def _columns(rows: list[Row]) -> dict[str, str]:
    """Columns in order of appearance, and whether they are text, number or truth."""
    kinds: dict[str, str] = {}
    for row in rows:
        for column, value in row.items():
            if value is None:
                kinds.setdefault(column, "")
                continue
            kind = (
                "truth" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"
            )
            if kinds.setdefault(column, kind) == "":
                kinds[column] = kind
            elif kinds[column] != kind:
                raise BenchError(f"column {column} has {kinds[column]} in one row and {kind} in another")
    return {column: kind or "number" for column, kind in kinds.items()}


def _table(columns: dict[str, str], rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = [row.get(column) for column in columns]
        writer.writerow(["" if value is None else value for value in values])
    return text.getvalue()


def load_results(folder: Path) -> Results:
    """Read what `collect` stored."""
    if not (folder / TABLE).exists():
        raise BenchError(f"there is no {folder / TABLE}; run and collect make it")
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    with (folder / TABLE).open(encoding="utf-8", newline="") as file:
        rows = [
            {name: _value(cell, config["columns"][name]) for name, cell in row.items()}
            for row in csv.DictReader(file)
        ]
    return Results(rows, config)


def _value(cell: str, kind: str) -> object:
    if cell == "":
        return "" if kind == "text" else None
    if kind == "number":
        return float(cell) if set(cell) & set(".en") else int(cell)
    return cell == "True" if kind == "truth" else cell


def write_text(path: Path, text: str) -> None:
    """Replace a file as a whole."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
