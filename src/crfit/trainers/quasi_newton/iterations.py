"""The iteration of quasi-Newton trainers: direction, line search, update of the curvature.

Smooth objective (l1 = 0) [1, alg. 6.1, 7.5]:

    d = -H g,  w <- w + a d,  a by a strong Wolfe search (first trial 1, in the first step 1/|g|)

with l1 > 0, OWL-QN [2], v the pseudo-gradient (`crfit.vectors`) and pairs of the smooth part only:

    d = -H v,  d_i = 0 where d_i v_i >= 0,  w <- w + a d cut at the orthant of w and -v,  a by backtracking

A `crfit.engines.pair_history.PairHistory` builds H from the pairs (w_k+1 - w_k, g_k+1 - g_k): the last few in
`lbfgs`, all of them in `bfgs`.

Vectors of n_weights are allocated once and swapped: w, g, d, and the trial point's w and g, 40 bytes per
weight, 48 with l1, plus the history.

A failed line search first clears the history, whose scaling may be stale, and tries the gradient direction;
if that fails too, the run ends at the last good point. A run that improves only by rounding ends too.

References
----------
[1] J. Nocedal, S. Wright (2006). Numerical Optimization, 2nd edition.
[2] G. Andrew, J. Gao (2007). Scalable training of L1-regularized log-linear models. ICML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from crfit import vectors
from crfit.engines.objective import Objective
from crfit.engines.pair_history import PairHistory
from crfit.errors import OptionError
from crfit.trainers.options import option
from crfit.trainers.registry import State, Step
from crfit.trainers.wolfe_search import Accepted, Stall, backtracking, strong_wolfe
from crfit.training.stopping import StopReason
from crfit.vectors import Vector

_DECREASE = "line search: required decrease of F, relative to the slope's prediction (Wolfe c1)"
_SLOPE = "line search: largest remaining slope, relative to the initial one (Wolfe c2)"
_TRIALS = "line search: maximum number of evaluations"
wolfe_decrease_option = partial(option, 1e-4, help=_DECREASE, above=0, below=1)
wolfe_slope_option = partial(option, 0.9, help=_SLOPE, above=0, below=1)
max_trials_option = partial(option, 20, help=_TRIALS, at_least=1, may_change=True)


@dataclass(frozen=True)
class Search:
    """Constants of the line search: c1, c2 and evaluations allowed in `crfit.trainers.wolfe_search`."""

    decrease: float
    slope: float
    max_trials: int

    def __post_init__(self) -> None:
        if self.decrease >= self.slope:
            remedy = f"must be smaller than wolfe_slope={self.slope:g}"
            raise OptionError("wolfe_decrease", self.decrease, remedy)


def quasi_newton_steps(
    objective: Objective, w: Vector, state: State | None, history: PairHistory, search: Search
) -> Iterator[Step]:
    """Yield the starting point, then one step per iteration; a generator for ``steps`` of a trainer."""
    point = _Point(objective, w)
    stall = Stall()

    def report(**details: Any) -> Step:
        return Step(
            point.w,
            point.value,
            grad_inf,
            grad_norm,
            state=run_state(point.value, point.g, (grad_inf, grad_norm), stall, history.export_state()),
            **details,
        )

    if state is None:
        point.evaluate_start()
        grad_inf, grad_norm = vectors.norms(point.v)
        yield report(initial=True, stop=StopReason.CONVERGED if grad_inf == 0.0 else None)
    else:
        point.restore(float(state["value"]), state["gradient"])
        history.import_state(state, point.v)
        grad_inf, grad_norm = float(state["grad_inf"]), float(state["grad_norm"])
        stall = Stall.from_state(state)

    while grad_norm > 0.0:
        step = 1.0 if history.n_pairs else 1.0 / grad_norm
        first_trial = None if point.l1 > 0 else point.w_trial  # with l1 the trial point is projected later
        slope = history.direction(point.w, point.v, point.d, first_trial, step)
        accepted = _search(point, slope, step, search)
        if accepted is None:
            if history.n_pairs:
                history.reset()
                continue
            yield report(stop=StopReason.LINE_SEARCH, message="no step lowers the objective")
            return
        value_before = point.value
        pair_used = point.accept(accepted.value, history)
        grad_inf, grad_norm = history.v_inf, history.v_norm

        stop, message = stall.ending(value_before, point.value, grad_inf, grad_norm)
        extra = {"trials": float(accepted.trials), "pairs": float(history.n_pairs)}
        if not pair_used:
            extra["pair_skipped"] = 1.0
        if point.l1 > 0:
            extra["active"] = float(point.n_active)
        yield report(step_size=accepted.step, extra=extra, stop=stop, message=message)
        if stop is not None:
            return


def run_state(
    value: float, gradient: Vector, norms: tuple[float, float], stall: Stall, pairs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a resume needs besides the weights; arrays are live views."""
    numbers = {"value": value, "gradient": gradient, "grad_inf": norms[0], "grad_norm": norms[1]}
    return {**numbers, **stall.export_state(), **pairs}


