"""Fused operations on weight-sized vectors, each one sweep over memory.

A problem has millions of weights and a trainer touches them a few times per pass, so memory bandwidth is the
bottleneck: each function here fuses the operations that a trainer needs together. NumPy vectors use the
native core, threaded, with sums in fixed blocks: results do not depend on the number of threads. Vectors of
another array library (`Objective.xp`) use the same formulas in that library.

Pseudo-gradient of F = f + l1 |w|_1 with g = grad f [1, eq. 4]:

    v_i = g_i + l1 sgn(w_i)           w_i != 0
        = g_i + l1  if g_i < -l1      w_i == 0
        = g_i - l1  if g_i >  l1      w_i == 0
        = 0         otherwise

Unpenalised weights (`Objective.free`, one slice) have v_i = g_i and no orthant.

A step of conjugate gradients for ``H s = -g`` in a diagonal metric M [2] takes three sweeps over memory:
`dot` for the curvature ``d . Hd``, `cg_residual` to update the residual, and `cg_direction` to update
solution and direction. ``z = res / M`` is computed on the fly and never stored.

References
----------
[1] G. Andrew, J. Gao (2007). Scalable training of L1-regularized log-linear models. ICML.
[2] J. Nocedal, S. Wright (2006). Numerical Optimization, 2nd edition, algorithm 5.3.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit import _native
from crfit.threads import resolve_threads

#: A weight-sized vector. Arrays of other libraries are annotated with this type too.
Vector: TypeAlias = NDArray[np.float64]

#: Entries per block of array-library code: 64 KB of float64, so a few operands fit into the level-2 cache.
BLOCK = 8192

#: The empty slice of unpenalised weights: every weight is penalised.
NONE_FREE = slice(0, 0)

_threads: ContextVar[int | None] = ContextVar("crfit_vector_threads", default=None)


@contextmanager
def use_threads(n_threads: int) -> Iterator[None]:
    """Run vector operations in this context on `n_threads` threads; results do not depend on it."""
    token = _threads.set(n_threads)
    try:
        yield
    finally:
        _threads.reset(token)


def _n_threads() -> int:
    return _threads.get() or resolve_threads(None)


def array_module(a: Any) -> Any:
    """Return the array library of `a`: NumPy or what ``a.__array_namespace__`` names."""
    return np if isinstance(a, np.ndarray) else a.__array_namespace__()


def to_numpy(a: Any) -> NDArray[Any]:
    """Return `a` as a NumPy array, without a copy if it is one."""
    if isinstance(a, np.ndarray):
        return a
    return np.asarray(a.get() if hasattr(a, "get") else a)


def blocks(n: int, xp: Any = np) -> Iterator[slice]:
    """Yield the slices of a vector of length `n` that array-library code processes one at a time."""
    size = BLOCK if xp is np else max(n, 1)
    for begin in range(0, n, size):
        yield slice(begin, min(begin + size, n))


def dot(a: Vector, b: Vector) -> float:
    """Return the inner product of two vectors."""
    xp = array_module(a)
    return _native.dot(a, b, _n_threads()) if xp is np else float(xp.dot(a, b))


def sum_abs(a: Vector) -> float:
    """Return the sum of the absolute entries."""
    xp = array_module(a)
    return _native.sum_abs(a, _n_threads()) if xp is np else float(xp.sum(xp.abs(a)))


def norms(g: Vector) -> tuple[float, float]:
    """Return the largest absolute entry and the Euclidean norm of `g`; NaN if it has a NaN."""
    xp = array_module(g)
    return _native.norms(g, _n_threads()) if xp is np else _norms(g, xp)


def _norms(g: Any, xp: Any) -> tuple[float, float]:
    return (float(xp.max(xp.abs(g))), float(xp.sqrt(xp.dot(g, g)))) if g.size else (0.0, 0.0)


def axpy(w: Vector, step: float, d: Vector, out: Vector) -> None:
    """Set ``out = w + step * d``."""
    xp = array_module(w)
    if xp is np:
        _native.axpy(w, step, d, out, _n_threads())
    else:
        out[:] = w + step * d


def penalised_ranges(n: int, free: slice) -> list[slice]:
    """Return the penalised slices of a vector of length `n`: everything except `free`."""
    if free.start >= free.stop:
        return [slice(0, n)]
    return [part for part in (slice(0, free.start), slice(free.stop, n)) if part.start < part.stop]


def _pseudo(w: Any, g: Any, l1: float, xp: Any) -> Any:
    # At w_i = 0 the subdifferential is [g - l1, g + l1]: its point nearest to zero is g shrunk by l1.
    shrunk = g - xp.minimum(xp.maximum(g, -l1), l1)
    return xp.where(w != 0, g + l1 * xp.sign(w), shrunk)


def pseudo_gradient(w: Vector, g: Vector, l1: float, out: Vector, free: slice = NONE_FREE) -> int:
    """Write the pseudo-gradient to `out`, which may be `g`, and return the number of non-zero weights."""
    xp = array_module(w)
    unchanged = g[free].copy()
    if xp is np:
        n_active = _native.pseudo_gradient(w, g, l1, out, _n_threads())
    else:
        out[:] = _pseudo(w, g, l1, xp)
        n_active = int(xp.count_nonzero(w))
    out[free] = unchanged
    return n_active


def pseudo_gradient_norms(w: Vector, g: Vector, l1: float, free: slice = NONE_FREE) -> tuple[float, float]:
    """Return the largest absolute entry and the Euclidean norm of the pseudo-gradient, without storing it."""
    xp = array_module(w)
    parts = []
    for part in penalised_ranges(len(w), free):
        if xp is np:
            parts.append(_native.pseudo_gradient_norms(w[part], g[part], l1, _n_threads()))
        else:
            parts.append(_norms(_pseudo(w[part], g[part], l1, xp), xp))
    if free.start < free.stop:
        parts.append(norms(g[free]))
    if len(parts) == 1:
        return parts[0]
    largest, lengths = np.array(parts).T
    return float(largest.max()), math.hypot(*lengths)


def align(d: Vector, v: Vector, free: slice = NONE_FREE) -> float:
    """Set ``d_i = 0`` where ``d_i v_i >= 0``, except for unpenalised weights, and return ``v . d``."""
    xp = array_module(d)
    slope = 0.0
    for part in penalised_ranges(len(d), free):
        if xp is np:
            slope += _native.align(d[part], v[part], _n_threads())
        else:
            d[part] *= d[part] * v[part] < 0
            slope += float(xp.dot(d[part], v[part]))
    return slope + dot(d[free], v[free])


def project_orthant(
    w: Vector, d: Vector, step: float, v: Vector, out: Vector, free: slice = NONE_FREE
) -> float:
    """Set ``out = w + step * d`` with zero wherever that leaves the orthant; return ``v . (out - w)``.

    The orthant has the sign of ``w_i``, or of ``-v_i`` where ``w_i = 0``; unpenalised weights have none.
    """
    xp = array_module(w)
    predicted = 0.0
    for part in penalised_ranges(len(w), free):
        if xp is np:
            predicted += _native.project_orthant(w[part], d[part], step, v[part], out[part], _n_threads())
            continue
        trial = w[part] + step * d[part]
        orthant = xp.where(w[part] != 0, w[part], -v[part])
        out[part] = xp.where(xp.sign(trial) == xp.sign(orthant), trial, 0.0)
        predicted += float(xp.dot(v[part], out[part] - w[part]))
    out[free] = w[free] + step * d[free]
    return predicted + step * dot(v[free], d[free])


def soft_threshold(u: Vector, threshold: float, out: Vector) -> Vector:
    """Set ``out = sign(u) max(|u| - threshold, 0)``, `out` may be `u`, and return it."""
    xp = array_module(u)
    for part in blocks(len(u), xp):
        out[part] = u[part] - xp.clip(u[part], -threshold, threshold)
    return out


def squared_soft_threshold(u: Vector, threshold: float) -> float:
    """Return the squared Euclidean norm of the soft threshold, without storing it."""
    if threshold == 0.0:
        return dot(u, u)
    xp = array_module(u)
    total = 0.0
    for part in blocks(len(u), xp):
        w = u[part] - xp.clip(u[part], -threshold, threshold)
        total += float(xp.dot(w, w))
    return total


def cg_residual(res: Vector, step: float, product: Vector, metric: Vector | None = None) -> float:
    """Set ``res -= step * product`` and return ``res . res / M``; M = diag(`metric`), I if that is None."""
    xp = array_module(res)
    if xp is np:
        return _native.cg_residual(res, step, product, metric, _n_threads())
    res -= step * product
    return float(xp.dot(res, res if metric is None else res / metric))


def cg_direction(
    s: Vector, step: float, d: Vector, res: Vector, factor: float, metric: Vector | None = None
) -> tuple[float, float, float]:
    """Set ``s += step * d``, then ``d = res / M + factor * d``; return ``s.Ms``, ``s.Md`` and ``d.Md``."""
    xp = array_module(s)
    if xp is np:
        return _native.cg_direction(s, step, d, res, factor, metric, _n_threads())
    s += step * d
    d *= factor
    d += res if metric is None else res / metric
    ms, md = (s, d) if metric is None else (metric * s, metric * d)
    return float(xp.dot(s, ms)), float(xp.dot(s, md)), float(xp.dot(d, md))
