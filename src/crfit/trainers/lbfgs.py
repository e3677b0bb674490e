"""Limited-memory BFGS, orthant-wise when l1 > 0: quasi-Newton steps with the last few pairs [1, alg. 7.5].

The iteration is in `crfit.trainers.quasi_newton`, the pairs in `crfit.pair_history`: 8 bytes per weight and
pair.

References
----------
[1] J. Nocedal, S. Wright (2006). Numerical Optimization, 2nd edition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crfit.trainers.base import Step, check_options, option, register
from crfit.trainers.quasi_newton import (
    Search,
    c1_option,
    c2_option,
    max_trials_option,
    quasi_newton_steps,
)
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["LBFGS"]


@register(
    "lbfgs",
    needs={"value_and_grad"},
    handles={"l1", "l2"},
    formula="w <- w - a H g, H from the last pairs (w_k+1 - w_k, g_k+1 - g_k)",
    descends=True,
    merges=True,
)
@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS; orthant-wise (OWL-QN) when l1 > 0.

    Parameters
    ----------
    memory : int
        Curvature pairs kept.
    c1, c2 : float
        Constants of the strong Wolfe conditions.
    max_trials : int
        Evaluations allowed in one line search.
    """

    memory: int = option(10, help="curvature pairs kept; each costs 8 bytes per weight", at_least=1)
    c1: float = c1_option()
    c2: float = c2_option()
    max_trials: int = max_trials_option()

    def __post_init__(self) -> None:
        check_options(self)
        self._search()

    def steps(
        self, objective: Objective, w: Vector, state: Mapping[str, Any] | None = None
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per iteration.

        Parameters
        ----------
        objective : Objective
            Offers ``value_and_grad``.
        w : array of float64 [n_weights]
            Starting point; belongs to the trainer.
        state : mapping, optional
            `Step.state` of an earlier run that ended at `w`.
        """
        return quasi_newton_steps(objective, w, state, objective.pair_history(self.memory), self._search())

    def _search(self) -> Search:
        return Search(self.c1, self.c2, self.max_trials)
