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

Anderson acceleration of a fixed-point iteration ``w <- M(w)`` [1, 2].

With the steps ``f_k = M(w_k) - w_k`` at the last points, the next point is the image of the combination of
points, with coefficients that add up to 1, whose step would be shortest were M affine:

    theta = argmin |f_k - dF theta|        w_{k+1} = w_k + f_k - (dW + dF) theta

dW and dF hold the differences of successive points and steps, `memory` of each. Theta comes from the normal
equations, of that size. Nothing here looks at an objective: a caller may go elsewhere, as to M(w), and what
is remembered stays, for it tells about M and not about how the points came about.

References
----------
[1] D. Anderson (1965). Iterative procedures for nonlinear integral equations. J. ACM 12(4), 547-560.
[2] H. Walker, P. Ni (2011). Anderson acceleration for fixed-point iterations. SIAM J. Numer. Anal. 49(4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit import vectors
from crfit.vectors import Vector

__all__ = [
    "MAX_GAMMA",
    "AndersonMixing",
    "Groups",
    "StaggeredAitken",
    "StepProducts",
    "estimate",
    "step_products",
    "stretch",
]

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
    """Return the inner products of two steps."""
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
    """Return gamma1, gamma2 or gamma3."""
    before, across, after = products
    xp = np if np.ndim(before) == 0 else vectors.array_module(before)
    with np.errstate(divide="ignore", invalid="ignore"):
        if number == 3:
            gamma, known = after / across, (before > 0.0) & (across > 0.0)
        else:
            gamma, known = (across / before if number == 1 else xp.sqrt(after / before)), before > 0.0
        return xp.where(known, gamma, np.nan)  # type: ignore[no-any-return]


def stretch(gamma: Vector, max_gamma: float = MAX_GAMMA) -> Vector:
    """Return by how much the last step is lengthened, ``1 / (1 - gamma)`` with gamma cut to [0, max_gamma]."""
    xp = np if np.ndim(gamma) == 0 else vectors.array_module(gamma)
    return 1.0 / (1.0 - xp.clip(xp.where(xp.isnan(gamma), 0.0, gamma), 0.0, max_gamma))  # type: ignore[no-any-return]


class StaggeredAitken:
    """Every other step of an iteration lengthened by what the two say.

    After a proposal, taken or not, the next step is a plain one: two proposals never follow each other. After
    a proposal that was no good no jump is longer than half of it; the limit is doubled after one that was.
    """

    def __init__(self, number: int, groups: Groups = None, max_gamma: float = MAX_GAMMA) -> None:
        self.number, self.groups, self.max_gamma = number, groups, max_gamma
        self.previous: Vector | None = None
        self.length, self.longest = 1.0, 1.0 / (1.0 - max_gamma)

    def propose(self, w: Vector, step: Vector) -> Vector | None:
        """Return a point beyond ``w + step``, or None."""
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
        """Take note of whether the last proposal was good."""
        if taken:
            self.longest = min(2.0 * self.longest, 1.0 / (1.0 - self.max_gamma))
        else:
            self.longest = min(max(0.5 * self.length, SHORTEST_JUMP), 1.0 / (1.0 - self.max_gamma))

    def export_state(self) -> dict[str, Any]:
        """Return the longest jump and the step that the next one is compared with."""
        previous = {} if self.previous is None else {"previous_step": self.previous}
        return {"longest_jump": self.longest, **previous}

    def import_state(self, state: Mapping[str, Any], xp: Any = np) -> None:
        """Go on from an earlier run."""
        self.longest = float(state["longest_jump"])
        if "previous_step" in state:
            self.previous = xp.asarray(state["previous_step"])


#: Room for differences at first; it is doubled when they are more, up to the memory.
FIRST_ROOM = 8

#: Singular values of the normal equations below this share of the largest are taken as 0.
RCOND = 1e-12


class AndersonMixing:
    """Memory of points and steps, and what they propose."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.point: Vector | None = None
        self.step: Vector | None = None
        self.count = 0  # differences since the start; the oldest makes room, so that rows go round
        self.gram = np.zeros((0, 0))  # inner products of the rows of d_steps
        self.length = 1.0  # for logs: proposals have no length of their own

    def propose(self, w: Vector, step: Vector) -> Vector | None:
        """Take in a point and return the next one, None if nothing is known yet."""
        if self.point is None or self.step is None:
            self.d_points, self.d_steps = vectors.array_module(w).empty((2, 0, len(w)))
        else:
            row = self.count % self.memory
            self._make_room(row + 1)
            self.d_points[row] = w - self.point
            self.d_steps[row] = step - self.step
            self.count += 1
            self._fill_gram(row)
        self.point, self.step = w, step
        if not self.n_used:
            return None
        right = np.array([vectors.dot(d, step) for d in self.d_steps[: self.n_used]])
        theta = np.linalg.lstsq(self.gram[: self.n_used, : self.n_used], right, rcond=RCOND)[0]
        trial = w + step
        for row, weight in enumerate(theta.tolist()):
            trial -= weight * (self.d_points[row] + self.d_steps[row])
        return trial

    @property
    def n_used(self) -> int:
        """Differences that are there."""
        return min(self.count, self.memory)

    def judged(self, taken: bool) -> None:
        """Take note of whether the last proposal was good: nothing changes."""

    def export_state(self) -> dict[str, Any]:
        """Return everything, as `Step.state` takes it."""
        if self.point is None:
            return {}
        return {
            "last_point": self.point,
            "last_step": self.step,
            "d_points": self.d_points[: self.n_used],
            "d_steps": self.d_steps[: self.n_used],
            "differences": self.count,
        }

    def import_state(self, state: Mapping[str, Any], xp: Any = np) -> None:
        """Go on from an earlier run."""
        if "last_point" not in state:
            return
        self.point, self.step = xp.asarray(state["last_point"]), xp.asarray(state["last_step"])
        self.count = int(state["differences"])
        self.d_points, self.d_steps = xp.empty((2, 0, len(self.point)))
        self._make_room(self.n_used)
        for rows, name in ((self.d_points, "d_points"), (self.d_steps, "d_steps")):
            rows[: self.n_used] = xp.asarray(state[name])
        for row in range(self.n_used):
            self._fill_gram(row)

    def _make_room(self, n_rows: int) -> None:
        """Sets: arrays with so many rows at least."""
        room = len(self.gram)
        if n_rows <= room:
            return
        new = min(self.memory, max(n_rows, FIRST_ROOM, 2 * room))
        xp = vectors.array_module(self.d_points)
        d_points, d_steps = xp.empty((2, new, self.d_points.shape[1]))
        d_points[:room], d_steps[:room] = self.d_points, self.d_steps
        self.d_points, self.d_steps = d_points, d_steps
        self.gram = np.pad(self.gram, (0, new - room))

    def _fill_gram(self, row: int) -> None:
        for other in range(self.n_used):
            product = vectors.dot(self.d_steps[row], self.d_steps[other])
            self.gram[row, other] = self.gram[other, row] = product
