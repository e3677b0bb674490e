"""``crfit tag`` with a classifier: a class for each line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from crfit.data import Dataset
from crfit.model import Model

__all__ = ["classified_lines"]

#: Items classified at a time: probabilities of a long file need not fit in memory at once.
BLOCK_ITEMS = 1 << 14


def classified_lines(
    model: Model, dataset: Dataset, *, marginals: bool, objects: bool, n_threads: int
) -> Iterator[str]:
    """Classify items and spell the classes.

    Parameters
    ----------
    model : Model
        A classifier.
    dataset : Dataset
        Items, as `Model.read` gives them.
    marginals : bool
        Whether to add the probability of the class, or of all classes in objects.
    objects : bool
        Whether to write JSON.
    n_threads : int
        Threads.

    Yields
    ------
    str
        A line for each item, with its line end.
    """
    names = model.labels
    for start in range(0, dataset.n_sequences, BLOCK_ITEMS):
        block = dataset.subset(np.arange(start, min(start + BLOCK_ITEMS, dataset.n_sequences)))
        ids = model.tag_dataset(block, n_threads=n_threads).tolist()
        table = model.marginals_dataset(block, n_threads=n_threads).tolist() if marginals else None
        for n, i in enumerate(ids):
            if objects:
                record: dict[str, object] = {"label": names[i]}
                if table is not None:
                    record["probability"] = table[n][i]
                    record["probabilities"] = dict(zip(names, table[n], strict=True))
                yield json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
            else:
                yield names[i] + (f":{table[n][i]:.6f}" if table is not None else "") + "\n"
