"""Generated corpora, which need no files: recipe lines, chains of any size, rows of a classifier."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from crfit import Dataset
from crfit.data.alphabet import Alphabet
from crfit.data.text import Input
from crfit.demo import recipe_lines, write_columns

N_TRAIN, N_TEST = 4000, 1000


def recipes(paths: Mapping[str, Path], variant: str) -> dict[str, Input]:
    lines, texts = recipe_lines(N_TRAIN + N_TEST), {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.txt"
        for part, made in {"train": lines[:N_TRAIN], "test": lines[N_TRAIN:]}.items():
            write_columns(path, made)
            texts[part] = Input(f"recipes-{part}", path.read_bytes())
    return texts


# --- chains ------------------------------------------------------------------------------------------------

N_ATTRIBUTES, CHAIN_SEED = 50, 11
#: Default number of sequences, length and labels.
USUAL = (200, 20, 5)


def chains(n_sequences: int, length: int, n_labels: int, seed: int = CHAIN_SEED) -> Dataset:
    """Sequences of one length with random attributes and labels: the time of a call depends only on sizes."""
    rng, n_tokens = np.random.default_rng(seed), n_sequences * length
    return Dataset(
        seq_ptr=np.arange(n_sequences + 1) * length,
        attr_ptr=np.arange(n_tokens + 1),
        attr_ids=rng.integers(0, N_ATTRIBUTES, n_tokens).astype(np.int32),
        labels=rng.integers(0, n_labels, n_tokens).astype(np.int32),
        attribute_alphabet=Alphabet([f"x{j}" for j in range(N_ATTRIBUTES)]),
        label_alphabet=Alphabet([f"y{y}" for y in range(n_labels)]),
    )


N_LINKED = 10_000


def linked_chains(n_sequences: int, length: int, n_labels: int, n_attributes: int, n_after: int) -> Dataset:
    """Sequences in which each label has `n_after` labels that follow it, with attributes that tell little."""
    rng, n_tokens = np.random.default_rng(CHAIN_SEED), n_sequences * length
    after = (np.arange(n_labels)[:, None] + rng.permutation(n_labels)[:n_after]) % n_labels
    labels = np.empty((n_sequences, length), dtype=np.int32)
    labels[:, 0] = rng.integers(0, n_labels, n_sequences)
    for t in range(1, length):
        labels[:, t] = after[labels[:, t - 1], rng.integers(0, n_after, n_sequences)]
    # Few attributes are frequent, as in text; an attribute is seen with a few labels only.
    own = rng.zipf(1.3, (n_tokens, n_attributes)) + labels.reshape(-1, 1) // 4
    return Dataset(
        seq_ptr=np.arange(n_sequences + 1) * length,
        attr_ptr=np.arange(n_tokens + 1) * n_attributes,
        attr_ids=(own % N_LINKED).astype(np.int32).ravel(),
        labels=labels.ravel(),
        attribute_alphabet=Alphabet([f"x{j}" for j in range(N_LINKED)]),
        label_alphabet=Alphabet([f"y{y}" for y in range(n_labels)]),
    )


def made_chains(variant: str) -> dict[str, Dataset]:
    return {"train": chains(*USUAL), "test": chains(*USUAL, seed=CHAIN_SEED + 1)}


# --- rows of a classifier ----------------------------------------------------------------------------------

N_ROWS, N_TEST_ROWS, N_COLUMNS, DRAWN, SHARPNESS = 1_000_000, 20_000, 100_000, 28, 0.6
#: ``small`` is like ``binary`` with a fiftieth of rows and columns.
LABELS, SMALLER = {"binary": 2, "ten": 10, "small": 2}, 50
ROW_SEED = 7


def zipf_rows(variant: str) -> dict[str, Dataset]:
    """Rows with about twenty columns each; labels are drawn from what normal weights give.

    Column j is drawn with a probability in proportion to 1 / (j + 10), as words are; a row has `DRAWN` draws
    and keeps each column once, and p(y | x) = exp(SHARPNESS sum_{j in x} w_jy) / Z(x).
    """
    rng = np.random.default_rng(ROW_SEED)
    n_labels, smaller = LABELS[variant], SMALLER if variant == "small" else 1
    shares = np.cumsum(1.0 / (np.arange(N_COLUMNS // smaller) + 10.0))
    w = rng.normal(size=(len(shares), n_labels)).astype(np.float32)
    labels = Alphabet([f"y{y}" for y in range(n_labels)])
    columns = Alphabet([f"x{j}" for j in range(len(shares))])
    parts = {}
    for part, n_rows in {"train": N_ROWS // smaller, "test": N_TEST_ROWS // smaller}.items():
        drawn = np.searchsorted(shares / shares[-1], rng.random((n_rows, DRAWN))).astype(np.int32)
        drawn.sort(axis=1)
        first = np.ones(drawn.shape, bool)  # of its column in the row
        first[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
        ptr, ids = np.concatenate(([0], np.cumsum(first.sum(axis=1)))), drawn[first]
        # argmax of the scores with Gumbel noise is a draw from the softmax of the scores
        scores = np.add.reduceat(w[ids], ptr[:-1], axis=0) * SHARPNESS
        scores += rng.gumbel(size=scores.shape)
        parts[part] = Dataset(
            seq_ptr=np.arange(n_rows + 1),
            attr_ptr=ptr,
            attr_ids=ids,
            labels=np.argmax(scores, axis=1).astype(np.int32),
            attribute_alphabet=columns,
            label_alphabet=labels,
        )
    return parts
