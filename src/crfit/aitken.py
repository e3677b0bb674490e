"""How fast a fixed-point iteration converges, estimated from two of its steps, and where it would end.

Near its fixed point an iteration ``w <- M(w)`` shrinks its steps by the Jacobian J of M. With J replaced by a
number gamma, how much of a step is left in the next one, the steps still to come are a geometric series:

    w* ~ w + D + gamma D + gamma^2 D + ... = w + D / (1 - gamma)            D the last step, w where it began

Three estimates of gamma [1] from a step P and the next one D:

    gamma1 = P.D / |P|^2        gamma2 = |D| / |P|        gamma3 = |D|^2 / P.D

gamma2^2 = gamma1 gamma3, and gamma1 <= gamma2 <= gamma3 where P.D > 0. The products may be taken over all
weights, over groups of them, or for each alone: then all three are D_i / P_i, gamma2 without its sign.

References
----------
[1] T. Hesterberg (2005). Staggered Aitken acceleration for EM. Proc. Statistical Computing Section, ASA.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit import vectors
from crfit.vectors import Vector

__all__ = ["MAX_GAMMA", "Groups", "StepProducts", "estimate", "step_products", "stretch"]

#: Largest gamma that is believed: a hundred steps in one; more overshoots.
MAX_GAMMA = 0.99

#: What the products are taken over: all weights (None), each alone, or the weights of a group (its number).
Groups: TypeAlias = NDArray[np.integer] | Literal["component"] | None


class StepProducts(NamedTuple):
    """Inner products of two steps, one entry per group; shape () if all weights are one group."""

    before: Vector  # |P|^2
    across: Vector  # P.D
    after: Vector  # |D|^2


def step_products(previous: Vector, last: Vector, groups: Groups = None) -> StepProducts:
    """Return the inner products of two steps.

    Parameters
    ----------
    previous, last : float64[n_weights]
        A step P and the next one D.
    groups : int array [n_weights], "component" or None
        What they are taken over; group numbers start at 0.

    Returns
    -------
    StepProducts
        Of shape (), (n_groups,) or, for components, (n_weights,).
    """
    pairs = ((previous, previous), (previous, last), (last, last))
    if groups is None:
        return StepProducts(*(np.asarray(vectors.dot(a, b)) for a, b in pairs))
    if isinstance(groups, str):
        return StepProducts(*(a * b for a, b in pairs))
    xp = vectors.array_module(previous)
    return StepProducts(*(xp.bincount(groups, a * b) for a, b in pairs))


def estimate(number: int, products: StepProducts) -> Vector:
    """Return gamma1, gamma2 or gamma3.

    Parameters
    ----------
    number : {1, 2, 3}
        Which of the three.
    products : StepProducts
        Inner products of the two steps.

    Returns
    -------
    float64 array
        One per group; NaN where there is none: no previous step, or gamma3 of steps that do not go the same
        way (P.D <= 0).
    """
    before, across, after = products
    xp = np if np.ndim(before) == 0 else vectors.array_module(before)
    with np.errstate(divide="ignore", invalid="ignore"):
        if number == 3:
            return xp.where((across > 0) & (before > 0), after / across, np.nan)
        gamma = across / before if number == 1 else xp.sqrt(after / before)
        return xp.where(before > 0, gamma, np.nan)


def stretch(gamma: Vector, max_gamma: float = MAX_GAMMA) -> Vector:
    """Return by how much the last step is lengthened, ``1 / (1 - gamma)`` with gamma cut to [0, max_gamma].

    Parameters
    ----------
    gamma : float64 array
        Estimates; 1 is returned where there is none (NaN).
    max_gamma : float
        Largest gamma that is believed, below 1.
    """
    xp = np if np.ndim(gamma) == 0 else vectors.array_module(gamma)
    return 1.0 / (1.0 - xp.clip(xp.where(xp.isnan(gamma), 0.0, gamma), 0.0, max_gamma))
