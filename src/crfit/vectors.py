"""Elementwise work on weight-sized vectors, each function one sweep over memory.

A problem has millions of weights and a trainer touches them a few times per pass, so what counts is how often
memory is read. Functions here fuse what a trainer needs at one time. They work in blocks that stay in the
cache; sums are float64, taken per block and then over blocks in order, without BLAS, whose order of summation
depends on its number of threads. Vectors of another array library (`Objective.xp`) are taken in one block.

Pseudo-gradient of F = f + l1 |w|_1 with g = grad f [1, eq. 4]:

    v_i = g_i + l1 sgn(w_i)           w_i != 0
        = g_i + l1  if g_i < -l1      w_i == 0
        = g_i - l1  if g_i >  l1      w_i == 0
        = 0         otherwise

References
----------
[1] G. Andrew, J. Gao (2007). Scalable training of L1-regularized log-linear models. ICML.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Vector",
    "align",
    "array_module",
    "axpy",
    "blocks",
    "dot",
    "norms",
    "project_orthant",
    "pseudo_gradient",
    "pseudo_gradient_norms",
    "to_numpy",
]

Vector = NDArray[np.float64]

#: Entries per block: 64 KB of float64, so that a handful of operands fit a level-2 cache.
BLOCK = 8192


def array_module(a: Any) -> Any:
    """Return the array library of `a`: NumPy or what ``a.__array_namespace__`` names."""
    return np if isinstance(a, np.ndarray) else a.__array_namespace__()


def to_numpy(a: Any) -> NDArray[Any]:
    """Return `a` as a NumPy array, without a copy if it is one."""
    if isinstance(a, np.ndarray):
        return a
    return np.asarray(a.get() if hasattr(a, "get") else a)


def blocks(n: int, xp: Any = np) -> Iterator[slice]:
    """Yield the slices of a vector of length `n` that are worked on at one time."""
    size = BLOCK if xp is np else max(n, 1)
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


def _sum_of_products(a: Any, b: Any, xp: Any) -> float:
    # einsum without `optimize` is a plain loop: the same sum whatever the number of BLAS threads.
    return float(np.einsum("i,i->", a, b) if xp is np else xp.dot(a, b))


def dot(a: Vector, b: Vector) -> float:
    """Return the inner product of two vectors."""
    xp = array_module(a)
    return float(np.sum([_sum_of_products(a[k], b[k], xp) for k in blocks(a.size, xp)]))


def norms(g: Vector) -> tuple[float, float]:
    """Return the largest absolute entry and the Euclidean norm of `g`; NaN if it has a NaN."""
    xp = array_module(g)
    largest, squares = [0.0], [0.0]
    for k in blocks(g.size, xp):
        largest.append(float(xp.max(xp.abs(g[k]))))
        squares.append(_sum_of_products(g[k], g[k], xp))
    return float(np.max(largest)), float(np.sqrt(np.sum(squares)))


def axpy(w: Vector, step: float, d: Vector, out: Vector) -> None:
    """Set ``out = w + step * d``."""
    xp = array_module(w)
    for k in blocks(w.size, xp):
        xp.multiply(d[k], step, out=out[k])
        out[k] += w[k]


def _pseudo(w: Any, g: Any, l1: float, xp: Any) -> Any:
    # At w_i = 0 the subdifferential is [g - l1, g + l1]: its point nearest to zero is g shrunk by l1.
    shrunk = g - xp.minimum(xp.maximum(g, -l1), l1)
    return xp.where(w != 0, g + l1 * xp.sign(w), shrunk)


def pseudo_gradient(w: Vector, g: Vector, l1: float, out: Vector) -> int:
    """Write the pseudo-gradient to `out` and return the number of non-zero weights.

    Parameters
    ----------
    w, g : array of float64
        Weights and gradient of the smooth part.
    l1 : float
        Strength of the l1 penalty.
    out : array of float64
        Sets: the pseudo-gradient; may be `g`.
    """
    xp = array_module(w)
    active = 0
    for k in blocks(w.size, xp):
        out[k] = _pseudo(w[k], g[k], l1, xp)
        active += int(xp.count_nonzero(w[k]))
    return active


def pseudo_gradient_norms(w: Vector, g: Vector, l1: float) -> tuple[float, float]:
    """Return largest absolute entry and Euclidean norm of the pseudo-gradient, without storing it."""
    xp = array_module(w)
    largest, squares = [0.0], [0.0]
    for k in blocks(w.size, xp):
        v = _pseudo(w[k], g[k], l1, xp)
        largest.append(float(xp.max(xp.abs(v))))
        squares.append(_sum_of_products(v, v, xp))
    return float(np.max(largest)), float(np.sqrt(np.sum(squares)))


def align(d: Vector, v: Vector) -> float:
    """Set ``d_i = 0`` where ``d_i v_i >= 0`` and return ``v . d``.

    Parameters
    ----------
    d : array of float64
        Sets: the direction, left only with entries that go against `v`.
    v : array of float64
        Pseudo-gradient.
    """
    xp = array_module(d)
    slopes = []
    for k in blocks(d.size, xp):
        d[k] *= d[k] * v[k] < 0
        slopes.append(_sum_of_products(d[k], v[k], xp))
    return float(np.sum(slopes))


def project_orthant(w: Vector, d: Vector, step: float, v: Vector, out: Vector) -> float:
    """Set ``out = w + step * d`` with zero wherever that leaves the orthant; return ``v . (out - w)``.

    The orthant has the sign of ``w_i``, and of ``-v_i`` where ``w_i = 0``.

    Parameters
    ----------
    w, d, v : array of float64
        Weights, direction, pseudo-gradient.
    step : float
        Step length.
    out : array of float64
        Sets: the projected point.
    """
    xp = array_module(w)
    slopes = []
    for k in blocks(w.size, xp):
        trial = w[k] + step * d[k]
        orthant = xp.where(w[k] != 0, w[k], -v[k])
        out[k] = xp.where(xp.sign(trial) == xp.sign(orthant), trial, 0.0)
        slopes.append(_sum_of_products(v[k], out[k] - w[k], xp))
    return float(np.sum(slopes))
