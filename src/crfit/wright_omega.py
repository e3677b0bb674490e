"""The logarithm of the Wright omega function, for real arguments of any size.

omega(x) is the solution of ``omega + log omega = x`` [1]. Below about -745 it underflows, while its logarithm
is as well behaved as a number can be, so that this is computed directly, as the root l of

    l + exp(l) = x

The left side is convex and rises, and the first guess, x below 1 and log x from there on, is right of the
root: Newton's method comes down to it without overshooting, in a handful of steps.

References
----------
[1] R. Corless, D. Jeffrey (2002). The Wright omega function. LNCS 2385, 76-89.
"""

from __future__ import annotations

import numpy as np

from crfit.vectors import Vector, array_module

__all__ = ["log_omega"]

#: Newton steps at most; six are the most seen.
MAX_STEPS = 20


def log_omega(x: Vector) -> Vector:
    """Return the l with ``l + exp(l) = x``.

    Parameters
    ----------
    x : float64 array
        Finite numbers.
    """
    xp = array_module(x)
    guess = xp.where(x < 1.0, x, xp.log(xp.maximum(x, 1.0)))
    for _ in range(MAX_STEPS):
        omega = xp.exp(guess)
        step = (guess + omega - x) / (1.0 + omega)
        guess -= step
        if not bool(xp.any(step > 2.0 * np.finfo(np.float64).eps * xp.maximum(1.0, xp.abs(guess)))):
            break
    return guess  # type: ignore[no-any-return]
