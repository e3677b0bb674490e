"""One training, looked at as in a race: its steps, and test scores at some of them outside the clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import crfit
from bench.figures.newton_cg.entries import Entry
from bench.problems import Loaded
from bench.setting import THREADS
from crfit.racing.entries import read_entries
from crfit.racing.grid import EvaluationGrid
from crfit.racing.problems import ProblemOptions, ready
from crfit.racing.records import Curve
from crfit.racing.running import STATUSES
from crfit.stopping import Stop

__all__ = ["run_entry", "thinned"]


def run_entry(loaded: Loaded, entry: Entry, stop: Stop, seed: int) -> Curve:
    """Train from zero weights.

    `crfit.race` does the same, but has one arithmetic only. The gradient at zero is computed before the clock
    starts, as there: it makes the tables that the first step would otherwise pay for.
    """
    (chosen,) = read_entries([entry.text], ProblemOptions(), seed=seed)
    problem = ready(loaded.objective(THREADS, arithmetic=entry.arithmetic), loaded.test, THREADS)
    options = {"entry": entry.text, "seed": seed}
    curve = Curve(f"crfit, {entry.key}", "crfit_race", options, loaded.problem.name, points=[problem.start])
    grid = EvaluationGrid(curve.add, problem.score)
    result = crfit.train(problem.objective, chosen.trainer, stop=stop, callbacks=[grid])
    curve.status, curve.message = STATUSES[result.reason], result.message
    curve.profile = result.profile.to_dict()
    return curve


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
