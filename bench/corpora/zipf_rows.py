"""Rows of a classifier, made by a generator: a million, some 100,000 columns, about twenty of them in a row.

Column j is drawn with a probability in proportion to 1 / (j + 10), as words are; a row has `DRAWN` draws and
keeps each column once. Every column has a normal weight for each label, and labels are drawn from the
distribution that these give:

    p(y | x) = exp(SHARPNESS sum_{j in x} w_jy) / Z(x)

``binary`` has two labels, ``ten`` has ten, ``small`` is like ``binary`` with a fiftieth of rows and columns.
"""

from __future__ import annotations

import numpy as np
from crfit.alphabet import Alphabet
from numpy.typing import NDArray

from crfit import Dataset

TITLE = "rows of a classifier (built in)"
FILES: dict[str, str] = {}
VARIANTS = ("binary", "ten", "small")
HOW_TO_GET = "made by a generator"
FORMAT = "datasets"
TEMPLATE = None

N_ROWS, N_TEST, N_COLUMNS, DRAWN, SHARPNESS = 1_000_000, 20_000, 100_000, 28, 0.6
SMALLER = 50
LABELS = {"binary": 2, "ten": 10, "small": 2}
SEED = 7


def datasets(variant: str) -> dict[str, Dataset]:
    """Training and test part."""
    rng = np.random.default_rng(SEED)
    n_labels, smaller = LABELS[variant], SMALLER if variant == "small" else 1
    shares = np.cumsum(1.0 / (np.arange(N_COLUMNS // smaller) + 10.0))
    w = rng.normal(size=(len(shares), n_labels)).astype(np.float32)
    alphabets = (
        Alphabet([f"y{y}" for y in range(n_labels)]),
        Alphabet([f"x{j}" for j in range(len(shares))]),
    )
    sizes = {"train": N_ROWS // smaller, "test": N_TEST // smaller}
    return {part: _rows(rng, size, shares / shares[-1], w, *alphabets) for part, size in sizes.items()}


def _rows(
    rng: np.random.Generator,
    n_rows: int,
    cumulative: NDArray[np.float64],
    w: NDArray[np.float32],
    labels: Alphabet,
    columns: Alphabet,
) -> Dataset:
    drawn = np.searchsorted(cumulative, rng.random((n_rows, DRAWN))).astype(np.int32)
    drawn.sort(axis=1)
    first = np.ones(drawn.shape, bool)  # of its column in the row
    first[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
    ptr = np.concatenate(([0], np.cumsum(first.sum(axis=1))))
    ids = drawn[first]
    # argmax of the scores with Gumbel noise is a draw from the softmax of the scores
    scores = np.add.reduceat(w[ids], ptr[:-1], axis=0) * SHARPNESS
    scores += rng.gumbel(size=scores.shape)
    return Dataset(
        seq_ptr=np.arange(n_rows + 1),
        attr_ptr=ptr,
        attr_ids=ids,
        labels=np.argmax(scores, axis=1).astype(np.int32),
        attribute_alphabet=columns,
        label_alphabet=labels,
    )
