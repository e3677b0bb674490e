"""What a trainer sees: a function of the weights, its derivatives, and how often they were asked for.

The function, a sum over sequences and not a mean [1]:

    F(w) = sum_i c_i (-log p(y_i | x_i; w))  +  (l2/2) |w|^2  +  l1 |w|_1

The penalties count all weights but those at ``objective.free``, such as an intercept.

``value``, ``value_and_grad``, ``hvp`` and ``along`` are about the smooth part, data and l2. The l1 term is
not differentiable at zero and belongs to the trainers that handle it; they read ``objective.l1`` and report
``objective.full_value(w)``.

A point is *pinned* by ``value_and_grad`` on the whole data, and by nothing else. Products with the Hessian,
its diagonal and line profiles are taken there, so that a rejected trial step leaves them valid [2].

Here is the contract alone; `crfit.engines.objective` holds what all engines share.

References
----------
[1] Lafferty, McCallum, Pereira (2001). Conditional random fields. ICML, 282-289.
[2] Lin, Weng, Keerthi (2008). Trust region Newton method for logistic regression. JMLR 9, 627-650.

How an engine keeps the curvature at a point: which sequences, in which form, or nothing at all.

A product with the Hessian at ``w`` needs the lattices of all sequences at ``w``. They are the same for every
product of one outer step of Newton's method, so that keeping them saves a forward-backward each time [1].
With T positions and Y labels a sequence takes

    alphabeta   3 T Y        forward, backward and scaled node scores
    pairs       T Y^2        marginals of label pairs, as in [1]

numbers (``Y^k`` and ``Y^(k+1)`` for order k).

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI-25, 489-494.

Checks of what engines are given: ids of sequences, and values that iterative scaling can take.

The objective along a ray from the pinned point.

What all engines share: checks of the arguments, counters, the pinned point, the penalty.

An engine subclasses `EngineObjective` and fills in the hooks that start with an underscore, which know about
the data alone. The penalty is added here,

    value  loss(w) + (l2/2) |w|^2         along  loss(w + a d) + (l2/2) |w + a d|^2

except where the result is as long as the weights: there the hook gets the amount of l2 and may add it in the
walk that it does over the weights anyway, to all of them. What it then added to weights without a penalty is
taken off here (`crfit.engines.penalty`). All vectors are arrays of ``xp``, the engine's own array library.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit import vectors
from crfit.checks import check_whole_number, first_outside, place
from crfit.engines.aggregation import aggregate_objective
from crfit.engines.dual import Dual
from crfit.engines.margin import MarginRule, MarginRun
from crfit.engines.online import OnlineRun, Rule
from crfit.engines.pair_history import NumPyPairHistory, PairHistory
from crfit.engines.penalty import Penalty, strength
from crfit.engines.profile import Phases
from crfit.engines.scaling import ScalingTerms
from crfit.engines.weight_groups import GroupKind, weight_groups
from crfit.errors import CapabilityError, DataError, OptionError, PointError
from crfit.vectors import NONE_FREE, Vector

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.engines.margin import EngineMarginRun, MarginRule
    from crfit.engines.online import EngineOnlineRun, Rule
    from crfit.layout import Layout

__all__ = [
    "DEFAULT_L2",
    "Counts",
    "Curvature",
    "EngineObjective",
    "LineFunction",
    "Objective",
    "PinnedLineFunction",
    "SequenceIds",
    "checked_subset",
    "refuse_negative_values",
]

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
    """What trainers rely on; `crfit.engines.objective.EngineObjective` says more about each."""

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
        """Sums over the sequences that improved iterative scaling asks for, see `crfit.engines.scaling`.

        For data with one position in each sequence; `DataError` if a feature can be negative.
        """

    def weight_groups(self, kind: GroupKind) -> NDArray[np.int32]:
        """Group of every weight, see `crfit.engines.weight_groups`."""

    def online(self, w: Vector, rule: Rule = None) -> OnlineRun:
        """Start a run at a copy of `w` in which a few sequences at a time change the weights.

        `rule` says what a step does with the sum of its residuals. It leaves the pin alone.
        """

    def margin(self, w: Vector, rule: MarginRule) -> MarginRun:
        """Start a run at a copy of `w` in which wrong best paths change the weights; see `crfit.engines.margin`.

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


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]i?)?b", re.IGNORECASE)
_NO_LIMIT = 2**62


