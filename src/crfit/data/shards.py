"""Data in shards: parts that are read one at a time, for data larger than the memory of a machine.

`crfit index`, `crfit.data.indexing`, writes a folder:

    index               the alphabets, the size and the checksum of each shard, how the text was read
    shard-00000, ...    one `Dataset` each, in which attributes have ids of their own

Both are files of `crfit.data.tensor_file`. A shard holds the arrays of a dataset and, for its attributes and
edge attributes that occur, the ids in the alphabets of the index, ascending: its own id a is the attribute
``attributes[a]``. Labels have the same ids everywhere. A shard has no names, so holding it takes no memory
for the alphabet of all attributes. Files are mapped and checked when they are read for the first time.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_whole_number, offsets
from crfit.data import tensor_file
from crfit.data.alphabet import Alphabet, Numbers
from crfit.data.dataset import (
    DTYPES,
    Dataset,
    restored,
    restored_alphabet,
    stored,
    wrongly_written,
)
from crfit.data.label_sets import LabelSets
from crfit.data.templates import Template
from crfit.data.tensor_file import DAMAGED, FileKind, Tensors
from crfit.data.text import Format
from crfit.errors import DataError, ModelFileError, OptionError
from crfit.features import Features
from crfit.features.stored import restore_features, store_features

INDEX_KIND = FileKind("crfit-index", 1, "shard index", "crfit index", max_ndim=2)
SHARD_KIND = FileKind("crfit-shard", 1, "shard", "crfit index")
INDEX = "index"


class Shard(NamedTuple):
    """One part of the data, whose attributes have ids of their own.

    Attributes
    ----------
    dataset : Dataset
        Its sequences. Attributes are numbered from 0 and those that occur here only; labels as everywhere.
    attributes : int64 array
        Id in the whole of each attribute, ascending.
    edges : int64 array or None
        The same of edge attributes.
    """

    dataset: Dataset
    attributes: NDArray[np.int64]
    edges: NDArray[np.int64] | None


class ShardSize(NamedTuple):
    """Size of a shard.

    Attributes
    ----------
    n_sequences, n_tokens : int
        Number of sequences and of positions.
    n_bytes : int
        Bytes of its arrays.
    """

    n_sequences: int
    n_tokens: int
    n_bytes: int


class Shards(ABC):
    """Labelled sequences in parts, with one alphabet: from `open` or `of`.

    Attributes
    ----------
    sizes : list of ShardSize
        Number of sequences and of positions, and bytes of each shard.
    n_attributes, n_edge_attributes : int
        Sizes of the alphabets.
    label_alphabet, attribute_alphabet, edge_alphabet : Alphabet
        Names of the ids. Those of attributes are made when needed.
    plain_transitions, features, n_columns, source
        As in `Dataset`.
    """

    sizes: list[ShardSize]
    n_attributes: int
    n_edge_attributes: int
    label_alphabet: Alphabet
    plain_transitions: bool
    features: Features | None
    n_columns: int | None
    source: str | None

    @abstractmethod
    def load(self, i: int) -> Shard:
        """The shard number `i`, from 0 on."""

    @property
    @abstractmethod
    def attribute_alphabet(self) -> Alphabet:
        """Names of the attributes."""

    @property
    @abstractmethod
    def edge_alphabet(self) -> Alphabet:
        """Names of the edge attributes."""

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.sizes)

    @property
    def n_sequences(self) -> int:
        """Number of sequences of all shards."""
        return sum(size.n_sequences for size in self.sizes)

    @property
    def n_tokens(self) -> int:
        """Number of positions of all shards."""
        return sum(size.n_tokens for size in self.sizes)

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays of all shards."""
        return sum(size.n_bytes for size in self.sizes)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.label_alphabet)

    @property
    def one_position(self) -> bool:
        """Whether every sequence has exactly one position."""
        return self.n_tokens == self.n_sequences

    @staticmethod
    def open(folder: str | os.PathLike[str]) -> FolderShards:
        """Open a folder that ``crfit index`` has written; no shard is read.

        Raises DataError if it has no index, or one that is damaged.
        """
        return FolderShards(folder)

    @staticmethod
    def of(dataset: Dataset, n: int) -> Shards:
        """Split a dataset in memory into at most `n` shards of about equal size, in its order."""
        return _MemoryShards(dataset, n)

    def parts(self) -> Iterator[Dataset]:
        """The datasets of the shards, one after the other."""
        return (self.load(i).dataset for i in range(self.n_shards))

    def whole(self) -> Dataset:
        """All shards as one dataset, the same as without shards."""
        return joined([self.load(i) for i in range(self.n_shards)], self)

    def _check_number(self, i: int) -> int:
        check_whole_number("i", i, at_least=0)
        if i >= self.n_shards:
            raise OptionError("i", i, f"there are {self.n_shards} shards, numbered from 0")
        return int(i)

    def __repr__(self) -> str:
        return (
            f"<{self.n_shards} shards of {self.n_sequences} sequences, {self.n_tokens} positions, "
            f"{self.n_attributes} attributes, {self.n_labels} labels>"
        )


