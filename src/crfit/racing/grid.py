"""When an entry is evaluated: on a grid of passes and one of seconds, both geometric.

    marks  first, first r, first r^2, ...      due at the first step at or beyond a new mark

An evaluation costs a value of the objective and decoding of the held-out data; the entry's clock is stopped,
the user's is not. On a geometric grid a run of any length gets a few dozen, evenly spread over a logarithmic
axis. Two grids, because seconds are what users wait for and passes are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from crfit.errors import CrfitError
from crfit.racing.problems import Score
from crfit.racing.result import Point
from crfit.training.records import Callback, Ending, Result, Run
from crfit.training.stopping import Progress, StopReason
from crfit.vectors import Vector

FIRST_PASSES, FIRST_SECONDS, RATIO = 0.1, 0.05, 1.25
#: How far a reported objective may be off that of the weights: relative, and absolute per sequence.
TOLERANCE, ROUNDING = 1e-6, 1e-8


class Marks:
    """The marks of one grid."""

    def __init__(self, first: float, ratio: float = RATIO) -> None:
        self.first, self.ratio, self.next = first, ratio, first

    def passed(self, x: float) -> bool:
        """Whether there is a new mark at or below `x`. Sets: `next`, the lowest mark above."""
        if x < self.next:
            return False
        steps = math.floor(math.log(x / self.first, self.ratio))
        while self.next <= x:  # the logarithm may be off by one
            self.next = self.first * self.ratio**steps
            steps += 1
        return True


class EvaluationGrid(Callback):
    """Evaluates a run with its clock stopped, and passes each `Point` to `seen`.

    At a step that is due, the held-out data is scored, and the objective is evaluated if the trainer does not
    report it. Any other step with a known objective is a point without scores. The last step is evaluated in
    full (and may be passed twice), unless the user interrupted the run, which may be resumed.

    With a wrong objective an entry would win and set the optimum for all others. So the reports 1, 2, 4, ...
    and the last are compared with the objective of the weights; CrfitError if they differ.
    """

    def __init__(self, seen: Callable[[Point], None], score: Score | None = None) -> None:
        self._seen, self._score = seen, score
        self._latest: Point | None = None
        self._n_reports = 0  # of the objective, by the trainer
        self._passes, self._seconds = Marks(FIRST_PASSES), Marks(FIRST_SECONDS)

    def on_start(self, run: Run) -> None:
        """Start, or move the marks to where a resumed run was."""
        self._latest = None
        self._passes, self._seconds = Marks(FIRST_PASSES), Marks(FIRST_SECONDS)
        for progress in run.history:
            self._due(progress)
        self._n_reports = sum(progress.objective is not None for progress in run.history)

    def on_step(self, run: Run, progress: Progress) -> Ending | None:
        """Evaluate the step if it is due or its objective is known."""
        due = self._due(progress)
        if not progress.finite:
            self._hand_over(progress)
            return None
        objective = progress.objective
        if objective is not None:
            self._n_reports += 1
            if self._n_reports & (self._n_reports - 1) == 0:
                _compare(run, progress.iteration, objective)
        elif due:
            objective = float(run.objective.full_value(run.weights))
        if objective is None:
            return None
        if not math.isfinite(objective):
            self._hand_over(progress)
            return StopReason.DIVERGED, "the objective is no longer finite"
        self._hand_over(progress, objective, run.weights if due else None)
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Evaluate the last step in full."""
        if result is None or result.reason is StopReason.INTERRUPTED or not run.history:
            return
        last = run.history[-1]
        if result.weights_iteration != last.iteration or not math.isfinite(result.objective):
            return  # it diverged: the weights are those of an earlier step
        if last.objective is not None:
            _compare(run, last.iteration, last.objective)
        seen = self._latest
        if seen is None or seen.iteration != last.iteration or (self._score is not None and not seen.scores):
            self._hand_over(last, result.objective, result.weights, result)
        elif seen.objective is None or seen.grad_norm is None:  # `train` has computed them at the end
            self._hand_over(last, result.objective, None, result, seen.scores)

    def _due(self, progress: Progress) -> bool:
        by_passes, by_seconds = self._passes.passed(progress.passes), self._seconds.passed(progress.seconds)
        return by_passes or by_seconds

    def _hand_over(
        self,
        progress: Progress,
        objective: float | None = None,
        scored: Vector | None = None,
        norms: Progress | Result | None = None,
        scores: Mapping[str, float] | None = None,
    ) -> None:
        known = progress if norms is None else norms
        if scored is not None and self._score is not None:
            scores = self._score(scored)
        self._latest = Point(
            progress.iteration,
            progress.passes,
            progress.seconds,
            objective,
            _finite(known.grad_inf),
            dict(scores or {}),
            _finite(known.grad_norm),
        )
        self._seen(self._latest)


def _compare(run: Run, iteration: int, reported: float) -> None:
    """Raise CrfitError if a reported objective is not that of the weights."""
    value = float(run.objective.full_value(run.weights))
    rounding = ROUNDING * run.objective.n_sequences
    if not math.isclose(value, reported, rel_tol=TOLERANCE, abs_tol=rounding):
        raise CrfitError(
            f"the trainer reports F = {reported:.10g} after iteration {iteration}, "
            f"but its weights have F = {value:.10g}; Step.objective must be the full objective or None"
        )


def _finite(x: float | None) -> float | None:
    return x if x is not None and math.isfinite(x) else None
