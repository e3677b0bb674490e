"""Answers about many sequences: labels, marginals, n-best labellings and spans, and as JSON.

``crfit tag`` prints them, ``crfit serve`` sends them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfit.data import Dataset
from crfit.data.dataset import blocks as blocks_of
from crfit.model.distribution import Confidence, Span
from crfit.model.model import Model
from crfit.model.tagging import Decoding

#: Tokens tagged and items classified at a time: the marginals of a long file may not fit into memory.
BLOCK_TOKENS, BLOCK_ITEMS = 1 << 16, 1 << 14
#: Given instead of labels below the threshold.
ABSTAIN = "?"


@dataclass(frozen=True)
class Style:
    """What to answer: whether with marginals, number of labellings.

    `spans` gives these instead of labels, those of at least the probability `threshold`. In text,
    `all_marginals` adds the marginals of all labels, and `joint` is between a label and its probability.
    """

    names: list[str]
    marginals: bool = False
    nbest: int | None = None
    all_marginals: bool = False
    spans: bool = False
    decoding: Decoding = "best_path"
    threshold: float | None = None
    abstain: str = ABSTAIN
    joint: str = "/"


@dataclass(frozen=True)
class Answer:
    """Labellings of one sequence; `spans` are those of each.

    `withheld` marks labels below the threshold. `number` of the sequence in the input, and `confidence` if
    only the least confident sequences are printed.
    """

    paths: list[tuple[list[int], float]]
    marginals: NDArray[np.float64] | None
    spans: list[list[Span]] | None = None
    withheld: list[bool] | None = None
    number: int = 0
    confidence: Confidence | None = None

    def labels(self, style: Style) -> list[list[str]]:
        """Names of the labels of each labelling."""
        named = [[style.names[i] for i in ids] for ids, _ in self.paths]
        if self.withheld is not None:
            pairs = zip(named[0], self.withheld, strict=True)
            named[0] = [style.abstain if withheld else name for name, withheld in pairs]
        return named


def answers(
    model: Model, dataset: Dataset, style: Style, n_threads: int, number: int = 0
) -> Iterator[Answer]:
    """Tag block by block; the first sequence has this number."""
    for block in blocks(dataset):
        ends = list(pairwise(block.seq_ptr.tolist()))
        wanted = style.marginals or (style.threshold is not None and not style.spans)
        table = model.marginals_dataset(block, n_threads=n_threads) if wanted else None
        withheld = None
        if style.nbest is not None:
            found = model.nbest_dataset(block, style.nbest, n_threads=n_threads)
            paths = [[(ids.tolist(), log_p) for ids, log_p in best] for best in found]
        else:
            ids = model.tag_dataset(block, decoding=style.decoding, n_threads=n_threads)
            log_ps = [math.nan] * block.n_sequences
            if style.marginals:
                labelled = replace(block, labels=ids)
                log_ps = model.log_probability_dataset(labelled, n_threads=n_threads).tolist()
            flat = ids.tolist()
            paths = [[(flat[a:b], log_p)] for (a, b), log_p in zip(ends, log_ps, strict=True)]
            if table is not None and style.threshold is not None and not style.spans:
                withheld = (table[np.arange(len(ids)), ids] < style.threshold).tolist()
        spans = _spans(model, block, style, n_threads) if style.spans else None
        for i, ((a, b), best) in enumerate(zip(ends, paths, strict=True)):
            yield Answer(
                best,
                table[a:b] if table is not None and style.marginals else None,
                None if spans is None else spans[i],
                None if withheld is None else withheld[a:b],
                number + i,
            )
        number += block.n_sequences


def _spans(model: Model, block: Dataset, style: Style, n_threads: int) -> list[list[list[Span]]]:
    """Spans of each labelling of each sequence that reach the threshold."""
    if style.nbest is None:
        found = [[spans] for spans in model.spans_many(block, n_threads=n_threads)]
    else:
        several = model.spans_many(block, nbest=style.nbest, n_threads=n_threads)
        found = [[spans for spans, _ in best] for best in several]
    least = style.threshold or 0.0
    return [[[span for span in path if span.probability >= least] for path in paths] for paths in found]


def blocks(dataset: Dataset) -> Iterator[Dataset]:
    """Blocks of consecutive sequences with about `BLOCK_TOKENS` tokens."""
    return blocks_of(dataset, BLOCK_TOKENS)


def record(answer: Answer, style: Style, tokens: object = None) -> dict[str, Any]:
    """An answer as an object of JSON; `tokens` come first, unless None."""
    found: dict[str, Any] = {}
    if answer.confidence is not None:
        found["sequence"] = answer.number
    if tokens is not None:
        found["tokens"] = tokens
    labels, p = answer.labels(style), [math.exp(log_p) for _, log_p in answer.paths]
    found["labels"] = labels[0]
    if answer.spans is not None:
        found["spans"] = [span._asdict() for span in answer.spans[0]]
    if style.marginals or style.nbest is not None:
        found["probability"] = p[0]
    if answer.confidence is not None:
        found |= {name: x if math.isfinite(x) else None for name, x in answer.confidence._asdict().items()}
    if answer.marginals is not None:
        found["marginals"] = [dict(zip(style.names, p, strict=True)) for p in answer.marginals.tolist()]
    if style.nbest is not None:
        paths = [{"labels": one, "probability": chance} for one, chance in zip(labels, p, strict=True)]
        for path, spans in zip(paths, answer.spans or (), strict=False):
            path["spans"] = [span._asdict() for span in spans]
        found["nbest"] = paths
    return found


def nothing(style: Style) -> dict[str, Any]:
    """The answer to a sequence without tokens."""
    found: dict[str, Any] = {"labels": []}
    if style.spans:
        found["spans"] = []
    if style.marginals or style.nbest is not None:
        found["probability"] = 1.0
    if style.marginals:
        found["marginals"] = []
    if style.nbest is not None:
        found["nbest"] = [{"labels": [], "probability": 1.0, **({"spans": []} if style.spans else {})}]
    return found


@dataclass(frozen=True)
class Class:
    """The class of an item, and with marginals the probability of each class."""

    label: str
    marginals: list[float] | None = None
    probability: float | None = None

    def record(self, names: list[str]) -> dict[str, Any]:
        """As an object of JSON."""
        found: dict[str, Any] = {"label": self.label}
        if self.marginals is not None:
            found |= {"probability": self.probability}
            found["probabilities"] = dict(zip(names, self.marginals, strict=True))
        return found


def classes(model: Model, dataset: Dataset, *, marginals: bool, n_threads: int) -> Iterator[Class]:
    """Classify block by block."""
    names = model.labels
    for start in range(0, dataset.n_sequences, BLOCK_ITEMS):
        end = min(start + BLOCK_ITEMS, dataset.n_sequences)
        block = dataset if end - start == dataset.n_sequences else dataset.subset(np.arange(start, end))
        ids = model.tag_dataset(block, n_threads=n_threads).tolist()
        if marginals:
            table = model.marginals_dataset(block, n_threads=n_threads).tolist()
            yield from (Class(names[i], p, p[i]) for i, p in zip(ids, table, strict=True))
        else:
            yield from (Class(names[i]) for i in ids)
