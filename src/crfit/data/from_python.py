"""Convert Python lists, sparse and dense matrices to the fields of a dataset.

Lists are read by native code (`_native.read_sequences`), which creates no Python object per attribute.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit import _native, threads
from crfit.checks import checked_weights, first_outside, keep, offsets, place, vector
from crfit.data.alphabet import Alphabet, HasAlphabets
from crfit.data.label_sets import LabelSets, read_partial
from crfit.errors import DataError, shown
from crfit.features import Features

#: A str is a token, for models with features.
Item: TypeAlias = Iterable[str] | Mapping[str, Any]
Label: TypeAlias = str | Set[str] | None
Fields: TypeAlias = dict[str, Any]


class Matrix(NamedTuple):
    """Rows of a sparse matrix; `values` is None if all are 1."""

    ptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float64] | None
    n_columns: int


def from_sequences(
    X: Iterable[Iterable[Item]],
    y: Iterable[Iterable[Label]] | None,
    sequence_weights: ArrayLike | None,
    alphabets_of: HasAlphabets | None,
    n_threads: int | None,
    features: Features | None = None,
) -> Fields:
    """Fields of a dataset of sequences of items, or of tokens if there are features."""
    # 0: native code counts the cores itself, and only for large data: it would slow down tagging a sentence.
    default = n_threads is None and threads.VARIABLE not in os.environ
    attributes = Alphabet() if alphabets_of is None else alphabets_of.attribute_alphabet
    n, attr_values = 0 if default else threads.resolve_threads(n_threads), None
    if features is not None:
        known = None if alphabets_of is None else attributes.native
        seq_ptr, attr_ptr, attr_ids, new, n_dropped = _native.read_tokens(X, features.native, known, n)
        attributes = Alphabet.wrap(new) if alphabets_of is None else attributes
    else:
        seq_ptr, attr_ptr, attr_ids, attr_values, n_dropped = _native.read_sequences(
            X, attributes.native, alphabets_of is None, n
        )
    labels, label_alphabet, label_sets = _labels(y, seq_ptr, False, alphabets_of)
    attributes.lock()
    return {
        "seq_ptr": seq_ptr,
        "attr_ptr": attr_ptr,
        "attr_ids": attr_ids,
        "attr_values": attr_values,
        "labels": labels,
        "label_sets": label_sets,
        "sequence_weights": _weights(sequence_weights, len(seq_ptr) - 1),
        "attribute_alphabet": attributes,
        "label_alphabet": label_alphabet,
        "edge_alphabet": Alphabet(locked=True) if alphabets_of is None else alphabets_of.edge_alphabet,
        "n_dropped": n_dropped,
        "features": features,
    }


def csr_arrays(X: Any) -> Matrix:
    """Rows of a SciPy sparse matrix, without a copy if the types match."""
    if not hasattr(X, "tocsr"):
        raise DataError(
            f"X must be a SciPy sparse matrix, not {type(X).__name__}; use from_dense for an array"
        )
    X = X.tocsr()
    if X.ndim != 2:
        raise DataError(f"X must have 2 dimensions, not {X.ndim}")
    ptr = np.asarray(X.indptr, dtype=np.int64)
    n = int(ptr[-1])  # the arrays may have spare capacity
    return Matrix(ptr, vector("X.indices", X.indices[:n], np.int32), _values(X.data[:n]), int(X.shape[1]))


def dense_arrays(X: ArrayLike) -> Matrix:
    """Rows of a dense matrix, without its zeros."""
    dense = np.asarray(X)
    if dense.ndim != 2:
        raise DataError(f"X must have 2 dimensions (positions, attributes), not {dense.ndim}")
    dense = _numbers(dense)
    rows, columns = np.nonzero(dense)
    ptr = offsets(np.count_nonzero(dense, axis=1).astype(np.int64))
    return Matrix(ptr, columns.astype(np.int32), _values(dense[rows, columns]), dense.shape[1])


def from_matrix(
    matrix: Matrix,
    lengths: ArrayLike,
    y: Iterable[Any] | None,
    names: Sequence[str] | None,
    sequence_weights: ArrayLike | None,
    alphabets_of: HasAlphabets | None,
) -> Fields:
    """Fields of a dataset of matrix rows."""
    ptr, columns, values, n_columns = matrix
    seq_ptr = _seq_ptr(lengths, len(ptr) - 1)
    _check_finite(matrix, seq_ptr)
    column_names = [str(i) for i in range(n_columns)] if names is None else list(names)
    if len(column_names) != n_columns:
        raise DataError(f"X has {n_columns} columns: give as many names, not {len(column_names)}")
    if (wrong := next((name for name in column_names if not isinstance(name, str)), None)) is not None:
        raise DataError(f"names must be str, not {type(wrong).__name__} {shown(wrong)}")
    own = Alphabet(column_names, locked=True)
    if len(own) != n_columns:
        repeated = next(name for i, name in enumerate(column_names) if own.get(name) != i)
        raise DataError(f"several columns are named {shown(repeated)}: make the names unique")
    n_dropped = 0
    if alphabets_of is not None:
        ids = alphabets_of.attribute_alphabet.ids(column_names)
        if not np.array_equal(ids, np.arange(n_columns)):
            columns = _take(ids, columns)
            known = columns >= 0
            n_dropped = len(columns) - int(known.sum())
            ptr, columns = keep(ptr, known), columns[known]
            values = None if values is None else values[known]
    if isinstance(y, np.ndarray):
        y = y.tolist()
    elif isinstance(y, Iterator):
        y = list(y)
    labels, label_alphabet, label_sets = _labels(y, seq_ptr, not _is_nested(y), alphabets_of)
    return {
        "seq_ptr": seq_ptr,
        "attr_ptr": ptr,
        "attr_ids": columns,
        "attr_values": values,
        "labels": labels,
        "label_sets": label_sets,
        "sequence_weights": _weights(sequence_weights, len(seq_ptr) - 1),
        "attribute_alphabet": own if alphabets_of is None else alphabets_of.attribute_alphabet,
        "label_alphabet": label_alphabet,
        "edge_alphabet": Alphabet(locked=True) if alphabets_of is None else alphabets_of.edge_alphabet,
        "n_dropped": n_dropped,
    }


def _labels(
    y: Iterable[Any] | None, seq_ptr: NDArray[np.int64], flat: bool, alphabets_of: HasAlphabets | None
) -> tuple[NDArray[np.int32] | None, Alphabet, LabelSets | None]:
    """Label ids, their alphabet and partial labels; new labels are added to a copy of a model's alphabet."""
    if y is None:
        return None, Alphabet(locked=True) if alphabets_of is None else alphabets_of.label_alphabet, None
    alphabet = Alphabet() if alphabets_of is None else alphabets_of.label_alphabet.copy()
    if isinstance(y, Iterator):
        y = list(y)  # partial labels are read twice
    labels, label_sets = _native.read_labels(y, seq_ptr, alphabet.native, flat), None
    if labels.min(initial=0) < 0:
        given = y if isinstance(y, Sequence) else list(y)
        labels, label_sets = read_partial(given, labels, seq_ptr, alphabet, flat)
    alphabet.lock()
    return labels, alphabet, label_sets


