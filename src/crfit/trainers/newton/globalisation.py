"""Line searches along the Newton step, so that Newton-CG converges from any point.

The step s minimises the quadratic model without a bound; the search then finds its length a. (`trust_region`
bounds the step while the model is minimised instead.)

`LineSearch`, as in LIBLINEAR from version 2.40 on: a starts at 1 and is halved until

    F(w + a s) - F(w) <= 0.01 a g.s,     at most 20 times

`WolfeSearch`: the strong Wolfe conditions with a curvature constant of 0.5, from a = 1 on. Away from the
optimum a full step may overshoot far and still lower F a little, which backtracking accepts. The Wolfe search
checks the gradient at the trial point, which is needed anyway; its second trial minimises a cubic.

After a full step with model decrease m, and F lower by m + e, F could still fall by about

    left = (what the model could still fall) + 4 e^2 / m

The second term is for what the model lacks. Along one weight a cubic term of F would give 2.25 e^2 / m.

Cost of a trial in `LineSearch`: ``value_and_grad`` takes one pass and an accepted point then has its
gradient; a value costs less, but the gradient comes on top. Full steps are usual near the optimum, and short
steps come in runs. So after a full step the next trial computes the gradient. After a short step, or if that
trial fails, trials compute values only: along the ray if the objective supports it and is still pinned at w
(scores are linear in w, so the lattice scores are known), else at w + a s.

A `Point` is pinned while the objective holds the curvature at `w` for Hessian-vector products.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crfit import vectors
from crfit.engines.objective import LineFunction, Objective
from crfit.trainers.newton.conjugate_gradient import ModelStep, Workspace, minimise_model
from crfit.trainers.wolfe_search import Accepted, backtracking, strong_wolfe
from crfit.training.stopping import StopReason
from crfit.vectors import Vector


class Point:
    """The current point and the trial point: four vectors, swapped and never copied.

    With l1 > 0 values are those of F, gradients those of its smooth part, norms those of the pseudo-gradient.
    """

    def __init__(self, objective: Objective, w: Vector) -> None:
        self.objective, self.free = objective, objective.free
        empty = objective.xp.empty_like
        self.w, self.g = w, empty(w)
        self.w_trial, self.g_trial = empty(w), empty(w)
        self.value, self.value_trial = math.nan, math.nan
        self.grad_inf, self.grad_norm = math.nan, math.nan
        self.norms_trial: tuple[float, float] = math.nan, math.nan
        self.pinned = False

    def evaluate_start(self) -> None:
        """Sets: value, gradient and norms at w, and the pin."""
        self.value, (self.grad_inf, self.grad_norm) = self._evaluate(self.w, self.g)
        self.pinned = True

    def state(self) -> dict[str, Any]:
        """What `restore` needs besides w; the gradient is a live view."""
        return {
            "value": self.value,
            "gradient": self.g,
            "grad_inf": self.grad_inf,
            "grad_norm": self.grad_norm,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Sets: value, gradient and norms from `state`, and the pin, which the run has counted already."""
        with self.objective.counts.paused():
            self.pin()
        self.value = float(state["value"])
        self.g[:] = self.objective.xp.asarray(state["gradient"])
        self.grad_inf, self.grad_norm = float(state["grad_inf"]), float(state["grad_norm"])

    def pin(self) -> None:
        """Pin w if it is not; value and gradient stay bit for bit what they are. Sets: g_trial."""
        if not self.pinned:
            self.objective.value_and_grad(self.w, out=self.g_trial)
            self.pinned = True

    def move(self, step: float, s: Vector) -> None:
        """Sets: ``w_trial = w + step s``."""
        vectors.axpy(self.w, step, s, self.w_trial)

    def evaluate(self) -> float:
        """Return F at w_trial, NaN if its gradient is not finite. Sets: g_trial, and pins the trial point."""
        self.pinned = False
        value, self.norms_trial = self._evaluate(self.w_trial, self.g_trial)
        self.value_trial = value if math.isfinite(self.norms_trial[1]) else math.nan
        return self.value_trial

    def _evaluate(self, w: Vector, out: Vector) -> tuple[float, tuple[float, float]]:
        """F at w and the norms of its gradient, with l1 > 0 of the pseudo-gradient. Sets: `out`, of f."""
        value, _ = self.objective.value_and_grad(w, out=out)
        if self.objective.l1 == 0.0:
            return float(value), vectors.norms(out)
        norms = vectors.pseudo_gradient_norms(w, out, self.objective.l1, self.free)
        return float(self.objective.full_value(w, value)), norms

    def shorter_gradient(self) -> bool:
        """Whether the gradient is shorter at the trial point, for when F changes only by rounding."""
        return self.norms_trial[1] < self.grad_norm

    def accept(self) -> None:
        """Go to the trial point, where `evaluate` was called last. Sets: everything."""
        self.w, self.w_trial = self.w_trial, self.w
        self.g, self.g_trial = self.g_trial, self.g
        self.value = self.value_trial
        self.grad_inf, self.grad_norm = self.norms_trial
        self.pinned = True


