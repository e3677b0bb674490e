"""Periodic step sizes on CPU threads; the arithmetic is described in ``native/online_periods.hpp``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfit.engines.cpu_online import CpuOnlineRun
from crfit.online import Periodic
from crfit.vectors import Vector
from crfit.weight_groups import weight_groups

if TYPE_CHECKING:
    from crfit.dataset import Dataset
    from crfit.layout import Layout

__all__ = ["CpuPeriodicRun", "native_periods"]


def native_periods(
    rule: Periodic, dataset: Dataset, layout: Layout
) -> tuple[str, float, float, float, int, int, NDArray[np.int32], int]:
    """Return a rule as the core takes it: scope, constants, groups of attributes, of n-grams, of boundaries.

    Parameters
    ----------
    rule : Periodic
        The rule.
    dataset : Dataset
        For the groups.
    layout : Layout
        Which features have a weight.
    """
    groups, n_groups = np.zeros(0, dtype=np.int32), 0
    if rule.scope == "global":
        groups, n_groups = np.zeros(layout.n_attributes + layout.n_edge_attributes + 2, dtype=np.int32), 1
    elif rule.scope == "group":
        found = weight_groups(dataset, layout, rule.groups)
        labels = np.array([found.transitions, found.boundary], dtype=np.int32)
        groups = np.concatenate([found.attributes, found.edge_attributes, labels])
        n_groups = found.n_groups
    scope = "shared" if rule.shared else rule.scope
    return scope, rule.alpha, rule.beta, rule.kappa, rule.gamma, rule.period, groups, n_groups


class CpuPeriodicRun(CpuOnlineRun):
    """Weights under way with periodic step sizes; see `CpuOnlineRun`."""

    _rule: Periodic

    def _state(self) -> dict[str, Vector | float]:
        with self._core() as core:
            n_factors, n_steps, n_touched = core.period_sizes()
            period = self._arrays(n_touched)
            factors, shares = np.empty(n_factors), np.empty(n_steps)
            core.get_period(factors, shares, *period.values())
        state: dict[str, Any] = {"factors": factors, "period_shares": shares}
        return state | {name: array for name, array in period.items() if n_steps > 0 and array.size > 0}

    def _restore(self, state: Mapping[str, Any]) -> None:
        touched = np.asarray(state.get("period_weights", ()), dtype=np.int64)
        period = self._arrays(len(touched))
        for name, array in period.items():
            if name in state and array.size > 0:
                array[:] = state[name]
            else:
                array[:] = 0
        factors, shares = (np.array(state[name], dtype=np.float64) for name in ("factors", "period_shares"))
        with self._core() as core:
            core.set_period(factors, shares, *period.values())

    def _arrays(self, n: int) -> dict[str, NDArray[Any]]:
        """What is known about `n` weights that the present period touched, in the core's order."""
        n_window = n if self._rule.scope == "window" else 0
        sizes = {
            "period_weights": n,
            "period_halves": n,
            "period_start": n - n_window,
            "period_middle": n - n_window,
            "period_steps": n_window * self._rule.period,
            "period_products": n_window,
            "period_squares": n_window,
        }
        types = {"period_weights": np.int64, "period_halves": np.int64}
        return {name: np.empty(size, types.get(name, np.float64)) for name, size in sizes.items()}
