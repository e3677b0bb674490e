"""Data with attributes that are the same, in different places of the alphabet."""

from dataclasses import replace

import numpy as np

from crfit.data import Dataset
from crfit.data.alphabet import Alphabet
from oracle import random_dataset


def with_twins(dataset: Dataset, copies: list[int], seed: int = 0) -> tuple[Dataset, np.ndarray]:
    """Each attribute copied so many times, ids shuffled; the data, and the attribute that an id stood for."""
    original = np.repeat(np.arange(dataset.n_attributes), copies)
    original = original[np.random.default_rng(seed).permutation(len(original))]
    members = [np.flatnonzero(original == a) for a in range(dataset.n_attributes)]
    values = np.ones(dataset.n_occurrences) if dataset.attr_values is None else dataset.attr_values
    rows = [[] for _ in range(dataset.n_tokens)]
    for n, row in enumerate(rows):
        for k in range(dataset.attr_ptr[n], dataset.attr_ptr[n + 1]):
            row += [(int(a), values[k]) for a in members[dataset.attr_ids[k]]]
    pairs = [pair for row in rows for pair in row]
    doubled = replace(
        dataset,
        attr_ptr=np.cumsum([0, *map(len, rows)]),
        attr_ids=np.array([a for a, _ in pairs], dtype=np.int32),
        attr_values=None if dataset.attr_values is None else np.array([x for _, x in pairs]),
        attribute_alphabet=Alphabet([f"b{i}" for i in range(len(original))], locked=True),
    )
    return doubled, original


def redundant(seed: int, n_sequences: int = 6, **options) -> Dataset:
    """Random data in which more than half of the attributes are copies of others."""
    rng = np.random.default_rng(seed)
    options = {"n_labels": 3, "n_attributes": 6, **options}
    dataset = random_dataset(seed, rng.integers(1, 6, n_sequences).tolist(), **options)
    return with_twins(dataset, rng.integers(1, 6, options["n_attributes"]).tolist(), seed)[0]
