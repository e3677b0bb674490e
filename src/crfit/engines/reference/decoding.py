"""Decoding and marginals in plain NumPy, log domain, any order.

Viterbi replaces the sum of the forward pass by a maximum, with delta[t] shaped like alpha[t]. Ties are broken
by the lower id of the last label, then of the second-last, and so on, which is what keeping the first of
equal maxima and tracing back gives.

The n best paths come from a best-first search from the end of the sequence: the best completion of a suffix
with score s whose earliest labels are the state h at position t has score ``delta[t][h] + s``. This bound is
exact, so paths are completed in the order of their scores [1].

References
----------
[1] Soong, Huang (1991). A tree-trellis based fast search for finding the N best sentence hypotheses in
    continuous speech recognition. ICASSP, 705-708.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.data import Dataset
from crfit.data.label_sets import LabelSets
from crfit.engines.decoding import check_feasible, check_overflow, checked_n, checked_path, too_large
from crfit.engines.memory import check_memory
from crfit.engines.reference.lattice import Lattice, ScoreTables, Table, path_score, table_bytes, trailing
from crfit.layout import Layout
from crfit.layout.constraints import Constraints

FloatArray: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.int32]

#: Tables of the size of psi in memory at one time for marginals: psi, the marginals, one temporary.
N_TABLES = 3


class ReferenceDecoder:
    """Layout and weights; see `crfit.engines.decoding.Decoder`."""

    def __init__(self, layout: Layout, weights: FloatArray, constraints: Constraints | None = None) -> None:
        self.layout, self.weights, self.constraints = layout, weights, constraints

    def __call__(
        self, dataset: Dataset, *, n_threads: int | None = None, allowed: LabelSets | None = None
    ) -> ReferenceInference:
        """Inference on a dataset encoded with the alphabets of the layout, with the labels allowed there."""
        return ReferenceInference(dataset, self.layout, self.weights, self.constraints, allowed)


class ReferenceInference:
    """Best paths, marginals and scores of given sequences under given weights."""

    def __init__(
        self,
        dataset: Dataset,
        layout: Layout,
        weights: FloatArray,
        constraints: Constraints | None = None,
        allowed: LabelSets | None = None,
    ) -> None:
        check_memory(dataset, layout, partial(table_bytes, N_TABLES), "NumPy")
        self.dataset = dataset
        self.layout = layout
        offsets = None if allowed is None else allowed.by_position()
        self._tables = ScoreTables(dataset, layout, weights, offsets, constraints)
        self._constraints, self._allowed = constraints, allowed
        self._n_tokens = int(dataset.seq_ptr[-1])

    def viterbi(self) -> tuple[Labels, FloatArray]:
        """Labels of the best path of each sequence, int32[N], and their scores, float64[S]."""
        labels = np.empty(self._n_tokens, dtype=np.int32)
        scores = np.empty(self.dataset.n_sequences)
        for i, span in self._spans():
            psi = self._tables(i)
            labels[span], scores[i] = best_path(psi, self.layout.order)
        return labels, self._feasible(scores)

    def nbest(self, n: int) -> list[list[tuple[Labels, float]]]:
        """Up to `n` best paths of each sequence with their log-probabilities, best first."""
        n, found = checked_n(n), []
        for i in range(self.dataset.n_sequences):
            lattice = self._lattice(i)
            paths = best_paths(lattice.psi, lattice.order, n)
            # Rounding of huge scores could exceed 0.
            found.append([(labels, min(0.0, score - lattice.log_z)) for labels, score in paths])
        return found

    def node_marginals(self) -> FloatArray:
        """``p(y_t)``, float64[N, Y]."""
        marginals = np.empty((self._n_tokens, self.layout.n_labels))
        for i, span in self._spans():
            tables = self._normalised(i)
            marginals[span] = [trailing(table, 1) for table in tables]
        return marginals

    def pair_marginals(self) -> FloatArray:
        """``p(y_{t-1}, y_t)``, float64[N, Y, Y]; zeros at the first position of a sequence."""
        marginals = np.zeros((self._n_tokens, self.layout.n_labels, self.layout.n_labels))
        for i, span in self._spans():
            tables = self._normalised(i)
            for t, table in enumerate(tables[1:], start=span.start + 1):
                marginals[t] = trailing(table, 2)
        return marginals

    def ngram_marginals(self) -> Iterator[Table]:
        """Probabilities of the label n-grams that end at each token, shaped like psi."""
        for i in range(self.dataset.n_sequences):
            yield from self._normalised(i)

    def log_normalizer(self) -> FloatArray:
        """``log Z`` of each sequence, float64[S]."""
        ids = range(self.dataset.n_sequences)
        return np.array([self._lattice(i).log_z for i in ids])

    def path_score(self, labels: NDArray[np.integer]) -> FloatArray:
        """Scores of the given labels, float64[S]."""
        path = checked_path(labels, self._n_tokens, self.layout.n_labels)
        spans = self._spans()
        return np.array([path_score(self._tables(i), path[span]) for i, span in spans], dtype=np.float64)

    def posterior(self, labels: NDArray[np.integer]) -> tuple[FloatArray, FloatArray]:
        """Log-probabilities of the given labels, float64[S], and ``p(y_t)``, float64[N, Y]."""
        return self.path_score(labels) - self.log_normalizer(), self.node_marginals()

    def _lattice(self, i: int) -> Lattice:
        lattice = Lattice(self._tables(i), self.layout.order)
        scores = np.zeros(self.dataset.n_sequences)
        scores[i] = lattice.log_z
        check_overflow(self._feasible(scores), self.dataset)
        return lattice

    def _normalised(self, i: int) -> list[Table]:
        lattice = self._lattice(i)
        with np.errstate(invalid="ignore"):
            tables = lattice.normalised()
        if any(np.isnan(table.sum()) for table in tables):
            raise too_large(self.dataset, i)
        return tables

    def _feasible(self, scores: FloatArray) -> FloatArray:
        return check_feasible(scores, self.dataset, self._constraints, self._allowed)

    def _spans(self) -> Iterator[tuple[int, slice]]:
        for i in range(self.dataset.n_sequences):
            yield i, slice(int(self.dataset.seq_ptr[i]), int(self.dataset.seq_ptr[i + 1]))


def _best_scores(psi: list[Table], order: int) -> list[Table]:
    """delta[t]: score of the best path to each state after position t."""
    delta = [psi[0]]
    for t in range(1, len(psi)):
        joint = delta[t - 1][..., None] + psi[t]
        delta.append(joint if t < order else joint.max(axis=0))
    return delta


def best_path(psi: list[Table], order: int) -> tuple[Labels, float]:
    """Best label sequence and its score."""
    delta = _best_scores(psi, order)
    # Transposed, so the first of equal maxima has the lowest last label, then the lowest second-last.
    final = delta[-1].transpose()
    backwards = [int(y) for y in np.unravel_index(int(final.argmax()), final.shape)]
    for t in range(len(psi) - 1, order - 1, -1):
        state = tuple(backwards[len(psi) - 1 - t :][:order])  # y_t, ..., y_{t-k+1}
        joint = np.asarray(delta[t - 1].transpose()[state[1:]]) + psi[t].transpose()[state]
        backwards.append(int(joint.argmax()))
    return np.array(backwards[::-1], dtype=np.int32), float(delta[-1].max())


def best_paths(psi: list[Table], order: int, n: int) -> list[tuple[Labels, float]]:
    """Up to `n` best label sequences and their scores; none with a score of minus infinity."""
    delta = _best_scores(psi, order)
    n_labels, n_positions = len(psi[0]), len(psi)
    # Entries: (-bound, labels in reverse order, score of the tables after the state).
    heap: list[tuple[float, tuple[int, ...], float]] = [
        (-float(delta[-1][state]), state[::-1], 0.0) for state in np.ndindex(delta[-1].shape)
    ]
    heapq.heapify(heap)
    paths: list[tuple[Labels, float]] = []
    while heap and len(paths) < n:
        bound, backwards, suffix = heapq.heappop(heap)
        if bound == math.inf:
            break
        if len(backwards) == n_positions:
            paths.append((np.array(backwards[::-1], dtype=np.int32), -bound))
            continue
        t = n_positions - len(backwards) + order - 1  # position of the state's last label
        later = backwards[-order:][::-1]
        for y in range(n_labels):
            meeting = (y, *later)
            score = suffix + float(psi[t][meeting])
            best = float(delta[t - 1][meeting[:-1]]) + score
            heapq.heappush(heap, (-best, (*backwards, y), score))
    return paths