def _is_nested(y: Iterable[Any] | None) -> bool:
    """Whether `y` has one list per sequence; invalid labels raise an error later, when they are read."""
    if y is None or isinstance(y, str) or not isinstance(y, Sequence):
        return False
    return len(y) > 0 and isinstance(y[0], Iterable) and not isinstance(y[0], str | bytes | Set)


def _weights(weights: ArrayLike | None, n_sequences: int) -> NDArray[np.float64] | None:
    return None if weights is None else checked_weights(weights, n_sequences)


def _values(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """Values of occurrences, None if all are 1; checks a short prefix first, which usually decides."""
    ones = values[:1000] == 1
    return None if ones.all() and (values == 1).all() else _numbers(values)


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype.kind not in "biuf":
        raise DataError(f"X must have real numbers, not {values.dtype}")
    return np.ascontiguousarray(values, dtype=np.float64)


def _take(ids: NDArray[np.int32], columns: NDArray[np.int32]) -> NDArray[np.int32]:
    if first_outside(columns, len(ids)) is not None:
        raise DataError(f"X has column indices outside its shape: they must be 0 to {len(ids) - 1}")
    return ids[columns]


def _seq_ptr(lengths: ArrayLike, n_rows: int) -> NDArray[np.int64]:
    array: NDArray[np.int64] = vector("lengths", lengths, np.int64)
    if (array < 1).any():
        sequence = int(np.argmax(array < 1))
        raise DataError(
            f"the length is {array[sequence]}; a sequence must have at least one position", sequence=sequence
        )
    total = sum(array.tolist())  # Python integers: int64 could overflow
    if total != n_rows:
        raise DataError(f"lengths sum to {total} but X has {n_rows} rows: the two must match")
    return offsets(array)


def _check_finite(matrix: Matrix, seq_ptr: NDArray[np.int64]) -> None:
    if matrix.values is None:
        return
    finite = np.isfinite(matrix.values)
    if not finite.all():
        occurrence = int(np.argmin(finite))
        row = int(np.searchsorted(matrix.ptr, occurrence, side="right")) - 1
        column, value = int(matrix.columns[occurrence]), matrix.values[occurrence]
        sequence, position = place(seq_ptr, row)
        raise DataError(
            f"column {column} has the value {value}; values must be finite",
            sequence=sequence,
            position=position,
        )
