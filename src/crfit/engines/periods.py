"""Periodic step sizes: how the changes of the weights over two halves of a period become factors of rates.

The rule and its names are those of `crfit.engines.online.Periodic`. All functions work element by element.

References
----------
[1] C.-N. Hsu, H.-S. Huang, Y.-M. Chang, Y.-J. Lee (2009). Periodic step-size adaptation in second-order
    gradient descent for single-pass on-line structured learning. Machine Learning 77, 195-224.
[2] H.-D. Yang, H.-I. Suk, S.-W. Lee (2012). Accelerating generalized iterative scaling based on staggered
    Aitken method for on-line conditional random fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.online import Periodic

__all__ = ["estimate", "estimate_of_weights", "half_period", "multiplier"]

#: A change |D1| below this times max(1, |w|) says nothing.
TINY = 1e-12


def half_period(n_sequences: int, batch: int) -> int:
    """Return the default b: rates change a thousand times in a pass, as far as there are steps enough.

    Parameters
    ----------
    n_sequences : int
        Sequences of the dataset.
    batch : int
        Sequences per step.
    """
    return max(1, int(0.5 * n_sequences / (1000 * batch)))


def estimate(
    rule: Periodic, s11: ArrayLike, s12: ArrayLike, s22: ArrayLike, square: ArrayLike
) -> NDArray[np.float64]:
    """Return gamma, cut to [-kappa, kappa], of vectors with these products.

    Parameters
    ----------
    rule : Periodic
        Which gamma, and kappa.
    s11, s12, s22 : array
        D1.D1, D1.D2, D2.D2.
    square : array
        w.w of the same weights.
    """
    s11, s12, s22 = (np.asarray(s, dtype=np.float64) for s in (s11, s12, s22))
    with np.errstate(divide="ignore", invalid="ignore"):
        if rule.gamma == 1:
            gamma = s12 / s11
        elif rule.gamma == 2:
            gamma = np.sqrt(s22 / s11)
        else:
            gamma = np.where(s12 > 0.0, s22 / s12, -rule.kappa)
    nothing = s11 < TINY * TINY * np.maximum(1.0, square)
    return np.where(nothing, rule.kappa, np.clip(gamma, -rule.kappa, rule.kappa))


def estimate_of_weights(rule: Periodic, w: Vector, first: Vector, second: Vector) -> NDArray[np.float64]:
    """Return the same for weights one by one, where gamma is the ratio of two changes.

    Parameters
    ----------
    rule : Periodic
        Which gamma, and kappa.
    w : float64[n]
        The weights at the end of a period.
    first, second : float64[n]
        Their changes D1, D2 over its halves.
    """
    nothing = np.abs(first) < TINY * np.maximum(1.0, np.abs(w))
    ratio = second / np.where(nothing, 1.0, first)
    u = np.clip(np.abs(ratio) if rule.gamma == 2 else ratio, -rule.kappa, rule.kappa)
    return np.where(nothing, rule.kappa, u)


def multiplier(rule: Periodic, u: ArrayLike) -> NDArray[np.float64]:
    """Return by what a rate is multiplied: the line from beta at -kappa to alpha at kappa.

    Parameters
    ----------
    rule : Periodic
        alpha, beta and kappa.
    u : array
        From `estimate`.
    """
    half = 0.5 * (rule.alpha - rule.beta)
    return 0.5 * (rule.alpha + rule.beta) + half / rule.kappa * np.asarray(u, dtype=np.float64)
