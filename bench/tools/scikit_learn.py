"""scikit-learn's LogisticRegression, multinomial, without intercept.

    C sum_i -log p(y_i | x_i; w)  +  |w|^2 / 2        so that C = 1/l2

With two labels it has one vector instead of two, and C = 1/(l2/2) where we have two: see `two_label_weights`.

Its L-BFGS is SciPy's, which tells the value after each iteration to whoever asks: a single training gives the
curve, with the clock running from the call of ``fit``. What it minimises is F / N, with N rows; F at the
weights at the end must agree. The other methods say nothing, and a point is a training of its own.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version as package_version
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.problems import Loaded, Problem
from bench.tools.base import Limits, Recording, linear
from crfit.racing.records import Curve, Status

TITLE = "scikit-learn"
SOLVES = frozenset({"classifier", "binary"})
# The default is scikit-learn's own. On Reuters-21578 newton-cg is as fast to a relative gap of 1e-3 with two
# labels and takes half as long with nine, so that figures show both. newton-cholesky is for few attributes.
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {"solver": "lbfgs"},
    "newton-cg": {"solver": "newton-cg"},
    "saga": {"solver": "saga", "random_state": 0},  # an iteration is a pass of stochastic steps
    "newton-cholesky": {"solver": "newton-cholesky"},
}


def absent() -> str | None:
    return None if find_spec("sklearn") else "scikit-learn is not installed: pip install scikit-learn"


def version() -> str:
    return package_version("scikit-learn")


def refuses(problem: Problem, variant: str = "default") -> str | None:
    if problem.l1 > 0:
        return "its L-BFGS and Newton methods have no L1 penalty"
    if problem.l2 == 0:
        return "without a penalty F has no minimum that tools agree on"
    return linear.refuses(problem, binary=False)


def threads(most: int, variant: str = "default") -> int:
    return linear.THREADS


def run(loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
    problem, settings = loaded.problem, VARIANTS[variant]
    two = loaded.train.n_labels == 2
    l2 = linear.penalties(problem)[0] if two else problem.l2
    options = {"C": 1 / l2 if l2 else 0.0, "tol": 1e-12, **settings}
    recording = Recording(TITLE, "scikit_learn", variant, loaded, limits, options)
    reason = refuses(problem)
    n_weights = loaded.train.n_attributes * (1 if two else loaded.train.n_labels)
    if settings["solver"] == "newton-cholesky" and n_weights > linear.MAX_HESSIAN:
        reason = f"newton-cholesky keeps a matrix of {n_weights:,} weights squared"
    if reason:
        return recording.fail(reason)

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    X, y = linear.matrix(loaded.train), loaded.train.labels

    def fit(max_iter: int) -> Callable[[], linear.Fit]:
        model = LogisticRegression(fit_intercept=False, max_iter=max_iter, **options)
        model.fit(X, y)

        def outcome() -> linear.Fit:
            done = int(model.n_iter_[0])
            w = model.coef_  # [Y][A], or [1][A] with two labels
            weights = linear.weights_of(problem, w[0]) if two else np.ascontiguousarray(w.T).ravel()
            return linear.Fit(weights, done, done, done < max_iter)

        return outcome

    with threadpool_limits(threads(limits.n_threads, variant)), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if settings["solver"] == "lbfgs":
            fit(1)  # what the library does once is no part of training
            return _watched(recording, partial(fit, limits.max_iter), loaded.train.n_tokens)
        return linear.path(recording, linear.iterations(limits), fit)


def _watched(recording: Recording, fit: Callable[[], Callable[[], linear.Fit]], scale: float) -> Curve:
    """One training by SciPy's L-BFGS, a point for each iteration; F is `scale` times what it minimises."""
    from scipy import optimize

    minimize = optimize.minimize
    seen: list[tuple[float, float]] = []

    def looked_at(*args: Any, **kwargs: Any) -> Any:
        def look(intermediate_result: Any) -> None:
            objective = scale * float(intermediate_result.fun)
            seen.append((time.perf_counter() - begin, objective))
            if recording.add(len(seen), len(seen), *seen[-1]):
                raise StopIteration

        return minimize(*args, **{**kwargs, "callback": look})

    with patch.object(optimize, "minimize", looked_at):
        begin = time.perf_counter()
        outcome = fit()
    weights = outcome().weights
    if not seen:
        return recording.fail("it did not call SciPy's minimize")
    recording.end(Status.CONVERGED, "ended by itself")
    recording.check(weights)
    linear.score(recording, weights)
    return recording.curve
