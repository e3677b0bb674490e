"""The rule `crfit.online.Periodic` in plain NumPy: all weights at every step, as it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfit.engines.score_tables import touch_counts
from crfit.online import Periodic
from crfit.periods import estimate, estimate_of_weights, multiplier
from crfit.vectors import Vector
from crfit.weight_groups import weight_groups

if TYPE_CHECKING:
    from crfit.dataset import Dataset
    from crfit.layout import Layout

__all__ = ["ReferencePeriods"]


class ReferencePeriods:
    """The factors of the rates, and what is known about the present period.

    Parameters
    ----------
    rule : Periodic
        The rule.
    dataset : Dataset
        For the groups, and for how many sequences touch a weight.
    layout : Layout
        Which features have a weight.
    l2 : float64[n_weights]
        Strength of the penalty of each weight.
    """

    def __init__(self, rule: Periodic, dataset: Dataset, layout: Layout, l2: Vector) -> None:
        self.rule, n = rule, layout.n_weights
        self.penalties = l2 / np.maximum(touch_counts(dataset, layout), 1)  # of a weight, for each touch
        self.groups: NDArray[np.int32] = np.zeros(n, dtype=np.int32)
        self.n_groups = 1
        if rule.scope == "group":
            groups = weight_groups(dataset, layout, rule.groups)
            self.groups, self.n_groups = groups.of_weights(layout), groups.n_groups
        self.start, self.middle = np.empty(n), np.empty(n)  # weights at the begin of each half
        self.halves = np.zeros(n, dtype=np.int64)  # touched: 1 in the first half, 2 in the second, 3 both
        self.changes = np.zeros((2 * rule.period if rule.scope == "window" else 0, n))  # in its steps
        self.forget()

    def forget(self) -> None:
        """Begin with rates as they are."""
        self.factors = np.ones(self.n_groups if self.rule.shared else len(self.start))
        self._begin_period()

    def step(self, w: Vector, eta: float, parts: Iterable[tuple[Vector, NDArray[np.bool_]]]) -> None:
        """Make one step: one sequence after the other.

        Parameters
        ----------
        w : float64[n_weights]
            Sets: the weights.
        eta : float
            Rate of the step.
        parts : iterable of (float64[n_weights], bool[n_weights])
            Of each sequence the gradient of its loss at the weights before the step, and whether it has the
            weight's attribute.
        """
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
        """Return the factors, and of the present period what concerns the weights that it touched."""
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
        """Go on from what `state` gave.

        Parameters
        ----------
        state : mapping
            Holds what `state` gave.
        w : float64[n_weights]
            The weights at that time; those that were not touched have not moved.
        """
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
