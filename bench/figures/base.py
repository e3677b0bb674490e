"""What figure groups are made of: tasks that are measured, rows that they give, claims that follow.

A group is a module or package in `bench.figures`, found by being there. Its docstring says what it shows; it
has

    TITLE                                 in a line
    tasks(quick) -> list of Task          what to measure, in this order
    measure(task, setting) -> rows        runs in a process of its own; rows are flat dictionaries
    tables(results) -> {name: markdown}   written to NAME.md
    pictures(results) -> {name: Figure}   written to NAME.png
    claims(results) -> list of Claim      sentences with the measured numbers in them

`measure` does the work; everything after it works on the stored rows alone and can be repeated at any time.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

__all__ = [
    "DONE",
    "FAILED",
    "NOT_AVAILABLE",
    "TIMED_OUT",
    "Claim",
    "NotAvailable",
    "Results",
    "Row",
    "Task",
    "markdown",
    "shown",
]

#: How a task can end: values of the column ``outcome``.
DONE, NOT_AVAILABLE, FAILED, TIMED_OUT = "done", "not available", "failed", "timed out"

#: A quick run has one round on less data: claims about ratios need this share of what a full run needs.
QUICK_SLACK = 0.5

#: Columns by which rows are found without looking at all of them, the one with fewer rows a value first.
_INDEXED = ("task", "problem")

#: What is measured in one go: text, numbers, truth values and None by name.
Row: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Task:
    """An independent unit of measuring.

    Parameters
    ----------
    id : str
        Stable and unique in the group; raw files are named after it, with folders where it has slashes.
    problem : str
        Name in `bench.problems`: which data must be there.
    settings : dict
        What tells it from the other tasks. They are columns of its rows; a task whose settings have changed
        since it was measured is measured again.
    limit : float
        Seconds after which its process is ended and the task recorded as timed out.
    needs : str
        Module in `bench.tools` that it is measured with; by default what the settings call ``tool``.
    """

    id: str
    problem: str
    settings: Row = field(default_factory=dict)
    limit: float = 600.0
    needs: str = ""

    @property
    def tool(self) -> str:
        """Module of the tool that it is measured with; empty if it needs none."""
        return self.needs or str(self.settings.get("tool", ""))

    @property
    def columns(self) -> Row:
        """Columns that all its rows have."""
        return {"task": self.id, "problem": self.problem, **self.settings}


class NotAvailable(Exception):  # noqa: N818
    """What a task needs is not installed here, which is a result; the message says what and how to get it."""


@dataclass(frozen=True)
class Claim:
    """A sentence about the results.

    Parameters
    ----------
    id : str
        Stable and unique in the group.
    text : str
        The claim, with the measured numbers in it.
    holds : bool
        Whether the numbers say so.
    """

    id: str
    text: str
    holds: bool


@dataclass(frozen=True, eq=False)
class Results:
    """The stored rows of a group.

    Parameters
    ----------
    rows : list of Row
        All rows have the same columns; None where a row has no such number.
    config : dict
        What was run, when and on which machine.
    """

    rows: list[Row]
    config: dict[str, Any]

    def where(self, **wanted: object) -> list[Row]:
        """Rows that have these values, in their order."""
        rows = self.rows
        for name in _INDEXED:
            if name in wanted:
                rows = self._index[name].get(wanted.pop(name), [])
                break
        return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]

    @cached_property
    def _index(self) -> dict[str, dict[object, list[Row]]]:
        """Rows by task and by problem: groups ask for those hundreds of times."""
        index: dict[str, dict[object, list[Row]]] = {name: {} for name in _INDEXED}
        for row in self.rows:
            for name, found in index.items():
                found.setdefault(row.get(name), []).append(row)
        return index

    def numbers(self, column: str, **wanted: object) -> list[float]:
        """Values of a column in the rows that have one and are as wanted."""
        return [row[column] for row in self.where(**wanted) if row.get(column) is not None]

    def median(self, column: str, **wanted: object) -> float | None:
        """Their median, None if there is no value."""
        found = self.numbers(column, **wanted)
        return statistics.median(found) if found else None

    @property
    def slack(self) -> float:
        """Share of a ratio that claims ask for."""
        return QUICK_SLACK if self.config["quick"] else 1.0

    @property
    def machine(self) -> str:
        """Cores and processor; `collect` sees to it that all tasks were measured on the same."""
        (facts,) = self.config["machines"]
        return f"{facts['cores']} cores ({facts['processor']})"


def markdown(headings: Iterable[str], rows: Iterable[Iterable[str]], *, words: bool = False) -> str:
    """A table: the first column to the left, the others, unless they are words, to the right."""
    lines = [list(headings), *map(list, rows)]
    rule = "|---|" + ("---|" if words else "---:|") * (len(lines[0]) - 1)
    cells = ["|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in lines]
    return "\n".join([cells[0], rule, *cells[1:]]) + "\n"


def shown(value: float | None, form: str, unit: str = "") -> str:
    """A number for a table, or that there is none."""
    return "not available" if value is None else f"{value:{form}}{unit}"
