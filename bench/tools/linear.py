"""Classifiers, which know matrices instead of sequences: a row a document, a column an attribute.

Their libraries say nothing while they train, or not enough. A point of the curve is therefore a training of
its own: from zero weights, with a larger number of iterations or a smaller tolerance than the one before, and
timed as a whole, with what the library does to check its input. F is computed at its weights with the clock
stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.problems import Problem
from bench.tools.data import two_label_weights
from bench.tools.tool import Limits, Recording
from crfit import Dataset
from crfit.racing.result import Curve, Status

#: Numbers of iterations of the trainings of a curve, from the third on at most a third more than the last.
ITERATIONS = (
    *(1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40, 50, 65, 80),
    *(100, 130, 170, 220, 290, 380, 500, 660, 880),
)

#: Threads of scikit-learn and glum, which were faster with one: on Reuters-21578 two threads took 5 to 8
#: times as long with glum, 1 to 7 times with scikit-learn's Newton method, and 2 to 40 times with its
#: L-BFGS. Other programs ran on the two cores at the time, so that part of this may be contention.
THREADS = 1

#: Most weights of a method that keeps a matrix with a row and a column for each: 200 MB.
MAX_HESSIAN = 5000


@dataclass(frozen=True)
class Fit:
    """A training: weights in our layout, iterations, passes over the data or as many as iterations where the
    tool does not say, and whether it would not have done more.
    """

    weights: NDArray[np.float64]
    iterations: int
    passes: float
    converged: bool


def refuses(problem: Problem, *, binary: bool) -> str | None:
    """Why a classifier cannot minimise the function of a problem.

    `binary` says that the tool's multinomial model is another function, or none at all.
    """
    if problem.kind != "classifier":
        return "it is a classifier, and has no transitions between labels"
    if problem.weights != "all":
        return "it has weights for all pairs of attribute and label, and no way to leave some out"
    if binary and not problem.binary:
        return "with more than two labels it trains a classifier for each, which is another function"
    return None


def penalties(problem: Problem) -> tuple[float, float]:
    """L2 and l1 for a tool with one vector for two labels, see `two_label_weights`."""
    return problem.l2 if problem.one_vector else problem.l2 / 2, problem.l1


def weights_of(problem: Problem, u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Our weights for the one vector u of a tool for two classes; u > 0 speaks for label 1."""
    return np.ascontiguousarray(u) if problem.one_vector else two_label_weights(u)


def iterations(limits: Limits) -> list[int]:
    """Numbers of iterations of the trainings of a curve."""
    steps = [] if limits.one_training else [n for n in ITERATIONS if n < limits.max_iter]
    return [*steps, limits.max_iter]


def matrix(data: Dataset) -> Any:
    """The attributes as a SciPy CSR matrix of shape (N, A); repeated attributes add up."""
    from scipy.sparse import csr_matrix

    values = np.ones(data.n_occurrences) if data.attr_values is None else data.attr_values
    shape = (data.n_tokens, data.n_attributes)
    made = csr_matrix((values.copy(), data.attr_ids.copy(), data.attr_ptr.copy()), shape=shape)
    made.sum_duplicates()
    return made


def path(recording: Recording, steps: Iterable[Any], fit: Callable[[Any], Callable[[], Fit]]) -> Curve:
    """Train once for each step, a number of iterations or a tolerance.

    `fit` trains, and gives a function that tells the outcome when the clock has stopped.
    """
    weights = None
    for number, step in enumerate(steps):
        if number == 0 and not recording.limits.one_training:
            fit(step)  # what a library does once, such as starting its threads, is no part of training
        begin = time.perf_counter()
        outcome = fit(step)
        seconds = time.perf_counter() - begin
        found = outcome()
        weights = found.weights
        objective = recording.objective.full_value(weights)
        print(f"{step:g}: {found.iterations} iterations, {seconds:.4f} s, F {objective:.6f}", flush=True)
        if recording.add(found.iterations, found.passes, seconds, objective):
            break
        if found.converged:
            recording.end(Status.CONVERGED, "ended by itself")
            break
    recording.end(Status.LIMIT, "has no more steps to try")
    recording.order_times()
    score(recording, weights)
    return recording.curve


def score(recording: Recording, weights: NDArray[np.float64] | None) -> None:
    """Score weights on the test part, if that is asked for, and put that into the last point."""
    loaded = recording.loaded
    test = loaded.test
    if weights is None or test is None or not recording.limits.scores:
        return
    table = weights.reshape(loaded.train.n_attributes, -1)
    if table.shape[1] == 1 < loaded.train.n_labels:  # the first label has weights of 0
        table = np.concatenate([np.zeros_like(table), table], axis=1)
    predicted = np.argmax(matrix(test) @ table, axis=1).astype(np.int32)
    recording.score(test.sequence_labels(predicted))
