"""Find equal rows, and merge equal attributes: the same model trained with fewer weights.

Equal rows. Each row gets a hash, a sum of random terms, and rows are sorted by hash and length. Neighbours
that agree in both are compared entry by entry, so the result is exact and reproducible.

Groups. The attributes of a group share one weight per label. With n_g members in group g and weights u of the
merged data, the weights of the original attributes are

    w[a, y] = u[g(a), y] / sqrt(n_g)          or  w = P u,  P^T P = I,

and all weights after the (attribute, label) weights are unchanged. The columns of P are orthonormal, so
|w|^2 = |u|^2: the l2 penalty has the same value in u. Scores are linear in the attribute values,

    sum_{a in g} x_a w[a, y]  =  u[g, y] (sum_{a in g} x_a) / sqrt(n_g),

so the merged data is an ordinary dataset, with one attribute per group at a position.

The likelihood cannot distinguish attributes that occur at the same positions with the same values, and a
convex penalty is smallest if they share their weight equally. Minimising over u therefore gives the exact
optimum over w [1]. Such redundant attributes are frequent in text: a word seen once creates a dozen of them.

References
----------
[1] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.checks import first_outside, keep, offsets, rows
from crfit.data.alphabet import Alphabet
from crfit.errors import OptionError
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.data import Dataset
    from crfit.layout import Layout

Index = NDArray[np.int64]


def distinct_tokens(dataset: Dataset) -> tuple[NDArray[np.int32], Index]:
    """Find positions with equal attributes and values in the same order, and thus equal node scores.

    Returns for each position the number of its group in order of first appearance, int32[N], and the first
    position of each group, int64[D].
    """
    lengths = np.diff(dataset.attr_ptr)
    terms = np.random.default_rng(0).random(dataset.n_attributes)[dataset.attr_ids]
    # One factor per place in the row, because the order matters.
    places = np.arange(len(terms)) - np.repeat(dataset.attr_ptr[:-1], lengths)
    terms *= np.random.default_rng(1).random(int(lengths.max(initial=0)))[places]
    if dataset.attr_values is not None:
        terms *= _of_values(dataset.attr_values)
    sums = np.zeros(dataset.n_tokens)
    filled = np.flatnonzero(lengths)
    if len(filled):
        sums[filled] = np.add.reduceat(terms, dataset.attr_ptr[filled])

    def entries(tokens: Index) -> _Rows:
        ptr, chosen = rows(dataset.attr_ptr, tokens)
        return _Rows(ptr, dataset.attr_ids[chosen], _taken(dataset.attr_values, chosen))

    first = _first_equal(sums, lengths, entries)
    return numbered(first), np.flatnonzero(first == np.arange(len(first)))


def first_equal_column(dataset: Dataset, n_columns: int) -> Index:
    """For each of the first `n_columns` attributes, the first attribute with equal positions and values."""
    n = dataset.n_attributes
    terms = np.repeat(np.random.default_rng(0).random(dataset.n_tokens), np.diff(dataset.attr_ptr))
    if dataset.attr_values is not None:
        terms *= _of_values(dataset.attr_values)
    # Equal columns are summed in the same order, so rounding cannot make their hashes differ.
    sums = np.bincount(dataset.attr_ids, terms, minlength=n).astype(np.float64, copy=False)
    lengths = np.bincount(dataset.attr_ids, minlength=n).astype(np.int64, copy=False)

    def entries(attributes: Index) -> _Rows:
        row = np.full(n, -1, dtype=np.int64)
        row[attributes] = np.arange(len(attributes))
        occurrences = np.flatnonzero(row[dataset.attr_ids] >= 0)
        of_row = row[dataset.attr_ids[occurrences]]
        chosen = occurrences[np.argsort(of_row, kind="stable")]
        positions = np.searchsorted(dataset.attr_ptr, chosen, side="right") - 1
        return _Rows(offsets(lengths[attributes]), positions, _taken(dataset.attr_values, chosen))

    return _first_equal(sums[:n_columns], lengths[:n_columns], entries)


class _Rows:
    """Rows: row k has keys[ptr[k]:ptr[k+1]] and the corresponding values."""

    def __init__(self, ptr: Index, keys: NDArray[np.integer], values: NDArray[np.float64] | None) -> None:
        self.ptr, self.keys, self.values = ptr, keys, values

    def equal(self, left: Index, right: Index) -> NDArray[np.bool_]:
        """Whether rows ``left[i]`` and ``right[i]``, of the same length, are equal."""
        ptr, at_left = rows(self.ptr, left)
        _, at_right = rows(self.ptr, right)
        unequal = self.keys[at_left] != self.keys[at_right]
        if self.values is not None:
            unequal |= self.values[at_left] != self.values[at_right]
        same: NDArray[np.bool_] = np.diff(offsets(unequal)[ptr]) == 0
        return same

    def content(self, k: int) -> tuple[bytes, bytes]:
        """Content of a row as a dictionary key."""
        part = slice(self.ptr[k], self.ptr[k + 1])
        return self.keys[part].tobytes(), b"" if self.values is None else self.values[part].tobytes()


def _first_equal(sums: NDArray[np.float64], lengths: Index, entries: Callable[[Index], _Rows]) -> Index:
    """For each row, the first row equal to it; `entries` gathers the rows to compare."""
    n = len(sums)
    order = np.lexsort((lengths, sums))  # stable: the first of equal rows comes first
    agrees = np.zeros(n, dtype=bool)  # with its predecessor in `order`
    agrees[1:] = (sums[order[1:]] == sums[order[:-1]]) & (lengths[order[1:]] == lengths[order[:-1]])
    first = np.empty(n, dtype=np.int64)
    first[order] = order[np.maximum.accumulate(np.where(agrees, 0, np.arange(n)))]

    compared = agrees.copy()
    compared[:-1] |= agrees[1:]
    ids = order[compared]
    right = np.flatnonzero(agrees[compared])
    gathered = entries(ids)
    wrong = ids[right[~gathered.equal(right - 1, right)]]
    for leader in np.unique(first[wrong]).tolist():  # hash collision: almost never
        seen: dict[tuple[bytes, bytes], int] = {}
        for k in np.flatnonzero(first[ids] == leader).tolist():
            first[ids[k]] = seen.setdefault(gathered.content(k), int(ids[k]))
    return first


def numbered(first: Index) -> NDArray[np.int32]:
    """Number groups of equal rows by first appearance; `first` has the first equal row of each row."""
    numbers = np.cumsum(first == np.arange(len(first)), dtype=np.int32) - np.int32(1)
    chosen: NDArray[np.int32] = numbers[first]
    return chosen


def _taken(values: NDArray[np.float64] | None, chosen: Index) -> NDArray[np.float64] | None:
    return None if values is None else values[chosen] + 0.0  # -0 becomes 0, whose bytes differ


def _of_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Hash each value to a number from 1 to 2, which distinguishes values of any size."""
    bits = (values + 0.0).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # wraps around
    bits ^= bits >> np.uint64(32)
    bits *= np.uint64(0xD6E8FEB86659FD93)
    factors: NDArray[np.float64] = 1.0 + (bits >> np.uint64(11)) * 2.0**-53
    return factors


