"""Mistake-driven steps on CPU threads; the kernels in ``native/margin`` describe the arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crfit import _native
from crfit.engines.cpu.online import CpuMovingWeights
from crfit.engines.margin import Arow, MarginRule, MarginRun, Mistakes, PassiveAggressive
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.cpu.objective import CpuObjective
    from crfit.engines.engine_objective import SequenceIds


class CpuMarginRun(CpuMovingWeights["_native.Margin"], MarginRun):
    """A run on CPU threads; results do not depend on their number."""

    def __init__(
        self, objective: CpuObjective, w: Vector, rule: MarginRule, data: _native.Data, layout: _native.Layout
    ) -> None:
        name, c, error_sensitive, variance = "perceptron", 1.0, True, 1.0
        if isinstance(rule, PassiveAggressive):
            name, c, error_sensitive = rule.type, float(rule.c), rule.error_sensitive
        elif isinstance(rule, Arow):
            name, c, variance = "arow", float(rule.gamma), float(rule.variance)
        self._native = _native.Margin(data, layout, objective.n_threads, name, c, error_sensitive, variance)
        super().__init__(objective, w, rule)

    def _visit(self, sequences: SequenceIds, batch: int) -> Mistakes:
        with self._core() as core:
            return Mistakes(*core.visit(sequences, batch))

    def _variances(self, out: Vector) -> None:
        with self._core() as core:
            core.get_variances(out)

    def _set_variances(self, s: Vector) -> None:
        with self._core() as core:
            core.set_variances(s)