@dataclass(frozen=True)
class Curvature:
    """What is kept of a point for products with its Hessian.

    Parameters
    ----------
    cache : int or str
        "all", "none", a number of sequences, or memory such as "500MB" or "2GiB". Longest sequences first.
    storage : {"alphabeta", "pairs"}
        The form.
    ad : bool
        Nothing is kept: products repeat forward-backward in the log domain and propagate derivatives
        through it.
    """

    cache: int | str = "all"
    storage: Literal["alphabeta", "pairs"] = "alphabeta"
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


SequenceIds: TypeAlias = NDArray[np.int64]


def checked_subset(subset: ArrayLike, n_sequences: int) -> SequenceIds:
    """Return the ids of some sequences as an array; `OptionError` unless there are such sequences."""
    ids = np.asarray(subset)
    if ids.size == 0:
        return np.empty(0, dtype=np.int64)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise OptionError("subset", f"{ids.dtype}{ids.shape}", "give a one-dimensional array of sequence ids")
    outside = first_outside(ids, n_sequences)
    if outside is not None:
        raise OptionError("subset", int(ids[outside]), f"sequence ids are 0 to {n_sequences - 1}")
    return np.ascontiguousarray(ids, dtype=np.int64)


def refuse_negative_values(data: Dataset) -> None:
    """Raise `DataError`, with the place, where an attribute has a negative value."""
    if data.attr_values is None or not (data.attr_values < 0.0).any():
        return
    occurrence = int(np.argmax(data.attr_values < 0.0))
    token = int(np.searchsorted(data.attr_ptr, occurrence, side="right")) - 1
    sequence, position = place(data.seq_ptr, token)
    name = data.attribute_alphabet[int(data.attr_ids[occurrence])]
    raise DataError(
        f"attribute {name!r} has the value {data.attr_values[occurrence]:g}, and iterative scaling needs "
        "values that are not negative: add a constant to it, or make two attributes of it, one for each "
        "sign; or take another trainer, such as lbfgs",
        file=data.source,
        line=None if data.line_numbers is None else int(data.line_numbers[token]),
        sequence=sequence,
        position=position,
    )


class PinnedLineFunction:
    """The objective along a ray, ``phi(a) = F(w + a d)`` without l1, and its slope ``phi'(a)``.

    Scores are linear in the weights, so that the sparse product with ``d`` is done once, when this is
    made; a point of it costs forward-backward on known scores.

    Parameters
    ----------
    objective : EngineObjective
        The objective whose pinned point is the start of the ray.
    evaluate : callable
        Step length to ``(value, slope)``.
    """

    def __init__(self, objective: EngineObjective, evaluate: LineFunction) -> None:
        self._objective = objective
        self._evaluate = evaluate
        self._pin_count = objective._pin_count

    def __call__(self, step: float) -> tuple[float, float]:
        """Value and slope at ``w + step * d``; `PointError` once another point has been pinned."""
        if self._objective._pin_count != self._pin_count:
            raise PointError("this line profile belongs to an earlier point: call along(d) again")
        self._objective.counts.values += 1
        self._objective.counts.sequences += self._objective.n_sequences
        return self._evaluate(float(step))


#: Entries by which a change of the pinned array is noticed; all of them when there are no more.
PIN_SAMPLE = 4096


