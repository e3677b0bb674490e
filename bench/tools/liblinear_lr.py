"""LIBLINEAR's logistic regression for two classes.

    |u|^2 / 2  +  C sum_i log(1 + exp(-y_i u.x_i))        -s 7 and -s 0, C = 1/(l2/2), or 1/l2
    |u|_1      +  C sum_i log(1 + exp(-y_i u.x_i))        -s 6, C = 1/l1

See `two_label_weights` for the factor, which is there where we have two vectors. -s 7 is coordinate descent
in the dual, -s 0 Newton's method with conjugate gradients. It has one thread. A training ends by a tolerance,
so that a curve is a row of these. Its log tells iterations and conjugate gradient steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import version as package_version
from importlib.util import find_spec
from typing import Any

import numpy as np

from bench.problems import Loaded, Problem
from bench.tools.base import Limits, Recording, linear
from crfit.racing.records import Curve

TITLE = "LIBLINEAR"
SOLVES = frozenset({"binary"})
# On Reuters-21578 the dual takes a third of the time of Newton's method to a relative gap of 1e-3.
VARIANTS: dict[str, dict[str, Any]] = {"default": {"solver": 7}, "newton": {"solver": 0}}

#: Tolerances of the trainings of a curve, and of one that tells where it ends.
TOLERANCES, SMALL = [10.0 ** -(n / 2) for n in range(21)], 1e-6


def absent() -> str | None:
    return None if find_spec("liblinear") else "LIBLINEAR is not installed: pip install liblinear-official"


def version() -> str:
    return package_version("liblinear-official")


def refuses(problem: Problem, variant: str = "default") -> str | None:
    if problem.l1 > 0 and problem.l2 > 0:
        return "it has an L1 or an L2 penalty, not both"
    if problem.l1 > 0 and variant == "newton":
        return "its Newton method has no L1 penalty"
    if problem.l1 == 0 and problem.l2 == 0:
        return "it has no training without a penalty"
    return linear.refuses(problem, binary=True)


def threads(most: int, variant: str = "default") -> int:
    return 1


def run(loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
    problem = loaded.problem
    if problem.l1 > 0:
        options = {"solver": 6, "C": 1 / problem.l1}
    else:
        options = {**VARIANTS[variant], "C": 1 / (linear.penalties(problem)[0] or 1.0)}
    recording = Recording(TITLE, "liblinear_lr", variant, loaded, limits, options)
    reason = refuses(problem, variant)
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
            return linear.Fit(weights, iterations, passes, tolerance == TOLERANCES[-1])

        return outcome

    return linear.path(recording, [SMALL] if limits.one_training else TOLERANCES, fit)


def _work(log: str) -> tuple[int, float]:
    """Iterations and passes over the data that a log tells."""
    products = [int(n) for n in re.findall(r"CG +(\d+)", log)]
    if products:
        return len(products), len(products) + sum(products)
    done = re.search(r"#iter = (\d+)", log)
    iterations = int(done[1]) if done else 0
    return iterations, iterations
