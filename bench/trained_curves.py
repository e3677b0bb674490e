"""One training, looked at as in a race: its steps, and test scores at some of them outside the clock.

`crfit.race` does the same, but has one arithmetic only, and its entries share an objective. The gradient at
zero is computed before the clock starts, as there: it makes the tables that the first step would otherwise
pay for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace

from crfit.callbacks import Callback
from crfit.callbacks.base import Ending
from crfit.runs import Run
from crfit.stopping import Progress, Stop, StopReason

import crfit
from bench.online_runs import trainer_of
from bench.problems import Loaded
from bench.setting import THREADS
from crfit.errors import ConvergenceWarning
from crfit.racing.grid import EvaluationGrid
from crfit.racing.problems import ready
from crfit.racing.records import Curve
from crfit.racing.running import STATUSES

__all__ = ["thinned", "trained_curve"]

SCALED = "scaled"  # crfit's arithmetic


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
    """Train from zero weights.

    Parameters
    ----------
    loaded : Loaded
        Data and function.
    text : str
        Trainer and options, as ``crfit race`` takes them.
    stop : Stop
        Where the run ends.
    key : str
        What tells it from other runs on the data.
    seed : int
        For the order of the sequences.
    arithmetic : str
        Of the objective.
    sparse : bool
        Whether an objective that the trainer does not compute is evaluated when a look is due alone, for data
        on which that takes as long as an epoch. A run ends at its objective at a look, then.
    """
    problem = ready(loaded.objective(THREADS, arithmetic=arithmetic), loaded.test, THREADS)
    options = {"entry": text, "seed": seed}
    curve = Curve(f"crfit, {key}", "crfit_race", options, loaded.problem.name, points=[problem.start])
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
    """Ends a run whose last look has a low objective."""

    def __init__(self, curve: Curve, objective: float) -> None:
        self._curve, self._objective = curve, objective

    def on_step(self, run: Run, progress: Progress) -> Ending | None:
        last = self._curve.points[-1]
        if last.iteration != progress.iteration or last.objective is None:
            return None
        if last.objective > self._objective:
            return None
        return StopReason.CONVERGED, f"objective {last.objective:.10g} <= {self._objective:.10g}"


def thinned(curve: Curve, goals: Iterable[float]) -> Curve:
    """The curve without steps that neither tables nor pictures need.

    Left are the steps with scores, which lie on a geometric grid, the first one at or below each of some
    objectives, the first and the last.
    """
    points = curve.points
    kept = {0, len(points) - 1} | {n for n, point in enumerate(points) if point.scores}
    for goal in goals:
        reached = (n for n, p in enumerate(points) if p.objective is not None and p.objective <= goal)
        kept |= {n for n in [next(reached, None)] if n is not None}
    return replace(curve, points=[points[n] for n in sorted(kept)])
