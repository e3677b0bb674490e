"""Labellings with the scores that Wapiti reports.

With the score psi[t] of the labels at positions t - 1 and t, the score of a labelling is the sum of psi. With
posterior decoding psi[t] is the probability of the label at position t, and the score is their product.
Labels that are forced give all others at their position a score of minus infinity, or probability 0.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfit.data import Dataset
from crfit.engines.reference.decoding import best_paths
from crfit.engines.reference.lattice import ScoreTables, Table
from crfit.model import Model

__all__ = ["Labelling", "labellings"]


class Labelling(NamedTuple):
    """Label ids, the score of the sequence, and that of each position; scores are NaN if not asked for."""

    labels: list[int]
    score: float
    scores: list[float]


def labellings(
    model: Model,
    block: Dataset,
    n: int,
    *,
    scores: bool = False,
    posterior: bool = False,
    forced: NDArray[np.int32] | None = None,
) -> Iterator[list[Labelling]]:
    """Yield up to `n` best labellings of each sequence, best first.

    `forced` has a label id for each position; ids that the model does not have leave the position free.
    """
    if not (scores or posterior or forced is not None):
        yield from _without_scores(model, block, n)
        return
    Y, order = model.layout.n_labels, model.layout.order
    mask = np.zeros((block.n_tokens, Y))
    if forced is not None:
        mask[(forced < Y)[:, None] & (np.arange(Y) != forced[:, None])] = -np.inf
    if posterior:
        with np.errstate(divide="ignore"):
            mask += np.log(model.marginals_dataset(block))
        order = 1
    tables = ScoreTables(block, model.layout, np.asarray(model.weights), mask)
    for i, (a, b) in enumerate(zip(block.seq_ptr[:-1], block.seq_ptr[1:], strict=True)):
        rows = mask[a:b]
        psi: list[Table] = (
            [rows[0], *(np.broadcast_to(row, (Y, Y)) for row in rows[1:])] if posterior else tables(i)
        )
        yield [_scored(labels.tolist(), psi, order, posterior) for labels, _ in best_paths(psi, order, n)]


def _scored(labels: list[int], psi: list[Table], order: int, posterior: bool) -> Labelling:
    scores = [float(table[tuple(labels[max(0, t - order) : t + 1])]) for t, table in enumerate(psi)]
    total = sum(scores)
    if posterior:
        return Labelling(labels, float(np.exp(total)), np.exp(scores).tolist())
    return Labelling(labels, total, scores)


def _without_scores(model: Model, block: Dataset, n: int) -> Iterator[list[Labelling]]:
    """By the engine, which is much faster."""
    if n > 1:
        for paths in model.nbest_dataset(block, n):
            yield [Labelling(ids.tolist(), np.nan, [np.nan] * len(ids)) for ids, _ in paths]
        return
    ids = model.tag_dataset(block)
    for a, b in zip(block.seq_ptr[:-1], block.seq_ptr[1:], strict=True):
        yield [Labelling(ids[a:b].tolist(), np.nan, [np.nan] * int(b - a))]
