"""Validation of user input (numbers, arrays, values to store), and helpers for ragged arrays.

Rows of different lengths are stored in one flat array with offsets: row r is ``ptr[r]:ptr[r+1]``. Native code
reads these arrays without bounds checks, so each is validated once, when a dataset or a layout is created.
"""

import dataclasses
import math
import numbers
import os
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from crfit.errors import DataError, OptionError


def check_number(name: str, value: Any, *, at_least: float | None = None) -> None:
    """Raise OptionError unless `value` is a number; infinity is accepted, True and NaN are not."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or value != value or (at_least is not None and value < at_least):
        raise OptionError(name, value, "give a number" + _bound(at_least))


def check_whole_number(name: str, value: Any, *, at_least: int | None = None) -> None:
    """Raise OptionError unless `value` is a whole number; 3.0 is accepted, True is not."""
    whole = isinstance(value, numbers.Integral)
    if isinstance(value, numbers.Real) and not whole:
        whole = math.isfinite(value) and value == math.floor(value)
    if not whole or isinstance(value, bool) or (at_least is not None and value < at_least):
        raise OptionError(name, value, "give a whole number" + _bound(at_least))


def check_free(n_free: Any, n_attributes: int) -> None:
    """Raise OptionError unless 0 <= `n_free` (unpenalised attributes) <= `n_attributes`."""
    check_whole_number("n_free", n_free, at_least=0)
    if n_free > n_attributes:
        raise OptionError("n_free", n_free, f"there are {n_attributes} attributes; give no more than that")


def _bound(at_least: float | None) -> str:
    return "" if at_least is None else f", {at_least:g} or more"


def check_finite(weights: NDArray[np.float64]) -> None:
    """Raise OptionError, naming the first bad index, unless all weights are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = weights.sum()
    # The sum takes a tenth of the time, but it can overflow even if all weights are finite.
    if not np.isfinite(total) and not np.isfinite(weights).all():
        first = int(np.argmin(np.isfinite(weights)))
        raise OptionError("weights", f"{weights[first]} at {first}", "all weights must be finite")


def offsets(lengths: NDArray[np.int64] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """Offsets of rows with these lengths; one entry more than `lengths`."""
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


def rows(ptr: NDArray[np.int64], ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of the selected rows, and the indices of their entries in the flat array."""
    lengths = ptr[ids + 1] - ptr[ids]
    new_ptr = offsets(lengths)
    return new_ptr, np.arange(new_ptr[-1]) + np.repeat(ptr[ids] - new_ptr[:-1], lengths)


def keep(ptr: NDArray[np.int64], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Offsets of the same rows after dropping the entries not marked in `kept`."""
    return offsets(kept)[ptr]


def vector(name: str, values: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Contiguous 1-D array of `dtype`, without a copy if possible; DataError if values would change."""
    try:
        array = np.asarray(values)
        if array.size == 0 and array.ndim == 1:
            return np.zeros(0, dtype=dtype)
        if array.ndim != 1 or array.dtype.kind not in ("biuf" if np.dtype(dtype).kind == "f" else "iu"):
            raise TypeError
        converted = np.ascontiguousarray(array, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name} must be a 1-D array of numbers that fit {np.dtype(dtype).name}") from None
    changed = converted.dtype != array.dtype and not np.array_equal(converted, array)
    if converted.dtype.kind == "i" and changed:
        raise DataError(f"{name} has numbers that do not fit {np.dtype(dtype).name}: give smaller numbers")
    return converted


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Read-only view: native code relies on arrays staying as they were validated."""
    view: NDArray[Any] = array.view()
    view.flags.writeable = False
    return view


def first_outside(ids: NDArray[np.integer], n_ids: int) -> int | None:
    """Index of the first id outside 0..n_ids-1, or None."""
    if not len(ids) or (ids.min() >= 0 and ids.max() < n_ids):
        return None
    return int(np.flatnonzero((ids < 0) | (ids >= n_ids))[0])


def place(seq_ptr: NDArray[np.int64], position: int) -> tuple[int, int]:
    """Sequence, and position within it, of a position counted over all sequences."""
    sequence = int(np.searchsorted(seq_ptr, position, side="right")) - 1
    return sequence, position - int(seq_ptr[sequence])


def check_offsets(
    arrays: dict[str, NDArray[Any]], name: str, n_rows: int | None = None, entries: str | None = None
) -> None:
    """Raise DataError unless ``arrays[name]`` holds the offsets of `n_rows` rows of ``arrays[entries]``."""
    ptr = arrays[name]
    if len(ptr) == 0 or ptr[0] != 0 or (ptr[1:] < ptr[:-1]).any():  # a difference might wrap around
        raise DataError(f"{name} must start with 0 and never decrease: entry i is the start of row i")
    if n_rows is not None and len(ptr) != n_rows + 1:
        raise DataError(f"{name} has {len(ptr)} entries: give {n_rows + 1}, one per position plus the end")
    if entries is not None and ptr[-1] != (length := len(arrays[entries])):
        raise DataError(f"{name} ends with {ptr[-1]} but {entries} has {length} entries: the two must match")


def checked_weights(weights: ArrayLike, n_sequences: int) -> NDArray[np.float64]:
    """Sequence weights as an array; DataError unless each sequence has a finite weight >= 0."""
    array: NDArray[np.float64] = vector("sequence_weights", weights, np.float64)
    if len(array) != n_sequences:
        remedy = f"give {n_sequences}, one for each sequence"
        raise DataError(f"sequence_weights has {len(array)} entries: {remedy}")
    fine = np.isfinite(array) & (array >= 0)
    if not fine.all():
        sequence = int(np.argmin(fine))
        message = f"the sequence weight is {array[sequence]}; weights must be finite and not negative"
        raise DataError(message, sequence=sequence)
    return array


def json_ready(name: str, value: Any, otherwise: Callable[[Any], str] | None = None) -> Any:
    """Convert numbers, strings, enums, paths, dataclasses and containers of them to JSON types.

    Non-finite numbers become None. `otherwise` converts anything else to text; without it, any other type
    raises an OptionError that names the entry.
    """
    if isinstance(value, Enum):
        return json_ready(name, value.value, otherwise)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return json_ready(name, value.tolist(), otherwise)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): json_ready(f"{name}[{key!r}]", entry, otherwise) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(f"{name}[{i}]", entry, otherwise) for i, entry in enumerate(value)]
    if otherwise is not None:
        return otherwise(value)
    raise OptionError(name, value, f"a file cannot hold {type(value).__name__}: leave it out")
