"""Rows of different lengths in flat arrays: row r is ``ptr[r]:ptr[r+1]``.

Checks of the flat arrays of a dataset.

Native code reads these arrays without looking, so each is checked once, when a dataset is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from crfit.errors import DataError

if TYPE_CHECKING:
    from crfit.data import Dataset

__all__ = [
    "checked_arrays",
    "checked_weights",
    "first_outside",
    "keep",
    "offsets",
    "place",
    "read_only",
    "rows",
    "vector",
]


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


DTYPES: dict[str, DTypeLike] = {
    "seq_ptr": np.int64,
    "attr_ptr": np.int64,
    "attr_ids": np.int32,
    "attr_values": np.float64,
    "labels": np.int32,
    "edge_ptr": np.int64,
    "edge_ids": np.int32,
    "sequence_weights": np.float64,
    "line_numbers": np.int64,
}


def checked_arrays(dataset: Dataset) -> dict[str, NDArray[Any]]:
    """Give the arrays that a dataset has, contiguous and of the right types; DataError if they do not fit."""
    given = {name: getattr(dataset, name) for name in DTYPES}
    arrays = {name: vector(name, array, DTYPES[name]) for name, array in given.items() if array is not None}
    _check_offsets(arrays, "seq_ptr", None, None)
    n_tokens = int(arrays["seq_ptr"][-1])
    empty = np.flatnonzero(np.diff(arrays["seq_ptr"]) == 0)
    if empty.size:
        raise DataError("the sequence is empty; leave it out", sequence=int(empty[0]))
    _check_offsets(arrays, "attr_ptr", n_tokens, "attr_ids")
    _check_ids(arrays, "attr_ids", dataset.n_attributes)
    _check_length(arrays, "attr_values", len(arrays["attr_ids"]), "attribute occurrence")
    _check_length(arrays, "labels", n_tokens, "position")
    _check_ids(arrays, "labels", dataset.n_labels)
    _check_length(arrays, "line_numbers", n_tokens, "position")
    if ("edge_ptr" in arrays) != ("edge_ids" in arrays):
        raise DataError("edge_ptr and edge_ids come together: give both or neither")
    if "edge_ptr" in arrays:
        _check_offsets(arrays, "edge_ptr", n_tokens, "edge_ids")
        _check_ids(arrays, "edge_ids", dataset.n_edge_attributes)
        first = arrays["seq_ptr"][:-1]
        misplaced = np.flatnonzero(arrays["edge_ptr"][first] != arrays["edge_ptr"][first + 1])
        if misplaced.size:
            raise DataError(
                "the first position has edge attributes, but no label before it: leave them out",
                sequence=int(misplaced[0]),
                position=0,
            )
    if "attr_values" in arrays and not (finite := np.isfinite(arrays["attr_values"])).all():
        occurrence = int(np.argmin(finite))
        n = int(np.searchsorted(arrays["attr_ptr"], occurrence, side="right")) - 1
        sequence, position = place(arrays["seq_ptr"], n)
        name = dataset.attribute_alphabet[int(arrays["attr_ids"][occurrence])]
        value = arrays["attr_values"][occurrence]
        raise DataError(
            f"attribute {name!r} has the value {value}; values must be finite",
            sequence=sequence,
            position=position,
        )
    if "sequence_weights" in arrays:
        arrays["sequence_weights"] = checked_weights(arrays["sequence_weights"], len(arrays["seq_ptr"]) - 1)
    return arrays


def checked_weights(weights: ArrayLike, n_sequences: int) -> NDArray[np.float64]:
    """Sequence weights as an array; DataError unless there is a finite one >= 0 for each sequence."""
    array: NDArray[np.float64] = vector("sequence_weights", weights, np.float64)
    if len(array) != n_sequences:
        raise DataError(
            f"sequence_weights has {len(array)} entries: give {n_sequences}, one for each sequence"
        )
    fine = np.isfinite(array) & (array >= 0)
    if not fine.all():
        sequence = int(np.argmin(fine))
        raise DataError(
            f"the sequence weight is {array[sequence]}; weights must be finite and not negative",
            sequence=sequence,
        )
    return array


def vector(name: str, values: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Contiguous 1-D array of a type, the array itself where it is one; DataError if numbers would change."""
    try:
        array = np.asarray(values)
        if array.size == 0 and array.ndim == 1:
            return np.zeros(0, dtype=dtype)
        if array.ndim != 1 or array.dtype.kind not in ("biuf" if np.dtype(dtype).kind == "f" else "iu"):
            raise TypeError
        converted = np.ascontiguousarray(array, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name} must be a 1-D array of numbers that fit {np.dtype(dtype).name}") from None
    if (
        converted.dtype.kind == "i"
        and converted.dtype != array.dtype
        and not np.array_equal(converted, array)
    ):
        raise DataError(f"{name} has numbers that do not fit {np.dtype(dtype).name}: give smaller ones")
    return converted


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to: native code relies on what was checked."""
    view: NDArray[Any] = array.view()
    view.flags.writeable = False
    return view


def first_outside(ids: NDArray[np.integer], n_ids: int) -> int | None:
    """Place of the first id that is not in 0..n_ids-1, None if there is none."""
    if not len(ids) or (ids.min() >= 0 and ids.max() < n_ids):
        return None
    return int(np.flatnonzero((ids < 0) | (ids >= n_ids))[0])


def place(seq_ptr: NDArray[np.int64], position: int) -> tuple[int, int]:
    """Sequence, and position in it, of a position counted over all sequences."""
    sequence = int(np.searchsorted(seq_ptr, position, side="right")) - 1
    return sequence, position - int(seq_ptr[sequence])


def _check_offsets(
    arrays: dict[str, NDArray[Any]], name: str, n_rows: int | None, entries: str | None
) -> None:
    ptr = arrays[name]
    if len(ptr) == 0 or ptr[0] != 0 or (ptr[1:] < ptr[:-1]).any():  # a difference might wrap around
        raise DataError(f"{name} must begin with 0 and not fall: entry i says where row i begins")
    if n_rows is not None and len(ptr) != n_rows + 1:
        raise DataError(f"{name} has {len(ptr)} entries: give {n_rows + 1}, one a position and the end")
    if entries is not None and ptr[-1] != len(arrays[entries]):
        raise DataError(
            f"{name} ends with {ptr[-1]} and {entries} has {len(arrays[entries])} entries: the two must agree"
        )


def _check_length(arrays: dict[str, NDArray[Any]], name: str, length: int, what: str) -> None:
    if name in arrays and len(arrays[name]) != length:
        raise DataError(f"{name} has {len(arrays[name])} entries: give {length}, one for each {what}")


def _check_ids(arrays: dict[str, NDArray[Any]], name: str, n: int) -> None:
    if name in arrays and (outside := first_outside(arrays[name], n)) is not None:
        wrong = int(arrays[name][outside])
        raise DataError(
            f"{name} has the id {wrong} at {outside} and its alphabet has {n} strings: ids are 0 to {n - 1}"
        )
