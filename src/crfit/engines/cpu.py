"""The native engine: threaded, scaled domain, first order.

Wraps ``crfit._native``. The arithmetic and the reason why results do not depend on the number of threads are
described in ``native/lattice.hpp`` and ``native/batch.hpp``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crfit import _native
from crfit.engines.cpu_history import NativePairHistory
from crfit.errors import OptionError
from crfit.objective import EngineObjective, FloatArray, SequenceIds
from crfit.threads import resolve_threads

if TYPE_CHECKING:
    from crfit.dataset import Dataset
    from crfit.layout import Layout

__all__ = ["CpuInference", "CpuObjective", "native_decoder"]


def _native_layout(layout: Layout) -> _native.Layout:
    if layout.order != 1:
        raise OptionError("order", layout.order, "the native core has order 1; use device='reference'")
    return _native.Layout(
        layout.n_labels,
        layout.n_attributes,
        layout.n_edge_attributes,
        layout.state_ptr,
        layout.state_labels,
        layout.transition_codes[0],
        layout.edge_ptr,
        layout.edge_codes,
        layout.boundary,
    )


def _native_data(dataset: Dataset) -> _native.Data:
    return _native.Data(
        dataset.seq_ptr,
        dataset.attr_ptr,
        dataset.attr_ids,
        dataset.attr_values,
        dataset.labels,
        dataset.edge_ptr,
        dataset.edge_ids,
        dataset.sequence_weights,
    )


class CpuObjective(EngineObjective):
    """The objective on CPU threads.

    Parameters
    ----------
    dataset : Dataset
        Labelled sequences.
    layout : Layout
        Which features have a weight; order 1.
    l1, l2 : float, default=0.0
        Strengths of the penalties.
    n_threads : int, optional
        Threads; None for all cores. The result does not depend on it.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"value", "value_and_grad", "subset", "along", "expectations", "l1"}
    )

    def __init__(
        self,
        dataset: Dataset,
        layout: Layout,
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(dataset, layout, l1=l1, l2=l2)
        self.n_threads = resolve_threads(n_threads)
        self._batch = _native.Batch(_native_data(dataset), _native_layout(layout), self.n_threads)
        self._lock = Lock()  # the core's tables serve one call at a time
        self._line: object | None = None  # the profile whose scores the core holds

    def pair_history(self, memory: int) -> NativePairHistory:
        """Return the memory of curvature pairs for this objective's vectors."""
        return NativePairHistory(self.n_weights, memory, self.n_threads)

    def l1_term(self, w: FloatArray) -> float:
        """``l1 |w|_1``."""
        return self.l1 * _native.sum_abs(w, self.n_threads) if self.l1 else 0.0

    def _loss(self, w: FloatArray, l2: float) -> float:
        with self._lock:
            loss = self._batch.loss(w)
        return loss + 0.5 * l2 * _native.dot(w, w, self.n_threads)

    def _loss_and_grad(self, w: FloatArray, out: FloatArray, subset: SequenceIds | None, l2: float) -> float:
        with self._lock:
            if subset is not None:
                return self._batch.loss_and_grad_on(w, l2, subset, out)
            return self._batch.loss_and_grad(w, l2, out)

    def _expectations(self, w: FloatArray) -> FloatArray:
        out = np.empty(self.n_weights)
        with self._lock:
            self._batch.expectations(w, out)
        return out

    def _along(self, d: FloatArray, l2: float) -> Callable[[float], tuple[float, float]]:
        w = self._pinned_point()
        ww, wd, dd = (_native.dot(a, b, self.n_threads) for a, b in ((w, w), (w, d), (d, d)))
        line = object()
        with self._lock:
            self._batch.set_line(w, d)
            self._line = line

        def evaluate(step: float) -> tuple[float, float]:
            with self._lock:
                if self._line is not line:  # another profile was made in between
                    self._batch.set_line(w, d)
                    self._line = line
                loss, slope = self._batch.along(step)
            value = loss + 0.5 * l2 * (ww + step * (2.0 * wd + step * dd))
            return value, slope + l2 * (wd + step * dd)

        return evaluate


def native_decoder(layout: Layout, weights: NDArray[np.float64]) -> _native.Decoder:
    """Return the core's decoder for fixed weights; it may serve many threads at once."""
    return _native.Decoder(_native_layout(layout), weights)


class CpuInference:
    """Best paths, marginals and scores on CPU threads; see `crfit.engines.Inference`.

    Parameters
    ----------
    dataset : Dataset
        Sequences, encoded with the alphabets of the layout.
    layout : Layout
        Which features have a weight; order 1.
    weights : float64[n_weights]
        The weights.
    n_threads : int, optional
        Threads; None for all cores.
    decoder : object, optional
        What `native_decoder` made of this layout and these weights, to save preparing it again.
    """

    def __init__(
        self,
        dataset: Dataset,
        layout: Layout,
        weights: NDArray[np.float64],
        *,
        n_threads: int | None = None,
        decoder: _native.Decoder | None = None,
    ) -> None:
        self._dataset = dataset
        self._n_labels = layout.n_labels
        self._n_threads = resolve_threads(n_threads)
        self._data = _native_data(dataset)
        self._decoder = decoder if decoder is not None else native_decoder(layout, weights)

    def viterbi(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Labels of the best paths, int32[N], and their scores, float64[S]."""
        labels = np.empty(self._dataset.n_tokens, dtype=np.int32)
        scores = np.empty(self._dataset.n_sequences)
        self._decoder.infer(self._data, self._n_threads, best=labels, best_score=scores)
        return labels, scores

    def nbest(self, n: int) -> list[list[tuple[NDArray[np.int32], float]]]:
        """Up to `n` best paths of each sequence with their log-probabilities, best first."""
        if n < 1:
            raise OptionError("n", n, "ask for at least one path")
        return list(self._decoder.nbest(self._data, n, self._n_threads))

    def node_marginals(self) -> NDArray[np.float64]:
        """``p(y_t)``, float64[N, Y]."""
        marginals = np.empty((self._dataset.n_tokens, self._n_labels))
        self._decoder.infer(
            self._data, self._n_threads, log_z=np.empty(self._dataset.n_sequences), node_marginals=marginals
        )
        return marginals

    def pair_marginals(self) -> NDArray[np.float64]:
        """``p(y_{t-1}, y_t)``, float64[N, Y, Y]; zeros at first positions."""
        marginals = np.empty((self._dataset.n_tokens, self._n_labels, self._n_labels))
        self._decoder.infer(
            self._data, self._n_threads, log_z=np.empty(self._dataset.n_sequences), pair_marginals=marginals
        )
        return marginals

    def log_normalizer(self) -> NDArray[np.float64]:
        """``log Z``, float64[S]."""
        log_z = np.empty(self._dataset.n_sequences)
        self._decoder.infer(self._data, self._n_threads, log_z=log_z)
        return log_z

    def path_score(self, labels: NDArray[np.integer]) -> NDArray[np.float64]:
        """Scores of the given labels, float64[S]."""
        path = np.ascontiguousarray(labels, dtype=np.int32)
        if path.shape != (self._dataset.n_tokens,):
            raise OptionError(
                "labels", path.shape, f"give one label id for each of {self._dataset.n_tokens} tokens"
            )
        if path.size and not (path.min() >= 0 and path.max() < self._n_labels):
            raise OptionError("labels", int(path.max()), f"label ids are 0 to {self._n_labels - 1}")
        scores = np.empty(self._dataset.n_sequences)
        data = _native_data(replace(self._dataset, labels=path))
        self._decoder.infer(data, self._n_threads, path_score=scores)
        return scores
