"""The stored rows as numbers: values after some passes, and passes to a goal.

Passes to a goal are those of the next evaluation, infinite if the run does not reach it.
"""

import math
import statistics
from collections.abc import Mapping
from functools import cache
from typing import ClassVar

from bench.collect import load_results
from bench.curves import OPTIMUM, POINT
from bench.papers.aitken import entries as who
from bench.papers.aitken.measuring import LAST, best_setting
from bench.records import Entry, Results, Row
from bench.seeds import TOLERANCE, Runs, Series, times_seconds
from bench.setting import Setting

#: Curves of a run: percentages, and the objective.
F1, TRAIN_F1, ERROR, OBJECTIVE = "f1", "train_f1", "error", "objective"
#: Relative gap of a run whose F1 counts as that of the optimum.
AT_OPTIMUM = 1e-4


class PassRuns(Runs):
    """The runs of an entry on a corpus."""

    series: ClassVar[Mapping[str, Series]] = {
        F1: Series("f1", "passes"),
        ERROR: Series("errors", "passes", of="n_tokens", sign=-1.0),
        TRAIN_F1: Series("train_f1", "full_passes"),
        OBJECTIVE: Series("objectives", "full_passes", sign=-1.0),
    }

    def reach(self, what: str, goal: float) -> str:
        """Median passes to a goal over seeds, or that the run was too short."""
        passes = statistics.median(self.reaches(what, goal))
        if math.isinf(passes):
            return f"> {self.some['most']:g}"
        return f"{passes:.0f}" if passes >= 10.0 else f"{passes:.2g}"

    @property
    def oscillation(self) -> float | None:
        """Deviation of the test F1 over the last ten passes, mean over the seeds that went to the end."""
        ends, last = [], self.some["most"]
        for seed in self.at(F1, last):
            points = self.series[F1].points(self.rows[seed])
            f1 = [y for x, y in points if x > last - LAST + TOLERANCE]
            ends += [statistics.stdev(f1)] if len(f1) == LAST else []
        return statistics.fmean(ends) if ends else None


def problems_in(results: Results, row: str = "run") -> list[str]:
    """The corpora with rows of a kind, in their order."""
    return [problem for problem in who.ON if results.where(problem=problem, row=row)]


def optimum_of(results: Results, problem: str) -> float | None:
    """F*; None if it was not computed."""
    return next(iter(results.numbers("objective", problem=problem, row=OPTIMUM)), None)


def last_of_lbfgs(results: Results, problem: str, what: str) -> float | None:
    """The score at the end of L-BFGS, which need not be at the optimum."""
    runs = PassRuns.of(results, problem, who.LBFGS)
    curve = runs.curve(what) if runs else []
    return curve[-1][1] if curve else None


def best_f1(results: Results, problem: str) -> tuple[str, float] | None:
    """Test F1 at the optimum and its name, or at the end of L-BFGS if no run has reached the optimum."""
    near = [
        row
        for row in _newton_cg().where(problem=problem, row=POINT)
        if row["f1"] is not None and row["relative_gap"] is not None and row["relative_gap"] <= AT_OPTIMUM
    ]
    best = optimum_of(results, problem)
    if near and best in _newton_cg().numbers("objective", problem=problem, row=OPTIMUM):
        return "the optimum", min(near, key=lambda row: float(row["relative_gap"]))["f1"]
    last = last_of_lbfgs(results, problem, F1)
    return None if last is None else (f"L-BFGS after {who.EVALUATIONS} passes", last)


@cache
def _newton_cg() -> Results:
    """The stored runs that go to the optimum, on the same problems."""
    return load_results(Setting().results("newton_cg"))


def trials(results: Results, problem: str, entry: Entry) -> list[Row]:
    """The settings tried on held-out sequences."""
    return results.where(problem=problem, variant=entry.key, row="tuning")


def chosen(results: Results, problem: str, entry: Entry) -> str:
    """The chosen setting; empty if an entry was not tuned on a problem."""
    rows = trials(results, problem, entry)
    return str(best_setting(rows)["setting"]) if rows else ""


def sgd_of(entry: Entry) -> Entry:
    """SGD with the same mini-batch size, or of one sequence."""
    return next((base for base, others in who.COSTS.values() if entry in (base, *others)), who.SGD)


def against(results: Results, problem: str, entry: Entry, base: Entry | None = None) -> float | None:
    """Seconds per pass relative to another, by default to SGD with the same mini-batch size."""
    return times_seconds(results, problem, entry.key, (base or sgd_of(entry)).key)


#: Passes and objectives of iterative scaling.
SCALING = PassRuns.series[OBJECTIVE]


def scaling_rows(results: Results, problem: str, name: str) -> dict[Entry, Row]:
    """Rows of a map and its accelerations; empty without the plain map."""
    found = {
        entry: row
        for entry in who.SCALING[name]
        for row in results.where(problem=problem, row="scaling", measured=entry.key)
    }
    return found if who.SCALING[name][0] in found else {}


def maps_in(results: Results) -> list[tuple[str, str]]:
    """Problems and maps that were run."""
    problems = (who.QUARTER, who.QUICK_OBSERVED)
    return [(one, name) for one in problems for name in who.SCALING if scaling_rows(results, one, name)]


def accelerations(results: Results, problem: str, name: str) -> dict[Entry, float]:
    """Plain passes / passes to the gap, or to plain's last F unless both reach the gap; 0 if missed."""
    (_, plain), *others = scaling_rows(results, problem, name).items()
    passes, lowest = SCALING.points(plain)[-1]
    found = {}
    for entry, row in others:
        if row["reached"] is not None and plain["reached"] is not None:
            found[entry] = plain["reached"] / row["reached"]
        else:
            found[entry] = passes / next((x for x, y in SCALING.points(row) if y <= lowest), math.inf)
    return found


def passes_to_gap(row: Row) -> str:
    """Passes to the gap, or how many were not enough and the gap they reached."""
    if row["reached"] is not None:
        return f"{row['reached']:,.0f}"
    return f"> {SCALING.points(row)[-1][0]:,.0f} (gap {row['last_gap']:.0%})"
