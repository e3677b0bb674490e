"""Rows of different lengths in flat arrays: row r is ``ptr[r]:ptr[r+1]``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["keep", "offsets", "rows"]


def offsets(lengths: NDArray[np.int64] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """Row lengths to offsets, one longer."""
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


def rows(ptr: NDArray[np.int64], ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of the chosen rows, and the index of their entries in the flat array."""
    lengths = ptr[ids + 1] - ptr[ids]
    new_ptr = offsets(lengths)
    return new_ptr, np.arange(new_ptr[-1]) + np.repeat(ptr[ids] - new_ptr[:-1], lengths)


def keep(ptr: NDArray[np.int64], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Offsets of the same rows when only the entries marked in `kept` stay."""
    return offsets(kept)[ptr]
