"""Online steps on CPU threads; the kernels in ``native/online`` describe the arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from crfit import _native
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
from crfit.engines.profile import Phases
from crfit.engines.weight_groups import weight_groups
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.engines.cpu.objective import CpuObjective
    from crfit.engines.engine_objective import SequenceIds
    from crfit.layout import Layout

# Quoted, so typing's caches, which outlive the module, hold no native types.
_Core = TypeVar("_Core", "_native.Online", "_native.OnlineMeta", "_native.Margin")


class CpuMovingWeights(MovingWeights, Generic[_Core]):
    """Weights stored in an object of the native core."""

    _native: _Core

    @contextmanager
    def _core(self) -> Iterator[_Core]:
        """The core. Sets: the objective's phases."""
        before = Phases(*self._native.phase_seconds())
        yield self._native
        self._objective.phases += Phases(*self._native.phase_seconds()) - before

    def _set_weights(self, w: Vector) -> None:
        with self._core() as core:
            core.set(w)

    def _weights(self, out: Vector) -> float:
        with self._core() as core:
            return core.get(out)

    def _begin_sum(self, total: Vector | None) -> None:
        with self._core() as core:
            core.begin_sum(total)

    def _weight_sum(self, out: Vector) -> None:
        with self._core() as core:
            core.get_sum(out)


def native_rule(rule: Transform | Adaptive | None) -> tuple[str, bool, float, bool]:
    """A rule in the form of the core: name, whether it is U1, parameter, whether to use a table."""
    if isinstance(rule, Adaptive):
        return "adaptive", False, rule.epsilon, False
    if not isinstance(rule, Transform) or rule.potential == "quadratic":
        return "plain", False, 1.0, False
    return rule.potential, rule.update == "U1", rule.parameter, rule.table


class CpuOnlineRun(CpuMovingWeights["_native.Online"], OnlineRun):
    """Plain, transformed and adaptive steps on CPU threads; results do not depend on their number."""

    def __init__(self, objective: CpuObjective, w: Vector, rule: Rule, core: _native.Online) -> None:
        self._native = core
        self._squares: Vector | None = None  # of `Adaptive`, at the last call of `state`
        super().__init__(objective, w, rule)

    def _visit(self, sequences: SequenceIds, rate: Rate, k: int, batch: int) -> float:
        with self._core() as core:
            return core.visit(sequences, batch, rate.schedule, rate.eta0, rate.decay, self._objective.l2, k)

    def _loss(self, sequences: SequenceIds) -> float:
        with self._core() as core:
            return core.loss(sequences)

    def _state(self) -> dict[str, Vector | float]:
        if not isinstance(self._rule, Adaptive):
            return {}
        if self._squares is None:
            self._squares = np.empty(self._objective.n_weights)
        with self._core() as core:
            core.get_squares(self._squares)
        return {"squares": self._squares}

    def _restore(self, state: Mapping[str, Any]) -> None:
        if isinstance(self._rule, Adaptive):
            with self._core() as core:
                core.set_squares(self._vector_of(state, "squares"))


class CpuMetaRun(CpuMovingWeights["_native.OnlineMeta"], OnlineRun):
    """Stochastic meta-descent on CPU threads; results do not depend on their number."""

    def __init__(
        self,
        objective: CpuObjective,
        w: Vector,
        rule: MetaDescent,
        data: _native.Data,
        layout: _native.Layout,
    ) -> None:
        self._native = _native.OnlineMeta(data, layout, rule.meta_rate, rule.memory, objective.n_threads)
        self._gains, self._derivatives = np.ones(objective.n_weights), np.zeros(objective.n_weights)
        super().__init__(objective, w, rule)

    def _visit(self, sequences: SequenceIds, rate: Rate, k: int, batch: int) -> float:
        with self._core() as core:
            return core.visit(sequences, batch, rate.eta0, self._objective.l2)

    def _loss(self, sequences: SequenceIds) -> float:
        with self._core() as core:
            return core.loss(sequences)

    def _state(self) -> dict[str, Vector | float]:
        with self._core() as core:
            core.get_state(self._gains, self._derivatives)
        return {"gains": self._gains, "derivatives": self._derivatives}

    def _restore(self, state: Mapping[str, Any]) -> None:
        with self._core() as core:
            core.set_state(self._vector_of(state, "gains"), self._vector_of(state, "derivatives"))


def native_periods(
    rule: Periodic, dataset: Dataset, layout: Layout
) -> tuple[str, float, float, float, int, int, NDArray[np.int32], int]:
    """A rule in the form of the core: scope, constants, groups of attributes, n-grams and boundaries."""
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
    """Periodic step sizes on CPU threads."""

    _rule: Periodic

    def _state(self) -> dict[str, Vector | float]:
        with self._core() as core:
            n_factors, steps_made, n_touched = core.period_sizes()
            factors, period = np.empty(n_factors), self._arrays(n_touched)
            core.get_period(factors, *period.values())
        state: dict[str, Any] = {"factors": factors, "period_steps_made": float(steps_made)}
        return state | {name: array for name, array in period.items() if array.size > 0}

    def _restore(self, state: Mapping[str, Any]) -> None:
        period = self._arrays(len(state.get("period_weights", ())))
        for name, array in period.items():
            array[:] = state.get(name, 0)
        factors = np.array(state["factors"], dtype=np.float64)
        with self._core() as core:
            core.set_period(int(state["period_steps_made"]), factors, *period.values())

    def _arrays(self, n: int) -> dict[str, NDArray[Any]]:
        """State of the `n` weights touched in the current period, in the core's order."""
        n_window = n if self._rule.scope == "window" else 0
        return {
            "period_weights": np.empty(n, np.int64),
            "period_halves": np.empty(n, np.int64),
            "period_start": np.empty(n - n_window),
            "period_middle": np.empty(n - n_window),
            "period_changes": np.empty(2 * n_window * self._rule.period),
        }
