"""Tasks, entries, rows and checks, of which groups consist.

A group is a module in `bench.papers` or `bench.speed`. It has

    TITLE                                 one line
    tasks(quick) -> list of Task          what to measure, in this order
    measure(task, setting) -> rows        runs in its own process; rows are flat dictionaries
    tables(results) -> {name: markdown}
    pictures(results) -> {name: Picture}  drawn by draw(theme) -> Figure
    races(results) -> {name: RaceResult}  all curves, for interactive pages (optional)
    checks(results) -> list of Check      crfit's own claims; must hold
    CLAIMS                                claims of a paper, judged by `bench.claims` (papers only)

Everything after `measure` uses only the stored rows and can be repeated at any time.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

#: Values of the column ``outcome``.
DONE, NOT_AVAILABLE, FAILED, TIMED_OUT = "done", "not available", "failed", "timed out"
#: The tool of crfit's trainers, and its arithmetic.
CRFIT, SCALED = "crfit_race", "scaled"

#: One measurement: text, numbers, booleans and None by name.
Row: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Task:
    """Measured in its own process within `limit` seconds; needs the tool in its settings or in `needs`."""

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
    """A trainer with its options, as in ``crfit race``, or another tool.

    `key` is part of task ids and rows. `share` is the part of the time limit that its runs get. Methods that
    are not `penalised` minimise another function and have only scores. `notes` belongs to the group, for
    example the paper's scores.
    """

    key: str
    title: str
    text: str
    arithmetic: str = SCALED
    family: str = ""
    max_passes: float | None = None
    seeds: int = 1
    penalised: bool = True
    share: float = 1.0
    notes: Mapping[str, Any] = field(default_factory=dict, compare=False)


class NotAvailable(Exception):  # noqa: N818
    """A task cannot run here, which is a result; the message says what to do."""


@dataclass(frozen=True)
class Check:
    """A statement about crfit with its measured numbers, and whether it holds."""

    id: str
    text: str
    holds: bool


@dataclass(frozen=True, eq=False)
class Results:
    """The stored rows of a group, and how they were measured."""

    rows: list[Row]
    config: dict[str, Any]

    def where(self, **wanted: object) -> list[Row]:
        """Rows with these values."""
        rows = self._by_problem.get(wanted.pop("problem"), []) if "problem" in wanted else self.rows
        return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]

    @cached_property
    def _by_problem(self) -> dict[object, list[Row]]:
        """An index, because groups select the rows of a problem hundreds of times."""
        found: dict[object, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.get("problem"), []).append(row)
        return found

    def numbers(self, column: str, **wanted: object) -> list[float]:
        """Values of a column that are not None."""
        return [row[column] for row in self.where(**wanted) if row.get(column) is not None]

    def median(self, column: str, **wanted: object) -> float | None:
        found = self.numbers(column, **wanted)
        return statistics.median(found) if found else None

    @property
    def slack(self) -> float:
        """Factor for thresholds of checks: a quick run has one round on less data."""
        return 0.5 if self.config["quick"] else 1.0

    @property
    def machine(self) -> str:
        """Cores and processor."""
        (facts,) = self.config["machines"]
        return f"{facts['cores']} cores ({facts['processor']})"
