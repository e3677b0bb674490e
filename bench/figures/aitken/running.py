"""One training that is looked at after parts of a pass and after whole passes; many of them, two at a time.

A look costs as much as some passes, so that there are few: more where the curves move, and one after each of
the last ten passes, whose scores tell whether a run has settled. Numbers of a run are written as texts, so
that a run is one row.

A pass of an on-line trainer is as many sequences as the data has; what its calibration visits before the
first of them is not counted, as it is not in the paper. A pass of L-BFGS is an evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from crfit.fitting import HeldOutScorer

from bench.figures.aitken.entries import WEIGHTS
from bench.figures.base import Row
from bench.online_runs import Worker, in_processes, trainer_of
from bench.problems import Loaded, Problem
from bench.setting import BenchError

if TYPE_CHECKING:
    from crfit.engines import EngineObjective
    from crfit.trainers import Step

__all__ = [
    "LAST",
    "LOOKS",
    "TOLERANCE",
    "batch_steps",
    "objective_of",
    "online_steps",
    "run_seeds",
    "trained",
]

#: Passes at the end of a run that are scored one by one.
LAST = 10
#: Reports in the first pass.
PARTS = 20
#: Passes after which the objective and scores on both parts are taken; the paper's are 0.1, 0.35, 1, 4, 50.
LOOKS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1, 2, 3, 4, 6, 8, 10, 14, 20, 28, 40, 50, 70, 100, 140, 200)
#: A report lies between two steps, which have up to 50 sequences: this part of a pass from where it should.
TOLERANCE = 0.02


def objective_of(problem: str, loaded: Loaded, threads: int) -> EngineObjective:
    """The function to minimise, with as many weights as the paper has."""
    objective = loaded.objective(threads)
    if objective.n_weights != WEIGHTS.get(problem, objective.n_weights):
        raise BenchError(
            f"{problem} has {objective.n_weights:,} weights, and not {WEIGHTS[problem]:,} as published"
        )
    return objective


def online_steps(objective: EngineObjective, text: str, seed: int, most: int) -> Iterator[tuple[float, Step]]:
    """Passes and steps of a run, with many reports in the first pass and one after each of the others."""
    w, state = objective.xp.zeros(objective.n_weights), None
    for epochs, report in ((1, PARTS), (most, 1)):
        trainer = trainer_of(f"{text}:epochs={epochs}:report={report}", seed)
        for step in trainer.steps(objective, w, state):
            state = step.state
            yield step.state["k"] / objective.n_sequences, step
            if step.stop is not None:
                return


def batch_steps(objective: EngineObjective, text: str, most: int) -> Iterator[tuple[float, Step]]:
    """Passes and steps of a trainer that evaluates the objective."""
    begin = objective.counts.sequences
    for step in trainer_of(text).steps(objective, objective.xp.zeros(objective.n_weights)):
        passes = (objective.counts.sequences - begin) / objective.n_sequences
        yield passes, step
        if passes >= most or step.stop is not None:
            return


def trained(
    loaded: Loaded, objective: EngineObjective, text: str, seed: int | None, most: int, thorough: bool
) -> Row:
    """Train from zero weights and look.

    Parameters
    ----------
    loaded : Loaded
        The data.
    objective : EngineObjective
        Of it.
    text : str
        Trainer and options.
    seed : int or None
        For the order of the sequences; None for a trainer that has none.
    most : int
        Passes.
    thorough : bool
        Whether scores on the training part are taken too.
    """
    test, train = (
        HeldOutScorer(loaded.part(part), objective.layout, n_threads=objective.n_threads)
        for part in ("test", "train")
    )
    looks, scored, full, train_f1 = list(LOOKS), [], [], []
    if seed is None:
        steps, one_by_one = batch_steps(objective, text, most), most
    else:
        steps, one_by_one = online_steps(objective, text, seed, most), most - LAST
    words = "ended after its passes"
    for passes, step in steps:
        words = step.message or words
        if step.initial or step.stop is not None:
            continue
        here = passes >= looks[0] - TOLERANCE if looks else False
        if here or passes > one_by_one:
            scores = test(step.w)
            scored.append((passes, scores.f1, scores.n_tokens - scores.n_correct_tokens))
        if here:
            looks = [look for look in looks if look > passes + TOLERANCE]
            value = objective.value(step.w) if step.objective is None else step.objective
            full.append((passes, value))
            if thorough:
                train_f1.append(train(step.w).f1)
    row = {
        "row": "run",
        "seed": seed or 0,
        "words": words,
        "n_weights": objective.n_weights,
        "n_tokens": loaded.part("test").n_tokens,
        "passes": _text([passes for passes, _, _ in scored]),
        "f1": _text([f1 for _, f1, _ in scored]),
        "errors": _text([errors for _, _, errors in scored]),
        "full_passes": _text([passes for passes, _ in full]),
        "objectives": _text([value for _, value in full]),
    }
    return row | {"train_f1": _text(train_f1)} if thorough else row


def _text(values: Sequence[float]) -> str:
    return " ".join(f"{value:.8g}" for value in values)


def run_seeds(
    problem: Problem,
    folder: Path | None,
    entry_text: str,
    seeds: Sequence[int | None],
    most: int,
    workers: int,
) -> Iterator[Row]:
    """Train with every seed, with scores on the training part for the first.

    Parameters
    ----------
    problem : Problem
        What to read and minimise.
    folder : Path or None
        Where the corpora are.
    entry_text : str
        Trainer and options.
    seeds : sequence of int or None
        One run each.
    most : int
        Passes of a run.
    workers : int
        Processes; a single run has as many threads.
    """
    threads = workers if len(seeds) == 1 else 1
    orders = [(entry_text, seed, most, number == 0) for number, seed in enumerate(seeds)]
    yield from in_processes(partial(_worker, problem, folder, threads), orders, workers)


def _worker(problem: Problem, folder: Path | None, threads: int) -> Worker:
    loaded = problem.load(folder)
    objective = objective_of(problem.name, loaded, threads)
    return lambda order: trained(loaded, objective, *order)