class EngineObjective(Objective, ABC):
    """The objective on one engine: penalty, counters, pin and checks, in one place.

    Parameters
    ----------
    dataset : Dataset
        Labelled sequences.
    layout : Layout
        Which features have a weight.
    l1, l2 : float
        Strengths of the penalties, finite and not negative.
    n_threads : int
        Threads for work on the weight vectors.

    Attributes
    ----------
    device : str
        Name of the engine in `crfit.engines.ENGINES`.
    capabilities : frozenset of str
        What this engine can do: "value", "value_and_grad", "subset", "along", "expectations", "hvp",
        "hessian_diagonal", "feature_totals", "scaling_terms", "online", "margin", "dual", "l1", "offsets".
    arithmetic : str
        Domain of forward-backward, as the engine was made with.
    counts : Counts
        What was asked so far.
    penalty : Penalty
        Which weights have a penalty.
    phases : Phases
        Wall seconds spent so far, which the hooks fill in.
    n_merged : int
        Attributes that the data lacks because equal ones stand for them, see `crfit.training.merged`.
    """

    device: ClassVar[str]
    capabilities: frozenset[str] = frozenset({"value", "value_and_grad", "l1"})
    phases: Phases
    arithmetic: str
    n_merged: int = 0

    def __init__(self, dataset: Dataset, layout: Layout, *, l1: float, l2: float, n_threads: int = 1) -> None:
        self.l1, self.l2 = strength("l1", l1), strength("l2", l2)
        layout.check_dataset(dataset, labelled=True)
        if not dataset.one_position:
            self.capabilities -= {"scaling_terms"}
        self.dataset = dataset
        self.layout = layout
        self.penalty = Penalty(layout.n_weights, layout.free)
        self.counts = Counts()
        self.phases = Phases()
        self._n_threads = n_threads
        self._observed: Vector | None = None
        # The pinned array itself, for a copy would cost a sweep per gradient, and some of its entries, to
        # notice when its owner changes it.
        self._pin: tuple[Vector, Vector] | None = None
        self._pin_count = 0

    @property
    def n_weights(self) -> int:
        """Length of the weight vector."""
        return self.layout.n_weights

    @property
    def n_sequences(self) -> int:
        """Number of training sequences."""
        return self.dataset.n_sequences

    @property
    def free(self) -> slice:
        """Where the weights without a penalty lie in the vector; empty where there are none."""
        return self.layout.free

    @property
    def logistic(self) -> bool:
        """Whether this is logistic regression, single positions with two labels, one weight an attribute."""
        layout = self.layout
        single = layout.n_labels == 2 and layout.n_weights == layout.n_attributes
        return single and self.dataset.one_position

    @property
    def items_per_attribute(self) -> float:
        """How many single positions there are for each attribute; 0 if sequences are longer than one."""
        if not self.dataset.one_position:
            return 0.0
        return self.n_sequences / max(1, self.layout.n_attributes)

    @property
    def total_weight(self) -> float:
        """Sum of the weights c_i of the sequences."""
        weights = self.dataset.sequence_weights
        return float(self.n_sequences if weights is None else weights.sum())

    @property
    def n_threads(self) -> int:
        """Threads for work on the weight vectors."""
        return self._n_threads

    @property
    def xp(self) -> ModuleType:
        """Module with the array functions for this engine's vectors."""
        return np

    def value(self, w: Vector, subset: ArrayLike | None = None) -> float:
        """Smooth part of the objective at `w`; does not move the pin.

        Parameters
        ----------
        w : float64[n_weights]
            The point.
        subset : array of sequence ids, optional
            Only these sequences' losses and their share of the penalty, as in `value_and_grad`.
        """
        self._check_vector("w", w)
        self.counts.values += 1
        if subset is not None:
            self._require("subset")
            ids = self._check_subset(subset)
            self.counts.sequences += len(ids)
            with vectors.use_threads(self.n_threads):
                return self._loss_on(w, ids) + self.penalty.value(w, self.l2 * len(ids) / self.n_sequences)
        self.counts.sequences += self.n_sequences
        with vectors.use_threads(self.n_threads):
            return self._loss(w) + self.penalty.value(w, self.l2)

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
            `out` where given.

        Notes
        -----
        Sets the pin to `w`, unless `subset` is given. The array is kept, not copied: leave it as it is while
        the pinned point is in use. A sample of about 4096 entries is compared at each such use, and a change
        seen there is a `PointError`; a change of a few weights may go unnoticed.
        """
        self._check_vector("w", w)
        out = self._output(out, w)
        self.counts.grads += 1
        with vectors.use_threads(self.n_threads):
            if subset is not None:
                self._require("subset")
                ids = self._check_subset(subset)
                self.counts.sequences += len(ids)
                share = self.l2 * len(ids) / self.n_sequences
                value = self._loss_and_grad(w, out, ids, share)
                return value - self.penalty.take_off(w, share, out), out
            self.counts.sequences += self.n_sequences
            # A failure half way must not leave the old pin over the engine's new tables.
            self._pin = None
            self._pin_count += 1
            value = self._loss_and_grad(w, out, None, self.l2)
            value -= self.penalty.take_off(w, self.l2, out)
        self._pin = w, self._sample(w)
        return value, out

    def keep_curvature(self, curvature: Curvature | None) -> None:
        """Say what `value_and_grad` on the whole data keeps, from now on, for products at its point.

        Without it the first product at a point repeats forward-backward and keeps all it can. An engine
        without such memory takes no notice.

        Parameters
        ----------
        curvature : Curvature or None
            What to keep; None to keep nothing at gradients and to free what is kept.
        """

    @property
    def table_bytes(self) -> int:
        """Memory that the tables of all sequences take where products reuse them, ``cache="all"``."""
        return 0

    @property
    def curvature_bytes(self) -> int:
        """Memory that is taken by what is kept for products."""
        return 0

    def hvp(self, v: Vector, out: Vector | None = None) -> Vector:
        """Hessian of the smooth part at the pinned point, times `v`."""
        self._require("hvp")
        self._check_vector("v", v)
        w = self._pinned_point()
        out = self._output(out, v)
        self.counts.hvps += 1
        self.counts.sequences += self.n_sequences
        with vectors.use_threads(self.n_threads):
            self._hvp(w, v, out, self.l2)
            self.penalty.take_off(v, self.l2, out)
        return out

    def hessian_diagonal(self) -> Vector:
        """Diagonal scaling at the pinned point, ``l2 + sum c x^2 p (1 - p)`` over the places a feature fires.

        Without l2 where a weight has no penalty.
        The variance of each occurrence alone; covariances between the positions of a sequence are left out.
        """
        self._require("hessian_diagonal")
        w = self._pinned_point()
        self.counts.sequences += self.n_sequences
        diagonal = self._hessian_diagonal(w)
        self.penalty.add_constant(self.l2, diagonal)
        return diagonal

    def along(self, d: Vector) -> PinnedLineFunction:
        """The smooth part on the ray from the pinned point in the direction `d`.

        `d` is not copied: leave it as it is while the function is in use.
        """
        self._require("along")
        self._check_vector("d", d)
        w = self._pinned_point()
        data, l2 = self._along(w, d), self.l2
        if l2 == 0.0:
            return PinnedLineFunction(self, data)
        with vectors.use_threads(self.n_threads):
            inner = self.penalty.inner
            ww, wd, dd = inner(w, w), inner(w, d), inner(d, d)

        def evaluate(step: float) -> tuple[float, float]:
            loss, slope = data(step)
            value = loss + 0.5 * l2 * (ww + step * (2.0 * wd + step * dd))
            return value, slope + l2 * (wd + step * dd)

        return PinnedLineFunction(self, evaluate)

    def expectations(self, w: Vector) -> Vector:
        """Expected features under the model, ``sum_i c_i E[Phi(x_i, .)]``, float64[n_weights]."""
        self._require("expectations")
        self._check_vector("w", w)
        self.counts.sequences += self.n_sequences
        return self._expectations(w)

    def weight_groups(self, kind: GroupKind) -> NDArray[np.int32]:
        """Group of every weight, see `crfit.engines.weight_groups`.

        Parameters
        ----------
        kind : {"template", "frequency"}
            What the weights of a group have in common.
        """
        return weight_groups(self.dataset, self.layout, kind).of_weights(self.layout)

    def online(self, w: Vector, rule: Rule = None) -> EngineOnlineRun:
        """Start a run at a copy of `w` in which a few sequences at a time change the weights.

        `rule` says what a step does with the sum of its residuals, None subtracts it. A run has tables of
        its own: the pinned point and line profiles stay valid.
        """
        self._require("online")
        self._check_vector("w", w)
        return self._online(w, rule)

    def margin(self, w: Vector, rule: MarginRule) -> EngineMarginRun:
        """Start a run at a copy of `w` in which wrong best paths change the weights, as `rule` says.

        Has tables of its own: the pinned point and line profiles stay valid. `OptionError` with a penalty.
        """
        self._require("margin")
        self._check_vector("w", w)
        for name, amount in (("l2", self.l2), ("l1", self.l1)):
            if amount > 0.0:
                raise OptionError(name, amount, "mistake-driven steps know no penalty: make it 0")
        return self._margin(w, rule)

    def observed(self, subset: ArrayLike | None = None) -> Vector:
        """Features counted on the labels, ``sum_i c_i Phi(x_i, y_i)``, float64[n_weights], read-only.

        Parameters
        ----------
        subset : array of sequence ids, optional
            Only these sequences.
        """
        if subset is not None:
            part = self.layout.observed_counts(self.dataset.subset(self._check_subset(subset)))
            part.flags.writeable = False
            return self.xp.asarray(part)  # type: ignore[no-any-return]
        if self._observed is None:
            counts = self.layout.observed_counts(self.dataset)
            counts.flags.writeable = False
            self._observed = self.xp.asarray(counts)
        return self._observed

    def feature_totals(self) -> Vector:
        """Most that the features of a sequence can add up to, ``max_y sum_j Phi_j(x_i, y)``.

        The best paths under weights of 1: features without a weight do not count. The sequences' weights
        c_i multiply nothing here, but a sequence with c_i = 0 takes no part in the objective and gets 0.

        Returns
        -------
        float64[n_sequences]

        Raises
        ------
        DataError
            An attribute has a negative value.
        """
        from crfit.engines import make_inference  # which lists the engines, so that it imports this module

        self._require("feature_totals")
        refuse_negative_values(self.dataset)
        data, ones = self.dataset, np.ones(self.n_weights)
        self.counts.sequences += self.n_sequences
        inference = make_inference(data, self.layout, ones, device=self.device, n_threads=self.n_threads)
        totals = inference.viterbi()[1]
        if data.sequence_weights is not None:
            totals[data.sequence_weights == 0.0] = 0.0
        return totals

    def scaling_terms(self) -> ScalingTerms:
        """Sums of improved iterative scaling (`crfit.engines.scaling`); making them is no pass.

        For data with one position in each sequence; `DataError` if an attribute has a negative value.
        """
        from crfit.engines.scaling import NumPyScalingTerms  # which imports this module

        self._require("scaling_terms")
        refuse_negative_values(self.dataset)
        return NumPyScalingTerms(self)

    @property
    def dual_bytes(self) -> int | None:
        """Memory of the chains of the dual, their potentials and marginals of labels and of label pairs.

        None if there is no dual, as with weights that have no penalty, or none that is about as fast as
        gradients.
        """
        if "dual" not in self.capabilities or self.layout.order > 1 or self.layout.n_free:
            return None
        data, n_labels = self.dataset, self.layout.n_labels
        n_pair_tables = data.n_sequences if self.layout.n_edge_attributes == 0 else data.n_tokens
        return 16 * (data.n_tokens * n_labels + n_pair_tables * n_labels**2)

    def dual(self, *, start: float | None, eta: float) -> Dual:
        """The dual of the objective (`crfit.engines.dual`); `OptionError` without l2, with l1 and with free weights.

        Parameters
        ----------
        start : float or None
            Potential of the given labels in each chain; all others are 0. None for ``log(n / l2)``, n the
            number of positions, weighted as their sequences are: other labels then have so little that the
            weight of a feature of value 1 begins below about 1, however often it occurs.
        eta : float
            First step size of each sequence.
        """
        self._require("dual")
        if self.l2 == 0.0:
            raise OptionError("l2", self.l2, "the dual needs l2 above 0; lbfgs does without")
        if self.layout.n_free:
            remedy = (
                "the dual needs a penalty on every weight: penalise the intercept, leave it out, or use lbfgs"
            )
            raise OptionError("n_free", self.layout.n_free, remedy)
        if self.l1 > 0.0:
            raise OptionError("l1", self.l1, "the dual has no l1 penalty: leave it out, or use lbfgs")
        if start is None:
            lengths, weights = self.dataset.lengths, self.dataset.sequence_weights
            n_positions = float(lengths.sum() if weights is None else lengths @ weights)
            start = math.log(max(1.0, n_positions / self.l2))
        self.counts.sequences += self.n_sequences
        return self._dual(float(start), float(eta))

    def aggregated(self, groups: ArrayLike, base: Vector | None = None) -> EngineObjective:
        """The objective in which the attributes of a group share their weights, on the same engine.

        Its weights u stand for ``w = base + P u``, ``(P u)[a, y] = u[groups[a], y] / sqrt(n_g)``, n_g the
        size of the group; see `crfit.data.merging`. The value is that of w, less ``(l2/2) |base|^2`` where
        base is orthogonal to what the groups span.

        Parameters
        ----------
        groups : int array of shape (A,)
            Group of each attribute, 0 to G - 1; every group has members. `OptionError` if members have
            weights for different labels.
        base : float64[n_weights], optional
            Weights whose scores are constants, those of attributes alone; needs "offsets".
        """
        return aggregate_objective(self, groups, base)

    def l1_term(self, w: Vector) -> float:
        """``l1 |w|_1`` over the weights that have a penalty."""
        if self.l1 == 0.0:
            return 0.0
        with vectors.use_threads(self.n_threads):
            return self.l1 * self.penalty.sum_abs(w)

    def full_value(self, w: Vector, smooth: float | None = None) -> float:
        """F itself, smooth part and l1 term; `smooth` saves an evaluation where that part is known."""
        return (self.value(w) if smooth is None else smooth) + self.l1_term(w)

    def factor(self, i: int) -> float:
        """Weight c_i of a sequence."""
        weights = self.dataset.sequence_weights
        return 1.0 if weights is None else float(weights[i])

    @abstractmethod
    def _loss(self, w: Vector) -> float:
        """Data loss; leaves the tables of the pinned point as they are."""

    @abstractmethod
    def _loss_and_grad(self, w: Vector, out: Vector, subset: SequenceIds | None, l2: float) -> float:
        """Fill `out` with the gradient, ``l2 w`` included, and return data loss plus ``(l2/2) |w|^2``.

        With subset None keep what `_hvp` needs. `crfit.engines.penalty.add_l2` is there for engines that do
        not fuse the penalty.
        """

    def _loss_on(self, w: Vector, subset: SequenceIds) -> float:
        """Data loss of these sequences; leaves the tables of the pinned point as they are."""
        raise NotImplementedError

    def _online(self, w: Vector, rule: Rule) -> EngineOnlineRun:
        """Return a run that starts at a copy of `w` with steps of a rule."""
        raise NotImplementedError

    def _margin(self, w: Vector, rule: MarginRule) -> EngineMarginRun:
        """Return a run that starts at a copy of `w` and learns from wrong best paths."""
        raise NotImplementedError

    def _hvp(self, w: Vector, v: Vector, out: Vector, l2: float) -> None:
        """Fill `out` with ``H v`` at the pinned point `w`, ``l2 v`` included."""
        raise NotImplementedError

    def _hessian_diagonal(self, w: Vector) -> Vector:
        """Diagonal scaling at the pinned point `w`, without l2."""
        raise NotImplementedError

    def _along(self, w: Vector, d: Vector) -> LineFunction:
        """Return the function from a step length to data loss and its slope at ``w + step d``."""
        raise NotImplementedError

    def _expectations(self, w: Vector) -> Vector:
        raise NotImplementedError

    def _dual(self, start: float, eta: float) -> Dual:
        raise NotImplementedError

    def _is_vector(self, thing: Any) -> bool:
        """Whether this is an array of the engine's library, ready for its kernels; any shape and type."""
        return isinstance(thing, self.xp.ndarray) and bool(thing.flags.c_contiguous)

    def _pinned_point(self) -> Vector:
        if self._pin is None:
            raise PointError(
                "no point is pinned: call value_and_grad(w), on the whole data, before hvp, hessian_diagonal "
                "or along"
            )
        w, sample = self._pin
        if not bool(self.xp.array_equal(sample, self._sample(w), equal_nan=True)):
            raise PointError("the pinned array was changed: call value_and_grad(w) again")
        return w

    @staticmethod
    def _sample(w: Vector) -> Vector:
        sample: Vector = w[:: max(1, len(w) // PIN_SAMPLE)].copy()
        return sample

    def _require(self, capability: str) -> None:
        if capability not in self.capabilities:
            able = ", ".join(sorted(self.capabilities))
            raise CapabilityError(
                "engine", type(self).__name__, f"cannot do {capability!r}; it can do {able}"
            )

    def _check_vector(self, name: str, vector: Any) -> None:
        if not (self._is_vector(vector) and vector.dtype == np.float64 and vector.shape == (self.n_weights,)):
            found = f"{getattr(vector, 'dtype', type(vector).__name__)}{getattr(vector, 'shape', '')}"
            raise OptionError(name, found, f"give a C-contiguous float64 array of length {self.n_weights}")

    def _output(self, out: Vector | None, source: Vector) -> Vector:
        if out is None:
            empty: Vector = self.xp.empty(self.n_weights, dtype=np.float64)
            return empty
        self._check_vector("out", out)
        if self.xp.may_share_memory(out, source):
            raise OptionError("out", "the input itself", "give an array of its own for the result")
        return out

    def _check_subset(self, subset: ArrayLike) -> SequenceIds:
        return checked_subset(subset, self.n_sequences)
