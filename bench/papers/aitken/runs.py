"""The stored rows as numbers: what a trainer has after some passes, and after how many it has something.

Values are those of an evaluation, so that passes to a goal are rounded up to the next one. A goal that is not
reached within the run takes infinitely many.
"""

from __future__ import annotations

import math
import statistics

from bench.curves import OPTIMUM
from bench.papers.aitken import entries as who
from bench.papers.aitken.measuring import LAST, best_setting
from bench.records import Entry, Results, Row
from bench.seeds import TOLERANCE, Paired, Runs, epoch_median, numbers_in, times_seconds

#: What a run has: percentages, and the objective.
F1, TRAIN_F1, ERROR, OBJECTIVE = "f1", "train_f1", "error", "objective"
#: Columns with the passes and the values of each.
_COLUMNS = {
    F1: ("passes", "f1"),
    ERROR: ("passes", "errors"),
    TRAIN_F1: ("full_passes", "train_f1"),
    OBJECTIVE: ("full_passes", "objectives"),
}


class PassRuns(Runs):
    """The runs of an entry on a corpus."""

    def points(self, row: Row, what: str) -> list[tuple[float, float]]:
        passes, values = (numbers_in(row[column]) for column in _COLUMNS[what])
        share = 100.0 / row["n_tokens"] if what == ERROR else 1.0
        return [(x, share * y) for x, y in zip(passes, values, strict=True)] if values else []

    def better(self, other: PassRuns, what: str, passes: float) -> Paired | None:
        """How much more F1, or less objective, it has than another, in pairs over seeds."""
        return self.difference(other, what, passes, 1.0 if what in (F1, TRAIN_F1) else -1.0)

    def reaches(self, what: str, goal: float) -> list[float]:
        """Passes of each seed after which F1 is at least, or the objective at most, a goal."""
        sign = -1.0 if what == OBJECTIVE else 1.0
        curves = [self.points(row, what) for row in self.rows.values()]
        return [next((x for x, y in curve if sign * y >= sign * goal), math.inf) for curve in curves]

    def reach(self, what: str, goal: float) -> float:
        return statistics.median(self.reaches(what, goal))

    @property
    def last(self) -> float:
        """Passes of a run."""
        return float(self.some["most"])

    @property
    def oscillation(self) -> float | None:
        """Deviation of the test F1 over the last ten passes, mean over the seeds that went to the end."""
        ends = []
        for seed in self.at(F1, self.last):
            f1 = [y for x, y in self.points(self.rows[seed], F1) if x > self.last - LAST + TOLERANCE]
            ends += [statistics.stdev(f1)] if len(f1) == LAST else []
        return statistics.fmean(ends) if ends else None


def problems_in(results: Results, row: str = "run") -> list[str]:
    """The corpora with rows of a kind, in their order."""
    return [problem for problem in who.ON if results.where(problem=problem, row=row)]


def optimum_of(results: Results, problem: str) -> float | None:
    """F* of a problem; None where it was not computed."""
    return next(iter(results.numbers("objective", problem=problem, row=OPTIMUM)), None)


def optimum_f1(results: Results, problem: str) -> float | None:
    """F1 where L-BFGS ends, taken as that of the optimum."""
    runs = PassRuns.of(results, problem, who.LBFGS)
    return None if runs is None else runs.curve(F1)[-1][1]


def trials(results: Results, problem: str, entry: Entry) -> list[Row]:
    """The settings that were tried on held-out sequences."""
    return results.where(problem=problem, variant=entry.key, row="tuning")


def chosen(results: Results, problem: str, entry: Entry) -> str:
    """The setting that was chosen; empty if an entry was not tuned on a problem."""
    rows = trials(results, problem, entry)
    return str(best_setting(rows)["setting"]) if rows else ""


# --- seconds of a pass -------------------------------------------------------------------------------------


def sgd_of(entry: Entry) -> Entry:
    """SGD with steps as large; with steps of one for those that are in no such comparison."""
    return next((base for base, others in who.COSTS.values() if entry in (base, *others)), who.SGD)


def against(results: Results, problem: str, entry: Entry, base: Entry | None = None) -> float | None:
    """How many times the seconds of another a pass takes, of SGD with steps as large by default."""
    return times_seconds(results, problem, entry.key, (base or sgd_of(entry)).key)


def seconds(results: Results, problem: str, entry: Entry) -> float | None:
    return epoch_median(results, problem, entry.key)


# --- iterative scaling -------------------------------------------------------------------------------------


def scaling_row(results: Results, problem: str, entry: Entry) -> Row | None:
    return next(iter(results.where(problem=problem, row="scaling", measured=entry.key)), None)


def maps_in(results: Results) -> list[tuple[str, str]]:
    """Problems and maps that were run."""
    return [
        (problem, name)
        for problem in (who.QUARTER, who.QUICK_OBSERVED)
        for name, (plain, *_) in who.SCALING.items()
        if scaling_row(results, problem, plain) is not None
    ]


def accelerations(results: Results, problem: str, name: str) -> dict[Entry, float]:
    """How many times fewer passes to where the map alone ends; 0 for one that does not get there."""
    plain, *others = who.SCALING[name]
    base, found = scaling_row(results, problem, plain), {}
    for entry in others:
        row = scaling_row(results, problem, entry)
        if base is not None and row is not None:
            found[entry] = _fewer(row, base)
    return found


def _fewer(row: Row, plain: Row) -> float:
    """To the gap if both reach it, else to the objective that the map alone has after its passes."""
    if row["reached"] is not None and plain["reached"] is not None:
        return float(plain["reached"] / row["reached"])
    passes, lowest = scaling_curve(plain)[-1]
    return passes / next((x for x, y in scaling_curve(row) if y <= lowest), math.inf)


def scaling_curve(row: Row) -> list[tuple[float, float]]:
    """Passes and objectives."""
    return list(zip(numbers_in(row["full_passes"]), numbers_in(row["objectives"]), strict=True))


def passes_to_gap(row: Row) -> str:
    """How many, or how many were not enough and where they ended."""
    if row["reached"] is not None:
        return f"{row['reached']:,.0f}"
    return f"> {scaling_curve(row)[-1][0]:,.0f} (gap {row['last_gap']:.0%})"


def passes_words(passes: float, last: float) -> str:
    """Passes to a goal, or how many were not enough."""
    if math.isinf(passes):
        return f"> {last:g}"
    return f"{passes:.0f}" if passes >= 10.0 else f"{passes:.2g}"