@dataclass(frozen=True)
class Model:
    """How the quadratic model is built and minimised in one outer step."""

    xi: float  # accuracy of conjugate gradients
    quadratic: bool  # whether their test is the quadratic one
    metric: Vector | None  # diagonal preconditioner
    max_products: int  # products allowed for one minimisation
    wanted: float = 0.0  # what F may still fall at the end of the run, 0 if that does not matter

    def minimise(self, point: Point, work: Workspace, radius: float = math.inf) -> ModelStep:
        """Minimise the model at the point; ``work.s`` is the step."""
        return minimise_model(
            point.objective.hvp,
            point.g,
            work,
            xi=self.xi,
            quadratic=self.quadratic,
            radius=radius,
            metric=self.metric,
            max_products=self.max_products,
            wanted=self.wanted,
        )


@dataclass(frozen=True)
class Move:
    """One outer step, done or failed."""

    step_size: float  # for the log
    products: int  # Hessian-vector products, including those of rejected steps
    rejected: int  # rejected trial points
    stop: StopReason | None = None  # set if no step was found; the point is unchanged
    message: str = ""  # details about `stop`


class Globalisation(ABC):
    """A trust region or a line search: makes Newton's method converge from any point."""

    solved = True  # whether the last step minimised the model to its accuracy and was not shortened
    left = math.inf  # what F could still fall after the last step, if known
    missed = 0.0  # by how much F fell less than the model in the last step, if it was a full one

    @abstractmethod
    def advance(self, point: Point, work: Workspace, model: Model) -> Move:
        """Move to a better point, or return why none was found."""

    def extra(self) -> dict[str, float]:
        """Numbers for the log, besides the step size."""
        return {}

    def state(self) -> dict[str, Any]:
        """What a resume needs."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027  # nothing by default
        """Sets: what `state` returned."""


#: Share of the predicted decrease that a step must reach, and the maximum number of trials.
SUFFICIENT = 0.01
MAX_TRIALS = 20
#: Curvature constant of the Wolfe search.
CURVATURE = 0.5
#: Weight of what the model lacks, in what is left.
MISSED = 4.0


class WolfeSearch(Globalisation):
    """Line search by the strong Wolfe conditions."""

    def advance(self, point: Point, work: Workspace, model: Model) -> Move:
        """Move to a better point, or return why none was found."""
        point.pin()
        step = model.minimise(point, work)
        accepted = self._search(point, work.s, step.slope) if step.finite and step.slope < 0.0 else None
        if accepted is None:
            reason, message = StopReason.LINE_SEARCH, "no step lowers the objective"
            if not step.finite:
                reason, message = StopReason.DIVERGED, "a Hessian product is not finite"
            return Move(0.0, step.products, 0, reason, message)
        beyond = point.value - point.value_trial - step.decrease
        full = accepted.step == 1.0
        self.left = step.left + MISSED * beyond * beyond / step.decrease if full else math.inf
        self.missed = max(0.0, -beyond) if full else 0.0
        point.accept()
        self.solved = accepted.step >= 1.0 and step.solved
        return Move(accepted.step, step.products, accepted.trials - 1)

    @staticmethod
    def _search(point: Point, s: Vector, slope: float) -> Accepted | None:
        def trial(length: float) -> tuple[float, float]:
            point.move(length, s)
            return point.evaluate(), vectors.dot(point.g_trial, s)

        return strong_wolfe(trial, point.value, slope, c1=SUFFICIENT, c2=CURVATURE, max_trials=MAX_TRIALS)


class LineSearch(Globalisation):
    """Backtracking line search that halves the step."""

    def __init__(self) -> None:
        self.length = 1.0

    def advance(self, point: Point, work: Workspace, model: Model) -> Move:
        """Move to a better point, or return why none was found."""
        point.pin()
        step = model.minimise(point, work)
        if not step.finite:
            return Move(0.0, step.products, 0, StopReason.DIVERGED, "a Hessian product is not finite")
        if not step.slope < 0.0:
            message = "the quadratic model predicts no decrease"
            return Move(0.0, step.products, 0, StopReason.LINE_SEARCH, message)
        trials = _Trials(point, work.s, step.slope)
        accepted = trials.search(self.length == 1.0)
        if accepted is None:
            message = "no step lowers the objective"
            return Move(0.0, step.products, trials.rejected, StopReason.LINE_SEARCH, message)
        self.length = accepted.step
        self.solved = accepted.step >= 1.0 and step.solved
        point.accept()
        return Move(accepted.step, step.products, trials.rejected)

    def state(self) -> dict[str, Any]:
        """What a resume needs."""
        return {"length": self.length}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Sets: the last step length, from `state`."""
        self.length = float(state["length"])


class _Trials:
    """Trial points along one direction."""

    def __init__(self, point: Point, s: Vector, slope: float) -> None:
        self.point, self.s, self.slope = point, s, slope
        self.rejected = 0
        self.along: LineFunction | None = None
        self.improves = False  # whether the last trial is better when values differ only by rounding

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
