"""Weights while L-BFGS goes on: the paper's reason for clusters is that they run side by side.

A first run tells which weights become large; of the largest, some at equal distances in their order are
written down in a second run, after each iteration. Crossings are counted over pairs of weights that are not
small at the end: a pair has crossed if its order after a few iterations is not that at the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from crfit.callbacks import Callback
from crfit.runs import Run
from crfit.stopping import Progress
from numpy.typing import NDArray

import crfit
from bench.figures.base import Row
from bench.figures.clustered.competing import text_of
from bench.online_runs import trainer_of
from bench.problems import Loaded
from crfit.engines import EngineObjective
from crfit.errors import ConvergenceWarning

__all__ = ["CROSSINGS", "WEIGHT", "trajectories"]

WEIGHT, CROSSINGS = "weight", "crossings"  # values of the column ``row``
#: Weights that are drawn, of the largest so many.
DRAWN, LARGEST = 16, 400
#: Pairs that are looked at, among weights with at least this share of the largest; the fine iterations.
PAIRS, SHARE, AFTER = 20_000, 0.05, 5
ITERATIONS = 100


class _Weights(Callback):
    """Copies of some weights after each step, and of all of them after a few."""

    def __init__(self, chosen: NDArray[np.int64]) -> None:
        self._chosen = chosen
        self.values: list[NDArray[np.float64]] = []
        self.early: NDArray[np.float64] | None = None

    def on_step(self, run: Run, progress: Progress) -> None:
        self.values.append(np.asarray(run.weights)[self._chosen].copy())
        if progress.iteration == AFTER:
            self.early = np.asarray(run.weights).copy()


def trajectories(loaded: Loaded, objective: EngineObjective) -> Iterator[Row]:
    """Rows of some weights, and one about crossings."""
    end = _run(objective, _Weights(np.empty(0, np.int64)))
    n_state = objective.layout.n_state_weights
    largest = np.argsort(-np.abs(end[:n_state]), kind="stable")[:LARGEST]
    chosen = largest[np.linspace(0, len(largest) - 1, DRAWN).astype(np.int64)]
    watch = _Weights(chosen)
    _run(objective, watch)
    names = loaded.train.attribute_alphabet.strings()
    labels = loaded.train.label_alphabet.strings()
    one_vector = n_state == len(names)
    for column, place in enumerate(chosen.tolist()):
        name = names[place] if one_vector else f"{names[place // len(labels)]} {labels[place % len(labels)]}"
        yield {
            "row": WEIGHT,
            "feature": name,
            "values": text_of(values[column] for values in watch.values),
        }
    if watch.early is not None:
        pairs, share = _crossings(watch.early[:n_state], end[:n_state])
        yield {"row": CROSSINGS, "after": AFTER, "pairs": pairs, "share": share}


def _run(objective: EngineObjective, watch: _Weights) -> NDArray[np.float64]:
    stop = crfit.Stop(grad_inf=0.0, max_iter=ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(crfit.train(objective, trainer_of("lbfgs"), stop=stop, callbacks=[watch]).weights)


def _crossings(early: NDArray[np.float64], end: NDArray[np.float64]) -> tuple[int, float]:
    """Pairs of different weights, and the share of them that changed their order."""
    large = np.flatnonzero(np.abs(end) >= SHARE * np.abs(end).max())
    drawn = np.random.default_rng(0).choice(large, size=(PAIRS, 2))
    first, second = drawn[drawn[:, 0] != drawn[:, 1]].T
    before, after = early[first] - early[second], end[first] - end[second]
    apart = (before != 0.0) & (after != 0.0)
    crossed = (before * after < 0.0)[apart]
    return int(apart.sum()), float(crossed.mean()) if apart.any() else 0.0
