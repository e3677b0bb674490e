"""Online steps in plain NumPy: the formulas of `crfit.engines.online`, on all weights.

A sequence *touches* the weights of its attributes, whatever the labels, and all transition and boundary
weights. The penalty of weight j in the rule `Adaptive`,

    l2 w_j b_j / n_j        b_j, n_j the number of sequences of the step and of the dataset that touch it,

sums to l2 w_j over a pass. The same holds for `Periodic`, which applies the sequences of a step one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.engines.bregman import transformed
from crfit.engines.online import (
    Adaptive,
    MetaDescent,
    MovingWeights,
    OnlineRun,
    Periodic,
    Rate,
    Rule,
    Transform,
)
from crfit.engines.reference.lattice import touch_counts
from crfit.engines.weight_groups import weight_groups
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.engines.engine_objective import SequenceIds
    from crfit.engines.reference.objective import ReferenceObjective
    from crfit.layout import Layout


class ReferenceMeta:
    """State of `MetaDescent`: gains p and derivatives v, float64[n_weights] each."""

    def __init__(self, objective: ReferenceObjective, rule: MetaDescent) -> None:
        self._objective, self._rule = objective, rule
        self.gains, self.v = np.ones(objective.n_weights), np.zeros(objective.n_weights)
        self._product = np.empty(objective.n_weights)
        self._l2 = objective.penalty.strengths(objective.l2)

    def restart(self) -> None:
        """Reset all rates to the initial one."""
        self.gains[:], self.v[:] = 1.0, 0.0

    def step(self, w: Vector, u: Vector, part: SequenceIds, eta0: float) -> None:
        """Step on sequences with residuals u (expected minus observed). Sets: `w`, `gains`, `v`."""
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


#: `Periodic`: changes |D1| below this times max(1, |w|) are negligible.
TINY = 1e-12


def estimate(
    rule: Periodic, s11: ArrayLike, s12: ArrayLike, s22: ArrayLike, square: ArrayLike
) -> NDArray[np.float64]:
    """gamma, clipped to [-kappa, kappa], from D1.D1, D1.D2, D2.D2 and w.w; elementwise."""
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
    """The same for single weights, whose gamma is the ratio of the changes D2/D1, float64[n]."""
    nothing = np.abs(first) < TINY * np.maximum(1.0, np.abs(w))
    ratio = second / np.where(nothing, 1.0, first)
    u = np.clip(np.abs(ratio) if rule.gamma == 2 else ratio, -rule.kappa, rule.kappa)
    return np.where(nothing, rule.kappa, u)


def multiplier(rule: Periodic, u: ArrayLike) -> NDArray[np.float64]:
    """Factor of a rate: linear from beta at u = -kappa to alpha at u = kappa."""
    half = 0.5 * (rule.alpha - rule.beta)
    return 0.5 * (rule.alpha + rule.beta) + half / rule.kappa * np.asarray(u, dtype=np.float64)


class ReferencePeriods:
    """State of `Periodic`: the factors of the rates, and the current period so far."""

    def __init__(self, rule: Periodic, dataset: Dataset, layout: Layout, l2: Vector) -> None:
        self.rule, n = rule, layout.n_weights
        self.penalties = l2 / np.maximum(touch_counts(dataset, layout), 1)  # per touch
        self.groups: NDArray[np.int32] = np.zeros(n, dtype=np.int32)
        self.n_groups = 1
        if rule.scope == "group":
            groups = weight_groups(dataset, layout, rule.groups)
            self.groups, self.n_groups = groups.of_weights(layout), groups.n_groups
        self.start, self.middle = np.empty(n), np.empty(n)  # weights at the start of each half
        self.halves = np.zeros(n, dtype=np.int64)  # touched in the first half (1), the second (2), both (3)
        self.changes = np.zeros((2 * rule.period if rule.scope == "window" else 0, n))  # per step
        self.forget()

    def forget(self) -> None:
        """Reset all factors to 1."""
        self.factors = np.ones(self.n_groups if self.rule.shared else len(self.start))
        self._begin_period()

    def step(self, w: Vector, eta: float, parts: Iterable[tuple[Vector, NDArray[np.bool_]]]) -> None:
        """Step on the sequences in turn; a part is the gradient before the step and the touched weights."""
        b, k = self.rule.period, self.steps_made
        if k == 0:
            self.start[:] = w
        if k == b:
            self.middle[:] = w
        before = w.copy()
        rates = eta * (self.factors[self.groups] if self.rule.shared else self.factors)
        for g, at in parts:
            w[at] -= rates[at] * (g[at] + self.penalties[at] * w[at])
            self.halves[at] |= 1 if k < b else 2
        if self.rule.scope == "window":
            self.changes[k] = w - before
        self.steps_made += 1
        if self.steps_made == 2 * b:
            self._adapt(w)
            self._begin_period()

    def _begin_period(self) -> None:
        self.steps_made = 0
        self.halves[:] = 0
        self.changes[:] = 0.0

    def _adapt(self, w: Vector) -> None:
        """Sets: the factors."""
        rule, b = self.rule, self.rule.period
        first, second = self.middle - self.start, w - self.middle
        if rule.shared:
            seen, n = self.halves == 3, self.n_groups
            sums = [
                np.bincount(self.groups[seen], values[seen], n)
                for values in (first * first, first * second, second * second, w * w)
            ]
            self.factors *= multiplier(rule, estimate(rule, *sums))
            return
        if rule.scope == "window":
            d1, d2 = self.changes[:b], self.changes[b:]
            s11, s12, s22 = ((x * y).sum(axis=0) for x, y in ((d1, d1), (d1, d2), (d2, d2)))
            u = estimate(rule, s11, s12, s22, w * w)
        else:
            u = estimate_of_weights(rule, w, first, second)
        u[self.halves == 1] = 0.0
        u[self.halves == 2] = rule.kappa
        self.factors *= np.where(self.halves > 0, multiplier(rule, u), rule.alpha)

    def state(self) -> dict[str, Vector | float]:
        """Return the factors, and the current period for the weights that it touched."""
        at = np.flatnonzero(self.halves)
        state: dict[str, Any] = {"factors": self.factors.copy(), "period_steps_made": float(self.steps_made)}
        if self.steps_made > 0:
            state |= {"period_weights": at, "period_halves": self.halves[at]}
            if self.rule.scope == "window":
                state |= {"period_changes": self.changes[:, at].ravel()}
            else:
                state |= {"period_start": self.start[at], "period_middle": self.middle[at]}
        return state

    def restore(self, state: Mapping[str, Any], w: Vector) -> None:
        """Restore a result of `state`; `w` are the weights at that time."""
        self._begin_period()
        self.factors[:] = state["factors"]
        self.steps_made = int(state["period_steps_made"])
        if self.steps_made == 0:
            return
        at = np.asarray(state["period_weights"])
        self.halves[at] = state["period_halves"]
        self.start[:] = self.middle[:] = w
        if self.rule.scope == "window":
            self.changes[:, at] = np.reshape(state["period_changes"], (2 * self.rule.period, len(at)))
        else:
            self.start[at], self.middle[at] = state["period_start"], state["period_middle"]


class ReferenceMovingWeights(MovingWeights):
    """A run's weights in NumPy, and their sum over the steps."""

    _objective: ReferenceObjective

    def __init__(self, objective: ReferenceObjective, w: Vector) -> None:
        self._w, self._total = np.empty(objective.n_weights), np.zeros(objective.n_weights)
        super().__init__(objective, w)

    def _set_weights(self, w: Vector) -> None:
        self._w[:] = w

    def _weights(self, out: Vector) -> float:
        out[:] = self._w
        return float(out @ out)

    def _begin_sum(self, total: Vector | None) -> None:
        self._total[:] = 0.0 if total is None else total

    def _weight_sum(self, out: Vector) -> None:
        out[:] = self._total


class ReferenceOnlineRun(OnlineRun, ReferenceMovingWeights):
    """A run in NumPy; any order."""

    def __init__(self, objective: ReferenceObjective, w: Vector, rule: Rule) -> None:
        self._g, self._h = np.empty(objective.n_weights), np.zeros(objective.n_weights)
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
        """For each sequence, the gradient at the current weights and the weights it touches."""
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
        super()._set_weights(w)
        self._h[:] = 0.0
        if self._meta is not None:
            self._meta.restart()
        if self._periods is not None:
            self._periods.forget()

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
