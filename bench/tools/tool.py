"""A tool, the limits of its runs, and the curve of a run.

Seconds are training time, without reading and converting the input or tagging the test part. Output of a tool
is printed into the log of the task. Objectives are F of `bench.problems`, whatever the tool's own scale.
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

#: Tolerances between two values of F at the same weights: Wapiti's log has two decimals.
DECIMALS, SHARE = 0.01, 1e-6


@dataclass(frozen=True)
class Limits:
    """When a run ends, whichever comes first: iterations, seconds of training, an objective.

    `scores`: score the model on the test part, after a second, untimed training if a stopped tool leaves no
    model. `one_training`: a tool that needs one training per point of its curve trains only once, with all
    iterations or the smallest tolerance.
    """

    max_iter: int = 1000
    seconds: float | None = None
    n_threads: int = 2
    objective: float | None = None
    scores: bool = True
    one_training: bool = False


class ToolError(Exception):
    """A tool failed; the message is its last output."""


class Tool:
    """A program or library that crfit is compared with, installed or not.

    It `SOLVES` a subset of {"chain", "classifier", "binary"} with `VARIANTS` of its settings and `PENALTIES`,
    a subset of {"l1", "l2", "both", "none"}; variants in `WITHOUT_L1` have no L1. `OBSERVED`: it can omit
    weights of pairs that do not occur. `PACKAGE` is the name for pip, `IMPORTED` the one for import.
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
    THREADS: ClassVar[int | None] = 1  # None: as many as allowed

    def absent(self) -> str | None:
        """Why it cannot run here and how to get it, or None."""
        if find_spec(self.IMPORTED or self.PACKAGE):
            return None
        name = self.PACKAGE if "(" in self.TITLE else self.TITLE
        return f"{name} is not installed: pip install {self.PACKAGE}"

    def version(self) -> str:
        return version(self.PACKAGE)

    def refuses(self, problem: Problem, variant: str = "default") -> str | None:
        """Why it cannot minimise the function of a problem, or None."""
        penalty = {(0, 0): "none", (1, 0): "l1", (0, 1): "l2", (1, 1): "both"}[problem.l1 > 0, problem.l2 > 0]
        if problem.kind == "chain" and "chain" not in self.SOLVES:
            return "it is a classifier, and has no transitions between labels"
        if problem.weights != "all" and not self.OBSERVED:
            return "it has weights for all pairs of attribute and label, and no way to leave some out"
        if problem.order > 1:
            return "its transitions depend on one label before"
        if penalty not in self.PENALTIES or (problem.l1 > 0 and variant in self.WITHOUT_L1):
            told = {"none": "training without a penalty", "both": "L1 and L2 penalty at once"}
            return f"it has no {told.get(penalty, 'L1 penalty')}"
        if problem.kind == "classifier" and not problem.binary and "classifier" not in self.SOLVES:
            return "with more than two labels it trains a classifier for each, which is another function"
        return None

    def unable(self, loaded: Loaded, options: Mapping[str, Any]) -> str | None:
        """Why it cannot take these data, or None."""
        return None

    def threads(self, most: int, variant: str = "default") -> int:
        """How many of the allowed threads it uses."""
        return most if self.THREADS is None else self.THREADS

    def options(self, loaded: Loaded, limits: Limits, variant: str) -> dict[str, Any]:
        """Options in the tool's own words."""
        raise NotImplementedError

    def train(self, recording: Recording, options: dict[str, Any]) -> None:
        """Train until the recording ends."""
        raise NotImplementedError

    def run(self, loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
        """The curve of a training; failed if the tool cannot do it."""
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
    """The growing curve of a run.

    All tools start from zero weights, so the first point is F(0) at 0 seconds. `out_of_time`: the run hit its
    time limit, so it is not trained again for scores.
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
        """Whether a tool has to be stopped before its last iteration."""
        return self.ended and self.curve.points[-1].iteration < self.limits.max_iter

    def add(self, iteration: int, passes: float, seconds: float, objective: float) -> bool:
        """Add a point; True if the run should end."""
        limits = self.limits
        self.curve.points.append(Point(iteration, passes, seconds, objective))
        if self.ended:  # a tool may do a little more after the signal
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
        """Set how the run ended, unless that is known."""
        if not self.ended:
            self.curve.status, self.curve.message = status, message
        return self.curve

    def fail(self, message: str) -> Curve:
        """Mark the run as failed."""
        self.curve.status, self.curve.message = Status.FAILED, message
        return self.curve

    def check(self, weights: NDArray[np.float64]) -> None:
        """Compare the tool's last objective with F at its last weights, and replace it.

        This detects a wrong penalty, wrong features or data in runs whose model can be read: every run of
        Wapiti, scored runs of CRFsuite. Batch methods never increase F, so points that the log rounded below
        the last F are raised to it.
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
        """Make times of separate trainings non-decreasing; a slower earlier one was disturbed."""
        points = self.curve.points
        for n in range(len(points) - 2, -1, -1):
            points[n] = replace(points[n], seconds=min(points[n].seconds, points[n + 1].seconds))

    def score(self, predicted: Sequence[Sequence[str]]) -> None:
        """Add test scores to the last point."""
        scores = evaluate(self.loaded.label_lists("test"), predicted)
        found = {"accuracy": scores.accuracy, "f1": scores.f1}
        self.curve.points[-1] = replace(self.curve.points[-1], scores=found)
