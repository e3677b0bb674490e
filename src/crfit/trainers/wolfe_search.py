"""Line searches: strong Wolfe for smooth objectives, projected backtracking for l1; stalled runs.

With phi(a) = F(w + a d), phi'(0) < 0, a step is accepted when [1, eq. 3.7]

    phi(a) <= phi(0) + c1 a phi'(0)        sufficient decrease
    |phi'(a)| <= c2 |phi'(0)|              curvature

Near the optimum the decrease is smaller than the rounding of F, and the first test compares noise. The test
of [2, eq. 4.1] then applies, which is the same condition for a quadratic and uses only slopes:

    phi(a) <= phi(0) + noise   and   phi'(a) <= (2 c1 - 1) phi'(0)

A bracket is grown from the first trial, then shrunk around a minimiser of the cubic through both ends
[1, alg. 3.5, 3.6]. L-BFGS steps nearly always pass at the first trial, so trials compute full gradients: a
search that computed values first would usually need a second pass over the data.

References
----------
[1] J. Nocedal, S. Wright (2006). Numerical Optimization, 2nd edition.
[2] W. Hager, H. Zhang (2005). A new conjugate gradient method with guaranteed descent and an efficient line
    search. SIAM J. Optim. 16.
[3] G. Andrew, J. Gao (2007). Scalable training of L1-regularized log-linear models. ICML.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from crfit.training.stopping import StopReason

#: Relative error of F: a sum of thousands of terms, each a difference of larger numbers.
ROUNDING = 64 * 2.0**-52
#: A bracket grows by a factor in this range. The upper end is wide because with c2 = 0.9 the curvature test
#: fails only at a tenth of the minimiser of a quadratic or less.
GROWTH = (2.0, 10.0)
#: Trials stay this share of the bracket away from its ends.
MARGIN = 0.1


class Accepted(NamedTuple):
    """An accepted step; the objective was last evaluated there."""

    step: float
    value: float
    trials: int


@dataclass(frozen=True)
class _Trial:
    step: float
    value: float
    slope: float

    @property
    def finite(self) -> bool:
        return math.isfinite(self.value) and math.isfinite(self.slope)


#: Message of runs that end at the limit of double precision.
NO_PROGRESS = "no further progress is possible in double precision"


def rounding_level(value: float) -> float:
    """Largest change of F that may be rounding."""
    return ROUNDING * abs(value)


def strong_wolfe(
    phi: Callable[[float], tuple[float, float]],
    value: float,
    slope: float,
    step: float = 1.0,
    *,
    c1: float,
    c2: float,
    max_trials: int,
) -> Accepted | None:
    """Find a step with the strong Wolfe conditions, 0 < c1 < c2 < 1.

    `phi` maps a step to (value, slope); an infinite or NaN value means the step was too long. `value` and
    `slope` are phi(0) and phi'(0) < 0, `step` is the first trial. When the trials run out, return the best
    point with sufficient decrease (at the cost of one more evaluation), else None.
    """
    noise = rounding_level(value)

    def sufficient(t: _Trial) -> bool:
        if not t.finite:
            return False
        by_value = t.value <= value + c1 * t.step * slope
        return by_value or (t.value <= value + noise and t.slope <= (2 * c1 - 1) * slope)

    low, high = _Trial(0.0, value, slope), None
    last = low
    for n in range(1, max_trials + 1):
        last = trial = _Trial(step, *phi(step))
        if not sufficient(trial) or trial.value > low.value + noise:
            high = trial
        elif abs(trial.slope) <= -c2 * slope:
            return Accepted(step, trial.value, n)
        elif high is None and trial.slope < 0.0:
            step = _extend(low, trial)
            low = trial
            continue
        else:
            # The minimiser lies between the trial and the end towards which phi falls.
            if high is None or trial.slope * (high.step - trial.step) >= 0.0:
                high = low
            low = trial
        width = high.step - low.step
        if abs(width) <= 1e-14 * max(low.step, high.step):
            break
        step = _interpolate(low, high, noise)
    if low.step > 0.0:
        if low is not last:
            low = _Trial(low.step, *phi(low.step))
            n += 1
        return Accepted(low.step, low.value, n)
    return None


def _cubic_minimiser(a: _Trial, b: _Trial) -> float:
    """Minimiser of the cubic with the values and slopes at both ends [1, eq. 3.59]; NaN without a minimum."""
    d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.step - b.step)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0.0:
        return math.nan
    d2 = math.copysign(math.sqrt(square), b.step - a.step)
    bottom = b.slope - a.slope + 2.0 * d2
    return b.step - (b.step - a.step) * (b.slope + d2 - d1) / bottom if bottom != 0.0 else math.nan


def _extend(previous: _Trial, trial: _Trial) -> float:
    target = _cubic_minimiser(previous, trial)
    shortest, longest = GROWTH[0] * trial.step, GROWTH[1] * trial.step
    # No minimiser ahead: the cubic keeps falling.
    return min(max(target, shortest), longest) if target > trial.step else longest


def _interpolate(low: _Trial, high: _Trial, noise: float) -> float:
    width = high.step - low.step
    if not high.finite:
        return low.step + MARGIN * width
    if abs(high.value - low.value) <= noise and high.slope != low.slope:
        target = low.step - low.slope * width / (high.slope - low.slope)  # values differ by rounding: secant
    else:
        target = _cubic_minimiser(low, high)
    share = (target - low.step) / width
    return low.step + width * (min(max(share, MARGIN), 1.0 - MARGIN) if math.isfinite(share) else 0.5)


def backtracking(
    evaluate: Callable[[float], tuple[float, float]],
    value: float,
    step: float = 1.0,
    *,
    improves: Callable[[], bool],
    c1: float,
    max_trials: int,
) -> Accepted | None:
    """Halve the step until F(w_new) <= F(w) + c1 v.(w_new - w) [3]; None if no trial passes or nothing moves.

    `evaluate` maps a step to (F(w_new), v.(w_new - w)), with w_new the projected point and v the
    pseudo-gradient at w; `value` is F(w). `improves` is called if F changes only by rounding: whether the
    last point is better by another measure, such as the norm of the pseudo-gradient.
    """
    noise = rounding_level(value)
    for n in range(1, max_trials + 1):
        trial, predicted = evaluate(step)
        if predicted == 0.0:
            return None
        if trial <= value + c1 * predicted or (abs(trial - value) <= noise and improves()):
            return Accepted(step, trial, n)
        step *= 0.5 if math.isfinite(trial) else MARGIN
    return None


#: A run has stalled after this many steps in a row without progress.
MAX_STALLED = 10


@dataclass
class Stall:
    """Counts steps in a row that lower neither F (beyond rounding) nor the norm of the gradient.

    Without it a run at the limit of double precision would never end.
    """

    steps: int = 0  # steps without progress
    best_norm: float = math.inf  # smallest norm so far

    def ending(
        self, old_value: float, value: float, grad_inf: float, grad_norm: float
    ) -> tuple[StopReason | None, str]:
        """Count a step from F before and after it and its gradient; return why the run ends, if it does."""
        moved = old_value - value > rounding_level(value) or grad_norm < self.best_norm
        self.steps, self.best_norm = (0 if moved else self.steps + 1), min(self.best_norm, grad_norm)
        if grad_inf == 0.0:
            return StopReason.CONVERGED, ""
        if self.steps >= MAX_STALLED:
            return StopReason.LINE_SEARCH, NO_PROGRESS
        return None, ""

    def export_state(self) -> dict[str, Any]:
        """Return what `from_state` needs."""
        return {"stalled": self.steps, "best_norm": self.best_norm}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Stall:
        """Restore from what `export_state` returned."""
        return cls(int(state["stalled"]), float(state["best_norm"]))
