"""What on-line and mistake-driven runs on CPU threads share: weights in the core, and its clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from crfit import _native
from crfit.engines.moving_weights import EngineMovingWeights
from crfit.profile import Phases
from crfit.vectors import Vector

__all__ = ["CpuMovingWeights"]

_Core = TypeVar("_Core", _native.Online, _native.OnlineMeta, _native.Margin)


class CpuMovingWeights(EngineMovingWeights, Generic[_Core]):
    """Weights that are kept by an object of the core, ``_native``."""

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
