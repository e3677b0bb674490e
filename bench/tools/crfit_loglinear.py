"""crfit's classifier as its users call it: `crfit.LogLinear` on a matrix, without intercept.

The clock runs from the call of ``fit``, with the conversion of the matrix in it, as scikit-learn's does; a
callback tells the time and F after each step. A variant is the text of a trainer, as ``crfit race`` takes it,
or a name in `VARIANTS`.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from crfit.callbacks import Callback
from crfit.runs import Run
from crfit.stopping import Progress, StopReason

import crfit
from bench.online_runs import trainer_of
from bench.problems import Loaded, Problem
from bench.tools.base import Limits, Recording, linear
from crfit.errors import ConvergenceWarning
from crfit.racing.records import Curve, Status

TITLE = "crfit LogLinear"
SOLVES = frozenset({"classifier", "binary"})
VARIANTS = {
    "default": "auto",
    "one thread": "auto",
    "lbfgs": "lbfgs",
    "diagonal": "lbfgs:scaling=diagonal",
    "newton": "newton_cg:start=none",
}


def absent() -> str | None:
    return None


def version() -> str:
    return crfit.__version__


def refuses(problem: Problem, variant: str = "default") -> str | None:
    if problem.binary and not problem.one_vector:
        return "it has one vector for two labels"
    return linear.refuses(problem, binary=False)


def threads(most: int, variant: str = "default") -> int:
    return 1 if variant == "one thread" else most


class _Watch(Callback):
    """Tells a recording of each step whose objective is known; its own work is not on the clock."""

    def __init__(self, recording: Recording) -> None:
        self._recording, self._begin = recording, time.perf_counter()

    def on_step(self, run: Run, progress: Progress) -> tuple[StopReason, str] | None:
        seconds = time.perf_counter() - self._begin
        if progress.objective is None or progress.iteration == 0:
            return None
        ended = self._recording.add(progress.iteration, progress.passes, seconds, progress.objective)
        return (StopReason.CONVERGED, "the recording has come to its end") if ended else None


def run(loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
    problem, text = loaded.problem, VARIANTS.get(variant, variant)
    options = {"trainer": text, "l2": problem.l2, "l1": problem.l1}
    recording = Recording(TITLE, "crfit_loglinear", variant, loaded, limits, options)
    reason = refuses(problem, variant)
    if reason:
        return recording.fail(reason)
    X, y = linear.matrix(loaded.train), loaded.train.labels

    def fit(stop: crfit.Stop, *callbacks: Callback) -> crfit.LogLinear:
        return crfit.LogLinear(
            trainer=trainer_of(text),
            l2=problem.l2,
            l1=problem.l1,
            fit_intercept=False,
            n_threads=threads(limits.n_threads, variant),
            stop=stop,
            callbacks=callbacks,
        ).fit(X, y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit(crfit.Stop(max_iter=1))  # what the library does once is no part of training
        stop = crfit.Stop(grad_inf=0.0, seconds=limits.seconds, max_iter=limits.max_iter)
        model = fit(stop, _Watch(recording))
    recording.end(Status.CONVERGED, model.result_.message)
    w = np.asarray(model.coef_)  # [Y][A], or [1][A] with two labels
    weights = linear.weights_of(problem, w[0]) if len(w) == 1 else np.ascontiguousarray(w.T).ravel()
    recording.check(weights)
    linear.score(recording, weights)
    return recording.curve
