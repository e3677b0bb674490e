"""What users give to an estimator, as datasets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, TypeVar

import numpy as np

from crfit.alphabet import HasAlphabets
from crfit.dataset import Dataset
from crfit.dataset.building import Item
from crfit.errors import DataError, OptionError

__all__ = ["Labels", "Sequences", "checked_sequences", "read_held_out", "read_labelled"]

Sequences: TypeAlias = Iterable[Iterable[Item]] | Dataset
Labels: TypeAlias = Iterable[Iterable[str]]


_Given = TypeVar("_Given", bound=Sequences)


def checked_sequences(X: _Given) -> _Given:
    """Refuse matrices: rows alone do not say where a sequence ends."""
    if hasattr(X, "tocsr") or (isinstance(X, np.ndarray) and X.dtype.kind in "biufc"):
        raise DataError(
            "X is a matrix, which does not say where sequences end: give Dataset.from_csr(X, lengths, y) or "
            "Dataset.from_dense(X, lengths, y)"
        )
    return X


def read_labelled(
    X: Sequences, y: Labels | None, n_threads: int | None, alphabets_of: HasAlphabets | None = None
) -> Dataset:
    """Labelled sequences as a dataset."""
    if isinstance(X, Dataset):
        if y is not None:
            raise OptionError("y", "given", "X is a dataset, which holds the labels: leave y out")
        if X.labels is None:
            raise DataError("the dataset has no labels: give y when it is made", file=X.source)
        return X
    if y is None:
        raise OptionError("y", None, "give a list of labels for each sequence")
    return Dataset.from_sequences(checked_sequences(X), y, alphabets_of=alphabets_of, n_threads=n_threads)


def read_held_out(
    dev: tuple[Sequences, Labels] | Dataset, dataset: Dataset, n_threads: int | None
) -> Dataset:
    """Held-out data as a dataset, read with the alphabets of the training data."""
    if isinstance(dev, Dataset):
        return dev
    if not isinstance(dev, tuple | list) or len(dev) != 2:
        raise OptionError("dev", type(dev).__name__, "give a pair (X, y) or a Dataset")
    return read_labelled(dev[0], dev[1], n_threads, dataset)
