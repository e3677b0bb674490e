"""Attributes in groups: the same data with fewer attributes and weights.

Attributes of one group share a weight for each label. With n_g members in group g and weights u of the
merged data, the weights that they stand for are

    w[a, y] = u[g(a), y] / sqrt(n_g)          or  w = P u,  P^T P = I,

and all weights after those of (attribute, label) pairs are the same. The columns of P are orthonormal, so
that |w|^2 = |u|^2: the l2 penalty is the same number in u. Scores are linear in the values of attributes,

    sum_{a in g} x_a w[a, y]  =  u[g, y] (sum_{a in g} x_a) / sqrt(n_g),

so that the merged data is data of the usual kind, with one attribute for a group at a position.

Attributes that occur at the same positions with the same values are the same to the likelihood, and a convex
penalty is least where equal attributes share equally. Minimisation over u therefore finds the very optimum
over w: merging them loses nothing [1]. Redundant attributes of this kind are frequent in text: a word seen
once makes a dozen of them.

References
----------
[1] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.alphabet import Alphabet
from crfit.dataset.checks import first_outside
from crfit.dataset.equal_rows import first_equal_column, numbered
from crfit.dataset.ragged import keep, rows
from crfit.errors import OptionError
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.dataset import Dataset
    from crfit.layout import Layout

__all__ = [
    "aggregate_attributes",
    "aggregate_layout",
    "equal_attributes",
    "expand_weights",
    "project_weights",
]

Groups = NDArray[np.int32]


def aggregate_attributes(dataset: Dataset, groups: ArrayLike, names: Sequence[str] | None = None) -> Dataset:
    """Make the data in which attribute ``a`` is attribute ``groups[a]``.

    Parameters
    ----------
    dataset : Dataset
        Sequences.
    groups : int array of shape (A,)
        Group of each attribute, 0 to G - 1; every group has members.
    names : sequence of str, optional
        Names of the groups; by default each has that of its first member.

    Returns
    -------
    Dataset
        Values are ``x / sqrt(n_g)``, occurrences of different members of a group at one position are added
        up, and the order at a position is that of first appearance: groups of one leave everything as it is.
    """
    group_of, sizes = _checked_groups(groups, dataset.n_attributes)
    ids = group_of[dataset.attr_ids]
    positions = np.repeat(np.arange(dataset.n_tokens), np.diff(dataset.attr_ptr))
    sums = np.ones(len(ids)) if dataset.attr_values is None else dataset.attr_values.copy()
    is_kept = np.ones(len(ids), dtype=bool)
    shared = np.flatnonzero((sizes > 1)[ids])
    if len(shared):
        keys = positions[shared] * len(sizes) + ids[shared]
        # Positions ascend, on which a stable sort is quick; it also leaves the first appearance in front.
        order = np.argsort(keys, kind="stable")
        first = np.flatnonzero(np.diff(keys[order], prepend=-1))
        leaders = shared[order[first]]
        sums[leaders] = np.add.reduceat(sums[shared[order]], first)
        is_kept[shared] = False
        is_kept[leaders] = True
    new_ids = ids[is_kept]
    new_values = sums[is_kept] / np.sqrt(sizes)[new_ids]
    return replace(
        dataset,
        attr_ptr=keep(dataset.attr_ptr, is_kept),
        attr_ids=new_ids,
        attr_values=None if (new_values == 1.0).all() else new_values,
        attribute_alphabet=_group_names(dataset.attribute_alphabet, group_of, len(sizes), names),
    )


def aggregate_layout(layout: Layout, groups: ArrayLike) -> Layout:
    """Make the layout of the merged data.

    Parameters
    ----------
    layout : Layout
        Of the data before.
    groups : int array of shape (A,)
        As in `aggregate_attributes`.

    Returns
    -------
    Layout
        With the labels of its members for each group.

    Raises
    ------
    OptionError
        Members of a group have weights for different labels, or an attribute without a penalty is not alone
        in one of the last groups, in the order of the attributes.
    """
    group_of, sizes = _checked_groups(groups, layout.n_attributes)
    free = np.arange(len(sizes) - layout.n_free, len(sizes))
    if not np.array_equal(group_of[layout.n_attributes - layout.n_free :], free) or (sizes[free] > 1).any():
        remedy = f"the last {layout.n_free} attributes carry no penalty: leave them alone, in the last groups"
        raise OptionError("groups", "with an attribute that carries no penalty", remedy)
    if layout.state_ptr is None or layout.state_labels is None:
        return replace(layout, n_attributes=len(sizes))
    state_ptr, chosen = rows(layout.state_ptr, _first_members(group_of, len(sizes)))
    merged = replace(
        layout, n_attributes=len(sizes), state_ptr=state_ptr, state_labels=layout.state_labels[chosen]
    )
    same = np.array_equal(np.diff(layout.state_ptr), np.diff(state_ptr)[group_of])
    if not same or not np.array_equal(
        layout.state_labels, layout.state_labels[chosen][_places(layout, merged, group_of)]
    ):
        raise OptionError(
            "groups", "members with weights for different labels", "take weights='all', or other groups"
        )
    return merged


def expand_weights(layout: Layout, merged_layout: Layout, groups: ArrayLike, u: Vector) -> Vector:
    """Give the weights that those of merged data stand for, ``w = P u``.

    Parameters
    ----------
    layout : Layout
        Of the data before.
    merged_layout : Layout
        Of the merged data, see `aggregate_layout`.
    groups : int array of shape (A,)
        As in `aggregate_attributes`.
    u : float64[merged_layout.n_weights]
        Weights of the merged data.

    Returns
    -------
    float64[layout.n_weights]
    """
    group_of, scale = _checked_vector(layout, merged_layout, groups, u, "u", merged_layout.n_weights)
    w = np.empty(layout.n_weights)
    n, m = layout.n_state_weights, merged_layout.n_state_weights
    np.take(u[:m] * scale, _places(layout, merged_layout, group_of), out=w[:n])
    w[n:] = u[m:]
    return w


def project_weights(layout: Layout, merged_layout: Layout, groups: ArrayLike, w: Vector) -> Vector:
    """Give the weights of merged data nearest to given ones, ``u = P^T w``: means times ``sqrt(n_g)``.

    Parameters
    ----------
    layout, merged_layout, groups
        As in `expand_weights`, whose transpose this is.
    w : float64[layout.n_weights]
        Weights of the data before.

    Returns
    -------
    float64[merged_layout.n_weights]
    """
    group_of, scale = _checked_vector(layout, merged_layout, groups, w, "w", layout.n_weights)
    n, m = layout.n_state_weights, merged_layout.n_state_weights
    u = np.empty(merged_layout.n_weights)
    u[:m] = np.bincount(_places(layout, merged_layout, group_of), w[:n], minlength=m) * scale
    u[m:] = w[n:]
    return u


def equal_attributes(dataset: Dataset, n_free: int = 0) -> Groups:
    """Group the attributes that no model can tell apart on this data.

    Parameters
    ----------
    dataset : Dataset
        Sequences; labels are not looked at.
    n_free : int, default=0
        How many of the last attributes carry no penalty: they stay alone, in the last groups.

    Returns
    -------
    int32[A]
        The same for attributes with the same positions and values, in order of first appearance. Attributes
        that never occur are alike too.
    """
    n_merged = dataset.n_attributes - n_free
    alone = np.arange(n_merged, dataset.n_attributes)
    return numbered(np.concatenate((first_equal_column(dataset, n_merged), alone)))


def _checked_groups(groups: ArrayLike, n_attributes: int) -> tuple[Groups, NDArray[np.int64]]:
    """Groups as an array, and their sizes; OptionError unless they are 0 to G - 1, all with members."""
    array = np.asarray(groups)
    if array.shape != (n_attributes,) or (array.size and array.dtype.kind not in "iu"):
        remedy = f"give an integer for each of {n_attributes} attributes"
        raise OptionError("groups", f"shape {array.shape}, {array.dtype}", remedy)
    if first_outside(array, n_attributes) is not None:
        raise OptionError("groups", f"{array.min()} to {array.max()}", "groups are numbered 0, 1, 2, ...")
    sizes = np.bincount(array) if array.size else np.zeros(0, dtype=np.int64)
    if not sizes.all():
        raise OptionError("groups", f"group {int(np.argmin(sizes))} is empty", "leave no number out")
    return array.astype(np.int32, copy=False), sizes


def _checked_vector(
    layout: Layout, merged_layout: Layout, groups: ArrayLike, vector: Vector, name: str, length: int
) -> tuple[Groups, NDArray[np.float64]]:
    """Groups as an array, and 1 / sqrt(n_g) for each (group, label) weight; sizes are checked."""
    group_of, sizes = _checked_groups(groups, layout.n_attributes)
    if len(sizes) != merged_layout.n_attributes:
        remedy = f"there are {len(sizes)} groups: aggregate_layout(layout, groups) is their layout"
        raise OptionError("merged_layout", f"{merged_layout.n_attributes} attributes", remedy)
    if vector.shape != (length,):
        raise OptionError(name, f"shape {vector.shape}", f"give {length} weights")
    n_labels: int | NDArray[np.int64] = merged_layout.n_labels
    if merged_layout.state_ptr is not None:
        n_labels = np.diff(merged_layout.state_ptr)
    return group_of, np.repeat(1.0 / np.sqrt(sizes), n_labels)


def _places(layout: Layout, merged_layout: Layout, groups: Groups) -> NDArray[np.int64]:
    """Place in the merged weights of each (attribute, label) weight."""
    if layout.state_ptr is None or merged_layout.state_ptr is None:
        Y = layout.n_labels
        return (groups.astype(np.int64)[:, None] * Y + np.arange(Y)).ravel()
    shift = merged_layout.state_ptr[groups] - layout.state_ptr[:-1]
    return np.arange(layout.n_state_weights) + np.repeat(shift, np.diff(layout.state_ptr))


def _first_members(groups: Groups, n_groups: int) -> NDArray[np.int64]:
    """First attribute of each group."""
    first = np.empty(n_groups, dtype=np.int64)
    first[groups[::-1]] = np.arange(len(groups))[::-1]  # the last write stays
    return first


def _group_names(alphabet: Alphabet, groups: Groups, n_groups: int, names: Sequence[str] | None) -> Alphabet:
    """Alphabet of the groups."""
    if names is not None:
        given = Alphabet(names, locked=True)
        if len(names) != n_groups or len(given) != n_groups:
            raise OptionError("names", f"{len(given)} different ones", f"give {n_groups}, one a group")
        return given
    text, ptr = alphabet.to_arrays()
    new_ptr, chosen = rows(ptr, _first_members(groups, n_groups))
    return Alphabet.from_arrays(text[chosen], new_ptr, locked=True)
