"""Datasets and layouts in the form of the native core, and the memory of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crfit import _native

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.layout import Layout
    from crfit.layout.constraints import Constraints

#: Tables of label n-grams in memory at one time: scores, exponentials, their transpose, observed and
#: expected counts, two per thread, and sixteen for parts of the data.
N_NGRAM_TABLES = 23


def lattice_bytes(n_positions: int, n_labels: int, order: int) -> int:
    """Memory for one thread's forward, backward and pointer tables, and for the n-gram tables."""
    if order == 1:  # grows only with the sequence, like the data itself
        return 0
    row = -(-n_labels // 8) * 8  # the last label is padded
    lattice = (3 * 8 + 4) * n_positions * n_labels ** (order - 1) * row
    return int(lattice + 8 * N_NGRAM_TABLES * row * sum(n_labels**m for m in range(1, order + 1)))


def native_layout(layout: Layout, constraints: Constraints | None = None) -> _native.Layout:
    """The layout in the form of the native core, with the label sequences that are possible."""
    possible: tuple[Any, ...] = ()
    if constraints is not None:
        parts = constraints.follow.ravel(), constraints.begin, constraints.end
        possible = tuple(np.ascontiguousarray(part, dtype=np.uint8) for part in parts)
    return _native.Layout(
        layout.n_labels,
        layout.n_attributes,
        layout.n_edge_attributes,
        layout.state_ptr,
        layout.state_labels,
        list(layout.transition_codes),
        layout.edge_ptr,
        layout.edge_codes,
        layout.boundary,
        layout.n_free,
        *possible,
    )


def native_data(dataset: Dataset) -> _native.Data:
    """The arrays of a dataset in the form of the native core, which keeps views of them."""
    return _native.Data(
        dataset.seq_ptr,
        dataset.attr_ptr,
        dataset.attr_ids,
        dataset.attr_values,
        dataset.labels,
        dataset.edge_ptr,
        dataset.edge_ids,
        dataset.sequence_weights,
    )