class _MemoryShards(Shards):
    """Parts of a dataset."""

    def __init__(self, dataset: Dataset, n: int) -> None:
        check_whole_number("n", n, at_least=1)
        self._dataset = dataset
        self.n_attributes, self.n_edge_attributes = dataset.n_attributes, dataset.n_edge_attributes
        self.label_alphabet = dataset.label_alphabet
        self.plain_transitions, self.features = dataset.plain_transitions, dataset.features
        self.n_columns, self.source = dataset.n_columns, dataset.source
        parts = (dataset.shard(i, int(n)) for i in range(int(n)))
        self._parts = [local(part) for part in parts if part.n_sequences]
        self.sizes = [size_of(part.dataset) for part in self._parts]

    def load(self, i: int) -> Shard:
        return self._parts[self._check_number(i)]

    @property
    def attribute_alphabet(self) -> Alphabet:
        return self._dataset.attribute_alphabet

    @property
    def edge_alphabet(self) -> Alphabet:
        return self._dataset.edge_alphabet

    def whole(self) -> Dataset:
        return self._dataset


class FolderShards(Shards):
    """Shards in a folder, see `Shards.open`.

    Attributes
    ----------
    folder : Path
        Where they are.
    input_format : str
        The format of the text that was read.
    template : Template or None
        What made the attributes of column files.
    min_count : int
        Attributes at fewer positions than this were dropped.
    """

    input_format: Format

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        path = self.folder / INDEX
        if not path.is_file():
            what = (
                "there is no index in this folder"
                if self.folder.is_dir()
                else "is not a folder that crfit index wrote"
            )
            raise DataError(f"{what}: write one with crfit index", file=os.fspath(folder))
        try:
            header, self._tensors = tensor_file.read(path, INDEX_KIND, mapped=tensor_file.MAPPED)
            self._take(header, self._tensors)
        except ModelFileError as error:
            raise DataError(str(error), file=os.fspath(path)) from None
        except (AttributeError, DataError, IndexError, KeyError, TypeError, ValueError) as error:
            raise DataError(wrongly_written(error), file=os.fspath(path)) from None
        self._verified: dict[int, tuple[int, ...]] = {}

    def _take(self, header: dict[str, Any], tensors: Tensors) -> None:
        sizes, checksums = tensors["sizes"], tensors["checksums"]
        if sizes.dtype != np.int64 or sizes.shape != (len(checksums), 3) or sizes.min(initial=0) < 0:
            raise ValueError("the sizes of its shards are invalid")
        self.sizes = [ShardSize(*row) for row in sizes.tolist()]
        self._checksums = checksums.tolist()
        self.n_attributes, self.n_edge_attributes = (
            len(tensors[f"{name}.offsets"]) - 1 for name in ("attribute_alphabet", "edge_alphabet")
        )
        self.label_alphabet = restored_alphabet("label_alphabet", tensors)
        self.features = restore_features(header["features"], tensors)
        template = header["template"]
        self.template = None if template is None else Template(**template)
        self.plain_transitions = bool(header["plain_transitions"])
        self.input_format, self.source = header["input_format"], str(header["source"])
        if self.input_format not in get_args(Format):
            raise ValueError(f"its input format is {self.input_format!r}")
        self.n_columns = None if header["n_columns"] is None else int(header["n_columns"])
        self.min_count = int(header["min_count"])

    @cached_property
    def attribute_alphabet(self) -> Alphabet:
        """Names of the attributes."""
        return self._alphabet("attribute_alphabet")

    @cached_property
    def edge_alphabet(self) -> Alphabet:
        """Names of the edge attributes."""
        return self._alphabet("edge_alphabet")

    def _alphabet(self, name: str) -> Alphabet:
        try:
            return restored_alphabet(name, self._tensors)
        except (DataError, KeyError) as error:
            raise DataError(wrongly_written(error), file=os.fspath(self.folder / INDEX)) from None

    def load(self, i: int) -> Shard:
        """The shard number `i`, memory-mapped; DataError if it is missing or damaged.

        A file is read as a whole when it is loaded for the first time, to check it, and if it has changed.
        """
        path = shard_path(self.folder, self._check_number(i))
        try:
            found = os.stat(path)
            known = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            verified = self._verified.get(i) == known
            shard = self._read(path, i, verified)
        except FileNotFoundError:
            remedy = "is missing: copy the original again, or write all shards again with crfit index"
            raise DataError(remedy, file=os.fspath(path)) from None
        except (ModelFileError, OSError) as error:
            reason = tensor_file.unreadable(error) if isinstance(error, OSError) else str(error)
            raise DataError(reason, file=os.fspath(path)) from None
        except (DataError, KeyError, TypeError, ValueError) as error:
            raise DataError(wrongly_written(error), file=os.fspath(path)) from None
        self._verified[i] = known
        return shard

    def _read(self, path: Path, i: int, verified: bool) -> Shard:
        header, tensors = tensor_file.read(
            path, SHARD_KIND, tensor_file.MAPPED, checksum=self._checksums[i], verified=verified
        )
        attributes, edges = tensors["attributes"], tensors.get("edges")
        if not verified:
            _check_ids("attributes", attributes, self.n_attributes)
            _check_ids("edges", edges, self.n_edge_attributes)
        alphabets = {
            "attribute_alphabet": Numbers(len(attributes)),
            "label_alphabet": self.label_alphabet,
            "edge_alphabet": Numbers(0 if edges is None else len(edges)),
        }
        fields = restored(header, tensors, alphabets)
        dataset = Dataset._trusted(**fields) if verified else Dataset(**fields)
        if not verified and size_of(dataset) != self.sizes[i]:
            raise ModelFileError(DAMAGED.format("its size is not that in the index"))
        return Shard(dataset, attributes, edges)

    def __reduce__(self) -> tuple[object, ...]:
        return FolderShards, (os.path.abspath(self.folder),)


