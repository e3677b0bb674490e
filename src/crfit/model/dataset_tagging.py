"""Labels, marginals and best paths of datasets under fixed weights, in label ids and arrays.

With the score ``s(x, y)`` of a label sequence, the sum of the weights of its features,

    best path    argmax_y s(x, y)
    probability  p(y | x) = exp(s(x, y) - log Z(x)),   Z(x) = sum_y exp(s(x, y))
    marginal     p(y_t = l | x), the sum of p(y | x) over all y with label l at position t

What the engine needs is prepared at the first call. Any number of threads may ask at once.
"""

from __future__ import annotations

import math
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.dataset.recoding import recode
from crfit.engines import ENGINES, Decoder, Inference
from crfit.errors import DataError

if TYPE_CHECKING:
    from crfit.alphabet import Alphabet
    from crfit.dataset import Dataset
    from crfit.layout import Layout

__all__ = ["DatasetTagger", "LabelPath"]

LabelPath: TypeAlias = tuple[NDArray[np.int32], float]


class DatasetTagger:
    """What answers questions about datasets; the base of `crfit.model.tagging.Tagger`.

    Parameters
    ----------
    weights : float64 array of shape (n_weights,)
        The weights; nothing may write to them afterwards.
    layout : Layout
        Which feature each weight belongs to.
    attribute_alphabet, label_alphabet, edge_alphabet : Alphabet
        Names of the ids, locked.
    """

    def __init__(
        self,
        weights: NDArray[np.float64],
        layout: Layout,
        attribute_alphabet: Alphabet,
        label_alphabet: Alphabet,
        edge_alphabet: Alphabet,
    ) -> None:
        self.weights, self.layout = weights, layout
        self.attribute_alphabet = attribute_alphabet
        self.label_alphabet = label_alphabet
        self.edge_alphabet = edge_alphabet
        self._names = label_alphabet.strings()
        self._decoder: Decoder | None = None
        self._lock = Lock()

    @property
    def labels(self) -> list[str]:
        """The labels, in the order of their ids."""
        return list(self._names)

    def tag_dataset(self, dataset: Dataset, *, n_threads: int | None = None) -> NDArray[np.int32]:
        """Find the most probable labels of a dataset.

        Parameters
        ----------
        dataset : Dataset
            Sequences with any alphabets; labels are not looked at.
        n_threads : int, optional
            Threads; None for all cores.

        Returns
        -------
        int32 array of shape (N,)
            Label ids of the model, one for each position.
        """
        return self._infer(self._own(dataset), n_threads).viterbi()[0]

    def marginals_dataset(self, dataset: Dataset, *, n_threads: int | None = None) -> NDArray[np.float64]:
        """Give the probability of each label at each position of a dataset.

        Parameters
        ----------
        dataset : Dataset
            Sequences with any alphabets; labels are not looked at.
        n_threads : int, optional
            Threads; None for all cores.

        Returns
        -------
        float64 array of shape (N, Y)
            Columns in the order of `labels`.
        """
        return self._marginals(self._own(dataset), n_threads)

    def nbest_dataset(
        self, dataset: Dataset, n: int, *, n_threads: int | None = None
    ) -> list[list[LabelPath]]:
        """Find the `n` most probable label sequences of each sequence of a dataset.

        Parameters
        ----------
        dataset : Dataset
            Sequences with any alphabets; labels are not looked at.
        n : int
            How many for each.
        n_threads : int, optional
            Threads; None for all cores.

        Returns
        -------
        list of lists of (int32 array, float)
            Label ids of the model and the logarithm of their probability, best first.
        """
        return self._nbest(self._own(dataset), n, n_threads)

    def log_probability_dataset(
        self, dataset: Dataset, *, n_threads: int | None = None
    ) -> NDArray[np.float64]:
        """Give the logarithm of the probability of the labels of a dataset.

        Parameters
        ----------
        dataset : Dataset
            Labelled sequences with any alphabets.
        n_threads : int, optional
            Threads; None for all cores.

        Returns
        -------
        float64 array of shape (S,)
            ``log p(y_i | x_i)``; minus infinity where the model lacks a label.
        """
        own = self._own(dataset)
        if own.labels is None:
            raise DataError("the data has no labels", file=dataset.source)
        unknown = own.labels >= len(self._names)
        scores = self._log_probability(own, np.where(unknown, 0, own.labels), n_threads)
        np.minimum(scores, 0.0, out=scores)  # with huge weights rounding would exceed a probability of 1
        if unknown.any():
            positions = np.flatnonzero(unknown)
            scores[np.searchsorted(own.seq_ptr, positions, side="right") - 1] = -math.inf
        return scores

    def _marginals(self, dataset: Dataset, n_threads: int | None) -> NDArray[np.float64]:
        """Probability of each label at each position of a dataset that has the ids of the model."""
        return self._infer(dataset, n_threads).node_marginals()

    def _nbest(self, dataset: Dataset, n: int, n_threads: int | None) -> list[list[LabelPath]]:
        """Best paths of a dataset that has the ids of the model."""
        return self._infer(dataset, n_threads).nbest(n)

    def _log_probability(
        self, dataset: Dataset, labels: NDArray[np.int32], n_threads: int | None
    ) -> NDArray[np.float64]:
        """Logarithm of the probability of labels, for each sequence of a dataset with the model's ids."""
        inference = self._infer(dataset, n_threads)
        return inference.path_score(labels) - inference.log_normalizer()

    def _infer(self, dataset: Dataset, n_threads: int | None) -> Inference:
        """Inference on a dataset that has the ids of the model."""
        decoder = self._decoder
        if decoder is None:
            with self._lock:
                if self._decoder is None:
                    self._decoder = ENGINES["cpu"].decoder(self.layout, self.weights)
                decoder = self._decoder
        return decoder(dataset, n_threads=n_threads)

    def _own(self, dataset: Dataset) -> Dataset:
        """The dataset in the ids of the model: itself, where it was read with the model's alphabets."""
        if (
            dataset.attribute_alphabet is self.attribute_alphabet
            and dataset.edge_alphabet is self.edge_alphabet
            and dataset.label_alphabet.strings()[: len(self._names)] == self._names
        ):
            return dataset
        return recode(dataset, self)
