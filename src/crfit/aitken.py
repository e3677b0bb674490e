"""How fast a fixed-point iteration converges, estimated from two of its steps, and where it would end.

Near its fixed point an iteration ``w <- M(w)`` shrinks its steps by the Jacobian J of M. With J replaced by a
number gamma, how much of a step is left in the next one, the steps still to come are a geometric series:

    w* ~ w + D + gamma D + gamma^2 D + ... = w + D / (1 - gamma)            D the last step, w where it began

Three estimates of gamma [1] from a step P and the next one D:

    gamma1 = P.D / |P|^2        gamma2 = |D| / |P|        gamma3 = |D|^2 / P.D

gamma2^2 = gamma1 gamma3, and gamma1 <= gamma2 <= gamma3 where P.D > 0. The products may be taken over all
weights, over groups of them, or for each alone: then all three are D_i / P_i, gamma2 without its sign.

Extrapolation by gamma is staggered: two plain steps lie between two of them [1], since a step after an
extrapolation does not tell how the iteration converges.

References
----------
[1] T. Hesterberg (2005). Staggered Aitken acceleration for EM. Proc. Statistical Computing Section, ASA.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit import vectors
from crfit.vectors import Vector

__all__ = ["MAX_GAMMA", "Groups", "StaggeredAitken", "StepProducts", "estimate", "step_products", "stretch"]

#: Largest gamma that is believed: a hundred steps in one; more overshoots.
MAX_GAMMA = 0.99

#: To how many steps the longest jump may be cut down.
SHORTEST_JUMP = 2.0

#: Steps shorter than this share of the weights, or of 1, are taken as rounding.
TINY = 1e-12

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
    return StepProducts(
        _inner(previous, previous, groups), _inner(previous, last, groups), _inner(last, last, groups)
    )


def _inner(a: Vector, b: Vector, groups: Groups) -> Vector:
    if groups is None:
        return np.asarray(vectors.dot(a, b))
    if isinstance(groups, str):
        return a * b
    return vectors.array_module(a).bincount(groups, a * b)  # type: ignore[no-any-return]


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
            gamma, known = after / across, (before > 0.0) & (across > 0.0)
        else:
            gamma, known = (across / before if number == 1 else xp.sqrt(after / before)), before > 0.0
        return xp.where(known, gamma, np.nan)  # type: ignore[no-any-return]


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
    return 1.0 / (1.0 - xp.clip(xp.where(xp.isnan(gamma), 0.0, gamma), 0.0, max_gamma))  # type: ignore[no-any-return]


class StaggeredAitken:
    """Every other step of an iteration lengthened by what the two say.

    After a proposal, taken or not, the next step is a plain one: two proposals never follow each other. The
    longest jump is halved after a proposal that was no good, and doubled again after one that was.

    Parameters
    ----------
    number : {1, 2, 3}
        Which estimate of gamma.
    groups : int array [n_weights], "component" or None
        What gamma is estimated for: each group, each weight, or all weights.
    max_gamma : float
        Largest gamma that is believed, below 1.

    Attributes
    ----------
    length : float
        By how much the last proposal lengthened the step, the largest of all groups.
    """

    def __init__(self, number: int, groups: Groups = None, max_gamma: float = MAX_GAMMA) -> None:
        self.number, self.groups, self.max_gamma = number, groups, max_gamma
        self.previous: Vector | None = None
        self.length, self.longest = 1.0, 1.0 / (1.0 - max_gamma)

    def propose(self, w: Vector, step: Vector) -> Vector | None:
        """Return a point beyond ``w + step``, or None.

        Parameters
        ----------
        w, step : float64[n_weights]
            A point and the step that the iteration makes there; the step is kept, not copied.
        """
        previous, self.previous = self.previous, step
        if previous is None:
            return None
        self.previous = None
        products = step_products(previous, step, self.groups)
        # Of steps that are rounding next to the weights the ratio is rounding too.
        xp = np if self.groups is None else vectors.array_module(w)
        size = TINY * TINY * xp.maximum(1.0, _inner(w, w, self.groups))
        gamma = xp.where(products.before > size, estimate(self.number, products), np.nan)
        lengths = stretch(gamma, 1.0 - 1.0 / self.longest)
        self.length = float(lengths.max())
        if self.length == 1.0:
            return None
        if self.groups is None:
            return w + self.length * step
        return w + (lengths if isinstance(self.groups, str) else lengths[self.groups]) * step

    def judged(self, taken: bool) -> None:
        """Take note of whether the last proposal was good.

        Parameters
        ----------
        taken : bool
            Whether it was taken.
        """
        if taken:
            self.longest = min(2.0 * self.longest, 1.0 / (1.0 - self.max_gamma))
        else:
            self.longest = max(0.5 * self.length, SHORTEST_JUMP)

    def export_state(self) -> dict[str, Any]:
        """Return the longest jump and the step that the next one is compared with."""
        previous = {} if self.previous is None else {"previous_step": self.previous}
        return {"longest_jump": self.longest, **previous}

    def import_state(self, state: Mapping[str, Any], xp: Any = np) -> None:
        """Go on from an earlier run.

        Parameters
        ----------
        state : mapping
            From `export_state`.
        xp : module
            The array library of the vectors.
        """
        self.longest = float(state["longest_jump"])
        if "previous_step" in state:
            self.previous = xp.asarray(state["previous_step"])
