"""Steps of iterative scaling: five equations and their roots.

The change of F is bounded by a sum over weights, so each weight minimises its own term [1, 2]. With observed
and expected total O, E of a feature, S the largest feature total of a sequence, and the l2 penalty:

    exact   E exp(S d) + l2 (w + d) = O         d = (log omega(x) - log(S E/l2)) / S,
                                                x = log(S E/l2) + S (O/l2 - w)
    l2 = 0  E exp(S d) = O                      d = log(O/E) / S
    ratio   the same with E + l2 w for E        d = log(O/(E + l2 w)) / S
    binned  sum_b E_b exp(T_b d) + l2 (w + d) = O        by Newton; E_b, T_b of the sequences in bin b
    terms   the same with different terms per weight: lists of E and T, weight by weight

The ratio has the same fixed point but no bound. Where it is undefined, O = 0 or E + l2 w <= 0, the exact step
is used; ratio steps are at most log(100)/S. Without a penalty the best weight of a feature that is never
observed is minus infinity: it moves there in steps of log(100)/S, and F falls at each.

omega is the Wright omega function, the solution of ``omega + log omega = x`` [3]. It underflows below about
-745, but its logarithm does not, so we compute the logarithm, the root l of

    l + exp(l) = x

The left side is convex and increasing, and the first guess, x for x < 1 and log x above, is right of the
root: Newton's method converges without overshooting, in a few steps.

References
----------
[1] J. Darroch, D. Ratcliff (1972). Generalized iterative scaling for log-linear models. Ann. Math. Stat. 43.
[2] S. Chen, R. Rosenfeld (2000). A survey of smoothing techniques for ME models. IEEE Trans. SAP 8(1).
[3] R. Corless, D. Jeffrey (2002). The Wright omega function. LNCS 2385, 76-89.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfit.vectors import Vector, array_module

#: Maximum number of Newton steps; we have seen at most six.
OMEGA_STEPS = 20


def log_omega(x: Vector) -> Vector:
    """Return the l with ``l + exp(l) = x``."""
    xp = array_module(x)
    guess = xp.where(x < 1.0, x, xp.log(xp.maximum(x, 1.0)))
    for _ in range(OMEGA_STEPS):
        omega = xp.exp(guess)
        step = (guess + omega - x) / (1.0 + omega)
        guess -= step
        if not bool(xp.any(step > 2.0 * np.finfo(np.float64).eps * xp.maximum(1.0, xp.abs(guess)))):
            break
    return guess  # type: ignore[no-any-return]


#: Largest change of S d if an equation has no root or no bound.
LONGEST = math.log(100.0)

#: Maximum number of Newton steps, and the change of T d (relative above 1) at which they end; the remaining
#: error is about its square.
MAX_STEPS = 100
TOLERANCE = 1e-7

#: Largest number whose exponential is finite, rounded down.
MAX_EXPONENT = 700.0

#: A difference below this share of its terms is rounding.
ROUNDING = 1e-8


def exact_step(w: Vector, expected: Vector, observed: Vector, total: float | Vector, l2: float) -> Vector:
    """Return the root of ``E exp(S d) + l2 (w + d) = O`` for each weight."""
    xp = array_module(w)
    fires = (expected > 0.0) & (total > 0.0)
    total = xp.where(fires, total, 1.0)
    slope = xp.where(fires, expected, 1.0)
    if l2 == 0.0:
        seen = observed > 0.0
        scaled = xp.where(seen, xp.log(xp.where(seen, observed, 1.0) / slope), -LONGEST)
        return xp.where(fires, scaled / total, 0.0)  # type: ignore[no-any-return]
    # Minimum of the penalised linear part, relative to w: the step where E = 0.
    alone = observed / l2 - w
    log_slope = xp.log(total * slope / l2)
    step = (log_omega(log_slope + total * alone) - log_slope) / total
    # One Newton step corrects the rounding of the difference of logarithms, which matters for tiny d.
    now = slope * xp.exp(xp.minimum(total * step, MAX_EXPONENT))
    step -= (now + l2 * step - l2 * alone) / (total * now + l2)
    return xp.where(fires, step, alone)  # type: ignore[no-any-return]


def ratio_step(w: Vector, expected: Vector, observed: Vector, total: float, l2: float) -> Vector:
    """Return ``log(O / (E + l2 w)) / S`` for each weight, with the safeguards above."""
    xp = array_module(w)
    divisor = expected + l2 * w
    defined = (observed > 0.0) & (divisor > 0.0)
    scaled = xp.log(xp.where(defined, observed, 1.0) / xp.where(defined, divisor, 1.0))
    limited = xp.clip(scaled, -LONGEST, LONGEST) / (total or 1.0)
    return xp.where(defined, limited, exact_step(w, expected, observed, total, l2))  # type: ignore[no-any-return]


def binned_step(w: Vector, expected: Vector, observed: Vector, totals: Sequence[float], l2: float) -> Vector:
    """Return the root of ``sum_b E_b exp(T_b d) + l2 (w + d) = O`` for each weight.

    Newton's method starts at the root for the mean of the T_b weighted by E_b. By Jensen's inequality the sum
    is at least ``E exp(T d)`` with that mean, so this root is not left of the solution. The equation and its
    logarithm are both convex and increasing, so Newton steps from the right do not overshoot; the longer of
    the two is used.
    """
    xp = array_module(w)
    bins = _Sums(lambda x: x.sum(axis=0), lambda x: x.max(axis=0), lambda x: x)
    return _newton(w, expected, observed, xp.asarray(totals)[:, None], l2, bins)


def term_step(
    w: Vector, expected: Vector, observed: Vector, totals: Vector, starts: NDArray[np.int64], l2: float
) -> Vector:
    """Return the root of ``sum_b E_b exp(T_b d) + l2 (w + d) = O``, b over the terms of each weight."""
    if not len(w):
        return np.zeros(0)
    weight_of = np.repeat(np.arange(len(w)), np.diff(starts, append=len(totals)))
    terms = _Sums(
        lambda x: np.add.reduceat(x, starts), lambda x: np.maximum.reduceat(x, starts), lambda x: x[weight_of]
    )
    return _newton(w, expected, observed, totals, l2, terms)


class _Sums(NamedTuple):
    """Operations on the layout of the terms."""

    add: Callable[[Vector], Vector]  # sum over the terms of each weight
    most: Callable[[Vector], Vector]  # largest term of each weight
    spread: Callable[[Vector], Vector]  # from weights to the shape of the terms


def _newton(w: Vector, expected: Vector, observed: Vector, bounds: Vector, l2: float, over: _Sums) -> Vector:
    """The root of ``sum_b E_b exp(T_b d) + l2 (w + d) = O`` for each weight; `bounds` are the T."""
    xp = array_module(w)
    whole = over.add(expected)
    fires = whole > 0.0
    mean = over.add(bounds * expected) / xp.where(fires, whole, 1.0)
    step = exact_step(w, whole, observed, mean, l2)
    solvable = fires if l2 > 0.0 else fires & (observed > 0.0)
    wanted, largest = observed - l2 * w, float(bounds.max())
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_expected = xp.log(expected)
        for _ in range(MAX_STEPS):
            exponents = log_expected + bounds * over.spread(step)
            top = over.most(exponents)
            shares = xp.exp(exponents - over.spread(top))  # of the sum, times exp(-top)
            scaled_sum, scaled_slope = over.add(shares), over.add(bounds * shares)
            rest = wanted - l2 * step
            plain = (scaled_sum - rest * xp.exp(-top)) / (scaled_slope + l2 * xp.exp(-top))
            logs = (xp.log(scaled_sum) + top - xp.log(rest)) / (scaled_slope / scaled_sum + l2 / rest)
            exact = rest > ROUNDING * (xp.abs(wanted) + xp.abs(l2 * step))
            change = xp.where(exact & (logs > plain), logs, plain)
            change = xp.where(solvable & (change > 0.0), change, 0.0)
            step = step - change
            if not bool(xp.any(largest * change > TOLERANCE * (1.0 + largest * xp.abs(step)))):
                break
    return step
