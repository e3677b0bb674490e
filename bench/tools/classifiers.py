"""Classifiers that crfit is compared with: scikit-learn, LIBLINEAR and glum, all without intercept.

With two labels they have one vector u instead of two, and l2/2 for l2 where we have two: see
`two_label_weights`.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np

from bench.problems import Loaded, Problem
from bench.tools import linear
from bench.tools.tool import Limits, Recording, Tool
from crfit.racing.result import Curve, Status


class ScikitLearn(Tool):
    """LogisticRegression, multinomial.

        C sum_i -log p(y_i | x_i; w)  +  |w|^2 / 2        so that C = 1/l2

    Its L-BFGS is SciPy's, which tells the value after each iteration to whoever asks: a single training gives
    the curve, with the clock running from the call of ``fit``. What it minimises is F / N, with N rows; F at
    the weights at the end must agree. The other methods say nothing, and a point is a training of its own.
    """

    NAME, TITLE, SOLVES = "scikit_learn", "scikit-learn", frozenset({"classifier", "binary"})
    PACKAGE, IMPORTED, THREADS = "scikit-learn", "sklearn", linear.THREADS
    # The default is scikit-learn's own. On Reuters-21578 newton-cg is as fast to a relative gap of 1e-3 with
    # two labels and takes half as long with nine, so that figures show both. newton-cholesky is for few
    # attributes.
    VARIANTS: ClassVar[dict[str, Any]] = {
        "default": {"solver": "lbfgs"},
        "newton-cg": {"solver": "newton-cg"},
        "saga": {"solver": "saga", "random_state": 0},  # an iteration is a pass of stochastic steps
        "newton-cholesky": {"solver": "newton-cholesky"},
    }

    def refuses(self, problem: Problem, variant: str = "default") -> str | None:
        if problem.l1 > 0:
            return "its L-BFGS and Newton methods have no L1 penalty"
        if problem.l2 == 0:
            return "without a penalty F has no minimum that tools agree on"
        return linear.refuses(problem, binary=False)

    def run(self, loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
        problem, settings = loaded.problem, self.VARIANTS[variant]
        two = loaded.train.n_labels == 2
        l2 = linear.penalties(problem)[0] if two else problem.l2
        options = {"C": 1 / l2 if l2 else 0.0, "tol": 1e-12, **settings}
        recording = self.recording(loaded, limits, variant, options)
        reason = self.refuses(problem)
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

        with threadpool_limits(self.threads(limits.n_threads, variant)), warnings.catch_warnings():
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


class Liblinear(Tool):
    """Logistic regression for two classes.

        |u|^2 / 2  +  C sum_i log(1 + exp(-y_i u.x_i))        -s 7 and -s 0, C = 1/(l2/2), or 1/l2
        |u|_1      +  C sum_i log(1 + exp(-y_i u.x_i))        -s 6, C = 1/l1

    -s 7 is coordinate descent in the dual, -s 0 Newton's method with conjugate gradients. It has one thread.
    A training ends by a tolerance, so that a curve is a row of these. Its log tells iterations and conjugate
    gradient steps.
    """

    NAME, TITLE, SOLVES = "liblinear_lr", "LIBLINEAR", frozenset({"binary"})
    PACKAGE, IMPORTED = "liblinear-official", "liblinear"
    # On Reuters-21578 the dual takes a third of the time of Newton's method to a relative gap of 1e-3.
    VARIANTS: ClassVar[dict[str, Any]] = {"default": {"solver": 7}, "newton": {"solver": 0}}
    #: Tolerances of the trainings of a curve, and of one that tells where it ends.
    TOLERANCES, SMALL = tuple(10.0 ** -(n / 2) for n in range(21)), 1e-6

    def refuses(self, problem: Problem, variant: str = "default") -> str | None:
        if problem.l1 > 0 and problem.l2 > 0:
            return "it has an L1 or an L2 penalty, not both"
        if problem.l1 > 0 and variant == "newton":
            return "its Newton method has no L1 penalty"
        if problem.l1 == 0 and problem.l2 == 0:
            return "it has no training without a penalty"
        return linear.refuses(problem, binary=True)

    def run(self, loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
        problem = loaded.problem
        if problem.l1 > 0:
            options = {"solver": 6, "C": 1 / problem.l1}
        else:
            options = {**self.VARIANTS[variant], "C": 1 / (linear.penalties(problem)[0] or 1.0)}
        recording = self.recording(loaded, limits, variant, options)
        reason = self.refuses(problem, variant)
        if reason:
            return recording.fail(reason)

        from liblinear import liblinear as library
        from liblinear.liblinearutil import parameter, train
        from liblinear.liblinearutil import problem as make_problem

        labels = loaded.train.labels
        assert labels is not None
        data = make_problem(np.where(labels == 1, 1.0, -1.0), linear.matrix(loaded.train))

        def fit(tolerance: float) -> Callable[[], linear.Fit]:
            log: list[str] = []
            printed = library.PRINT_STRING_FUN(lambda text: log.append(text.decode()))
            chosen = parameter(f"-s {options['solver']} -c {options['C']!r} -e {tolerance!r}")
            chosen.print_func = printed
            model = train(data, chosen)

            def outcome() -> linear.Fit:
                print("".join(log))
                iterations, passes = _work("".join(log))
                u = np.ctypeslib.as_array(model.w, (model.nr_feature,))
                # u > 0 speaks for the first of its labels, 1 or -1.
                weights = linear.weights_of(problem, u * model.get_labels()[0])
                return linear.Fit(weights, iterations, passes, tolerance == self.TOLERANCES[-1])

            return outcome

        return linear.path(recording, [self.SMALL] if limits.one_training else self.TOLERANCES, fit)


def _work(log: str) -> tuple[int, float]:
    """Iterations and passes over the data that a log tells."""
    products = [int(n) for n in re.findall(r"CG +(\d+)", log)]
    if products:
        return len(products), len(products) + sum(products)
    done = re.search(r"#iter = (\d+)", log)
    iterations = int(done[1]) if done else 0
    return iterations, iterations


class Glum(Tool):
    """Generalised linear model, binomial with the logit link.

        mean_i log(1 + exp(-y_i u.x_i))  +  alpha (r |u|_1 + (1 - r) |u|^2 / 2)

    so that, with N documents, alpha r = l1 / N and alpha (1 - r) = (l2/2) / N. Its own choice of method,
    iteratively reweighted least squares, keeps a matrix with a row and a column for each attribute; where
    these are too many it is told to use L-BFGS.
    """

    NAME, TITLE, SOLVES = "glum_glm", "glum", frozenset({"binary"})
    PACKAGE, THREADS = "glum", linear.THREADS
    VARIANTS: ClassVar[dict[str, Any]] = {"default": {"solver": "auto"}, "lbfgs": {"solver": "lbfgs"}}

    def refuses(self, problem: Problem, variant: str = "default") -> str | None:
        if problem.l1 == 0 and problem.l2 == 0:
            return "without a penalty F has no minimum that tools agree on"
        if problem.l1 > 0 and self.VARIANTS[variant]["solver"] == "lbfgs":
            return "its L-BFGS has no L1 penalty"
        return linear.refuses(problem, binary=True)

    def run(self, loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
        problem, data = loaded.problem, loaded.train
        l2, l1 = linear.penalties(problem)
        many = data.n_attributes > linear.MAX_HESSIAN
        options = {
            "alpha": (l1 + l2) / data.n_sequences,
            "l1_ratio": l1 / (l1 + l2) if l1 + l2 else 0.0,
            "gradient_tol": 1e-12,
            "solver": "lbfgs" if many and l1 == 0 else self.VARIANTS[variant]["solver"],
        }
        recording = self.recording(loaded, limits, variant, options)
        reason = self.refuses(problem, variant)
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

        with threadpool_limits(self.threads(limits.n_threads, variant)), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "scipy.optimize", DeprecationWarning)
            warnings.filterwarnings("ignore", "Sigmoid function", UserWarning)
            return linear.path(recording, linear.iterations(limits), fit)
