"""Sequences as flat arrays: what engines read, whatever the data came from.

With S sequences, N positions in all and nnz attribute occurrences

    sequence i  has positions     seq_ptr[i] : seq_ptr[i+1]
    position n  has occurrences   attr_ptr[n] : attr_ptr[n+1]
    occurrence  is attribute      attr_ids[k] with value attr_values[k]

and likewise ``edge_ptr``, ``edge_ids`` for attributes on the pair of labels (y_{t-1}, y_t). One layout serves
native code, GPU upload and files. Alphabets are locked as soon as a dataset has them, so that data read later
with the same alphabets cannot add to what a model knows.

Parts of a dataset: chosen sequences, random parts, balanced shards, frequent attributes.

Datasets as files (`crfit.data.tensor_file`): the arrays, the alphabets, and a header with the rest.

Tensors: each array of `crfit.data.arrays.DTYPES` that the dataset has, and for each alphabet its strings
back to back (``label_alphabet.bytes``) and where each begins (``label_alphabet.offsets``).

A dataset in the ids of other alphabets.

Held-out data is read with the alphabets of the training data, but rare attributes may be dropped from those
afterwards, and data may come with alphabets of its own. Ids are translated by name,

    new_id[a] = alphabet.find(name[a]),  -1 where the other alphabet lacks the name,

once for each name and not for each occurrence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit import _native
from crfit.checks import check_free, check_whole_number
from crfit.data import from_python, tensor_file
from crfit.data.alphabet import Alphabet, HasAlphabets
from crfit.data.arrays import DTYPES, checked_arrays, first_outside, keep, read_only, rows
from crfit.data.tensor_file import DAMAGED, FileKind, Tensors
from crfit.errors import DataError, ModelFileError, OptionError

if TYPE_CHECKING:
    from crfit.data import Dataset

__all__ = [
    "Dataset",
    "checked_ids",
    "choose",
    "drop_rare",
    "random_parts",
    "recode",
    "shard_ids",
]


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
        X: Iterable[Iterable[from_python.Item]],
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
        return cls._trusted(**from_python.from_sequences(X, y, sequence_weights, alphabets_of, n_threads))

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
        matrix = from_python.csr_arrays(X)
        return cls(**from_python.from_matrix(matrix, lengths, y, names, sequence_weights, alphabets_of))

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
        matrix = from_python.dense_arrays(X)
        return cls(**from_python.from_matrix(matrix, lengths, y, names, sequence_weights, alphabets_of))

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
        return drop_rare(self, int(min_count), int(n_free)) if min_count > 0 else self

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
        return choose(self, checked_ids(sequence_ids, self.n_sequences))

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
        parts = random_parts(self.n_sequences, fractions, seed)
        return [choose(self, part) for part in parts]

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
        return choose(self, shard_ids(self.seq_ptr, rank, size))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one safetensors file; a crash leaves what was there before.

        Parameters
        ----------
        path : path-like
            Name of the file, replaced if it exists.
        """
        _save(self, path)

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
        return _load(cls, path)

    def __repr__(self) -> str:
        unlabelled = "" if self.labels is not None else ", unlabelled"
        return (
            f"<Dataset of {self.n_sequences} sequences, {self.n_tokens} positions, "
            f"{self.n_attributes} attributes, {self.n_labels} labels{unlabelled}>"
        )


_DEFAULTS = {f.name: f.default for f in fields(Dataset)}


def choose(dataset: Dataset, ids: NDArray[np.int64]) -> Dataset:
    """Dataset of the sequences `ids`; consecutive ones are views of the same arrays."""
    seq_ptr, positions = rows(dataset.seq_ptr, ids)
    consecutive = len(ids) > 0 and bool((np.diff(ids) == 1).all())
    chosen: Any = slice(positions[0], positions[-1] + 1) if consecutive else positions

    def entries(ptr: NDArray[np.int64]) -> tuple[NDArray[np.int64], Any]:
        if consecutive:
            part = ptr[positions[0] : positions[-1] + 2]
            return part - part[0], slice(part[0], part[-1])
        return rows(ptr, positions)

    def take(array: NDArray[Any] | None, index: Any) -> NDArray[Any] | None:
        return None if array is None else array[index]

    attr_ptr, occurrences = entries(dataset.attr_ptr)
    edge_ptr, edges = (None, None) if dataset.edge_ptr is None else entries(dataset.edge_ptr)
    return replace(
        dataset,
        seq_ptr=seq_ptr,
        attr_ptr=attr_ptr,
        attr_ids=dataset.attr_ids[occurrences],
        attr_values=take(dataset.attr_values, occurrences),
        labels=take(dataset.labels, chosen),
        edge_ptr=edge_ptr,
        edge_ids=take(dataset.edge_ids, edges),
        sequence_weights=take(dataset.sequence_weights, ids),
        line_numbers=take(dataset.line_numbers, chosen),
    )


