"""Several trainers on one function: seconds and passes to a gap and to a gradient, curves, parts of the time.

Gaps are taken to the lowest value that anybody reached there, a long run that comes first included. With a
ridge of 1e-3 and more that run ends at the optimum; for tiny ones the data are nearly separable, no optimum
is reached in any time worth while, and the row of the function says how large the gradient was left.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import crfit
from bench.figures.base import Row
from bench.figures.clustered.entries import Entry
from bench.figures.clustered.parts import parts_of
from bench.figures.clustered.running import GAP, GOALS, GRAD_INF, Goal, Score, Training, train_entry
from bench.online_runs import trainer_of
from bench.problems import Loaded
from bench.setting import THREADS
from crfit.engines import EngineObjective
from crfit.errors import ConvergenceWarning

__all__ = ["BEST", "RUN", "Conditions", "Found", "compete", "lowest", "ready", "text_of"]

BEST, RUN = "best", "run"  # values of the column ``row``
#: The long run: L-BFGS with many pairs for so many seconds, then Newton's method for as many.
LONG_TRAINERS = ("lbfgs:memory=50", "newton_cg:start=none")
#: Its gradient, times the ridge if that is below 1: separable data have tiny values, and gradients with them.
LONG_GRAD_INF = 1e-7
#: A run goes on to this share of the gap, so that the lowest value may turn out somewhat lower.
WITHIN = 0.9


@dataclass(frozen=True)
class Conditions:
    """Of the runs on one function.

    Parameters
    ----------
    seconds : float
        Limit of a run.
    repeats : int
        Runs of everybody, in rounds.
    curves : bool
        Whether objective and scores on the way are kept.
    long_seconds : float
        Limit of each half of the long run.
    gradient : bool
        Whether a run goes on to a small gradient after the gap.
    """

    seconds: float
    repeats: int = 1
    curves: bool = True
    long_seconds: float = 4.0
    gradient: bool = True


@dataclass(frozen=True)
class Found:
    """The lowest value of a function that is known before the runs.

    Parameters
    ----------
    objective, grad_inf : float
        There.
    words : str
        How it was found.
    """

    objective: float
    grad_inf: float
    words: str


def ready(loaded: Loaded) -> EngineObjective:
    """The objective, with its tables made."""
    objective = loaded.objective(THREADS)
    objective.value_and_grad(objective.xp.zeros(objective.n_weights))
    return objective


def lowest(objective: EngineObjective, seconds: float) -> Found:
    """Minimise as far as it goes in some seconds."""
    w, found = None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for text in LONG_TRAINERS:
            stop = crfit.Stop(grad_inf=LONG_GRAD_INF * min(1.0, float(objective.l2)), seconds=seconds)
            result = crfit.train(objective, trainer_of(text), w, stop=stop)
            if found is None or result.objective < found.objective:
                found = Found(result.objective, result.grad_inf, result.message)
            w = result.weights
    assert found is not None
    return found


def compete(
    objective: EngineObjective,
    entries: Sequence[Entry],
    conditions: Conditions,
    score: Score | None,
    known: Found | None = None,
) -> Iterator[Row]:
    """Rows of the function and of all runs.

    Parameters
    ----------
    objective : EngineObjective
        What is minimised; its tables have been made.
    entries : sequence of Entry
        Who takes part.
    conditions : Conditions
        Limits and repetitions.
    score : callable or None
        Test scores.
    known : Found, optional
        The optimum, if it is known; otherwise there is a long run.
    """
    long = known or lowest(objective, conditions.long_seconds)
    grad_inf = GRAD_INF if conditions.gradient else math.inf
    goal = Goal(long.objective * (1.0 + WITHIN * GAP), conditions.seconds, grad_inf)
    runs = [
        (number, train_entry(objective, entry, goal, score if number == 1 else None))
        for number in range(1, conditions.repeats + 1)
        for entry in entries
    ]
    best = min(long.objective, *(training.lowest for _, training in runs))
    facts: Row = {"ridge": float(objective.l2)}
    yield {
        "row": BEST,
        **facts,
        "objective": best,
        "long_objective": long.objective,
        "grad_inf": long.grad_inf,
        "words": long.words,
        "n_weights": objective.n_weights,
    }
    for number, training in runs:
        yield {**facts, **_run_row(training, best, number, conditions)}


def _run_row(training: Training, best: float, number: int, conditions: Conditions) -> Row:
    """Everything about a run in a row; curves are texts of numbers with blanks between them."""
    last = training.steps[-1]
    reached = {goal: training.first(objective=best * (1.0 + gap)) for goal, gap in GOALS.items()}
    reached["grad"] = training.first(objective=best * (1.0 + GAP), grad_inf=GRAD_INF)
    row: Row = {
        "row": RUN,
        "entry": training.entry.key,
        "given": training.entry.text,
        "number": number,
        "reason": training.reason,
        "words": training.words,
        **{
            f"{goal}_{unit}": None if step is None else getattr(step, unit)
            for goal, step in reached.items()
            for unit in ("seconds", "passes")
        },
        "end_seconds": last.seconds,
        "end_passes": last.passes,
        "end_gap": None if last.objective is None else last.objective / best - 1.0,
        **parts_of(training.steps),
    }
    scores = training.looks[-1].scores if training.looks else {}
    row |= {f"end_{name}": value for name, value in scores.items()}
    if conditions.curves and number == 1:
        looks = training.looks
        row["curve_seconds"] = text_of(look.seconds for look in looks)
        row["curve_passes"] = text_of(look.passes for look in looks)
        row["curve_objectives"] = text_of(look.objective for look in looks)
        for name in scores:
            row[f"curve_{name}"] = text_of(look.scores[name] for look in looks)
    return row


def text_of(values: Iterator[float]) -> str:
    """Numbers with blanks between them."""
    return " ".join(f"{value:.9g}" for value in values)
