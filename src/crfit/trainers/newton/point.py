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
    """The current point and the trial point: four vectors, swapped and never copied.

    Parameters
    ----------
    objective : Objective
        Offers ``value_and_grad``; without l1.
    w : array of float64 [n_weights]
        Starting point, which becomes one of the four.
    """

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
        """Sets: what an earlier run had at w, and the pin.

        Parameters
        ----------
        state : mapping
            From `state`.
        """
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
        """Sets: ``w_trial = w + step s``.

        Parameters
        ----------
        step : float
            Length.
        s : array of float64
            Direction.
        """
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
    """How the quadratic model is built and minimised in one outer step.

    Parameters
    ----------
    xi : float
        Accuracy of conjugate gradients.
    quadratic : bool
        Whether their test is the quadratic one.
    metric : array of float64 or None
        Diagonal preconditioner.
    max_products : int
        Products allowed for one minimisation.
    """

    xi: float
    quadratic: bool
    metric: Vector | None
    max_products: int

    def minimise(self, point: Point, work: Workspace, radius: float = math.inf) -> ModelStep:
        """Minimise the model at the point; ``work.s`` is the step.

        Parameters
        ----------
        point : Point
            Where the model is built; pinned.
        work : Workspace
            Vectors.
        radius : float
            Largest step in the metric.
        """
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
    """One outer step, done or failed.

    Parameters
    ----------
    step_size : float
        What the log calls the step's size.
    products : int
        Hessian products, those of steps given up included.
    rejected : int
        Trial points given up.
    stop : StopReason or None
        Set if there is no step: the point is where it was.
    message : str
        Says more about `stop`.
    """

    step_size: float
    products: int
    rejected: int
    stop: StopReason | None = None
    message: str = ""


class Globalisation(Protocol):
    """What makes a Newton method go down from everywhere: a trust region or a line search."""

    def advance(self, point: Point, work: Workspace, model: Model) -> Move:
        """Go to a better point, or say why there is none.

        Parameters
        ----------
        point : Point
            Sets: the new point, with its gradient, pinned.
        work : Workspace
            Vectors for conjugate gradients.
        model : Model
            How to minimise the model.
        """

    def extra(self) -> dict[str, float]:
        """Numbers for the log."""

    def state(self) -> dict[str, Any]:
        """What a resume needs."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Sets: what `state` said.

        Parameters
        ----------
        state : mapping
            From `state`.
        """
