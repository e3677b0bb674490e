"""The dual in native code, order 1; the kernels in ``native/dual`` describe the steps.

Steps run one after another on one thread. Potentials and marginals (16 bytes together) are stored per
position and label, and per sequence and label pair: those with a weight if they are few, else all of them
(per position and label pair with edge attributes).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfit import _native, vectors
from crfit.engines.dual import Epoch, EtaRule, checked_arrays
from crfit.engines.profile import Phases
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.cpu.objective import CpuObjective


class CpuDual:
    """The chains in native memory; see `crfit.engines.dual.Dual`."""

    def __init__(self, objective: CpuObjective, native: _native.Dual, l2: float) -> None:
        self._objective = objective
        self._native = native
        self._l1, self._l2 = objective.l1, l2

    def weights(self, out: Vector) -> Vector:
        """Fill `out` with u(a), exactly."""
        self._native.weights(self._l2, out)
        return out

    def value(self, u: Vector) -> float:
        """D(a), given ``u = u(a)``."""
        squared = vectors.squared_soft_threshold(u, self._l1 / self._l2)
        return self._native.entropy - 0.5 * self._l2 * squared

    def epoch(self, u: Vector, order: NDArray[np.int64], rule: EtaRule) -> Epoch:
        """Try a step on each sequence of `order`. Sets: `u`."""
        before = Phases(*self._native.phase_seconds())
        steps = rule.grow, rule.shrink, rule.max_trials
        done = Epoch(*self._native.epoch(u, order, self._l1, self._l2, *steps))
        self._objective.phases += Phases(*self._native.phase_seconds()) - before
        self._objective.counts.sequences += done.trials
        return done

    def mean_eta(self) -> float:
        """Mean step size over the sequences."""
        return float(self._native.eta.mean())

    def export_state(self) -> dict[str, Any]:
        """Potentials and step sizes, as views."""
        return {"nodes": self._native.nodes, "pairs": self._native.pairs, "eta": self._native.eta}

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `export_state` returned."""
        own = self.export_state()
        for name, array in checked_arrays(state, {name: view.shape for name, view in own.items()}).items():
            own[name][...] = array
        self._native.solve()
