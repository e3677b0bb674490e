"""Limited-memory BFGS, orthant-wise when l1 > 0: quasi-Newton steps with the last few pairs [1, alg. 7.5].

The iteration is in `crfit.trainers.quasi_newton.iterations`, the pairs in `crfit.engines.pair_history`: 8 bytes per weight and
pair. scaling="diagonal" minimises in other variables, see `crfit.trainers.quasi_newton.diagonal_scaling`.

References
----------
[1] J. Nocedal, S. Wright (2006). Numerical Optimization, 2nd edition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from crfit import vectors
from crfit.engines.pair_history import projected_state
from crfit.trainers.quasi_newton.diagonal_scaling import scaled_steps
from crfit.trainers.quasi_newton.iterations import (
    Search,
    c1_option,
    c2_option,
    max_trials_option,
    quasi_newton_steps,
    run_state,
)
from crfit.trainers.registry import Step, TrainerInfo, check_options, option, register
from crfit.trainers.stall import Stall
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.objective import Objective

__all__ = ["LBFGS"]


@register(
    "lbfgs",
    needs={"value_and_grad"},
    handles={"l1", "l2"},
    formula="w <- w - a H g, H from the last pairs (w_k+1 - w_k, g_k+1 - g_k)",
    descends=True,
    merges=True,
    keeps="pairs of vectors of weights (`memory`)",
    ends="at rounding level",
    choose="sparse models (l1), no penalty; where vectors of weights alone fit into memory; dense data with "
    "few weights, by `scaling=diagonal`",
)
@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS; orthant-wise (OWL-QN) when l1 > 0."""

    memory: int = option(10, help="curvature pairs kept; each costs 8 bytes per weight", at_least=1)
    c1: float = c1_option()
    c2: float = c2_option()
    max_trials: int = max_trials_option()
    scaling: Literal["none", "diagonal"] = option(
        "none",
        help="'diagonal' divides each weight by the root of its entry of the Hessian at the start: one pass "
        "more, no l1",
    )

    def __post_init__(self) -> None:
        check_options(self)
        self._search()

    def adapted(self, info: TrainerInfo) -> TrainerInfo:
        """Return the registry's entry as it holds for these options."""
        if self.scaling == "none":
            return info
        return replace(info, needs=info.needs | {"hessian_diagonal"}, handles=info.handles - {"l1"})

    def steps(
        self, objective: Objective, w: Vector, state: Mapping[str, Any] | None = None
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per iteration."""
        if self.scaling == "diagonal":
            return scaled_steps(replace(self, scaling="none"), objective, w, state)
        return quasi_newton_steps(objective, w, state, objective.pair_history(self.memory), self._search())

    def start_state(
        self, objective: Objective, value: float, gradient: Vector, kept: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """State from which `steps` goes on at a point that somebody else evaluated, without l1."""
        if kept is None:
            pairs = objective.pair_history(self.memory).export_state()
        else:
            pairs = projected_state({key: x for key, x in kept.items() if key.startswith("pairs_")}, gradient)
        return run_state(value, gradient, vectors.norms(gradient), Stall(), pairs)

    def _search(self) -> Search:
        return Search(self.c1, self.c2, self.max_trials)