Groups = NDArray[np.int32]


def aggregate_attributes(dataset: Dataset, groups: ArrayLike) -> Dataset:
    """Replace attribute ``a`` by ``groups[a]``; groups are 0 to G - 1, none empty.

    Values become ``x / sqrt(n_g)`` and are summed over the members of a group at a position. Attributes at a
    position keep the order of first appearance, so groups of one change nothing. A group is named after its
    first member.
    """
    group_of, sizes = _checked_groups(groups, dataset.n_attributes)
    ids = group_of[dataset.attr_ids]
    positions = np.repeat(np.arange(dataset.n_tokens), np.diff(dataset.attr_ptr))
    sums = np.ones(len(ids)) if dataset.attr_values is None else dataset.attr_values.copy()
    is_kept = np.ones(len(ids), dtype=bool)
    shared = np.flatnonzero((sizes > 1)[ids])
    if len(shared):
        keys = positions[shared] * len(sizes) + ids[shared]
        # Positions ascend, so a stable sort is fast; it also keeps the first appearance first.
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
        attribute_alphabet=_group_names(dataset.attribute_alphabet, group_of, len(sizes)),
    )


def aggregate_layout(layout: Layout, groups: ArrayLike) -> Layout:
    """Layout of the merged data; a group has weights for the labels of its members.

    Raises OptionError if members of a group have weights for different labels, or unless each unpenalised
    attribute is alone in one of the last groups, in the order of the attributes.
    """
    group_of, sizes = _checked_groups(groups, layout.n_attributes)
    free = np.arange(len(sizes) - layout.n_free, len(sizes))
    if not np.array_equal(group_of[layout.n_attributes - layout.n_free :], free) or (sizes[free] > 1).any():
        remedy = f"put each of the last {layout.n_free} attributes into its own group, at the end"
        raise OptionError("groups", "with an unpenalised attribute", remedy)
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
            "groups", "members with weights for different labels", "set weights='all', or choose other groups"
        )
    return merged


