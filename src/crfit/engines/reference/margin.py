"""Mistake-driven steps in plain NumPy: the formulas of `crfit.engines.margin`, on all weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crfit.engines.margin import Arow, MarginRule, MarginRun, Mistakes, PassiveAggressive, Perceptron
from crfit.engines.reference.decoding import best_path
from crfit.engines.reference.lattice import ScoreTables, Table, WeightSums, meeting, path_score
from crfit.engines.reference.online import ReferenceMovingWeights
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.engine_objective import SequenceIds
    from crfit.engines.reference.objective import ReferenceObjective


class _Step(NamedTuple):
    """Sums over the sequences of a step, multiplied by c_i unless noted."""

    delta: Vector
    miss: float  # score(y^) - score(y)
    shares: float  # d/T
    n_wrong: int  # d, not times c_i
    weight: float  # mean of c_i over the wrong labels
    n_sequences: int  # with a wrong label


class ReferenceMarginRun(MarginRun, ReferenceMovingWeights):
    """A run in NumPy; any order."""

    def __init__(self, objective: ReferenceObjective, w: Vector, rule: MarginRule) -> None:
        self._s = np.empty(objective.n_weights)
        super().__init__(objective, w, rule)

    def _visit(self, sequences: SequenceIds, batch: int) -> Mistakes:
        loss, n_wrong = 0.0, 0
        for begin in range(0, len(sequences), batch):
            step = self._decoded(sequences[begin : begin + batch])
            n_wrong += step.n_sequences
            if step.n_sequences > 0:
                loss += self._learn(step)
            if self._summing:
                self._total += self._w
            if not math.isfinite(loss):
                break
        return Mistakes(loss, n_wrong)

    def _decoded(self, sequences: SequenceIds) -> _Step:
        """Compare the best paths at the current weights with the given labels."""
        objective, layout = self._objective, self._objective.layout
        scores = ScoreTables(objective.dataset, layout, self._w)
        sums = WeightSums(objective.dataset, layout)
        miss = shares = weighted = 0.0
        n_wrong = n_sequences = 0
        for i in sequences.tolist():
            psi, labels, factor = scores(i), objective._labels[i], objective.factor(i)
            best, top = best_path(psi, layout.order)
            d = int((best != labels).sum())
            if d == 0:
                continue
            difference: list[Table] = [np.zeros_like(table) for table in psi]
            for t, table in enumerate(difference):
                table[meeting(labels, t, table)] += 1.0
                table[meeting(best, t, table)] -= 1.0
            sums.add(i, difference, factor)
            miss += factor * (top - path_score(psi, labels))
            shares += factor * d / len(labels)
            weighted += factor * d
            n_wrong += d
            n_sequences += 1
        return _Step(sums.sums, miss, shares, n_wrong, weighted / max(1, n_wrong), n_sequences)

    def _learn(self, step: _Step) -> float:
        """Change the weights; return the loss."""
        rule, delta, changes = self._rule, step.delta, bool(step.delta.any())
        if isinstance(rule, Perceptron):
            self._w += delta
            return step.shares
        if isinstance(rule, PassiveAggressive):
            loss = step.miss + step.weight * rule.margin(step.n_wrong)
            if changes:
                self._w += rule.tau(loss, float(delta @ delta)) * delta
            return loss
        loss = step.miss + step.weight * step.n_wrong
        if changes:
            self._w += loss / (rule.gamma + float(delta @ (self._s * delta))) * self._s * delta
            self._s /= 1.0 + self._s * delta * delta / rule.gamma  # 1/s <- 1/s + delta^2/gamma
        return loss

    def _set_weights(self, w: Vector) -> None:
        super()._set_weights(w)
        self._s[:] = self._rule.variance if isinstance(self._rule, Arow) else 0.0

    def _variances(self, out: Vector) -> None:
        out[:] = self._s

    def _set_variances(self, s: Vector) -> None:
        self._s[:] = s
