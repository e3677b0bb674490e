"""Wrongly labelled sequences, worst first.

A sequence is worse the more of its tokens are wrong. Among those with equally many, it is worse the further
the gold labels are behind the predicted ones: ``log p(predicted | x) - log p(gold | x)``, in nats.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crfit.data import Dataset
from crfit.data.dataset import labels_of

if TYPE_CHECKING:
    from crfit.model import Model


@dataclass(frozen=True, eq=False)
class Mistakes:
    """Wrong sequences of a dataset, worst first.

    `n_sequences` counts all of them, the arrays may have fewer. `sequences` are indices into the dataset, and
    `log_gold` is minus infinity where a gold label is unknown to the model.
    """

    n_sequences: int
    sequences: NDArray[np.int64]
    n_wrong: NDArray[np.int64]  # tokens of each
    log_gold: NDArray[np.float64]  # log p(gold | x)
    log_predicted: NDArray[np.float64]


def find_mistakes(
    model: "Model",
    dataset: Dataset,
    predicted: NDArray[np.integer],
    n: int | None = None,
    *,
    n_threads: int | None = None,
) -> Mistakes:
    """The `n` worst sequences of a dataset with the model's label ids, or all wrong ones."""
    before = np.concatenate(([0], np.cumsum(labels_of(dataset) != predicted)))
    wrong = np.diff(before[dataset.seq_ptr])
    found = np.flatnonzero(wrong)
    total = len(found)
    if n is not None and n < total:  # no more log-probabilities than needed
        least = np.partition(wrong[found], total - n)[total - n] if n else np.inf
        found = found[wrong[found] >= least]
    part = dataset.subset(found)
    kept = np.repeat(np.isin(np.arange(dataset.n_sequences), found), dataset.lengths)
    log_gold, log_predicted = (
        model.log_probability_dataset(each, n_threads=n_threads)
        for each in (part, replace(part, labels=predicted[kept].astype(np.int32)))
    )
    order = np.lexsort((found, log_gold - log_predicted, -wrong[found]))[:n]
    found = found[order]
    return Mistakes(total, found, wrong[found], log_gold[order], log_predicted[order])
