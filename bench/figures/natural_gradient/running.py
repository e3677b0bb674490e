"""One training with test scores after its epochs; many of them in a few processes at a time.

Token errors after each epoch are written as whole numbers in one text, so that a run is one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from crfit.callbacks import Callback
from crfit.fitting import HeldOutScorer
from crfit.stopping import Progress

import crfit
from bench.figures.base import Row
from bench.figures.natural_gradient.entries import WEIGHTS
from bench.online_runs import Worker, in_processes, trainer_of
from bench.problems import Loaded, Problem
from bench.setting import BenchError
from crfit import trainers
from crfit.engines import EngineObjective

if TYPE_CHECKING:
    from crfit.runs import Run

__all__ = ["EPOCHS", "TRAINING_EPOCHS", "objective_of", "run_seeds", "trained"]

#: Epochs with test scores, as in the paper's figures, and those with scores on the training part.
EPOCHS = 50
TRAINING_EPOCHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50)


def objective_of(loaded: Loaded, text: str, threads: int) -> EngineObjective:
    """What a trainer is given: the problem, with as many weights as the paper has.

    Trainers that know no penalty, such as pa, are given none.
    """
    info = trainers.info_of(trainer_of(text))
    handles = info is None or "l2" in info.handles
    fit = loaded if handles else replace(loaded, problem=replace(loaded.problem, l2=0.0))
    objective, name = fit.objective(threads), loaded.problem.name
    if objective.n_weights != WEIGHTS.get(name, objective.n_weights):
        raise BenchError(
            f"{name} has {objective.n_weights:,} weights, and not {WEIGHTS[name]:,} as published"
        )
    return objective


class _Errors(Callback):
    """Counts wrong tokens after each iteration: in the test part, and less often in the training part."""

    def __init__(self, test: HeldOutScorer, train: HeldOutScorer | None) -> None:
        self.test, self.train = test, train
        self.test_errors: list[int] = []
        self.train_errors: list[int] = []
        self.passes: list[float] = []

    def on_step(self, run: Run, progress: Progress) -> None:
        if not 1 <= progress.iteration <= EPOCHS:
            return
        self.test_errors.append(_errors(self.test, run.weights))
        self.passes.append(progress.passes)
        if self.train is not None and progress.iteration in TRAINING_EPOCHS:
            self.train_errors.append(_errors(self.train, run.weights))


def _errors(scorer: HeldOutScorer, weights: np.ndarray) -> int:
    scores = scorer(weights)
    return scores.n_tokens - scores.n_correct_tokens


def trained(loaded: Loaded, objective: EngineObjective, text: str, seed: int, most: int, train: bool) -> Row:
    """Train from zero weights on one thread for a number of epochs; a batch trainer until its rule ends it.

    Parameters
    ----------
    loaded : Loaded
        The data.
    objective : EngineObjective
        Of it, on one thread.
    text : str
        Trainer and options.
    seed : int
        For the order of the sequences.
    most : int
        Epochs, or iterations at most.
    train : bool
        Whether errors in the training part are counted too.
    """
    test = HeldOutScorer(loaded.part("test"), objective.layout, n_threads=1)
    on_train = HeldOutScorer(loaded.train, objective.layout, n_threads=1)
    errors = _Errors(test, on_train if train else None)
    trainer = trainer_of(text, seed)
    online = "seed" in trainers.options_of(trainer)
    stop = crfit.Stop(max_iter=most, change=None) if online else crfit.Stop(max_iter=most)
    result = crfit.train(objective, trainer, stop=stop, callbacks=[errors])
    final = test(result.weights)
    row = {
        "row": "run",
        "seed": seed,
        "status": result.reason.value,
        "words": result.message,
        "epochs": result.iterations,
        "first_rate": next((p.step_size for p in result.history if p.iteration > 0), None),
        "objective": result.objective,
        "n_weights": objective.n_weights,
        "n_tokens": final.n_tokens,
        "final_errors": final.n_tokens - final.n_correct_tokens,
        "f1": final.f1,
        "errors": _text(errors.test_errors),
        "train_seconds": result.seconds,
    }
    if train:
        row |= {
            "n_train_tokens": loaded.train.n_tokens,
            "final_train_errors": _errors(on_train, result.weights),
            "train_errors": _text(errors.train_errors),
        }
    if not online:
        row["passes"] = _text(errors.passes)
    return row


def _text(values: Sequence[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


def run_seeds(
    problem: Problem,
    folder: Path | None,
    text: str,
    seeds: Sequence[int],
    most: int,
    n_train: int,
    workers: int,
) -> Iterator[Row]:
    """Train with every seed, with errors in the training part for the first few.

    Parameters
    ----------
    problem : Problem
        What to read and minimise.
    folder : Path or None
        Where the corpora are.
    text : str
        Trainer and options.
    seeds : sequence of int
        One run each.
    most : int
        Epochs of a run, or iterations at most.
    n_train : int
        Runs with errors in the training part.
    workers : int
        Processes; with one the runs are made in this.
    """
    orders = [(text, seed, most, number < n_train) for number, seed in enumerate(seeds)]
    yield from in_processes(partial(_worker, problem, folder, text), orders, workers)


def _worker(problem: Problem, folder: Path | None, text: str) -> Worker:
    loaded = problem.load(folder)
    objective = objective_of(loaded, text, 1)
    return lambda order: trained(loaded, objective, *order)
