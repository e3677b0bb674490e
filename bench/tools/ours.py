"""crfit itself: an entry of `crfit.race`, and `LogLinear` as users call it."""

import time
import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

import crfit
from bench.problems import Loaded, Problem
from bench.seeds import trainer_of
from bench.tools import classifiers
from bench.tools.tool import Limits, Recording, Tool
from crfit.errors import ConvergenceWarning
from crfit.racing.result import Curve, Status
from crfit.training.callbacks import Callback
from crfit.training.records import Run
from crfit.training.stopping import Progress, StopReason


class _Crfit(Tool):
    def absent(self) -> str | None:
        return None

    def version(self) -> str:
        return crfit.__version__

    def threads(self, most: int, variant: str = "default") -> int:
        return 1 if variant.endswith("one thread") else most


class CrfitRace(_Crfit):
    """An entry of `crfit.race`: the same numbers as in a user's own race.

    A variant is the text of an entry, as in ``crfit race``, or a name in `VARIANTS`. Scores are computed with
    the clock stopped. It ends at the objective of the limits, or without one when F changes by less than 1e-6
    (relative) in ten iterations.
    """

    NAME, TITLE = "crfit_race", "crfit"
    VARIANTS: ClassVar[dict[str, str]] = {
        "default": "auto",
        "L-BFGS": "lbfgs",
        "one thread": "auto",
        "L-BFGS, one thread": "lbfgs",
    }

    def refuses(self, problem: Problem, variant: str = "default") -> str | None:
        return "a race has weights for both labels" if problem.one_vector else None

    def run(self, loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
        problem, entry = loaded.problem, self.VARIANTS.get(variant, variant)
        title = self.TITLE if variant == "default" else f"{self.TITLE}, {variant}"
        options: dict[str, Any] = {"l2": problem.l2, "l1": problem.l1, "weights": problem.weights}
        if problem.chosen_transitions != "all":
            options["transitions"] = problem.chosen_transitions
        if problem.order > 1:
            options["order"] = problem.order
        stop = crfit.Stop(
            rel_change=1e-6 if limits.objective is None else None,
            objective=limits.objective,
            max_iter=limits.max_iter,
            seconds=limits.seconds,
        )
        result = crfit.race(
            loaded.train,
            {title: entry},
            dev=loaded.test if limits.scores else None,
            stop=stop,
            n_threads=self.threads(limits.n_threads, variant),
            **options,
        )
        return replace(
            result.curves[0], trainer=self.NAME, options={"entry": entry, **options}, problem=problem.name
        )


class CrfitLogLinear(_Crfit):
    """`crfit.LogLinear` on a matrix, without intercept.

    The clock starts at the call of ``fit`` and includes the conversion of the matrix, as for scikit-learn. A
    variant is the text of a trainer, as in ``crfit race``, or a name in `VARIANTS`.
    """

    NAME, TITLE, SOLVES = "crfit_loglinear", "crfit LogLinear", frozenset({"classifier", "binary"})
    VARIANTS: ClassVar[dict[str, str]] = {
        "default": "auto",
        "one thread": "auto",
        "lbfgs": "lbfgs",
        "diagonal": "lbfgs:scaling=diagonal",
        "newton": "newton_cg:start=none",
    }

    def refuses(self, problem: Problem, variant: str = "default") -> str | None:
        if problem.binary and not problem.one_vector:
            return "it has one vector for two labels"
        return super().refuses(problem, variant)

    def options(self, loaded: Loaded, limits: Limits, variant: str) -> dict[str, Any]:
        text, problem = self.VARIANTS.get(variant, variant), loaded.problem
        return {"trainer": text, "l2": problem.l2, "l1": problem.l1}

    def train(self, recording: Recording, options: dict[str, Any]) -> None:
        loaded, limits = recording.loaded, recording.limits
        X, y = classifiers.matrix(loaded.train), loaded.train.labels

        def fit(stop: crfit.Stop, *callbacks: Callback) -> crfit.LogLinear:
            return crfit.LogLinear(
                **{**options, "trainer": trainer_of(options["trainer"])},
                fit_intercept=False,
                n_threads=recording.n_threads,
                stop=stop,
                callbacks=callbacks,
            ).fit(X, y)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit(crfit.Stop(max_iter=1))  # what the library does once is no part of training
            stop = crfit.Stop(grad_inf=0.0, seconds=limits.seconds, max_iter=limits.max_iter)
            model = fit(stop, _Watch(recording))
        recording.end(Status.CONVERGED, model.result_.message)
        weights = classifiers.weights_in(loaded.problem, np.asarray(model.coef_))
        recording.check(weights)
        classifiers.score(recording, weights)


class _Watch(Callback):
    """Records each step with a known objective."""

    def __init__(self, recording: Recording) -> None:
        self._recording, self._begin = recording, time.perf_counter()

    def on_step(self, run: Run, progress: Progress) -> tuple[StopReason, str] | None:
        seconds = time.perf_counter() - self._begin
        if progress.objective is None or progress.iteration == 0:
            return None
        ended = self._recording.add(progress.iteration, progress.passes, seconds, progress.objective)
        return (StopReason.CONVERGED, "the recording has ended") if ended else None
