"""Leaving out what has no weight.

A feature without a weight has score 0, so that a weight of exactly 0 can go where the layout lists its
features, and an attribute of which all weights are 0 can go in any layout. Training with l1 > 0 leaves many
of both. No score changes. Free attributes (`Layout.n_free`) stay, with all their weights: a model trained
further needs its intercept at the end of the alphabet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfit.data.alphabet import Alphabet
from crfit.data.arrays import keep, offsets
from crfit.layout import Layout

__all__ = ["Pruned", "drop_zeros"]


class Pruned(NamedTuple):
    """Weights with what belongs to them, after some have gone."""

    weights: NDArray[np.float64]
    layout: Layout
    attribute_alphabet: Alphabet
    edge_alphabet: Alphabet


class _Block(NamedTuple):
    """State or edge weights: one row of columns for each attribute; ptr and columns None for all columns."""

    weights: NDArray[np.float64]
    ptr: NDArray[np.int64] | None
    columns: NDArray[np.int32] | None
    alphabet: Alphabet
    n_free: int = 0


def drop_zeros(
    weights: NDArray[np.float64], layout: Layout, attribute_alphabet: Alphabet, edge_alphabet: Alphabet
) -> Pruned:
    """Leave out zero weights of observed features, and attributes without a weight.

    Parameters
    ----------
    weights : float64 array of shape (n_weights,)
        The weights.
    layout : Layout
        Which feature each belongs to.
    attribute_alphabet, edge_alphabet : Alphabet
        Names of the attributes and edge attributes.

    Returns
    -------
    Pruned
        What is left, in the old order. Labels, label n-grams and boundary weights are all there.
    """
    n_state, first_edge, Y = layout.n_state_weights, layout.edge_offset, layout.n_labels
    all_states = _Block(
        weights[:n_state], layout.state_ptr, layout.state_labels, attribute_alphabet, layout.n_free
    )
    all_edges = _Block(weights[first_edge:], layout.edge_ptr, layout.edge_codes, edge_alphabet)
    states, edges = _shrink(all_states, width=Y), _shrink(all_edges, width=Y * Y)
    if states is all_states and edges is all_edges:
        return Pruned(weights, layout, attribute_alphabet, edge_alphabet)
    smaller = replace(
        layout,
        n_attributes=len(states.alphabet),
        n_edge_attributes=len(edges.alphabet),
        state_ptr=states.ptr,
        state_labels=states.columns,
        edge_ptr=edges.ptr,
        edge_codes=edges.columns,
    )
    left = np.concatenate([states.weights, weights[n_state:first_edge], edges.weights])
    return Pruned(left, smaller, states.alphabet, edges.alphabet)


def _shrink(block: _Block, width: int) -> _Block:
    """Give the block without zeros, itself if nothing goes."""
    kept = block.weights != 0
    if block.n_free:
        first = len(block.alphabet) - block.n_free
        kept[first * width if block.ptr is None else block.ptr[first] :] = True
    if block.ptr is None or block.columns is None:
        used = kept.reshape(-1, width).any(axis=1)
        if used.all():
            return block
        left = block.weights.reshape(-1, width)[used].ravel()
        return _Block(left, None, None, block.alphabet.subset(used))
    lengths = np.diff(keep(block.ptr, kept))
    used = lengths > 0
    if used.all() and kept.all():
        return block
    ptr = offsets(lengths[used])
    return _Block(block.weights[kept], ptr, block.columns[kept], block.alphabet.subset(used))
