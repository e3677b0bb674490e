"""Test scores while training: F1 of one topic against the rest, F1 of names by their type."""

from __future__ import annotations

import numpy as np
from crfit.fitting import HeldOutScorer

from bench.figures.clustered.running import Score
from bench.problems import Loaded
from bench.setting import THREADS
from bench.tools.base import linear
from crfit.engines import EngineObjective
from crfit.vectors import Vector

__all__ = ["F1", "name_scores", "topic_score"]

F1 = "f1"


def topic_score(loaded: Loaded) -> Score:
    """F1, in percent, of the second label: a document has it where x.w > 0."""
    test = loaded.part("test")
    assert test.labels is not None
    X, gold = linear.matrix(test), np.equal(test.labels, 1)

    def score(w: Vector) -> dict[str, float]:
        found = X @ w > 0.0
        both = float((found & gold).sum())
        total = float(found.sum() + gold.sum())
        return {F1: 200.0 * both / total if total else 0.0}

    return score


def name_scores(loaded: Loaded, objective: EngineObjective) -> Score:
    """F1 over all spans, and of each type of span."""
    scorer = HeldOutScorer(loaded.part("test"), objective.layout, n_threads=THREADS)

    def score(w: Vector) -> dict[str, float]:
        scores = scorer(w)
        return {F1: scores.f1, **{f"{F1}_{one.name}": one.f1 for one in scores.by_type}}

    return score
