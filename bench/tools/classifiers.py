"""Classifiers that crfit is compared with: scikit-learn, LIBLINEAR and glum, all without intercept.

They report nothing useful while training, so each point of a curve is a separate training from zero weights
with more iterations or a smaller tolerance, timed as a whole. F is computed at its weights, untimed.
"""

import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from bench.problems import Loaded, Problem
from bench.tools.tool import Limits, Recording, Tool
from crfit import Dataset
from crfit.racing.result import Status

#: Iterations of the trainings of a curve, from the third on at most a third more than before.
ITERATIONS = (
    *(1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40, 50, 65, 80),
    *(100, 130, 170, 220, 290, 380, 500, 660, 880),
)
#: Threads of scikit-learn and glum, which were faster with one: on Reuters-21578 two threads took 5 to 8
#: times as long with glum, 1 to 7 times with scikit-learn's Newton method, and 2 to 40 times with its
#: L-BFGS. Other programs ran at the time, so part of this may be contention.
THREADS = 1


@dataclass(frozen=True)
class Fit:
    """Weights in our layout, iterations, passes (iterations if unknown), and whether it was at its end."""

    weights: NDArray[np.float64]
    iterations: int
    passes: float
    converged: bool


def penalties(problem: Problem) -> tuple[float, float]:
    """L2 and l1 for a tool with one vector for two labels, see `weights_of`."""
    return problem.l2 if problem.one_vector else problem.l2 / 2, problem.l1


