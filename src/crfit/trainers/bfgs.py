"""BFGS: quasi-Newton steps with all pairs of the run, in a dense inverse Hessian.

The iteration is that of `lbfgs` (`crfit.trainers.quasi_newton`); the matrix and its update are in
`crfit.inverse_hessian`. Memory and time of a step grow with the square of the number of weights, so that it
is for a few thousand of them: there it needs fewer passes than `lbfgs`, whose few pairs forget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from crfit.errors import OptionError
from crfit.inverse_hessian import InverseHessian
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

__all__ = ["BFGS"]


@register(
    "bfgs",
    needs={"value_and_grad"},
    handles={"l2"},
    formula="w <- w - a H g, H dense, from all pairs (w_k+1 - w_k, g_k+1 - g_k)",
    descends=True,
    keeps="a dense matrix, the square of the number of weights",
    ends="at rounding level",
    choose="up to a few thousand weights; to compare with",
)
@dataclass(frozen=True)
class BFGS:
    """BFGS with a dense inverse Hessian, for a few thousand weights.

    Parameters
    ----------
    max_weights : int
        More weights than this are refused: the matrix takes 8 bytes times their square, and each step some
        sweeps over it.
    scaling : {"always", "first"}
        Before which updates H is scaled to the curvature of the step: all of them, or the first, which is
        what textbooks do and takes many more steps.
    c1, c2 : float
        Constants of the strong Wolfe conditions.
    max_trials : int
        Evaluations allowed in one line search.
    """

    max_weights: int = option(
        5000,
        help="more weights are refused; the matrix takes 8 bytes times their square, 200 MB for 5000",
        at_least=1,
        may_change=True,
    )
    scaling: Literal["always", "first"] = option(
        "always",
        help="updates before which the matrix is scaled to the curvature met; first: as in textbooks",
    )
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
        n = objective.n_weights
        if n > self.max_weights:
            remedy = (
                f"there are {n:,} weights, whose matrix takes {8e-9 * n * n:,.1f} GB: take lbfgs, which "
                "keeps a few vectors, or drop rare attributes (min_count), or give a larger number"
            )
            raise OptionError("max_weights", self.max_weights, remedy)
        history = InverseHessian(n, self.scaling == "always", objective.xp)
        return quasi_newton_steps(objective, w, state, history, self._search())

    def _search(self) -> Search:
        return Search(self.c1, self.c2, self.max_trials)
