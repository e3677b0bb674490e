"""The objective as trainers see it; `crfit.engines.engine_objective` has what all engines share.

The function is a sum over sequences, not a mean [1]:

    F(w) = sum_i c_i (-log p(y_i | x_i; w))  +  (l2/2) |w|^2  +  l1 |w|_1

The penalties cover all weights except those at ``objective.free``, such as an intercept.

``value``, ``value_and_grad``, ``hvp`` and ``along`` are about the smooth part, data and l2. The l1 term is
not differentiable at zero and is left to the trainers that support it: they read ``objective.l1`` and report
``objective.full_value(w)``.

A point is *pinned* by ``value_and_grad`` on the whole data, and by nothing else. Products with the Hessian,
its diagonal and line profiles are taken there, so that a rejected trial step leaves them valid [2].

References
----------
[1] Lafferty, McCallum, Pereira (2001). Conditional random fields. ICML, 282-289.
[2] Lin, Weng, Keerthi (2008). Trust region Newton method for logistic regression. JMLR 9, 627-650.
[3] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI-25, 489-494.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.checks import check_whole_number
from crfit.engines.pair_history import NumPyPairHistory, PairHistory
from crfit.engines.profile import Phases
from crfit.errors import OptionError
from crfit.vectors import NONE_FREE, Vector

if TYPE_CHECKING:
    from crfit.engines.dual import Dual
    from crfit.engines.margin import MarginRule, MarginRun
    from crfit.engines.online import OnlineRun, Rule
    from crfit.engines.scaling import ScalingTerms
    from crfit.engines.weight_groups import GroupKind

__all__ = ["DEFAULT_L2", "Counts", "Curvature", "LineFunction", "Objective"]

#: Default strength of the l2 penalty; `crfit.trainers.penalty_for` has the exceptions.
DEFAULT_L2 = 1.0

#: Step length along a ray to value and slope of the smooth part there.
LineFunction: TypeAlias = Callable[[float], tuple[float, float]]


@dataclass
class Counts:
    """How much work an objective has done so far.

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


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]i?)?b", re.IGNORECASE)
_NO_LIMIT = 2**62


@dataclass(frozen=True)
class Curvature:
    """Which lattices are kept at a point for products with its Hessian, and in which form.

    All products of one outer step of Newton's method need the same lattices; keeping them saves a
    forward-backward each time [3]. With T positions and Y labels a sequence takes

        alphabeta   3 T Y    numbers: forward, backward and scaled node scores
        pairs       T Y^2    marginals of label pairs, as in [3]

    (``Y^k`` and ``Y^(k+1)`` in place of ``Y`` and ``Y^2`` for order k).
    """

    #: "all", "none", a number of sequences, or memory such as "500MB" or "2GiB"; longest sequences first.
    cache: int | str = "all"
    storage: Literal["alphabeta", "pairs"] = "alphabeta"
    #: Keep nothing; products repeat forward-backward in the log domain and differentiate through it.
    ad: bool = False

    def __post_init__(self) -> None:
        if self.storage not in ("alphabeta", "pairs"):
            raise OptionError("storage", self.storage, "choose 'alphabeta' or 'pairs'")
        self.limits()

    def limits(self) -> tuple[int, int]:
        """Return the largest number of sequences and of bytes."""
        if not isinstance(self.cache, str):
            check_whole_number("cache", self.cache, at_least=0)
            return int(self.cache), _NO_LIMIT
        text = self.cache.strip().lower()
        if text in ("all", "none"):
            return (_NO_LIMIT if text == "all" else 0), _NO_LIMIT
        if text.isdigit():
            return int(text), _NO_LIMIT
        memory = _MEMORY.fullmatch(text)
        if memory is None:
            remedy = "give 'all', 'none', a number of sequences, or memory such as '500MB' or '2GiB'"
            raise OptionError("cache", self.cache, remedy)
        return _NO_LIMIT, int(float(memory[1]) * _UNITS[(memory[2] or "").lower()])


