"""Newton's method with conjugate gradients on exact Hessian products [1].

    s by conjugate gradients on H s = -g, until |H s + g| <= xi_k |g_k|,     w <- w + s

The objective computes a product by a dynamic programme on the marginals kept from the gradient [1, 2]; the
inner iteration and its preconditioner are in `conjugate_gradient`. What makes the method descend from
anywhere is a trust region (`trust_region`) or a line search (`globalisation`).

From zero the method of [1] is slow: its model is good near the optimum only. By default a dozen epochs of a
first-order method go there (`starts`), and the steps that follow have the Hessian's diagonal as metric and a
Wolfe search. Given weights to start at, or where the start fails, the method is that of [1]; ``start="none"``
asks for it. Classifiers with two classes, or with more items than attributes, need no start: from zero, with
some of the diagonal in the metric and a Wolfe search, they converge before a start would be done. Forcing
sequences, with xi the option:

    const          xi_k = xi                                           linear rate
    superlinear    xi_k = min(xi, sqrt(|g_k| / |g_0|))                 superlinear: xi_k -> 0
    quadratic      the test on the model's decrease, with min(xi, sqrt(|g_k|))   [3]

Vectors of the size of the weights, allocated once: point and trial point (w, g each), four of conjugate
gradients, and the metric if there is a preconditioner. One step is reported per accepted point; what rejected
trials cost is in its numbers.

References
----------
[1] Y. Tsuboi, Y. Unno, H. Kashima, N. Okazaki (2011). Fast Newton-CG method for batch learning of conditional
    random fields. AAAI-25, 489-494.
[2] B. Pearlmutter (1994). Fast exact multiplication by the Hessian. Neural Computation 6, 147-160.
[3] C.-Y. Hsia, W.-L. Chiang, C.-J. Lin (2018). Preconditioned conjugate gradient methods in truncated Newton
    frameworks for large-scale linear classification. ACML, 312-326.
"""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from crfit import vectors
from crfit.engines.objective import Curvature, Objective
from crfit.errors import CapabilityError
from crfit.trainers.newton.conjugate_gradient import AdaptiveMetric, FixedMetric, Metric, Workspace
from crfit.trainers.newton.globalisation import Globalisation, LineSearch, Model, Move, Point, WolfeSearch
from crfit.trainers.newton.starts import dual_start, stochastic_start
from crfit.trainers.newton.trust_region import TrustRegion
from crfit.trainers.registry import State, Step, check_options, option, register
from crfit.trainers.wolfe_search import rounding_level
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

#: Steps in a row without gain after which double precision is taken to be used up, and what the gradient has
#: fall to for a gain: near the end of precision it still falls by tiny amounts.
MAX_STALLED = 3
SHORTER = 0.9
#: Bytes that the chains of a start on the dual may take; without a start from there, SGD makes one.
DUAL_MEMORY = 2 << 30
#: Accuracy of conjugate gradients unless given: in a trust region, and otherwise.
XI_REGION, XI = 0.5, 0.25
#: Items per attribute from which a classifier with more than two classes needs no start.
MANY_ITEMS = 2.0
#: Share of the diagonal in the metric without a start, for two classes and for more. With more of it data
#: that can be separated takes more products; with less, attributes of very different frequencies do.
TWO_CLASSES_MIX, CLASSES_MIX = 0.03, 0.1


