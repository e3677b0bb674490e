"""What a trainer sees: a function of the weights, its derivatives, and how often they were asked for.

The function, a sum over sequences and not a mean [1]:

    F(w) = sum_i c_i (-log p(y_i | x_i; w))  +  (l2/2) |w|^2  +  l1 |w|_1

The penalties count all weights but those at ``objective.free``, such as an intercept.

``value``, ``value_and_grad``, ``hvp`` and ``along`` are about the smooth part, data and l2. The l1 term is
not differentiable at zero and belongs to the trainers that handle it; they read ``objective.l1`` and report
``objective.full_value(w)``.

A point is *pinned* by ``value_and_grad`` on the whole data, and by nothing else. Products with the Hessian,
its diagonal and line profiles are taken there, so that a rejected trial step leaves them valid [2].

Here is the contract alone; `crfit.engines.base` holds what all engines share.

References
----------
[1] Lafferty, McCallum, Pereira (2001). Conditional random fields. ICML, 282-289.
[2] Lin, Weng, Keerthi (2008). Trust region Newton method for logistic regression. JMLR 9, 627-650.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.curvature import Curvature
from crfit.dual import Dual
from crfit.margin import MarginRule, MarginRun
from crfit.online import OnlineRun, Rule
from crfit.pair_history import NumPyPairHistory, PairHistory
from crfit.profile import Phases
from crfit.scaling_terms import ScalingTerms
from crfit.vectors import NONE_FREE, Vector
from crfit.weight_groups import GroupKind

__all__ = ["DEFAULT_L2", "Counts", "LineFunction", "Objective"]

#: Strength of l2 where nobody says anything; `crfit.trainers.penalty_for` knows the exceptions.
DEFAULT_L2 = 1.0

#: Step length along a ray to value and slope of the smooth part there.
LineFunction: TypeAlias = Callable[[float], tuple[float, float]]


@dataclass
class Counts:
    """What an objective was asked to do so far.

    Attributes
    ----------
    values, grads, hvps : int
        Calls for a value alone (points of a line profile included), for a gradient, for a Hessian product.
    sequences : int
        Sequences whose lattice was walked. As many as the dataset has make one *pass*.
    """

    values: int = 0
    grads: int = 0
    hvps: int = 0
    sequences: int = 0


class Objective(Protocol):
    """What trainers rely on; `crfit.engines.base.EngineObjective` says more about each."""

    l1: float
    l2: float
    counts: Counts
    #: Seconds spent so far, by phase; an objective need not keep them.
    phases: Phases | None = None

    @property
    def n_weights(self) -> int:
        """Length of the weight vector."""

    @property
    def n_sequences(self) -> int:
        """Number of training sequences."""

    @property
    def free(self) -> slice:
        """Where the weights without a penalty lie in the vector."""
        return NONE_FREE

    @property
    def logistic(self) -> bool:
        """Whether this is logistic regression, single positions with two labels, one weight an attribute.

        The diagonal of its Hessian is exact, and its curvature is never far from that of its start.
        """
        return False

    @property
    def items_per_attribute(self) -> float:
        """How many single positions there are for each attribute; 0 if sequences are longer than one."""
        return 0.0

    @property
    def total_weight(self) -> float:
        """Sum of the weights c_i of the sequences."""
        return float(self.n_sequences)

    @property
    def n_threads(self) -> int:
        """Threads for work on the weight vectors."""
        return 1

    @property
    def xp(self) -> ModuleType:
        """Module with the array functions for this objective's vectors."""

    @property
    def capabilities(self) -> frozenset[str]:
        """Names of what this objective can do."""

    def value(self, w: Vector, subset: ArrayLike | None = None) -> float:
        """Smooth part of the objective, of `subset` where given; does not move the pin."""

    def value_and_grad(
        self, w: Vector, out: Vector | None = None, subset: ArrayLike | None = None
    ) -> tuple[float, Vector]:
        """Smooth part and its gradient; pins `w` unless `subset` is given."""

    def keep_curvature(self, curvature: Curvature | None) -> None:
        """Say what gradients should keep for products at their point; an objective need not keep anything."""
        return

    def hvp(self, v: Vector, out: Vector | None = None) -> Vector:
        """Hessian at the pinned point, times `v`."""

    def hessian_diagonal(self) -> Vector:
        """Diagonal scaling at the pinned point."""

    def along(self, d: Vector) -> LineFunction:
        """Value and slope along the ray from the pinned point."""

    def expectations(self, w: Vector) -> Vector:
        """Expected features under the model."""

    def observed(self, subset: ArrayLike | None = None) -> Vector:
        """Features counted on the labels, of `subset` where given."""

    def feature_totals(self) -> Vector:
        """Most that the features of a sequence can add up to, over all its labelings, float64[n_sequences].

        0 for a sequence of weight 0. `DataError` if a feature can be negative.
        """

    def scaling_terms(self) -> ScalingTerms:
        """Sums over the sequences that improved iterative scaling asks for, see `crfit.scaling_terms`.

        For data with one position in each sequence; `DataError` if a feature can be negative.
        """

    def weight_groups(self, kind: GroupKind) -> NDArray[np.int32]:
        """Group of every weight, see `crfit.weight_groups`."""

    def online(self, w: Vector, rule: Rule = None) -> OnlineRun:
        """Start a run at a copy of `w` in which a few sequences at a time change the weights.

        `rule` says what a step does with the sum of its residuals. It leaves the pin alone.
        """

    def margin(self, w: Vector, rule: MarginRule) -> MarginRun:
        """Start a run at a copy of `w` in which wrong best paths change the weights; see `crfit.margin`.

        It leaves the pin alone.
        """

    @property
    def table_bytes(self) -> int:
        """Memory that the tables of all sequences take if they are kept for Hessian products."""
        return 0

    @property
    def dual_bytes(self) -> int | None:
        """Memory that the chains of the dual take; None if it is not there, or too slow for a start."""
        return None

    def dual(self, *, start: float | None, eta: float) -> Dual:
        """The dual: chains with potential `start` on the given labels, and first step size `eta`."""

    def l1_term(self, w: Vector) -> float:
        """``l1 |w|_1`` over the weights that have a penalty."""

    def full_value(self, w: Vector, smooth: float | None = None) -> float:
        """F itself, smooth part and l1 term; `smooth` saves an evaluation where that part is known."""

    def pair_history(self, memory: int) -> PairHistory:
        """Return the memory of curvature pairs for this objective's vectors."""
        return NumPyPairHistory(self.n_weights, memory, self.xp)
