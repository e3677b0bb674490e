"""glum's generalised linear model, binomial with the logit link, without intercept.

    mean_i log(1 + exp(-y_i u.x_i))  +  alpha (r |u|_1 + (1 - r) |u|^2 / 2)

so that, with N documents and l2/2 for l2 where we have two vectors (see `two_label_weights`),
alpha r = l1 / N and alpha (1 - r) = (l2/2) / N. Its own choice of method, iteratively reweighted least
squares, keeps a matrix with a row and a column for each attribute; where these are too many it is told to use
L-BFGS.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.metadata import version as package_version
from importlib.util import find_spec
from typing import Any

import numpy as np

from bench.problems import Loaded, Problem
from bench.tools.base import Limits, Recording, linear
from crfit.racing.records import Curve

TITLE = "glum"
SOLVES = frozenset({"binary"})
VARIANTS: dict[str, dict[str, Any]] = {"default": {"solver": "auto"}, "lbfgs": {"solver": "lbfgs"}}


def absent() -> str | None:
    return None if find_spec("glum") else "glum is not installed: pip install glum"


def version() -> str:
    return package_version("glum")


def refuses(problem: Problem, variant: str = "default") -> str | None:
    if problem.l1 == 0 and problem.l2 == 0:
        return "without a penalty F has no minimum that tools agree on"
    if problem.l1 > 0 and VARIANTS[variant]["solver"] == "lbfgs":
        return "its L-BFGS has no L1 penalty"
    return linear.refuses(problem, binary=True)


def threads(most: int, variant: str = "default") -> int:
    return linear.THREADS


def run(loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
    problem, data = loaded.problem, loaded.train
    l2, l1 = linear.penalties(problem)
    many = data.n_attributes > linear.MAX_HESSIAN
    options = {
        "alpha": (l1 + l2) / data.n_sequences,
        "l1_ratio": l1 / (l1 + l2) if l1 + l2 else 0.0,
        "gradient_tol": 1e-12,
        "solver": "lbfgs" if many and l1 == 0 else VARIANTS[variant]["solver"],
    }
    recording = Recording(TITLE, "glum_glm", variant, loaded, limits, options)
    reason = refuses(problem, variant)
    if options["solver"] == "auto" and many:
        reason = f"its method for L1 keeps a matrix of {data.n_attributes:,} attributes squared"
    if reason:
        return recording.fail(reason)

    from glum import GeneralizedLinearRegressor
    from sklearn.exceptions import ConvergenceWarning
    from tabmat import SparseMatrix
    from threadpoolctl import threadpool_limits

    X = SparseMatrix(linear.matrix(data).tocsc())
    assert data.labels is not None
    y = (data.labels == 1).astype(np.float64)

    def fit(max_iter: int) -> Callable[[], linear.Fit]:
        model = GeneralizedLinearRegressor(
            family="binomial", fit_intercept=False, max_iter=max_iter, **options
        )
        model.fit(X, y)

        def outcome() -> linear.Fit:
            done = int(model.n_iter_)
            return linear.Fit(linear.weights_of(problem, model.coef_), done, done, done < max_iter)

        return outcome

    with threadpool_limits(threads(limits.n_threads, variant)), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "scipy.optimize", DeprecationWarning)
        warnings.filterwarnings("ignore", "Sigmoid function", UserWarning)
        return linear.path(recording, linear.iterations(limits), fit)