def weights_of(problem: Problem, u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Our weights, [A] or [A * 2], for the one vector u [A] of a tool for two classes; u > 0: label 1.

    With two labels the data only see the difference u = w_1 - w_0. Of all pairs with that difference
    w_1 = u/2, w_0 = -u/2 has the smallest penalty, so that at the optimum

        (l2/2) (|w_0|^2 + |w_1|^2)  =  (l2/2) (|u|^2 / 2)  =  ((l2/2) / 2) |u|^2
        l1 (|w_0| + |w_1|)          =  l1 |u|

    A tool for two classes minimises our F when it is given l2/2 for l2, and l1 as it is.
    """
    return np.ascontiguousarray(u) if problem.one_vector else np.stack([-u / 2, u / 2], axis=1).ravel()


def weights_in(problem: Problem, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Our weights for scikit-learn's table, [Y][A], or [1][A] with two labels."""
    return weights_of(problem, table[0]) if len(table) == 1 else np.ascontiguousarray(table.T).ravel()


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


def path(recording: Recording, steps: Iterable[Any], fit: Callable[[Any], Callable[[], Fit]]) -> None:
    """Train once per number of iterations or tolerance; `fit` returns a function for the untimed outcome."""
    for number, step in enumerate(steps):
        if number == 0 and not recording.limits.one_training:
            fit(step)  # a library may do things once, such as starting threads
        begin = time.perf_counter()
        outcome = fit(step)
        seconds = time.perf_counter() - begin
        found = outcome()
        objective = recording.objective.full_value(found.weights)
        print(f"{step:g}: {found.iterations} iterations, {seconds:.4f} s, F {objective:.6f}", flush=True)
        if recording.add(found.iterations, found.passes, seconds, objective):
            break
        if found.converged:
            recording.end(Status.CONVERGED, "ended by itself")
            break
    recording.end(Status.LIMIT, "has no more steps to try")
    recording.order_times()
    score(recording, found.weights)


def score(recording: Recording, weights: NDArray[np.float64]) -> None:
    """Add test scores of the weights to the last point, if they are wanted."""
    train, test = recording.loaded.train, recording.loaded.test
    if test is None or not recording.limits.scores:
        return
    table = weights.reshape(train.n_attributes, -1)
    if table.shape[1] == 1 < train.n_labels:  # the first label has weights of 0
        table = np.concatenate([np.zeros_like(table), table], axis=1)
    predicted = np.argmax(matrix(test) @ table, axis=1).astype(np.int32)
    recording.score(test.sequence_labels(predicted))


@contextmanager
def _quiet(n_threads: int) -> Iterator[None]:
    """Limit the threads of libraries, and silence warnings of runs that ended early."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(n_threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "scipy.optimize", DeprecationWarning)
        warnings.filterwarnings("ignore", "Sigmoid function", UserWarning)
        yield


class ScikitLearn(Tool):
    """LogisticRegression, multinomial.

        C sum_i -log p(y_i | x_i; w)  +  |w|^2 / 2        so C = 1/l2

    Its L-BFGS is SciPy's, which reports the value after each iteration: one training gives the curve, timed
    from the call of ``fit``. It minimises F / N for N rows; F at the final weights must agree. The other
    solvers need one training per point.
    """

    NAME, TITLE, SOLVES = "scikit_learn", "scikit-learn", frozenset({"classifier", "binary"})
    PENALTIES = frozenset({"l2"})
    PACKAGE, IMPORTED, THREADS = "scikit-learn", "sklearn", THREADS
    # The default is scikit-learn's own. On Reuters-21578 newton-cg is as fast to a relative gap of 1e-3 with
    # two labels and takes half as long with nine, so figures show both.
    VARIANTS: ClassVar[dict[str, Any]] = {
        "default": {"solver": "lbfgs"},
        "newton-cg": {"solver": "newton-cg"},
        "saga": {"solver": "saga", "random_state": 0},  # an iteration is a pass of stochastic steps
    }

    def options(self, loaded: Loaded, limits: Limits, variant: str) -> dict[str, Any]:
        l2 = penalties(loaded.problem)[0] if loaded.train.n_labels == 2 else loaded.problem.l2
        return {"C": 1 / l2 if l2 else 0.0, "tol": 1e-12, **self.VARIANTS[variant]}

    def train(self, recording: Recording, options: dict[str, Any]) -> None:
        from sklearn.linear_model import LogisticRegression

        data, limits = recording.loaded.train, recording.limits
        X, y = matrix(data), data.labels

        def fit(max_iter: int) -> Callable[[], Fit]:
            model = LogisticRegression(fit_intercept=False, max_iter=max_iter, **options)
            model.fit(X, y)

            def outcome() -> Fit:
                done = int(model.n_iter_[0])
                weights = weights_in(recording.loaded.problem, model.coef_)
                return Fit(weights, done, done, done < max_iter)

            return outcome

        with _quiet(recording.n_threads):
            if options["solver"] == "lbfgs":
                fit(1)  # the library may do things once
                _watched(recording, partial(fit, limits.max_iter), data.n_tokens)
            else:
                path(recording, iterations(limits), fit)


def _watched(recording: Recording, fit: Callable[[], Callable[[], Fit]], scale: float) -> None:
    """One training by SciPy's L-BFGS, a point per iteration; F is `scale` times its value."""
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
    if not seen:
        recording.fail("it did not call SciPy's minimize")
        return
    weights = outcome().weights
    recording.end(Status.CONVERGED, "ended by itself")
    recording.check(weights)
    score(recording, weights)


class Liblinear(Tool):
    """Logistic regression for two classes.

        |u|^2 / 2  +  C sum_i log(1 + exp(-y_i u.x_i))        -s 7 and -s 0, C = 1/(l2/2), or 1/l2
        |u|_1      +  C sum_i log(1 + exp(-y_i u.x_i))        -s 6, C = 1/l1

    -s 7 is coordinate descent in the dual, -s 0 Newton's method with conjugate gradients. It is
    single-threaded. A training ends by a tolerance, so each point of a curve is a training.
    """

    NAME, TITLE, SOLVES = "liblinear_lr", "LIBLINEAR", frozenset({"binary"})
    PENALTIES, WITHOUT_L1 = frozenset({"l1", "l2"}), frozenset({"newton"})
    PACKAGE, IMPORTED = "liblinear-official", "liblinear"
    # On Reuters-21578 the dual takes a third of the time of Newton's method to a relative gap of 1e-3.
    VARIANTS: ClassVar[dict[str, Any]] = {"default": {"solver": 7}, "newton": {"solver": 0}}
    #: Tolerances of the trainings of a curve, and of one to the end.
    TOLERANCES, SMALL = tuple(10.0 ** -(n / 2) for n in range(21)), 1e-6

    def options(self, loaded: Loaded, limits: Limits, variant: str) -> dict[str, Any]:
        l2, l1 = penalties(loaded.problem)
        return {"solver": 6, "C": 1 / l1} if l1 > 0 else {**self.VARIANTS[variant], "C": 1 / (l2 or 1.0)}

    def train(self, recording: Recording, options: dict[str, Any]) -> None:
        from liblinear import liblinear as library
        from liblinear.liblinearutil import parameter, problem, train

        labels = recording.loaded.train.labels
        assert labels is not None
        data = problem(np.where(labels == 1, 1.0, -1.0), matrix(recording.loaded.train))

        def fit(tolerance: float) -> Callable[[], Fit]:
            log: list[str] = []
            printed = library.PRINT_STRING_FUN(lambda text: log.append(text.decode()))
            chosen = parameter(f"-s {options['solver']} -c {options['C']!r} -e {tolerance!r}")
            chosen.print_func = printed
            model = train(data, chosen)

            def outcome() -> Fit:
                print("".join(log))
                u = np.ctypeslib.as_array(model.w, (model.nr_feature,))
                # u > 0 speaks for the first of its labels, 1 or -1.
                weights = weights_of(recording.loaded.problem, u * model.get_labels()[0])
                return Fit(weights, *_work("".join(log)), tolerance == self.TOLERANCES[-1])

            return outcome

        path(recording, [self.SMALL] if recording.limits.one_training else self.TOLERANCES, fit)


def _work(log: str) -> tuple[int, float]:
    """Iterations and passes over the data in a log."""
    products = [int(n) for n in re.findall(r"CG +(\d+)", log)]
    if products:
        return len(products), len(products) + sum(products)
    done = re.search(r"#iter = (\d+)", log)
    iterations = int(done[1]) if done else 0
    return iterations, iterations


class Glum(Tool):
    """Generalised linear model, binomial with the logit link.

        mean_i log(1 + exp(-y_i u.x_i))  +  alpha (r |u|_1 + (1 - r) |u|^2 / 2)

    so for N documents alpha (1 - r) = (l2/2) / N and r = 0. L-BFGS is used, which has no L1 penalty: the
    default, iteratively reweighted least squares, stores a square matrix over the attributes.
    """

    NAME, TITLE, SOLVES = "glum_glm", "glum", frozenset({"binary"})
    PENALTIES = frozenset({"l2"})
    PACKAGE, THREADS = "glum", THREADS
    VARIANTS: ClassVar[dict[str, Any]] = {"lbfgs": {"solver": "lbfgs"}}

    def options(self, loaded: Loaded, limits: Limits, variant: str) -> dict[str, Any]:
        alpha = penalties(loaded.problem)[0] / loaded.train.n_sequences
        return {"alpha": alpha, "l1_ratio": 0.0, "gradient_tol": 1e-12, **self.VARIANTS[variant]}

    def train(self, recording: Recording, options: dict[str, Any]) -> None:
        from glum import GeneralizedLinearRegressor
        from tabmat import SparseMatrix

        problem, data = recording.loaded.problem, recording.loaded.train
        X = SparseMatrix(matrix(data).tocsc())
        assert data.labels is not None
        y = (data.labels == 1).astype(np.float64)

        def fit(max_iter: int) -> Callable[[], Fit]:
            model = GeneralizedLinearRegressor(
                family="binomial", fit_intercept=False, max_iter=max_iter, **options
            )
            model.fit(X, y)

            def outcome() -> Fit:
                done = int(model.n_iter_)
                return Fit(weights_of(problem, model.coef_), done, done, done < max_iter)

            return outcome

        with _quiet(recording.n_threads):
            path(recording, iterations(recording.limits), fit)
