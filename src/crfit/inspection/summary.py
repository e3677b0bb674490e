"""What a model has learnt: its largest weights, its transitions, and how its weights are spread.

A weight w belongs to one feature; where the feature fires, the odds of its label are multiplied by exp(w),
all else equal. The largest positive weights of a label say what speaks for it, the most negative ones what
speaks against it. Millions of weights are looked through by partial selection (linear time), and only the few
chosen ones are given their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crfit.data.alphabet import HasAlphabets
from crfit.errors import OptionError
from crfit.inspection.weight_tables import (
    GroupSummary,
    Summary,
    TopWeights,
    Transitions,
    WeightedFeature,
    largest_places,
)
from crfit.layout import Layout

__all__ = [
    "GroupSummary",
    "Inspectable",
    "Summary",
    "TopWeights",
    "Transitions",
    "WeightedFeature",
    "summary",
    "top_edges",
    "top_weights",
    "transitions",
]


class Inspectable(HasAlphabets, Protocol):
    """A model: weights, their layout and the three alphabets."""

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight vector."""

    @property
    def layout(self) -> Layout:
        """Which feature each weight belongs to."""


def top_weights(model: Inspectable, n: int = 10, label: str | None = None) -> TopWeights:
    """Find the attributes that speak most for and against each label.

    Parameters
    ----------
    model : Model
        Weights, layout and alphabets.
    n : int
        How many weights of each sign at most.
    label : str, optional
        Only this label; by default all, in the order of their ids.

    Returns
    -------
    TopWeights
    """
    _check_n(n)
    layout, names = model.layout, list(model.label_alphabet)
    if label is not None and label not in names:
        raise OptionError("label", label, f"the model's labels are {', '.join(names)}")
    chosen = range(len(names)) if label is None else [names.index(label)]
    positive: dict[str, tuple[WeightedFeature, ...]] = {}
    negative: dict[str, tuple[WeightedFeature, ...]] = {}
    weights = np.asarray(model.weights, dtype=np.float64)
    for y, places in zip(chosen, _state_places(layout, chosen), strict=True):
        block = weights[places]
        for sign, table in ((1.0, positive), (-1.0, negative)):
            best = largest_places(sign * block, n)
            ids = places.start + places.step * best if isinstance(places, slice) else places[best]
            table[names[y]] = _name(model, ids)
    return TopWeights(positive, negative)


def _state_places(layout: Layout, labels: range | list[int]) -> Iterator[slice | NDArray[np.int64]]:
    """For each of the labels, the places of its state weights, ascending."""
    if layout.state_labels is None:
        for y in labels:
            yield slice(y, layout.n_state_weights, layout.n_labels)
    elif len(labels) == 1:
        yield np.flatnonzero(layout.state_labels == labels[0])
    else:
        # One stable sort groups the weights of all labels; 16-bit keys are sorted by radix, in linear time.
        keys = layout.state_labels
        small = keys.astype(np.uint16) if layout.n_labels <= 1 << 16 else keys
        places = np.argsort(small, kind="stable")
        ends = np.cumsum(np.bincount(keys, minlength=layout.n_labels))
        for y in labels:
            yield places[ends[y - 1] if y else 0 : ends[y]]


def transitions(model: Inspectable, n_longer: int = 20) -> Transitions:
    """Collect the weights between labels.

    Parameters
    ----------
    model : Model
        Weights, layout and alphabets.
    n_longer : int
        For a model of higher order, how many longer n-grams to give.

    Returns
    -------
    Transitions
    """
    _check_n(n_longer)
    layout, weights = model.layout, np.asarray(model.weights, dtype=np.float64)
    Y = layout.n_labels
    matrix = np.full(Y * Y, np.nan)
    codes = layout.transition_codes[0]
    matrix[slice(None) if codes is None else codes] = weights[layout.transition_slice(1)]
    start = weights[layout.start_offset : layout.start_offset + Y].copy() if layout.boundary else None
    end = weights[layout.end_offset : layout.end_offset + Y].copy() if layout.boundary else None
    longer: tuple[WeightedFeature, ...] = ()
    if layout.order > 1:
        first = layout.transition_offsets[1]
        places = largest_places(np.abs(weights[first : layout.start_offset]), n_longer)
        longer = _name(model, first + places)
    return Transitions(tuple(model.label_alphabet), matrix.reshape(Y, Y), start, end, longer)


def top_edges(model: Inspectable, n: int = 20) -> tuple[WeightedFeature, ...]:
    """Find the observation-dependent transitions with the largest weights by size.

    Parameters
    ----------
    model : Model
        Weights, layout and alphabets.
    n : int
        How many at most.

    Returns
    -------
    tuple of WeightedFeature
        Largest first; empty for a model without edge attributes.
    """
    _check_n(n)
    first = model.layout.edge_offset
    weights = np.asarray(model.weights, dtype=np.float64)
    return _name(model, first + largest_places(np.abs(weights[first:]), n))


def summary(model: Inspectable) -> Summary:
    """Count the weights of each block, and find the largest.

    Parameters
    ----------
    model : Model
        Weights, layout and alphabets.

    Returns
    -------
    Summary
    """
    layout, weights = model.layout, np.asarray(model.weights, dtype=np.float64)
    blocks = {"state": slice(0, layout.n_state_weights)}
    for m in range(1, layout.order + 1):
        blocks["transition" if m == 1 else f"transition {m + 1}"] = layout.transition_slice(m)
    if layout.boundary:
        blocks["start"] = slice(layout.start_offset, layout.end_offset)
        blocks["end"] = slice(layout.end_offset, layout.edge_offset)
    if layout.n_edge_attributes:
        blocks["edge"] = slice(layout.edge_offset, layout.n_weights)
    groups = []
    for name, block in blocks.items():
        values = weights[block]
        best = _name(model, block.start + largest_places(np.abs(values), 1))
        n_nonzero = int(np.count_nonzero(values))
        norm = float(np.linalg.norm(values))
        groups.append(GroupSummary(name, len(values), n_nonzero, norm, best[0] if best else None))
    return Summary(
        n_labels=layout.n_labels,
        n_attributes=layout.n_attributes,
        n_edge_attributes=layout.n_edge_attributes,
        order=layout.order,
        n_weights=layout.n_weights,
        n_nonzero=sum(group.n_nonzero for group in groups),
        norm=float(np.linalg.norm(weights)),
        groups=tuple(groups),
    )


def _name(model: Inspectable, places: NDArray[np.int64]) -> tuple[WeightedFeature, ...]:
    """Give the weights at these places their features."""
    return tuple(
        WeightedFeature(model.layout.describe(int(place), model), float(model.weights[place]))
        for place in places
    )


def _check_n(n: int) -> None:
    if n < 0:
        raise OptionError("n", n, "give a whole number, 0 or more")
