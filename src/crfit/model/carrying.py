"""Carry the weights of a model over to another problem, by the names of their features.

A feature is the same in both if its names are: attribute and label, the labels of an n-gram, the first or
last label, edge attribute and two labels. Ids, alphabets and layouts may differ in any way. Names are looked
up once per attribute and label, and weights are moved as arrays.

A classifier with two classes has one weight per attribute, the difference of the weights of its labels. It
stands for ``-w/2`` and ``+w/2``, so that models with two and with more classes fit together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crfit.data.alphabet import Alphabet, HasAlphabets
from crfit.data.dataset import Dataset, recode
from crfit.layout import Layout
from crfit.layout.features import Codes, from_rows, to_rows

if TYPE_CHECKING:
    from crfit.model import Model

__all__ = ["Carried", "carry_over", "joint_layout", "with_names_of"]


@dataclass(frozen=True, eq=False)
class Carried:
    """Weights carried over to a problem: `weights`, float64[n_weights], 0 for its other features.

    `n_carried` of the model's weights have a place in the problem, `n_left` have none.
    """

    weights: NDArray[np.float64]
    n_carried: int
    n_left: int

    @property
    def n_new(self) -> int:
        """Weights of the problem that the model does not have."""
        return max(0, len(self.weights) - self.n_carried)


@dataclass(frozen=True, eq=False)
class _Block:
    """Some weights of a model by the codes of another problem, -1 for features that it cannot have."""

    codes: Codes
    values: NDArray[np.float64]


def carry_over(model: Model, data: HasAlphabets, layout: Layout) -> Carried:
    """The weights of `model` in a problem with these alphabets and this layout."""
    old, weights = model.layout, np.zeros(layout.n_weights)
    labels, attributes, edges = _new_ids(model, data)
    state = slice(0, layout.n_state_weights)
    state_codes = from_rows(layout.state_ptr, layout.state_labels, layout.n_labels)
    one_vector = _one_vector(layout)
    n_carried = 0
    for sign, block in _state_blocks(model, labels, attributes, layout.n_labels):
        out = weights[state]
        n = _differences(block, out) if one_vector else _place(block, state_codes, out)
        n_carried += n if sign > 0 else 0
    for m in range(1, min(old.order, layout.order) + 1):
        codes = _combined(old.transition_codes[m - 1], old.n_labels, m + 1, labels, layout.n_labels)
        part = weights[layout.transition_slice(m)]
        n_carried += _place(
            _Block(codes, model.weights[old.transition_slice(m)]), layout.transition_codes[m - 1], part
        )
    if old.boundary and layout.boundary:
        for here, there in ((old.start_offset, layout.start_offset), (old.end_offset, layout.end_offset)):
            values = model.weights[here : here + old.n_labels]
            n_carried += _place(_Block(labels, values), None, weights[there : there + layout.n_labels])
    if old.n_edge_weights and layout.n_edge_weights:
        pairs = _combined(None, old.n_labels, 2, labels, layout.n_labels)
        codes = _paired(old.edge_ptr, old.edge_codes, old.n_labels**2, edges, pairs, layout.n_labels**2)
        wanted = from_rows(layout.edge_ptr, layout.edge_codes, layout.n_labels**2)
        values = model.weights[old.edge_offset :]
        n_carried += _place(_Block(codes, values), wanted, weights[layout.edge_offset :])
    return Carried(weights, n_carried, old.n_weights - n_carried)


def _new_ids(model: Model, data: HasAlphabets) -> tuple[Codes, Codes, Codes]:
    """For each label, attribute and edge attribute of the model its id in the data, -1 if it has none."""
    names = ("label_alphabet", "attribute_alphabet", "edge_alphabet")
    found = [getattr(data, name).native.find_all(*getattr(model, name).to_arrays()) for name in names]
    labels, attributes, edges = (ids.astype(np.int64) for ids in found)
    return labels, attributes, edges


def _one_vector(layout: Layout) -> bool:
    """Whether it is a classifier with two classes, where label 1 alone has weights."""
    if layout.n_labels != 2 or layout.transitions != "none" or layout.state_labels is None:
        return False
    return layout.n_weights == layout.n_state_weights == int(np.count_nonzero(layout.state_labels))


def _state_blocks(
    model: Model, labels: Codes, attributes: Codes, n_labels: int
) -> Iterator[tuple[int, _Block]]:
    """The (attribute, label) weights; those of a classifier with two classes once for each class."""
    old, values = model.layout, model.weights[: model.layout.n_state_weights]
    if not _one_vector(old):
        codes = _paired(old.state_ptr, old.state_labels, old.n_labels, attributes, labels, n_labels)
        yield 1, _Block(codes, values)
        return
    for label, sign in ((1, 1), (0, -1)):
        column = np.full(old.n_state_weights, label, dtype=np.int32)
        codes = _paired(old.state_ptr, column, old.n_labels, attributes, labels, n_labels)
        yield sign, _Block(codes, 0.5 * sign * values)


def _paired(
    ptr: NDArray[np.int64] | None,
    columns: NDArray[np.int32] | None,
    n_columns: int,
    row_ids: Codes,
    column_ids: Codes,
    n_new_columns: int,
) -> Codes:
    """Codes ``row * n_new_columns + column`` under the new ids."""
    if ptr is None or columns is None:
        codes = row_ids[:, None] * n_new_columns + column_ids
        codes[row_ids < 0] = -1
        codes[:, column_ids < 0] = -1
        return codes.ravel()
    rows, found = np.repeat(row_ids, np.diff(ptr)), column_ids[columns]
    codes = rows * n_new_columns + found
    codes[(rows < 0) | (found < 0)] = -1
    return codes


def _combined(codes: Codes | None, n_labels: int, n: int, labels: Codes, n_new_labels: int) -> Codes:
    """Codes of n-grams of n labels under the new ids."""
    given = np.arange(n_labels**n, dtype=np.int64) if codes is None else codes
    found, known, place = np.zeros(len(given), dtype=np.int64), np.ones(len(given), dtype=bool), 1
    for _ in range(n):  # the last label first
        given, label = np.divmod(given, n_labels)
        new = labels[label]
        known &= new >= 0
        found += place * new
        place *= n_new_labels
    found[~known] = -1
    return found


def _place(block: _Block, wanted: Codes | None, out: NDArray[np.float64]) -> int:
    """Write values to the places of their codes (None: the codes themselves); return how many have one."""
    codes, values = block.codes, block.values
    if wanted is None:
        kept = codes >= 0
        out[codes[kept]] = values[kept]
        return int(np.count_nonzero(kept))
    if not len(wanted) or not len(codes):
        return 0
    places = np.minimum(np.searchsorted(wanted, codes), len(wanted) - 1)
    kept = wanted[places] == codes
    out[places[kept]] = values[kept]
    return int(np.count_nonzero(kept))


def _differences(block: _Block, out: NDArray[np.float64]) -> int:
    """Add the values of label 1 and subtract those of label 0; `out` has a weight per attribute."""
    kept = block.codes >= 0
    rows, label = np.divmod(block.codes[kept], 2)
    out += np.bincount(rows, np.where(label == 1, 1.0, -1.0) * block.values[kept], minlength=len(out))
    return int(np.count_nonzero(kept))


def with_names_of(model: Model, data: Dataset, n_last: int = 0) -> Dataset:
    """The data with all names of the model, which get the first ids.

    The last `n_last` attributes of the data, such as the intercept, stay the last.
    """
    last = np.arange(len(data.attribute_alphabet)) >= len(data.attribute_alphabet) - n_last
    own = model.attribute_alphabet
    if n_last:
        kept = np.ones(len(own), dtype=bool)
        ids = own.native.find_all(*data.attribute_alphabet.subset(last).to_arrays())
        kept[ids[ids >= 0]] = False
        own = own.subset(kept)
    parts = [own, data.attribute_alphabet.subset(~last), data.attribute_alphabet.subset(last)]
    return recode(
        data,
        SimpleNamespace(
            attribute_alphabet=_union(*(parts if n_last else parts[:2])),
            label_alphabet=_union(model.label_alphabet, data.label_alphabet),
            edge_alphabet=_union(model.edge_alphabet, data.edge_alphabet),
        ),
    )


def _union(own: Alphabet, *more: Alphabet) -> Alphabet:
    """An alphabet with further strings at its end."""
    larger = own.copy()
    for alphabet in more:
        larger.native.add_all(*alphabet.to_arrays())
    larger.lock()
    return larger


def joint_layout(model: Model, data: Dataset, layout: Layout) -> Layout:
    """The features of a model, and those of a layout, on data from `with_names_of`."""
    old, Y = model.layout, data.n_labels
    labels, attributes, edges = _new_ids(model, data)
    order = max(old.order, layout.order)
    state_ptr, state_labels = layout.state_ptr, layout.state_labels
    edge_ptr, edge_codes = layout.edge_ptr, layout.edge_codes
    if state_ptr is not None:
        codes = _paired(old.state_ptr, old.state_labels, old.n_labels, attributes, labels, Y)
        joint = _joint(from_rows(state_ptr, state_labels, Y), codes)
        state_ptr, state_labels = to_rows(joint, data.n_attributes, Y)
        pairs = _combined(None, old.n_labels, 2, labels, Y)
        codes = _paired(old.edge_ptr, old.edge_codes, old.n_labels**2, edges, pairs, Y * Y)
        joint = _joint(from_rows(edge_ptr, edge_codes, Y * Y), codes)
        edge_ptr, edge_codes = to_rows(joint, data.n_edge_attributes, Y * Y)
    transition_codes: list[Codes | None] = []
    for m in range(1, order + 1):
        if layout.transitions == "all":
            transition_codes.append(None)
            continue
        given = layout.transition_codes[m - 1] if m <= layout.order else np.empty(0, dtype=np.int64)
        there = np.empty(0, dtype=np.int64)
        if m <= old.order:
            there = _combined(old.transition_codes[m - 1], old.n_labels, m + 1, labels, Y)
        transition_codes.append(_joint(given, there))
    kept = any(codes is None or len(codes) for codes in transition_codes)
    transitions = "observed" if layout.transitions == "none" and kept else layout.transitions
    return replace(
        layout,
        order=order,
        boundary=old.boundary or layout.boundary,
        transitions=transitions,
        transition_codes=tuple(transition_codes),
        state_ptr=state_ptr,
        state_labels=state_labels,
        edge_ptr=edge_ptr,
        edge_codes=edge_codes,
    )


def _joint(given: Codes | None, more: Codes) -> Codes:
    """Distinct codes of both, ascending."""
    assert given is not None  # only of observed features
    return np.unique(np.concatenate([given, more]))
