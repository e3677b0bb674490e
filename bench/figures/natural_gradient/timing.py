"""Seconds of an epoch: of crfit's trainers, and of CRFsuite."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import crfit
from bench.figures.base import Row
from bench.figures.natural_gradient.entries import TIMED, Timed, rival_key
from bench.figures.natural_gradient.running import objective_of, trainer_of
from bench.problems import Loaded
from bench.tools import tool
from crfit.engines import EngineObjective

__all__ = ["RIVAL", "TIMED_EPOCHS", "our_seconds", "rival_seconds"]

RIVAL = "python_crfsuite"
#: Epochs that count; the first, which may have the calibration in it, comes before them.
TIMED_EPOCHS = 5


def our_seconds(loaded: Loaded, number: int) -> Iterator[Row]:
    """One row for each trainer: the median of its epochs.

    Every round has another order: what a trainer takes may depend on the one before it.
    """
    objectives = {threads: _ready(loaded, threads) for threads in sorted({entry.threads for entry in TIMED})}
    first = (number - 1) * len(TIMED) // 3 % len(TIMED)
    for entry in (*TIMED[first:], *TIMED[:first]):
        seconds = _epochs(objectives[entry.threads], entry)
        facts = {"row": "seconds", "variant": entry.key, "threads": entry.threads}
        yield {**facts, "default": trainer_of(entry.text) == trainer_of(entry.plain), **_told(seconds)}


def _ready(loaded: Loaded, threads: int) -> EngineObjective:
    """An objective whose tables are made."""
    objective = objective_of(loaded, threads)
    objective.value_and_grad(objective.xp.zeros(objective.n_weights))
    return objective


def _epochs(objective: EngineObjective, entry: Timed) -> list[float]:
    stop = crfit.Stop(max_iter=1 + TIMED_EPOCHS)
    history = crfit.train(objective, trainer_of(entry.text), stop=stop).history
    ends = [progress.seconds for progress in history if progress.iteration > 0]
    return [after - before for before, after in pairwise(ends)]


def rival_seconds(loaded: Loaded, algorithm: str) -> Row:
    """CRFsuite's epochs, by its own log, which has processor time; it has one thread."""
    parameters: dict[str, Any] = {"max_iterations": 1 + TIMED_EPOCHS}
    if algorithm == "l2sgd":
        parameters |= {"c2": loaded.problem.l2 / 2, "period": 10**6, "delta": 0}
    seconds = tool(RIVAL).epoch_seconds(loaded, algorithm, parameters)[1:]
    return {"row": "seconds", "variant": rival_key(algorithm), "threads": 1, **_told(seconds)}


def _told(seconds: list[float]) -> Row:
    return {"seconds": statistics.median(seconds), "least": min(seconds), "n_timed": len(seconds)}
