"""Stochastic meta-descent on CPU threads; the arithmetic is described in ``native/online_meta.hpp``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from crfit import _native
from crfit.engines.cpu_moving_weights import CpuMovingWeights
from crfit.engines.online import EngineOnlineRun
from crfit.online import MetaDescent, Rate
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.base import SequenceIds
    from crfit.engines.cpu import CpuObjective

__all__ = ["CpuMetaRun"]


class CpuMetaRun(CpuMovingWeights[_native.OnlineMeta], EngineOnlineRun):
    """Weights under way on CPU threads; neither weights nor losses depend on their number.

    Parameters
    ----------
    objective : CpuObjective
        Gives the penalty and the counters.
    w : float64[n_weights]
        Starting point, which is copied.
    rule : MetaDescent
        The constants.
    data : crfit._native.Data
        The sequences in the core.
    layout : crfit._native.Layout
        Which features have a weight.
    """

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
