"""On-line steps in plain NumPy: the update as it is written, on all weights, one step after the other.

A weight is *touched* by a sequence that has its attribute, whatever the labels; transitions and boundary
weights are touched by every sequence. The penalty of weight j in the rule `Adaptive`,

    l2 w_j b_j / n_j        b_j, n_j the sequences of the step and of the dataset that touch it,

adds up to l2 w_j over a pass; so does that of `Periodic`, which takes the sequences of a step one by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfit.bregman import transformed
from crfit.engines.online import EngineOnlineRun
from crfit.engines.reference_meta import ReferenceMeta
from crfit.engines.reference_periods import ReferencePeriods
from crfit.engines.score_tables import touch_counts
from crfit.online import Adaptive, MetaDescent, Periodic, Rate, Rule, Transform
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.base import SequenceIds
    from crfit.engines.reference import ReferenceObjective

__all__ = ["ReferenceOnlineRun"]


class ReferenceOnlineRun(EngineOnlineRun):
    """Weights under way in NumPy; any order.

    Parameters
    ----------
    objective : ReferenceObjective
        Gives losses, gradients and the counters.
    w : float64[n_weights]
        Starting point, which is copied.
    rule : Rule
        What a step does with the sum of its residuals.
    """

    _objective: ReferenceObjective

    def __init__(self, objective: ReferenceObjective, w: Vector, rule: Rule) -> None:
        self._w = np.empty(objective.n_weights)
        self._g = np.empty(objective.n_weights)
        self._total = np.zeros(objective.n_weights)
        self._h = np.zeros(objective.n_weights)
        self._l2 = objective.penalty.strengths(objective.l2)
        if isinstance(rule, Adaptive):
            self._touched_by = touch_counts(objective.dataset, objective.layout)
        self._meta = ReferenceMeta(objective, rule) if isinstance(rule, MetaDescent) else None
        self._periods: ReferencePeriods | None = None
        if isinstance(rule, Periodic):
            self._periods = ReferencePeriods(rule, objective.dataset, objective.layout, self._l2)
        super().__init__(objective, w, rule)

    def _visit(self, sequences: SequenceIds, rate: Rate, k: int, batch: int) -> float:
        objective, w, total = self._objective, self._w, 0.0
        n, l2 = objective.n_sequences, objective.l2
        for begin in range(0, len(sequences), batch):
            part = sequences[begin : begin + batch]
            total += objective._loss_and_grad(w, self._g, part, 0.0)
            eta = rate.at(k + begin, n, l2)
            if isinstance(self._rule, Adaptive):
                self._adaptive_step(part, eta, self._rule.epsilon)
            elif self._meta is not None:
                self._meta.step(w, self._g, part, eta)
            elif self._periods is not None:
                self._periods.step(w, eta, self._one_by_one(part))
            else:
                w *= 1.0 - eta * self._l2 * len(part) / n
                rule = self._rule
                w -= eta * (transformed(rule, self._g) if isinstance(rule, Transform) else self._g)
            if self._summing:
                self._total += w
            if not math.isfinite(total):
                break
        return total

    def _one_by_one(self, part: SequenceIds) -> list[tuple[Vector, NDArray[np.bool_]]]:
        """Of each sequence the gradient at the present weights, and which weights it touches."""
        objective, found = self._objective, []
        for i in range(len(part)):
            g = np.empty(objective.n_weights)
            objective._loss_and_grad(self._w, g, part[i : i + 1], 0.0)
            found.append((g, touch_counts(objective.dataset, objective.layout, part[i : i + 1].tolist()) > 0))
        return found

    def _adaptive_step(self, part: SequenceIds, eta: float, epsilon: float) -> None:
        """Sets: the touched weights and their sums of squares."""
        objective = self._objective
        touches = touch_counts(objective.dataset, objective.layout, part.tolist())
        at = np.flatnonzero(touches)
        u = self._g[at] + self._l2[at] * touches[at] * self._w[at] / self._touched_by[at]
        self._h[at] += u * u
        self._w[at] -= eta * u / (np.sqrt(self._h[at]) + epsilon)

    def _loss(self, sequences: SequenceIds) -> float:
        return self._objective._loss_on(self._w, sequences)

    def _set_weights(self, w: Vector) -> None:
        self._w[:] = w
        self._h[:] = 0.0
        if self._meta is not None:
            self._meta.restart()
        if self._periods is not None:
            self._periods.forget()

    def _weights(self, out: Vector) -> float:
        out[:] = self._w
        return float(out @ out)

    def _begin_sum(self, total: Vector | None) -> None:
        self._total[:] = 0.0 if total is None else total

    def _weight_sum(self, out: Vector) -> None:
        out[:] = self._total

    def _state(self) -> dict[str, Vector | float]:
        if self._meta is not None:
            return {"gains": self._meta.gains.copy(), "derivatives": self._meta.v.copy()}
        if self._periods is not None:
            return self._periods.state()
        return {"squares": self._h.copy()} if isinstance(self._rule, Adaptive) else {}

    def _restore(self, state: Mapping[str, Any]) -> None:
        if self._periods is not None:
            self._periods.restore(state, self._w)
        if isinstance(self._rule, Adaptive):
            self._h[:] = self._vector_of(state, "squares")
        if self._meta is not None:
            self._meta.gains[:] = self._vector_of(state, "gains")
            self._meta.v[:] = self._vector_of(state, "derivatives")
