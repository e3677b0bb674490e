"""Codes of the features in a dataset: made, told apart and counted without a loop over tokens.

A code is the number of a feature within its block, were every feature to have a weight:

    state   a Y + y                          attribute a at a position with label y
    n-gram  sum_j y_{t-m+j} Y^(m-j)          labels y_{t-m}, ..., y_t, first label most significant
    edge    b Y^2 + y_{t-1} Y + y_t          edge attribute b at position t

The codes that do have a weight are kept as *rows*: offsets per attribute (``ptr``) and the rest of the code
(``columns``), as in a CSR matrix.

One feature in readable form, and which one a weight belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.data.arrays import first_outside
from crfit.errors import DataError, OptionError

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.data.alphabet import HasAlphabets
    from crfit.layout import Layout

__all__ = [
    "Feature",
    "describe",
]

Codes: TypeAlias = NDArray[np.int64]
Tokens: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = NDArray[np.int32]
Pointers: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = NDArray[np.int32]

DENSE_CODES = 1 << 25  # up to here a table over all codes beats sorting: 4 million codes in 20 ms, not 260


def labels_of(dataset: Dataset) -> Labels:
    """Return the labels of a dataset; DataError if it has none."""
    if dataset.labels is None:
        raise DataError("the data has no labels: give y, or a file with a label column", file=dataset.source)
    return dataset.labels


def state_codes(dataset: Dataset, labels: Labels, n_labels: int) -> Codes:
    """Code of every attribute occurrence."""
    codes = dataset.attr_ids.astype(np.int64)
    codes *= n_labels
    codes += np.repeat(labels, np.diff(dataset.attr_ptr))
    return codes


def ngram_codes(dataset: Dataset, labels: Labels, n_labels: int, m: int) -> tuple[Codes, Tokens]:
    """Code and last token of every label n-gram with m preceding labels."""
    starts = np.repeat(dataset.seq_ptr[:-1], np.diff(dataset.seq_ptr))
    tokens = np.flatnonzero(np.arange(len(labels)) - starts >= m)
    codes = np.zeros(len(tokens), dtype=np.int64)
    for back in range(m, -1, -1):
        codes = codes * n_labels + labels[tokens - back]
    return codes, tokens


def edge_codes(dataset: Dataset, labels: Labels, n_labels: int) -> tuple[Codes, Tokens]:
    """Code and token of every edge attribute occurrence, first positions of sequences left out."""
    if dataset.edge_ptr is None or dataset.edge_ids is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    tokens = np.repeat(np.arange(len(labels)), np.diff(dataset.edge_ptr))
    is_first = np.zeros(len(labels), dtype=bool)
    is_first[dataset.seq_ptr[:-1]] = True
    inside = ~is_first[tokens]
    tokens, ids = tokens[inside], dataset.edge_ids[inside].astype(np.int64)
    return (ids * n_labels + labels[tokens - 1]) * n_labels + labels[tokens], tokens


def distinct(codes: Codes, n_codes: int) -> Codes:
    """Return the codes that occur, ascending, each once."""
    if n_codes > DENSE_CODES:
        codes = np.sort(codes)  # np.unique hashes and takes ten times as long
        return codes[np.append(True, codes[1:] != codes[:-1])] if len(codes) else codes
    occurs = np.zeros(n_codes, dtype=bool)
    occurs[codes] = True
    return np.flatnonzero(occurs).astype(np.int64, copy=False)


def sum_by_code(
    codes: Codes, values: NDArray[np.float64] | None, wanted: Codes | None, n_codes: int
) -> NDArray[np.float64]:
    """Add up `values` (None: ones) per code; of the ascending codes `wanted`, or of all (None)."""
    if wanted is None or n_codes <= DENSE_CODES:
        sums = np.bincount(codes, values, minlength=n_codes).astype(np.float64, copy=False)
        return sums if wanted is None else sums[wanted]
    if not len(wanted):
        return np.zeros(0)
    places = np.minimum(np.searchsorted(wanted, codes), len(wanted) - 1)
    known = wanted[places] == codes
    values = None if values is None else values[known]
    return np.bincount(places[known], values, minlength=len(wanted)).astype(np.float64, copy=False)


def to_rows(codes: Codes, n_rows: int, n_columns: int) -> tuple[Pointers, Columns]:
    """Ascending codes ``row * n_columns + column`` as row offsets and columns."""
    ptr = np.searchsorted(codes, np.arange(n_rows + 1, dtype=np.int64) * n_columns).astype(np.int64)
    return ptr, (codes % n_columns).astype(np.int32)


def from_rows(ptr: Pointers | None, columns: Columns | None, n_columns: int) -> Codes | None:
    """Return the ascending codes of `to_rows`; None (all codes) stays None."""
    if ptr is None or columns is None:
        return None
    rows = np.repeat(np.arange(len(ptr) - 1, dtype=np.int64), np.diff(ptr))
    return rows * n_columns + columns


def locate(place: int, ptr: Pointers | None, columns: Columns | None, n_columns: int) -> tuple[int, int]:
    """Row and column of the weight at `place` of a block."""
    if ptr is None or columns is None:
        return divmod(place, n_columns)
    return int(np.searchsorted(ptr, place, side="right")) - 1, int(columns[place])


def digits(code: int, base: int, n: int) -> tuple[int, ...]:
    """Return the n labels of an n-gram's code, earliest first."""
    labels = []
    for _ in range(n):
        code, label = divmod(code, base)
        labels.append(label)
    return tuple(reversed(labels))


