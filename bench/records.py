"""What groups are made of: tasks that are measured, entries that take part, rows that come out, checks.

A group is a module in `bench.papers` or `bench.speed`, found by being there. It has

    TITLE                                 in a line
    tasks(quick) -> list of Task          what to measure, in this order
    measure(task, setting) -> rows        runs in a process of its own; rows are flat dictionaries
    tables(results) -> {name: markdown}
    pictures(results) -> {name: Figure}
    checks(results) -> list of Check      what we say of crfit; must hold
    CLAIMS                                what a paper says, judged by `bench.claims`; groups of a paper only

Everything after `measure` works on the stored rows alone and can be repeated at any time.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

#: How a task can end: values of the column ``outcome``.
DONE, NOT_AVAILABLE, FAILED, TIMED_OUT = "done", "not available", "failed", "timed out"
#: The tool of crfit's own trainers, and its arithmetic.
CRFIT, SCALED = "crfit_race", "scaled"

#: What is measured in one go: text, numbers, truth values and None by name.
Row: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Task:
    """An independent unit of measuring; it has a process of its own, which is ended after `limit` seconds.

    The settings are columns of its rows. It needs the tool that they, or `needs`, name.
    """

    id: str
    problem: str
    settings: Row = field(default_factory=dict)
    limit: float = 600.0
    needs: str = ""

    @property
    def tool(self) -> str:
        return self.needs or str(self.settings.get("tool", ""))

    @property
    def columns(self) -> Row:
        return {"task": self.id, "problem": self.problem, **self.settings}


@dataclass(frozen=True)
class Entry:
    """Who takes part: a trainer with its options, as ``crfit race`` takes them, or another tool.

    `key` is in ids of tasks and in rows. `max_passes` ends runs, `seeds` says how many there are, `share` how
    much of the seconds they get. Methods that are not `penalised` minimise another function and have scores
    alone. `notes` is what one group knows of its entries, such as the paper's scores.
    """

    key: str
    title: str
    text: str
    tool: str = CRFIT
    arithmetic: str = SCALED
    family: str = ""
    max_passes: float | None = None
    seeds: int = 1
    penalised: bool = True
    share: float = 1.0
    notes: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def trainer(self) -> str:
        return self.text.partition(":")[0]


class NotAvailable(Exception):  # noqa: N818
    """What a task needs is not here, which is a result; the message says how to get it."""


@dataclass(frozen=True)
class Check:
    """A sentence of ours about the results, with the measured numbers in it, and whether it holds."""

    id: str
    text: str
    holds: bool


@dataclass(frozen=True, eq=False)
class Results:
    """The stored rows of a group, all with the same columns, and how they were measured."""

    rows: list[Row]
    config: dict[str, Any]

    def where(self, **wanted: object) -> list[Row]:
        """Rows that have these values, in their order."""
        rows = self._by_problem.get(wanted.pop("problem"), []) if "problem" in wanted else self.rows
        return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]

    @cached_property
    def _by_problem(self) -> dict[object, list[Row]]:
        """Groups ask for the rows of a problem hundreds of times."""
        found: dict[object, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.get("problem"), []).append(row)
        return found

    def numbers(self, column: str, **wanted: object) -> list[float]:
        """Values of a column in the rows that have one and are as wanted."""
        return [row[column] for row in self.where(**wanted) if row.get(column) is not None]

    def median(self, column: str, **wanted: object) -> float | None:
        found = self.numbers(column, **wanted)
        return statistics.median(found) if found else None

    @property
    def slack(self) -> float:
        """Share of a ratio that checks ask for: a quick run has one round on less data."""
        return 0.5 if self.config["quick"] else 1.0

    @property
    def machine(self) -> str:
        """Cores and processor, the same for all tasks."""
        (facts,) = self.config["machines"]
        return f"{facts['cores']} cores ({facts['processor']})"
