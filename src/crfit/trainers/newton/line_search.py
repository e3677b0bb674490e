"""Line searches of Newton-CG: the step s minimises the model without a bound, then its length a is sought.

`LineSearch`, as in LIBLINEAR from version 2.40 on: a starts at 1 and is halved until

    F(w + a s) - F(w) <= 0.01 a g.s,     at most 20 times

`WolfeSearch`: the strong Wolfe conditions with a curvature constant of 0.5, from a = 1 on. Some way from the
optimum a full step may lower F a little and overshoot far; the first test is content with that. Here the
gradient of the trial point, which is needed anyway, tells, and a second trial is the minimum of a cubic.

What a trial of the first costs: ``value_and_grad`` one pass, after which an accepted point has its gradient;
a value alone less, but then the gradient comes on top. Full steps are the rule near the optimum and short
ones come in runs. So after a full step the next one is tried by its gradient, one pass in all; after a short
one, and if that trial fails, values are taken: along the ray where the objective offers it and is still
pinned at w (scores are linear in w, a trial then walks lattices whose scores are known), else at w + a s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from crfit import vectors
from crfit.engines.objective import LineFunction
from crfit.trainers.newton.conjugate_gradient import Workspace
from crfit.trainers.newton.point import Model, Move, Point
from crfit.trainers.wolfe_search import Accepted, backtracking, strong_wolfe
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

__all__ = ["LineSearch", "WolfeSearch"]

#: Share of the decrease that the slope promises, and trials allowed.
SUFFICIENT = 0.01
MAX_TRIALS = 20
#: Share of the slope that may be left at the end of a Wolfe search.
CURVATURE = 0.5


class WolfeSearch:
    """Globalisation by the strong Wolfe conditions."""

    def advance(self, point: Point, work: Workspace, model: Model) -> Move:
        """Go to a better point, or say why there is none."""
        point.pin()
        step = model.minimise(point, work)
        accepted = self._search(point, work.s, step.slope) if step.finite and step.slope < 0.0 else None
        if accepted is None:
            reason, message = StopReason.LINE_SEARCH, "no step lowers the objective"
            if not step.finite:
                reason, message = StopReason.DIVERGED, "a Hessian product is not finite"
            return Move(0.0, step.products, 0, reason, message)
        point.accept()
        return Move(accepted.step, step.products, accepted.trials - 1)

    @staticmethod
    def _search(point: Point, s: Vector, slope: float) -> Accepted | None:
        def trial(length: float) -> tuple[float, float]:
            point.move(length, s)
            return point.evaluate(), vectors.dot(point.g_trial, s)

        return strong_wolfe(trial, point.value, slope, c1=SUFFICIENT, c2=CURVATURE, max_trials=MAX_TRIALS)

    def extra(self) -> dict[str, float]:
        """Nothing but the step size, which the log has already."""
        return {}

    def state(self) -> dict[str, Any]:
        """Nothing: every search starts at 1."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Sets: nothing."""


class LineSearch:
    """Globalisation by halving the step."""

    def __init__(self) -> None:
        self.length = 1.0

    def advance(self, point: Point, work: Workspace, model: Model) -> Move:
        """Go to a better point, or say why there is none."""
        point.pin()
        step = model.minimise(point, work)
        if not step.finite:
            return Move(0.0, step.products, 0, StopReason.DIVERGED, "a Hessian product is not finite")
        if not step.slope < 0.0:
            message = "the model promises no decrease"
            return Move(0.0, step.products, 0, StopReason.LINE_SEARCH, message)
        trials = _Trials(point, work.s, step.slope)
        accepted = trials.search(self.length == 1.0)
        if accepted is None:
            message = "no step lowers the objective"
            return Move(0.0, step.products, trials.rejected, StopReason.LINE_SEARCH, message)
        self.length = accepted.step
        point.accept()
        return Move(accepted.step, step.products, trials.rejected)

    def extra(self) -> dict[str, float]:
        """Nothing but the step size, which the log has already."""
        return {}

    def state(self) -> dict[str, Any]:
        """What a resume needs."""
        return {"length": self.length}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Sets: the last step length of an earlier run."""
        self.length = float(state["length"])


class _Trials:
    """Trial points along one direction."""

    def __init__(self, point: Point, s: Vector, slope: float) -> None:
        self.point, self.s, self.slope = point, s, slope
        self.rejected = 0
        self.along: LineFunction | None = None
        self.improves = False  # whether the last trial is better where values cannot tell

    def search(self, full_first: bool) -> Accepted | None:
        """Return the step found, with the point evaluated there."""
        start = 1.0
        if full_first:
            found = self._backtrack(self._gradient, start, 1)
            if found is not None:
                return found
            self.rejected, start = 1, 0.5
        elif "along" in self.point.objective.capabilities:
            self.along = self.point.objective.along(self.s)
        found = self._backtrack(self._value, start, MAX_TRIALS - self.rejected)
        if found is None:
            self.rejected = MAX_TRIALS
            return None
        self.rejected += found.trials - 1
        value, _ = self._gradient(found.step)
        return found if math.isfinite(value) else None

    def _backtrack(self, evaluate: LineFunction, start: float, max_trials: int) -> Accepted | None:
        return backtracking(
            evaluate,
            self.point.value,
            start,
            improves=lambda: self.improves,
            c1=SUFFICIENT,
            max_trials=max_trials,
        )

    def _gradient(self, step: float) -> tuple[float, float]:
        self.point.move(step, self.s)
        value = self.point.evaluate()
        self.improves = self.point.shorter_gradient()
        return value, step * self.slope

    def _value(self, step: float) -> tuple[float, float]:
        if self.along is not None:
            value, slope = self.along(step)
            # The slope test of [Hager and Zhang 2005, eq. 4.1], see `crfit.trainers.wolfe_search`.
            self.improves = slope <= (2.0 * SUFFICIENT - 1.0) * self.slope
        else:
            self.point.move(step, self.s)
            value = float(self.point.objective.value(self.point.w_trial))
            self.improves = False
        return value, step * self.slope
