"""The stored runs: who took how long to a goal on which function, and ratios of these."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from bench.figures.base import Results, Row
from bench.figures.clustered.competing import BEST, RUN
from bench.figures.clustered.entries import Entry
from bench.standings import Reach

__all__ = ["Function", "Ratio", "functions", "numbers", "ratio"]

#: How a run ended that was stopped by its limit of seconds.
_LIMIT = "time"


@dataclass(frozen=True, eq=False)
class Function:
    """What was run on one problem with one ridge.

    Parameters
    ----------
    what, problem : str
        Kind of task and name.
    ridge : float
        The penalty.
    facts : Row
        The lowest value, and how it was found.
    rows : list of Row
        All runs.
    """

    what: str
    problem: str
    ridge: float
    facts: Row
    rows: list[Row]

    def runs(self, entry: Entry) -> list[Row]:
        """Those of an entry."""
        return [row for row in self.rows if row["entry"] == entry.key]

    def reach(self, entry: Entry, goal: str = "gap4", unit: str = "seconds") -> Reach | None:
        """What the median run took; None if there is no run.

        Parameters
        ----------
        entry : Entry
            Whose runs.
        goal : {"gap2", "gap3", "gap4", "grad"}
            To a relative gap of 1e-2, 1e-3 or 1e-4, or to the last and the gradient.
        unit : {"seconds", "passes"}
            Of what it took.
        """
        runs = self.runs(entry)
        if not runs:
            return None
        taken = [row[f"{goal}_{unit}"] for row in runs]
        median = statistics.median(math.inf if value is None else value for value in taken)
        if math.isfinite(median):
            return Reach(median, median)
        cut = all(value is not None or self._cut(row) for value, row in zip(taken, runs, strict=True))
        ends = [
            row[f"end_{unit}"] if value is None else value for value, row in zip(taken, runs, strict=True)
        ]
        return Reach(median, statistics.median(ends) if cut else None)

    def ended(self, entry: Entry) -> bool:
        """Whether a run of an entry was ended by its limit of seconds."""
        return any(self._cut(row) for row in self.runs(entry))

    @staticmethod
    def _cut(row: Row) -> bool:
        """Whether a run was ended by its limit of seconds."""
        limit = row.get("limit_seconds")
        return row["reason"] == _LIMIT or (limit is not None and row["end_seconds"] >= limit)

    def median(self, entry: Entry, column: str) -> float | None:
        """Median of a number over the runs of an entry that have it."""
        found = [row[column] for row in self.runs(entry) if row.get(column) is not None]
        return statistics.median(found) if found else None


def functions(results: Results, what: str) -> list[Function]:
    """What tasks of a kind ran on, in their order."""
    made = []
    for facts in results.where(what=what, row=BEST):
        asked = {"what": what, "row": RUN, "ridge": facts["ridge"]}
        rows = results.where(problem=facts["problem"], **asked)
        made.append(Function(what, facts["problem"], facts["ridge"], facts, rows))
    return made


@dataclass(frozen=True)
class Ratio:
    """How many times as fast one is as another.

    Parameters
    ----------
    value : float
        The quotient of the medians, of what is known of them.
    sign : {"", "> ", "< "}
        Whether that is only a bound, because one of them was ended before.
    """

    value: float
    sign: str = ""

    def __str__(self) -> str:
        return f"{self.sign}{self.value:.2f}"


def ratio(fast: Reach | None, slow: Reach | None) -> Ratio | None:
    """What one took in terms of another; None where neither got there, or there is no telling."""
    if fast is None or slow is None or not (fast.reached or slow.reached):
        return None
    if fast.at_least is None or slow.at_least is None or fast.at_least <= 0:
        return None
    sign = "" if fast.reached and slow.reached else "> " if fast.reached else "< "
    return Ratio(slow.at_least / fast.at_least, sign)


def numbers(text: str) -> list[float]:
    """The numbers of a curve."""
    return [float(word) for word in text.split()]
