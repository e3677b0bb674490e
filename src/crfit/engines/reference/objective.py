"""The objective in plain NumPy, log domain, any order: slow but simple, to test other engines.

With the log-potentials ``psi_i = G_i w`` of sequence i, its marginals P_i, the indicator tables D_i of its
labels and its weight c_i:

    loss     sum_i c_i (log Z_i - <D_i, psi_i>)
    gradient sum_i c_i G_i^T (P_i - D_i)
    product  sum_i c_i G_i^T M_i,  M_i the derivative of P_i in the direction G_i v     [lattice.py]

Nothing is cached between calls except the pinned weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crfit.engines.engine_objective import CAPABILITIES, EngineObjective, SequenceIds, add_l2
from crfit.engines.memory import check_memory
from crfit.engines.objective import LineFunction
from crfit.engines.profile import Laps
from crfit.engines.reference.dual import ReferenceDual
from crfit.engines.reference.lattice import (
    Lattice,
    ScoreTables,
    Table,
    WeightSums,
    meeting,
    path_score,
    table_bytes,
)
from crfit.engines.reference.margin import ReferenceMarginRun
from crfit.engines.reference.online import ReferenceOnlineRun
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.margin import MarginRule
    from crfit.engines.online import Rule

#: Tables of the size of psi in memory at one time for a Hessian product: psi, its direction, marginals,
#: their derivatives, the forward derivatives, and one temporary.
N_TABLES = 6


class ReferenceObjective(EngineObjective):
    """The objective in NumPy; every capability, any order."""

    device: ClassVar[str] = "reference"
    capabilities = CAPABILITIES

    def _prepare(self) -> None:
        check_memory(self.dataset, self.layout, partial(table_bytes, N_TABLES), "NumPy")
        labels = self.dataset.labels
        self._labels = [] if labels is None else np.split(labels, self.dataset.seq_ptr[1:-1])

    def _loss(self, w: Vector) -> float:
        return self._loss_on(w, None)

    def _loss_on(self, w: Vector, subset: SequenceIds | None) -> float:
        loss, laps = 0.0, Laps(self.phases)
        for i, lattice in self._lattices(w, laps, None if subset is None else subset.tolist()):
            loss += self.factor(i) * (lattice.log_z - path_score(lattice.psi, self._labels[i]))
            laps.end("lattice")
        return loss

    def _loss_and_grad(self, w: Vector, out: Vector, subset: SequenceIds | None, l2: float) -> float:
        loss, laps = 0.0, Laps(self.phases)
        sums = WeightSums(self.dataset, self.layout)
        for i, lattice in self._lattices(w, laps, None if subset is None else subset.tolist()):
            labels = self._labels[i]
            loss += self.factor(i) * (lattice.log_z - path_score(lattice.psi, labels))
            difference = lattice.marginals()
            for t, table in enumerate(difference):
                table[meeting(labels, t, table)] -= 1.0
            laps.end("lattice")
            sums.add(i, difference, self.factor(i))
            laps.end("gather")
        np.copyto(out, sums.sums)
        penalty = add_l2(w, l2, out)
        laps.end("gather")
        return loss + penalty

    def _online(self, w: Vector, rule: Rule, batch: int) -> ReferenceOnlineRun:
        return ReferenceOnlineRun(self, w, rule)

    def _margin(self, w: Vector, rule: MarginRule) -> ReferenceMarginRun:
        return ReferenceMarginRun(self, w, rule)

    def _hvp(self, w: Vector, v: Vector, out: Vector, l2: float, subset: SequenceIds | None = None) -> None:
        laps = Laps(self.phases)
        direction = ScoreTables(self.dataset, self.layout, v)
        sums = WeightSums(self.dataset, self.layout)
        for i, lattice in self._lattices(w, laps, None if subset is None else subset.tolist()):
            laps.end("lattice")
            q = direction(i)
            laps.end("scores")
            marginals = lattice.tangent(q).marginals
            laps.end("lattice")
            sums.add(i, marginals, self.factor(i))
            laps.end("gather")
        np.copyto(out, sums.sums)
        add_l2(v, l2, out)
        laps.end("gather")

    def _hessian_diagonal(self, w: Vector) -> Vector:
        return self._summed_marginals(w, variance=True)

    def _expectations(self, w: Vector) -> Vector:
        return self._summed_marginals(w)

    def _along(self, w: Vector, d: Vector) -> LineFunction:
        laps = Laps(self.phases)
        at_w = ScoreTables(self.dataset, self.layout, w, self.offsets, self.constraints)
        at_d = ScoreTables(self.dataset, self.layout, d)
        laps.end("scores")

        def evaluate(step: float) -> tuple[float, float]:
            loss = slope = 0.0
            laps = Laps(self.phases)
            for i in range(self.n_sequences):
                q = at_d(i)
                psi = [a + step * b for a, b in zip(at_w(i), q, strict=True)]
                laps.end("scores")
                lattice = Lattice(psi, self.layout.order)
                labels, factor = self._labels[i], self.factor(i)
                loss += factor * (lattice.log_z - path_score(psi, labels))
                slope += factor * (_inner(lattice.marginals(), q) - path_score(q, labels))
                laps.end("lattice")
            return loss, slope

        return evaluate

    def _dual(self, start: float, eta: float, l2: float) -> ReferenceDual:
        return ReferenceDual(self, start, eta, l2)

    def _summed_marginals(self, w: Vector, *, variance: bool = False) -> Vector:
        laps = Laps(self.phases)
        sums = WeightSums(self.dataset, self.layout, variance=variance)
        for i, lattice in self._lattices(w, laps):
            marginals = lattice.marginals()
            laps.end("lattice")
            sums.add(i, marginals, self.factor(i))
            laps.end("gather")
        return sums.sums

    def _lattices(
        self, w: Vector, laps: Laps, ids: Iterable[int] | None = None
    ) -> Iterator[tuple[int, Lattice]]:
        """Yield sequences with their lattices; the caller ends the lap that the lattice begins."""
        tables = ScoreTables(self.dataset, self.layout, w, self.offsets, self.constraints)
        for i in range(self.n_sequences) if ids is None else ids:
            psi = tables(i)
            laps.end("scores")
            yield i, Lattice(psi, self.layout.order)


def _inner(tables: list[Table], others: list[Table]) -> float:
    return float(sum((a * b).sum() for a, b in zip(tables, others, strict=True)))
