"""Parts of a dataset: chosen sequences, random parts, balanced shards, frequent attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit import _native
from crfit.alphabet import Alphabet
from crfit.dataset.checks import first_outside
from crfit.dataset.ragged import keep, rows
from crfit.errors import OptionError

if TYPE_CHECKING:
    from crfit.dataset import Dataset

__all__ = ["checked_ids", "choose", "drop_rare", "random_parts", "shard_ids"]


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
