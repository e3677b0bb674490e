"""Constants that are chosen without the test part, and the runs with them.

The last tenth of the training sequences is held out. Every setting of a grid is trained on the others with a
few seeds, as far as it is to be good for, and the one with the highest mean F1 on the held-out sequences is
trained on the whole training part and scored on the test part as any other. The first of equal ones counts. A
trial that diverges has an F1 of 0. The grids were drawn up after some runs that had been scored on the test
part; the choice within them is made without it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from crfit.fitting import HeldOutScorer

from bench.figures.aitken.running import TOLERANCE, online_steps, run_seeds
from bench.figures.base import Row
from bench.online_runs import Worker, in_processes
from bench.problems import Loaded, Problem
from crfit import Dataset

__all__ = ["SHARE", "best_setting", "divided", "run_tuned"]

#: Of the training sequences that are held out, the last.
SHARE = 0.1


def divided(loaded: Loaded) -> tuple[Loaded, Dataset]:
    """The problem on the first sequences of its training part, and the sequences that are held out."""
    train = loaded.train
    cut = train.n_sequences - int(SHARE * train.n_sequences)
    first, held_out = (train.subset(np.arange(*ends)) for ends in ((0, cut), (cut, train.n_sequences)))
    return replace(loaded, train=first), held_out


def best_setting(rows: Sequence[Row]) -> tuple[str, float]:
    """The setting with the highest mean over its tries, and that mean.

    Parameters
    ----------
    rows : sequence of Row
        One for each setting.
    """
    best = max(rows, key=lambda row: float(row["held_out_f1"]))
    return best["setting"], best["held_out_f1"]


def run_tuned(
    problem: Problem,
    folder: Path | None,
    grid: Sequence[str],
    horizon: float,
    n_tries: int,
    n_seeds: int,
    most: int,
    workers: int,
) -> Iterator[Row]:
    """A row for each setting that is tried, then one for each run with the best.

    Parameters
    ----------
    problem : Problem
        What to read and minimise.
    folder : Path or None
        Where the corpora are.
    grid : sequence of str
        Trainers with options.
    horizon : float
        Passes after which the trials are judged.
    n_tries, n_seeds : int
        Seeds of a trial, and of the runs.
    most : int
        Passes of a run.
    workers : int
        Processes.
    """
    orders = [(text, seed, horizon) for text in grid for seed in range(1, n_tries + 1)]
    found: dict[str, list[float]] = {text: [] for text in grid}
    for row in in_processes(partial(_worker, problem, folder), orders, workers):
        found[row["setting"]].append(row["f1"])
    rows = [
        {
            "row": "tuning",
            "setting": text,
            "held_out_f1": statistics.fmean(scores),
            "f1": " ".join(f"{score:.8g}" for score in scores),
        }
        for text, scores in found.items()
    ]
    yield from rows
    chosen, _ = best_setting(rows)
    for row in run_seeds(problem, folder, chosen, range(1, n_seeds + 1), most, workers):
        yield {**row, "setting": chosen}


def _worker(problem: Problem, folder: Path | None) -> Worker:
    loaded, held_out = divided(problem.load(folder))
    objective = loaded.objective(1)
    scorer = HeldOutScorer(held_out, objective.layout, n_threads=1)

    def trial(order: tuple[str, int, float]) -> Row:
        text, seed, horizon = order
        f1 = 0.0
        for passes, step in online_steps(objective, text, seed, math.ceil(horizon)):
            if step.stop is not None:
                break
            if passes >= horizon - TOLERANCE:
                f1 = scorer(step.w).f1
                break
        return {"setting": text, "f1": f1}

    return trial