def ascends_below(codes: NDArray[np.integer], n_codes: int) -> bool:
    """Whether the codes ascend strictly from 0 or more and stay below `n_codes`."""
    return not len(codes) or bool(codes[0] >= 0 and codes[-1] < n_codes and np.all(codes[1:] > codes[:-1]))


def check_rows(
    block: str, ptr: Pointers | None, columns: Columns | None, n_rows: int, n_columns: int
) -> None:
    """Raise `OptionError` unless the rows are a CSR pattern with ascending columns; None (all) is good."""
    if ptr is None or columns is None:
        return
    if len(ptr) != n_rows + 1 or ptr[0] != 0 or ptr[-1] != len(columns) or (np.diff(ptr) < 0).any():
        remedy = f"must rise from 0 to {len(columns)} in {n_rows} steps"
        raise OptionError(f"{block}_ptr", f"{len(ptr)} offsets", remedy)
    codes = np.repeat(np.arange(n_rows, dtype=np.int64), np.diff(ptr)) * n_columns + columns
    if first_outside(columns, n_columns) is not None or not ascends_below(codes, n_rows * n_columns):
        remedy = f"must ascend in every row and lie below {n_columns}"
        raise OptionError(f"{block} features", f"{len(columns)} columns", remedy)


def count_features(layout: Layout, dataset: Dataset, labels: Labels) -> NDArray[np.float64]:
    """Features counted on `labels`, ``sum_i c_i Phi(x_i, y_i)``, float64[n_weights]; see `Layout`."""
    Y = layout.n_labels
    counts = np.zeros(layout.n_weights)
    token_weights = None
    if dataset.sequence_weights is not None:
        token_weights = np.repeat(dataset.sequence_weights, np.diff(dataset.seq_ptr))

    def at(tokens: Tokens) -> NDArray[np.float64] | None:
        return None if token_weights is None else token_weights[tokens]

    values = dataset.attr_values
    if token_weights is not None:
        values = np.repeat(token_weights, np.diff(dataset.attr_ptr)) * (1.0 if values is None else values)
    codes = state_codes(dataset, labels, Y)
    wanted = from_rows(layout.state_ptr, layout.state_labels, Y)
    counts[: layout.n_state_weights] = sum_by_code(codes, values, wanted, layout.n_attributes * Y)

    for m, wanted in enumerate(layout.transition_codes, start=1):
        codes, tokens = ngram_codes(dataset, labels, Y, m)
        counts[layout.transition_slice(m)] = sum_by_code(codes, at(tokens), wanted, Y ** (m + 1))

    if layout.boundary:
        first, last = dataset.seq_ptr[:-1], dataset.seq_ptr[1:] - 1
        for offset, tokens in ((layout.start_offset, first), (layout.end_offset, last)):
            counts[offset : offset + Y] = np.bincount(labels[tokens], at(tokens), minlength=Y)

    if layout.n_edge_weights:
        codes, tokens = edge_codes(dataset, labels, Y)
        wanted = from_rows(layout.edge_ptr, layout.edge_codes, Y * Y)
        counts[layout.edge_offset :] = sum_by_code(
            codes, at(tokens), wanted, layout.n_edge_attributes * Y * Y
        )
    return counts


@dataclass(frozen=True)
class Feature:
    """One feature in readable form.

    Attributes
    ----------
    kind : {"state", "transition", "start", "end", "edge"}
        Block of the weight vector.
    attribute : str or None
        The attribute or edge attribute; None for the other kinds.
    labels : tuple of str
        The labels, earliest first.
    """

    kind: str
    attribute: str | None
    labels: tuple[str, ...]

    def __str__(self) -> str:
        labels = self.labels
        if self.kind == "start":
            labels = ("START", *labels)
        elif self.kind == "end":
            labels = (*labels, "END")
        path = " -> ".join(labels)
        return path if self.attribute is None else f"{self.attribute}: {path}"


def describe(layout: Layout, weight_id: int, alphabets: HasAlphabets) -> Feature:
    """Say which feature a weight belongs to; see `crfit.layout.Layout.describe`."""
    if not 0 <= weight_id < layout.n_weights:
        raise OptionError("weight_id", weight_id, f"weights are numbered 0 to {layout.n_weights - 1}")
    Y, names = layout.n_labels, alphabets.label_alphabet
    if weight_id < layout.n_state_weights:
        a, label = locate(weight_id, layout.state_ptr, layout.state_labels, Y)
        return Feature("state", alphabets.attribute_alphabet[a], (names[label],))
    if weight_id < layout.start_offset:
        m = sum(offset <= weight_id for offset in layout.transition_offsets)
        # An empty block starts where the next one does: the last block that starts here is the one.
        place, codes = weight_id - layout.transition_offsets[m - 1], layout.transition_codes[m - 1]
        code = place if codes is None else int(codes[place])
        return Feature("transition", None, tuple(names[y] for y in digits(code, Y, m + 1)))
    if weight_id < layout.edge_offset:
        is_end, label = divmod(weight_id - layout.start_offset, Y)
        return Feature("end" if is_end else "start", None, (names[label],))
    b, code = locate(weight_id - layout.edge_offset, layout.edge_ptr, layout.edge_codes, Y * Y)
    return Feature("edge", alphabets.edge_alphabet[b], tuple(names[y] for y in digits(code, Y, 2)))
