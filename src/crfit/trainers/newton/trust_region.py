"""Trust region of Newton-CG: which steps are accepted, and how the radius changes.

The step s minimises the model Q within ``|s|_M <= radius``. With ``act = F(w) - F(w+s)`` and ``pre = -Q(s)``
it is accepted iff ``act > eta0 pre``. Rules and constants are those of LIBLINEAR 2.11 [1, 2]:

    a = sigma3 if F(w+s) - F(w) - g.s <= 0, else max(sigma1, -g.s / (2 (F(w+s) - F(w) - g.s)))

    act < eta0 pre     radius <- min(a |s|, sigma2 radius)
    act < eta1 pre     radius <- max(sigma1 radius, min(a |s|, sigma2 radius))
    act < eta2 pre     radius <- max(sigma1 radius, min(a |s|, sigma3 radius))
    otherwise          radius <- sigma3 radius if s was cut at the boundary,
                                 max(radius, min(a |s|, sigma3 radius)) if not

``a`` is the minimiser, in units of s, of the parabola through F(w), its slope and F(w+s).

References
----------
[1] Lin, Weng, Keerthi (2008). Trust region Newton method for logistic regression. JMLR 9, 627-650.
[2] Hsia, Zhu, Lin (2017). A study on trust region update rules in Newton methods for large-scale linear
    classification. ACML, 33-48.
"""

import math
from collections.abc import Mapping
from typing import Any

from crfit import vectors
from crfit.trainers.newton.conjugate_gradient import Workspace
from crfit.trainers.newton.globalisation import Globalisation, Model, Move, Point
from crfit.trainers.wolfe_search import NO_PROGRESS, rounding_level
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

ETA = 1e-4, 0.25, 0.75
SIGMA = 0.25, 0.5, 4.0


def is_accepted(act: float, pre: float) -> bool:
    """Return whether a step is accepted."""
    return act > ETA[0] * pre


def next_radius(radius: float, norm: float, *, act: float, pre: float, slope: float, boundary: bool) -> float:
    """Return the radius for the next step."""
    bend = -act - slope
    length = (SIGMA[2] if bend <= 0.0 else max(SIGMA[0], -0.5 * slope / bend)) * norm
    if act < ETA[0] * pre:
        return min(length, SIGMA[1] * radius)
    if act < ETA[1] * pre:
        return max(SIGMA[0] * radius, min(length, SIGMA[1] * radius))
    if act < ETA[2] * pre:
        return max(SIGMA[0] * radius, min(length, SIGMA[2] * radius))
    return SIGMA[2] * radius if boundary else max(radius, min(length, SIGMA[2] * radius))


class TrustRegion(Globalisation):
    """Trust region; the radius starts at ``|g|_M`` and is cut to the length of the first step."""

    def __init__(self) -> None:
        self.radius = math.inf
        self.first = True

    def advance(self, point: Point, work: Workspace, model: Model) -> Move:
        """Move to a better point, or return why none was found."""
        if math.isinf(self.radius):
            metric = model.metric
            self.radius = point.grad_norm if metric is None else _norm_in(metric, point.g, work.d)
        products, rejected, noise = 0, 0, rounding_level(point.value)
        while True:
            point.pin()
            step = model.minimise(point, work, self.radius)
            products += step.products
            if not step.finite:
                return Move(0.0, products, rejected, StopReason.DIVERGED, "a Hessian product is not finite")
            if not step.decrease > 0.0:
                message = "the quadratic model predicts no decrease"
                return Move(0.0, products, rejected, StopReason.LINE_SEARCH, message)
            if self.first:
                self.radius = min(self.radius, step.norm)
            point.move(1.0, work.s)
            value = point.evaluate()
            act = point.value - value if math.isfinite(value) else -math.inf
            if step.decrease <= noise and abs(act) <= noise:
                # act / pre is a ratio of rounding errors: keep the radius and let the gradient decide.
                if not point.shorter_gradient():
                    return Move(0.0, products, rejected + 1, StopReason.LINE_SEARCH, NO_PROGRESS)
                break
            self.radius = next_radius(
                self.radius, step.norm, act=act, pre=step.decrease, slope=step.slope, boundary=step.boundary
            )
            if is_accepted(act, step.decrease):
                break
            rejected += 1
            if not self.radius > 0.0 or step.decrease <= noise:
                message = "no step in the trust region lowers the objective, however small the radius"
                return Move(0.0, products, rejected, StopReason.LINE_SEARCH, message)
        self.first = False
        self.solved = not step.boundary and step.products < model.max_products
        point.accept()
        return Move(step.norm, products, rejected)

    def extra(self) -> dict[str, float]:
        """The radius, for the log."""
        return {"radius": self.radius}

    def state(self) -> dict[str, Any]:
        """What a resume needs."""
        return {"radius": self.radius, "first": self.first}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Sets: the radius, from `state`."""
        self.radius, self.first = float(state["radius"]), bool(state["first"])


def _norm_in(metric: Vector, g: Vector, scratch: Vector) -> float:
    scratch[:] = metric
    scratch *= g
    return math.sqrt(vectors.dot(scratch, g))
