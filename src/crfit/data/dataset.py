"""Sequences as flat arrays: what engines read, whatever the data came from.

With S sequences, N positions in all and nnz attribute occurrences

    sequence i  has positions     seq_ptr[i] : seq_ptr[i+1]
    position n  has occurrences   attr_ptr[n] : attr_ptr[n+1]
    occurrence  is attribute      attr_ids[k] with value attr_values[k]

and likewise ``edge_ptr``, ``edge_ids`` for attributes on the pair of labels (y_{t-1}, y_t). One layout serves
native code, GPU upload and files. Alphabets are locked as soon as a dataset has them, so that data read later
with the same alphabets cannot add to what a model knows.

A dataset file (`crfit.data.tensor_file`) holds each array of `DTYPES` that the dataset has, and for each
alphabet its strings back to back (``label_alphabet.bytes``) and where each begins
(``label_alphabet.offsets``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from crfit import _native
from crfit.checks import (
    check_free,
    check_offsets,
    check_whole_number,
    checked_weights,
    first_outside,
    keep,
    place,
    read_only,
    rows,
    vector,
)
from crfit.data import from_python, tensor_file
from crfit.data.alphabet import Alphabet, HasAlphabets
from crfit.data.tensor_file import DAMAGED, FileKind, Tensors
from crfit.errors import DataError, ModelFileError, OptionError

KIND = FileKind("crfit-dataset", 1, "dataset", "Dataset.save")
ALPHABETS = ("attribute_alphabet", "label_alphabet", "edge_alphabet")
DTYPES: dict[str, DTypeLike] = {
    "seq_ptr": np.int64,
    "attr_ptr": np.int64,
    "attr_ids": np.int32,
    "attr_values": np.float64,
    "labels": np.int32,
    "edge_ptr": np.int64,
    "edge_ids": np.int32,
    "sequence_weights": np.float64,
    "line_numbers": np.int64,
}


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
    n_columns : int, optional
        Columns of the labelled column file that the data came from, the label counted.
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
    n_columns: int | None = None

    def __post_init__(self) -> None:
        for name, array in _checked_arrays(self).items():
            object.__setattr__(self, name, read_only(array))
        for name in ALPHABETS:
            getattr(self, name).lock()

    @classmethod
    def _trusted(cls, **values: Any) -> Dataset:
        """Make a dataset of arrays that are right by construction and of locked alphabets.

        Checking the arrays of a short sentence takes longer than reading it, and tagging does that often.
        """
        dataset = object.__new__(cls)
        arrays = {name: read_only(v) if isinstance(v, np.ndarray) else v for name, v in values.items()}
        vars(dataset).update(_DEFAULTS | arrays)
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
        escaped. Ids follow first appearance: sequence, position, order in the item (sets: sorted).

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
            Threads for large data; None for all cores. The result does not depend on it.

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
        """Read a dense matrix with one row for each position; zeros are not occurrences.

        Parameters
        ----------
        X : array-like of shape (N, A)
            Values of the attributes, finite.
        lengths, y, names, sequence_weights, alphabets_of
            As in `from_csr`.
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
        """Labels of each sequence as strings: those of the dataset, or of the given label ids, int[N]."""
        ids = self.labels if labels is None else np.asarray(labels)
        if ids is None:
            raise DataError("the dataset has no labels: give y when it is made", file=self.source)
        if ids.shape != (self.n_tokens,):
            remedy = f"one label for each of {self.n_tokens} positions is needed"
            raise OptionError("labels", ids.shape, remedy)
        outside = first_outside(ids, self.n_labels)
        if outside is not None:
            wrong = int(ids[outside])
            raise OptionError("labels", wrong, f"there are {self.n_labels} labels, counted from 0")
        names = self.label_alphabet.strings()
        words = [names[i] for i in ids.tolist()]
        return [words[start:end] for start, end in pairwise(self.seq_ptr.tolist())]

    def prune(self, min_count: int, *, n_free: int = 0) -> Dataset:
        """Drop rare attributes and edge attributes.

        Parameters
        ----------
        min_count : int
            Attributes that occur at fewer positions go; a position that repeats one counts once.
        n_free : int, default=0
            Keep this many attributes at the end of the alphabet, however rare they are.

        Returns
        -------
        Dataset
            With compacted ids in the old order.
        """
        check_whole_number("min_count", min_count, at_least=0)
        check_free(n_free, self.n_attributes)
        if min_count == 0:
            return self
        counts = _native.count_positions(self.attr_ptr, self.attr_ids, self.n_attributes)
        frequent = counts >= int(min_count)
        frequent[self.n_attributes - int(n_free) :] = True
        attr_ptr, attr_ids, kept, alphabet = _drop(
            self.attr_ptr, self.attr_ids, self.attribute_alphabet, frequent
        )
        changes: dict[str, Any] = {
            "attr_ptr": attr_ptr,
            "attr_ids": attr_ids,
            "attr_values": _take(self.attr_values, kept),
            "attribute_alphabet": alphabet,
        }
        if self.edge_ptr is not None and self.edge_ids is not None:
            counts = _native.count_positions(self.edge_ptr, self.edge_ids, self.n_edge_attributes)
            frequent = counts >= int(min_count)
            edge_ptr, edge_ids, _, alphabet = _drop(
                self.edge_ptr, self.edge_ids, self.edge_alphabet, frequent
            )
            changes |= {"edge_ptr": edge_ptr, "edge_ids": edge_ids, "edge_alphabet": alphabet}
        return replace(self, **changes)

    def subset(self, sequence_ids: ArrayLike) -> Dataset:
        """The sequences of these numbers, in any order; repeated ones are repeated.

        Consecutive sequences share memory with this dataset.
        """
        ids = np.asarray(sequence_ids)
        if ids.ndim == 1 and ids.size == 0:
            ids = np.zeros(0, dtype=np.int64)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise OptionError("sequence_ids", sequence_ids, "a 1-D array of integers is needed")
        if (outside := first_outside(ids, self.n_sequences)) is not None:
            wrong = int(ids[outside])
            raise OptionError(
                "sequence_ids", wrong, f"there are {self.n_sequences} sequences, counted from 0"
            )
        ids = ids.astype(np.int64)
        seq_ptr, positions = rows(self.seq_ptr, ids)
        consecutive = len(ids) > 0 and bool((np.diff(ids) == 1).all())
        chosen: Any = slice(positions[0], positions[-1] + 1) if consecutive else positions

        def entries(ptr: NDArray[np.int64]) -> tuple[NDArray[np.int64], Any]:
            if consecutive:
                part = ptr[positions[0] : positions[-1] + 2]
                return part - part[0], slice(part[0], part[-1])
            return rows(ptr, positions)

        attr_ptr, occurrences = entries(self.attr_ptr)
        edge_ptr, edges = (None, None) if self.edge_ptr is None else entries(self.edge_ptr)
        return replace(
            self,
            seq_ptr=seq_ptr,
            attr_ptr=attr_ptr,
            attr_ids=self.attr_ids[occurrences],
            attr_values=_take(self.attr_values, occurrences),
            labels=_take(self.labels, chosen),
            edge_ptr=edge_ptr,
            edge_ids=_take(self.edge_ids, edges),
            sequence_weights=_take(self.sequence_weights, ids),
            line_numbers=_take(self.line_numbers, chosen),
        )

    def split(self, *fractions: float, seed: int = 0) -> list[Dataset]:
        """Split at random into parts.

        Parameters
        ----------
        *fractions : float
            Share of the sequences in each part. If they add up to less than 1, the rest is one more part:
            ``split(0.9)`` gives two.
        seed : int
            Random seed.

        Returns
        -------
        list of Dataset
            Each sequence in one of them, in the old order.
        """
        total = sum(fractions)
        slack = 1e-9  # 0.7 + 0.2 + 0.1 is not 1
        if not fractions or not all(f > 0 for f in fractions) or not total <= 1 + slack:
            raise OptionError("fractions", fractions, "positive numbers that add up to 1 or less are needed")
        shares = [*fractions] if total > 1 - slack else [*fractions, 1 - total]
        ends = np.rint(np.cumsum(shares) * self.n_sequences).astype(np.int64)[:-1]
        order = np.random.default_rng(seed).permutation(self.n_sequences)
        return [self.subset(np.sort(part)) for part in np.split(order, ends)]

    def shard(self, rank: int, size: int) -> Dataset:
        """One of `size` parts of consecutive sequences, with about as many positions each.

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
        if size < 1:
            raise OptionError("size", size, "1 or more")
        if not 0 <= rank < size:
            raise OptionError("rank", rank, f"from 0 to {size - 1}")
        # Sequences whose middle lies in [N rank/size, N (rank+1)/size); in integers, both sides times 2 size.
        middles = (self.seq_ptr[:-1] + self.seq_ptr[1:]) * size
        start, stop = np.searchsorted(middles, 2 * self.seq_ptr[-1] * np.array([rank, rank + 1]))
        return self.subset(np.arange(start, stop))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one safetensors file; a crash leaves what was there before."""
        tensors: Tensors = {name: array for name in DTYPES if (array := getattr(self, name)) is not None}
        for name in ALPHABETS:
            tensors[f"{name}.bytes"], tensors[f"{name}.offsets"] = getattr(self, name).to_arrays()
        header = {
            "format": KIND.format,
            "version": KIND.version,
            "plain_transitions": self.plain_transitions,
            "n_dropped": self.n_dropped,
            "source": self.source,
        }
        if self.n_columns is not None:
            header["n_columns"] = self.n_columns
        try:
            tensor_file.write(path, tensors, header)
        except ModelFileError as error:
            raise DataError(str(error)) from error.__cause__

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dataset:
        """Read what `save` wrote; DataError if the file is not a dataset or is damaged."""
        try:
            header, tensors = tensor_file.read(path, KIND, mapped=tensor_file.MAPPED)
            return cls(**_fields(header, tensors))
        except ModelFileError as error:
            raise DataError(str(error), file=os.fspath(path)) from None
        except (DataError, KeyError, TypeError, ValueError) as error:
            # The checksum fits, so that whoever wrote the file did so wrongly.
            reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
            raise DataError(DAMAGED.format(reason), file=os.fspath(path)) from None

    def __repr__(self) -> str:
        unlabelled = "" if self.labels is not None else ", unlabelled"
        return (
            f"<Dataset of {self.n_sequences} sequences, {self.n_tokens} positions, "
            f"{self.n_attributes} attributes, {self.n_labels} labels{unlabelled}>"
        )


