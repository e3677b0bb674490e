"""Weights of labels: a sequence counts as much as its labels do on average."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.data.label_sets import known_runs
from crfit.errors import OptionError

if TYPE_CHECKING:
    from crfit.data.dataset import Dataset

#: Values of the option ``class_weight``.
ClassWeight: TypeAlias = Literal["balanced"] | Mapping[Any, float] | None


def class_weights(
    class_weight: ClassWeight,
    classes: NDArray[Any],
    ids: NDArray[np.int32],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64] | None:
    """Weight of each class; "balanced": ``N / (K n_k)`` for the K classes that occur, n_k of N times."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(ids, weights, minlength=len(classes))
        occurs = counts > 0
        found = np.ones(len(classes))
        found[occurs] = counts.sum() / (np.count_nonzero(occurs) * counts[occurs])
        return found
    if not isinstance(class_weight, Mapping):
        raise OptionError("class_weight", class_weight, "give None, 'balanced' or a dict of class to weight")
    given = classes.tolist()
    if absent := [c for c in class_weight if c not in given]:
        raise OptionError("class_weight", class_weight, f"remove the classes {absent}, which are not in y")
    try:
        found = np.array([class_weight.get(c, 1.0) for c in given], dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError("class_weight", class_weight, "weights must be numbers") from None
    if not (np.isfinite(found) & (found >= 0.0)).all():
        raise OptionError("class_weight", class_weight, "weights must be finite and not negative")
    return found


def weigh_classes(dataset: Dataset, class_weight: ClassWeight) -> Dataset:
    """Multiply the weight of each sequence by the mean weight of its known labels, 1 without any."""
    if class_weight is None or dataset.labels is None:
        return dataset
    known = known_runs(dataset).at
    labels, names = dataset.labels[known], np.array(dataset.label_alphabet.strings(), dtype=object)
    each = class_weights(class_weight, names, labels)
    assert each is not None
    sequence = np.repeat(np.arange(dataset.n_sequences), dataset.lengths)[known]
    counts = np.bincount(sequence, minlength=dataset.n_sequences)
    sums = np.bincount(sequence, each[labels], minlength=dataset.n_sequences)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), 1.0)
    given = dataset.sequence_weights
    return replace(dataset, sequence_weights=means if given is None else given * means)
