"""Held-out scores as sums over sequences, so that a bootstrap over sequences costs no decoding.

A metric needs a few counts per sequence; the score is a function of their sums:

    f1                  gold, predicted and correct spans       200 correct / (gold + predicted)
    accuracy            tokens, correct tokens                  100 correct / tokens
    sequence_accuracy   1, 1 if every label is correct          100 correct / sequences

The score of a candidate is the mean over its folds. Its bootstrap draws sequences of each fold with
replacement, the same ones for every candidate, so that differences of candidates have intervals too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crfit.data import Dataset
from crfit.data.label_sets import known_runs
from crfit.evaluation.spans import detect_scheme, find_spans, span_rules

Counts = NDArray[np.int32]

#: Draws of the bootstrap, and the percentiles of an interval.
DRAWS = 500
LOW, HIGH = 2.5, 97.5


def count(metric: str, dataset: Dataset, predicted: NDArray[np.integer]) -> Counts:
    """Counts of each sequence, int32[n_sequences, n_counts]; positions without a known label are left out."""
    assert dataset.labels is not None
    at, ptr, of = known_runs(dataset)
    gold, found, n = dataset.labels[at], predicted[at], dataset.n_sequences
    sequence = np.repeat(of, np.diff(ptr))  # of each token
    if metric == "f1":
        names = dataset.label_alphabet.strings()
        rules = span_rules(names, detect_scheme(names))
        sides = [np.stack(find_spans(side, ptr, rules), axis=1) for side in (gold, found)]
        ours, theirs = ({tuple(span) for span in side.tolist()} for side in sides)
        right = np.array(sorted(ours & theirs), dtype=np.int64).reshape(-1, 3)
        parts = [sequence[side[:, 0]] for side in (*sides, right)]
    else:
        correct = gold == found
        parts = [sequence, sequence[correct]]
    table = np.stack([np.bincount(part, minlength=n) for part in parts], axis=1)
    if metric == "sequence_accuracy":
        table = np.stack([table[:, 0] > 0, (table[:, 0] > 0) & (table[:, 0] == table[:, 1])], axis=1)
    return table.astype(np.int32)


def score(metric: str, sums: NDArray[np.floating] | NDArray[np.integer]) -> NDArray[np.float64]:
    """Percentages from sums of counts along the last axis."""
    sums = np.asarray(sums, dtype=np.float64)
    if metric == "f1":
        top, bottom = 200.0 * sums[..., 2], sums[..., 0] + sums[..., 1]
    else:
        top, bottom = 100.0 * sums[..., 1], sums[..., 0]
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def bootstrap(metric: str, folds: Sequence[Sequence[Counts]], seed: int) -> NDArray[np.float64]:
    """Scores of candidates in each draw, float64[n_candidates, DRAWS]; ``folds[f][c]`` are counts."""
    rng = np.random.default_rng([seed, 0xB007])
    total = np.zeros((len(folds[0]), DRAWS))
    for fold in folds:
        n = len(fold[0])
        table = np.concatenate(fold, axis=1).astype(np.float64)  # [n, candidates * counts]
        for k in range(DRAWS):
            times = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
            total[:, k] += score(metric, (times @ table).reshape(len(fold), -1))
    return total / len(folds)
