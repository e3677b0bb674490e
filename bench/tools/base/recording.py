"""The curve of a run while it grows, and whether the run has come to its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.problems import Loaded
from crfit.evaluation import evaluate
from crfit.racing.records import Curve, Point, Status

__all__ = ["Limits", "Recording"]

#: Two values of F at the same weights may differ by this much and this share: Wapiti's log has two decimals.
DECIMALS, SHARE = 0.01, 1e-6


@dataclass(frozen=True)
class Limits:
    """When a run ends; whichever comes first.

    Parameters
    ----------
    max_iter : int
        Iterations.
    seconds : float, optional
        Seconds of training.
    n_threads : int
        Threads, for tools that can use them.
    objective : float, optional
        A run ends once F is at or below this.
    scores : bool
        Whether the model is scored on the test part. A tool that leaves no model when it is stopped trains
        once more for that, outside the clock.
    one_training : bool
        Whether a classifier, of whose curve every point is a training of its own, trains once alone, with all
        iterations or the smallest tolerance. That tells where it ends, and nothing about the way.
    """

    max_iter: int = 1000
    seconds: float | None = None
    n_threads: int = 2
    objective: float | None = None
    scores: bool = True
    one_training: bool = False


class Recording:
    """Takes what a tool tells, point by point.

    Parameters
    ----------
    title, tool, variant : str
        Title and module of the tool, and which of its settings.
    loaded : Loaded
        The problem.
    limits : Limits
        When the run ends.
    options : dict
        What the tool was told.

    Attributes
    ----------
    curve : Curve
        What `run` gives back. All tools begin at zero weights, so that its first point is F(0) at 0 seconds.
    objective : EngineObjective
        F, for values at a tool's weights.
    out_of_time : bool
        Whether the run ended at its limit of seconds. A tool that would have to train once more for its model
        is not scored then: that would take as long again.
    """

    def __init__(
        self, title: str, tool: str, variant: str, loaded: Loaded, limits: Limits, options: dict[str, Any]
    ) -> None:
        self.loaded, self.limits = loaded, limits
        self.objective = loaded.objective(n_threads=limits.n_threads)
        label = title if variant == "default" else f"{title}, {variant}"
        self.curve = Curve(label, tool, options, loaded.problem.name, Status.RUNNING)
        start = self.objective.full_value(np.zeros(self.objective.n_weights))
        self.curve.points.append(Point(0, 0.0, 0.0, start))
        self.out_of_time = False

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self.curve.status != Status.RUNNING

    @property
    def interrupts(self) -> bool:
        """Whether a tool that was told how many iterations to do has to be stopped before that."""
        return self.ended and self.curve.points[-1].iteration < self.limits.max_iter

    def add(self, iteration: int, passes: float, seconds: float, objective: float) -> bool:
        """Take a point; says whether the run should end with it."""
        limits = self.limits
        self.curve.points.append(Point(iteration, passes, seconds, objective))
        if self.ended:  # a tool that was asked to stop, and did a little more
            return True
        if not math.isfinite(objective):
            self.end(Status.DIVERGED, f"the objective is {objective}")
        elif limits.objective is not None and objective <= limits.objective:
            self.end(Status.LIMIT, f"reached the objective {limits.objective:.6g}")
        elif limits.seconds is not None and seconds >= limits.seconds:
            self.end(Status.LIMIT, f"ran for {limits.seconds:g} seconds")
            self.out_of_time = True
        elif iteration >= limits.max_iter:
            self.end(Status.LIMIT, f"did {limits.max_iter} iterations")
        return self.ended

    def end(self, status: Status, message: str) -> Curve:
        """Say how the run ended, unless that is known already."""
        if not self.ended:
            self.curve.status, self.curve.message = status, message
        return self.curve

    def fail(self, message: str) -> Curve:
        """Say that the run is not to be believed, whatever it seemed before."""
        self.curve.status, self.curve.message = Status.FAILED, message
        return self.curve

    def check(self, weights: NDArray[np.float64]) -> None:
        """Compare the tool's last objective with F at its last weights, and put F in its place.

        A tool that was given the wrong penalty, features or data is found out here, in the runs that leave a
        model to be read: every run of Wapiti, those of CRFsuite that are scored. Batch methods go down all
        the way, so that points that the log has rounded to less than F at the end are put there too.
        """
        points = self.curve.points
        last, ours = points[-1].objective, self.objective.full_value(weights)
        if last is None or abs(ours - last) > DECIMALS + SHARE * abs(ours):
            self.fail(f"it reports {last}, but F is {ours:.8g} at its weights: not the same function")
            return
        for n, point in enumerate(points):
            if point.objective is not None and (point.objective < ours or n == len(points) - 1):
                points[n] = replace(point, objective=ours)

    def order_times(self) -> None:
        """Put right a curve whose points are trainings of their own, each with more to do than the last.

        None of them can take longer than a later one; where it seems so, something else was in the way.
        """
        points = self.curve.points
        for n in range(len(points) - 2, -1, -1):
            points[n] = replace(points[n], seconds=min(points[n].seconds, points[n + 1].seconds))

    def score(self, predicted: Sequence[Sequence[str]]) -> None:
        """Score labels of the test part, and put that into the last point."""
        scores = evaluate(self.loaded.label_lists("test"), predicted)
        found = {"accuracy": scores.accuracy, "f1": scores.f1}
        self.curve.points[-1] = replace(self.curve.points[-1], scores=found)
