"""Tables in Markdown, and the run behind them in a sentence.

Links in a table lead from docs/made/GROUP/, where it is written; `bench.pages` makes them fit other pages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from bench.records import DONE, NOT_AVAILABLE, Results

T = TypeVar("T")
#: From a made table to the stored results of its group.
STORED = "../../../bench/results/{}/"


def markdown(headings: Iterable[str], rows: Iterable[Iterable[str]], *, words: bool = False) -> str:
    """A table: the first column to the left, the others, unless they are words, to the right."""
    lines = [list(headings), *map(list, rows)]
    rule = "|---|" + ("---|" if words else "---:|") * (len(lines[0]) - 1)
    cells = ["|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in lines]
    return "\n".join([cells[0], rule, *cells[1:]]) + "\n"


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table about some things: its heading, what it says of one, and how `shown` shows that."""

    heading: str
    value: Callable[[T], Any]
    form: str = ""
    unit: str = ""
    none: str = ""


def table_of(things: Iterable[T], *columns: Column[T], words: bool = False) -> str:
    """A table with a row for each thing, empty if there is none."""
    rows = [[shown(c.value(thing), c.form, c.unit, c.none) for c in columns] for thing in things]
    return markdown([column.heading for column in columns], rows, words=words) if rows else ""


def shown(value: Any, form: str = "", unit: str = "", none: str = "not available") -> str:
    """A cell of a table: a number with its unit, a text, or that there is none.

    A `Reach`, `Times` or `Paired` shows itself; a pair of numbers is a mean with its deviation.
    """
    if value is None or isinstance(value, str):
        return none if value is None else value
    if isinstance(value, tuple):
        return spread(value[0], value[1], form or ".2f") + unit
    if hasattr(value, "words"):
        return str(value.words(form, unit) if form else value.words())
    return f"{value:{form}}{unit}"


def spread(mean: float, deviation: float, form: str = ".2f") -> str:
    """Mean and deviation, which one value does not have."""
    return f"{mean:{form}}" if math.isnan(deviation) else f"{mean:{form}} ± {deviation:{form}}"


def bullets(lines: Iterable[str]) -> str:
    """A list with a dash before each line; empty lines are left out."""
    return "".join(f"- {line}\n" for line in lines if line)


def prose(module: str, name: str, **values: object) -> str:
    """The text NAME.md beside a module, with values in its places; lines that ask for a None are left out."""
    lines = Path(module).with_name(f"{name}.md").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if all(values[key] is not None for key in re.findall(r"{(\w+)", line))]
    return "".join(f"{line.format(**values)}\n" for line in kept)


def run_words(results: Results) -> str:
    """When, on what machine, with which versions, how long, and how many tasks failed."""
    config, tasks = results.config, results.config["tasks"]
    (facts,) = config["machines"]
    days = " and ".join(sorted({task["when"][:10] for task in tasks}))
    memory = "" if facts["memory_gb"] is None else f" with {facts['memory_gb']:.0f} GB"
    minutes = sum(task["took"] for task in tasks) / 60
    time = f"{minutes:.0f} minutes" if minutes >= 1.5 else f"{60 * minutes:.0f} seconds"
    outcomes = [str(task["outcome"]) for task in tasks if task["outcome"] != DONE]
    kinds = sorted(dict.fromkeys(outcomes), key=NOT_AVAILABLE.__eq__)
    others = ", ".join(f"{outcomes.count(kind)} {kind}" for kind in kinds)
    stored = STORED.format(f"{config['group']}{'-quick' * config['quick']}")
    return (
        f"Measured on {days} on {results.machine}{memory} with Python {facts['python']}, NumPy "
        f"{facts['versions']['numpy']} and crfit {facts['versions']['crfit']}: {len(tasks)} tasks, {time}. "
        f"{f'Not done: {others}. ' if others else ''}Numbers: [results.csv]({stored}results.csv); machine, "
        f"versions and the outcome of each task: [config.json]({stored}config.json). To measure it yourself: "
        f"`{config['command'].replace('DIR', 'dir')}`.\n"
    )
