"""Groups of weights that a trainer treats alike, by an attribute's template or its frequency.

    template     the attribute's name up to the first ":" or "=": ``U05`` of ``U05:of/NN`` (CRF++), ``w[-1]``
                 of ``w[-1]=of`` (CRFsuite); names without either share a group
    family       the same up to the first ":", "=" or "[": ``w`` of ``w[-1]=of``
    frequency    occurrences of the attribute in the data, in classes 1, 2-3, 4-7, 8-15, ...

A group never mixes kinds of weights: state attributes, edge attributes, transitions, and boundary weights
have separate groups. Groups are numbered from 0 without gaps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_number
from crfit.errors import OptionError

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.data.alphabet import Alphabet
    from crfit.layout import Layout

#: Ways to form groups.
GroupKind: TypeAlias = Literal["template", "family", "frequency"]

_NAMES = {"template": re.compile(r"([^:=]*)[:=]"), "family": re.compile(r"([^:=\[]*)[:=\[]")}
#: Names of groups without one of their own.
TRANSITIONS, BOUNDARY, OTHERS = "transitions", "boundary", "others"


@dataclass(frozen=True, eq=False)
class WeightGroups:
    """The group of each attribute's weights, and of the weights without an attribute."""

    attributes: NDArray[np.int32]  # [n_attributes]
    edge_attributes: NDArray[np.int32]  # [n_edge_attributes]
    transitions: int  # of the label n-grams
    boundary: int  # of first and last labels
    names: list[str]  # the last two included, whether or not they have weights

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.names)

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
    if kind not in get_args(GroupKind):
        raise OptionError("groups", kind, f"choose {', '.join(get_args(GroupKind))}")
    by_name = kind != "frequency"
    none = np.empty(0, dtype=np.int32)
    edge_ids = none if dataset.edge_ids is None else dataset.edge_ids
    state, names = _numbered(
        _templates(dataset.attribute_alphabet, layout.n_attributes, kind)
        if by_name
        else _classes(dataset.attr_ids, layout.n_attributes)
    )
    edge, edge_names = _numbered(
        _templates(dataset.edge_alphabet, layout.n_edge_attributes, kind)
        if by_name
        else _classes(edge_ids, layout.n_edge_attributes)
    )
    edge += len(names)
    names += [f"{name} of pairs" for name in edge_names]
    n = len(names)
    return WeightGroups(state, edge, n, n + 1, [*names, TRANSITIONS, BOUNDARY])


def l2_of_weights(
    dataset: Dataset, layout: Layout, by_group: Mapping[str, float], default: float
) -> NDArray[np.float64]:
    """The l2 of each weight by the name of its template, or else its family, or else the default."""
    given: Any = by_group
    if not isinstance(given, Mapping):
        raise OptionError("l2_by_group", given, "give a dict with the l2 of each group")
    for name, value in by_group.items():
        check_number(f"l2_by_group[{name!r}]", value)
        if not (math.isfinite(value) and value > 0.0):
            raise OptionError("l2_by_group", f"{name}={value}", "give a finite number above 0")
    each, known = np.full(layout.n_weights, default), []
    kinds: tuple[GroupKind, ...] = ("family", "template")
    for kind in kinds:
        groups = weight_groups(dataset, layout, kind)
        l2 = np.array([by_group.get(name, math.nan) for name in groups.names])[groups.of_weights(layout)]
        each = np.where(np.isnan(l2), each, l2)
        known += groups.names
    if unknown := [name for name in by_group if name not in known]:
        some = ", ".join(dict.fromkeys(reversed(known[-20:])))
        raise OptionError("l2_by_group", unknown[0], f"there is no such group; there are {some}, ...")
    return each


def _templates(alphabet: Alphabet, n: int, kind: str) -> list[str]:
    """Part of each name before the first separator; those without one have the same name."""
    names, pattern = alphabet.strings()[:n], _NAMES[kind]
    names += [""] * (n - len(names))
    return [found.group(1) if (found := pattern.match(name)) else OTHERS for name in names]


def _classes(ids: NDArray[np.int32], n: int) -> list[int]:
    """Exponent of the largest power of two up to the number of occurrences; 0 for absent attributes."""
    counts = np.bincount(ids, minlength=n)[:n]
    classes: list[int] = np.log2(np.maximum(counts, 1)).astype(np.int64).tolist()
    return classes


def _numbered(keys: Iterable[Hashable]) -> tuple[NDArray[np.int32], list[str]]:
    """Number the keys in order of first appearance; also returns their names."""
    numbers: dict[Hashable, int] = {}
    places = [numbers.setdefault(key, len(numbers)) for key in keys]
    return np.array(places, dtype=np.int32), [str(key) for key in numbers]
