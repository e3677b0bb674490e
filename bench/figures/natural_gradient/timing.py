"""Seconds of an epoch of crfit's trainers."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import pairwise

import crfit
from bench.figures.base import Row
from bench.figures.natural_gradient.entries import TIMED, Timed
from bench.figures.natural_gradient.running import objective_of, trainer_of
from bench.problems import Loaded
from crfit.engines import EngineObjective

__all__ = ["TIMED_EPOCHS", "our_seconds", "told"]

#: Epochs that count; the first, which may have the calibration in it, comes before them.
TIMED_EPOCHS = 5


def our_seconds(loaded: Loaded, number: int) -> Iterator[Row]:
    """One row for each trainer: the median of its epochs.

    Every round has another order: what a trainer takes may depend on the one before it.
    """
    first = (number - 1) * len(TIMED) // 3 % len(TIMED)
    for entry in (*TIMED[first:], *TIMED[:first]):
        objective = objective_of(loaded, entry.text, entry.threads)
        # Makes the tables, which no trainer should pay for.
        objective.value_and_grad(objective.xp.zeros(objective.n_weights))
        seconds = _epochs(objective, entry)
        facts = {"row": "seconds", "measured": entry.key, "threads": entry.threads}
        yield {**facts, "default": trainer_of(entry.text) == trainer_of(entry.plain), **told(seconds)}


def _epochs(objective: EngineObjective, entry: Timed) -> list[float]:
    stop = crfit.Stop(max_iter=1 + TIMED_EPOCHS)
    history = crfit.train(objective, trainer_of(entry.text), stop=stop).history
    ends = [progress.seconds for progress in history if progress.iteration > 0]
    return [after - before for before, after in pairwise(ends)]


def told(seconds: list[float]) -> Row:
    """The columns that tell of some epochs."""
    return {"seconds": statistics.median(seconds), "least": min(seconds), "n_timed": len(seconds)}
