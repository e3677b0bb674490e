"""The interface between trainers and engines: the function to minimise and its derivatives.

The function is a sum over sequences, not a mean [1]:

    F(w) = sum_i c_i (-log p(y_i | x_i; w))  +  (l2/2) |w|^2  +  l1 |w|_1

The penalties apply to all weights except those in the slice ``objective.free``, for example an intercept.

``value``, ``value_and_grad``, ``hvp`` and ``along`` compute the smooth part: the data loss and the l2
penalty. The l1 term is not differentiable at zero. Trainers that support it read ``objective.l1`` and report
``objective.full_value(w)``.

``value_and_grad`` on the whole data *pins* its point. Hessian-vector products, the Hessian diagonal and line
profiles refer to the pinned point. ``value`` does not move it, so a rejected trial step leaves them valid
[2].

References
----------
[1] Lafferty, McCallum, Pereira (2001). Conditional random fields. ICML, 282-289.
[2] Lin, Weng, Keerthi (2008). Trust region Newton method for logistic regression. JMLR 9, 627-650.
[3] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI-25, 489-494.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

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

#: Default strength of the l2 penalty; see `crfit.trainers.penalty_for` for exceptions.
DEFAULT_L2 = 1.0

#: Maps a step length along a ray to the value and slope of the smooth part.
LineFunction: TypeAlias = Callable[[float], tuple[float, float]]


@dataclass
class Counts:
    """Amount of work that an objective has done so far.

    Attributes
    ----------
    values, grads, hvps : int
        Number of evaluations of the value only (including points of a line profile), of the gradient, and of
        Hessian-vector products.
    sequences : int
        Number of sequences visited. One *pass* is as many visits as the dataset has sequences.
    """

    values: int = 0
    grads: int = 0
    hvps: int = 0
    sequences: int = 0

    @contextmanager
    def paused(self, resumed: bool = True) -> Iterator[None]:
        """Context whose work does not count if the run is resumed, because it counted before."""
        before = vars(self).copy()
        try:
            yield
        finally:
            if resumed:
                vars(self).update(before)


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]i?)?b", re.IGNORECASE)
_NO_LIMIT = 2**62


@dataclass(frozen=True)
class Curvature:
    """What to cache at a point for Hessian-vector products.

    All products of one outer Newton step use the same lattices; caching them saves a forward-backward per
    product [3]. With T positions and Y labels a sequence takes

        alphabeta   3 T Y    numbers: forward, backward and scaled node scores
        float32     3 T Y    the same in single precision; products have a relative error below 1e-6
        pairs       T Y^2    marginals of label pairs, as in [3]

    (for order k, ``Y^k`` and ``Y^(k+1)`` instead of ``Y`` and ``Y^2``).
    """

    #: "all", "none", a number of sequences, or memory like "500MB" or "2GiB"; longest sequences first.
    cache: int | str = "all"
    storage: Literal["alphabeta", "float32", "pairs"] = "alphabeta"
    #: No cache; products repeat forward-backward in the log domain and differentiate through it.
    ad: bool = False

    def __post_init__(self) -> None:
        if self.storage not in ("alphabeta", "float32", "pairs"):
            raise OptionError("storage", self.storage, "choose 'alphabeta', 'float32' or 'pairs'")
        self.limits()

    def limits(self) -> tuple[int, int]:
        """Return the maximum number of sequences and of bytes."""
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
            remedy = "give 'all', 'none', a number of sequences, or memory like '500MB' or '2GiB'"
            raise OptionError("cache", self.cache, remedy)
        return _NO_LIMIT, int(float(memory[1]) * _UNITS[(memory[2] or "").lower()])


class Objective(Protocol):
    """The methods and attributes that trainers use."""

    l1: float
    l2: float
    n_weights: int
    n_sequences: int
    counts: Counts
    #: Names of the methods that this objective supports.
    capabilities: frozenset[str]
    #: Array library of its vectors: NumPy or a compatible one.
    xp: ModuleType
    #: Slice of the unpenalised weights.
    free: slice = NONE_FREE
    #: Weights that the l2 penalty pulls toward, ``(l2/2) |w - centre|^2``; None for 0.
    centre: Vector | None = None
    #: The l2 penalty of each weight relative to `l2`, 0 if unpenalised; None if `l2` is that of all.
    l2_scale: Vector | None = None
    #: Sum of the weights c_i of the sequences.
    total_weight: float
    #: Whether it is logistic regression: one position, two labels, one weight per attribute. Then
    #: `hessian_diagonal` is exact, and the curvature changes little from its initial value.
    logistic: bool = False
    #: Number of one-position sequences per attribute; 0 if any sequence is longer.
    items_per_attribute: float = 0.0
    #: Number of positions per attribute if there are longer sequences.
    positions_per_attribute: float = 0.0
    #: Number of weights of label pairs or n-grams.
    n_transitions: int = 0
    #: Number of threads for operations on weight vectors.
    n_threads: int = 1
    #: Seconds spent so far, by phase; optional.
    phases: Phases | None = None

    def value(self, w: Vector, subset: ArrayLike | None = None) -> float:
        """Smooth part of the objective at `w`; does not move the pin.

        Parameters
        ----------
        w : float64[n_weights]
            The point.
        subset : array of sequence ids, optional
            Use only these sequences and their share of the penalty, as in `value_and_grad`.
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
            Array for the gradient.
        subset : array of sequence ids, optional
            Use only these sequences and the share ``len(subset) / n_sequences`` of the penalty. The results
            for the parts of a partition of the data sum to the result for the whole.

        Returns
        -------
        value : float
        gradient : float64[n_weights]
            `out` if given.

        Notes
        -----
        Pins `w`, unless `subset` is given. The array is not copied: leave it unchanged while the pinned point
        is in use. Each use compares a sample of about 4096 entries and raises `PointError` if they changed;
        a change of only a few weights may go undetected.
        """

    def keep_curvature(self, curvature: Curvature | None) -> None:
        """Choose what later gradients on the whole data cache for Hessian-vector products.

        By default the first product at a point repeats forward-backward and caches as much as possible.

        Parameters
        ----------
        curvature : Curvature or None
            What to cache; None to cache nothing in gradients and to free the cache. Objectives without a
            cache ignore it.
        """
        return

    def hvp(self, v: Vector, out: Vector | None = None) -> Vector:
        """Hessian of the smooth part at the pinned point, times `v`."""

    def restricted(self, mask: Any) -> AbstractContextManager[None]:
        """Context in which Hessian-vector products are wanted only for some of the weights.

        Parameters
        ----------
        mask : bool[n_weights]
            The weights. Those that are not 0 at the pinned point belong to them in any case.

        Notes
        -----
        In this context `hvp` is called with vectors that are 0 outside of `mask`, and only the entries of the
        result in `mask` are used: an entry outside is that of the full product, or 0. A product may then cost
        less; an engine may ignore this. A gradient on the whole data ends the restriction.
        """
        return nullcontext()

    def hessian_diagonal(self) -> Vector:
        """Approximate Hessian diagonal at the pinned point, ``l2 + sum c x^2 p (1 - p)``.

        The sum is over the occurrences of a feature; covariances between positions of a sequence are ignored.
        l2 is 0 for unpenalised weights.
        """

    def along(self, d: Vector) -> LineFunction:
        """Smooth part and its slope on the ray ``w + step d`` from the pinned point, as a function of step.

        Scores are linear in the weights, so the sparse product with `d` is computed once and each point of
        the ray costs only forward-backward. `d` is not copied: leave it unchanged while the function is in
        use. Calling the function after another point was pinned raises `PointError`.
        """

    def expectations(self, w: Vector) -> Vector:
        """Expected feature counts under the model, ``sum_i c_i E[Phi(x_i, .)]``, float64[n_weights]."""

    def observed(self, subset: ArrayLike | None = None) -> Vector:
        """Feature counts of the labels, ``sum_i c_i Phi(x_i, y_i)``, float64[n_weights], read-only.

        Parameters
        ----------
        subset : array of sequence ids, optional
            Only these sequences.
        """

    def feature_totals(self) -> Vector:
        """Largest feature sum of each sequence, ``max_y sum_j Phi_j(x_i, y)``, float64[n_sequences].

        Counts only features with a weight. 0 for a sequence with c_i = 0; otherwise independent of c_i.
        Raises `DataError` if an attribute has a negative value.
        """

    def scaling_terms(self) -> ScalingTerms:
        """Sums used by improved iterative scaling, see `crfit.engines.scaling`; does not count as a pass.

        For data with one position per sequence. Raises `DataError` if an attribute has a negative value.
        """

    def weight_groups(self, kind: GroupKind) -> NDArray[np.int32]:
        """Group of every weight, int32[n_weights], see `crfit.engines.weight_groups`."""

    def online(self, w: Vector, rule: Rule = None, batch: int = 1) -> OnlineRun:
        """Start a run of online steps at a copy of `w`; does not move the pin.

        `rule` defines what a step does with the sum of its residuals (`crfit.engines.online`); None is plain
        gradient descent. `batch` is the size of most steps: it may change rounding, and decides which tables
        are fastest.
        """

    def margin(self, w: Vector, rule: MarginRule) -> MarginRun:
        """Start a run of mistake-driven steps at a copy of `w` (`crfit.engines.margin`).

        Does not move the pin. Raises `OptionError` unless the objective is unregularised.
        """

    @property
    def table_bytes(self) -> int:
        """Memory for caching the tables of all sequences for Hessian-vector products, ``cache="all"``."""
        return 0

    @property
    def dual_bytes(self) -> int | None:
        """Memory of the dual's chains; None if there is no dual."""
        return None

    def dual(self, *, start: float | None, eta: float, l2: float | None = None) -> Dual:
        """Create the dual of the objective (`crfit.engines.dual`).

        Parameters
        ----------
        start : float or None
            Initial potential of the given labels in each chain; all others start at 0. None uses
            ``log(n / l2)`` with n the number of positions, weighted by c_i. The weight of a feature with
            value 1 then starts below about 1, however often it occurs.
        eta : float
            Initial step size of each sequence.
        l2 : float or None
            Another l2 penalty than that of the objective.

        Raises
        ------
        OptionError
            l2 is 0, or some weights are unpenalised.
        """

    def l1_term(self, w: Vector) -> float:
        """``l1 |w|_1`` over the penalised weights."""

    def full_value(self, w: Vector, smooth: float | None = None) -> float:
        """F(w), the smooth part plus the l1 term; passing `smooth` saves an evaluation."""

    def pair_history(self, memory: int) -> PairHistory:
        """Create a memory of curvature pairs for this objective's vectors (`crfit.engines.pair_history`)."""
        return NumPyPairHistory(self.n_weights, memory, self.xp)
