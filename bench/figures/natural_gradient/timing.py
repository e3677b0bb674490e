"""Seconds of an epoch of crfit's trainers."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures.base import Row
from bench.figures.natural_gradient.entries import TIMED
from bench.figures.natural_gradient.running import objective_of
from bench.online_runs import epoch_seconds, told, trainer_of
from bench.problems import Loaded

__all__ = ["our_seconds"]


def our_seconds(loaded: Loaded, number: int) -> Iterator[Row]:
    """One row for each trainer: the median of its epochs.

    Every round has another order: what a trainer takes may depend on the one before it.
    """
    first = (number - 1) * len(TIMED) // 3 % len(TIMED)
    for entry in (*TIMED[first:], *TIMED[:first]):
        objective = objective_of(loaded, entry.text, entry.threads)
        seconds = epoch_seconds(objective, entry.text)
        facts = {"row": "seconds", "measured": entry.key, "threads": entry.threads}
        yield {**facts, "default": trainer_of(entry.text) == trainer_of(entry.plain), **told(seconds)}
