"""Labels that single positions may have.

In training they are partial labels: the loss of a sequence is minus the log of the total probability of all
label sequences that agree with them. In tagging they come from a dictionary or from a person's corrections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.errors import DataError, OptionError

#: Labels that a position may have: a name or several.
Names: TypeAlias = str | Iterable[str]


class LabelSets(NamedTuple):
    """Sets of labels, and the positions that have one.

    `rows`, int32[N], is the set of each position, -1 for none. `scores`, float64[M, Y], are added to the
    scores of the labels: 0 for a member of the set, minus infinity for any other label, and log(1 - c) for a
    label that is wrong with certainty c.
    """

    rows: NDArray[np.int32]
    scores: NDArray[np.float64]

    def by_position(self) -> NDArray[np.float64]:
        """The scores of every position, float64[N, Y]."""
        none = np.zeros((1, self.scores.shape[1]))
        return np.concatenate([self.scores, none])[self.rows]  # row -1 is the last


def make_label_sets(
    names: Sequence[str], lengths: Sequence[int], allowed: Iterable[Mapping[int, Names] | None]
) -> LabelSets | None:
    """Sets from one mapping per sequence, from positions to a label or several; None without any.

    Negative positions count from the end.
    """
    ids = {name: i for i, name in enumerate(names)}
    known: dict[bytes, int] = {}
    sets: list[NDArray[np.bool_]] = []
    rows = np.full(sum(lengths), -1, dtype=np.int32)
    begin = 0
    for sequence, (length, given) in enumerate(zip(lengths, allowed, strict=True)):
        for position, labels in (given or {}).items():
            if isinstance(position, bool) or not isinstance(position, int | np.integer):
                raise OptionError("position", position, "give the number of a position, from 0 on")
            if not -length <= position < length:
                message = f"labels are given for position {position}, but there are {length} positions"
                raise DataError(message, sequence=sequence)
            found = members("label", labels, ids)
            row = known.setdefault(found.tobytes(), len(sets))
            if row == len(sets):
                sets.append(found)
            rows[begin + position % length] = row
        begin += length
    return LabelSets(rows, np.where(sets, 0.0, -np.inf)) if sets else None


def members(option: str, labels: Names, ids: Mapping[str, int]) -> NDArray[np.bool_]:
    """Which labels are named, bool[Y]; OptionError for an unknown name."""
    found = np.zeros(len(ids), dtype=bool)
    if not isinstance(labels, Iterable):
        raise OptionError(option, type(labels).__name__, "give a label or a list of labels")
    for name in [labels] if isinstance(labels, str) else labels:
        if not isinstance(name, str) or name not in ids:
            known = ", ".join(sorted(ids)[:10]) + (", ..." if len(ids) > 10 else "")
            raise OptionError(option, name, f"the model has no such label; it has {known}")
        found[ids[name]] = True
    return found
