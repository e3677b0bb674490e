"""What a tool is, when its runs end, and the curve of a run while it grows.

The seconds of a curve are those of training: reading and converting the input before it, and tagging the test
part after it, are not in them. What a tool logs is printed as it comes, so that the log of a task has it.
Objectives are F as in `bench.problems`, whatever the tool's own scale is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.problems import Loaded, Problem
from crfit.evaluation import evaluate
from crfit.racing.result import Curve, Point, Status

#: Two values of F at the same weights may differ by this much and this share: Wapiti's log has two decimals.
DECIMALS, SHARE = 0.01, 1e-6


@dataclass(frozen=True)
class Limits:
    """When a run ends, whichever comes first: iterations, seconds of training, an objective.

    With `scores` the model is scored on the test part; a tool that leaves no model when it is stopped trains
    once more for that, outside the clock. With `one_training` a classifier of whose curve every point is a
    training of its own trains once alone, with all iterations or the smallest tolerance: that tells where it
    ends, and nothing about the way.
    """

    max_iter: int = 1000
    seconds: float | None = None
    n_threads: int = 2
    objective: float | None = None
    scores: bool = True
    one_training: bool = False


class ToolError(Exception):
    """A tool could not do what it was asked; the message is the last thing that it said."""


class Tool:
    """A program or library that crfit is compared with, installed or not.

    It `SOLVES` a subset of {"chain", "classifier", "binary"}, with settings by name, all correct, and with
    `PENALTIES`, a subset of {"l1", "l2", "both", "none"}; variants in `WITHOUT_L1` have no L1. `OBSERVED`
    says that it can leave out weights of pairs that do not occur. `IMPORTED` is what a package is imported
    as, `PACKAGE` what pip calls it. A tool says what options it is given and how it is trained (`train`).
    """

    NAME: ClassVar[str]
    TITLE: ClassVar[str]
    SOLVES: ClassVar[frozenset[str]] = frozenset({"chain", "classifier", "binary"})
    VARIANTS: ClassVar[Mapping[str, Any]] = {"default": {}}
    PENALTIES: ClassVar[frozenset[str]] = frozenset({"l1", "l2", "both", "none"})
    WITHOUT_L1: ClassVar[frozenset[str]] = frozenset()
    OBSERVED: ClassVar[bool] = False
    PACKAGE: ClassVar[str] = ""
    IMPORTED: ClassVar[str] = ""
    THREADS: ClassVar[int | None] = 1  # None: as many as it may have

    def absent(self) -> str | None:
        """None, or why it cannot run here and how to get it."""
        if find_spec(self.IMPORTED or self.PACKAGE):
            return None
        name = self.PACKAGE if "(" in self.TITLE else self.TITLE
        return f"{name} is not installed: pip install {self.PACKAGE}"

    def version(self) -> str:
        return version(self.PACKAGE)

    def refuses(self, problem: Problem, variant: str = "default") -> str | None:
        """None, or why it cannot minimise the function of a problem."""
        penalty = {(0, 0): "none", (1, 0): "l1", (0, 1): "l2", (1, 1): "both"}[problem.l1 > 0, problem.l2 > 0]
        if problem.kind == "chain" and "chain" not in self.SOLVES:
            return "it is a classifier, and has no transitions between labels"
        if problem.weights != "all" and not self.OBSERVED:
            return "it has weights for all pairs of attribute and label, and no way to leave some out"
        if penalty not in self.PENALTIES or (problem.l1 > 0 and variant in self.WITHOUT_L1):
            told = {"none": "training without a penalty", "both": "L1 and L2 penalty at once"}
            return f"it has no {told.get(penalty, 'L1 penalty')}"
        if problem.kind == "classifier" and not problem.binary and "classifier" not in self.SOLVES:
            return "with more than two labels it trains a classifier for each, which is another function"
        return None

    def unable(self, loaded: Loaded, options: Mapping[str, Any]) -> str | None:
        """None, or why it cannot be given these data."""
        return None

    def threads(self, most: int, variant: str = "default") -> int:
        """How many it uses of those that it may have."""
        return most if self.THREADS is None else self.THREADS

    def options(self, loaded: Loaded, limits: Limits, variant: str) -> dict[str, Any]:
        """What the tool is told, in its own words."""
        raise NotImplementedError

    def train(self, recording: Recording, options: dict[str, Any]) -> None:
        """Train until the recording ends, and say to it how that went."""
        raise NotImplementedError

    def run(self, loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
        """The curve of a training, which has failed where the tool cannot do it."""
        options = self.options(loaded, limits, variant)
        recording = Recording(self, loaded, limits, variant, options)
        reason = self.refuses(loaded.problem, variant) or self.unable(loaded, options)
        if reason:
            return recording.fail(reason)
        try:
            self.train(recording, options)
        except ToolError as error:
            return recording.fail(str(error))
        return recording.curve


class Recording:
    """Takes what a tool says, point by point.

    All tools begin at zero weights, so that the first point of the `curve` is F(0) at 0 seconds. `objective`
    is F, for values at a tool's weights. `out_of_time` says that the run ended at its limit of seconds: a
    tool that would have to train once more for its model is not scored then.
    """

    def __init__(
        self, tool: Tool, loaded: Loaded, limits: Limits, variant: str, options: Mapping[str, Any]
    ) -> None:
        self.loaded, self.limits, self.variant = loaded, limits, variant
        self.n_threads = tool.threads(limits.n_threads, variant)
        self.objective = loaded.objective(n_threads=limits.n_threads)
        label = tool.TITLE if variant == "default" else f"{tool.TITLE}, {variant}"
        self.curve = Curve(label, tool.NAME, dict(options), loaded.problem.name, Status.RUNNING)
        start = self.objective.full_value(np.zeros(self.objective.n_weights))
        self.curve.points.append(Point(0, 0.0, 0.0, start))
        self.out_of_time = False

    @property
    def ended(self) -> bool:
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