def expand_weights(layout: Layout, merged_layout: Layout, groups: ArrayLike, u: Vector) -> Vector:
    """Weights of the original attributes from those of the merged data, ``w = P u``."""
    group_of, sizes = _checked_groups(groups, layout.n_attributes)
    if len(sizes) != merged_layout.n_attributes:
        remedy = f"there are {len(sizes)} groups: use aggregate_layout(layout, groups)"
        raise OptionError("merged_layout", f"{merged_layout.n_attributes} attributes", remedy)
    if u.shape != (merged_layout.n_weights,):
        raise OptionError("u", f"shape {u.shape}", f"give {merged_layout.n_weights} weights")
    w = np.empty(layout.n_weights)
    n, m = layout.n_state_weights, merged_layout.n_state_weights
    np.take(u[:m] * _scale(merged_layout, sizes), _places(layout, merged_layout, group_of), out=w[:n])
    w[n:] = u[m:]
    return w


def merge_weights(layout: Layout, merged_layout: Layout, groups: ArrayLike, w: Vector) -> Vector:
    """Weights of the merged data whose expansion is closest to `w`, ``u = P^T w``."""
    group_of, sizes = _checked_groups(groups, layout.n_attributes)
    n, m = layout.n_state_weights, merged_layout.n_state_weights
    places = _places(layout, merged_layout, group_of)
    u = np.empty(merged_layout.n_weights)
    u[:m] = np.bincount(places, w[:n], minlength=m) * _scale(merged_layout, sizes)
    u[m:] = w[n:]
    return u


def _scale(merged_layout: Layout, sizes: Index) -> Vector:
    """Factor of each (group, label) weight."""
    n_labels: int | Index = merged_layout.n_labels
    if merged_layout.state_ptr is not None:
        n_labels = np.diff(merged_layout.state_ptr)
    return np.repeat(1.0 / np.sqrt(sizes), n_labels)


def equal_attributes(dataset: Dataset, n_free: int = 0) -> Groups:
    """Group of each attribute, int32[A]; attributes with equal positions and values share a group.

    Each of the last `n_free` (unpenalised) attributes keeps its own group, at the end. Attributes that never
    occur share a group too.
    """
    n_merged = dataset.n_attributes - n_free
    alone = np.arange(n_merged, dataset.n_attributes)
    return numbered(np.concatenate((first_equal_column(dataset, n_merged), alone)))


def _checked_groups(groups: ArrayLike, n_attributes: int) -> tuple[Groups, NDArray[np.int64]]:
    """Groups as an array, and their sizes; OptionError unless they are 0 to G - 1, none empty."""
    array = np.asarray(groups)
    if array.shape != (n_attributes,) or (array.size and array.dtype.kind not in "iu"):
        remedy = f"give an integer for each of {n_attributes} attributes"
        raise OptionError("groups", f"shape {array.shape}, {array.dtype}", remedy)
    if first_outside(array, n_attributes) is not None:
        raise OptionError("groups", f"{array.min()} to {array.max()}", "groups are numbered 0, 1, 2, ...")
    sizes = np.bincount(array) if array.size else np.zeros(0, dtype=np.int64)
    if not sizes.all():
        raise OptionError("groups", f"group {int(np.argmin(sizes))} is empty", "number groups without gaps")
    return array.astype(np.int32, copy=False), sizes


def _places(layout: Layout, merged_layout: Layout, groups: Groups) -> NDArray[np.int64]:
    """Index into the merged weights of each (attribute, label) weight."""
    if layout.state_ptr is None or merged_layout.state_ptr is None:
        Y = layout.n_labels
        return (groups.astype(np.int64)[:, None] * Y + np.arange(Y)).ravel()
    shift = merged_layout.state_ptr[groups] - layout.state_ptr[:-1]
    return np.arange(layout.n_state_weights) + np.repeat(shift, np.diff(layout.state_ptr))


def _first_members(groups: Groups, n_groups: int) -> NDArray[np.int64]:
    """First attribute of each group."""
    first = np.empty(n_groups, dtype=np.int64)
    first[groups[::-1]] = np.arange(len(groups))[::-1]  # the last write wins
    return first


def _group_names(alphabet: Alphabet, groups: Groups, n_groups: int) -> Alphabet:
    """Alphabet of the groups: the names of their first members."""
    text, ptr = alphabet.to_arrays()
    new_ptr, chosen = rows(ptr, _first_members(groups, n_groups))
    return Alphabet.from_arrays(text[chosen], new_ptr, locked=True)
