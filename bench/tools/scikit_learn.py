"""scikit-learn's LogisticRegression, multinomial, without intercept.

    C sum_i -log p(y_i | x_i; w)  +  |w|^2 / 2        so that C = 1/l2

With two labels it has one vector instead of two, and C = 1/(l2/2): see `two_label_weights`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.metadata import version as package_version
from importlib.util import find_spec
from typing import Any

import numpy as np

from bench.problems import Loaded, Problem
from bench.tools.base import Limits, Recording, linear, two_label_weights
from crfit.racing.records import Curve

TITLE = "scikit-learn"
SOLVES = frozenset({"classifier", "binary"})
# The default is scikit-learn's own. On Reuters-21578 newton-cg is as fast to a relative gap of 1e-3 with two
# labels and takes half as long with nine, so that figures show both. newton-cholesky is for few attributes.
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {"solver": "lbfgs"},
    "newton-cg": {"solver": "newton-cg"},
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
    options = {"C": (2 if two else 1) / problem.l2 if problem.l2 else 0.0, "tol": 1e-12, **settings}
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
            weights = two_label_weights(w[0]) if two else np.ascontiguousarray(w.T).ravel()
            return linear.Fit(weights, done, done, done < max_iter)

        return outcome

    steps = [n for n in linear.ITERATIONS if n < limits.max_iter] + [limits.max_iter]
    with threadpool_limits(threads(limits.n_threads, variant)), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return linear.path(recording, steps, fit)
