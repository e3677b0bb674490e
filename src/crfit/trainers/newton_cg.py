"""Newton's method with conjugate gradients on exact Hessian products [1].

    s by conjugate gradients on H s = -g, until |H s + g| <= xi_k |g_k|,     w <- w + s

Products come from the objective, where a dynamic programme on the marginals kept from the gradient makes one
[1, 2]. Two ways to go down from everywhere: a trust region (`crfit.trainers.trust_region`) and a halving line
search (`crfit.trainers.newton_line_search`). Forcing sequences, with xi the option:

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

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from crfit.curvature import Curvature
from crfit.errors import CapabilityError
from crfit.stopping import StopReason
from crfit.trainers.base import Step, check_options, option, register
from crfit.trainers.conjugate_gradient import Workspace
from crfit.trainers.linesearch import rounding_level
from crfit.trainers.newton_line_search import LineSearch
from crfit.trainers.newton_point import Globalisation, Model, Move, Point, diagonal_metric
from crfit.trainers.trust_region import TrustRegion
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.objective import Objective

__all__ = ["NewtonCG"]

#: Steps in a row without gain after which double precision is taken to be used up.
MAX_STALLED = 3


@register(
    "newton_cg",
    needs={"value_and_grad", "hvp"},
    handles={"l2"},
    formula="w <- w + s, s by conjugate gradients on H s = -g until |H s + g| <= xi |g|",
    descends=True,
)
@dataclass(frozen=True)
class NewtonCG:
    """Newton's method with conjugate gradients on exact Hessian products.

    Parameters
    ----------
    globalisation : str
        "trust_region" or "line_search".
    forcing : str
        "const", "superlinear" or "quadratic".
    xi : float
        Accuracy of conjugate gradients, or its upper bound.
    preconditioner : str
        "none" or "diag".
    mix : float
        Share of the Hessian's diagonal in the preconditioner.
    max_cg : int
        Hessian products allowed in one minimisation of the model.
    curvature : str
        "dp" or "ad".
    cache : int or str
        What is kept between products.
    storage : str
        "alphabeta" or "pairs".
    """

    globalisation: Literal["trust_region", "line_search"] = option(
        "trust_region", help="bound the step by a radius, or halve it until F falls enough"
    )
    forcing: Literal["const", "superlinear", "quadratic"] = option(
        "const", help="accuracy of conjugate gradients: fixed, rising with the gradient's fall, or by gain"
    )
    xi: float = option(0.5, help="that accuracy, or its upper bound (LIBLINEAR: 0.1)", above=0, below=1)
    preconditioner: Literal["none", "diag"] = option(
        "none", help="metric of conjugate gradients: none, or from the Hessian's diagonal (a pass per step)"
    )
    mix: float = option(
        0.01, help="preconditioner = (1 - mix) l2 + mix * diagonal of the Hessian", above=0, at_most=1
    )
    max_cg: int = option(250, help="Hessian products allowed to find one step", at_least=1)
    curvature: Literal["dp", "ad"] = option(
        "dp", help="products from kept marginals, or by differentiating forward-backward anew"
    )
    cache: int | str = option(
        "all",
        help="what products reuse: all, none, a number of sequences, or memory such as 2GiB",
        at_least=0,
    )
    storage: Literal["alphabeta", "pairs"] = option(
        "alphabeta", help="form of what is kept: forward and backward tables, or the papers' pair marginals"
    )

    def __post_init__(self) -> None:
        check_options(self)
        self._kept()

    def steps(
        self, objective: Objective, w: Vector, state: Mapping[str, Any] | None = None
    ) -> Iterator[Step]:
        """Yield the starting point, then one step per accepted point.

        Parameters
        ----------
        objective : Objective
            Offers ``value_and_grad`` and ``hvp``, and ``hessian_diagonal`` for the preconditioner.
        w : array of float64 [n_weights]
            Starting point; belongs to the trainer.
        state : mapping, optional
            `Step.state` of an earlier run that ended at `w`. Going on costs one pass, which pins the point.
        """
        if self.preconditioner == "diag" and "hessian_diagonal" not in objective.capabilities:
            lacking = f"needs hessian_diagonal, which {type(objective).__name__} does not offer; give none"
            raise CapabilityError("preconditioner", "diag", lacking)
        objective.keep_curvature(self._kept())
        try:
            yield from self._outer(objective, w, state)
        finally:
            objective.keep_curvature(None)

    def _outer(self, objective: Objective, w: Vector, state: Mapping[str, Any] | None) -> Iterator[Step]:
        point, work = Point(objective, w), Workspace(w, objective.xp)
        region: Globalisation = TrustRegion() if self.globalisation == "trust_region" else LineSearch()
        stalled, best_norm = 0, math.inf

        def report(**details: Any) -> Step:
            return Step(
                point.w,
                point.value,
                point.grad_inf,
                point.grad_norm,
                state={
                    **point.state(),
                    **region.state(),
                    "first_norm": first_norm,
                    "stalled": stalled,
                    "best_norm": best_norm,
                },
                **details,
            )

        if state is None:
            point.evaluate_start()
            first_norm = point.grad_norm
            yield report(initial=True, stop=StopReason.CONVERGED if point.grad_inf == 0.0 else None)
        else:
            point.restore(state)
            region.restore(state)
            first_norm = float(state["first_norm"])
            stalled, best_norm = int(state["stalled"]), float(state["best_norm"])

        while point.grad_norm > 0.0:
            xi = self._accuracy(point.grad_norm, first_norm)
            metric = diagonal_metric(objective, self.mix) if self.preconditioner == "diag" else None
            before = point.value
            move = region.advance(point, work, Model(xi, self.forcing == "quadratic", metric, self.max_cg))
            extra = {"cg": float(move.products), "rejected": float(move.rejected), "xi": xi, **region.extra()}
            if metric is not None:
                extra["mix"] = self.mix
            if move.stop is None:
                moved = before - point.value > rounding_level(before) or point.grad_norm < best_norm
                stalled, best_norm = (0 if moved else stalled + 1), min(best_norm, point.grad_norm)
            stop, message = _ending(move, point, stalled)
            yield report(step_size=move.step_size, extra=extra, stop=stop, message=message)
            if stop is not None:
                return

    def _accuracy(self, norm: float, first_norm: float) -> float:
        return min(self.xi, math.sqrt(norm / first_norm)) if self.forcing == "superlinear" else self.xi

    def _kept(self) -> Curvature:
        return Curvature(self.cache, self.storage, ad=self.curvature == "ad")


def _ending(move: Move, point: Point, stalled: int) -> tuple[StopReason | None, str]:
    """Whether the run ends with this step, and why."""
    if move.stop is not None:
        return move.stop, move.message
    if point.grad_inf == 0.0:
        return StopReason.CONVERGED, ""
    if stalled >= MAX_STALLED:
        return StopReason.LINE_SEARCH, "objective and gradient are at rounding level"
    return None, ""
