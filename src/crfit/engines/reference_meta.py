"""Stochastic meta-descent in plain NumPy, on all weights: what `crfit.online.MetaDescent` says, as written.

A weight is touched by a sequence that has its attribute; transitions and boundary weights always are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crfit.engines.score_tables import touch_counts
from crfit.online import MetaDescent
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.base import SequenceIds
    from crfit.engines.reference import ReferenceObjective

__all__ = ["ReferenceMeta"]


class ReferenceMeta:
    """What the rule keeps for each weight.

    Parameters
    ----------
    objective : ReferenceObjective
        Gives Hessian products and the penalty.
    rule : MetaDescent
        The constants.

    Attributes
    ----------
    gains : float64[n_weights]
        Rates in units of the first one.
    v : float64[n_weights]
        Derivatives of the weights by the logarithms of the rates, exponentially averaged.
    """

    def __init__(self, objective: ReferenceObjective, rule: MetaDescent) -> None:
        self._objective, self._rule = objective, rule
        self.gains, self.v = np.ones(objective.n_weights), np.zeros(objective.n_weights)
        self._product = np.empty(objective.n_weights)
        self._l2 = objective.penalty.strengths(objective.l2)

    def restart(self) -> None:
        """Go back to rates that are all the first one."""
        self.gains[:], self.v[:] = 1.0, 0.0

    def step(self, w: Vector, u: Vector, part: SequenceIds, eta0: float) -> None:
        """Make a step. Sets: `w`, `gains`, `v`.

        Parameters
        ----------
        w : float64[n_weights]
            The weights.
        u : float64[n_weights]
            Expected minus observed features of the step's sequences.
        part : int64[n]
            These sequences.
        eta0 : float
            The first rate.
        """
        objective, rule = self._objective, self._rule
        share = self._l2 * len(part) / objective.n_sequences
        objective._hvp(w, self.v, self._product, 0.0, part)
        touched = touch_counts(objective.dataset, objective.layout, part.tolist()) > 0

        other = ~touched
        w[other] *= 1.0 - eta0 * self.gains[other] * share[other]
        self.v[other] *= rule.memory

        share = share[touched]
        g = u[touched] + share * w[touched]
        v = self.v[touched]
        product = self._product[touched] + share * v
        self.gains[touched] *= np.maximum(0.5, 1.0 - rule.meta_rate * g * v)
        eta = eta0 * self.gains[touched]
        w[touched] -= eta * g
        self.v[touched] = rule.memory * v - eta * (g + rule.memory * product)
