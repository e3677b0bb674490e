"""Data in parts: what a training needs that never holds all of the data at once.

A shard is a run of consecutive sequences with ids of its own for the attributes that occur in it, so that its
arrays, weights and tables are as small as the shard:

    global id of attribute a of shard i   =   shards.load(i).attributes[a]        ascending

The labels have the same ids in all shards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_whole_number
from crfit.data.alphabet import Alphabet
from crfit.data.dataset import DTYPES, Dataset


class Shard(NamedTuple):
    """One part of the data."""

    dataset: Dataset  # its attribute ids are 0, 1, ... for those that occur in it; they have no names
    attributes: NDArray[np.int64]  # global id of each, ascending
    edges: NDArray[np.int64] | None  # the same for edge attributes; None if the data has none


class Unnamed(Alphabet):
    """An alphabet that knows only how many strings it has: training never asks for their names."""

    __slots__ = ("_size",)

    def __init__(self, size: int) -> None:
        super().__init__(locked=True)
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> str:
        return f"number {index} of the shard"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unnamed) and other._size == self._size

    __hash__ = None

    def __reduce__(self) -> tuple[object, ...]:
        return Unnamed, (self._size,)


class Shards:
    """Labelled sequences in parts.

    Attributes
    ----------
    label_alphabet, attribute_alphabet, edge_alphabet : Alphabet
        Names of the ids of all parts together.
    sizes : list of (int, int, int)
        Sequences, positions and bytes of each part.
    """

    def __init__(self, dataset: Dataset, parts: list[Shard]) -> None:
        self.label_alphabet, self.attribute_alphabet = dataset.label_alphabet, dataset.attribute_alphabet
        self.edge_alphabet, self.plain_transitions = dataset.edge_alphabet, dataset.plain_transitions
        self.features, self.n_columns, self.source = dataset.features, dataset.n_columns, dataset.source
        self._parts = parts
        self.sizes = [(s.dataset.n_sequences, s.dataset.n_tokens, _n_bytes(s)) for s in parts]

    @classmethod
    def of(cls, dataset: Dataset, n: int) -> Shards:
        """Split a dataset that is in memory into at most `n` parts with about equally many positions."""
        check_whole_number("n", n, at_least=1)
        parts = [dataset.shard(rank, n) for rank in range(n)]
        return cls(dataset, [_renumbered(part) for part in parts if part.n_sequences])

    @property
    def n_shards(self) -> int:
        """Number of parts."""
        return len(self.sizes)

    @property
    def n_sequences(self) -> int:
        """Number of sequences of all parts."""
        return sum(size[0] for size in self.sizes)

    @property
    def n_tokens(self) -> int:
        """Number of positions of all parts."""
        return sum(size[1] for size in self.sizes)

    @property
    def n_attributes(self) -> int:
        """Number of attributes of all parts."""
        return len(self.attribute_alphabet)

    @property
    def n_edge_attributes(self) -> int:
        """Number of edge attributes of all parts."""
        return len(self.edge_alphabet)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.label_alphabet)

    @property
    def one_position(self) -> bool:
        """Whether every sequence has exactly one position."""
        return self.n_tokens == self.n_sequences

    def load(self, i: int) -> Shard:
        """Return part `i`."""
        return self._parts[i]

    def __repr__(self) -> str:
        return (
            f"<Shards: {self.n_shards} parts, {self.n_sequences} sequences, {self.n_tokens} positions, "
            f"{self.n_attributes} attributes, {self.n_labels} labels>"
        )


def _n_bytes(shard: Shard) -> int:
    arrays = [getattr(shard.dataset, name) for name in DTYPES]
    return sum(array.nbytes for array in arrays if array is not None)


def _renumbered(part: Dataset) -> Shard:
    """A part with ids of its own."""
    attributes, attr_ids = _own_ids(part.attr_ids, part.n_attributes)
    edges, edge_ids, n_edges = None, None, 0
    if part.edge_ids is not None:
        edges, edge_ids = _own_ids(part.edge_ids, part.n_edge_attributes)
        n_edges = len(edges)
    dataset = replace(
        part,
        attr_ids=attr_ids,
        edge_ids=edge_ids,
        attribute_alphabet=Unnamed(len(attributes)),
        edge_alphabet=Unnamed(n_edges),
        features=None,
    )
    return Shard(dataset, attributes, edges)


def _own_ids(ids: NDArray[np.int32], n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The ids that occur, ascending, and each occurrence as an index of these."""
    occurs = np.zeros(n, dtype=bool)
    occurs[ids] = True
    own = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(occurs).astype(np.int64), own[ids]