def _search(point: _Point, slope: float, step: float, search: Search) -> Accepted | None:
    """Search along ``point.d``; without l1 the first trial point is already computed."""
    if point.l1 > 0:
        slope = vectors.align(point.d, point.v, point.free)
        if not slope < 0.0:
            return None
        return backtracking(
            point.orthant_trial,
            point.value,
            step,
            improves=point.trial_improves,
            c1=search.decrease,
            max_trials=search.max_trials,
        )
    if not slope < 0.0:
        return None
    point.formed = step
    return strong_wolfe(
        point.trial,
        point.value,
        slope,
        step,
        c1=search.decrease,
        c2=search.slope,
        max_trials=search.max_trials,
    )


class _Point:
    """The current point, the trial point and the direction: five vectors, swapped and never copied."""

    def __init__(self, objective: Objective, w: Vector) -> None:
        self.objective, self.l1, self.free = objective, float(objective.l1), objective.free
        empty = objective.xp.empty_like
        self.w, self.g = w, empty(w)
        self.w_trial, self.g_trial, self.d = empty(w), empty(w), empty(w)
        # v: g, or with l1 the pseudo-gradient; formed: step for which w_trial is already computed
        self.v = empty(w) if self.l1 > 0 else self.g
        self.value = float("nan")
        self.n_active = 0
        self.formed: float | None = None

    def evaluate_start(self) -> None:
        """Sets: value, g, v at w."""
        self.value = self._value_and_grad(self.w, self.g)
        self._set_v()

    def restore(self, value: float, g: Any) -> None:
        """Sets: value, g and v at w, from a state."""
        self.value = value
        self.g[:] = self.objective.xp.asarray(g)
        self._set_v()

    def trial(self, step: float) -> tuple[float, float]:
        """Return F and its slope along d at w + step d. Sets: w_trial, g_trial."""
        if step != self.formed:
            vectors.axpy(self.w, step, self.d, self.w_trial)
        self.formed = None
        value = self._value_and_grad(self.w_trial, self.g_trial)
        return value, vectors.dot(self.g_trial, self.d)

    def orthant_trial(self, step: float) -> tuple[float, float]:
        """Return F at the projected point and v.(w_trial - w). Sets: w_trial, g_trial."""
        predicted = vectors.project_orthant(self.w, self.d, step, self.v, self.w_trial, self.free)
        return self._value_and_grad(self.w_trial, self.g_trial), predicted

    def trial_improves(self) -> bool:
        """Whether the pseudo-gradient is shorter at the trial point."""
        new = vectors.pseudo_gradient_norms(self.w_trial, self.g_trial, self.l1, self.free)[1]
        return new < vectors.norms(self.v)[1]

    def accept(self, value: float, history: PairHistory) -> bool:
        """Move to the trial point; return whether its pair is used. Sets: value, w, g, v."""
        self.value = value
        self.w, self.w_trial = self.w_trial, self.w
        self.g, self.g_trial = self.g_trial, self.g
        self._set_v()
        return history.push(self.w, self.w_trial, self.g, self.g_trial, self.v)

    def _value_and_grad(self, w: Vector, out: Vector) -> float:
        value, _ = self.objective.value_and_grad(w, out=out)
        return float(self.objective.full_value(w, value))

    def _set_v(self) -> None:
        if self.l1 > 0:
            self.n_active = vectors.pseudo_gradient(self.w, self.g, self.l1, self.v, self.free)
        else:
            self.v = self.g
