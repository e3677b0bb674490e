"""Where a Newton method stands: the current point, the trial point, and which of them is pinned.

Hessian products are taken where the objective is pinned, and ``value_and_grad`` pins. A trial is evaluated by
it: one pass, and if the step is kept, as nearly all are, the point has its gradient and is pinned already. A
trial that is given up costs a second pass, which pins the old point again. Asking for the value first would
make it two passes for every step kept and one for every step given up; with five of forty given up that is 75
passes against 45.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from crfit import vectors
from crfit.trainers.newton.conjugate_gradient import ModelStep, Workspace, minimise_model
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.objective import Objective

__all__ = ["Globalisation", "Model", "Move", "Point"]


class Point:
    """The current point and the trial point: four vectors, swapped and never copied."""

    def __init__(self, objective: Objective, w: Vector) -> None:
        self.objective = objective
        empty = objective.xp.empty_like
        self.w, self.g = w, empty(w)
        self.w_trial, self.g_trial = empty(w), empty(w)
        self.value, self.value_trial = math.nan, math.nan
        self.grad_inf, self.grad_norm = math.nan, math.nan
        self.norms_trial: tuple[float, float] = math.nan, math.nan
        self.pinned = False

    def evaluate_start(self) -> None:
        """Sets: value, gradient and norms at w, and the pin."""
        self.value = float(self.objective.value_and_grad(self.w, out=self.g)[0])
        self.grad_inf, self.grad_norm = vectors.norms(self.g)
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
        """Sets: what an earlier run had at w, and the pin."""
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
        value = float(self.objective.value_and_grad(self.w_trial, out=self.g_trial)[0])
        self.norms_trial = vectors.norms(self.g_trial)
        self.value_trial = value if math.isfinite(self.norms_trial[1]) else math.nan
        return self.value_trial

    def shorter_gradient(self) -> bool:
        """Whether the gradient is shorter at the trial point: the measure where F is at rounding level."""
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
        )


@dataclass(frozen=True)
class Move:
    """One outer step, done or failed."""

    step_size: float  # what the log calls the step's size
    products: int  # hessian products, those of steps given up included
    rejected: int  # trial points given up
    stop: StopReason | None = None  # set if there is no step: the point is where it was
    message: str = ""  # says more about `stop`


class Globalisation(Protocol):
    """What makes a Newton method go down from everywhere: a trust region or a line search."""

    def advance(self, point: Point, work: Workspace, model: Model) -> Move:
        """Go to a better point, or say why there is none."""

    def extra(self) -> dict[str, float]:
        """Numbers for the log."""

    def state(self) -> dict[str, Any]:
        """What a resume needs."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Sets: what `state` said."""
