"""The optimum for one pair of penalties after another, each from the previous one.

Along decreasing l2 the optimum moves smoothly in log l2. At the optimum the gradient of F is zero for every
l2, so with H the Hessian

    dw / d log l2 = -l2 H^-1 w                            one solve by conjugate gradients

predicts the next optimum. From the third point on, the line through the last two optima does the same without
a solve: w + f (w - w_before), f the ratio of the two steps in log l2. Prediction and both penalties need no
pass except one gradient at the predicted point. Newton steps then correct it.

With l1 > 0 the steps are those of `crfit.trainers.newton.orthant`, and predicted weights keep their sign.
Weights that are 0 and stay 0 by the strong rule [1] are left out,

    w_i = 0  and  |g_i| < 2 l1 - l1_before,      g the gradient of the loss at the optimum before,

until the gradient at the new point shows that some of them have to move (|g_i| > l1): those join, and what
they could gain is part of the estimated distance, so that the steps go on if it matters. Nothing is lost.

How far F is above its minimum (`PathPoint.gap`, relative) is estimated after each Newton step from the
quadratic model Q: what conjugate gradients still gained in their last products, and what Q mispredicted,

    left = 2 k gain + 4 e^2 / m,     k products, gain the mean of their last third;
                                     m predicted, F fell by m + e

and with l1 > 0 as `crfit.trainers.newton.orthant` does. Part of the error of the last point stays: its own
`left` is added, times 1 - k / 200, unless the tolerance is rough.
This is an estimate. The bound by strong convexity always holds,

    F(w) - F* <= |g|^2 / (2 l2)                           g the (pseudo-)gradient

and is reported as `PathPoint.bound`. It is usually ten times as large; `certify` continues until the bound
is at most the tolerance.

References
----------
[1] Tibshirani, Bien, Friedman, Hastie, Simon, Taylor, Tibshirani (2012). Strong rules for discarding
    predictors in lasso-type problems. J. R. Stat. Soc. B 74, 245-266.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crfit import vectors
from crfit.checks import check_number
from crfit.engines.objective import Curvature
from crfit.errors import CapabilityError, OptionError
from crfit.trainers.newton.conjugate_gradient import ModelStep, Workspace, minimise_model, mixed
from crfit.trainers.newton.globalisation import MISSED, Globalisation, LineSearch, Model, Point
from crfit.trainers.newton.newton_cg import NewtonCG
from crfit.trainers.newton.orthant import OrthantSearch
from crfit.training.interrupts import InterruptGuard, hurry_when, must_hurry
from crfit.training.loop import minimise
from crfit.training.stopping import Stop
from crfit.vectors import Vector, to_numpy

if TYPE_CHECKING:
    from crfit.engines import EngineObjective

__all__ = ["Continuation", "PathPoint", "path"]

#: Share of the diagonal in the preconditioner.
MIX = 0.3
#: Conjugate gradients end when k gain_k is at most the first share of their decrease so far, or what they
#: could still gain at most the second of the tolerance.
XI, ENOUGH = 0.3, 0.2
#: But not before so many products, unless the gradient is zero.
FEWEST = 4
#: The same for the slope of the path.
XI_SLOPE = 0.3
#: Share of the certified tolerance that the predicted gradient has to meet.
SAFETY = 0.9
#: The Hessian's diagonal is computed again after so many points.
FRESH = 3
#: Newton steps for one point, at most, and products of a linear system.
MAX_STEPS, MAX_PRODUCTS = 50, 250
#: Products of a step without l1: a second step with a fresh model is better than a long one.
STEP_PRODUCTS = 25
#: Residual at which conjugate gradients end in an orthant: at most the first, and no less than the second, or
#: than the third for a tolerance of `ROUGH` or more; in between where half the squared residual in the metric
#: is this share of the tolerance. With 0.35 as the second, points end up to 1.6 tolerances above the optimum.
XI_ORTHANT, ENOUGH_ORTHANT = (0.9, 0.3, 0.5), 0.1
ROUGH = 0.01
#: Products after which the error of the last point is gone, without l1.
TRUSTED = 200
#: Longest step along one weight in an orthant.
REACH = 1.0
#: Longest prediction, relative to the last step in log l2.
LONGEST = 2.5


@dataclass(frozen=True, eq=False)
class PathPoint:
    """The optimum for one pair of penalties.

    Attributes
    ----------
    l2, l1 : float
        The penalties.
    weights : float64[n_weights]
        The weights, read-only.
    objective : float
        F at the weights.
    gap : float
        Estimated ``(F - F*) / F``.
    bound : float
        Upper bound of it, ``|g|^2 / (2 l2 F)``; infinite for l2 = 0 and with unpenalised weights.
    n_nonzero : int
        Number of weights that are not 0.
    passes : float
        Passes over the data for this point.
    seconds : float
        Seconds for this point.
    """

    l2: float
    l1: float
    weights: Vector
    objective: float
    gap: float
    bound: float
    n_nonzero: int
    passes: float
    seconds: float


def path(
    objective: EngineObjective,
    l2: Sequence[float] | NDArray[np.float64],
    l1: float | Sequence[float] | NDArray[np.float64] = 0.0,
    *,
    l1_ratio: float | None = None,
    tol: float = 1e-3,
    certify: bool = False,
    seed: int = 0,
    callback: Callable[[PathPoint], None] | None = None,
) -> list[PathPoint]:
    """Compute the optima for a sequence of penalties, each from the previous one.

    A path costs a fraction of separate trainings: predicted by its predecessors, a point of a fine path needs
    about a dozen passes. Press Ctrl-C to end it; the points so far are returned.

    Parameters
    ----------
    objective : EngineObjective
        The function to minimise, from `crfit.make_objective`. Its own penalties are not used.
    l2 : sequence of float
        Values of the l2 penalty, from the largest to the smallest; finer steps need fewer passes each.
    l1 : float or sequence of float, default=0.0
        l1 penalty: one for all points, or one per point.
    l1_ratio : float, optional
        Instead of `l1`: l1 as a multiple of l2 at every point.
    tol : float, default=1e-3
        Estimated relative distance to the optimum, at most.
    certify : bool, default=False
        Whether `tol` must also hold for `PathPoint.bound`, which is no estimate. This can double the passes;
        needs l2 > 0.
    seed : int, default=0
        Random seed of the start of the first point.
    callback : callable, optional
        Called with each point when it is finished.

    Returns
    -------
    list of PathPoint
        One point per penalty, in the order given.

    Examples
    --------
    >>> import crfit
    >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
    >>> objective = crfit.make_objective(crfit.Dataset.from_sequences(X, y))
    >>> [round(point.objective, 2) for point in crfit.path(objective, l2=[1.0, 0.5, 0.25])]
    [1.83, 1.41, 1.02]
    """
    pairs = _pairs(l2, l1, l1_ratio)
    if certify and not all(pair[0] > 0.0 for pair in pairs):
        raise OptionError("certify", True, "the bound needs l2 > 0: raise l2, or leave this option out")
    found: list[PathPoint] = []
    with InterruptGuard() as guard, Continuation(objective, tol=tol, certify=certify, seed=seed) as optima:
        for pair in pairs:
            with hurry_when(lambda: guard.interrupted):
                point = optima.solve(*pair)
            if guard.interrupted:
                break
            found.append(point)
            if callback is not None:
                callback(point)
    return found


def _pairs(
    l2: Sequence[float] | NDArray[np.float64],
    l1: float | Sequence[float] | NDArray[np.float64],
    l1_ratio: float | None,
) -> list[tuple[float, float]]:
    """The penalties of each point; OptionError for bad values."""
    first = _numbers("l2", l2)
    if not first:
        raise OptionError("l2", l2, "give at least one value")
    if l1_ratio is not None:
        check_number("l1_ratio", l1_ratio, at_least=0)
        if np.ndim(l1) or l1 != 0.0:
            raise OptionError("l1_ratio", l1_ratio, "l1 is given too: leave one of the two out")
        second = [l1_ratio * x for x in first]
    else:
        second = _numbers("l1", [l1] * len(first) if np.ndim(l1) == 0 else l1)
    if len(second) != len(first):
        raise OptionError("l1", l1, f"give one value, or {len(first)}, one for each l2")
    for name, values in (("l2", first), ("l1", second)):
        for x in values:
            if not (math.isfinite(x) and x >= 0.0):
                raise OptionError(name, x, "give finite numbers, 0 or more")
    return list(zip(first, second, strict=True))


def _numbers(name: str, values: Any) -> list[float]:
    try:
        return [float(x) for x in values]
    except (TypeError, ValueError):
        raise OptionError(name, values, "give a list of numbers") from None


class Continuation:
    """The optima of one objective, one pair of penalties after another, in one set of buffers.

    A context: on exit the objective has its own penalties again, and caches no curvature.
    """

    def __init__(
        self, objective: EngineObjective, *, tol: float = 1e-3, certify: bool = False, seed: int = 0
    ) -> None:
        check_number("tol", tol, at_least=1e-12)
        for need in ("hvp", "hessian_diagonal"):
            if need not in objective.capabilities:
                raise CapabilityError("engine", type(objective).__name__, f"lacks {need}, which a path needs")
        if "partial labels" in objective.limits:
            remedy = "make F not convex, so that a path has no optimum to follow: train each penalty"
            raise CapabilityError("labels", "partial labels", remedy)
        self.objective, self.tol, self.certify, self.seed = objective, tol, certify, seed
        self._penalties = objective.l2, objective.l1
        self._point: Point | None = None
        self._before: tuple[Vector, float, float] | None = None  # the optimum before, and its penalties
        self._diagonal: Vector | None = None  # of the Hessian, without l2
        self._age = 0  # points since then
        self._gap = 0.0  # of the last point, at most tol
        self._orthant = OrthantSearch(REACH)

    def __enter__(self) -> Continuation:
        return self

    def __exit__(self, *_: object) -> None:
        self.objective.l2, self.objective.l1 = self._penalties
        self.objective.keep_curvature(None)

    @property
    def weights(self) -> Vector:
        """The weights of the last point; a live view."""
        assert self._point is not None
        return self._point.w

    def scale_l2(self, scale: NDArray[np.float64]) -> None:
        """Set the l2 of each weight relative to l2; the next optimum starts from the last weights."""
        self.objective.scale_l2(scale)
        self._before = None
        if self._point is not None:
            with vectors.use_threads(self.objective.n_threads):
                self._begin(self._point.w)

    def adjoint(self, g: Vector, tol: float) -> Vector:
        """The solution u of H u = g at the last optimum, to a relative residual."""
        assert self._point is not None
        with vectors.use_threads(self.objective.n_threads):
            self._point.pin()
            metric = self._metric()
            minimise_model(
                self.objective.hvp, -g, self._work, xi=tol, metric=metric, max_products=MAX_PRODUCTS
            )
        return self._work.s.copy()  # type: ignore[no-any-return]

    def solve(self, l2: float, l1: float = 0.0) -> PathPoint:
        """The optimum for these penalties."""
        begin, counts, objective = time.perf_counter(), self.objective.counts.sequences, self.objective
        with vectors.use_threads(objective.n_threads):
            if self._point is None:
                self._start(l2, l1)
            else:
                self._follow(l2, l1)
            gap = self._correct()
        point = self._point
        assert point is not None
        weights = to_numpy(point.w).copy()
        weights.flags.writeable = False
        scale = max(abs(point.value), 1e-300)
        self._gap = min(gap / scale, self.tol) if self.tol < ROUGH else 0.0
        return PathPoint(
            l2,
            l1,
            weights,
            float(point.value),
            gap / scale,
            self._bound(point) / scale,
            int(np.count_nonzero(weights)),
            (objective.counts.sequences - counts) / max(1, objective.n_sequences),
            time.perf_counter() - begin,
        )

    def state(self) -> dict[str, Any]:
        """What `resume` needs to continue with the same bytes."""
        assert self._point is not None
        objective = self.objective
        kept: dict[str, Any] = {"w": to_numpy(self._point.w), "age": self._age, "reach": self._orthant.reach}
        kept["gap"] = self._gap
        kept |= {"l2": objective.l2, "l1": objective.l1}
        if self._before is not None:
            w, l2, l1 = self._before
            kept |= {"before": to_numpy(w), "before_l2": l2, "before_l1": l1}
        if self._diagonal is not None:
            kept["diagonal"] = to_numpy(self._diagonal)
        return kept

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue after the point of this state."""
        objective = self.objective
        objective.l2, objective.l1 = float(state["l2"]), float(state["l1"])
        as_vector = objective.xp.array
        self._age, self._orthant.reach = int(state["age"]), float(state["reach"])
        self._gap = min(float(state["gap"]), self.tol)
        if "before" in state:
            penalties = float(state["before_l2"]), float(state["before_l1"])
            self._before = as_vector(state["before"]), *penalties
        self._diagonal = as_vector(state["diagonal"]) if "diagonal" in state else None
        with vectors.use_threads(objective.n_threads):
            self._begin(as_vector(state["w"]))

    # --- the next point ------------------------------------------------------------------------------------

    def _start(self, l2: float, l1: float) -> None:
        """Train the first point from zero."""
        objective = self.objective
        objective.l2, objective.l1 = l2, l1
        result = minimise(objective, NewtonCG(seed=self.seed), stop=Stop(tol=self.tol))
        self._begin(objective.xp.array(result.weights))

    def _begin(self, w: Vector) -> None:
        self.objective.keep_curvature(Curvature())
        self._point, self._work = Point(self.objective, w), Workspace(w, self.objective.xp)
        self._point.evaluate_start()

    def _follow(self, l2: float, l1: float) -> None:
        """Go to the predicted optimum for new penalties, or stay if that is better. Sets: the penalties."""
        objective, point = self.objective, self._point
        assert point is not None
        old_l2, old_l1 = objective.l2, objective.l1
        here = objective.xp.array(point.w)
        if l1 > 0.0:
            self._screen(l1, old_l1)
        else:
            self._orthant.screened = None
        predicted = self._predict(l2, l1)
        # At the same weights value and gradient for the new penalties are known.
        objective.l2, objective.l1 = l2, l1
        smooth = point.value - old_l1 * objective.penalty.sum_abs(point.w)
        value = smooth + (l2 - old_l2) * objective.penalty.value(point.w, 1.0) + objective.l1_term(point.w)
        self._before = here, old_l2, old_l1
        if predicted and point.evaluate() < value:
            point.accept()
            return
        point.value = value
        objective.penalty.add_gradient(here, l2 - old_l2, point.g)
        point.grad_inf, point.grad_norm = (
            vectors.norms(point.g)
            if l1 == 0.0
            else vectors.pseudo_gradient_norms(point.w, point.g, l1, point.free)
        )

    def _predict(self, l2: float, l1: float) -> bool:
        """Whether there is a prediction. Sets: ``w_trial`` of the point."""
        objective, point, xp = self.objective, self._point, self.objective.xp
        assert point is not None
        steps = _log(l2, objective.l2), _log(l1, objective.l1)
        if not any(steps) or not all(map(math.isfinite, steps)):
            return False
        if self._before is not None:
            w, old_l2, old_l1 = self._before
            last = _log(objective.l2, old_l2), _log(objective.l1, old_l1)
            factor = _ratio(steps, last)
            if factor is not None and factor <= LONGEST:
                point.move(factor, point.w - w)
                if l1 > 0.0:  # weights keep their sign
                    crossed = point.w_trial * point.w <= 0.0
                    crossed[point.free] = False
                    point.w_trial[crossed] = 0.0
                return True
        if l1 > 0.0 or objective.l1 > 0.0 or objective.l2 == 0.0 or steps[0] > 0.0:
            return False
        slope = xp.zeros_like(point.w)  # the solution of H s = -slope is dw / d log l2
        objective.penalty.add_gradient(point.w, objective.l2, slope)
        if float(xp.abs(slope).max()) == 0.0:
            return False
        point.pin()
        minimise_model(
            objective.hvp, slope, self._work, xi=XI_SLOPE, metric=self._metric(), max_products=MAX_PRODUCTS
        )
        point.move(steps[0], self._work.s)
        return True

    def _metric(self) -> Vector:
        """The preconditioner at the pinned point; one pass if the diagonal is renewed."""
        objective = self.objective
        if self._diagonal is None or self._age >= FRESH:
            self._diagonal, self._age = objective.hessian_diagonal(), 0
            objective.penalty.add_constant(-objective.l2, self._diagonal)
        metric = self._diagonal.copy()
        objective.penalty.add_constant(objective.l2, metric)
        if objective.l1 > 0.0:
            return mixed(metric, 1.0, objective.l2, metric, objective.free)
        if objective.l2_scale is not None:
            metric *= MIX
            objective.penalty.add_constant((1.0 - MIX) * objective.l2, metric)
            return mixed(metric, 1.0, 0.0, metric, objective.free)
        return mixed(metric, MIX, objective.l2, metric, objective.free)

    # --- Newton steps --------------------------------------------------------------------------------------

    def _correct(self) -> float:
        """Take Newton steps until F is near enough to its minimum; return the estimated distance."""
        point, objective = self._point, self.objective
        assert point is not None
        self._age += 1
        self._orthant.model_left, self._orthant.carried = 0.0, self._gap * abs(point.value)
        search: Globalisation = self._orthant if objective.l1 > 0.0 else LineSearch()
        left, products = math.inf, 0
        for _ in range(MAX_STEPS):
            if point.grad_norm == 0.0:
                return 0.0
            point.pin()
            enough = self.tol * abs(point.value)
            before, model = point.value, self._model(point, enough)
            move = search.advance(point, self._work, model)
            if move.stop is not None:
                self._begin(point.w)  # value and gradient as a resumed run computes them
                break
            if objective.l1 > 0.0:
                left = self._orthant.remaining + self._screened_gain()
            else:
                missed = before - point.value - model.seen["predicted"]
                products += move.products
                left = model.seen["rest"] + max(0.0, 1.0 - products / TRUSTED) * model.carried
                left += MISSED * missed * missed / model.seen["predicted"]
            if (left <= enough and (not self.certify or self._bound(point) <= enough)) or must_hurry():
                break
        return left

    def _model(self, point: Point, enough: float) -> _PathModel:
        objective = self.objective
        norm = SAFETY * math.sqrt(2.0 * self._least_l2() * enough) if self.certify else 0.0
        metric, xi, most_products = self._metric(), XI, STEP_PRODUCTS
        if objective.l1 > 0.0:
            most_products = MAX_PRODUCTS
            v = self._work.product  # free until the step
            vectors.pseudo_gradient(point.w, point.g, objective.l1, v, objective.free)
            square = vectors.dot(v, v / mixed(metric, 0.3, objective.l2, metric.copy(), objective.free))
            most, fine, rough = XI_ORTHANT
            least = rough if self.tol >= ROUGH else fine
            xi = min(most, max(least, math.sqrt(2.0 * ENOUGH_ORTHANT * enough / square)))
        wanted = enough if objective.l1 > 0.0 else 0.0
        carried = self._gap * abs(point.value)
        return _PathModel(xi, True, metric, most_products, wanted, ENOUGH * enough, norm, carried)

    def _bound(self, point: Point) -> float:
        l2, free = self._least_l2(), self.objective.free
        known = l2 > 0.0 and free.start >= free.stop
        return point.grad_norm**2 / (2.0 * l2) if known else math.inf

    def _least_l2(self) -> float:
        scale = self.objective.l2_scale
        return self.objective.l2 * (1.0 if scale is None else float(scale.min()))

    # --- screening -----------------------------------------------------------------------------------------

    def _screen(self, l1: float, old_l1: float) -> None:
        """Leave out weights that stay 0 by the strong rule."""
        point, xp = self._point, self.objective.xp
        assert point is not None
        strong = 2.0 * l1 - old_l1
        screened = (point.w == 0.0) & (xp.abs(point.g) < strong)
        screened[point.free] = False
        self._orthant.screened = screened if strong > 0.0 else None

    def _screened_gain(self) -> float:
        """What weights that were left out could gain; those that have to move join.

        A weight alone gains (|g_i| - l1)^2 / (2 h_i), with h the Hessian's diagonal.
        """
        point, screened, xp = self._point, self._orthant.screened, self.objective.xp
        assert point is not None
        if self.objective.l1 == 0.0 or screened is None:
            return 0.0
        excess = xp.where(screened, xp.abs(point.g) - self.objective.l1, 0.0)
        wrong = excess > 0.0
        screened &= ~wrong
        assert self._diagonal is not None
        curvature = self._diagonal[wrong] + self.objective.l2
        return float((excess[wrong] ** 2 / xp.maximum(2.0 * curvature, 1e-300)).sum())


