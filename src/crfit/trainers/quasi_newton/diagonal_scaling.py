"""A run in variables that all have about the same curvature at the start.

With h the diagonal of the Hessian at the starting point,

    w = u / sqrt(h),      the diagonal of the Hessian in u is 1

L-BFGS begins with a multiple of the identity, and that is a better guess in u than in w, where frequent
attributes have a thousand times the curvature of rare ones. Steps are in u; weights, value and gradient that
are reported are those in w.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from crfit import vectors
from crfit.errors import CapabilityError
from crfit.trainers.quasi_newton.change_of_variables import ScaledObjective
from crfit.trainers.registry import Step
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.objective import Objective
    from crfit.trainers.quasi_newton.lbfgs import LBFGS

__all__ = ["scaled_steps"]

#: Curvature that a weight has at least, relative to the largest: one without any must not be moved at will.
FLOOR = 1e-12


def scaled_steps(
    inner: LBFGS, objective: Objective, w: Vector, state: Mapping[str, Any] | None = None
) -> Iterator[Step]:
    """Yield the starting point, then one step per iteration; a generator for ``steps`` of a trainer."""
    if objective.l1 > 0.0:
        raise CapabilityError("scaling", "diagonal", "is for l1 = 0: take scaling='none'")
    xp = objective.xp
    if state is None:
        value, g = objective.value_and_grad(w)
        h = objective.hessian_diagonal()
        floor = FLOOR * float(xp.max(h)) if len(h) else 0.0
        scale: Vector = 1.0 / xp.sqrt(xp.maximum(h, floor)) if floor > 0.0 else xp.ones(len(h))
        view, u = ScaledObjective(objective, scale), w / scale
        state = inner.start_state(cast("Objective", view), value, scale * g)
        grad_inf, grad_norm = vectors.norms(g)
        stop = StopReason.CONVERGED if grad_inf == 0.0 else None
        kept = {**state, "scale": scale, "u": u}
        yield Step(w, value, grad_inf, grad_norm, state=kept, stop=stop, initial=True)
    else:
        scale, u = xp.array(state["scale"]), xp.array(state["u"])
        view = ScaledObjective(objective, scale)
    for step in inner.steps(cast("Objective", view), u, state):
        grad_inf, grad_norm = vectors.norms(step.state["gradient"] / scale)
        kept = {**step.state, "scale": scale, "u": step.w}
        yield replace(step, w=view.weights(step.w), grad_inf=grad_inf, grad_norm=grad_norm, state=kept)
