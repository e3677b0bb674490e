"""Iterative scaling on the whole data until a gap is reached, plain and accelerated; two runs at a time.

Every evaluation of the objective is a pass, also those at points that are not accepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures.aitken.running import batch_steps
from bench.figures.base import Row
from bench.online_runs import Worker, in_processes
from bench.problems import Problem

if TYPE_CHECKING:
    from crfit.engines import EngineObjective

__all__ = ["GAP", "scale_all", "scaled"]

#: Relative gap that is asked for.
GAP = 0.1
#: A point of a curve has this many times the passes of the one before.
THIN = 1.1


def scaled(objective: EngineObjective, optimum: float, key: str, text: str, most: int) -> Row:
    """Iterate from zero weights.

    Parameters
    ----------
    objective : EngineObjective
        The function.
    optimum : float
        F*.
    key : str
        What the row is called.
    text : str
        Trainer and options.
    most : int
        Passes after which it ends without having reached the gap.
    """
    points: list[tuple[float, float]] = []
    reached, passes, value = None, 0.0, float("nan")
    for passes, step in batch_steps(objective, text, most):
        if step.objective is None or step.stop is not None:
            continue
        value = step.objective
        if not points or passes >= THIN * points[-1][0]:
            points.append((passes, value))
        if value <= (1.0 + GAP) * optimum:
            reached = passes
            break
    if points[-1][0] < passes:
        points.append((passes, value))
    return {
        "row": "scaling",
        "measured": key,
        "reached": reached,
        "last_gap": value / optimum - 1.0,
        "n_weights": objective.n_weights,
        "full_passes": " ".join(f"{x:g}" for x, _ in points),
        "objectives": " ".join(f"{y:.8g}" for _, y in points),
    }


def scale_all(
    problem: Problem,
    folder: Path | None,
    orders: Sequence[tuple[str, str, int]],
    optimum: float,
    workers: int,
) -> Iterator[Row]:
    """A row for each order.

    Parameters
    ----------
    problem : Problem
        What to read and minimise.
    folder : Path or None
        Where the corpora are.
    orders : sequence of (str, str, int)
        Key of the row; trainer and options; passes at most.
    optimum : float
        F*.
    workers : int
        Processes.
    """
    yield from in_processes(partial(_worker, problem, folder, optimum), orders, workers)


def _worker(problem: Problem, folder: Path | None, optimum: float) -> Worker:
    objective = problem.load(folder).objective(1)
    return lambda order: scaled(objective, optimum, *order)
