"""Several trainers on one function: seconds and passes to a gap and to a gradient, curves, parts of the time.

The clock is that of `crfit.train`: it stands while scores are taken, and begins after a gradient at zero
weights, which makes the tables that all trainers share. A run ends when it has reached both goals, a relative
gap and a largest gradient entry, or at its limit of seconds.

Gaps are taken to the lowest value that anybody reached there, a long run that comes first included. With a
ridge of 1e-3 and more that run ends at the optimum; for tiny ones the data are nearly separable, no optimum
is reached in any time worth while, and the row of the function says how large the gradient was left.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import crfit
from bench.problems import Loaded
from bench.records import Entry, Row
from bench.seeds import text_of, trainer_of
from bench.setting import THREADS
from crfit.engines import EngineObjective
from crfit.errors import ConvergenceWarning
from crfit.racing.grid import Marks
from crfit.training.callbacks import Callback
from crfit.training.records import Result, Run
from crfit.training.stopping import Progress, StopReason
from crfit.vectors import Vector

#: A run is to come this near to the optimum, relatively, and to a gradient with no larger entry.
GAP, GRAD_INF = 1e-4, 1e-2
#: Gaps that are noted on the way, by the goals' names.
GOALS = {"gap2": 1e-2, "gap3": 1e-3, "gap4": GAP}
FIRST_PASSES, FIRST_SECONDS = 1.0, 0.02
#: The long run: L-BFGS with many pairs for so many seconds, then Newton's method for as many.
LONG_TRAINERS = ("lbfgs:memory=50", "newton_cg:start=none")
#: Its gradient, times the ridge if that is below 1: separable data have tiny values, and gradients with them.
LONG_GRAD_INF = 1e-7
#: A run goes on to this share of the gap, so that the lowest value may turn out somewhat lower.
WITHIN = 0.9
#: Kinds of steps of clustered L-BFGS; that of a clustering has the making of the coarse objective in it.
PARTS = ("fine", "coarse", "clustering")

#: Weights to test scores by name.
Score: TypeAlias = Callable[[Vector], Mapping[str, float]]


@dataclass(frozen=True)
class Conditions:
    """Of the runs on one function: seconds, runs of everybody in rounds, whether curves are kept, seconds of
    each half of the long run, and whether a run goes on to a small gradient after the gap.
    """

    seconds: float
    repeats: int = 1
    curves: bool = True
    long_seconds: float = 4.0
    gradient: bool = True


class Optimum(NamedTuple):
    """The lowest value of a function that is known before the runs, and how it was found."""

    objective: float
    grad_inf: float
    words: str


class Look(NamedTuple):
    """A step with test scores."""

    seconds: float
    passes: float
    objective: float
    scores: Mapping[str, float]


class Training(Callback):
    """A run from zero weights: all its steps, and test scores at some on a grid of seconds and passes.

    It ends at its goal, F and a gradient as low as asked, or after its seconds.
    """

    def __init__(
        self, entry: Entry, goal: tuple[float, float], seconds: float, score: Score | None = None
    ) -> None:
        self.entry, self.goal, self.seconds, self._score = entry, goal, seconds, score
        self.steps: list[Progress] = []
        self.looks: list[Look] = []
        self.reason = self.words = ""
        self._grids = Marks(FIRST_SECONDS), Marks(FIRST_PASSES)

    def run(self, objective: EngineObjective) -> Training:
        if not self.entry.text:
            return _scipy(objective, self)
        stop = crfit.Stop(grad_inf=0.0, seconds=self.seconds)  # this callback knows the goal
        result = quietly(objective, self.entry.text, stop=stop, callbacks=[self])
        self.steps = list(result.history)
        self.reason, self.words = result.reason.value, result.message
        return self

    def first(self, objective: float, grad_inf: float = math.inf) -> Progress | None:
        """The first step that is as low as asked; None if there is none."""
        return next((step for step in self.steps if _low(step, objective, grad_inf)), None)

    def on_step(self, run: Run, progress: Progress) -> tuple[StopReason, str] | None:
        seconds, passes = self._grids
        due = [seconds.passed(progress.seconds), passes.passed(progress.passes)]
        ends = _low(progress, *self.goal)
        if any(due) or ends:
            self._look(progress, run.weights)
        return (StopReason.CONVERGED, "reached its goal") if ends else None

    def on_end(self, run: Run, result: Result | None) -> None:
        seen = self.looks[-1].passes if self.looks else -1.0
        if result is not None and run.history and run.history[-1].passes > seen:
            self._look(run.history[-1], result.weights)

    def _look(self, progress: Progress, weights: Vector) -> None:
        if progress.objective is not None:
            scores = {} if self._score is None else dict(self._score(weights))
            self.looks.append(Look(progress.seconds, progress.passes, progress.objective, scores))


def _low(step: Progress, objective: float, grad_inf: float) -> bool:
    flat = math.isinf(grad_inf) or (step.grad_inf is not None and step.grad_inf <= grad_inf)
    return flat and step.objective is not None and step.objective <= objective


def quietly(objective: EngineObjective, text: str, *args: Any, **options: Any) -> Result:
    """Train; that a run ended before it converged is seen from its result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return crfit.train(objective, trainer_of(text), *args, **options)


