"""One training that is looked at: all its steps, test scores at some of them, what each kind of step took.

The clock is that of `crfit.train`: it stands while scores are taken, and begins after a gradient at zero
weights, which makes the tables that all trainers share. A run ends when it has come to both goals, a relative
gap and a largest gradient entry, or at its limit of seconds. SciPy's L-BFGS-B minimises the same objective,
with a clock of its own around it.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from crfit.callbacks import Callback
from crfit.runs import Result, Run
from crfit.stopping import Progress, StopReason

import crfit
from bench.figures.clustered.entries import Entry
from bench.online_runs import trainer_of
from crfit.engines import EngineObjective
from crfit.errors import ConvergenceWarning
from crfit.racing.grid import Marks
from crfit.vectors import Vector

__all__ = ["GAP", "GOALS", "GRAD_INF", "Goal", "Look", "Score", "Training", "train_entry"]

#: A run is to come this near to the optimum, relatively, and to a gradient with no larger entry.
GAP, GRAD_INF = 1e-4, 1e-2
#: Gaps that are noted on the way, by the goals' names.
GOALS = {"gap2": 1e-2, "gap3": 1e-3, "gap4": GAP}
FIRST_PASSES, FIRST_SECONDS = 1.0, 0.02

#: Weights to test scores by name.
Score: TypeAlias = Callable[[Vector], Mapping[str, float]]


@dataclass(frozen=True)
class Goal:
    """Where a run ends.

    Parameters
    ----------
    objective : float
        F that it is to come to, besides the gradient.
    seconds : float
        Limit.
    grad_inf : float
        Largest entry of the gradient that it is to come to.
    """

    objective: float
    seconds: float
    grad_inf: float = GRAD_INF

    def reached(self, progress: Progress) -> bool:
        """Whether both goals are reached at a step."""
        value, largest = progress.objective, progress.grad_inf
        flat = math.isinf(self.grad_inf) or (largest is not None and largest <= self.grad_inf)
        return flat and value is not None and value <= self.objective


@dataclass(frozen=True)
class Look:
    """A step with test scores.

    Parameters
    ----------
    seconds, passes, objective : float
        When, and F there.
    scores : mapping of str to float
        Of the test part.
    """

    seconds: float
    passes: float
    objective: float
    scores: Mapping[str, float]


@dataclass
class Training:
    """What was seen of a run.

    Parameters
    ----------
    entry : Entry
        Who.
    steps : list of Progress
        All steps.
    looks : list of Look
        Some, with scores; the last step is one of them.
    reason, words : str
        How it ended.
    """

    entry: Entry
    steps: list[Progress] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    reason: str = ""
    words: str = ""

    @property
    def lowest(self) -> float:
        """The lowest objective of any step."""
        return min((p.objective for p in self.steps if p.objective is not None), default=float("inf"))

    def first(self, *, objective: float | None = None, grad_inf: float | None = None) -> Progress | None:
        """The first step that is as low as asked; None if there is none."""
        for step in self.steps:
            low = objective is None or (step.objective is not None and step.objective <= objective)
            flat = grad_inf is None or (step.grad_inf is not None and step.grad_inf <= grad_inf)
            if low and flat:
                return step
        return None


class _Looking(Callback):
    """Takes scores at steps on a geometric grid of seconds and passes, and ends the run at its goal."""

    def __init__(self, training: Training, score: Score | None, goal: Goal) -> None:
        self._training, self._score, self._goal = training, score, goal
        self._seconds, self._passes = Marks(FIRST_SECONDS), Marks(FIRST_PASSES)

    def on_step(self, run: Run, progress: Progress) -> tuple[StopReason, str] | None:
        due = [self._seconds.passed(progress.seconds), self._passes.passed(progress.passes)]
        ends = self._goal.reached(progress)
        if (any(due) or ends) and progress.objective is not None:
            self._look(progress, run.weights)
        return (StopReason.CONVERGED, "came to its goal") if ends else None

    def on_end(self, run: Run, result: Result | None) -> None:
        last = run.history[-1] if run.history else None
        seen = self._training.looks[-1].passes if self._training.looks else -1.0
        if result is not None and last is not None and last.objective is not None and last.passes > seen:
            self._look(last, result.weights)

    def _look(self, progress: Progress, weights: Vector) -> None:
        scores = {} if self._score is None else self._score(weights)
        assert progress.objective is not None
        self._training.looks.append(Look(progress.seconds, progress.passes, progress.objective, dict(scores)))


def train_entry(objective: EngineObjective, entry: Entry, goal: Goal, score: Score | None = None) -> Training:
    """Train from zero weights.

    Parameters
    ----------
    objective : EngineObjective
        What is minimised; its tables have been made.
    entry : Entry
        Who does it.
    goal : Goal
        Where the run ends.
    score : callable, optional
        Test scores.
    """
    training = Training(entry)
    if not entry.text:
        return _scipy(objective, training, goal, score)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = crfit.train(
            objective,
            trainer_of(entry.text),
            stop=crfit.Stop(grad_inf=0.0, seconds=goal.seconds),  # the callback knows both goals
            callbacks=[_Looking(training, score, goal)],
        )
    training.steps = list(result.history)
    training.reason, training.words = result.reason.value, result.message
    return training


def _scipy(objective: EngineObjective, training: Training, goal: Goal, score: Score | None) -> Training:
    """SciPy's L-BFGS-B with as many pairs as ours; its own tests of convergence are switched off."""
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    looking = _Looking(training, score, goal)
    begin, standing = time.perf_counter(), 0.0
    evaluations, norm = 0, float("inf")

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
        run = Run(objective, "scipy", {}, crfit.Stop(), intermediate_result.x)
        ended = looking.on_step(run, progress)
        standing += time.perf_counter() - now
        if ended or progress.seconds >= goal.seconds:
            raise StopIteration

    options = {"maxcor": 10, "ftol": 0.0, "gtol": 0.0, "maxiter": 10**6, "maxfun": 10**7}
    with threadpool_limits(1):  # its products of short vectors take longer on two
        found = minimize(
            function,
            np.zeros(objective.n_weights),
            jac=True,
            method="L-BFGS-B",
            callback=seen,
            options=options,
        )
    training.reason, training.words = "ended", str(found.message)
    return training
