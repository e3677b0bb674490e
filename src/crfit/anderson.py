"""Anderson acceleration of a fixed-point iteration ``w <- M(w)`` [1, 2].

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
from typing import Any

import numpy as np

from crfit import vectors
from crfit.vectors import Vector

__all__ = ["AndersonMixing"]

#: Singular values of the normal equations below this share of the largest are taken as 0.
RCOND = 1e-12


class AndersonMixing:
    """Memory of points and steps, and what they propose.

    Parameters
    ----------
    memory : int
        Differences kept; each takes 16 bytes per weight.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.point: Vector | None = None
        self.step: Vector | None = None
        self.count = 0  # differences since the start; the oldest makes room, so that rows go round
        self.gram = np.zeros((memory, memory))
        self.length = 1.0  # for logs: proposals have no length of their own

    def propose(self, w: Vector, step: Vector) -> Vector | None:
        """Take in a point and return the next one, None if nothing is known yet.

        Parameters
        ----------
        w, step : float64[n_weights]
            The point and ``M(w) - w`` there; kept, not copied.
        """
        if self.point is None or self.step is None:
            xp = vectors.array_module(w)
            self.d_points, self.d_steps = xp.empty((2, self.memory, len(w)))
        else:
            row = self.count % self.memory
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
        """Take note of whether the last proposal was good: nothing changes.

        Parameters
        ----------
        taken : bool
            Whether it was taken.
        """

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
        """Go on from an earlier run.

        Parameters
        ----------
        state : mapping
            From `export_state` of a memory of the same size.
        xp : module
            The array library of the vectors.
        """
        if "last_point" not in state:
            return
        self.point, self.step = xp.asarray(state["last_point"]), xp.asarray(state["last_step"])
        self.count = int(state["differences"])
        self.d_points, self.d_steps = xp.empty((2, self.memory, len(self.point)))
        for rows, name in ((self.d_points, "d_points"), (self.d_steps, "d_steps")):
            rows[: self.n_used] = xp.asarray(state[name])
        for row in range(self.n_used):
            self._fill_gram(row)

    def _fill_gram(self, row: int) -> None:
        for other in range(self.n_used):
            product = vectors.dot(self.d_steps[row], self.d_steps[other])
            self.gram[row, other] = self.gram[other, row] = product
