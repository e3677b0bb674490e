"""Labels, marginals and best paths of datasets under fixed weights, in label ids and arrays.

With the score ``s(x, y)`` of a label sequence, the sum of the weights of its features,

    best path    argmax_y s(x, y)
    probability  p(y | x) = exp(s(x, y) - log Z(x)),   Z(x) = sum_y exp(s(x, y))
    marginal     p(y_t = l | x), the sum of p(y | x) over all y with label l at position t

What the engine needs is prepared at the first call. Any number of threads may ask at once.

Labels, marginals and best paths of sequences in Python objects, by name.

Each question can be asked of one sequence (``tag``), of many (``tag_many``), which may also be a dataset, and
of a dataset alone (``tag_dataset``, `crfit.model.tagging`), which answers in label ids and arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sized
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.data import Dataset
from crfit.data.dataset import recode
from crfit.engines import ENGINES, Decoder, Inference
from crfit.errors import DataError

if TYPE_CHECKING:
    from crfit.data.alphabet import Alphabet
    from crfit.data.from_python import Item
    from crfit.layout import Layout

__all__ = [
    "DatasetTagger",
    "LabelPath",
    "Tagger",
]

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


Items: TypeAlias = "Iterable[Item]"
Path: TypeAlias = tuple[list[str], float]


class Tagger(DatasetTagger):
    """What answers questions about sequences; the base of `crfit.model.Model`."""

    def encode(
        self,
        X: Iterable[Items],
        y: Iterable[Iterable[str]] | None = None,
        *,
        n_threads: int | None = None,
    ) -> Dataset:
        """Read sequences with the alphabets of the model.

        Parameters
        ----------
        X : iterable of sequences of items
            As in `Dataset.from_sequences`. Attributes that the model lacks are left out and counted in
            ``n_dropped`` of the dataset.
        y : iterable of sequences of str, optional
            Labels. Those that the model lacks get ids after its own.
        n_threads : int, optional
            Threads for large data; None for all cores.

        Returns
        -------
        Dataset
        """
        return Dataset.from_sequences(X, y, alphabets_of=self, n_threads=n_threads)

    def tag(self, x: Items) -> list[str]:
        """Find the most probable labels of one sequence.

        Parameters
        ----------
        x : sequence of items
            What is known about each position: a list of attributes or a dict. Rows of column files are none,
            see `crfit.model.Model.read`.

        Returns
        -------
        list of str
            A label for each position. Of equally probable ones, those with the lower ids from the end.
        """
        if _is_empty(x):
            return []
        names = self._names
        return [names[i] for i in self._infer(self.encode([x]), 1).viterbi()[0].tolist()]

    def tag_many(self, X: Iterable[Items] | Dataset, *, n_threads: int | None = None) -> list[list[str]]:
        """Find the most probable labels of many sequences.

        Parameters
        ----------
        X : iterable of sequences of items, or Dataset
            Sequences; empty ones have no labels. A dataset may have any alphabets; labels are not looked at.
        n_threads : int, optional
            Threads; None for all cores. The result does not depend on it.

        Returns
        -------
        list of lists of str
            The labels of each sequence.
        """
        lengths, dataset = self._encode_many(X, n_threads)
        names = self._names
        words = [names[i] for i in self._infer(dataset, n_threads).viterbi()[0].tolist()]
        return _by_sequence(words, lengths)

    def marginals(self, x: Items) -> list[dict[str, float]]:
        """Give the probability of each label at each position of one sequence.

        Parameters
        ----------
        x : sequence of items
            As in `tag`.

        Returns
        -------
        list of dict of str to float
            For each position the labels and their probabilities, which add up to 1.
        """
        if _is_empty(x):
            return []
        return self._named(self._marginals(self.encode([x]), 1))

    def marginals_many(
        self, X: Iterable[Items] | Dataset, *, n_threads: int | None = None
    ) -> list[list[dict[str, float]]]:
        """Give the probability of each label at each position of many sequences.

        Parameters
        ----------
        X : iterable of sequences of items, or Dataset
            As in `tag_many`.
        n_threads : int, optional
            Threads; None for all cores.

        Returns
        -------
        list of lists of dict of str to float
            What `marginals` gives for each sequence.
        """
        lengths, dataset = self._encode_many(X, n_threads)
        table = self._named(self._marginals(dataset, n_threads))
        return _by_sequence(table, lengths)

    def nbest(self, x: Items, n: int) -> list[Path]:
        """Find the `n` most probable label sequences of one sequence.

        Parameters
        ----------
        x : sequence of items
            As in `tag`.
        n : int
            How many.

        Returns
        -------
        list of (list of str, float)
            Labels and their probability given `x`, best first; fewer where there are no more.
        """
        if _is_empty(x):
            return [([], 1.0)]
        return self._named_paths(self._nbest(self.encode([x]), n, 1)[0])

    def nbest_many(
        self, X: Iterable[Items] | Dataset, n: int, *, n_threads: int | None = None
    ) -> list[list[Path]]:
        """Find the `n` most probable label sequences of many sequences.

        Parameters
        ----------
        X : iterable of sequences of items, or Dataset
            As in `tag_many`.
        n : int
            How many for each.
        n_threads : int, optional
            Threads; None for all cores.

        Returns
        -------
        list of lists of (list of str, float)
            What `nbest` gives for each sequence.
        """
        lengths, dataset = self._encode_many(X, n_threads)
        found = iter(self._nbest(dataset, n, n_threads))
        return [self._named_paths(next(found)) if length else [([], 1.0)] for length in lengths]

    def probability(self, x: Items, y: Iterable[str]) -> float:
        """Give the probability of a label sequence.

        Parameters
        ----------
        x : sequence of items
            As in `tag`.
        y : sequence of str
            A label for each position.

        Returns
        -------
        float
            ``p(y | x)``; 0 if the model lacks one of the labels.
        """
        return math.exp(self.log_probability(x, y))

    def log_probability(self, x: Items, y: Iterable[str]) -> float:
        """Give the logarithm of `probability`, which is meaningful also where that is too small a number.

        Parameters
        ----------
        x : sequence of items
            As in `tag`.
        y : sequence of str
            A label for each position.

        Returns
        -------
        float
            ``log p(y | x)``; minus infinity if the model lacks one of the labels.
        """
        return float(self.log_probability_dataset(self.encode([x], [y]), n_threads=1)[0])

    def _encode_many(self, X: Iterable[Items] | Dataset, n_threads: int | None) -> tuple[list[int], Dataset]:
        """Lengths of all sequences, and a dataset of those that are not empty."""
        if isinstance(X, Dataset):
            return X.lengths.tolist(), self._own(X)
        sequences: list[Any] = [x if isinstance(x, Sized) else list(x) for x in X]
        dataset = self.encode([x for x in sequences if len(x)], n_threads=n_threads)
        return [len(x) for x in sequences], dataset

    def _named(self, marginals: NDArray[np.float64]) -> list[dict[str, float]]:
        return [dict(zip(self._names, row, strict=True)) for row in marginals.tolist()]

    def _named_paths(self, paths: list[LabelPath]) -> list[Path]:
        names = self._names
        return [([names[i] for i in labels.tolist()], math.exp(log_p)) for labels, log_p in paths]


def _is_empty(x: object) -> bool:
    return isinstance(x, Sized) and len(x) == 0


def _by_sequence(entries: list[Any], lengths: list[int]) -> list[list[Any]]:
    """What belongs to each sequence, empty ones included."""
    rest = iter(entries)
    return [list(islice(rest, length)) for length in lengths]
