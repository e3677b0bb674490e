"""L-BFGS [1, alg. 7.5], and OWL-QN if l1 > 0.

The iteration is in `crfit.trainers.quasi_newton.iterations`, the curvature pairs in
`crfit.engines.pair_history` (8 bytes per weight and pair).

scaling="diagonal" rescales the weights so that all have the same curvature at the start: with h the diagonal
of the Hessian at the starting point,

    w = u / sqrt(h),      the diagonal of the Hessian in u is 1

L-BFGS starts from a multiple of the identity, a better guess in u than in w, where frequent attributes have a
thousand times the curvature of rare ones. Steps are taken in u; reported weights and gradient are in w. From
zero weights the diagonal is that of a point far from the optimum, which helps little; scaling="auto" uses it
from given weights.

References
----------
[1] J. Nocedal, S. Wright (2006). Numerical Optimization, 2nd edition.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from crfit import vectors
from crfit.engines.objective import Objective
from crfit.engines.pair_history import projected_state
from crfit.errors import CapabilityError
from crfit.trainers.options import check_options, option
from crfit.trainers.quasi_newton.change_of_variables import ScaledObjective
from crfit.trainers.quasi_newton.iterations import (
    Search,
    max_trials_option,
    quasi_newton_steps,
    run_state,
    wolfe_decrease_option,
    wolfe_slope_option,
)
from crfit.trainers.registry import State, Step, TrainerInfo, register
from crfit.trainers.wolfe_search import Stall
from crfit.training.stopping import StopReason
from crfit.vectors import Vector


@register(
    "lbfgs",
    needs={"value_and_grad"},
    handles={"l1", "l2", "toward", "groups"},
    formula="w <- w - a H g, H from the last pairs (w_k+1 - w_k, g_k+1 - g_k)",
    descends=True,
    merges=True,
    keeps="`memory` curvature pairs, 8 bytes per weight each, and five vectors of weights",
    ends="at the limit of double precision",
    choose="you want no penalty or little memory; `scaling=diagonal` suits dense data with few weights",
)
@dataclass(frozen=True)
class LBFGS:
    """L-BFGS; its orthant-wise variant OWL-QN if l1 > 0."""

    memory: int = option(10, help="number of curvature pairs; 8 bytes per weight each", at_least=1)
    wolfe_decrease: float = wolfe_decrease_option()
    wolfe_slope: float = wolfe_slope_option()
    max_trials: int = max_trials_option()
    scaling: Literal["auto", "none", "diagonal"] = option(
        "auto",
        help="diagonal: rescale weights by the Hessian's diagonal at the start (one more pass; not with l1); "
        "auto: if training starts from given weights, unless l2 pulls toward them",
    )

    def __post_init__(self) -> None:
        check_options(self)
        self._search()

    def adapted(self, info: TrainerInfo) -> TrainerInfo:
        """Return the registry entry for these options."""
        if self.scaling != "diagonal":
            return info
        return replace(info, needs=info.needs | {"hessian_diagonal"}, handles=info.handles - {"l1"})

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per iteration."""
        if self.scaling == "diagonal" or (self.scaling == "auto" and _is_scaled(objective, w, state)):
            return scaled_steps(replace(self, scaling="none"), objective, w, state)
        return quasi_newton_steps(objective, w, state, objective.pair_history(self.memory), self._search())

    def start_state(
        self, objective: Objective, value: float, gradient: Vector, kept: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """State for `steps` to continue from a point evaluated elsewhere; l1 must be 0."""
        if kept is None:
            pairs = objective.pair_history(self.memory).export_state()
        else:
            pairs = projected_state({key: x for key, x in kept.items() if key.startswith("pairs_")}, gradient)
        return run_state(value, gradient, vectors.norms(gradient), Stall(), pairs)

    def _search(self) -> Search:
        return Search(self.wolfe_decrease, self.wolfe_slope, self.max_trials)


def _is_scaled(objective: Objective, w: Vector, state: State | None) -> bool:
    """Whether "auto" rescales: from given weights, and in a resumed run that has done so."""
    if state is not None:
        return "scale" in state
    able = "hessian_diagonal" in objective.capabilities and objective.l1 == 0.0
    if getattr(objective, "centre", None) is not None:  # few weights move, and l2 is their curvature
        return False
    return able and vectors.norms(w)[0] > 0.0


#: Smallest curvature used for scaling, relative to the largest: weights without curvature must not jump.
FLOOR = 1e-12


def scaled_steps(inner: LBFGS, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
    """Yield the starting point, then one step per iteration; a generator for ``steps`` of a trainer."""
    if objective.l1 > 0.0:
        raise CapabilityError("scaling", "diagonal", "needs l1 = 0: use scaling='none'")
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