def checked_ids(sequence_ids: ArrayLike, n_sequences: int) -> NDArray[np.int64]:
    """Sequence numbers as an array; OptionError unless all are there."""
    ids = np.asarray(sequence_ids)
    if ids.ndim == 1 and ids.size == 0:
        return np.zeros(0, dtype=np.int64)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise OptionError("sequence_ids", sequence_ids, "a 1-D array of integers is needed")
    outside = first_outside(ids, n_sequences)
    if outside is not None:
        wrong = int(ids[outside])
        raise OptionError("sequence_ids", wrong, f"there are {n_sequences} sequences, counted from 0")
    return ids.astype(np.int64)


def random_parts(n_sequences: int, fractions: Sequence[float], seed: int) -> list[NDArray[np.int64]]:
    """Sequence numbers, ascending, of random parts; what is missing to 1 is one more part."""
    total = sum(fractions)
    slack = 1e-9  # 0.7 + 0.2 + 0.1 is not 1
    if not fractions or not all(f > 0 for f in fractions) or not total <= 1 + slack:
        raise OptionError("fractions", fractions, "positive numbers that add up to 1 or less are needed")
    shares = [*fractions] if total > 1 - slack else [*fractions, 1 - total]
    ends = np.rint(np.cumsum(shares) * n_sequences).astype(np.int64)[:-1]
    order = np.random.default_rng(seed).permutation(n_sequences)
    return [np.sort(part) for part in np.split(order, ends)]


def shard_ids(seq_ptr: NDArray[np.int64], rank: int, size: int) -> NDArray[np.int64]:
    """Sequences whose middle lies in the share ``[N rank/size, N (rank+1)/size)`` of the N positions."""
    if size < 1:
        raise OptionError("size", size, "1 or more")
    if not 0 <= rank < size:
        raise OptionError("rank", rank, f"from 0 to {size - 1}")
    # in integers: twice the middle times size against 2 N rank
    middles = (seq_ptr[:-1] + seq_ptr[1:]) * size
    start, stop = np.searchsorted(middles, 2 * seq_ptr[-1] * np.array([rank, rank + 1]))
    return np.arange(start, stop)


def drop_rare(dataset: Dataset, min_count: int, n_free: int = 0) -> Dataset:
    """Dataset without the attributes and edge attributes found at fewer than `min_count` positions.

    The last `n_free` attributes stay.
    """
    counts = _native.count_positions(dataset.attr_ptr, dataset.attr_ids, dataset.n_attributes)
    frequent = counts >= min_count
    frequent[dataset.n_attributes - n_free :] = True
    attr_ptr, attr_ids, kept, attribute_alphabet = _drop(
        dataset.attr_ptr, dataset.attr_ids, dataset.attribute_alphabet, frequent
    )
    changes: dict[str, Any] = {
        "attr_ptr": attr_ptr,
        "attr_ids": attr_ids,
        "attr_values": None if dataset.attr_values is None else dataset.attr_values[kept],
        "attribute_alphabet": attribute_alphabet,
    }
    if dataset.edge_ptr is not None and dataset.edge_ids is not None:
        counts = _native.count_positions(dataset.edge_ptr, dataset.edge_ids, dataset.n_edge_attributes)
        edge_ptr, edge_ids, _, edge_alphabet = _drop(
            dataset.edge_ptr, dataset.edge_ids, dataset.edge_alphabet, counts >= min_count
        )
        changes |= {"edge_ptr": edge_ptr, "edge_ids": edge_ids, "edge_alphabet": edge_alphabet}
    return replace(dataset, **changes)


def _drop(
    ptr: NDArray[np.int64], ids: NDArray[np.int32], alphabet: Alphabet, frequent: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_], Alphabet]:
    """Offsets, ids, which entries stay, and the alphabet when rare ids go; the others keep their order."""
    new_ids = np.cumsum(frequent, dtype=np.int32) - np.int32(1)
    kept = frequent[ids]
    return keep(ptr, kept), new_ids[ids[kept]], kept, alphabet.subset(frequent)


KIND = FileKind("crfit-dataset", 1, "dataset", "Dataset.save")
ALPHABETS = ("attribute_alphabet", "label_alphabet", "edge_alphabet")


