"""What a trainer sees: a function of the weights, its derivatives, and how often they were asked for.

The function, a sum over sequences and not a mean [1]:

    F(w) = sum_i c_i (-log p(y_i | x_i; w))  +  (l2/2) |w|^2  +  l1 |w|_1

``value``, ``value_and_grad``, ``hvp`` and ``along`` are about the smooth part, data and l2. The l1 term is
not differentiable at zero and belongs to the trainers that handle it; they read ``objective.l1`` and add
``objective.l1_term(w)``.

A point is *pinned* by ``value_and_grad`` on the whole data, and by nothing else. Products with the Hessian,
its diagonal and line profiles are taken there, so that a rejected trial step leaves them valid [2].

An engine subclasses `EngineObjective` and fills in the hooks that start with an underscore. Checks of the
arguments, counters, the pin and the amount of penalty are here, once for all engines.

References
----------
[1] Lafferty, McCallum, Pereira (2001). Conditional random fields. ICML, 282-289.
[2] Lin, Weng, Keerthi (2008). Trust region Newton method for logistic regression. JMLR 9, 627-650.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.errors import CapabilityError, OptionError, PointError

if TYPE_CHECKING:
    from crfit.dataset import Dataset
    from crfit.layout import Layout

__all__ = ["Counts", "EngineObjective", "LineProfile", "Objective", "add_l2"]

FloatArray: TypeAlias = NDArray[np.float64]
SequenceIds: TypeAlias = NDArray[np.int64]
Vector: TypeAlias = Any  # a NumPy array on the CPU; on another device, that engine's own array


#: Entries by which a change of the pinned array is noticed; all of them when there are no more.
PIN_SAMPLE = 4096


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


class LineProfile:
    """The objective along a ray, ``phi(a) = F(w + a d)`` without l1, and its slope ``phi'(a)``.

    Scores are linear in the weights, so that the sparse product with ``d`` is done once, when the profile is
    made; a point of it costs forward-backward on known scores.

    Parameters
    ----------
    objective : EngineObjective
        The objective whose pinned point is the start of the ray.
    evaluate : callable
        Step length to ``(value, slope)``.
    """

    def __init__(self, objective: EngineObjective, evaluate: Callable[[float], tuple[float, float]]) -> None:
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


class Objective(Protocol):
    """What trainers rely on; `EngineObjective` says more about each."""

    l1: float
    l2: float
    counts: Counts

    @property
    def n_weights(self) -> int:
        """Length of the weight vector."""

    @property
    def n_sequences(self) -> int:
        """Number of training sequences."""

    @property
    def xp(self) -> ModuleType:
        """Module with the array functions for this objective's vectors."""

    @property
    def capabilities(self) -> frozenset[str]:
        """Names of what this objective can do."""

    @property
    def passes(self) -> float:
        """Sequences visited so far as a multiple of those in the data."""

    def value(self, w: Vector) -> float:
        """Smooth part of the objective; does not move the pin."""

    def value_and_grad(
        self, w: Vector, out: Vector | None = None, subset: ArrayLike | None = None
    ) -> tuple[float, Vector]:
        """Smooth part and its gradient; pins `w` unless `subset` is given."""

    def hvp(self, v: Vector, out: Vector | None = None) -> Vector:
        """Hessian at the pinned point, times `v`."""

    def hessian_diagonal(self) -> Vector:
        """Diagonal scaling at the pinned point."""

    def along(self, d: Vector) -> LineProfile:
        """Value and slope along the ray from the pinned point."""

    def expectations(self, w: Vector) -> Vector:
        """Expected features under the model."""

    def observed(self) -> Vector:
        """Features counted on the labels."""

    def l1_term(self, w: Vector) -> float:
        """``l1 |w|_1``."""

    def penalty(self, w: Vector) -> float:
        """Both penalties."""


def add_l2(w: FloatArray, l2: float, grad: FloatArray | None = None) -> float:
    """Return ``(l2/2) |w|^2`` and add its gradient ``l2 w`` to `grad`, if given."""
    if l2 == 0.0:
        return 0.0
    if grad is not None:
        grad += l2 * w
    return 0.5 * l2 * float(w @ w)


