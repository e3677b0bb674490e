"""Groups of weights that a trainer treats alike, by an attribute's template or its frequency.

    template     the attribute's name up to the first ":" or "=": ``U05`` of ``U05:of/NN`` (CRF++), ``w[-1]``
                 of ``w[-1]=of`` (CRFsuite); names without either share a group
    frequency    occurrences of the attribute in the data, in classes 1, 2-3, 4-7, 8-15, ...

A group never mixes kinds of weights: state attributes, edge attributes, transitions, and boundary weights
have separate groups. Groups are numbered from 0 without gaps.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.errors import OptionError

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.data.alphabet import Alphabet
    from crfit.layout import Layout

#: Ways to form groups.
GroupKind: TypeAlias = Literal["template", "frequency"]

_NAME = re.compile(r"([^:=]*)[:=]")


@dataclass(frozen=True, eq=False)
class WeightGroups:
    """The group of each attribute's weights, and of the weights without an attribute."""

    attributes: NDArray[np.int32]  # [n_attributes]
    edge_attributes: NDArray[np.int32]  # [n_edge_attributes]
    transitions: int  # of the label n-grams
    boundary: int  # of first and last labels
    n_groups: int  # the last two included, whether or not they have weights

    def of_weights(self, layout: Layout) -> NDArray[np.int32]:
        """Group of every weight, int32[n_weights]."""
        groups = np.empty(layout.n_weights, dtype=np.int32)
        n_labels = layout.n_labels
        state, edge = slice(0, layout.n_state_weights), slice(layout.edge_offset, None)
        groups[state] = np.repeat(
            self.attributes, n_labels if layout.state_ptr is None else np.diff(layout.state_ptr)
        )
        groups[layout.n_state_weights : layout.start_offset] = self.transitions
        groups[layout.start_offset : layout.edge_offset] = self.boundary
        groups[edge] = np.repeat(
            self.edge_attributes, n_labels**2 if layout.edge_ptr is None else np.diff(layout.edge_ptr)
        )
        return groups


def weight_groups(dataset: Dataset, layout: Layout, kind: GroupKind) -> WeightGroups:
    """Return the groups of the weights of a model."""
    if kind not in ("template", "frequency"):
        raise OptionError("groups", kind, "give 'template' or 'frequency'")
    by_name = kind == "template"
    none = np.empty(0, dtype=np.int32)
    edge_ids = none if dataset.edge_ids is None else dataset.edge_ids
    state, n_state = _numbered(
        _templates(dataset.attribute_alphabet, layout.n_attributes)
        if by_name
        else _classes(dataset.attr_ids, layout.n_attributes)
    )
    edge, n_edge = _numbered(
        _templates(dataset.edge_alphabet, layout.n_edge_attributes)
        if by_name
        else _classes(edge_ids, layout.n_edge_attributes)
    )
    edge += n_state
    n = n_state + n_edge
    return WeightGroups(state, edge, n, n + 1, n + 2)


def _templates(alphabet: Alphabet, n: int) -> list[str]:
    """Part of each name before the first separator; empty without a separator."""
    names = alphabet.strings()[:n]
    names += [""] * (n - len(names))
    return [found.group(1) if (found := _NAME.match(name)) else "" for name in names]


def _classes(ids: NDArray[np.int32], n: int) -> list[int]:
    """Exponent of the largest power of two up to the number of occurrences; 0 for absent attributes."""
    counts = np.bincount(ids, minlength=n)[:n]
    classes: list[int] = np.log2(np.maximum(counts, 1)).astype(np.int64).tolist()
    return classes


def _numbered(keys: Iterable[Hashable]) -> tuple[NDArray[np.int32], int]:
    """Number the keys in order of first appearance; also returns how many there are."""
    numbers: dict[Hashable, int] = {}
    places = [numbers.setdefault(key, len(numbers)) for key in keys]
    return np.array(places, dtype=np.int32), len(numbers)
