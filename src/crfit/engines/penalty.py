"""The penalty of an objective, ``(l2/2) |w|^2 + l1 |w|_1`` over the weights that have one.

Free weights (`crfit.layout.Layout.free`), such as an intercept, have none. They are one slice of the vector,
so that what has a penalty is one range or two. An engine's kernels may add l2 to the whole vector in a walk
that they do anyway: what they added to the free weights is taken off afterwards.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from crfit import vectors
from crfit.errors import OptionError
from crfit.vectors import Vector

__all__ = ["Penalty", "add_l2", "strength"]


def strength(name: str, value: Any) -> float:
    """Return a penalty's strength; `OptionError` unless it is a finite number that is not negative."""
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not (number and math.isfinite(value) and value >= 0.0):
        raise OptionError(name, value, "give a finite number that is not negative")
    return float(value)


def add_l2(w: Vector, l2: float, grad: Vector | None = None) -> float:
    """Return ``(l2/2) |w|^2`` and add its gradient ``l2 w`` to `grad`, if given; free weights included."""
    if l2 == 0.0:
        return 0.0
    if grad is not None:
        vectors.axpy(grad, l2, w, grad)
    return 0.5 * l2 * vectors.dot(w, w)


class Penalty:
    """Which weights have a penalty, and what that amounts to.

    Parameters
    ----------
    n_weights : int
        Length of the weight vector.
    free : slice
        Where the weights without a penalty lie.
    """

    def __init__(self, n_weights: int, free: slice) -> None:
        self.n_weights, self.free = n_weights, free
        self.n_free = free.stop - free.start
        self._ranges = vectors.penalised_ranges(n_weights, free)

    def inner(self, a: Vector, b: Vector) -> float:
        """Return ``a . b`` over the weights with a penalty.

        Parameters
        ----------
        a, b : float64[n_weights]
            Weights or directions.
        """
        return sum(vectors.dot(a[part], b[part]) for part in self._ranges)

    def value(self, w: Vector, l2: float) -> float:
        """Return ``(l2/2) |w|^2``.

        Parameters
        ----------
        w : float64[n_weights]
            The weights.
        l2 : float
            Strength.
        """
        return 0.5 * l2 * self.inner(w, w) if l2 > 0.0 else 0.0

    def sum_abs(self, w: Vector) -> float:
        """Return ``|w|_1``.

        Parameters
        ----------
        w : float64[n_weights]
            The weights.
        """
        return sum(vectors.sum_abs(w[part]) for part in self._ranges)

    def strengths(self, l2: float) -> Vector:
        """Return l2 for each weight, 0 where it has no penalty, float64[n_weights] in NumPy.

        Parameters
        ----------
        l2 : float
            Strength.
        """
        each = np.zeros(self.n_weights)
        self.add_constant(l2, each)
        return each

    def add_constant(self, l2: float, out: Vector) -> None:
        """Add l2 to the entries of `out` that have a penalty.

        Parameters
        ----------
        l2 : float
            Strength.
        out : float64[n_weights]
            Sets: the sum.
        """
        for part in self._ranges:
            out[part] += l2

    def take_off(self, v: Vector, l2: float, out: Vector) -> float:
        """Take ``l2 v`` off the free entries of `out`, where it was added; return ``(l2/2) |v|^2`` of them.

        Parameters
        ----------
        v : float64[n_weights]
            Weights, with `out` their gradient; or a direction, with `out` its product with the Hessian.
        l2 : float
            Strength that was added.
        out : float64[n_weights]
            Sets: the free entries.
        """
        if not self.n_free or l2 == 0.0:
            return 0.0
        free = v[self.free]
        out[self.free] -= l2 * free
        return 0.5 * l2 * vectors.dot(free, free)
