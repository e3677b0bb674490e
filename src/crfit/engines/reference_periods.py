"""The rule `crfit.online.Periodic` in plain NumPy: all weights, whether touched or not, at every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfit.online import Periodic
from crfit.periods import TINY, estimate, multiplier
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
        For the groups.
    layout : Layout
        Which features have a weight.
    """

    def __init__(self, rule: Periodic, dataset: Dataset, layout: Layout) -> None:
        self.rule, n = rule, layout.n_weights
        self.groups: NDArray[np.int32] = np.zeros(n, dtype=np.int32)
        self.n_groups = 1
        if rule.scope == "group":
            groups = weight_groups(dataset, layout, rule.groups)
            self.groups, self.n_groups = groups.of_weights(layout), groups.n_groups
        self.start, self.middle = np.empty(n), np.empty(n)  # weights at the begin of each half
        self.halves = np.zeros(n, dtype=np.int64)  # touched: 1 in the first half, 2 in the second, 3 both
        self.steps = np.zeros((rule.period, n))  # changes in the steps of the first half
        self.products, self.squares = (
            np.zeros(n),
            np.zeros(n),
        )  # of these with the second half's; of those
        self.forget()

    def forget(self) -> None:
        """Begin with rates as they are."""
        self.factors = np.ones(self.n_groups if self.rule.shared else len(self.start))
        self._begin_period()

    def step(self, w: Vector, g: Vector, eta: float, share: float, touched: NDArray[np.bool_]) -> None:
        """Make one step.

        Parameters
        ----------
        w : float64[n_weights]
            Sets: the weights.
        g : float64[n_weights]
            Gradient of the losses of the step's sequences.
        eta : float
            Rate of the step.
        share : float
            l2 B / N.
        touched : bool[n_weights]
            Weights whose attribute occurs.
        """
        b, k = self.rule.period, len(self.shares)
        if k == 0:
            self.start[:] = w
        if k == b:
            self.middle[:] = w
        before = w.copy()
        factors = self.factors[self.groups] if self.rule.shared else self.factors
        w -= eta * factors * (g + share * w)
        self.shares.append(eta * share)
        self.halves[touched] |= 1 if k < b else 2
        if k < b:
            self.steps[k] = w - before
        else:
            self.products += self.steps[k - b] * (w - before)
            self.squares += (w - before) ** 2
        if k + 1 == 2 * b:
            self._adapt(w)
            self._begin_period()

    def _begin_period(self) -> None:
        self.shares: list[float] = []  # eta l2 B / N of its steps
        self.halves[:] = 0
        self.products[:] = self.squares[:] = 0.0

    def _adapt(self, w: Vector) -> None:
        """Sets: the factors."""
        rule = self.rule
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
            u = estimate(rule, (self.steps**2).sum(axis=0), self.products, self.squares, w * w)
        else:
            nothing = np.abs(first) < TINY * np.maximum(1.0, np.abs(w))
            ratio = second / np.where(nothing, 1.0, first)
            ratio = np.abs(ratio) if rule.gamma == 2 else ratio
            u = np.where(nothing, rule.kappa, np.clip(ratio, -rule.kappa, rule.kappa))
        u[self.halves == 1] = 0.0
        u[self.halves == 2] = rule.kappa
        self.factors *= np.where(self.halves > 0, multiplier(rule, u), rule.alpha)

    def state(self) -> dict[str, Vector | float]:
        """Return the factors, and of the present period what concerns the weights that it touched."""
        at = np.flatnonzero(self.halves)
        state: dict[str, Any] = {"factors": self.factors.copy(), "period_shares": np.array(self.shares)}
        if self.shares:
            state |= {"period_weights": at, "period_halves": self.halves[at]}
            if self.rule.scope == "window":
                state |= {"period_steps": self.steps[:, at].ravel()}
                state |= {"period_products": self.products[at], "period_squares": self.squares[at]}
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
            The weights at that time; those that were not touched are brought back to where they began.
        """
        self._begin_period()
        self.factors[:] = state["factors"]
        self.shares = [float(share) for share in state["period_shares"]]
        if not self.shares:
            return
        b, k = self.rule.period, len(self.shares)
        factors = self.factors[self.groups] if self.rule.shared else self.factors
        at = np.asarray(state["period_weights"])
        self.halves[at] = state["period_halves"]
        back = w.copy()
        for s in range(k - 1, -1, -1):
            after = back
            back = after / (1.0 - factors * self.shares[s])
            if s < b:
                self.steps[s] = after - back
            if s == b:
                self.middle[:] = back
        self.start[:] = back
        if self.rule.scope == "window":
            self.steps[:, at] = np.reshape(state["period_steps"], (b, len(at)))
            self.products[at], self.squares[at] = state["period_products"], state["period_squares"]
        else:
            self.start[at], self.middle[at] = state["period_start"], state["period_middle"]
