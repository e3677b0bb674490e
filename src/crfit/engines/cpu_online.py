"""On-line steps on CPU threads; the arithmetic is described in ``native/online.hpp``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from crfit import _native
from crfit.engines.cpu_moving_weights import CpuMovingWeights
from crfit.engines.online import EngineOnlineRun
from crfit.online import Adaptive, Rate, Rule, Transform
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.base import SequenceIds
    from crfit.engines.cpu import CpuObjective

__all__ = ["CpuOnlineRun", "native_rule"]


def native_rule(rule: Transform | Adaptive | None) -> tuple[str, bool, float, bool]:
    """Return a rule as the core takes it: its name, whether it is U1, its parameter, whether to look it up.

    Parameters
    ----------
    rule : Transform, Adaptive or None
        A rule; the quadratic potential is none.
    """
    if isinstance(rule, Adaptive):
        return "adaptive", False, rule.epsilon, False
    if not isinstance(rule, Transform) or rule.potential == "quadratic":
        return "plain", False, 1.0, False
    return rule.potential, rule.update == "U1", rule.parameter, rule.table


class CpuOnlineRun(CpuMovingWeights[_native.Online], EngineOnlineRun):
    """Weights under way on CPU threads; neither weights nor losses depend on their number.

    Parameters
    ----------
    objective : CpuObjective
        Gives the penalty and the counters.
    w : float64[n_weights]
        Starting point, which is copied.
    rule : Rule
        What a step does with the sum of its residuals.
    core : crfit._native.Online
        The weights in the core.
    """

    def __init__(self, objective: CpuObjective, w: Vector, rule: Rule, core: _native.Online) -> None:
        self._native = core
        self._squares: Vector | None = None  # of `Adaptive`, as they were when `state` was last asked
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
