"""Sequences as flat arrays, the form in which engines read all data.

With S sequences, N positions in total and nnz attribute occurrences

    sequence i  has positions     seq_ptr[i] : seq_ptr[i+1]
    position n  has occurrences   attr_ptr[n] : attr_ptr[n+1]
    occurrence  is attribute      attr_ids[k] with value attr_values[k]

and likewise ``edge_ptr``, ``edge_ids`` for attributes on the pair of labels (y_{t-1}, y_t). Native code, GPU
upload and files all use this layout. A dataset locks its alphabets, so data read later with the same
alphabets cannot add features to a model.

A dataset file (`crfit.data.tensor_file`) holds the arrays in `DTYPES` that the dataset has and, for each
alphabet, its concatenated strings (``label_alphabet.bytes``) and their offsets (``label_alphabet.offsets``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from crfit.data.label_sets import LabelSets
from crfit.data.tensor_file import DAMAGED, FileKind, Tensors
from crfit.errors import DataError, ModelFileError, OptionError
from crfit.features import Features
from crfit.features.feature_set import FeaturesOption, features_of
from crfit.features.stored import restore_features, store_features
from crfit.files import check_path

HEADER = {
    "plain_transitions": bool,
    "n_dropped": int,
    "source": (None, str),
    "n_columns?": (None, int),
    "features?": {"text": str, "sources": [str]},
}
KIND = FileKind("crfit-dataset", 1, "dataset", "Dataset.save", header=HEADER)
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

    Create one with `from_sequences`, `from_csr`, `from_dense` or `crfit.text.read`. The constructor below is
    for code that already has the flat arrays: it validates them once and makes them read-only.

    Parameters
    ----------
    seq_ptr : int64 array of shape (S + 1,)
        Sequence ``i`` has positions ``seq_ptr[i]:seq_ptr[i+1]``. Sequences must not be empty.
    attr_ptr : int64 array of shape (N + 1,)
        Position ``n`` has attribute occurrences ``attr_ptr[n]:attr_ptr[n+1]``.
    attr_ids : int32 array of shape (nnz,)
        Attribute of each occurrence. If an attribute is repeated at a position, its values add up.
    attr_values : float64 array of shape (nnz,), optional
        Value of each occurrence; None if all are 1.
    labels : int32 array of shape (N,), optional
        Label of each position; None for unlabelled data.
    edge_ptr : int64 array of shape (N + 1,), optional
        Like `attr_ptr`, for edge attributes. The first position of a sequence has none.
    edge_ids : int32 array, optional
        Like `attr_ids`, for edge attributes.
    sequence_weights : float64 array of shape (S,), optional
        Weight ``c_i`` of each sequence in the objective; None if all are 1.
    attribute_alphabet, label_alphabet, edge_alphabet : Alphabet
        Names of the ids. The dataset locks them.
    source : str, optional
        Name of the file or files, for error messages.
    line_numbers : int64 array of shape (N,), optional
        Line of each position in the source, for error messages.
    plain_transitions : bool
        Whether the model has (label, label) features; False for a template without a plain ``B`` line.
    n_dropped : int
        Number of attribute occurrences dropped while reading because they were not in a locked alphabet.
        A subset keeps the number of the whole dataset.
    n_columns : int, optional
        For data from a column file: its number of columns, including the label; 0 if rows may differ.
    label_sets : LabelSets, optional
        Positions whose label is not known, and the labels that they may have. `labels` has one of them there.
    features : Features, optional
        What made the attributes from tokens; models trained on the dataset keep it.
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
    label_sets: LabelSets | None = None
    features: Features | None = None

    def __post_init__(self) -> None:
        for name, array in _checked_arrays(self).items():
            object.__setattr__(self, name, read_only(array))
        if self.label_sets is not None:
            object.__setattr__(self, "label_sets", _checked_sets(self, self.label_sets))
        for name in ALPHABETS:
            getattr(self, name).lock()

    @classmethod
    def _trusted(cls, **values: Any) -> Dataset:
        """Create a dataset without validation, from correct arrays and locked alphabets.

        For a short sentence, validation takes longer than reading, which would slow down tagging.
        """
        dataset = object.__new__(cls)
        arrays = {name: read_only(v) if type(v) is np.ndarray else v for name, v in values.items()}
        vars(dataset).update(_DEFAULTS | arrays)
        return dataset

    @classmethod
    def from_sequences(
        cls,
        X: Iterable[Iterable[from_python.Item]],
        y: Iterable[Iterable[from_python.Label]] | None = None,
        *,
        sequence_weights: ArrayLike | None = None,
        alphabets_of: HasAlphabets | None = None,
        n_threads: int | None = None,
        features: FeaturesOption = None,
    ) -> Dataset:
        """Create a dataset from lists of items, in the same form as python-crfsuite takes them.

        An item describes one position. It is a list, tuple or set of str (attributes with value 1) or a dict:

        - ``{"cap": True}`` is the attribute ``cap`` with value 1, ``False`` gives it the value 0.
        - ``{"n": 0.5}`` is the attribute ``n`` with value 0.5. A value of 0 also counts as seen in training.
        - ``{"word": "a"}`` is the attribute ``word:a`` with value 1. Nothing is escaped.
        - ``{"prev": {"word": "a"}}`` is ``prev:word:a``; a list, tuple or set nests in the same way.

        Parameters
        ----------
        X : iterable of sequences of items
            Pass a single sequence ``x`` as ``[x]``.
        y : iterable of sequences of str, None or set of str, optional
            One label per item. None: the label is not known; a set: it is one of these. Leave `y` out for
            unlabelled data.
        sequence_weights : array-like of shape (S,), optional
            Weight of each sequence in training; finite and not negative. By default all are 1.
        alphabets_of : Dataset or Model, optional
            Use the ids of this dataset or model. Attributes that it does not have are dropped and counted in
            `n_dropped`. Labels that it does not have are added to a copy of its label alphabet.
        n_threads : int, optional
            Threads for large data; None uses all cores. The result does not depend on it.
        features : {"default"}, Features, str or path, optional
            Make the attributes from tokens: an item is then a str, see `crfit.features`. By default those of
            `alphabets_of`, if any.

        Raises
        ------
        DataError
            An item or label is invalid; the message names the sequence and the position.
        """
        made_by = features_of(features, alphabets_of)
        return cls._trusted(
            **from_python.from_sequences(X, y, sequence_weights, alphabets_of, n_threads, made_by)
        )

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
        """Create a dataset from a sparse matrix with one row per position, sequence after sequence.

        Column indices (int32) and values (float64) are used without a copy, so do not change the matrix
        afterwards. Explicitly stored zeros are kept.

        Parameters
        ----------
        X : SciPy sparse matrix or array of shape (N, A)
            Converted to CSR if it has another format.
        lengths : array-like of int of shape (S,)
            Number of rows of each sequence.
        y : iterable of str, or of sequences of str, optional
            One label per row, as one flat list or as one list per sequence. None and sets of str are partial
            labels, as in `from_sequences`.
        names : sequence of str, optional
            Attribute name of each column; by default the column number as a string.
        sequence_weights, alphabets_of
            As in `from_sequences`; columns are matched by name.

        Raises
        ------
        DataError
            The matrix, lengths or labels are invalid; the message names the sequence and position if known.
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
        """Create a dataset from a dense matrix with one row per position; zeros are dropped.

        Parameters
        ----------
        X : array-like of shape (N, A)
            Attribute values; must be finite.
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
        """Total number of positions, N."""
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
        """Whether every sequence has exactly one position, as in data for a classifier."""
        return self.n_tokens == self.n_sequences

    def sequence_labels(self, labels: NDArray[np.int32] | None = None) -> list[list[str]]:
        """Labels of each sequence as strings, from the dataset or from the given label ids, int[N].

        Where a label is not known, this is the first of the possible ones.
        """
        ids = self.labels if labels is None else np.asarray(labels)
        if ids is None:
            raise DataError("the dataset has no labels: pass y when creating it", file=self.source)
        if ids.shape != (self.n_tokens,):
            remedy = f"give one label for each of {self.n_tokens} positions"
            raise OptionError("labels", ids.shape, remedy)
        outside = first_outside(ids, self.n_labels)
        if outside is not None:
            wrong = int(ids[outside])
            raise OptionError("labels", wrong, f"the dataset has {self.n_labels} labels, numbered from 0")
        names = self.label_alphabet.strings()
        words = [names[i] for i in ids.tolist()]
        return [words[start:end] for start, end in pairwise(self.seq_ptr.tolist())]

    def prune(self, min_count: int, *, n_free: int = 0) -> Dataset:
        """Drop rare attributes and edge attributes.

        Parameters
        ----------
        min_count : int
            Drop attributes that occur at fewer positions than this. A repeated attribute counts once per
            position.
        n_free : int, default=0
            Always keep the last `n_free` attributes of the alphabet, however rare.

        Returns
        -------
        Dataset
            Has consecutive ids in the same order.
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

    def parts(self) -> Iterator[Dataset]:
        """The dataset itself; several for `crfit.data.shards.Shards`."""
        yield self

    def subset(self, sequence_ids: ArrayLike) -> Dataset:
        """Select sequences by index, in any order, with repetition.

        A run of consecutive sequences shares memory with this dataset.
        """
        ids = np.asarray(sequence_ids)
        if ids.ndim == 1 and ids.size == 0:
            ids = np.zeros(0, dtype=np.int64)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise OptionError("sequence_ids", sequence_ids, "give a 1-D array of integers")
        if (outside := first_outside(ids, self.n_sequences)) is not None:
            wrong = int(ids[outside])
            raise OptionError(
                "sequence_ids", wrong, f"the dataset has {self.n_sequences} sequences, numbered from 0"
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
            label_sets=self.label_sets and self.label_sets._replace(rows=self.label_sets.rows[chosen]),
        )

    def split(self, *fractions: float, seed: int = 0) -> list[Dataset]:
        """Split into random parts.

        Parameters
        ----------
        *fractions : float
            Fraction of the sequences in each part. If they sum to less than 1, the remaining sequences form
            one more part: ``split(0.9)`` returns two datasets.
        seed : int
            Random seed.

        Returns
        -------
        list of Dataset
            Each sequence is in exactly one part; the order is kept.
        """
        total = sum(fractions)
        slack = 1e-9  # 0.7 + 0.2 + 0.1 is not 1
        if not fractions or not all(f > 0 for f in fractions) or not total <= 1 + slack:
            raise OptionError("fractions", fractions, "give positive numbers that sum to 1 or less")
        shares = [*fractions] if total > 1 - slack else [*fractions, 1 - total]
        ends = np.rint(np.cumsum(shares) * self.n_sequences).astype(np.int64)[:-1]
        order = np.random.default_rng(seed).permutation(self.n_sequences)
        return [self.subset(np.sort(part)) for part in np.split(order, ends)]

    def shard(self, rank: int, size: int) -> Dataset:
        """One of `size` parts of consecutive sequences with about equally many positions.

        Parameters
        ----------
        rank : int
            Index of the part, starting at 0.
        size : int
            Number of parts.

        Returns
        -------
        Dataset
            Shares memory with this dataset. Its size is exact to within half a sequence at either end.
        """
        if size < 1:
            raise OptionError("size", size, "give 1 or more")
        if not 0 <= rank < size:
            raise OptionError("rank", rank, f"give 0 to {size - 1}")
        # Sequences whose middle lies in [N rank/size, N (rank+1)/size); in integers, both sides times 2 size.
        middles = (self.seq_ptr[:-1] + self.seq_ptr[1:]) * size
        start, stop = np.searchsorted(middles, 2 * self.seq_ptr[-1] * np.array([rank, rank + 1]))
        return self.subset(np.arange(start, stop))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to one safetensors file; if writing fails, an existing file is left unchanged."""
        header, tensors = stored(self)
        for name in ALPHABETS:
            tensors[f"{name}.bytes"], tensors[f"{name}.offsets"] = getattr(self, name).to_arrays()
        header |= {"format": KIND.format, "version": KIND.version}
        if self.features is not None:
            header["features"] = store_features(self.features, tensors)
        try:
            tensor_file.write(path, tensors, header)
        except ModelFileError as error:
            raise DataError(str(error)) from error.__cause__

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dataset:
        """Load a file written by `save`; raises DataError if it is damaged or not a dataset."""
        check_path(path)
        try:
            header, tensors = tensor_file.read(path, KIND, mapped=tensor_file.MAPPED)
            alphabets = {name: restored_alphabet(name, tensors) for name in ALPHABETS}
            features = restore_features(header.get("features"), tensors)
            return cls(**restored(header, tensors, alphabets), features=features)
        except ModelFileError as error:
            raise DataError(str(error), file=os.fspath(path)) from None
        except (DataError, KeyError, TypeError, ValueError) as error:
            raise DataError(wrongly_written(error), file=os.fspath(path)) from None

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
    """Offsets, ids, kept entries and alphabet after dropping rare ids; the order is kept."""
    new_ids = np.cumsum(frequent, dtype=np.int32) - np.int32(1)
    kept = frequent[ids]
    return keep(ptr, kept), new_ids[ids[kept]], kept, alphabet.subset(frequent)


def _checked_arrays(dataset: Dataset) -> dict[str, NDArray[Any]]:
    """The arrays of a dataset, contiguous and of the right types; DataError if they are inconsistent."""
    given = {name: getattr(dataset, name) for name in DTYPES}
    arrays = {name: vector(name, array, DTYPES[name]) for name, array in given.items() if array is not None}

    def check_length(name: str, length: int, what: str) -> None:
        if name in arrays and len(arrays[name]) != length:
            raise DataError(f"{name} has {len(arrays[name])} entries: give {length}, one per {what}")

    def check_ids(name: str, n: int) -> None:
        if name in arrays and (outside := first_outside(arrays[name], n)) is not None:
            found = f"{name}[{outside}] is {int(arrays[name][outside])}"
            raise DataError(f"{found} but the alphabet has {n} strings: ids must be 0 to {n - 1}")

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
        raise DataError("edge_ptr and edge_ids belong together: give both or neither")
    if "edge_ptr" in arrays:
        check_offsets(arrays, "edge_ptr", n_tokens, "edge_ids")
        check_ids("edge_ids", dataset.n_edge_attributes)
        edge_ptr = arrays["edge_ptr"]
        misplaced = np.flatnonzero(edge_ptr[seq_ptr[:-1]] != edge_ptr[seq_ptr[:-1] + 1])
        if misplaced.size:
            message = "the first position of a sequence cannot have edge attributes: leave them out"
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


def _checked_sets(dataset: Dataset, given: LabelSets) -> LabelSets | None:
    """The sets of possible labels, None if no position has one; DataError if they are inconsistent."""
    rows: NDArray[np.int32] = vector("label_sets.rows", given.rows, np.int32)
    scores = np.ascontiguousarray(given.scores, dtype=np.float64)
    if dataset.labels is None:
        raise DataError("label_sets need labels: give one of the possible labels at each position")
    if rows.shape != dataset.labels.shape or scores.ndim != 2 or scores.shape[1] != dataset.n_labels:
        raise DataError("label_sets must have a row for each position and a column for each label")
    if len(rows) and (rows.min() < -1 or rows.max() >= len(scores)):
        raise DataError(f"rows of label_sets must be -1 to {len(scores) - 1}")
    there = np.flatnonzero(rows >= 0)
    chosen = scores[rows[there], dataset.labels[there]]
    if np.isnan(scores).any() or (scores > 0.0).any() or chosen.any():
        raise DataError("scores of label_sets must be 0 or less, and 0 for the labels")
    kept = LabelSets(rows, scores).without_single()
    return kept and LabelSets(read_only(kept.rows), read_only(kept.scores))


def stored(dataset: Dataset) -> tuple[dict[str, Any], Tensors]:
    """Header and tensors of a dataset for a file, without alphabets and features."""
    tensors: Tensors = {name: array for name in DTYPES if (array := getattr(dataset, name)) is not None}
    if dataset.label_sets is not None:
        rows, scores = dataset.label_sets
        tensors |= {"label_sets.rows": rows, "label_sets.scores": scores.ravel()}
    header = {name: getattr(dataset, name) for name in ("plain_transitions", "n_dropped", "source")}
    return header if dataset.n_columns is None else header | {"n_columns": dataset.n_columns}, tensors


def restored(header: dict[str, Any], tensors: Tensors, alphabets: Mapping[str, Alphabet]) -> dict[str, Any]:
    """Fields of a dataset from its file, without features.

    KeyError, TypeError or ValueError if they are invalid.
    """
    found: dict[str, Any] = {name: tensors[name] for name in DTYPES if name in tensors}
    for name in ("seq_ptr", "attr_ptr", "attr_ids"):
        found[name] = tensors[name]
    if "label_sets.rows" in tensors:
        scores = tensors["label_sets.scores"].reshape(-1, len(alphabets["label_alphabet"]))
        found["label_sets"] = LabelSets(tensors["label_sets.rows"], scores)
    names = ("plain_transitions", "n_dropped", "source")
    return (
        found
        | dict(alphabets)
        | {name: header[name] for name in names}
        | {"n_columns": header.get("n_columns")}
    )


def restored_alphabet(name: str, tensors: Tensors) -> Alphabet:
    """One of the alphabets from a file; KeyError or DataError if it is invalid."""
    return Alphabet.from_arrays(tensors[f"{name}.bytes"], tensors[f"{name}.offsets"], locked=True)


def wrongly_written(error: Exception) -> str:
    """Message about a file with the right checksum and wrong contents."""
    return DAMAGED.format(f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error)


def labels_of(dataset: Dataset) -> NDArray[np.int32]:
    """The label ids of a dataset; DataError if it has none."""
    if dataset.labels is None:
        raise DataError("the data has no labels: give y, or a file with a label column", file=dataset.source)
    return dataset.labels


def blocks(dataset: Dataset, n_tokens: int) -> Iterator[Dataset]:
    """Parts of consecutive sequences with at most `n_tokens` tokens each, or with one longer sequence."""
    ptr, start = dataset.seq_ptr, 0
    while start < dataset.n_sequences:
        end = max(start + 1, int(np.searchsorted(ptr, ptr[start] + n_tokens, side="right")) - 1)
        whole = end - start == dataset.n_sequences
        yield dataset if whole else dataset.subset(np.arange(start, end))
        start = end


def recode(dataset: Dataset, alphabets_of: HasAlphabets) -> Dataset:
    """Re-encode with the alphabets of another dataset or a model; returns `dataset` if they are equal.

    Unknown attributes are dropped and counted in ``n_dropped``. Unknown labels are added to a copy of the
    label alphabet, so scoring counts them as errors. Each name is looked up once, not each occurrence.
    """
    if all(getattr(dataset, name) == getattr(alphabets_of, name) for name in ALPHABETS):
        return dataset
    attributes, edges = alphabets_of.attribute_alphabet, alphabets_of.edge_alphabet

    def translate(
        ptr: NDArray[np.int64], ids: NDArray[np.int32], old: Alphabet, new: Alphabet
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
        """Offsets and ids under another alphabet, and which entries are kept."""
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
    label_alphabet, labels, label_sets = alphabets_of.label_alphabet, None, dataset.label_sets
    if dataset.labels is not None:
        label_alphabet = label_alphabet.copy()
        new_labels = label_alphabet.native.add_all(*dataset.label_alphabet.to_arrays())
        labels = new_labels[dataset.labels]
        if label_sets is not None:
            # Labels that the data does not have: as little possible as the least possible of the others, so
            # that any label stays any label.
            scores = np.repeat(label_sets.scores.min(axis=1)[:, None], len(label_alphabet), axis=1)
            scores[:, new_labels] = label_sets.scores
            label_sets = label_sets._replace(scores=scores)
    return replace(
        dataset,
        attr_ptr=attr_ptr,
        attr_ids=attr_ids,
        attr_values=_take(dataset.attr_values, attr_kept),
        labels=labels,
        label_sets=label_sets,
        edge_ptr=edge_ptr,
        edge_ids=edge_ids,
        attribute_alphabet=attributes,
        label_alphabet=label_alphabet,
        edge_alphabet=edges,
        n_dropped=dataset.n_dropped + int(np.count_nonzero(~attr_kept)) + n_edges_dropped,
    )