def _save(dataset: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset; see `crfit.data.Dataset.save`."""
    tensors: Tensors = {name: array for name in DTYPES if (array := getattr(dataset, name)) is not None}
    for name in ALPHABETS:
        tensors[f"{name}.bytes"], tensors[f"{name}.offsets"] = getattr(dataset, name).to_arrays()
    header = {
        "format": KIND.format,
        "version": KIND.version,
        "plain_transitions": dataset.plain_transitions,
        "n_dropped": dataset.n_dropped,
        "source": dataset.source,
    }
    try:
        tensor_file.write(path, tensors, header)
    except ModelFileError as error:
        raise DataError(str(error)) from error.__cause__


def _load(cls: type[Dataset], path: str | os.PathLike[str]) -> Dataset:
    """Read what `save` wrote; every array is checked as if it came from a user."""
    try:
        header, tensors = tensor_file.read(path, KIND, mapped=tensor_file.MAPPED)
        return cls(**_fields(header, tensors))
    except ModelFileError as error:
        raise DataError(str(error), file=os.fspath(path)) from None
    except (DataError, KeyError, TypeError, ValueError) as error:
        # The checksum fits, so that whoever wrote the file did so wrongly.
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise DataError(DAMAGED.format(reason), file=os.fspath(path)) from None


def _fields(header: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
    fields: dict[str, Any] = {name: tensors[name] for name in DTYPES if name in tensors}
    for name in ("seq_ptr", "attr_ptr", "attr_ids"):
        fields[name] = tensors[name]
    for name in ALPHABETS:
        fields[name] = Alphabet.from_arrays(tensors[f"{name}.bytes"], tensors[f"{name}.offsets"], locked=True)
    fields["plain_transitions"] = bool(header["plain_transitions"])
    fields["n_dropped"] = int(header["n_dropped"])
    source = header["source"]
    if source is not None and not isinstance(source, str):
        raise TypeError(f"source is {source!r}")
    fields["source"] = source
    return fields


def recode(dataset: Dataset, alphabets_of: HasAlphabets) -> Dataset:
    """Give a dataset the alphabets of another one, or of a model.

    Parameters
    ----------
    dataset : Dataset
        Sequences with any alphabets.
    alphabets_of : Dataset or Model
        Whose ids to use. Attributes that it lacks are left out and counted in ``n_dropped``; labels that it
        lacks get ids after its own, in a copy, so that scoring counts them as errors.

    Returns
    -------
    Dataset
        The same sequences; `dataset` itself if the alphabets are equal.
    """
    attributes, edges = alphabets_of.attribute_alphabet, alphabets_of.edge_alphabet
    if (
        dataset.attribute_alphabet == attributes
        and dataset.edge_alphabet == edges
        and dataset.label_alphabet == alphabets_of.label_alphabet
    ):
        return dataset
    attr_ptr, attr_ids, attr_kept = _translate(
        dataset.attr_ptr, dataset.attr_ids, dataset.attribute_alphabet, attributes
    )
    edge_ptr, edge_ids, n_edges_dropped = dataset.edge_ptr, dataset.edge_ids, 0
    if edge_ptr is not None and edge_ids is not None:
        edge_ptr, edge_ids, edges_kept = _translate(edge_ptr, edge_ids, dataset.edge_alphabet, edges)
        n_edges_dropped = int(np.count_nonzero(~edges_kept))
    label_alphabet, labels = alphabets_of.label_alphabet, None
    if dataset.labels is not None:
        label_alphabet = label_alphabet.copy()
        new_labels = label_alphabet.native.add_all(*dataset.label_alphabet.to_arrays())
        labels = new_labels[dataset.labels]
    return replace(
        dataset,
        attr_ptr=attr_ptr,
        attr_ids=attr_ids,
        attr_values=None if dataset.attr_values is None else dataset.attr_values[attr_kept],
        labels=labels,
        edge_ptr=edge_ptr,
        edge_ids=edge_ids,
        attribute_alphabet=attributes,
        label_alphabet=label_alphabet,
        edge_alphabet=edges,
        n_dropped=dataset.n_dropped + int(np.count_nonzero(~attr_kept)) + n_edges_dropped,
    )


def _translate(
    ptr: NDArray[np.int64], ids: NDArray[np.int32], old: Alphabet, new: Alphabet
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
    """Offsets and ids under another alphabet, and which entries stay."""
    new_ids = new.native.find_all(*old.to_arrays())[ids]
    kept = new_ids >= 0
    return keep(ptr, kept), new_ids[kept], kept
