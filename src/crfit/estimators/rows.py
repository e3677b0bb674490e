"""Validation of a classifier's input: matrices, items and labels.

A matrix is anything that scikit-learn accepts: an array, a SciPy sparse matrix of any format, a data frame, a
list of lists of numbers. If scikit-learn is installed, it validates matrices, with its own
messages; otherwise the code here does. Items are lists of str or dicts as in `Dataset.from_sequences`; a
`Dataset` must have one position per sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.data import Dataset
from crfit.data.items import check_alone, from_rows
from crfit.errors import DataError, OptionError


class _PlainMixin:
    """Replacement for scikit-learn's ``ClassifierMixin``."""


if TYPE_CHECKING:
    ClassifierMixin = _PlainMixin
    _sklearn: Any = None
    _check_targets: Any = None
else:
    try:
        from sklearn.base import ClassifierMixin
        from sklearn.utils import validation as _sklearn
        from sklearn.utils.multiclass import check_classification_targets as _check_targets
    except ImportError:
        ClassifierMixin, _sklearn = _PlainMixin, None


def is_matrix(X: Any) -> bool:
    """Whether X has rows of numbers, rather than being a dataset or items with names."""
    if isinstance(X, Dataset):
        return False
    if X is None:
        raise DataError("X must be a matrix or a list of items, not NoneType")
    if getattr(X, "ndim", 2) == 1 and getattr(X.dtype, "kind", "") == "O":
        X = list(X)  # a series or an array of items
    if not isinstance(X, list | tuple):
        return True
    first = next((row for row in X if not isinstance(row, list | tuple) or len(row)), None)
    if isinstance(first, list | tuple):
        return not isinstance(first[0], str)
    return not isinstance(first, Mapping | set | frozenset)


def has_no_values(X: Any) -> bool:
    """Whether a list has no rows or only empty ones, so it could hold numbers or names."""
    return isinstance(X, list | tuple) and all(isinstance(row, list | tuple) and not row for row in X)


def read_items(X: Any, n_threads: int | None) -> Dataset:
    """Convert items to a dataset; a dataset is returned unchanged."""
    if isinstance(X, Dataset):
        check_alone(X)
        return X
    return Dataset.from_sequences(([item] for item in X), n_threads=n_threads)


def checked_matrix(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Validate a matrix. Sets, with `reset`: ``n_features_in_`` and ``feature_names_in_``."""
    if _sklearn is not None:
        return _sklearn.validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype="numeric")
    names = getattr(X, "columns", None)
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError(f"X must be a 2-dimensional array of numbers, not {X.dtype} with {X.ndim} dimensions")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataError(f"X has the shape {X.shape}: give at least one row and one column")
    if not np.isfinite(X.data if hasattr(X, "indptr") else X).all():
        raise DataError("X contains NaN or inf: values must be finite")
    if reset:
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in names):
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
    elif X.shape[1] != estimator.n_features_in_:
        raise DataError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return X


def matrix_items(X: Any, names: Iterable[str] | None) -> Dataset:
    """Convert a validated matrix to a dataset."""
    n = X.shape[1]
    known = [] if names is None else list(names)
    return from_rows(X, known if len(set(known)) == n else [str(i) for i in range(n)])


def checked_labels(y: Any, n_items: int) -> NDArray[Any]:
    """Validate labels."""
    if y is None:
        raise OptionError(
            "y", None, "a classifier requires y to be passed, but the target y is None: give the classes"
        )
    if _sklearn is not None:
        y = _sklearn.column_or_1d(y, warn=True)
        _sklearn.assert_all_finite(y, input_name="y")
        if y.dtype.kind not in "US":  # strings are always classes; type_of_target would sort them
            _check_targets(y)
    labels: NDArray[Any] = np.asarray(y)
    if labels.ndim != 1 or len(labels) != n_items:
        raise DataError(f"y has the shape {labels.shape} but X has {n_items} rows: give one class per row")
    return labels


def numbered_labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Sorted classes, and the index of each label among them."""
    if y.dtype.kind not in "OUS":
        classes, ids = np.unique(y, return_inverse=True)
        return classes, ids.astype(np.int32)
    # Finding distinct strings is ten times as fast as sorting all of them.
    labels = y.tolist()
    try:
        names = sorted(set(labels))
    except TypeError:
        raise DataError("y mixes types that cannot be sorted: give labels of one type") from None
    number = {name: i for i, name in enumerate(names)}
    classes = np.empty(len(names), dtype=y.dtype)
    classes[:] = names
    return classes, np.fromiter(map(number.__getitem__, labels), dtype=np.int32, count=len(labels))


def checked_sample_weight(sample_weight: ArrayLike | None, n_items: int) -> NDArray[np.float64] | None:
    """Validate weights of items."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError("sample_weight", type(sample_weight).__name__, "give numbers") from None
    if weights.ndim == 0:
        weights = np.full(n_items, float(weights))
    if weights.shape != (n_items,):
        raise OptionError(
            "sample_weight", f"shape {weights.shape}", f"Sample weights must be 1D: give {n_items}"
        )
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise OptionError("sample_weight", float(weights.min()), "weights must be finite and not negative")
    if not weights.any():
        raise OptionError("sample_weight", 0.0, "all weights are zero: give at least one above 0")
    return None if (weights == 1.0).all() else weights
