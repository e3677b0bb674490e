"""Newton's method with conjugate gradients on exact Hessian-vector products [1].

    s by conjugate gradients on H s = -g, until |H s + g| <= xi_k |g_k|,     w <- w + s

The objective computes a Hessian-vector product by dynamic programming on marginals cached by the gradient [1,
2]. `conjugate_gradient` has the inner iteration and its preconditioner. A trust region (`trust_region`) or a
line search (`globalisation`) makes the method converge from any point.

From zero weights Newton-CG as published [1] is slow: the quadratic model is good only near the optimum. By
default a warm-up (`starts`) runs about a dozen epochs of a first-order method first; the Newton steps then
use the Hessian's diagonal as preconditioner and a Wolfe line search. So they do from given weights: these are
an optimum of other data, and where much of the data is new a few epochs of SGD bring them nearer first.
``start="none"`` or a failed warm-up from zero weights give Newton-CG as published. Classifiers with two
classes, or with many items per attribute, need no warm-up: with a weak diagonal preconditioner and a Wolfe
search they converge sooner without one.

With l1 > 0 the steps keep to an orthant (`orthant`), which replaces trust region, line search, forcing
sequence and preconditioner; it uses `xi` and at most 100 products in a step.

After each step the run estimates how far above the optimum it is, from the gains g_k of the last two steps
(relative to F):

    left = g_k rho / (1 - rho) + missed,    rho = max(g_k / g_{k-1}, rest)

where missed is by how much a full step gained less than its model promised, and rest is the share of the
model's decrease that conjugate gradients have left: about xi, or more than a half if they ended sooner or the
step was shortened. After twelve and more products and a full step, the gains of the products give an estimate
too (`conjugate_gradient`); the smaller of the two counts.

Forcing sequences, with xi the option:

    const          xi_k = xi                                           linear rate
    superlinear    xi_k = min(xi, sqrt(|g_k| / |g_0|))                 superlinear: xi_k -> 0
    quadratic      the test on the model's decrease, with min(xi, sqrt(|g_k|))   [3]

Vectors of n_weights, allocated once: point and trial point (w and g each), four for conjugate gradients, and
the preconditioner. Each accepted point is one step; its numbers include the cost of rejected trials.

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
from crfit.trainers.newton.orthant import OrthantSearch
from crfit.trainers.newton.starts import dual_start, is_near, stochastic_start
from crfit.trainers.newton.trust_region import TrustRegion
from crfit.trainers.options import check_options, option
from crfit.trainers.registry import State, Step, register
from crfit.trainers.wolfe_search import NO_PROGRESS, rounding_level
from crfit.training.interrupts import must_hurry
from crfit.training.stopping import StopReason, wanted_tol
from crfit.vectors import Vector

#: The run ends after this many steps in a row without progress. A gradient norm counts as progress only if it
#: falls below `SHORTER` times the best: at the limit of double precision it still falls by tiny amounts.
MAX_STALLED = 3
SHORTER = 0.9
#: Share of the decrease that is left when conjugate gradients run out of products, or the step is shortened.
UNSOLVED = 0.5
#: Bytes that the dual variables of the warm-up may take; above it the warm-up is SGD.
DUAL_MEMORY = 2 << 30
#: Accuracy of conjugate gradients unless given: in a trust region, and otherwise.
XI_REGION, XI = 0.5, 0.35
#: A classifier with more than two classes needs no warm-up from this many items per attribute on.
MANY_ITEMS = 2.0
#: Share of the diagonal in the preconditioner without a warm-up, for two classes and for more. A larger share
#: costs products on separable data; a smaller one, on attributes of very different frequencies.
TWO_CLASSES_MIX, CLASSES_MIX = 0.03, 0.1


@register(
    "newton_cg",
    needs={"value_and_grad", "hvp"},
    handles={"l1", "l2", "toward", "groups"},
    formula="w <- w + s, s by conjugate gradients on H s = -g until |H s + g| <= xi |g|",
    descends=True,
    window=1,
    keeps="ten vectors of weights, cached marginals (`cache`), and the dual variables during a warm-up by eg",
    ends="when it estimates that F is at most 0.01 % above its minimum, or with other rules at the limit of "
    "double precision",
    choose="you want the optimum; `auto` usually picks it",
)
@dataclass(frozen=True)
class NewtonCG:
    """Newton-CG with exact Hessian-vector products, after a warm-up; orthant-wise if l1 > 0."""

    start: Literal["auto", "eg", "sgd", "none"] = option(
        "auto",
        help="warm-up before the first Newton step: epochs of eg or sgd, or none (Newton-CG as published); "
        "auto: sgd; none for classifiers with two classes or many items per attribute; with l1 > 0, eg with "
        "at least l2 = 0.3 l1 unless the dual takes more than 2 GiB",
    )
    globalisation: Literal["auto", "trust_region", "line_search", "wolfe"] = option(
        "auto",
        help="how the step length is controlled: trust region, backtracking line search or strong Wolfe line "
        "search; auto: wolfe after a warm-up and for classifiers that skip it, else trust_region; not used "
        "with l1 > 0",
    )
    forcing: Literal["const", "superlinear", "quadratic"] = option(
        "const",
        help="when conjugate gradients stop: at the residual xi (const), at a residual that falls with the "
        "gradient (superlinear), or when the quadratic model hardly improves (quadratic); not used with "
        "l1 > 0",
    )
    xi: float | None = option(
        None,
        help="largest relative residual at which conjugate gradients stop; None: 0.5 with a trust region, "
        "else 0.35",
        above=0,
        below=1,
    )
    preconditioner: Literal["auto", "none", "diag"] = option(
        "auto",
        help="preconditioner of conjugate gradients: none, or the Hessian's diagonal (one pass per step); "
        "auto: the diagonal after a warm-up, with less weight near the optimum; with little weight for "
        "classifiers that skip the warm-up; else none; with l1 > 0 always the diagonal, with a fixed weight",
    )
    mix: float = option(
        0.01, help="for preconditioner=diag: use (1 - mix) l2 + mix * diagonal", above=0, at_most=1
    )
    max_cg: int = option(250, help="maximum number of Hessian-vector products per step", at_least=1)
    curvature: Literal["dp", "ad"] = option(
        "dp",
        help="how Hessian-vector products are computed: from marginals (dp), or by automatic differentiation "
        "of forward-backward (ad)",
    )
    cache: int | str = option(
        "all",
        help="marginals to cache for the products: all, none, a number of sequences, or a size such as 2GiB",
        at_least=0,
        may_change=True,
    )
    storage: Literal["alphabeta", "float32", "pairs"] = option(
        "alphabeta",
        help="what the cache holds: forward and backward tables, the same in single precision (half the "
        "memory, products exact to about 1e-6), or pair marginals as in the paper",
        may_change=True,
    )
    batch: int | None = option(
        None,
        help="sequences in a mini-batch of the warm-up by sgd, which then uses all threads; None: 1 with at "
        "most 1,000 transition weights, else 8, or 16 for large data; auto sets 8 from eight threads on",
        at_least=1,
    )
    seed: int = option(0, help="random seed of the warm-up", at_least=0)

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
        if objective.l1 > 0.0 and "hessian_diagonal" not in objective.capabilities:
            lacking = f"needs hessian_diagonal, which {type(objective).__name__} does not offer; use lbfgs"
            raise CapabilityError("l1", objective.l1, lacking)
        for (name, value), need in asked.items():
            if getattr(self, name) == value and need not in objective.capabilities:
                lacking = f"needs {need}, which {type(objective).__name__} does not offer; use none"
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
        """Run the warm-up, if any; return whether `w` is its result."""
        if state is not None:
            kind = "eg" if "gains" in state else "sgd"
        elif vectors.norms(w)[0] > 0.0:
            return (yield from self._from_given(objective, w))
        else:
            kind = self._kind_of_start(objective)
        if kind == "none":
            return False
        if kind == "eg":
            return (yield from dual_start(objective, w, self.seed, state))
        return (yield from stochastic_start(objective, w, self.seed, state, self.batch))

    def _from_given(self, objective: Objective, w: Vector) -> Generator[Step, None, bool]:
        """Warm up from the given weights if they are far; return whether Newton steps are good there."""
        able = objective.capabilities
        if self.start == "none" or objective.l1 > 0.0 or is_easy(objective) or "hessian_diagonal" not in able:
            return False
        if "online" not in able:
            return True
        near, value = is_near(objective, w)
        if near:
            return True
        if value >= objective.value(zeros := objective.xp.zeros_like(w)):  # better from nothing
            w[:] = zeros
            return (yield from stochastic_start(objective, w, self.seed, None, self.batch))
        return (yield from stochastic_start(objective, w, self.seed, None, self.batch, value))

    def _kind_of_start(self, objective: Objective) -> str:
        """The warm-up given, or for auto the best one here."""
        able = objective.capabilities
        if self.start != "auto":
            return self.start
        if is_easy(objective) or "hessian_diagonal" not in able:
            return "none"
        chains = objective.dual_bytes if "dual" in able else None
        dual = chains is not None and chains <= DUAL_MEMORY and objective.l1 + objective.l2 > 0.0
        if dual and (objective.l1 > 0.0 or "online" not in able):
            return "eg"
        return "sgd" if "online" in able else "none"

    def _outer(self, objective: Objective, w: Vector, state: State | None, started: bool) -> Iterator[Step]:
        point, work = Point(objective, w), Workspace(w, objective.xp)
        region = self._globalisation(objective, started or is_easy(objective))
        metric = self._metric(objective, started, state)
        stalled, best_norm, gain = 0, math.inf, math.inf

        def current() -> dict[str, Any]:
            kept = {} if metric.diagonal is None else {"diagonal": metric.diagonal}
            numbers = {"first_norm": first_norm, "stalled": stalled, "best_norm": best_norm, "gain": gain}
            return {**point.state(), **region.state(), **kept, "started": started, **numbers}

        def report(**details: Any) -> Step:
            return Step(point.w, point.value, point.grad_inf, point.grad_norm, state=current(), **details)

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
            before, place = point.value, (point.w, current())  # not overwritten in this step
            wanted = wanted_tol() * abs(point.value) if isinstance(region, WolfeSearch) else 0.0
            model = Model(xi, self.forcing == "quadratic", diagonal, self.max_cg, wanted)
            move = region.advance(point, work, model)
            extra = {"cg": float(move.products), "rejected": float(move.rejected), "xi": xi, **region.extra()}
            if diagonal is not None:
                extra["mix"] = metric.mix
            cut = must_hurry()  # conjugate gradients ended early
            if move.stop is None:
                previous, gain = gain, (before - point.value) / max(abs(point.value), 1e-300)
                rest = xi if region.solved else max(xi, UNSOLVED)
                scale = max(abs(point.value), 1e-300)
                left = min(_left(previous, gain, rest) + region.missed / scale, region.left / scale)
                extra["left"] = math.inf if cut else left
                moved = before - point.value > rounding_level(before) or point.grad_norm < SHORTER * best_norm
                stalled, best_norm = (0 if moved else stalled + 1), min(best_norm, point.grad_norm)
            stop, message = _ending(move, point, stalled)
            cut_from = place if cut else None
            yield report(step_size=move.step_size, extra=extra, stop=stop, message=message, cut_from=cut_from)
            if stop is not None:
                return

    def _globalisation(self, objective: Objective, good_model: bool) -> Globalisation:
        if objective.l1 > 0.0:
            return OrthantSearch()
        if self.globalisation == "wolfe" or (self.globalisation == "auto" and good_model):
            return WolfeSearch()
        return LineSearch() if self.globalisation == "line_search" else TrustRegion()

    def _metric(self, objective: Objective, started: bool, state: State | None) -> Metric:
        if objective.l1 > 0.0:
            return FixedMetric(1.0)
        if self.preconditioner == "diag":
            return FixedMetric(self.mix)
        exact = is_easy(objective) and "hessian_diagonal" in objective.capabilities
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


def _left(previous: float, gain: float, rest: float) -> float:
    """What is left to gain, infinite if the gains do not fall."""
    if gain <= 0.0:
        return 0.0
    if math.isinf(previous) or previous <= gain:
        return math.inf
    rho = max(gain / previous, rest)
    return gain * rho / (1.0 - rho)


def is_easy(objective: Objective) -> bool:
    """Whether the quadratic model is good from zero weights: a classifier with two classes or many items."""
    return objective.logistic or objective.items_per_attribute >= MANY_ITEMS


def _ending(move: Move, point: Point, stalled: int) -> tuple[StopReason | None, str]:
    """Whether the run ends with this step, and why."""
    if move.stop is not None:
        return move.stop, move.message
    if point.grad_inf == 0.0:
        return StopReason.CONVERGED, ""
    if stalled >= MAX_STALLED:
        return StopReason.LINE_SEARCH, NO_PROGRESS
    return None, ""
