"""The stored runs as numbers: what a trainer has after some passes, and after how many it has something.

Values are those of a look (`bench.figures.aitken.running`), so that passes to a goal are rounded up to the
next look. A goal that is not reached within the run takes infinitely many.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from bench.curves import OPTIMUM
from bench.figures.aitken.entries import CHUNKS, NAMES, QUICK, Entry
from bench.figures.aitken.running import LAST, TOLERANCE
from bench.figures.base import Results, Row
from bench.pairing import Paired, mean_and_deviation, paired

__all__ = [
    "ERROR",
    "F1",
    "OBJECTIVE",
    "TRAIN_F1",
    "Runs",
    "compared",
    "gap_of",
    "optimum_of",
    "problems_in",
    "runs_of",
]

#: What a run has at its looks: percentages, and the objective.
F1, TRAIN_F1, ERROR, OBJECTIVE = "f1", "train_f1", "error", "objective"
#: Columns with the passes and the values of each.
_COLUMNS = {
    F1: ("passes", "f1"),
    ERROR: ("passes", "errors"),
    TRAIN_F1: ("full_passes", "train_f1"),
    OBJECTIVE: ("full_passes", "objectives"),
}


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of an entry on a problem, by seed.

    Parameters
    ----------
    rows : dict of int to Row
        One for each seed.
    """

    rows: dict[int, Row]

    def curve(self, what: str, seed: int | None = None) -> list[tuple[float, float]]:
        """Passes and values of a run, of the first by default; empty if it has none."""
        row = self.rows[min(self.rows) if seed is None else seed]
        passes, values = (_numbers(row[column]) for column in _COLUMNS[what])
        if not values:
            return []
        share = 100.0 / row["n_tokens"] if what == ERROR else 1.0
        return [(x, share * y) for x, y in zip(passes, values, strict=True)]

    def at(self, what: str, passes: float) -> dict[int, float]:
        """Values after so many passes by seed, of runs that went so far and had a look before."""
        found = {}
        for seed in self.rows:
            curve = self.curve(what, seed)
            before = [y for x, y in curve if x <= passes + TOLERANCE]
            if before and curve[-1][0] >= passes - TOLERANCE:
                found[seed] = before[-1]
        return found

    def mean(self, what: str, passes: float) -> tuple[float, float] | None:
        """Mean and deviation over the seeds whose runs went so far."""
        values = list(self.at(what, passes).values())
        return mean_and_deviation(values) if values else None

    def n_words(self, what: str, passes: float) -> str:
        """Of how many runs a mean is; a run that diverged before has no value.

        Scores on the training part are taken with the first seed alone.
        """
        if what == TRAIN_F1:
            return "first seed"
        n = len(self.at(what, passes))
        return f"mean of {n}" if n == len(self.rows) else f"mean of {n} of {len(self.rows)} runs"

    def reaches(self, what: str, goal: float) -> list[float]:
        """Passes of each seed after which F1 is at least, or the objective at most, a goal."""
        needed = []
        for seed in self.rows:
            sign = -1.0 if what == OBJECTIVE else 1.0
            there = (x for x, y in self.curve(what, seed) if sign * y >= sign * goal)
            needed.append(next(there, math.inf))
        return needed

    def reach(self, what: str, goal: float) -> float:
        """Their median."""
        return statistics.median(self.reaches(what, goal))

    @property
    def last(self) -> float:
        """Passes of a run."""
        return float(next(iter(self.rows.values()))["most"])

    @property
    def oscillation(self) -> float | None:
        """Deviation of the test F1 over the last ten passes, mean over the seeds that went to the end."""
        ends = []
        for seed in self.at(F1, self.last):
            looks = [y for x, y in self.curve(F1, seed) if x > self.last - LAST + TOLERANCE]
            ends += [statistics.stdev(looks)] if len(looks) == LAST else []
        return statistics.fmean(ends) if ends else None


def _numbers(text: str | None) -> list[float]:
    return [float(word) for word in (text or "").split()]


def compared(first: Runs, second: Runs, what: str, passes: float) -> Paired | None:
    """How much more F1, or less objective, one has than another after so many passes, paired over seeds."""
    ours, theirs = first.at(what, passes), second.at(what, passes)
    sign = 1.0 if what in (F1, TRAIN_F1) else -1.0
    differences = [sign * (ours[seed] - theirs[seed]) for seed in ours if seed in theirs]
    return paired(differences) if differences else None


def problems_in(results: Results) -> list[str]:
    """The corpora that were run, in their order."""
    return [problem for problem in (CHUNKS, NAMES, QUICK) if results.where(problem=problem, row="run")]


def runs_of(results: Results, problem: str, entry: Entry) -> Runs | None:
    """The runs of an entry; None if there are none."""
    rows = results.where(problem=problem, variant=entry.key, row="run")
    return Runs({row["seed"]: row for row in rows}) if rows else None


def optimum_of(results: Results, problem: str) -> float | None:
    """F* of a problem; None where it was not computed."""
    return next(iter(results.numbers("objective", problem=problem, row=OPTIMUM)), None)


def gap_of(results: Results, problem: str, gap: float) -> float | None:
    """The objective at some distance from the optimum."""
    best = optimum_of(results, problem)
    return None if best is None else best + gap