def ready(loaded: Loaded) -> EngineObjective:
    """The objective, with its tables made."""
    objective = loaded.objective(THREADS)
    objective.value_and_grad(objective.xp.zeros(objective.n_weights))
    return objective


def _scipy(objective: EngineObjective, training: Training) -> Training:
    """SciPy's L-BFGS-B on the same objective with as many pairs as ours, and a clock of its own around it.

    Its own tests of convergence are switched off.
    """
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    begin, standing = time.perf_counter(), 0.0
    evaluations, norm = 0, math.inf

    def function(w: Vector) -> tuple[float, Vector]:
        nonlocal evaluations, norm
        value, gradient = objective.value_and_grad(w)
        evaluations, norm = evaluations + 1, float(np.abs(gradient).max())
        return float(value), gradient

    def seen(intermediate_result: Any) -> None:
        nonlocal standing
        now = time.perf_counter()
        value, number = float(intermediate_result.fun), len(training.steps) + 1
        progress = Progress(number, float(evaluations), now - begin - standing, value, norm)
        training.steps.append(progress)
        ended = training.on_step(Run(objective, "scipy", {}, crfit.Stop(), intermediate_result.x), progress)
        standing += time.perf_counter() - now
        if ended or progress.seconds >= training.seconds:
            raise StopIteration

    options = {"maxcor": 10, "ftol": 0.0, "gtol": 0.0, "maxiter": 10**6, "maxfun": 10**7}
    start = np.zeros(objective.n_weights)
    with threadpool_limits(1):  # its products of short vectors take longer on two
        found = minimize(function, start, jac=True, method="L-BFGS-B", callback=seen, options=options)
    training.reason, training.words = "ended", str(found.message)
    return training


def lowest(objective: EngineObjective, seconds: float) -> Optimum:
    """Minimise as far as it goes in some seconds."""
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
    conditions: Conditions,
    score: Score | None,
    known: Optimum | None = None,
) -> Iterator[Row]:
    """Rows of the function, whose optimum may be known, and of all runs."""
    long = known or lowest(objective, conditions.long_seconds)
    grad_inf = GRAD_INF if conditions.gradient else math.inf
    goal = long.objective * (1.0 + WITHIN * GAP), grad_inf
    runs = [
        (n, Training(entry, goal, conditions.seconds, score if n == 1 else None).run(objective))
        for n in range(1, conditions.repeats + 1)
        for entry in entries
    ]
    values = [step.objective for _, training in runs for step in training.steps if step.objective is not None]
    best = min(long.objective, *values)
    facts: Row = {"ridge": float(objective.l2)}
    yield {
        "row": "best",
        **facts,
        "objective": best,
        "long_objective": long.objective,
        "grad_inf": long.grad_inf,
        "words": long.words,
        "n_weights": objective.n_weights,
    }
    for number, training in runs:
        yield {**facts, **_run_row(training, best, number, conditions)}


def _run_row(training: Training, best: float, number: int, conditions: Conditions) -> Row:
    """Everything about a run in a row."""
    last = training.steps[-1]
    reached = {goal: training.first(best * (1.0 + gap)) for goal, gap in GOALS.items()}
    reached["grad"] = training.first(best * (1.0 + GAP), GRAD_INF)
    row: Row = {
        "row": "run",
        "entry": training.entry.key,
        "given": training.entry.text,
        "number": number,
        "reason": training.reason,
        "words": training.words,
        **{
            f"{goal}_{unit}": None if step is None else getattr(step, unit)
            for goal, step in reached.items()
            for unit in ("seconds", "passes")
        },
        "end_seconds": last.seconds,
        "end_passes": last.passes,
        "end_gap": None if last.objective is None else last.objective / best - 1.0,
        **parts_of(training.steps),
    }
    looks = training.looks
    scores = looks[-1].scores if looks else {}
    row |= {f"end_{name}": value for name, value in scores.items()}
    if conditions.curves and number == 1:
        for name in ("seconds", "passes"):
            row[f"curve_{name}"] = text_of(getattr(look, name) for look in looks)
        row["curve_objectives"] = text_of(look.objective for look in looks)
        row |= {f"curve_{name}": text_of(look.scores[name] for look in looks) for name in scores}
    return row


def parts_of(steps: Sequence[Progress]) -> Row:
    """Seconds, passes and steps of each part of clustered L-BFGS; nothing for a run that has but one.

    The seconds of a step are those since the step before.
    """
    if not any("level" in step.extra for step in steps):
        return {}
    row: Row = {f"{part}_{what}": 0.0 for part in PARTS for what in ("seconds", "passes", "steps")}
    seconds = passes = 0.0
    for step in steps:
        part = (
            "clustering" if step.extra.get("clustering") else "coarse" if step.extra.get("level") else "fine"
        )
        row[f"{part}_seconds"] += step.seconds - seconds
        row[f"{part}_passes"] += step.passes - passes
        row[f"{part}_steps"] += 1.0
        seconds, passes = step.seconds, step.passes
    return row
