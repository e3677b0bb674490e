"""Tagging on CPU threads; weight tables are built once, in native memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfit import _native
from crfit.data import Dataset
from crfit.data.alphabet import Alphabet
from crfit.data.label_sets import LabelSets
from crfit.engines.cpu.arrays import lattice_bytes, native_data, native_layout
from crfit.engines.decoding import (
    check_defined,
    check_feasible,
    check_overflow,
    checked_n,
    checked_path,
)
from crfit.engines.memory import check_memory
from crfit.features import Features
from crfit.layout import Layout
from crfit.layout.constraints import Constraints
from crfit.threads import resolve_threads


class CpuDecoder:
    """The core's tables for fixed weights; see `crfit.engines.decoding.Decoder`."""

    def __init__(
        self, layout: Layout, weights: NDArray[np.float64], constraints: Constraints | None = None
    ) -> None:
        self.layout, self.constraints = layout, constraints
        self.native = _native.Decoder(native_layout(layout, constraints), weights)
        self.largest = float(max(weights.max(initial=0.0), -weights.min(initial=0.0)))

    def __call__(
        self, dataset: Dataset, *, n_threads: int | None = None, allowed: LabelSets | None = None
    ) -> CpuInference:
        """Inference on a dataset encoded with the alphabets of the layout, with the labels allowed there."""
        return CpuInference(dataset, self, n_threads, allowed)

    def tagger(self, attributes: Alphabet, labels: list[str], features: Features | None) -> _native.Tagger:
        """Tagging of Python sequences with these names, or of tokens with features, for order 1."""
        made_by = None if features is None else features.native
        return _native.Tagger(self.native, attributes.native, labels, made_by)


class CpuInference:
    """Best paths, marginals and scores on CPU threads; see `crfit.engines.decoding.Inference`."""

    def __init__(
        self,
        dataset: Dataset,
        decoder: CpuDecoder,
        n_threads: int | None = None,
        allowed: LabelSets | None = None,
    ) -> None:
        self._dataset, self._constraints, self._allowed = dataset, decoder.constraints, allowed
        self._masks: dict[str, Any] = {}
        if allowed is not None:
            self._masks = {"mask_of": allowed.rows, "masks": allowed.scores}
        check_memory(dataset, decoder.layout, lattice_bytes, "native")
        self._n_labels = decoder.layout.n_labels
        self._n_threads = resolve_threads(n_threads)
        self._data = native_data(dataset)
        self._decoder = decoder.native

    def viterbi(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Labels of the best paths, int32[N], and their scores, float64[S]."""
        labels = np.empty(self._dataset.n_tokens, dtype=np.int32)
        scores = np.empty(self._dataset.n_sequences)
        self._decoder.infer(self._data, self._n_threads, best=labels, best_score=scores, **self._masks)
        return labels, self._feasible(scores)

    def nbest(self, n: int) -> list[list[tuple[NDArray[np.int32], float]]]:
        """Up to `n` best paths of each sequence with their log-probabilities, best first."""
        found = list(self._decoder.nbest(self._data, checked_n(n), self._n_threads, **self._masks))
        self._feasible(np.array([0.0 if paths else -np.inf for paths in found]))
        if any(not paths or paths[0][1] >= 0.0 for paths in found):
            self._solve()  # only one path has a chance, or scores overflow, which is an error
        return found

    def node_marginals(self) -> NDArray[np.float64]:
        """``p(y_t)``, float64[N, Y]."""
        marginals = np.empty((self._dataset.n_tokens, self._n_labels))
        self._solve(node_marginals=marginals)
        return marginals

    def pair_marginals(self) -> NDArray[np.float64]:
        """``p(y_{t-1}, y_t)``, float64[N, Y, Y]; zeros at first positions."""
        marginals = np.empty((self._dataset.n_tokens, self._n_labels, self._n_labels))
        self._solve(pair_marginals=marginals)
        return marginals

    def log_normalizer(self) -> NDArray[np.float64]:
        """``log Z``, float64[S]."""
        return self._solve()

    def path_score(self, labels: NDArray[np.integer]) -> NDArray[np.float64]:
        """Scores of the given labels, float64[S]."""
        scores = np.empty(self._dataset.n_sequences)
        self._decoder.infer(self._labelled(labels), self._n_threads, path_score=scores, **self._masks)
        return scores

    def posterior(self, labels: NDArray[np.integer]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log-probabilities of the given labels, float64[S], and ``p(y_t)``, float64[N, Y], in one pass."""
        scores = np.empty(self._dataset.n_sequences)
        marginals = np.empty((self._dataset.n_tokens, self._n_labels))
        log_z = self._solve(self._labelled(labels), node_marginals=marginals, path_score=scores)
        return scores - log_z, marginals

    def _solve(self, data: _native.Data | None = None, **outputs: Any) -> NDArray[np.float64]:
        """Fill the outputs and return log Z, float64[S]."""
        log_z = np.empty(self._dataset.n_sequences)
        data = self._data if data is None else data
        self._decoder.infer(data, self._n_threads, log_z=log_z, **outputs, **self._masks)
        check_overflow(self._feasible(log_z), self._dataset)
        for name in ("node_marginals", "pair_marginals"):
            if name in outputs:
                check_defined(outputs[name], self._dataset)
        return log_z

    def _feasible(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return check_feasible(scores, self._dataset, self._constraints, self._allowed)

    def _labelled(self, labels: NDArray[np.integer]) -> _native.Data:
        path = checked_path(labels, self._dataset.n_tokens, self._n_labels)
        if path is self._dataset.labels:
            return self._data
        return native_data(replace(self._dataset, labels=path))
