"""One sequence in the log domain, for any order: weights to scores, forward-backward, and derivatives.

With order k, the table of position t holds the log-potentials of label n-grams that end there,

    psi[t][y_{t-n}, ..., y_t],   n = min(t, k),   shape (Y,) * (n + 1)

    psi[t][.., y_{t-1}, y_t] = sum_a x[t,a] w[a, y_t]  +  sum_{m <= min(t,k)} w[y_{t-m}, .., y_t]
                               + sum_b w[b, y_{t-1}, y_t]  +  start[y_0]  +  end[y_{T-1}]

Scores are linear in the weights: `ScoreTables` is the map ``psi = G_i w`` for sequence i; `WeightSums` is its
transpose, ``w += c G_i^T tables``, which turns marginals into expected features.

The state after position t is the last min(t + 1, k) labels, the shape of alpha[t] and beta[t]:

    alpha[t] = log sum_{y_{t-k}} exp( alpha[t-1] + psi[t] )      (no sum while t < k)
    beta[t-1] = log sum_{y_t} exp( psi[t] + beta[t] )
    P[t] = exp( alpha[t-1] + psi[t] + beta[t] - log Z )

In a direction q (one table per position, like psi) the derivatives of alpha, beta, log Z and P are [1]

    A[t] = sum_{y_{t-k}} p(y_{t-k} | y_{t-k+1}, .., y_t) (A[t-1] + q[t])
    B[t-1] = sum_{y_t} p(y_t | y_{t-k}, .., y_{t-1}) (q[t] + B[t])
    e = sum_{last state} p A[T-1]
    M[t] = P[t] (A[t-1] + q[t] + B[t] - e)

Tables with fewer axes align with the last axes of larger ones, as in NumPy broadcasting.

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI-25, 489-494.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.layout import Layout
    from crfit.layout.constraints import Constraints

Table: TypeAlias = NDArray[np.float64]
# Slice of a row of weights in the weight vector, and the entries of the score row that it is added to.
Places: TypeAlias = tuple[slice, "slice | NDArray[np.int32]"]


def log_sum_exp(table: Table, axis: int | None = None) -> Table:
    """``log(sum(exp(table)))`` over one axis or all, without overflow."""
    top = finite(table.max(axis=axis, keepdims=True))
    with np.errstate(divide="ignore"):  # log 0 = -inf: nothing is possible
        total = np.log(np.exp(table - top).sum(axis=axis, keepdims=True)) + top
    return np.asarray(total.squeeze(axis=axis))


def finite(table: Table) -> Table:
    """The table with 0 for minus infinity: a shift for which -inf - shift is -inf, not NaN."""
    return np.where(table == -np.inf, 0.0, table)


def trailing(table: Table, n_axes: int) -> Table:
    """Sum out all but the last `n_axes` axes."""
    return np.asarray(table.sum(axis=tuple(range(table.ndim - n_axes))))


def path_score(psi: list[Table], labels: NDArray[np.integer]) -> float:
    """Score of one label sequence: the sum of its entries in the tables."""
    return float(sum(table[meeting(labels, t, table)] for t, table in enumerate(psi)))


def meeting(labels: NDArray[np.integer], t: int, table: Table) -> tuple[int, ...]:
    """Index into the table of position t for this label sequence."""
    return tuple(int(y) for y in labels[t + 1 - table.ndim : t + 1])


def table_bytes(n_tables: int, n_positions: int, n_labels: int, order: int) -> int:
    """Memory for tables of ``Y^(k+1)`` entries per position."""
    return int(8 * n_tables * n_positions * n_labels ** (order + 1))


def _places(
    row: int, ptr: NDArray[np.int64] | None, columns: NDArray[np.int32] | None, n_columns: int, offset: int
) -> Places:
    if ptr is None or columns is None:
        return slice(offset + row * n_columns, offset + (row + 1) * n_columns), slice(None)
    begin, end = int(ptr[row]), int(ptr[row + 1])
    return slice(offset + begin, offset + end), columns[begin:end]


class _Walk:
    """Features at a token: for each distinct attribute, the places of its weights and its value."""

    def __init__(self, dataset: Dataset, layout: Layout) -> None:
        self.dataset = dataset
        self.layout = layout

    def n_positions(self, i: int) -> int:
        return int(self.dataset.seq_ptr[i + 1] - self.dataset.seq_ptr[i])

    def state(self, token: int) -> list[tuple[Places, float]]:
        data, layout = self.dataset, self.layout
        span = slice(data.attr_ptr[token], data.attr_ptr[token + 1])
        values = None if data.attr_values is None else data.attr_values[span]
        return [
            (_places(a, layout.state_ptr, layout.state_labels, layout.n_labels, 0), value)
            for a, value in merged(data.attr_ids[span], values)
        ]

    def edge(self, token: int) -> list[tuple[Places, float]]:
        data, layout = self.dataset, self.layout
        if data.edge_ptr is None or data.edge_ids is None:
            return []
        span = slice(data.edge_ptr[token], data.edge_ptr[token + 1])
        n_pairs = layout.n_labels**2
        return [
            (_places(b, layout.edge_ptr, layout.edge_codes, n_pairs, layout.edge_offset), value)
            for b, value in merged(data.edge_ids[span], None)
        ]


def merged(ids: NDArray[np.int32], values: Table | None) -> list[tuple[int, float]]:
    """Distinct ids with the sum of their values: a repeated attribute counts repeatedly."""
    total: dict[int, float] = {}
    for place, id_ in enumerate(ids.tolist()):
        total[id_] = total.get(id_, 0.0) + (1.0 if values is None else float(values[place]))
    return list(total.items())


class ScoreTables(_Walk):
    """The map from weights to log-potentials, for fixed weights, in their precision.

    `offsets`, [N, Y], are added; what the constraints forbid is minus infinity.
    """

    def __init__(
        self,
        dataset: Dataset,
        layout: Layout,
        w: Table,
        offsets: Table | None = None,
        constraints: Constraints | None = None,
    ) -> None:
        super().__init__(dataset, layout)
        self.w, self.offsets, self.constraints = w, offsets, constraints
        self.ngrams: list[Table] = []  # for m = 1..k, shape (Y,) * (m + 1); 0 without a weight
        for m, codes in enumerate(layout.transition_codes, start=1):
            table = np.zeros(layout.n_labels ** (m + 1), w.dtype)
            table[slice(None) if codes is None else codes] = w[layout.transition_slice(m)]
            self.ngrams.append(table.reshape((layout.n_labels,) * (m + 1)))

    def __call__(self, i: int) -> list[Table]:
        """Log-potentials of sequence i, one table per position."""
        layout, w, Y = self.layout, self.w, self.layout.n_labels
        first, n_positions = int(self.dataset.seq_ptr[i]), self.n_positions(i)
        tables = []
        for t in range(n_positions):
            node = np.zeros(Y, w.dtype)
            if self.offsets is not None:
                node += self.offsets[first + t]
            for (place, labels), value in self.state(first + t):
                node[labels] += value * w[place]
            if layout.boundary and t == 0:
                node += w[layout.start_offset : layout.start_offset + Y]
            if layout.boundary and t == n_positions - 1:
                node += w[layout.end_offset : layout.end_offset + Y]
            possible = self.constraints
            if possible is not None and t == 0:
                node[~possible.begin] = -np.inf
            if possible is not None and t == n_positions - 1:
                node[~possible.end] = -np.inf
            table = node
            if t > 0:
                pair = np.zeros(Y * Y, w.dtype)
                if possible is not None:
                    pair[~possible.follow.ravel()] = -np.inf
                for (place, codes), value in self.edge(first + t):
                    pair[codes] += value * w[place]
                table = table + pair.reshape(Y, Y)
            for ngram in self.ngrams[:t]:
                table = table + ngram
            tables.append(table)
        return tables


class WeightSums(_Walk):
    """The transpose: adds to each weight ``x p`` of the tables wherever its feature fires with value x.

    With `variance` it adds ``x^2 p (1 - p)``.
    """

    def __init__(self, dataset: Dataset, layout: Layout, *, variance: bool = False) -> None:
        super().__init__(dataset, layout)
        self.variance = variance
        self.sums = np.zeros(layout.n_weights)

    def add(self, i: int, tables: list[Table], factor: float) -> None:
        """Add ``factor`` times the contribution of the tables of sequence i."""
        layout, sums, Y = self.layout, self.sums, self.layout.n_labels
        first, last = int(self.dataset.seq_ptr[i]), self.n_positions(i) - 1
        for t, table in enumerate(tables):
            node = self._content(trailing(table, 1), factor)
            for (place, labels), value in self.state(first + t):
                sums[place] += self._value(value) * node[labels]
            if layout.boundary and t == 0:
                sums[layout.start_offset : layout.start_offset + Y] += node
            if layout.boundary and t == last:
                sums[layout.end_offset : layout.end_offset + Y] += node
            if t > 0:
                pair = self._content(trailing(table, 2), factor).ravel()
                for (place, codes), value in self.edge(first + t):
                    sums[place] += self._value(value) * pair[codes]
            for m in range(1, table.ndim):
                ngram = self._content(trailing(table, m + 1), factor).ravel()
                codes_m = layout.transition_codes[m - 1]
                sums[layout.transition_slice(m)] += ngram if codes_m is None else ngram[codes_m]

    def _content(self, p: Table, factor: float) -> Table:
        return factor * p * (1.0 - p) if self.variance else factor * p

    def _value(self, x: float) -> float:
        return x * x if self.variance else x


def touch_counts(dataset: Dataset, layout: Layout, ids: Iterable[int] | None = None) -> NDArray[np.int64]:
    """Number of sequences that touch each weight: those with its attribute; all for n-grams and boundary."""
    walk = _Walk(dataset, layout)
    chosen = range(dataset.n_sequences) if ids is None else list(ids)
    counts = np.zeros(layout.n_weights, dtype=np.int64)
    counts[layout.n_state_weights : layout.edge_offset] = len(chosen)
    for i in chosen:
        first = int(dataset.seq_ptr[i])
        places = set()
        for t in range(walk.n_positions(i)):
            fired = walk.state(first + t) + (walk.edge(first + t) if t > 0 else [])
            places |= {(place.start, place.stop) for (place, _), _ in fired}
        for begin, end in places:
            counts[begin:end] += 1
    return counts


class Tangent(NamedTuple):
    """Derivatives of a lattice in a direction."""

    alpha: list[Table]
    beta: list[Table]
    log_z: float
    marginals: list[Table]


class Lattice:
    """Forward and backward tables of one sequence."""

    def __init__(self, psi: list[Table], order: int) -> None:
        self.psi = psi
        self.order = order
        self.alpha = self._forward()
        self.beta = self._backward()
        self.log_z = float(log_sum_exp(self.alpha[-1]))

    def _forward(self) -> list[Table]:
        alpha = [self.psi[0]]
        for t in range(1, len(self.psi)):
            joint = alpha[t - 1][..., None] + self.psi[t]
            alpha.append(joint if t < self.order else log_sum_exp(joint, axis=0))
        return alpha

    def _backward(self) -> list[Table]:
        beta = [np.zeros_like(self.alpha[-1])]
        for table in self.psi[:0:-1]:
            beta.insert(0, log_sum_exp(table + beta[0], axis=-1))
        return beta

    def marginals(self) -> list[Table]:
        """Probabilities of the label n-grams at each position, shaped like psi."""
        return [np.exp(joint - self.log_z) for joint in self._joints()]

    def normalised(self) -> list[Table]:
        """The marginals, where each table sums to 1 even if rounding errors of huge scores exceed 1."""
        tables = [np.exp(joint - finite(joint.max())) for joint in self._joints()]
        return [table / table.sum() for table in tables]

    def _joints(self) -> list[Table]:
        """``log(Z p)`` of the label n-grams at each position, shaped like psi."""
        before = zip(self.alpha[:-1], self.psi[1:], self.beta[1:], strict=True)
        return [self.psi[0] + self.beta[0]] + [alpha[..., None] + psi + beta for alpha, psi, beta in before]

    def tangent(self, q: list[Table]) -> Tangent:
        """Derivatives of alpha, beta, log Z and the marginals when psi moves in the direction `q`."""
        n_positions = len(self.psi)
        marginals = self.marginals()
        arrived = [q[0]]  # A[t-1] + q[t]
        A = [q[0]]
        for t in range(1, n_positions):
            arrived.append(A[t - 1][..., None] + q[t])
            if t < self.order:
                A.append(arrived[t])
            else:
                earlier = np.exp(self.alpha[t - 1][..., None] + self.psi[t] - finite(self.alpha[t]))
                A.append((earlier * arrived[t]).sum(axis=0))
        B = [np.zeros_like(self.beta[-1])]
        for t in range(n_positions - 1, 0, -1):
            later = np.exp(self.psi[t] + self.beta[t] - finite(self.beta[t - 1])[..., None])
            B.insert(0, (later * (q[t] + B[0])).sum(axis=-1))
        e = float((np.exp(self.alpha[-1] - self.log_z) * A[-1]).sum())
        M = [marginals[t] * (arrived[t] + B[t] - e) for t in range(n_positions)]
        return Tangent(A, B, e, M)
