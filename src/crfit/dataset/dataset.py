"""Sequences as flat arrays: what engines read, whatever the data came from.

With S sequences, N positions in all and nnz attribute occurrences

    sequence i  has positions     seq_ptr[i] : seq_ptr[i+1]
    position n  has occurrences   attr_ptr[n] : attr_ptr[n+1]
    occurrence  is attribute      attr_ids[k] with value attr_values[k]

and likewise ``edge_ptr``, ``edge_ids`` for attributes on the pair of labels (y_{t-1}, y_t). One layout serves
native code, GPU upload and files. Alphabets are locked as soon as a dataset has them, so that data read later
with the same alphabets cannot add to what a model knows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.alphabet import Alphabet, HasAlphabets
from crfit.checks import check_free, check_whole_number
from crfit.dataset import building, selection
from crfit.dataset import file as dataset_file
from crfit.dataset.checks import checked_arrays, first_outside, read_only
from crfit.errors import DataError, OptionError

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Sequences of positions with attributes and, for training, labels.

    Usually made by `from_sequences`, `from_csr`, `from_dense` or the file readers. The arrays are checked
    once, here; nothing may write to them afterwards.

    Parameters
    ----------
    seq_ptr : int64 array of shape (S + 1,)
        Positions of a sequence. No sequence is empty.
    attr_ptr : int64 array of shape (N + 1,)
        Attribute occurrences of a position.
    attr_ids : int32 array of shape (nnz,)
        Attribute of an occurrence. Repeated ones add up.
    attr_values : float64 array of shape (nnz,), optional
        Value of an occurrence; None when all are 1.
    labels : int32 array of shape (N,), optional
        Label of a position; None when not known.
    edge_ptr : int64 array of shape (N + 1,), optional
        Edge attributes of a position. The first position of a sequence has none.
    edge_ids : int32 array, optional
        Edge attribute of an occurrence.
    sequence_weights : float64 array of shape (S,), optional
        The weights ``c_i`` of the objective; None when all are 1.
    attribute_alphabet, label_alphabet, edge_alphabet : Alphabet
        Names of the ids; locked from here on.
    source : str, optional
        Name of the file or files, for messages.
    line_numbers : int64 array of shape (N,), optional
        Line of a position in the source.
    plain_transitions : bool
        Whether (label, label) features belong to the model; False for a template without a plain ``B``.
    n_dropped : int
        Attribute occurrences left out when the data was read because a locked alphabet does not have them.
        Subsets carry the number of the whole.
    """

    seq_ptr: NDArray[np.int64]
    attr_ptr: NDArray[np.int64]
    attr_ids: NDArray[np.int32]
    attr_values: NDArray[np.float64] | None = None
    labels: NDArray[np.int32] | None = None
    edge_ptr: NDArray[np.int64] | None = None
    edge_ids: NDArray[np.int32] | None = None
    sequence_weights: NDArray[np.float64] | None = None
    attribute_alphabet: Alphabet = field(default_factory=Alphabet)
    label_alphabet: Alphabet = field(default_factory=Alphabet)
    edge_alphabet: Alphabet = field(default_factory=Alphabet)
    source: str | None = None
    line_numbers: NDArray[np.int64] | None = None
    plain_transitions: bool = True
    n_dropped: int = 0

    def __post_init__(self) -> None:
        for name, array in checked_arrays(self).items():
            object.__setattr__(self, name, read_only(array))
        self.attribute_alphabet.lock()
        self.label_alphabet.lock()
        self.edge_alphabet.lock()

    @classmethod
    def _trusted(cls, **values: Any) -> Dataset:
        """Make a dataset of arrays that are right by construction and of locked alphabets.

        Checking the arrays of a short sentence takes longer than reading it, and tagging does that often.
        """
        dataset = object.__new__(cls)
        fields = {name: read_only(v) if isinstance(v, np.ndarray) else v for name, v in values.items()}
        vars(dataset).update(_DEFAULTS | fields)
        return dataset

    @classmethod
    def from_sequences(
        cls,
        X: Iterable[Iterable[building.Item]],
        y: Iterable[Iterable[str]] | None = None,
        *,
        sequence_weights: ArrayLike | None = None,
        alphabets_of: HasAlphabets | None = None,
        n_threads: int | None = None,
    ) -> Dataset:
        """Read lists of items, named as python-crfsuite names them.

        An item, all that is known about one position, is a list, tuple or set of str (each an attribute of
        value 1) or a dict. In a dict a number keeps its key and is the value (also 0: an attribute seen with
        value 0 has been seen), a bool is 1 or 0, a str gives the attribute ``key:value`` with value 1, and a
        dict, list, tuple or set inside gives ``key:`` before each name in it, to any depth. Nothing is
        escaped.

        Ids follow first appearance: sequence, position, order in the item (sets: sorted).

        Parameters
        ----------
        X : iterable of sequences of items
            One sequence ``x`` is given as ``[x]``.
        y : iterable of sequences of str, optional
            A label for each item.
        sequence_weights : array-like of shape (S,), optional
            Finite, not negative.
        alphabets_of : Dataset or Model, optional
            Reads with its alphabets: attributes it does not have are left out and counted in `n_dropped`;
            labels it does not have get ids after its own, in a copy.
        n_threads : int, optional
            Threads for large data, see `crfit.threads`. The result does not depend on it.

        Returns
        -------
        Dataset

        Raises
        ------
        DataError
            Names the sequence and the position.
        """
        return cls._trusted(**building.from_sequences(X, y, sequence_weights, alphabets_of, n_threads))

    @classmethod
    def from_csr(
        cls,
        X: Any,
        lengths: ArrayLike,
        y: Iterable[Any] | None = None,
        *,
        names: Sequence[str] | None = None,
        sequence_weights: ArrayLike | None = None,
        alphabets_of: HasAlphabets | None = None,
    ) -> Dataset:
        """Read a sparse matrix with one row for each position, sequence after sequence.

        Column indices (int32) and values (float64) are used as they are, without a copy: do not change the
        matrix afterwards. Stored zeros are kept.

        Parameters
        ----------
        X : SciPy sparse matrix or array of shape (N, A)
            Other formats than CSR are converted.
        lengths : array-like of int of shape (S,)
            Rows of each sequence.
        y : iterable of str, or of sequences of str, optional
            A label for each row, in one list or in a list for each sequence.
        names : sequence of str, optional
            Attribute of each column, by default its number as a string.
        sequence_weights : array-like of shape (S,), optional
            Finite, not negative.
        alphabets_of : Dataset or Model, optional
            As in `from_sequences`; columns are matched by name.

        Returns
        -------
        Dataset

        Raises
        ------
        DataError
            Names the sequence and the position where there is one.
        """
        matrix = building.csr_arrays(X)
        return cls(**building.from_matrix(matrix, lengths, y, names, sequence_weights, alphabets_of))

    @classmethod
    def from_dense(
        cls,
        X: ArrayLike,
        lengths: ArrayLike,
        y: Iterable[Any] | None = None,
        *,
        names: Sequence[str] | None = None,
        sequence_weights: ArrayLike | None = None,
        alphabets_of: HasAlphabets | None = None,
    ) -> Dataset:
        """Read a dense matrix with one row for each position, sequence after sequence.

        Zeros are no occurrences.

        Parameters
        ----------
        X : array-like of shape (N, A)
            Values of the attributes, finite.
        lengths : array-like of int of shape (S,)
            Rows of each sequence.
        y : iterable of str, or of sequences of str, optional
            A label for each row, in one list or in a list for each sequence.
        names : sequence of str, optional
            Attribute of each column, by default its number as a string.
        sequence_weights : array-like of shape (S,), optional
            Finite, not negative.
        alphabets_of : Dataset or Model, optional
            As in `from_sequences`; columns are matched by name.

        Returns
        -------
        Dataset

        Raises
        ------
        DataError
            Names the sequence and the position where there is one.
        """
        matrix = building.dense_arrays(X)
        return cls(**building.from_matrix(matrix, lengths, y, names, sequence_weights, alphabets_of))

    @property
    def n_sequences(self) -> int:
        """Number of sequences, S."""
        return len(self.seq_ptr) - 1

    @property
    def n_tokens(self) -> int:
        """Number of positions in all sequences, N."""
        return len(self.attr_ptr) - 1

    @property
    def n_occurrences(self) -> int:
        """Number of attribute occurrences, nnz."""
        return len(self.attr_ids)

    @property
    def n_attributes(self) -> int:
        """Number of attributes in the alphabet."""
        return len(self.attribute_alphabet)

    @property
    def n_labels(self) -> int:
        """Number of labels in the alphabet."""
        return len(self.label_alphabet)

    @property
    def n_edge_attributes(self) -> int:
        """Number of edge attributes in the alphabet."""
        return len(self.edge_alphabet)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of positions of each sequence, int64[S]."""
        return np.diff(self.seq_ptr)

    @property
    def one_position(self) -> bool:
        """Whether every sequence has one position, as in data for a classifier."""
        return self.n_tokens == self.n_sequences

    def sequence_labels(self, labels: NDArray[np.int32] | None = None) -> list[list[str]]:
        """Give the labels as strings.

        Parameters
        ----------
        labels : int array of shape (N,), optional
            Label ids to translate, such as a decoder's; by default those of the dataset.

        Returns
        -------
        list of lists of str
            One list for each sequence.
        """
        ids = self.labels if labels is None else np.asarray(labels)
        if ids is None:
            raise DataError("the dataset has no labels: give y when it is made", file=self.source)
        if ids.shape != (self.n_tokens,):
            raise OptionError(
                "labels", ids.shape, f"one label for each of {self.n_tokens} positions is needed"
            )
        outside = first_outside(ids, self.n_labels)
        if outside is not None:
            wrong = int(ids[outside])
            raise OptionError("labels", wrong, f"there are {self.n_labels} labels, counted from 0")
        names = self.label_alphabet.strings()
        words = [names[i] for i in ids.tolist()]
        ends = self.seq_ptr.tolist()
        return [words[start:end] for start, end in pairwise(ends)]

    def prune(self, min_count: int, *, n_free: int = 0) -> Dataset:
        """Drop rare attributes and edge attributes.

        Parameters
        ----------
        min_count : int
            Attributes that occur at fewer positions go; a position that repeats one counts once.
        n_free : int, default=0
            So many attributes, the last of the alphabet, stay however rare they are.

        Returns
        -------
        Dataset
            With compacted ids in the old order.
        """
        check_whole_number("min_count", min_count, at_least=0)
        check_free(n_free, self.n_attributes)
        return selection.drop_rare(self, int(min_count), int(n_free)) if min_count > 0 else self

    def subset(self, sequence_ids: ArrayLike) -> Dataset:
        """Choose sequences.

        Parameters
        ----------
        sequence_ids : array-like of int
            Numbers of the sequences, in any order; repeated ones are repeated.

        Returns
        -------
        Dataset
            With the same alphabets. Consecutive sequences share memory with this dataset.
        """
        return selection.choose(self, selection.checked_ids(sequence_ids, self.n_sequences))

    def split(self, *fractions: float, seed: int = 0) -> list[Dataset]:
        """Split at random into parts.

        Parameters
        ----------
        *fractions : float
            Share of the sequences in each part. What is missing to 1 is one more: ``split(0.9)`` gives two.
        seed : int
            Same seed, same parts.

        Returns
        -------
        list of Dataset
            Each sequence in one of them, in the old order.
        """
        parts = selection.random_parts(self.n_sequences, fractions, seed)
        return [selection.choose(self, part) for part in parts]

    def shard(self, rank: int, size: int) -> Dataset:
        """Give one of `size` parts of consecutive sequences, with about as many positions each.

        Parameters
        ----------
        rank : int
            Which part, from 0.
        size : int
            Number of parts.

        Returns
        -------
        Dataset
            An exact share to within half a sequence at either end. It shares memory with this dataset.
        """
        return selection.choose(self, selection.shard_ids(self.seq_ptr, rank, size))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one safetensors file; a crash leaves what was there before.

        Parameters
        ----------
        path : path-like
            Name of the file, replaced if it exists.
        """
        dataset_file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dataset:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path-like
            Name of the file.

        Returns
        -------
        Dataset

        Raises
        ------
        DataError
            The file is no dataset, is damaged, or has arrays that do not fit together.
        """
        return dataset_file.load(cls, path)

    def __repr__(self) -> str:
        unlabelled = "" if self.labels is not None else ", unlabelled"
        return (
            f"<Dataset of {self.n_sequences} sequences, {self.n_tokens} positions, "
            f"{self.n_attributes} attributes, {self.n_labels} labels{unlabelled}>"
        )


_DEFAULTS = {f.name: f.default for f in fields(Dataset)}
