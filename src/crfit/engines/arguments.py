"""Checks of what engines are given: ids of sequences, and values that iterative scaling can take."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.dataset.checks import first_outside, place
from crfit.errors import DataError, OptionError

if TYPE_CHECKING:
    from crfit.dataset import Dataset

__all__ = ["SequenceIds", "checked_subset", "refuse_negative_values"]

SequenceIds: TypeAlias = NDArray[np.int64]


def checked_subset(subset: ArrayLike, n_sequences: int) -> SequenceIds:
    """Return the ids of some sequences as an array; `OptionError` unless there are such sequences."""
    ids = np.asarray(subset)
    if ids.size == 0:
        return np.empty(0, dtype=np.int64)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise OptionError("subset", f"{ids.dtype}{ids.shape}", "give a one-dimensional array of sequence ids")
    outside = first_outside(ids, n_sequences)
    if outside is not None:
        raise OptionError("subset", int(ids[outside]), f"sequence ids are 0 to {n_sequences - 1}")
    return np.ascontiguousarray(ids, dtype=np.int64)


def refuse_negative_values(data: Dataset) -> None:
    """Raise `DataError`, with the place, where an attribute has a negative value."""
    if data.attr_values is None or not (data.attr_values < 0.0).any():
        return
    occurrence = int(np.argmax(data.attr_values < 0.0))
    token = int(np.searchsorted(data.attr_ptr, occurrence, side="right")) - 1
    sequence, position = place(data.seq_ptr, token)
    name = data.attribute_alphabet[int(data.attr_ids[occurrence])]
    raise DataError(
        f"attribute {name!r} has the value {data.attr_values[occurrence]:g}, and iterative scaling needs "
        "values that are not negative: add a constant to it, or make two attributes of it, one for each "
        "sign; or take another trainer, such as lbfgs",
        file=data.source,
        line=None if data.line_numbers is None else int(data.line_numbers[token]),
        sequence=sequence,
        position=position,
    )