def _log(new: float, old: float) -> float:
    """The step in the logarithm, infinite from or to 0."""
    if new == old:
        return 0.0
    return math.log(new / old) if new > 0.0 and old > 0.0 else math.inf


def _ratio(step: tuple[float, float], last: tuple[float, float]) -> float | None:
    """The positive factor f with step = f last, or None."""
    square = last[0] ** 2 + last[1] ** 2
    if not 0.0 < square < math.inf:
        return None
    factor = (step[0] * last[0] + step[1] * last[1]) / square
    off = math.hypot(step[0] - factor * last[0], step[1] - factor * last[1])
    return factor if factor > 0.0 and off <= 1e-6 * math.hypot(*step) else None


@dataclass(frozen=True)
class _PathModel(Model):
    """The quadratic model of a Newton step, minimised no further than needed."""

    enough: float = 0.0  # gain k gain_k at which conjugate gradients end
    norm: float = 0.0  # if positive, the norm of the residual instead
    carried: float = 0.0  # what the last point was missed by
    seen: dict[str, float] = field(default_factory=dict)

    def minimise(self, point: Point, work: Workspace, radius: float = math.inf) -> ModelStep:
        """Minimise the model at the point. Sets: `seen`."""
        gains: list[float] = []

        def enough(products: int, gain: float, residual: Vector) -> bool:
            gains.append(gain)
            last = gains[-max(3, products // 3) :]
            self.seen["rest"] = 2.0 * products * sum(last) / len(last)
            if self.norm > 0.0:
                return vectors.dot(residual, residual) <= self.norm * self.norm
            return products >= FEWEST and self.seen["rest"] <= self.enough

        step = minimise_model(
            point.objective.hvp,
            point.g,
            work,
            xi=self.xi if self.norm == 0.0 else 1e-9,
            quadratic=self.norm == 0.0,
            metric=self.metric,
            max_products=self.max_products,
            enough=enough,
        )
        self.seen["predicted"] = step.decrease
        return step
