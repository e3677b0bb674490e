"""The layout of data in shards, and what of it a shard needs.

All shards together have the layout of the whole data: the same weights in the same places. A shard computes
with a layout of its own, of the attributes that occur in it:

    weight k of shard i   =   w[places[k]],    places ascending

It holds all weights of its attributes, also of labels that they have only in other shards, and all weights
of label n-grams and boundaries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfit.checks import rows
from crfit.data.dataset import labels_of
from crfit.layout.features import (
    Codes,
    Columns,
    Layout,
    Pointers,
    TransitionsOption,
    WeightsOption,
    check_options,
    distinct,
    edge_pair_codes,
    ngram_codes,
    seen_at_known,
    seen_states,
    to_rows,
)

if TYPE_CHECKING:
    from crfit.data.shards import Shard, Shards


#: Shards whose codes are in memory together.
JOINED_AT_ONCE = 16


class ShardLayout(NamedTuple):
    """The layout of a shard."""

    layout: Layout
    places: NDArray[np.int64]  # place of each of its weights among all weights


class Seen(NamedTuple):
    """Codes of the features that occur in a shard, ascending; None where every code has a weight."""

    states: Codes | None
    ngrams: tuple[Codes | None, ...]
    edges: Codes | None


def seen_features(
    shard: Shard,
    *,
    weights: WeightsOption = "observed",
    transitions: TransitionsOption = "all",
    order: int = 1,
) -> Seen:
    """The features of a shard that have to get a weight under these options of `make_layout`."""
    dataset, Y = shard.dataset, shard.dataset.n_labels
    labels = labels_of(dataset)
    states = edges = None
    if weights == "observed":
        states = distinct(seen_states(dataset, labels, Y), len(shard.attributes) * Y)
        states = shard.attributes[states // Y] * Y + states % Y
        edges = np.empty(0, dtype=np.int64)
        if shard.edges is not None:
            pairs = seen_at_known(dataset, *edge_pair_codes(dataset, labels, Y), 1)
            pairs = distinct(pairs, len(shard.edges) * Y * Y)
            edges = shard.edges[pairs // (Y * Y)] * (Y * Y) + pairs % (Y * Y)
    if not dataset.plain_transitions or transitions == "none":
        return Seen(states, (np.empty(0, dtype=np.int64),) * order, edges)
    ngrams: tuple[Codes | None, ...] = (None,) * order
    if transitions == "observed":
        ngrams = tuple(
            distinct(seen_at_known(dataset, *ngram_codes(dataset, labels, Y, m), m), Y ** (m + 1))
            for m in range(1, order + 1)
        )
    return Seen(states, ngrams, edges)


def joined_layout(
    shards: Shards,
    seen: Iterable[Seen],
    *,
    weights: WeightsOption = "observed",
    transitions: TransitionsOption = "all",
    boundary: bool = False,
    order: int = 1,
    n_free: int = 0,
) -> Layout:
    """The layout of the whole data, from the features of each of its shards."""
    Y, A, B = shards.n_labels, shards.n_attributes, shards.n_edge_attributes
    waiting: list[Seen] = []
    for one in seen:
        waiting.append(one)
        if len(waiting) == JOINED_AT_ONCE:
            waiting = [_join(waiting, A, B, Y)]
    found = _join(waiting, A, B, Y)
    by_attribute: dict[str, Any] = {}
    if found.states is not None and found.edges is not None:
        by_attribute["state_ptr"], by_attribute["state_labels"] = to_rows(found.states, A, Y)
        by_attribute["edge_ptr"], by_attribute["edge_codes"] = to_rows(found.edges, B, Y * Y)
    return Layout(
        n_labels=Y,
        n_attributes=A,
        n_edge_attributes=B,
        order=order,
        boundary=bool(boundary),
        weights=weights,
        transitions=transitions if shards.plain_transitions else "none",
        transition_codes=found.ngrams,
        n_free=n_free,
        **by_attribute,
    )


def make_layout_of_shards(
    shards: Shards,
    loaded: Iterable[Shard],
    *,
    weights: WeightsOption = "observed",
    transitions: TransitionsOption = "all",
    boundary: bool = False,
    order: int = 1,
    n_free: int = 0,
) -> Layout:
    """Decide which features have a weight, as `make_layout` on the whole data; `loaded` is each shard."""
    check_options(shards.n_labels, weights, transitions, boundary, order)
    kinds: dict[str, Any] = {"weights": weights, "transitions": transitions, "order": order}
    seen = (seen_features(shard, **kinds) for shard in loaded)
    return joined_layout(shards, seen, boundary=boundary, n_free=n_free, **kinds)


def shard_layout(
    layout: Layout, attributes: NDArray[np.int64], edges: NDArray[np.int64] | None
) -> ShardLayout:
    """The layout of a shard with these attributes and edge attributes, within that of the whole data."""
    Y = layout.n_labels
    edges = np.empty(0, dtype=np.int64) if edges is None else edges
    state_ptr, state_labels, states = _part(layout.state_ptr, layout.state_labels, attributes, Y)
    edge_ptr, edge_codes, pairs = _part(layout.edge_ptr, layout.edge_codes, edges, Y * Y)
    own = replace(
        layout,
        n_attributes=len(attributes),
        n_edge_attributes=len(edges),
        state_ptr=state_ptr,
        state_labels=state_labels,
        edge_ptr=edge_ptr,
        edge_codes=edge_codes,
        n_free=int(np.count_nonzero(attributes >= layout.n_attributes - layout.n_free)),
    )
    between = np.arange(layout.n_state_weights, layout.edge_offset)
    return ShardLayout(own, np.concatenate((states, between, pairs + layout.edge_offset)))


def _part(
    ptr: Pointers | None, columns: Columns | None, ids: NDArray[np.int64], n_columns: int
) -> tuple[Pointers | None, Columns | None, NDArray[np.int64]]:
    """The rows of some attributes, and the places of their entries in the block."""
    if ptr is None or columns is None:
        return None, None, (ids[:, None] * n_columns + np.arange(n_columns)).ravel()
    own, entries = rows(ptr, ids)
    return own, columns[entries], entries


def _join(seen: list[Seen], A: int, B: int, Y: int) -> Seen:
    def union(lists: list[Codes | None], n_codes: int) -> Codes | None:
        there = [codes for codes in lists if codes is not None]
        return distinct(np.concatenate(there), n_codes) if there else None

    ngrams = zip(*(one.ngrams for one in seen), strict=True)
    return Seen(
        union([one.states for one in seen], A * Y),
        tuple(union(list(each), Y ** (m + 1)) for m, each in enumerate(ngrams, start=1)),
        union([one.edges for one in seen], B * Y * Y),
    )
