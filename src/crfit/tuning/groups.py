"""An l2 penalty for each group of weights, by the gradient of the held-out loss.

With H the Hessian of F at the optimum w, and g the gradient of the held-out loss there,

    d loss / d log l2_G = - l2_G sum_{j in G} w_j u_j,      H u = g

so one solve by conjugate gradients gives the derivatives for all groups [1]. The loss, -log p of held-out
labels summed over the folds, falls by BFGS steps in log l2, from the same penalty for all; each optimum
starts from the previous one. A step changes no penalty by more than a factor of 5, and is cut to a quarter if
the loss would rise. The search ends when a step gains less than 0.5 %.

The loss decides only how to go; the penalties are kept if the score on the same held-out data is not lower.

References
----------
[1] Foo, Do, Ng (2007). Efficient multiple hyperparameter learning for log-linear models. NIPS 20.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfit.checks import check_whole_number
from crfit.data import Dataset
from crfit.engines import make_objective
from crfit.engines.weight_groups import GroupKind, weight_groups
from crfit.errors import DataError, OptionError
from crfit.fit import FitOptions
from crfit.training.interrupts import InterruptGuard, hurry_when
from crfit.tuning.path import PathPoint
from crfit.tuning.scoring import HIGH, LOW, bootstrap
from crfit.tuning.search import Candidate, Fits, Fold, Run, Scorer, Stage, Variants, follows, whole_or
from crfit.vectors import to_numpy

#: Most steps, and most groups.
STEPS, MOST_GROUPS = 10, 200
#: Relative gap of each optimum, and relative residual of the solve.
TOL, RESIDUAL = 1e-3, 0.1
#: The search ends when a step lowers the loss by less than this share.
GAIN = 5e-3
#: Most that log l2 changes in a step, and the shorter step if the loss rises; range of l2.
LONGEST, SHORTER = math.log(5.0), 0.25
RANGE = 1e-4, 1e4


@dataclass(frozen=True, eq=False)
class GroupPenalties:
    """The l2 of each group, and what it changed on held-out data."""

    l2: dict[str, float]  #: the penalties by the name of the group
    sizes: dict[str, int]  #: number of weights of each group
    losses: list[float]  #: held-out loss, first with one l2 for all and then after each step
    before: float  #: held-out score with one l2 for all
    after: float  #: the same with these
    low: float  #: 95 % interval of the change, NaN with a scorer of one's own
    high: float
    interrupted: bool  #: whether Ctrl-C ended the search
    passes: float  #: over the training data
    seconds: float

    @property
    def taken(self) -> bool:
        """Whether the held-out score is not lower than with one l2 for all."""
        return self.after >= self.before and len(self.losses) > 1

    def record(self) -> dict[str, Any]:
        """All of it as JSON types; None for a number that is not known."""
        known = {name: None if value != value else value for name, value in vars(self).items()}
        return known | {"taken": self.taken}


def check_groups(
    candidates: Sequence[Candidate], options: FitOptions, dataset: Dataset, kind: GroupKind
) -> None:
    """Raise OptionError if the best of these candidates could not have an l2 per group."""
    if kind not in ("template", "family"):
        raise OptionError("groups", kind, "choose 'template' or 'family'")
    if options.task == "classify":
        raise OptionError("groups", options.task, "classifiers have one l2: leave this option out")
    for candidate in candidates:
        chosen = replace(options, **candidate.fitted)
        if candidate.l1 > 0.0:
            raise OptionError("groups", f"l1={candidate.l1:g}", "needs smooth penalties: leave l1 out")
        if not (candidate.l2 > 0.0 and follows(dataset, chosen)):
            remedy = "needs the trainer auto, l2 > 0 and labels that are known"
            raise OptionError("groups", candidate.name, remedy)


def tune_groups(
    dataset: Dataset,
    chosen: Candidate,
    options: FitOptions,
    *,
    folds: Sequence[Fold] | None = None,
    dev: Dataset | None = None,
    metric: str = "f1",
    scorer: Scorer | None = None,
    kind: GroupKind = "template",
    steps: int = STEPS,
    tol: float = TOL,
    variants: Variants | None = None,
    callback: Callable[[int, float, float], None] | None = None,
) -> GroupPenalties:
    """Give each group of weights its own l2, starting from that of a candidate.

    `folds`, `dev`, `metric`, `scorer` and `variants` are as for `crfit.tuning.search.tune`. `callback` gets
    the number of each step, the first loss and the present one.
    """
    check_whole_number("steps", steps, at_least=1)
    check_groups([chosen], options, dataset, kind)
    folds = whole_or(folds, dataset, dev)
    run = Run(dataset, [chosen], options, folds, dev, metric, scorer, tol, False, None, variants)
    begin = time.perf_counter()
    parts = [_HeldOut(run, fold, chosen, kind) for fold in range(len(run.folds))]
    names = list(dict.fromkeys(name for part in parts for name in part.names))
    if len(names) > MOST_GROUPS:
        remedy = f"{len(names):,} groups are more than {MOST_GROUPS}: name attributes family=value"
        raise OptionError("groups", kind, remedy)
    with InterruptGuard() as guard, hurry_when(lambda: guard.interrupted):
        theta, points, first, losses = _descend(
            parts, names, chosen.l2, steps, lambda: guard.interrupted, callback
        )
    tables = [
        [part.fits.outcome(point) for point in pair] for part, *pair in zip(parts, first, points, strict=True)
    ]
    before, after = (float(np.mean([pair[k].score for pair in tables])) for k in (0, 1))
    low = high = math.nan
    if all(one.counts is not None for pair in tables for one in pair):
        counts: Any = [[one.counts for one in pair] for pair in tables]
        draws = bootstrap(run.metric, counts, run.options.seed)
        low, high = (float(x) for x in np.percentile(draws[1] - draws[0], [LOW, HIGH]))
    sizes = dict.fromkeys(names, 0)
    for part in parts:
        for name, n in part.sizes().items():
            sizes[name] = max(sizes[name], n)
    passes = sum(part.passes for part in parts)
    seconds = time.perf_counter() - begin
    return GroupPenalties(
        _penalties(names, theta), sizes, losses, before, after, low, high, guard.interrupted, passes, seconds
    )


class _HeldOut:
    """The optima and the held-out loss of one fold."""

    def __init__(self, run: Run, fold: int, chosen: Candidate, kind: GroupKind) -> None:
        self.fits = Fits(run, Stage(fold, run.tol), chosen, None)
        assert self.fits.optima is not None
        self.optima, self.l2 = self.fits.optima, chosen.l2
        objective = self.fits.objective
        groups = weight_groups(objective.dataset, objective.layout, kind)
        used, self.of_weights = np.unique(groups.of_weights(objective.layout), return_inverse=True)
        self.names = [groups.names[k] for k in used]
        self.loss = make_objective(
            _with_known_labels(self.fits.held, objective.layout.n_labels),
            objective.layout,
            l2=0.0,
            device=objective.device,
            n_threads=objective.n_threads,
        )

    @property
    def passes(self) -> float:
        objective = self.fits.objective
        return objective.counts.sequences / max(1, objective.n_sequences)

    def sizes(self) -> dict[str, int]:
        return dict(zip(self.names, np.bincount(self.of_weights).tolist(), strict=True))

    def optimum(self, l2: dict[str, float]) -> PathPoint:
        each = np.array([l2[name] for name in self.names])[self.of_weights]
        self.optima.scale_l2(each / self.l2)
        return self.optima.solve(self.l2)

    def value(self, point: PathPoint) -> float:
        return self.loss.value(self.loss.xp.asarray(point.weights))

    def slopes(self, l2: dict[str, float], residual: float) -> dict[str, float]:
        """The derivatives of the loss with respect to each log l2, at the last optimum."""
        w = self.optima.weights
        _, g = self.loss.value_and_grad(w)
        u = self.optima.adjoint(g, residual)
        self.fits.objective.keep_curvature(None)  # one fold at a time
        sums = np.bincount(self.of_weights, to_numpy(w) * to_numpy(u))
        return {name: -l2[name] * float(x) for name, x in zip(self.names, sums, strict=True)}


def _with_known_labels(held: Dataset, n_labels: int) -> Dataset:
    """The sequences whose labels the training data has; the others have probability 0."""
    assert held.labels is not None
    wrong = np.repeat(np.arange(held.n_sequences), held.lengths)[held.labels >= n_labels]
    kept = np.setdiff1d(np.arange(held.n_sequences), wrong)
    if len(kept) == 0:
        raise DataError(
            "every held-out sequence has a label that is not in the training data", file=held.source
        )
    return held if len(wrong) == 0 else held.subset(kept)


def _descend(
    folds: Sequence[_HeldOut],
    names: list[str],
    start: float,
    steps: int,
    interrupted: Callable[[], bool],
    callback: Callable[[int, float, float], None] | None,
) -> tuple[NDArray[np.float64], list[PathPoint], list[PathPoint], list[float]]:
    """Lower the loss. Returns log l2, the optima there and at the start, and the losses."""

    def optima(theta: NDArray[np.float64]) -> tuple[float, list[PathPoint]]:
        points = [fold.optimum(_penalties(names, theta)) for fold in folds]
        return sum(fold.value(point) for fold, point in zip(folds, points, strict=True)), points

    theta = np.full(len(names), math.log(start))
    loss, points = optima(theta)
    first, losses = points, [loss]
    descent = _Bfgs()
    for step in range(1, steps + 1):
        if interrupted():
            break
        d = descent.direction(theta, gradient(folds, names, theta))
        for factor in (1.0, SHORTER, SHORTER**2):
            there = np.clip(theta + factor * d, *np.log(RANGE))
            tried, reached = optima(there)
            if tried < loss or interrupted():
                break
        if interrupted() or not tried < loss:
            break
        gain, theta, loss, points = loss - tried, there, tried, reached
        losses.append(loss)
        if callback is not None:
            callback(step, losses[0], loss)
        if gain < GAIN * loss:
            break
    return theta, points, first, losses


def gradient(
    folds: Sequence[_HeldOut], names: list[str], theta: NDArray[np.float64], residual: float = RESIDUAL
) -> NDArray[np.float64]:
    """Derivatives of the loss with respect to log l2 at the last optima."""
    total = dict.fromkeys(names, 0.0)
    for fold in folds:
        for name, slope in fold.slopes(_penalties(names, theta), residual).items():
            total[name] += slope
    return np.array([total[name] for name in names])


def _penalties(names: list[str], theta: NDArray[np.float64]) -> dict[str, float]:
    return {name: float(f"{math.exp(x):.6g}") for name, x in zip(names, theta, strict=True)}


class _Bfgs:
    """Directions of BFGS, cut to the longest step; the first one is the gradient's."""

    def __init__(self) -> None:
        self.inverse: NDArray[np.float64] | None = None  # of the Hessian
        self.last: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def direction(self, theta: NDArray[np.float64], g: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.last is not None:
            s, y = theta - self.last[0], g - self.last[1]
            if (product := float(s @ y)) > 1e-12 * float(y @ y):
                if self.inverse is None:
                    self.inverse = np.eye(len(g)) * (product / float(y @ y))
                move = np.eye(len(g)) - np.outer(s, y) / product
                self.inverse = move @ self.inverse @ move.T + np.outer(s, s) / product
        self.last = theta, g
        d = -g if self.inverse is None else -(self.inverse @ g)
        largest = float(np.abs(d).max(initial=0.0))
        if self.inverse is None or largest > LONGEST:
            d *= LONGEST / max(largest, 1e-300)
        return d