def _check_ids(name: str, ids: NDArray[np.int64] | None, n: int) -> None:
    if ids is None:
        return
    if ids.dtype != np.int64 or ids.ndim != 1:
        raise DataError(f"{name} must be a 1-D array of int64")
    if len(ids) and (ids[0] < 0 or ids[-1] >= n or (np.diff(ids) <= 0).any()):
        raise DataError(f"{name} must ascend from 0 to {n - 1}")


def is_index(folder: str | os.PathLike[str]) -> bool:
    """Whether this is a folder with an index, damaged or not."""
    return os.path.isfile(os.path.join(folder, INDEX))


def shard_path(folder: Path, i: int) -> Path:
    """Where a shard is."""
    return folder / f"shard-{i:05d}"


def size_of(dataset: Dataset) -> ShardSize:
    """Size of a dataset."""
    arrays = [getattr(dataset, name) for name in DTYPES]
    if dataset.label_sets is not None:
        arrays += dataset.label_sets
    n_bytes = sum(array.nbytes for array in arrays if array is not None)
    return ShardSize(dataset.n_sequences, dataset.n_tokens, n_bytes)


def local(dataset: Dataset) -> Shard:
    """A dataset as a shard of a larger one, with ids of its own for the attributes that occur."""
    attributes, attr_ids = _own_ids(dataset.attr_ids, dataset.n_attributes)
    changes: dict[str, Any] = {"attr_ids": attr_ids, "attribute_alphabet": Numbers(len(attributes))}
    changes["features"] = None
    edges = None
    if dataset.edge_ids is not None:
        edges, edge_ids = _own_ids(dataset.edge_ids, dataset.n_edge_attributes)
        changes |= {"edge_ids": edge_ids, "edge_alphabet": Numbers(len(edges))}
    return Shard(replace(dataset, **changes), attributes, edges)


