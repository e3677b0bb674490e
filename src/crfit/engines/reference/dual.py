"""The dual in plain NumPy, any order: the formulas of `crfit.engines.dual`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfit.engines.dual import ONE_SHARD, Epoch, EtaRule, Shards, checked_arrays
from crfit.engines.reference.lattice import Lattice, ScoreTables, Table, WeightSums, meeting
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.engines.reference.objective import ReferenceObjective

#: Relative changes of D below this are rounding.
ROUNDING = 2e-15


class _Chain:
    """One a_n: its potentials, marginals and entropy."""

    def __init__(self, theta: list[Table], order: int) -> None:
        lattice = Lattice(theta, order)
        self.theta, self.marginals = theta, lattice.marginals()
        inner = sum(float((p * table).sum()) for p, table in zip(self.marginals, theta, strict=True))
        self.entropy = max(0.0, lattice.log_z - inner)  # cancellation if the chain is nearly certain
        self.size = abs(lattice.log_z) + abs(inner)

    def mixed(self, psi: list[Table], eta: float) -> list[Table]:
        return [table + eta * (score - table) for table, score in zip(self.theta, psi, strict=True)]


class ReferenceDual:
    """The chains in NumPy arrays; see `crfit.engines.dual.Dual`."""

    def __init__(self, objective: ReferenceObjective, start: float, eta: float, l2: float) -> None:
        self._objective, self._l2 = objective, l2
        self._order = objective.layout.order
        self._eta = np.full(objective.n_sequences, eta)
        self._chains = [_Chain(self._gold_tables(i, start), self._order) for i in range(len(self._eta))]

    def weights(self, out: Vector) -> Vector:
        """Fill `out` with u(a), exactly."""
        out[:] = 0.0
        for i, chain in enumerate(self._chains):
            labels = self._labels(i)
            gold = [np.zeros_like(table) for table in chain.theta]
            for t, table in enumerate(gold):
                table[meeting(labels, t, table)] = 1.0
            out += self._change(i, gold, chain.marginals)
        return out

    def value(self, u: Vector) -> float:
        """D(a), given ``u = u(a)``."""
        entropies = sum(self._objective.factor(i) * chain.entropy for i, chain in enumerate(self._chains))
        w = self._weights(u)
        return entropies - 0.5 * self._l2 * float(w @ w)

    def epoch(self, u: Vector, order: NDArray[np.int64], rule: EtaRule, shards: Shards = ONE_SHARD) -> Epoch:
        """Try a step on each sequence of `order`. Sets: `u`."""
        n, before, change = len(order), u.copy(), np.zeros_like(u)
        count, total = max(1, min(shards.n, n)), Epoch(0, 0, 0.0)
        sigma = 1.0 if count == 1 else shards.sigma
        for k in range(count):
            u[:] = before
            done = self._steps(u, order[n * k // count : n * (k + 1) // count], rule, sigma)
            change += u - before
            total = Epoch(total.trials + done.trials, total.accepted + done.accepted, total.gain + done.gain)
        u[:] = before + change / sigma
        return total

    def _steps(self, u: Vector, order: NDArray[np.int64], rule: EtaRule, sigma: float) -> Epoch:
        """Steps one after another, with the penalties divided by `sigma`. Sets: `u`."""
        trials = accepted = 0
        gain = 0.0
        for i in order.tolist():
            w = self._weights(u)
            psi = ScoreTables(self._objective.dataset, self._objective.layout, w)(i)
            for _ in range(rule.max_trials):
                trials += 1
                old, new = self._chains[i], _Chain(self._chains[i].mixed(psi, self._eta[i]), self._order)
                du = sigma * self._change(i, old.marginals, new.marginals)
                w_new = self._weights(u + du)
                factor = self._objective.factor(i)
                squares = float((w_new - w) @ (w_new + w))
                rise = factor * (new.entropy - old.entropy) - 0.5 * self._l2 / sigma * squares
                if rise >= -ROUNDING * factor * (new.size + old.entropy):
                    u += du
                    self._chains[i] = new
                    self._eta[i] = min(1.0, rule.grow * self._eta[i])
                    accepted += 1
                    gain += rise
                    break
                self._eta[i] *= rule.shrink
        self._objective.counts.sequences += trials
        return Epoch(trials, accepted, gain)

    def mean_eta(self) -> float:
        """Mean step size over the sequences."""
        return float(self._eta.mean())

    def export_state(self) -> dict[str, Any]:
        """Concatenated potentials, and step sizes."""
        tables = [table.ravel() for chain in self._chains for table in chain.theta]
        return {"theta": np.concatenate(tables), "eta": self._eta}

    def import_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `export_state` returned."""
        shapes = {name: array.shape for name, array in self.export_state().items()}
        given = checked_arrays(state, shapes)
        self._eta = given["eta"].copy()
        place = 0
        for i, chain in enumerate(self._chains):
            theta = []
            for table in chain.theta:
                theta.append(given["theta"][place : place + table.size].reshape(table.shape))
                place += table.size
            self._chains[i] = _Chain(theta, self._order)

    def _labels(self, i: int) -> NDArray[np.integer[Any]]:
        data = self._objective.dataset
        assert data.labels is not None
        return data.labels[data.seq_ptr[i] : data.seq_ptr[i + 1]]

    def _gold_tables(self, i: int, start: float) -> list[Table]:
        """Potentials `start` for the given labels and 0 for the others, in tables shaped like psi."""
        n_labels, tables = self._objective.layout.n_labels, []
        for t, label in enumerate(self._labels(i).tolist()):
            table = np.zeros((n_labels,) * (min(t, self._order) + 1))
            table[..., label] = start
            tables.append(table)
        return tables

    def _weights(self, u: Vector) -> Vector:
        """w(a), given ``u = u(a)``."""
        threshold = self._objective.l1 / self._l2
        return np.sign(u) * np.maximum(np.abs(u) - threshold, 0.0)

    def _change(self, i: int, old: list[Table], new: list[Table]) -> Vector:
        """``(c_i/l2) (E_old Phi - E_new Phi)``, float64[n_weights]."""
        sums = WeightSums(self._objective.dataset, self._objective.layout)
        difference = [a - b for a, b in zip(old, new, strict=True)]
        sums.add(i, difference, self._objective.factor(i) / self._l2)
        return sums.sums