@register(
    "newton_cg",
    needs={"value_and_grad", "hvp"},
    handles={"l2"},
    formula="w <- w + s, s by conjugate gradients on H s = -g until |H s + g| <= xi |g|",
    descends=True,
    window=1,
    keeps="ten vectors of weights and tables of the sequences (`cache`), in its start a chain for each",
    ends="at rounding level",
    choose="training to the optimum",
)
@dataclass(frozen=True)
class NewtonCG:
    """Newton's method with conjugate gradients on exact Hessian products."""

    start: Literal["auto", "eg", "sgd", "none"] = option(
        "auto",
        help="epochs on the dual (eg) or of stochastic gradient descent (sgd) first, as many as pay; auto: "
        "eg if its chains fit into 2 GiB, else sgd, and none for classifiers with two classes or many "
        "items; none: from the weights given, as the papers do",
    )
    globalisation: Literal["auto", "trust_region", "line_search", "wolfe"] = option(
        "auto",
        help="bound the step by a radius, halve it until F falls enough, or search along it until the slope "
        "is small; auto: wolfe after a start and for such classifiers, else trust_region",
    )
    forcing: Literal["const", "superlinear", "quadratic"] = option(
        "const", help="accuracy of conjugate gradients: fixed, rising with the gradient's fall, or by gain"
    )
    xi: float | None = option(
        None,
        help="that accuracy, or its upper bound (LIBLINEAR: 0.1); None: 0.5 in a trust region, else 0.25",
        above=0,
        below=1,
    )
    preconditioner: Literal["auto", "none", "diag"] = option(
        "auto",
        help="metric of conjugate gradients: none, or from the Hessian's diagonal (a pass per step); auto: "
        "the diagonal after a start, less of it the nearer the optimum, a little for such classifiers, else "
        "none",
    )
    mix: float = option(0.01, help="preconditioner=diag is (1 - mix) l2 + mix * diagonal", above=0, at_most=1)
    max_cg: int = option(250, help="Hessian products allowed to find one step", at_least=1)
    curvature: Literal["dp", "ad"] = option(
        "dp", help="products from stored marginals, or by differentiating forward-backward again"
    )
    cache: int | str = option(
        "all",
        help="what products reuse: all, none, a number of sequences, or memory such as 2GiB",
        at_least=0,
        may_change=True,
    )
    storage: Literal["alphabeta", "pairs"] = option(
        "alphabeta",
        help="form of what is kept: forward and backward tables, or the papers' pair marginals",
        may_change=True,
    )
    seed: int = option(0, help="random seed of the start", at_least=0)

    def __post_init__(self) -> None:
        check_options(self)
        self._kept()

    def steps(self, objective: Objective, w: Vector, state: State | None = None) -> Iterator[Step]:
        """Yield the starting point, then one step per accepted point."""
        asked = {
            ("preconditioner", "diag"): "hessian_diagonal",
            ("start", "eg"): "dual",
            ("start", "sgd"): "online",
        }
        for (name, value), need in asked.items():
            if getattr(self, name) == value and need not in objective.capabilities:
                lacking = f"needs {need}, which {type(objective).__name__} does not offer; give none"
                raise CapabilityError(name, value, lacking)
        if state is None or "met" in state or "gains" in state:
            started = yield from self._start(objective, w, state)
            state = None
        else:
            started = bool(state["started"])
        objective.keep_curvature(self._kept())
        try:
            yield from self._outer(objective, w, state, started)
        finally:
            objective.keep_curvature(None)

    def _start(self, objective: Objective, w: Vector, state: State | None) -> Generator[Step, None, bool]:
        """Make the start, if any; return whether `w` is there."""
        if state is None and vectors.norms(w)[0] > 0.0:
            return False
        kind = self._kind_of_start(objective)
        if kind == "none":
            return False
        start = dual_start if kind == "eg" else stochastic_start
        return (yield from start(objective, w, self.seed, state))

    def _kind_of_start(self, objective: Objective) -> str:
        """The start given, or for auto the best that this objective can have."""
        able = objective.capabilities
        if self.start == "auto" and _is_easy(objective):
            return "none"
        if self.start != "auto" or "hessian_diagonal" not in able:
            return "none" if self.start == "auto" else self.start
        chains = objective.dual_bytes if "dual" in able else None
        if chains is not None and chains <= DUAL_MEMORY and objective.l2 > 0.0:
            return "eg"
        return "sgd" if "online" in able else "none"

    def _outer(self, objective: Objective, w: Vector, state: State | None, started: bool) -> Iterator[Step]:
        point, work = Point(objective, w), Workspace(w, objective.xp)
        region = self._globalisation(started or _is_easy(objective))
        metric = self._metric(objective, started, state)
        stalled, best_norm, gain = 0, math.inf, math.inf

        def report(**details: Any) -> Step:
            kept = {} if metric.diagonal is None else {"diagonal": metric.diagonal}
            return Step(
                point.w,
                point.value,
                point.grad_inf,
                point.grad_norm,
                state={
                    **point.state(),
                    **region.state(),
                    **kept,
                    "started": started,
                    "first_norm": first_norm,
                    "stalled": stalled,
                    "best_norm": best_norm,
                    "gain": gain,
                },
                **details,
            )

        if state is None:
            point.evaluate_start()
            first_norm = point.grad_norm
            stop = StopReason.CONVERGED if point.grad_inf == 0.0 else None
            yield report(initial=not started, stop=stop)
        else:
            point.restore(state)
            region.restore(state)
            first_norm, gain = float(state["first_norm"]), float(state["gain"])
            stalled, best_norm = int(state["stalled"]), float(state["best_norm"])

        while point.grad_norm > 0.0:
            xi = self._accuracy(isinstance(region, TrustRegion), point.grad_norm / first_norm)
            diagonal = metric.at(objective, gain)
            before = point.value
            move = region.advance(point, work, Model(xi, self.forcing == "quadratic", diagonal, self.max_cg))
            extra = {"cg": float(move.products), "rejected": float(move.rejected), "xi": xi, **region.extra()}
            if diagonal is not None:
                extra["mix"] = metric.mix
            if move.stop is None:
                gain = (before - point.value) / max(abs(point.value), 1e-300)
                moved = before - point.value > rounding_level(before) or point.grad_norm < SHORTER * best_norm
                stalled, best_norm = (0 if moved else stalled + 1), min(best_norm, point.grad_norm)
            stop, message = _ending(move, point, stalled)
            yield report(step_size=move.step_size, extra=extra, stop=stop, message=message)
            if stop is not None:
                return

    def _globalisation(self, good_model: bool) -> Globalisation:
        if self.globalisation == "wolfe" or (self.globalisation == "auto" and good_model):
            return WolfeSearch()
        return LineSearch() if self.globalisation == "line_search" else TrustRegion()

    def _metric(self, objective: Objective, started: bool, state: State | None) -> Metric:
        if self.preconditioner == "diag":
            return FixedMetric(self.mix)
        exact = _is_easy(objective) and "hessian_diagonal" in objective.capabilities
        if self.preconditioner == "auto" and exact and not started:
            return FixedMetric(TWO_CLASSES_MIX if objective.logistic else CLASSES_MIX)
        if self.preconditioner == "none" or not started:
            return Metric()
        return AdaptiveMetric(None if state is None else state.get("diagonal"))

    def _accuracy(self, in_region: bool, fallen: float) -> float:
        xi = self.xi if self.xi is not None else XI_REGION if in_region else XI
        return min(xi, math.sqrt(fallen)) if self.forcing == "superlinear" else xi

    def _kept(self) -> Curvature:
        return Curvature(self.cache, self.storage, ad=self.curvature == "ad")


def _is_easy(objective: Objective) -> bool:
    """Whether Newton's model is good from zero on: a classifier with two classes or many items."""
    return objective.logistic or objective.items_per_attribute >= MANY_ITEMS


def _ending(move: Move, point: Point, stalled: int) -> tuple[StopReason | None, str]:
    """Whether the run ends with this step, and why."""
    if move.stop is not None:
        return move.stop, move.message
    if point.grad_inf == 0.0:
        return StopReason.CONVERGED, ""
    if stalled >= MAX_STALLED:
        return StopReason.LINE_SEARCH, "objective and gradient are at rounding level"
    return None, ""
