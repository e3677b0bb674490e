"""Forward-backward in the log domain on one sequence, for any order, and its derivative in a direction.

With order k, the table of position t holds the log-potential of the labels that meet there,

    psi[t][y_{t-n}, ..., y_t],   n = min(t, k),   shape (Y,) * (n + 1)

and the state after position t is the last min(t + 1, k) labels, the shape of alpha[t] and beta[t]:

    alpha[t] = log sum_{y_{t-k}} exp( alpha[t-1] + psi[t] )      (no sum while t < k: no label is dropped yet)
    beta[t-1] = log sum_{y_t} exp( psi[t] + beta[t] )
    P[t] = exp( alpha[t-1] + psi[t] + beta[t] - log Z )

In a direction q (one table per position, like psi) the derivatives of alpha, beta, log Z and P are [1]

    A[t] = sum_{y_{t-k}} p(y_{t-k} | y_{t-k+1}, .., y_t) (A[t-1] + q[t])
    B[t-1] = sum_{y_t} p(y_t | y_{t-k}, .., y_{t-1}) (q[t] + B[t])
    e = sum_{last state} p A[T-1]
    M[t] = P[t] (A[t-1] + q[t] + B[t] - e)

Tables with fewer axes line up with the last axes of larger ones, which is NumPy's rule for broadcasting.

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI-25, 489-494.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Table: TypeAlias = NDArray[np.float64]


def log_sum_exp(table: Table, axis: int | None = None) -> Table:
    """``log(sum(exp(table)))`` over one axis or all, without overflow."""
    top = table.max(axis=axis, keepdims=True)
    total = np.log(np.exp(table - top).sum(axis=axis, keepdims=True)) + top
    return np.asarray(total.squeeze(axis=axis))


def trailing(table: Table, n_axes: int) -> Table:
    """Sum out all but the last `n_axes` axes."""
    return np.asarray(table.sum(axis=tuple(range(table.ndim - n_axes))))


def path_score(psi: list[Table], labels: NDArray[np.integer]) -> float:
    """Score of one label sequence: the sum of the entries it meets."""
    return float(sum(table[meeting(labels, t, table)] for t, table in enumerate(psi)))


def meeting(labels: NDArray[np.integer], t: int, table: Table) -> tuple[int, ...]:
    """Index into the table of position t of the labels that meet there."""
    return tuple(int(y) for y in labels[t + 1 - table.ndim : t + 1])


class Tangent(NamedTuple):
    """Derivatives of a lattice in a direction."""

    alpha: list[Table]
    beta: list[Table]
    log_z: float
    marginals: list[Table]


class Lattice:
    """Forward and backward tables of one sequence.

    Parameters
    ----------
    psi : list of float64 arrays
        Log-potentials per position.
    order : int
        Longest label history k.
    """

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
        """Probability of the labels that meet at each position, shaped like psi."""
        first = np.exp(self.psi[0] + self.beta[0] - self.log_z)
        return [first] + [
            np.exp(self.alpha[t - 1][..., None] + self.psi[t] + self.beta[t] - self.log_z)
            for t in range(1, len(self.psi))
        ]

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
                earlier = np.exp(self.alpha[t - 1][..., None] + self.psi[t] - self.alpha[t])
                A.append((earlier * arrived[t]).sum(axis=0))
        B = [np.zeros_like(self.beta[-1])]
        for t in range(n_positions - 1, 0, -1):
            later = np.exp(self.psi[t] + self.beta[t] - self.beta[t - 1][..., None])
            B.insert(0, (later * (q[t] + B[0])).sum(axis=-1))
        e = float((np.exp(self.alpha[-1] - self.log_z) * A[-1]).sum())
        M = [marginals[t] * (arrived[t] + B[t] - e) for t in range(n_positions)]
        return Tangent(A, B, e, M)