_DEFAULTS = {f.name: f.default for f in fields(Dataset)}


def _take(array: NDArray[Any] | None, index: Any) -> NDArray[Any] | None:
    return None if array is None else array[index]


def _drop(
    ptr: NDArray[np.int64], ids: NDArray[np.int32], alphabet: Alphabet, frequent: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_], Alphabet]:
    """Offsets, ids, which entries stay, and the alphabet when rare ids go; the others keep their order."""
    new_ids = np.cumsum(frequent, dtype=np.int32) - np.int32(1)
    kept = frequent[ids]
    return keep(ptr, kept), new_ids[ids[kept]], kept, alphabet.subset(frequent)


def _checked_arrays(dataset: Dataset) -> dict[str, NDArray[Any]]:
    """The arrays that a dataset has, contiguous and of the right types; DataError if they do not fit."""
    given = {name: getattr(dataset, name) for name in DTYPES}
    arrays = {name: vector(name, array, DTYPES[name]) for name, array in given.items() if array is not None}

    def check_length(name: str, length: int, what: str) -> None:
        if name in arrays and len(arrays[name]) != length:
            raise DataError(f"{name} has {len(arrays[name])} entries: give {length}, one for each {what}")

    def check_ids(name: str, n: int) -> None:
        if name in arrays and (outside := first_outside(arrays[name], n)) is not None:
            found = f"{name} has the id {int(arrays[name][outside])} at {outside}"
            raise DataError(f"{found} and its alphabet has {n} strings: ids are 0 to {n - 1}")

    check_offsets(arrays, "seq_ptr")
    seq_ptr = arrays["seq_ptr"]
    n_tokens = int(seq_ptr[-1])
    empty = np.flatnonzero(np.diff(seq_ptr) == 0)
    if empty.size:
        raise DataError("the sequence is empty; leave it out", sequence=int(empty[0]))
    check_offsets(arrays, "attr_ptr", n_tokens, "attr_ids")
    check_ids("attr_ids", dataset.n_attributes)
    check_length("attr_values", len(arrays["attr_ids"]), "attribute occurrence")
    check_length("labels", n_tokens, "position")
    check_ids("labels", dataset.n_labels)
    check_length("line_numbers", n_tokens, "position")
    if ("edge_ptr" in arrays) != ("edge_ids" in arrays):
        raise DataError("edge_ptr and edge_ids come together: give both or neither")
    if "edge_ptr" in arrays:
        check_offsets(arrays, "edge_ptr", n_tokens, "edge_ids")
        check_ids("edge_ids", dataset.n_edge_attributes)
        edge_ptr = arrays["edge_ptr"]
        misplaced = np.flatnonzero(edge_ptr[seq_ptr[:-1]] != edge_ptr[seq_ptr[:-1] + 1])
        if misplaced.size:
            message = "the first position has edge attributes, but no label before it: leave them out"
            raise DataError(message, sequence=int(misplaced[0]), position=0)
    if "attr_values" in arrays and not (finite := np.isfinite(arrays["attr_values"])).all():
        occurrence = int(np.argmin(finite))
        n = int(np.searchsorted(arrays["attr_ptr"], occurrence, side="right")) - 1
        sequence, position = place(seq_ptr, n)
        name = dataset.attribute_alphabet[int(arrays["attr_ids"][occurrence])]
        message = f"attribute {name!r} has the value {arrays['attr_values'][occurrence]}"
        raise DataError(f"{message}; values must be finite", sequence=sequence, position=position)
    if "sequence_weights" in arrays:
        arrays["sequence_weights"] = checked_weights(arrays["sequence_weights"], len(seq_ptr) - 1)
    return arrays


