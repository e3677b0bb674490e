"""Several trainers on one function: seconds and passes to a gap and to a gradient, curves, parts of the time.

The clock is that of `crfit.train`, without scores and without the first gradient, which builds shared tables.
Gaps are relative to the lowest value of any run there, including a long run that comes first. With l2 of 1e-3
or more that run ends at the optimum; below, the data are nearly separable and no run reaches an optimum.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import crfit
from bench.problems import Loaded
from bench.records import Entry, Row
from bench.seeds import text_of, trainer_of
from bench.setting import THREADS
from crfit.engines import EngineObjective
from crfit.errors import ConvergenceWarning
from crfit.racing.grid import EvaluationGrid
from crfit.racing.problems import Score
from crfit.racing.result import Point
from crfit.training.callbacks import Callback
from crfit.training.records import Result, Run
from crfit.training.stopping import Progress, StopReason

#: Goal of a run: relative gap, and largest gradient entry.
GAP, GRAD_INF = 1e-4, 1e-2
#: Gaps by the names of the goals.
GOALS = {"gap2": 1e-2, "gap3": 1e-3, "gap4": GAP}
#: The long run: seconds of L-BFGS with many pairs, then as many of Newton's method.
LONG_TRAINERS = ("lbfgs:memory=50", "newton_cg:start=none")
#: Its gradient goal, times l2 if that is below 1: separable data have tiny values and gradients.
LONG_GRAD_INF = 1e-7
#: Runs end at this share of the gap, because the lowest value may become lower.
WITHIN = 0.9
#: Kinds of steps of clustered L-BFGS; clustering includes building the coarse objective.
PARTS = ("fine", "coarse", "clustering")


class Optimum(NamedTuple):
    """The lowest value known before the runs, and how it was found."""

    objective: float
    grad_inf: float
    words: str


def quietly(objective: EngineObjective, text: str, *args: Any, **options: Any) -> Result:
    """Train without convergence warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return crfit.train(objective, trainer_of(text), *args, **options)


def ready(loaded: Loaded) -> EngineObjective:
    """The objective with its tables built."""
    objective = loaded.objective(THREADS)
    objective.value_and_grad(objective.xp.zeros(objective.n_weights))
    return objective


class Training(Callback):
    """A run to a value and gradient, or for some seconds; `looks` are evaluations with test scores."""

    def __init__(self, goal: tuple[float, float], seconds: float, score: Score | None = None) -> None:
        self._goal, self._seconds, self._score = goal, seconds, score
        self.looks: dict[int, Point] = {}

    def run(self, objective: EngineObjective, text: str) -> Result:
        grid = EvaluationGrid(self._look, self._score)
        stop = crfit.Stop(grad_inf=0.0, seconds=self._seconds)  # this callback knows the goal
        return quietly(objective, text, stop=stop, callbacks=[grid, self])

    def _look(self, point: Point) -> None:
        if point.scores:
            self.looks[point.iteration] = point

    def on_step(self, run: Run, progress: Progress) -> tuple[StopReason, str] | None:
        return (StopReason.CONVERGED, "reached its goal") if _low(progress, *self._goal) else None


def _low(step: Progress, objective: float, grad_inf: float = math.inf) -> bool:
    flat = math.isinf(grad_inf) or (step.grad_inf is not None and step.grad_inf <= grad_inf)
    return flat and step.objective is not None and step.objective <= objective


def lowest(objective: EngineObjective, seconds: float) -> Optimum:
    """Minimise for some seconds."""
    w, found = None, []
    for text in LONG_TRAINERS:
        stop = crfit.Stop(grad_inf=LONG_GRAD_INF * min(1.0, float(objective.l2)), seconds=seconds)
        result = quietly(objective, text, w, stop=stop)
        found.append(Optimum(result.objective, result.grad_inf, result.message))
        w = result.weights
    return min(found, key=lambda one: one.objective)


def compete(
    objective: EngineObjective,
    entries: Sequence[Entry],
    seconds: float,
    score: Score | None,
    *,
    long: Optimum | float = 4.0,
    repeats: int = 1,
    curves: bool = True,
    gradient: bool = True,
) -> Iterator[Row]:
    """Rows of the function and of all runs; `long`: its optimum, or seconds of each half of the long run."""
    known = long if isinstance(long, Optimum) else lowest(objective, long)
    goal = known.objective * (1.0 + WITHIN * GAP), GRAD_INF if gradient else math.inf
    runs = []
    for number in range(1, repeats + 1):
        for entry in entries:
            training = Training(goal, seconds, score if number == 1 else None)
            facts = {"row": "run", "entry": entry.key, "given": entry.text, "number": number}
            runs.append((facts, training.run(objective, entry.text), list(training.looks.values())))
    values = [step.objective for _, run, _ in runs for step in run.history if step.objective is not None]
    best, ridge = min(known.objective, *values), float(objective.l2)
    row = {"row": "best", "ridge": ridge, "objective": best, "long_objective": known.objective}
    yield {**row, "grad_inf": known.grad_inf, "words": known.words, "n_weights": objective.n_weights}
    for facts, run, looks in runs:
        kept = looks if curves and facts["number"] == 1 else []
        yield {"ridge": ridge, **facts, **_run_row(run, best), **_look_row(looks, kept)}


def _run_row(run: Result, best: float) -> Row:
    """When a run reached each goal, and how it ended."""
    last, limits = run.history[-1], {goal: best * (1.0 + gap) for goal, gap in GOALS.items()}
    asked = {goal: (objective, math.inf) for goal, objective in limits.items()}
    row: Row = {"reason": run.reason.value, "words": run.message}
    for goal, low in {**asked, "grad": (limits["gap4"], GRAD_INF)}.items():
        step = next((step for step in run.history if _low(step, *low)), None)
        row |= {f"{goal}_{unit}": getattr(step, unit, None) for unit in ("seconds", "passes")}
    gap = None if last.objective is None else last.objective / best - 1.0
    row |= {"end_seconds": last.seconds, "end_passes": last.passes, "end_gap": gap}
    return row | parts_of(run.history)


def _look_row(looks: Sequence[Point], kept: Sequence[Point]) -> Row:
    """Final scores, and curves at the evaluations."""
    scores = looks[-1].scores if looks else {}
    row: Row = {f"end_{name}": value for name, value in scores.items()}
    if kept:
        row |= {f"curve_{unit}": text_of(getattr(p, unit) for p in kept) for unit in ("seconds", "passes")}
        row["curve_objectives"] = text_of(look.objective or math.nan for look in kept)
        row |= {f"curve_{name}": text_of(look.scores[name] for look in kept) for name in scores}
    return row


def parts_of(steps: Sequence[Progress]) -> Row:
    """Seconds, passes and steps of each part of clustered L-BFGS; empty for other trainers."""
    if not any("level" in step.extra for step in steps):
        return {}
    row: Row = {f"{part}_{what}": 0.0 for part in PARTS for what in ("seconds", "passes", "steps")}
    seconds = passes = 0.0
    for step in steps:
        part = "clustering" if step.extra.get("clustering") else PARTS[bool(step.extra.get("level"))]
        row[f"{part}_seconds"] += step.seconds - seconds
        row[f"{part}_passes"] += step.passes - passes
        row[f"{part}_steps"] += 1.0
        seconds, passes = step.seconds, step.passes
    return row
