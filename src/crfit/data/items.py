"""Data of classifiers: items instead of sequences.

A classifier is a model of sequences that have one position each. Rows of a matrix and lines of a file become
such sequences here; an intercept is one more attribute, `INTERCEPT`, of value 1 at every position, the last
of the alphabet. One class against the rest is the same data with other labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfit.data.alphabet import Alphabet
from crfit.data.arrays import first_outside
from crfit.data.dataset import Dataset
from crfit.data.from_python import Matrix, csr_arrays, dense_arrays
from crfit.errors import DataError

__all__ = [
    "INTERCEPT",
    "add_intercept",
    "check_alone",
    "each_alone",
    "from_rows",
    "labelled",
    "one_against_rest",
]

#: Name of the attribute that stands for the intercept.
INTERCEPT = "(intercept)"

REST = "(rest)"


def from_rows(X: Any, names: Sequence[str]) -> Dataset:
    """Make a dataset in which each row of a matrix is a sequence of its own.

    Parameters
    ----------
    X : SciPy sparse matrix or array of shape (N, A)
        Indices (int32) and values (float64) of a CSR matrix and the entries of a dense one without zeros are
        used as they are: do not change them afterwards.
    names : sequence of str
        Attribute of each column, all different.

    Returns
    -------
    Dataset
        Without labels. Values are left out where all are 1, which halves the work.
    """
    matrix = csr_arrays(X) if hasattr(X, "tocsr") else _dense_rows(np.asarray(X))
    return Dataset(
        seq_ptr=np.arange(len(matrix.ptr), dtype=np.int64),
        attr_ptr=matrix.ptr,
        attr_ids=matrix.columns,
        attr_values=matrix.values,
        attribute_alphabet=Alphabet(names),
    )


def _dense_rows(X: NDArray[Any]) -> Matrix:
    """Rows of a dense matrix; where it has no zeros, its own memory."""
    if X.ndim != 2 or X.dtype.kind not in "iuf" or X.size == 0 or not X.all():
        return dense_arrays(X)
    N, A = X.shape
    values = np.ascontiguousarray(X, dtype=np.float64).ravel()
    columns = np.tile(np.arange(A, dtype=np.int32), N)
    return Matrix(np.arange(0, N * A + 1, A, dtype=np.int64), columns, values, A)


def each_alone(dataset: Dataset) -> Dataset:
    """Make every position a sequence of its own, with the weight that its sequence had.

    Parameters
    ----------
    dataset : Dataset
        Sequences without edge attributes.

    Returns
    -------
    Dataset
        Itself if all sequences have one position.
    """
    if dataset.edge_ids is not None and len(dataset.edge_ids):
        raise DataError(
            "the data has attributes of label pairs, which a classifier has none of: leave them out",
            file=dataset.source,
        )
    if dataset.one_position:
        return dataset
    weights = dataset.sequence_weights
    return replace(
        dataset,
        seq_ptr=np.arange(dataset.n_tokens + 1, dtype=np.int64),
        sequence_weights=None if weights is None else np.repeat(weights, dataset.lengths),
    )


def check_alone(dataset: Dataset) -> None:
    """Refuse sequences that are no items.

    Parameters
    ----------
    dataset : Dataset
        Any sequences.

    Raises
    ------
    DataError
        Names the first that has more than one position.
    """
    if not dataset.one_position:
        i = int(np.argmax(dataset.lengths > 1))
        raise DataError(
            "a classifier takes sequences of one position each; crfit.CRF takes longer ones", sequence=i
        )


def add_intercept(dataset: Dataset) -> Dataset:
    """Give every position the attribute `INTERCEPT` with value 1.

    Parameters
    ----------
    dataset : Dataset
        Any sequences. The alphabet gets the name at its end, unless it has it.

    Returns
    -------
    Dataset
        Itself if the attribute occurs in it already.
    """
    alphabet = dataset.attribute_alphabet
    intercept = alphabet.get(INTERCEPT)
    if intercept < 0:
        alphabet = alphabet.copy()
        intercept = alphabet.add(INTERCEPT)
        alphabet.lock()
    elif (dataset.attr_ids == intercept).any():
        return dataset
    ends, values = dataset.attr_ptr[1:], dataset.attr_values  # the intercept comes last at each position
    ptr = dataset.attr_ptr + np.arange(len(dataset.attr_ptr))
    ids = np.insert(dataset.attr_ids, ends, intercept)
    values = None if values is None else np.insert(values, ends, 1.0)
    changes = {"attr_ptr": ptr, "attr_ids": ids, "attr_values": values, "attribute_alphabet": alphabet}
    return _changed(dataset, changes)


def labelled(
    dataset: Dataset, labels: NDArray[np.integer], names: Sequence[str], weights: NDArray[np.float64] | None
) -> Dataset:
    """Give items their labels and weights.

    Parameters
    ----------
    dataset : Dataset
        Items.
    labels : int array of shape (N,)
        Label ids.
    names : sequence of str
        Name of each label id, all different.
    weights : float64 array of shape (N,) or None
        Weights of the items, finite and not negative; None where all are 1.

    Returns
    -------
    Dataset
        Shares all other arrays.
    """
    alphabet = Alphabet(names, locked=True)
    if len(labels) != dataset.n_sequences or first_outside(labels, len(alphabet)) is not None:
        raise DataError(f"give one label for each of {dataset.n_sequences} items")
    ids = np.ascontiguousarray(labels, dtype=np.int32)
    return _changed(dataset, {"labels": ids, "label_alphabet": alphabet, "sequence_weights": weights})


def one_against_rest(dataset: Dataset, label: int) -> Dataset:
    """Give the same data with two labels: 1 for one of the old labels, 0 for all others.

    Parameters
    ----------
    dataset : Dataset
        Labelled data.
    label : int
        Id of the label.

    Returns
    -------
    Dataset
        Shares all arrays but the labels.
    """
    if dataset.labels is None:
        raise DataError("the data has no labels: give y", file=dataset.source)
    names = Alphabet([REST, dataset.label_alphabet[label]], locked=True)
    labels = (dataset.labels == label).astype(np.int32)
    return _changed(dataset, {"labels": labels, "label_alphabet": names})


def _changed(dataset: Dataset, changes: dict[str, Any]) -> Dataset:
    """Copy with other fields that are right by construction; checks of all arrays take a pass over them."""
    return Dataset._trusted(**(vars(dataset) | changes))
