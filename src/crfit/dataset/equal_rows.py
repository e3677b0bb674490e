"""Rows that are the same, among rows of different lengths.

Rows get a number each, a sum of random terms, and rows whose numbers and lengths agree are neighbours once
they are sorted by them. Chance may make rows agree that differ, so that neighbours are compared entry by
entry. The result is exact and the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crfit.dataset.ragged import offsets, rows

if TYPE_CHECKING:
    from crfit.dataset import Dataset

__all__ = ["distinct_tokens", "first_equal_column", "numbered"]

Index = NDArray[np.int64]


def distinct_tokens(dataset: Dataset) -> tuple[NDArray[np.int32], Index]:
    """Find the positions with the same attributes, in the same order, with the same values.

    Their node scores are the same whatever the weights are. Labels and edge attributes are not looked at.

    Parameters
    ----------
    dataset : Dataset
        Sequences.

    Returns
    -------
    token_of : int32[N]
        Which of the D different ones a position is, in order of first appearance.
    representatives : int64[D]
        The first position of each.
    """
    lengths = np.diff(dataset.attr_ptr)
    terms = np.random.default_rng(0).random(dataset.n_attributes)[dataset.attr_ids]
    # Another factor for each place in the row: the order counts.
    places = np.arange(len(terms)) - np.repeat(dataset.attr_ptr[:-1], lengths)
    terms *= np.random.default_rng(1).random(int(lengths.max(initial=0)))[places]
    if dataset.attr_values is not None:
        terms *= _of_values(dataset.attr_values)
    sums = np.zeros(dataset.n_tokens)
    filled = np.flatnonzero(lengths)
    if len(filled):
        sums[filled] = np.add.reduceat(terms, dataset.attr_ptr[filled])

    def entries(tokens: Index) -> _Rows:
        ptr, chosen = rows(dataset.attr_ptr, tokens)
        return _Rows(ptr, dataset.attr_ids[chosen], _taken(dataset.attr_values, chosen))

    first = _first_equal(sums, lengths, entries)
    return numbered(first), np.flatnonzero(first == np.arange(len(first)))


def first_equal_column(dataset: Dataset, n_columns: int) -> Index:
    """Find the attributes with the same occurrences.

    Parameters
    ----------
    dataset : Dataset
        Sequences.
    n_columns : int
        How many of the attributes to look at, the first ones.

    Returns
    -------
    int64[n_columns]
        For each attribute the first one with the same positions and values.
    """
    n = dataset.n_attributes
    terms = np.repeat(np.random.default_rng(0).random(dataset.n_tokens), np.diff(dataset.attr_ptr))
    if dataset.attr_values is not None:
        terms *= _of_values(dataset.attr_values)
    # Equal columns are added up in the same order, so that rounding does not part them.
    sums = np.bincount(dataset.attr_ids, terms, minlength=n).astype(np.float64, copy=False)
    lengths = np.bincount(dataset.attr_ids, minlength=n).astype(np.int64, copy=False)

    def entries(attributes: Index) -> _Rows:
        row = np.full(n, -1, dtype=np.int64)
        row[attributes] = np.arange(len(attributes))
        occurrences = np.flatnonzero(row[dataset.attr_ids] >= 0)
        of_row = row[dataset.attr_ids[occurrences]]
        chosen = occurrences[np.argsort(of_row, kind="stable")]
        positions = np.searchsorted(dataset.attr_ptr, chosen, side="right") - 1
        return _Rows(offsets(lengths[attributes]), positions, _taken(dataset.attr_values, chosen))

    return _first_equal(sums[:n_columns], lengths[:n_columns], entries)


class _Rows:
    """Some rows: row k has keys[ptr[k]:ptr[k+1]] and values."""

    def __init__(self, ptr: Index, keys: NDArray[np.integer], values: NDArray[np.float64] | None) -> None:
        self.ptr, self.keys, self.values = ptr, keys, values

    def equal(self, left: Index, right: Index) -> NDArray[np.bool_]:
        """Whether rows of the same length are the same, pair by pair."""
        ptr, at_left = rows(self.ptr, left)
        _, at_right = rows(self.ptr, right)
        unequal = self.keys[at_left] != self.keys[at_right]
        if self.values is not None:
            unequal |= self.values[at_left] != self.values[at_right]
        same: NDArray[np.bool_] = np.diff(offsets(unequal)[ptr]) == 0
        return same

    def content(self, k: int) -> tuple[bytes, bytes]:
        """What is in a row, for a dictionary."""
        part = slice(self.ptr[k], self.ptr[k + 1])
        return self.keys[part].tobytes(), b"" if self.values is None else self.values[part].tobytes()


def _first_equal(sums: NDArray[np.float64], lengths: Index, entries: Callable[[Index], _Rows]) -> Index:
    """For each row the first one that is the same; `entries` gathers the rows that are to be compared."""
    n = len(sums)
    order = np.lexsort((lengths, sums))  # stable: of rows that agree the first one is in front
    agrees = np.zeros(n, dtype=bool)  # with the one before it in `order`
    agrees[1:] = (sums[order[1:]] == sums[order[:-1]]) & (lengths[order[1:]] == lengths[order[:-1]])
    first = np.empty(n, dtype=np.int64)
    first[order] = order[np.maximum.accumulate(np.where(agrees, 0, np.arange(n)))]

    compared = agrees.copy()
    compared[:-1] |= agrees[1:]
    ids = order[compared]
    right = np.flatnonzero(agrees[compared])
    gathered = entries(ids)
    wrong = ids[right[~gathered.equal(right - 1, right)]]
    for leader in np.unique(first[wrong]).tolist():  # next to never
        seen: dict[tuple[bytes, bytes], int] = {}
        for k in np.flatnonzero(first[ids] == leader).tolist():
            first[ids[k]] = seen.setdefault(gathered.content(k), int(ids[k]))
    return first


def numbered(first: Index) -> NDArray[np.int32]:
    """Number the different rows in order of first appearance.

    Parameters
    ----------
    first : int64 array
        For each row the first one that is the same.

    Returns
    -------
    int32 array
        For each row its number.
    """
    numbers = np.cumsum(first == np.arange(len(first)), dtype=np.int32) - np.int32(1)
    chosen: NDArray[np.int32] = numbers[first]
    return chosen


def _taken(values: NDArray[np.float64] | None, chosen: Index) -> NDArray[np.float64] | None:
    return None if values is None else values[chosen] + 0.0  # -0 becomes 0, which has other bytes


def _of_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A number from 1 to 2 for each value that looks random: values of any size are told apart."""
    bits = (values + 0.0).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # wraps around
    bits ^= bits >> np.uint64(32)
    bits *= np.uint64(0xD6E8FEB86659FD93)
    factors: NDArray[np.float64] = 1.0 + (bits >> np.uint64(11)) * 2.0**-53
    return factors
