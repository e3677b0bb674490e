"""The metric of conjugate gradients: none, a fixed mixture, or one that follows the run.

    M = (1 - mix) l2 + mix diag(H)

LIBLINEAR's mixture, with l2 in the place of its 1. Within some per cent of the optimum the full diagonal is
the right scaling: a dozen products do what takes hundreds without it. Nearer to it the products that are left
are about directions in which the diagonal says little, and a weaker mixture needs fewer of them. How near the
optimum is, the gain of the last step tells: with gain = (F_{k-1} - F_k) / F_k

    mix = 1 after the start and while gain > 1e-2, 0.1 while gain > 1e-5, 0.01 below

The diagonal is computed again, at the price of a pass, while gain > 1e-3; below that it has settled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from crfit.vectors import NONE_FREE, Vector

if TYPE_CHECKING:
    from crfit.engines.objective import Objective

__all__ = ["AdaptiveMetric", "FixedMetric", "Metric", "NoMetric", "mixed"]

#: Smallest entry of a metric, relative to its largest, where no penalty keeps it from zero.
FLOOR = 1e-10
#: (gain above, mix), the first that holds.
MIXES = (1e-2, 1.0), (1e-5, 0.1), (-math.inf, 0.01)
#: Gain below which the diagonal of an earlier point will do.
SETTLED = 1e-3


def mixed(diagonal: Vector, mix: float, l2: float, out: Vector, free: slice = NONE_FREE) -> Vector:
    """Set ``out = (1 - mix) l2 + mix diagonal`` and return it.

    A weight whose feature has no variance may have no curvature without a penalty, and would get 0: entries
    without one are kept above 1e-10 of the largest.
    """
    out[:] = diagonal
    out *= mix
    unbounded = out
    if l2 > 0.0:
        out += (1.0 - mix) * l2
        unbounded = out[free]
    if len(unbounded):
        largest = float(out.max())
        floor = FLOOR * largest if largest > 0.0 else 1.0
        unbounded[unbounded < floor] = floor
    return out


class Metric(Protocol):
    """The metric for the next step."""

    #: Share of the diagonal in the last one.
    mix: float
    #: What a resume needs, if anything.
    diagonal: Vector | None

    def at(self, objective: Objective, gain: float) -> Vector | None:
        """Return the metric at the pinned point, None for the identity."""


class NoMetric:
    """The identity."""

    mix = 0.0
    diagonal: Vector | None = None

    def at(self, objective: Objective, gain: float) -> None:
        """Return None."""
        return


class FixedMetric:
    """A fixed mixture with the diagonal at each point."""

    diagonal: Vector | None = None

    def __init__(self, mix: float) -> None:
        self.mix = mix

    def at(self, objective: Objective, gain: float) -> Vector:
        """Return the metric at the pinned point; one pass."""
        diagonal = objective.hessian_diagonal()
        return mixed(diagonal, self.mix, objective.l2, diagonal, objective.free)


class AdaptiveMetric:
    """A mixture that gets weaker as the optimum gets nearer."""

    def __init__(self, diagonal: Vector | None = None) -> None:
        self.mix = math.nan
        self.diagonal = diagonal
        self._metric: Vector | None = None

    def at(self, objective: Objective, gain: float) -> Vector:
        """Return the metric for the pinned point; a pass where the diagonal is computed again."""
        mix = next(mix for bound, mix in MIXES if gain > bound)
        diagonal = self.diagonal
        fresh = diagonal is None or gain > SETTLED
        if diagonal is None or fresh:
            diagonal = self.diagonal = objective.hessian_diagonal()
        if self._metric is None or fresh or mix != self.mix:
            if self._metric is None:
                self._metric = objective.xp.empty_like(diagonal)
            mixed(diagonal, mix, objective.l2, self._metric, objective.free)
        self.mix = mix
        return self._metric
