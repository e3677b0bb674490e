"""What groups about on-line trainers share: a trainer by its text, runs in processes, seconds of an epoch.

Scores depend on the seed alone, whatever else the machine does, so that runs for scores go in a few processes
at a time. Seconds are taken with nothing else running.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeAlias

import crfit
from bench.figures.base import Row
from crfit.engines import EngineObjective
from crfit.racing.entries import read_entries
from crfit.racing.problems import ProblemOptions

if TYPE_CHECKING:
    from crfit.trainers import Trainer

__all__ = ["TIMED_EPOCHS", "Worker", "epoch_seconds", "in_processes", "told", "trainer_of"]

#: Epochs that count; the first, which may have the calibration in it, comes before them.
TIMED_EPOCHS = 5

#: Makes the row of an order, which is what tells one run from another.
Worker: TypeAlias = Callable[[Any], Row]


def trainer_of(text: str, seed: int = 0) -> Trainer:
    """The trainer that ``crfit race`` makes of a text."""
    (entry,) = read_entries([text], ProblemOptions(), seed=seed)
    return entry.trainer


#: What a process keeps between its orders.
_kept: list[Worker] = []


def in_processes(make: Callable[[], Worker], orders: Iterable[Any], workers: int) -> Iterator[Row]:
    """Rows of all orders, in their order.

    Parameters
    ----------
    make : callable
        Reads what a worker needs, once in each process; can be pickled, as a `functools.partial` can.
    orders : iterable
        What is handed to the workers.
    workers : int
        Processes; with one, or one order, all is done in this.
    """
    orders = list(orders)
    if workers == 1 or len(orders) == 1:
        yield from map(make(), orders)
        return
    # A new process and not a copy of this: there may be threads here.
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare, initargs=(make,)) as pool:
        yield from pool.map(_one, orders)


def _prepare(make: Callable[[], Worker]) -> None:
    _kept.append(make())


def _one(order: Any) -> Row:
    return _kept[0](order)


def epoch_seconds(objective: EngineObjective, text: str) -> list[float]:
    """Of each epoch after the first."""
    # Makes the tables, which no trainer should pay for.
    objective.value_and_grad(objective.xp.zeros(objective.n_weights))
    stop = crfit.Stop(max_iter=1 + TIMED_EPOCHS)
    history = crfit.train(objective, trainer_of(text), stop=stop).history
    ends = [progress.seconds for progress in history if progress.iteration > 0]
    return [after - before for before, after in pairwise(ends)]


def told(seconds: list[float]) -> Row:
    """The columns that tell of some epochs."""
    return {"seconds": statistics.median(seconds), "least": min(seconds), "n_timed": len(seconds)}
