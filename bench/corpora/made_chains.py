"""Chains of any length with any number of labels, made by a generator.

Every position has one attribute of `N_ATTRIBUTES` and a label, both drawn evenly: there is nothing to learn,
but what a gradient, a Hessian product or a best path takes depends on sizes alone.
"""

from __future__ import annotations

import numpy as np
from crfit.alphabet import Alphabet

from crfit import Dataset

TITLE = "chains of any size (built in)"
FILES: dict[str, str] = {}
VARIANTS = ()
HOW_TO_GET = "made by a generator"
FORMAT = "datasets"
TEMPLATE = None

N_ATTRIBUTES, SEED = 50, 11
#: Sequences, their length and labels where nobody says which.
USUAL = (200, 20, 5)


def chains(n_sequences: int, length: int, n_labels: int, seed: int = SEED) -> Dataset:
    """Sequences of one length."""
    rng, n_tokens = np.random.default_rng(seed), n_sequences * length
    return Dataset(
        seq_ptr=np.arange(n_sequences + 1) * length,
        attr_ptr=np.arange(n_tokens + 1),
        attr_ids=rng.integers(0, N_ATTRIBUTES, n_tokens).astype(np.int32),
        labels=rng.integers(0, n_labels, n_tokens).astype(np.int32),
        attribute_alphabet=Alphabet([f"x{j}" for j in range(N_ATTRIBUTES)]),
        label_alphabet=Alphabet([f"y{y}" for y in range(n_labels)]),
    )


def datasets(variant: str) -> dict[str, Dataset]:
    """Training and test part."""
    return {"train": chains(*USUAL), "test": chains(*USUAL, seed=SEED + 1)}