def _own_ids(ids: NDArray[np.int32], n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The ids that occur among 0..n-1, ascending, and each id as its place among them."""
    there = np.zeros(n, dtype=bool)
    there[ids] = True
    return np.flatnonzero(there), (np.cumsum(there, dtype=np.int32) - np.int32(1))[ids]


def joined(parts: Sequence[Shard], shards: Shards) -> Dataset:
    """Shards, one after the other, as one dataset with the alphabets of `shards`."""
    data = [part.dataset for part in parts]
    fields: dict[str, Any] = {}
    for name, dtype in DTYPES.items():
        if all(getattr(one, name) is None for one in data):
            continue
        if name.endswith("_ptr"):
            fields[name] = offsets(np.concatenate([np.diff(getattr(one, name)) for one in data]))
            continue
        # Shards are mapped: only the result takes memory.
        per = {"attr_values": "n_occurrences", "sequence_weights": "n_sequences"}.get(name)
        lengths = [len(getattr(one, name)) if per is None else getattr(one, per) for one in data]
        ends = np.cumsum(lengths).tolist()
        whole = np.empty(ends[-1], dtype)
        for part, (begin, end) in zip(parts, pairwise([0, *ends]), strict=True):
            ids = {"attr_ids": part.attributes, "edge_ids": part.edges}.get(name)
            array = getattr(part.dataset, name)
            if ids is not None:
                np.take(ids.astype(np.int32), array, out=whole[begin:end])
            else:
                whole[begin:end] = 1.0 if array is None else array
        fields[name] = whole
    return Dataset(
        **fields,
        label_sets=_joined_sets(data),
        attribute_alphabet=shards.attribute_alphabet,
        label_alphabet=shards.label_alphabet,
        edge_alphabet=shards.edge_alphabet,
        source=shards.source,
        plain_transitions=shards.plain_transitions,
        n_columns=shards.n_columns,
        features=shards.features,
    )


def _joined_sets(parts: Sequence[Dataset]) -> LabelSets | None:
    """Label sets of all parts; equal ones share a row."""
    known: dict[bytes, int] = {}
    scores: list[NDArray[np.float64]] = []
    rows = []
    for part in parts:
        if part.label_sets is None:
            rows.append(np.full(part.n_tokens, -1, dtype=np.int32))
            continue
        numbers = []
        for row in part.label_sets.scores:
            number = known.setdefault(row.tobytes(), len(scores))
            if number == len(scores):
                scores.append(row)
            numbers.append(number)
        rows.append(np.array([*numbers, -1], dtype=np.int32)[part.label_sets.rows])  # row -1 is the last
    return LabelSets(np.concatenate(rows), np.array(scores)) if scores else None


def write_shard(path: Path, shard: Shard) -> int:
    """Write a shard; returns the checksum."""
    header, tensors = stored(shard.dataset)
    tensors["attributes"] = shard.attributes
    if shard.edges is not None:
        tensors["edges"] = shard.edges
    kind = {"format": SHARD_KIND.format, "version": SHARD_KIND.version}
    return tensor_file.write(path, tensors, header | kind)


def write_index(
    folder: Path,
    sizes: Sequence[ShardSize],
    checksums: Sequence[int],
    alphabets: dict[str, Alphabet],
    features: Features | None,
    header: dict[str, Any],
) -> None:
    """Write the index of the shards in a folder."""
    tensors: Tensors = {
        "sizes": np.array(sizes, dtype=np.int64).reshape(-1, 3),
        "checksums": np.array(checksums, dtype=np.int64),
    }
    for name, alphabet in alphabets.items():
        tensors[f"{name}.bytes"], tensors[f"{name}.offsets"] = alphabet.to_arrays()
    made_by = None if features is None else store_features(features, tensors)
    kind = {"format": INDEX_KIND.format, "version": INDEX_KIND.version}
    tensor_file.write(folder / INDEX, tensors, header | kind | {"features": made_by})