class Objective(Protocol):
    """What trainers rely on."""

    l1: float
    l2: float
    n_weights: int
    n_sequences: int
    counts: Counts
    #: Names of the methods that this objective supports.
    capabilities: frozenset[str]
    #: Array library of its vectors, NumPy or one like it.
    xp: ModuleType
    #: Where the unpenalised weights are in the vector.
    free: slice = NONE_FREE
    #: Sum of the weights c_i of the sequences.
    total_weight: float
    #: Whether it is logistic regression, with one position, two labels, a weight per attribute. The diagonal
    #: of its Hessian is exact, and its curvature is never far from that of its start.
    logistic: bool = False
    #: Single positions per attribute; 0 if any sequence is longer.
    items_per_attribute: float = 0.0
    #: Threads for work on the weight vectors.
    n_threads: int = 1
    #: Seconds spent so far, by phase; an objective need not keep them.
    phases: Phases | None = None

    def value(self, w: Vector, subset: ArrayLike | None = None) -> float:
        """Smooth part of the objective at `w`; does not move the pin.

        Parameters
        ----------
        w : float64[n_weights]
            The point.
        subset : array of sequence ids, optional
            Only these sequences' losses and their share of the penalty, as in `value_and_grad`.
        """

    def value_and_grad(
        self, w: Vector, out: Vector | None = None, subset: ArrayLike | None = None
    ) -> tuple[float, Vector]:
        """Smooth part of the objective at `w` and its gradient.

        Parameters
        ----------
        w : float64[n_weights]
            The point.
        out : float64[n_weights], optional
            Where to put the gradient.
        subset : array of sequence ids, optional
            Only these sequences' losses, and the share ``len(subset) / n_sequences`` of the penalty: the
            parts of a partition of the data add up to the whole.

        Returns
        -------
        value : float
        gradient : float64[n_weights]
            `out` if given.

        Notes
        -----
        Pins `w`, unless `subset` is given. The array is kept, not copied: leave it unchanged while the pinned
        point is in use. A sample of about 4096 entries is compared at each such use, and a change
        seen there is a `PointError`; a change of a few weights may go unnoticed.
        """

    def keep_curvature(self, curvature: Curvature | None) -> None:
        """Choose what later gradients on the whole data keep for products at their point.

        By default the first product at a point repeats forward-backward and keeps all it can.

        Parameters
        ----------
        curvature : Curvature or None
            What to keep; None to keep nothing at gradients and to free what is kept. An objective without
            such memory ignores it.
        """
        return

    def hvp(self, v: Vector, out: Vector | None = None) -> Vector:
        """Hessian of the smooth part at the pinned point, times `v`."""

    def hessian_diagonal(self) -> Vector:
        """Diagonal scaling at the pinned point, ``l2 + sum c x^2 p (1 - p)`` over the places a feature fires.

        The variance of each occurrence alone: covariances between the positions of a sequence are left out.
        l2 is 0 for unpenalised weights.
        """

    def along(self, d: Vector) -> LineFunction:
        """Smooth part and its slope on the ray ``w + step d`` from the pinned point, as a function of step.

        Scores are linear in the weights: the sparse product with `d` is done once, and a point of the ray
        costs forward-backward alone. `d` is not copied: leave it unchanged while the function is in use. Once
        another point is pinned, a call is a `PointError`.
        """

    def expectations(self, w: Vector) -> Vector:
        """Expected features under the model, ``sum_i c_i E[Phi(x_i, .)]``, float64[n_weights]."""

    def observed(self, subset: ArrayLike | None = None) -> Vector:
        """Features counted on the labels, ``sum_i c_i Phi(x_i, y_i)``, float64[n_weights], read-only.

        Parameters
        ----------
        subset : array of sequence ids, optional
            Only these sequences.
        """

    def feature_totals(self) -> Vector:
        """Largest sum of a sequence's features, ``max_y sum_j Phi_j(x_i, y)``, float64[n_sequences].

        Features without a weight do not count. 0 for a sequence with c_i = 0; c_i does not matter otherwise.
        `DataError` if an attribute has a negative value.
        """

    def scaling_terms(self) -> ScalingTerms:
        """Sums that improved iterative scaling needs, see `crfit.engines.scaling`; making them is no pass.

        For data with one position per sequence; `DataError` if an attribute has a negative value.
        """

    def weight_groups(self, kind: GroupKind) -> NDArray[np.int32]:
        """Group of every weight, int32[n_weights], see `crfit.engines.weight_groups`."""

    def online(self, w: Vector, rule: Rule = None) -> OnlineRun:
        """Start a run at a copy of `w` in which a few sequences at a time change the weights.

        `rule` is what a step does with the sum of its residuals (`crfit.engines.online`); None subtracts it.
        The pin stays where it is.
        """

    def margin(self, w: Vector, rule: MarginRule) -> MarginRun:
        """Start a run at a copy of `w` in which wrong best paths change the weights (`crfit.engines.margin`).

        The pin stays where it is. `OptionError` unless the objective is unregularised.
        """

    @property
    def table_bytes(self) -> int:
        """Memory for keeping the tables of all sequences for Hessian products, ``cache="all"``."""
        return 0

    @property
    def dual_bytes(self) -> int | None:
        """Memory of the dual's chains; None if there is no dual, or none about as fast as gradients."""
        return None

    def dual(self, *, start: float | None, eta: float) -> Dual:
        """Make the dual of the objective (`crfit.engines.dual`).

        Parameters
        ----------
        start : float or None
            Potential of the given labels in each chain; all others are 0. None for ``log(n / l2)``, n the
            number of positions, weighted as their sequences are: the weight of a feature of value 1 then
            starts below about 1, however often it occurs.
        eta : float
            First step size of each sequence.

        Raises
        ------
        OptionError
            Without l2, with l1, or with unpenalised weights.
        """

    def l1_term(self, w: Vector) -> float:
        """``l1 |w|_1`` over the penalised weights."""

    def full_value(self, w: Vector, smooth: float | None = None) -> float:
        """F itself, smooth part and l1 term; a known smooth part saves an evaluation."""

    def pair_history(self, memory: int) -> PairHistory:
        """Make a memory of curvature pairs for this objective's vectors (`crfit.engines.pair_history`)."""
        return NumPyPairHistory(self.n_weights, memory, self.xp)
