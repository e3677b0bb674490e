"""The native engine: threaded, scaled domain, any order.

Wraps ``crfit._native``. The arithmetic and the reason why results do not depend on the number of threads are
described in ``native/lattice.hpp`` (``native/history_lattice.hpp`` for order 2 and more) and
``native/batch.hpp``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from crfit import _native
from crfit.engines.cpu.dual import CpuDual
from crfit.engines.cpu.margin import CpuMarginRun
from crfit.engines.cpu.online import CpuMetaRun, CpuOnlineRun, CpuPeriodicRun, native_periods, native_rule
from crfit.engines.cpu.pair_history import NativePairHistory
from crfit.engines.decoding import checked_n, checked_path
from crfit.engines.objective import Curvature, EngineObjective, LineFunction, SequenceIds
from crfit.engines.online import MetaDescent, Periodic
from crfit.engines.profile import Phases
from crfit.engines.table_memory import MAX_TABLE_BYTES, check_memory
from crfit.threads import resolve_threads
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.engines.margin import MarginRule
    from crfit.engines.online import EngineOnlineRun, Rule
    from crfit.layout import Layout

__all__ = ["CpuDecoder", "CpuInference", "CpuObjective"]


#: Tables of label n-grams that are held at one time: scores, exponentials, their transpose, observed and
#: expected ones, two of a thread, and sixteen of parts of the data.
N_NGRAM_TABLES = 23


def _table_bytes(n_positions: int, n_labels: int, order: int) -> int:
    """Memory for one thread's forward, backward and pointer tables, and for the n-gram tables."""
    if order == 1:  # grows with the sequence alone, like the data itself
        return 0
    row = -(-n_labels // 8) * 8  # the last label is padded
    lattice = (3 * 8 + 4) * n_positions * n_labels ** (order - 1) * row
    return int(lattice + 8 * N_NGRAM_TABLES * row * sum(n_labels**m for m in range(1, order + 1)))


def _native_layout(layout: Layout) -> _native.Layout:
    return _native.Layout(
        layout.n_labels,
        layout.n_attributes,
        layout.n_edge_attributes,
        layout.state_ptr,
        layout.state_labels,
        list(layout.transition_codes),
        layout.edge_ptr,
        layout.edge_codes,
        layout.boundary,
        layout.n_free,
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
        Which features have a weight.
    l1, l2 : float
        Strengths of the penalties.
    n_threads : int, optional
        Threads; None for all cores. The result does not depend on it.
    arithmetic : {"scaled", "log"}, default="scaled"
        Domain of forward-backward. "log" is slower and there to be compared with.
    offsets : float64[N, Y], optional
        Constants that are added to the scores of the labels at each position.
    """

    device: ClassVar[str] = "cpu"
    capabilities: frozenset[str] = frozenset(
        {
            *("value", "value_and_grad", "subset", "along", "expectations", "l1", "offsets"),
            *("hvp", "hessian_diagonal", "feature_totals", "scaling_terms", "online", "margin", "dual"),
        }
    )

    def __init__(
        self,
        dataset: Dataset,
        layout: Layout,
        *,
        l1: float,
        l2: float,
        n_threads: int | None = None,
        arithmetic: str = "scaled",
        offsets: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(dataset, layout, l1=l1, l2=l2, n_threads=resolve_threads(n_threads))
        check_memory(dataset, layout, _table_bytes, "native")
        if layout.order > 1:
            self.capabilities -= {"dual"}  # the native chains of the dual have order 1
        self._data, self._native_layout = _native_data(dataset), _native_layout(layout)
        self.arithmetic, self._log_domain = arithmetic, arithmetic == "log"
        if offsets is not None:  # what starts from weights alone would not know them
            self.capabilities -= {"online", "margin", "dual", "feature_totals", "scaling_terms"}
        self._batch = _native.Batch(
            self._data, self._native_layout, self.n_threads, self._log_domain, offsets=offsets
        )
        self._lock = Lock()  # the core's tables serve one call at a time
        self._line: object | None = None  # the profile whose scores the core holds

    def pair_history(self, memory: int) -> NativePairHistory:
        """Return the memory of curvature pairs for this objective's vectors."""
        return NativePairHistory(self.n_weights, memory, self.n_threads)

    @contextmanager
    def _core(self) -> Iterator[_native.Batch]:
        """The core, for one call at a time. Sets: `phases`."""
        with self._lock:
            before = Phases(*self._batch.phase_seconds())
            yield self._batch
            self.phases += Phases(*self._batch.phase_seconds()) - before

    def keep_curvature(self, curvature: Curvature | None) -> None:
        """Say what gradients keep, from now on, for products at their point.

        Parameters
        ----------
        curvature : Curvature or None
            What to keep; None to keep nothing at gradients and to free what is kept. With order 2 and more
            "all" is as much as 4 GiB hold.
        """
        kept = Curvature() if curvature is None else curvature
        n_sequences, n_bytes = kept.limits()
        if self.layout.order > 1 and kept.cache == "all":  # 2 Y^k numbers a position are soon too many
            n_bytes = MAX_TABLE_BYTES
        with self._core() as core:
            core.keep_curvature(kept.storage == "pairs", n_sequences, n_bytes, curvature is not None, kept.ad)

    @property
    def table_bytes(self) -> int:
        """Memory that the tables of all sequences take where products reuse them, ``cache="all"``."""
        n_labels, order, n = self.layout.n_labels, self.layout.order, self.dataset.n_tokens
        if self.dataset.one_position:
            return 8 * n * (1 if self.logistic else n_labels)
        n_bytes = 8 * n * (n_labels + 2 * int(n_labels**order))
        return n_bytes if order == 1 else min(n_bytes, MAX_TABLE_BYTES)

    @property
    def curvature_bytes(self) -> int:
        """Memory that is taken by what is kept for products."""
        return self._batch.kept_bytes

    def _hvp(self, w: Vector, v: Vector, out: Vector, l2: float) -> None:
        with self._core() as core:
            core.hessian_product(w, v, l2, out)

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

    def _online(self, w: Vector, rule: Rule) -> EngineOnlineRun:
        if isinstance(rule, MetaDescent):
            return CpuMetaRun(self, w, rule, self._data, self._native_layout)
        if isinstance(rule, Periodic):
            constants = native_periods(rule, self.dataset, self.layout)
            core = _native.Online(self._data, self._native_layout, *constants, self.n_threads)
            return CpuPeriodicRun(self, w, rule, core)
        core = _native.Online(self._data, self._native_layout, *native_rule(rule), self.n_threads)
        return CpuOnlineRun(self, w, rule, core)

    def _margin(self, w: Vector, rule: MarginRule) -> CpuMarginRun:
        return CpuMarginRun(self, w, rule, self._data, self._native_layout)

    def _expectations(self, w: Vector) -> Vector:
        out = np.empty(self.n_weights)
        with self._core() as core:
            core.expectations(w, out)
        return out

    def _dual(self, start: float, eta: float) -> CpuDual:
        native = _native.Dual(self._data, self._native_layout, self._log_domain, self.n_threads)
        native.start(start, eta)
        return CpuDual(self, native)

    def _along(self, w: Vector, d: Vector) -> LineFunction:
        line = object()
        with self._core() as core:
            core.set_line(w, d)
            self._line = line

        def evaluate(step: float) -> tuple[float, float]:
            with self._core() as core:
                if self._line is not line:  # another profile was made in between
                    core.set_line(w, d)
                    self._line = line
                return core.along(step)

        return evaluate


class CpuDecoder:
    """The core's tables for fixed weights; see `crfit.engines.Decoder`.

    Parameters
    ----------
    layout : Layout
        Which features have a weight.
    weights : float64[n_weights]
        The weights.
    """

    def __init__(self, layout: Layout, weights: NDArray[np.float64]) -> None:
        self.layout = layout
        self.native = _native.Decoder(_native_layout(layout), weights)

    def __call__(self, dataset: Dataset, *, n_threads: int | None = None) -> CpuInference:
        """Inference on a dataset that is encoded with the alphabets of the layout.

        Parameters
        ----------
        dataset : Dataset
            Sequences; labels are not looked at.
        n_threads : int, optional
            Threads; None for all cores.
        """
        return CpuInference(dataset, self, n_threads)


class CpuInference:
    """Best paths, marginals and scores on CPU threads; see `crfit.engines.Inference`.

    Parameters
    ----------
    dataset : Dataset
        Sequences, encoded with the alphabets of the layout.
    decoder : CpuDecoder
        The weights.
    n_threads : int, optional
        Threads; None for all cores.
    """

    def __init__(self, dataset: Dataset, decoder: CpuDecoder, n_threads: int | None = None) -> None:
        self._dataset = dataset
        check_memory(dataset, decoder.layout, _table_bytes, "native")
        self._n_labels = decoder.layout.n_labels
        self._n_threads = resolve_threads(n_threads)
        self._data = _native_data(dataset)
        self._decoder = decoder.native

    def viterbi(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Labels of the best paths, int32[N], and their scores, float64[S]."""
        labels = np.empty(self._dataset.n_tokens, dtype=np.int32)
        scores = np.empty(self._dataset.n_sequences)
        self._decoder.infer(self._data, self._n_threads, best=labels, best_score=scores)
        return labels, scores

    def nbest(self, n: int) -> list[list[tuple[NDArray[np.int32], float]]]:
        """Up to `n` best paths of each sequence with their log-probabilities, best first."""
        return list(self._decoder.nbest(self._data, checked_n(n), self._n_threads))

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
        scores = np.empty(self._dataset.n_sequences)
        self._decoder.infer(self._labelled(labels), self._n_threads, path_score=scores)
        return scores

    def posterior(self, labels: NDArray[np.integer]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log-probabilities of the given labels, float64[S], and ``p(y_t)``, float64[N, Y], in one pass."""
        log_z, scores = np.empty(self._dataset.n_sequences), np.empty(self._dataset.n_sequences)
        marginals = np.empty((self._dataset.n_tokens, self._n_labels))
        data = self._labelled(labels)
        self._decoder.infer(data, self._n_threads, log_z=log_z, node_marginals=marginals, path_score=scores)
        return scores - log_z, marginals

    def _labelled(self, labels: NDArray[np.integer]) -> _native.Data:
        path = checked_path(labels, self._dataset.n_tokens, self._n_labels)
        if path is self._dataset.labels:
            return self._data
        return _native_data(replace(self._dataset, labels=path))
