"""CRFsuite, through python-crfsuite: seconds of its epochs, and what it scores itself."""

from __future__ import annotations

from typing import Any

from bench.figures.base import Results, Row
from bench.figures.natural_gradient.entries import rival_key
from bench.figures.natural_gradient.running import EPOCHS
from bench.online_runs import TIMED_EPOCHS, told
from bench.problems import Loaded
from bench.tools import tool

__all__ = ["RIVAL", "rival_accuracy", "rival_row", "rival_scores", "rival_seconds"]

RIVAL = "python_crfsuite"


def rival_seconds(loaded: Loaded, algorithm: str) -> Row:
    """Of an epoch on its one thread, by its own log, which has processor time."""
    parameters: dict[str, Any] = {"max_iterations": 1 + TIMED_EPOCHS}
    if algorithm == "l2sgd":
        parameters |= {"c2": loaded.problem.l2 / 2, "period": 10**6, "delta": 0}
    seconds = tool(RIVAL).epoch_seconds(loaded, algorithm, parameters)[1:]
    return {"row": "seconds", "measured": rival_key(algorithm), "threads": 1, **told(seconds)}


def rival_scores(loaded: Loaded, algorithm: str) -> Row:
    """Of the test part, with its default settings but for the penalty, or the number of epochs."""
    given = {"c2": loaded.problem.l2 / 2} if algorithm == "lbfgs" else {"max_iterations": EPOCHS}
    scores = tool(RIVAL).test_scores(loaded, algorithm, given)
    errors = scores.n_tokens - scores.n_correct_tokens
    numbers = {"n_tokens": scores.n_tokens, "final_errors": errors, "f1": scores.f1}
    return {"row": "scores", "measured": rival_key(algorithm), **numbers}


def rival_row(results: Results, problem: str, algorithm: str) -> Row | None:
    """What one of its algorithms has on a feature set; None where it was not run."""
    return next(iter(results.where(problem=problem, row="scores", measured=rival_key(algorithm))), None)


def rival_accuracy(row: Row) -> float:
    """Percentage of right tokens."""
    return float(100.0 * (1.0 - row["final_errors"] / row["n_tokens"]))
