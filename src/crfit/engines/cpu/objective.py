"""The objective on CPU threads, in native code: scaled arithmetic, any order.

The kernels in ``native/lattice`` and ``native/batch`` describe the arithmetic, and why results do not depend
on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crfit import _native
from crfit.engines.cpu.arrays import lattice_bytes, native_data, native_layout
from crfit.engines.cpu.dual import CpuDual
from crfit.engines.cpu.margin import CpuMarginRun
from crfit.engines.cpu.online import CpuMetaRun, CpuOnlineRun, CpuPeriodicRun, native_periods, native_rule
from crfit.engines.cpu.pair_history import NativePairHistory
from crfit.engines.engine_objective import CAPABILITIES, EngineObjective, SequenceIds
from crfit.engines.memory import MAX_TABLE_BYTES, check_memory
from crfit.engines.objective import Curvature, LineFunction
from crfit.engines.online import MetaDescent, Periodic
from crfit.engines.profile import Phases
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.margin import MarginRule
    from crfit.engines.online import OnlineRun, Rule


class CpuObjective(EngineObjective):
    """The objective on CPU threads."""

    device: ClassVar[str] = "cpu"
    capabilities = CAPABILITIES

    def _prepare(self) -> None:
        check_memory(self.dataset, self.layout, lattice_bytes, "native")
        if self.layout.order > 1:
            self.capabilities -= {"dual"}  # the native dual supports only order 1
        self._data = native_data(self.dataset)
        self._native_layout = native_layout(self.layout, self.constraints)
        self._log_domain = self.arithmetic == "log"
        self._batch = _native.Batch(
            self._data, self._native_layout, self.n_threads, self._log_domain, offsets=self.offsets
        )
        self._lock = Lock()  # the core's tables are shared by all calls
        self._line: object | None = None  # the profile whose scores the core holds

    def pair_history(self, memory: int) -> NativePairHistory:
        """Create a memory of curvature pairs with native sweeps."""
        return NativePairHistory(self.n_weights, memory, self.n_threads)

    @contextmanager
    def _core(self) -> Iterator[_native.Batch]:
        """The core, for one call at a time. Sets: `phases`."""
        with self._lock:
            before = Phases(*self._batch.phase_seconds())
            yield self._batch
            self.phases += Phases(*self._batch.phase_seconds()) - before

    def keep_curvature(self, curvature: Curvature | None) -> None:
        """Choose what later gradients cache; with order 2 and more, "all" is limited to 4 GiB."""
        kept = Curvature() if curvature is None else curvature
        n_sequences, n_bytes = kept.limits()
        if self.layout.order > 1 and kept.cache == "all":  # 2 Y^k numbers per position grow quickly
            n_bytes = MAX_TABLE_BYTES
        with self._core() as core:
            core.keep_curvature(
                kept.storage == "pairs", kept.storage == "float32", n_sequences, n_bytes,
                curvature is not None, kept.ad,
            )  # fmt: skip
        if isinstance(self._consistent, CpuObjective):
            self._consistent.keep_curvature(curvature)

    @property
    def table_bytes(self) -> int:
        """Memory for caching the tables of all sequences for Hessian-vector products, ``cache="all"``."""
        n_bytes = self._batch.table_bytes
        return n_bytes if self.layout.order == 1 else min(n_bytes, MAX_TABLE_BYTES)

    @property
    def dual_bytes(self) -> int | None:
        """Memory of the dual's chains; few label pairs are stored as a list of those that have a weight."""
        n_bytes = super().dual_bytes
        if n_bytes is None or self.layout.n_edge_attributes or not _native.few_pairs(self._native_layout):
            return n_bytes
        n_pairs = self.layout.n_transition_weights
        return 16 * (self.dataset.n_tokens * self.layout.n_labels + self.dataset.n_sequences * n_pairs)

    @property
    def curvature_bytes(self) -> int:
        """Memory used by the cache for Hessian-vector products."""
        return self._batch.kept_bytes

    def _hvp(self, w: Vector, v: Vector, out: Vector, l2: float) -> None:
        with self._core() as core:
            core.hessian_product(w, v, l2, out)

    def _restrict(self, mask: NDArray[np.bool_] | None) -> None:
        with self._core() as core:
            core.restrict_products(mask)
        if isinstance(self._consistent, CpuObjective):
            self._consistent._restrict(mask)

    def _hessian_diagonal(self, w: Vector) -> Vector:
        out = np.empty(self.n_weights)
        with self._core() as core:
            core.hessian_diagonal(w, out)
        return out

    def _loss(self, w: Vector) -> float:
        with self._core() as core:
            return core.loss(w)

    def _loss_and_grad(self, w: Vector, out: Vector, subset: SequenceIds | None, l2: float) -> float:
        with self._core() as core:
            if subset is not None:
                return core.loss_and_grad_on(w, l2, subset, out)
            return core.loss_and_grad(w, l2, out)

    def _loss_on(self, w: Vector, subset: SequenceIds) -> float:
        with self._core() as core:
            return core.loss_on(w, subset)

    def _online(self, w: Vector, rule: Rule, batch: int) -> OnlineRun:
        if isinstance(rule, MetaDescent):
            return CpuMetaRun(self, w, rule, self._data, self._native_layout)
        if isinstance(rule, Periodic):
            constants = native_periods(rule, self.dataset, self.layout)
            core = _native.Online(self._data, self._native_layout, *constants, self.n_threads)
            return CpuPeriodicRun(self, w, rule, core)
        core = _native.Online(self._data, self._native_layout, *native_rule(rule), batch, self.n_threads)
        return CpuOnlineRun(self, w, rule, core)

    def _margin(self, w: Vector, rule: MarginRule) -> CpuMarginRun:
        return CpuMarginRun(self, w, rule, self._data, self._native_layout)

    def _expectations(self, w: Vector) -> Vector:
        out = np.empty(self.n_weights)
        with self._core() as core:
            core.expectations(w, out)
        return out

    def _dual(self, start: float, eta: float, l2: float) -> CpuDual:
        native = _native.Dual(self._data, self._native_layout, self._log_domain, self.n_threads)
        native.start(start, eta)
        return CpuDual(self, native, l2)

    def _along(self, w: Vector, d: Vector) -> LineFunction:
        line = object()
        with self._core() as core:
            core.set_line(w, d)
            self._line = line

        def evaluate(step: float) -> tuple[float, float]:
            with self._core() as core:
                if self._line is not line:  # another profile was created in between
                    core.set_line(w, d)
                    self._line = line
                return core.along(step)

        return evaluate