class EngineObjective(ABC):
    """The objective on one engine: penalty, counters, pin and checks, in one place.

    Parameters
    ----------
    dataset : Dataset
        Labelled sequences.
    layout : Layout
        Which features have a weight.
    l1, l2 : float, default=0.0
        Strengths of the penalties, finite and not negative.

    Attributes
    ----------
    capabilities : frozenset of str
        What this engine can do: "value", "value_and_grad", "subset", "along", "expectations", "hvp",
        "hessian_diagonal", "l1".
    counts : Counts
        What was asked so far.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset({"value", "value_and_grad", "l1"})

    def __init__(self, dataset: Dataset, layout: Layout, *, l1: float = 0.0, l2: float = 0.0) -> None:
        for name, strength in (("l1", l1), ("l2", l2)):
            if not (math.isfinite(strength) and strength >= 0.0):
                raise OptionError(name, strength, "give a finite number that is not negative")
        layout.check_dataset(dataset, labelled=True)
        self.dataset = dataset
        self.layout = layout
        self.l1 = float(l1)
        self.l2 = float(l2)
        self.counts = Counts()
        self._observed: FloatArray | None = None
        self._point: FloatArray = np.empty(
            0
        )  # the pinned array itself: a copy would cost a sweep per gradient
        self._sample: FloatArray = np.empty(0)  # some of its entries, to notice when its owner changes it
        self._pinned = False
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
    def xp(self) -> ModuleType:
        """Module with the array functions for this engine's vectors."""
        return np

    @property
    def passes(self) -> float:
        """Sequences visited so far as a multiple of those in the data."""
        return self.counts.sequences / self.n_sequences

    def value(self, w: FloatArray) -> float:
        """Smooth part of the objective at `w`; does not move the pin."""
        self._check_vector("w", w)
        self.counts.values += 1
        self.counts.sequences += self.n_sequences
        return self._loss(w, self.l2)

    def value_and_grad(
        self, w: FloatArray, out: FloatArray | None = None, subset: ArrayLike | None = None
    ) -> tuple[float, FloatArray]:
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
        Sets the pin to `w`, unless `subset` is given. The array is kept, not copied: what is asked for at the
        pinned point afterwards is a `PointError` once its entries have been changed.
        """
        self._check_vector("w", w)
        out = self._output(out, w)
        self.counts.grads += 1
        if subset is not None:
            self._require("subset")
            ids = self._check_subset(subset)
            self.counts.sequences += len(ids)
            share = len(ids) / self.n_sequences
            return self._loss_and_grad(w, out, ids, self.l2 * share), out
        self.counts.sequences += self.n_sequences
        # A failure half way must not leave the old pin over the engine's new tables.
        self._pinned = False
        self._pin_count += 1
        value = self._loss_and_grad(w, out, None, self.l2)
        self._point, self._sample = w, self._sample_of(w)
        self._pinned = True
        return value, out

    def hvp(self, v: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Hessian of the smooth part at the pinned point, times `v`."""
        self._require("hvp")
        self._check_vector("v", v)
        self._pinned_point()
        out = self._output(out, v)
        self.counts.hvps += 1
        self.counts.sequences += self.n_sequences
        self._hvp(v, out, self.l2)
        return out

    def hessian_diagonal(self) -> FloatArray:
        """Diagonal scaling at the pinned point, ``l2 + sum c x^2 p (1 - p)`` over the places a feature fires.

        The variance of each occurrence alone; covariances between the positions of a sequence are left out.
        """
        self._require("hessian_diagonal")
        self._pinned_point()
        self.counts.sequences += self.n_sequences
        return self._hessian_diagonal(self.l2)

    def along(self, d: FloatArray) -> LineProfile:
        """Profile of the smooth part on the ray from the pinned point in the direction `d`.

        `d` is not copied: leave it as it is while the profile is in use.
        """
        self._require("along")
        self._check_vector("d", d)
        self._pinned_point()
        return LineProfile(self, self._along(d, self.l2))

    def expectations(self, w: FloatArray) -> FloatArray:
        """Expected features under the model, ``sum_i c_i E[Phi(x_i, .)]``, float64[n_weights]."""
        self._require("expectations")
        self._check_vector("w", w)
        self.counts.sequences += self.n_sequences
        return self._expectations(w)

    def observed(self) -> FloatArray:
        """Features counted on the labels, ``sum_i c_i Phi(x_i, y_i)``, float64[n_weights], read-only."""
        if self._observed is None:
            self._observed = self.layout.observed_counts(self.dataset)
            self._observed.flags.writeable = False
        return self._observed

    def l1_term(self, w: FloatArray) -> float:
        """``l1 |w|_1``."""
        return self.l1 * float(np.abs(w).sum()) if self.l1 else 0.0

    def penalty(self, w: FloatArray) -> float:
        """Both penalties, ``(l2/2) |w|^2 + l1 |w|_1``."""
        return add_l2(w, self.l2) + self.l1_term(w)

    # Hooks. Each gets the amount of l2 that its result has to contain, so that an engine may fuse the penalty
    # with its own walk over the weights; `add_l2` is there for engines that do not.

    @abstractmethod
    def _loss(self, w: FloatArray, l2: float) -> float:
        """Data loss plus ``(l2/2) |w|^2``; leaves the tables of the pinned point as they are."""

    @abstractmethod
    def _loss_and_grad(self, w: FloatArray, out: FloatArray, subset: SequenceIds | None, l2: float) -> float:
        """Fill `out` with the gradient and return the value; with subset None keep what `_hvp` needs."""

    def _hvp(self, v: FloatArray, out: FloatArray, l2: float) -> None:
        """Fill `out` with ``H v`` at the pinned point, ``l2 v`` included."""
        raise NotImplementedError

    def _hessian_diagonal(self, l2: float) -> FloatArray:
        raise NotImplementedError

    def _along(self, d: FloatArray, l2: float) -> Callable[[float], tuple[float, float]]:
        """Return the function from a step length to value and slope, penalty included."""
        raise NotImplementedError

    def _expectations(self, w: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _pinned_point(self) -> FloatArray:
        if not self._pinned:
            raise PointError(
                "no point is pinned: call value_and_grad(w), on the whole data, before hvp, hessian_diagonal "
                "or along"
            )
        if not np.array_equal(self._sample, self._sample_of(self._point), equal_nan=True):
            raise PointError("the pinned array was changed: call value_and_grad(w) again")
        return self._point

    @staticmethod
    def _sample_of(w: FloatArray) -> FloatArray:
        return w[:: max(1, len(w) // PIN_SAMPLE)].copy()

    def _require(self, capability: str) -> None:
        if capability not in self.capabilities:
            able = ", ".join(sorted(self.capabilities))
            raise CapabilityError(
                "engine", type(self).__name__, f"cannot do {capability!r}; it can do {able}"
            )

    def _check_vector(self, name: str, vector: FloatArray) -> None:
        good = (
            isinstance(vector, np.ndarray)
            and vector.dtype == np.float64
            and vector.shape == (self.n_weights,)
            and vector.flags.c_contiguous
        )
        if not good:
            found = f"{getattr(vector, 'dtype', type(vector).__name__)}{getattr(vector, 'shape', '')}"
            raise OptionError(name, found, f"give a C-contiguous float64 array of length {self.n_weights}")

    def _output(self, out: FloatArray | None, source: FloatArray) -> FloatArray:
        if out is None:
            return np.empty(self.n_weights)
        self._check_vector("out", out)
        if np.may_share_memory(out, source):
            raise OptionError("out", "the input itself", "give an array of its own for the result")
        return out

    def _check_subset(self, subset: ArrayLike) -> SequenceIds:
        ids = np.asarray(subset)
        if ids.size == 0:
            return np.empty(0, dtype=np.int64)
        if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
            raise OptionError(
                "subset", f"{ids.dtype}{ids.shape}", "give a one-dimensional array of sequence ids"
            )
        if ids.min() < 0 or ids.max() >= self.n_sequences:
            worst = int(ids.min() if ids.min() < 0 else ids.max())
            raise OptionError("subset", worst, f"sequence ids are 0 to {self.n_sequences - 1}")
        return np.ascontiguousarray(ids, dtype=np.int64)