def _fields(header: dict[str, Any], tensors: Tensors) -> dict[str, Any]:
    """Fields of a dataset from what is in its file; KeyError, TypeError or ValueError if they are wrong."""
    found: dict[str, Any] = {name: tensors[name] for name in DTYPES if name in tensors}
    for name in ("seq_ptr", "attr_ptr", "attr_ids"):
        found[name] = tensors[name]
    for name in ALPHABETS:
        found[name] = Alphabet.from_arrays(tensors[f"{name}.bytes"], tensors[f"{name}.offsets"], locked=True)
    source, n_columns = header["source"], header.get("n_columns")
    if source is not None and not isinstance(source, str):
        raise TypeError(f"source is {source!r}")
    return found | {
        "plain_transitions": bool(header["plain_transitions"]),
        "n_dropped": int(header["n_dropped"]),
        "source": source,
        "n_columns": None if n_columns is None else int(n_columns),
    }


def recode(dataset: Dataset, alphabets_of: HasAlphabets) -> Dataset:
    """The same sequences in the ids of another dataset or of a model; itself if the alphabets are equal.

    Attributes that it lacks are left out and counted in ``n_dropped``; labels that it lacks get ids after its
    own, in a copy, so that scoring counts them as errors. Each name is looked up once, not each occurrence.
    """
    if all(getattr(dataset, name) == getattr(alphabets_of, name) for name in ALPHABETS):
        return dataset
    attributes, edges = alphabets_of.attribute_alphabet, alphabets_of.edge_alphabet

    def translate(
        ptr: NDArray[np.int64], ids: NDArray[np.int32], old: Alphabet, new: Alphabet
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
        """Offsets and ids under another alphabet, and which entries stay."""
        new_ids = new.native.find_all(*old.to_arrays())[ids]  # -1 where the name is unknown
        kept = new_ids >= 0
        return keep(ptr, kept), new_ids[kept], kept

    attr_ptr, attr_ids, attr_kept = translate(
        dataset.attr_ptr, dataset.attr_ids, dataset.attribute_alphabet, attributes
    )
    edge_ptr, edge_ids, n_edges_dropped = dataset.edge_ptr, dataset.edge_ids, 0
    if edge_ptr is not None and edge_ids is not None:
        edge_ptr, edge_ids, edges_kept = translate(edge_ptr, edge_ids, dataset.edge_alphabet, edges)
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
        attr_values=_take(dataset.attr_values, attr_kept),
        labels=labels,
        edge_ptr=edge_ptr,
        edge_ids=edge_ids,
        attribute_alphabet=attributes,
        label_alphabet=label_alphabet,
        edge_alphabet=edges,
        n_dropped=dataset.n_dropped + int(np.count_nonzero(~attr_kept)) + n_edges_dropped,
    )
