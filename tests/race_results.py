"""Results of races that were never run, for the tests of what is made from them."""

import math
from typing import Any

from crfit.racing.result import Curve, Optimum, Point, RaceResult, Status

START = 50_000.0
PHASES = {"scores": 0.31, "lattice": 0.22, "gather": 0.18, "vectors": 0.09, "evaluation": 0.12}


def curve(
    label: str,
    rate: float,
    cost: float,
    *,
    n_points: int = 120,
    optimum: float = 7705.3,
    best_f1: float = 93.8,
    scores: bool = True,
    **more: Any,
) -> Curve:
    """An entry whose gap falls as exp(-rate k); a step takes `cost` seconds."""
    points = []
    for k in range(n_points):
        gap = (START - optimum) * math.exp(-rate * k) * (1 + 0.04 * math.sin(k))
        f1 = max(0.0, best_f1 - 92 * math.exp(-1.6 * rate * k) + 0.05 * math.sin(k))
        held_out = {"accuracy": 60 + 0.385 * f1, "f1": f1, "sequence_accuracy": 0.9 * f1} if scores else {}
        points.append(Point(k, 1.1 * k, cost * k, optimum + gap, gap**0.5 / 3, held_out))
    more = {"status": Status.CONVERGED, "message": "the largest gradient entry is at most 0.05"} | more
    return Curve(label, "lbfgs", problem=more.pop("problem", "l2=1"), points=points, **more)


def diverging(label: str = "sgd step=10") -> Curve:
    """An entry that falls at first and then climbs without end."""
    values = [START, 30_000.0, 24_000.0, 40_000.0, 9e5, 4e8, 3e15, float("inf")]
    points = [Point(k, float(k), 0.05 * k, value, None, {}) for k, value in enumerate(values)]
    options = {"step": 10.0}
    return Curve(label, "sgd", options, "l2=1", Status.DIVERGED, "the objective is no longer finite", points)


def failed(label: str = "newton_cg") -> Curve:
    """An entry without a single look."""
    message = "needs hvp, which the gpu engine does not have: use lbfgs or --device cpu"
    return Curve(label, "newton_cg", {}, "l2=1", Status.FAILED, message)


def result(curves: list[Curve], **more: Any) -> RaceResult:
    """A race; gaps are taken to the lowest value of each problem unless `optima` is given."""
    lowest = {c.problem: min(x.lowest for x in curves if x.problem == c.problem) for c in curves}
    optima = {name: Optimum(value, "lowest", 0.003) for name, value in lowest.items() if value < math.inf}
    facts: dict[str, Any] = {
        "optima": optima,
        "data": {"train": ["data/recipes.txt"], "sequences": 4000, "tokens": 31_874, "labels": 13},
        "settings": {"max_passes": 200, "n_threads": 2, "seed": 0, "weights": "observed", "l2": 1.0},
        "machine": {"processor": "a processor", "cores": 2, "versions": {"crfit": "0.2.0", "numpy": "2.1"}},
    }
    return RaceResult(curves, **(facts | more))


def typical(scores: bool = True) -> RaceResult:
    """Four entries that end well, one that diverges, one that fails."""
    profile = {name: 10 * share for name, share in PHASES.items()}
    return result(
        [
            curve("lbfgs", 0.11, 0.06, scores=scores, profile=profile, options={"memory": 10}),
            curve("lbfgs memory=3", 0.085, 0.055, scores=scores, profile=PHASES, options={"memory": 3}),
            curve("lbfgs memory=50", 0.12, 0.08, scores=scores, n_points=110, options={"memory": 50}),
            curve(
                "lbfgs memory=1", 0.05, 0.05, scores=scores, n_points=200, status=Status.LIMIT, best_f1=93.2
            ),
            diverging(),
            failed(),
        ]
    )
