"""Curves of trainings in rows of results, and back: a row for the run, and one for each of its points.

The optimum of a problem has a row of its own. `trained_curve` trains as `crfit.race` does, in any arithmetic:
the gradient at zero is computed before the clock starts, test scores are taken outside it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import crfit
from bench.problems import Loaded
from bench.records import CRFIT, SCALED, Row
from bench.seeds import trainer_of
from bench.setting import THREADS
from bench.tools import tool
from bench.tools.tool import Limits
from crfit.errors import ConvergenceWarning
from crfit.racing.grid import EvaluationGrid
from crfit.racing.problems import ready
from crfit.racing.result import Curve, Optimum, Point, RaceResult, Status
from crfit.racing.runner import STATUSES
from crfit.training.callbacks import Callback
from crfit.training.records import Ending, Run
from crfit.training.stopping import Progress, Stop, StopReason

if TYPE_CHECKING:
    from bench.optimum import StoredOptimum

RUN, POINT, OPTIMUM = "run", "point", "optimum"  # values of the column ``row``
NUMBERS, SCORES = ("iteration", "passes", "seconds", "objective", "grad_inf"), ("accuracy", "f1")


def curve_rows(curve: Curve, optimum: Optimum, **facts: Any) -> Iterator[Row]:
    """Rows of one curve, with gaps to an optimum, and some facts in all of them."""
    yield {
        "row": RUN,
        "entry": curve.label,
        "trainer": curve.trainer,
        "status": curve.status.value,
        "words": curve.message,
        "options": json.dumps(curve.options),
        "profile": json.dumps(curve.profile),
        "seconds_per_iteration": _seconds_per_iteration(curve),
        **facts,
    }
    for point in RaceResult([curve], {curve.problem: optimum}).rows():
        yield {"row": POINT, **point, **facts}


def _seconds_per_iteration(curve: Curve) -> float | None:
    """Median over neighbouring points after the first iteration, which may be several apart, or none."""
    points = [point for point in curve.points if point.iteration > 0]
    iterations = np.diff([point.iteration for point in points])
    seconds, apart = np.diff([point.seconds for point in points]), iterations > 0
    return float(np.median(seconds[apart] / iterations[apart])) if apart.any() else None


def tool_rows(name: str, variant: str, loaded: Loaded, limits: Limits, best: StoredOptimum) -> Iterator[Row]:
    """Rows of the run of a tool, with its version and its threads."""
    curve = tool(name).run(loaded, limits, variant)
    facts = {"version": tool(name).version(), "threads": tool(name).threads(limits.n_threads, variant)}
    yield from curve_rows(curve, best.of_curves, **facts)


def race_of(rows: Iterable[Row], optima: dict[str, Optimum]) -> RaceResult:
    """The curves in some rows as a race, in their order; all must have different labels."""
    curves: dict[str, Curve] = {}
    for row in rows:
        if row.get("row") == RUN:
            curve = Curve(row["entry"], row["trainer"], json.loads(row["options"]), row["problem"])
            curve.status, curve.message = Status(row["status"]), row["words"]
            curve.profile = json.loads(row["profile"])
            curves[curve.label] = curve
        elif row.get("row") == POINT:
            scores = {name: row[name] for name in SCORES if row.get(name) is not None}
            point = Point(**{name: row[name] for name in NUMBERS}, scores=scores)
            curves[row["entry"]].points.append(point)
    return RaceResult(list(curves.values()), optima)


def optimum_row(best: StoredOptimum, loaded: Loaded | None = None) -> Row:
    """Row of the reference optimum of a problem, with the sizes of its data if given."""
    row = {name: getattr(best, name) for name in ("objective", "grad_inf", "uncertainty", "n_weights")}
    sizes = ("n_sequences", "n_labels", "n_attributes") if loaded is not None else ()
    return {"row": OPTIMUM, **row, **{name: getattr(loaded.train, name) for name in sizes if loaded}}


def optimum_in(rows: Iterable[Row]) -> Optimum | None:
    """The reference optimum in the rows of one problem, or None."""
    found = next((row for row in rows if row.get("row") == OPTIMUM), None)
    return None if found is None else Optimum(found["objective"], "found", found["uncertainty"])


def trained_curve(
    loaded: Loaded,
    text: str,
    stop: Stop,
    *,
    key: str,
    seed: int = 0,
    arithmetic: str = SCALED,
    sparse: bool = False,
) -> Curve:
    """Train from zero weights until `stop`; `sparse`: F only with scores, as it takes an epoch."""
    problem = ready(loaded.objective(THREADS, arithmetic=arithmetic), loaded.test, THREADS)
    options = {"entry": text, "seed": seed}
    curve = Curve(f"crfit, {key}", CRFIT, options, loaded.problem.name, points=[problem.start])
    callbacks: list[Callback] = [EvaluationGrid(curve.add, problem.score)]
    if sparse and stop.objective is not None:
        callbacks.append(_EndAt(curve, stop.objective))
        stop = replace(stop, objective=None, change=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what it says is in the curve
        result = crfit.train(problem.objective, trainer_of(text, seed), stop=stop, callbacks=callbacks)
    curve.status, curve.message = STATUSES[result.reason], result.message
    curve.profile = result.profile.to_dict()
    return curve


class _EndAt(Callback):
    """Ends a run whose last evaluation has a low objective."""

    def __init__(self, curve: Curve, objective: float) -> None:
        self._curve, self._objective = curve, objective

    def on_step(self, run: Run, progress: Progress) -> Ending | None:
        last = self._curve.points[-1]
        if last.iteration != progress.iteration or last.objective is None or last.objective > self._objective:
            return None
        return StopReason.CONVERGED, f"objective {last.objective:.10g} <= {self._objective:.10g}"


def thinned(curve: Curve, goals: Iterable[float]) -> Curve:
    """Keep only the first and last point, points with scores, and the first at or below each goal."""
    values = [np.inf if point.objective is None else point.objective for point in curve.points]
    kept = {0, len(values) - 1} | {n for n, point in enumerate(curve.points) if point.scores}
    kept |= {next((n for n, value in enumerate(values) if value <= goal), 0) for goal in goals}
    return replace(curve, points=[curve.points[n] for n in sorted(kept)])
