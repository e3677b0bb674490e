"""What gaps are taken to: the optimum of each problem, given, found, or the lowest value of the race.

If every weight has the penalty, F is strongly convex with constant l2, so that the gradient at any point
bounds how much lower F can be,

    F(w) - F*  <=  |g(w)|^2 / (2 l2)        with l1 = 0,

and by no more than F(w) itself, for F is never negative.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

from crfit.engines import EngineObjective
from crfit.errors import ConvergenceWarning, CrfitWarning, OptionError
from crfit.racing.records import Optimum
from crfit.racing.result import RaceResult
from crfit.training.callbacks import Callback
from crfit.training.loop import train
from crfit.training.records import Result, RunState
from crfit.training.stopping import Stop
from crfit.vectors import Vector

__all__ = ["approach", "check_optimum", "found_optimum", "lowest_optima", "settled"]

#: To the end of double precision, nearly; the limit is for problems that have no optimum, as with l2 = 0.
APPROACH = Stop(grad_inf=1e-6, max_passes=10_000)


def check_optimum(optimum: Any, n_problems: int) -> None:
    """Refuse what can be no optimum of the race.

    Parameters
    ----------
    optimum : object
        As given to `crfit.race`.
    n_problems : int
        Functions that the entries minimise.

    Raises
    ------
    OptionError
        Says what would do.
    """
    if optimum is None or (isinstance(optimum, str) and optimum == "find"):
        return
    try:
        number = not isinstance(optimum, bool) and isinstance(optimum, Real) and math.isfinite(optimum)
    except OverflowError:
        raise OptionError("optimum", "a number beyond double precision", "give a smaller one") from None
    if not number:
        raise OptionError("optimum", optimum, 'give a finite number, or "find"')
    if optimum < 0:
        raise OptionError("optimum", optimum, "F is never negative: give a number of at least 0")
    if n_problems > 1:
        remedy = f'the entries minimise {n_problems} functions, each with an optimum of its own: give "find"'
        raise OptionError("optimum", optimum, remedy)


def _uncertainty(
    value: float, grad_norm: float | None, l1: float, l2: float, n_free: int = 0
) -> float | None:
    if grad_norm is None or l1 > 0 or not l2 > 0 or n_free:
        return None
    # Of F itself the last digits are rounding, however small the gradient is.
    return max(min(grad_norm**2 / (2 * l2), value), 1e-15 * abs(value))


def lowest_optima(result: RaceResult) -> dict[str, Optimum]:
    """Return the lowest value that the entries of each problem have seen.

    Parameters
    ----------
    result : RaceResult
        The race. Problems without any value are left out.
    """
    optima: dict[str, Optimum] = {}
    for curve in result.curves:
        options = {**result.settings, **curve.options}
        for point in curve.points:
            known = optima.get(curve.problem)
            if point.objective is None or (known is not None and point.objective >= known.value):
                continue
            l1, l2 = options.get("l1", 0.0), options.get("l2", 0.0)
            uncertainty = _uncertainty(point.objective, point.grad_norm, l1, l2)
            optima[curve.problem] = Optimum(point.objective, "lowest", uncertainty)
    return optima


def approach(
    objective: EngineObjective,
    w0: Vector | None,
    callbacks: Sequence[Callback],
    state: RunState | None = None,
) -> Result:
    """Minimise as far as double precision goes.

    Parameters
    ----------
    objective : EngineObjective
        The problem.
    w0 : array of float64 [n_weights] or None
        The best weights that are known; None for zero, and where there is a state.
    callbacks : sequence of Callback
        Who looks on.
    state : RunState, optional
        Of an approach that was interrupted, which goes on.

    Returns
    -------
    Result
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the end of double precision is the goal
        return train(objective, "auto", w0, APPROACH, callbacks, state)


def found_optimum(objective: EngineObjective, result: Result) -> Optimum:
    """Return the optimum that `approach` found.

    Parameters
    ----------
    objective : EngineObjective
        The problem.
    result : Result
        The outcome.
    """
    value, norm = result.objective, result.grad_norm
    uncertainty = _uncertainty(value, norm, objective.l1, objective.l2, objective.layout.n_free)
    return Optimum(value, "found", uncertainty)


def settled(lowest: Optimum, better: Optimum | None) -> Optimum:
    """Choose between the lowest value of the race and an optimum that was given or found.

    Parameters
    ----------
    lowest : Optimum
        Of the race.
    better : Optimum or None
        What was given or found. A value that the race has gone below is no optimum, and the lowest value
        takes its place; for one that was given there is a warning.
    """
    if better is None or lowest.value >= better.value:
        return better or lowest
    if better.kind == "given":
        warnings.warn(
            f"optimum={better.value!r}: the race went lower, to {lowest.value!r}; gaps are taken to that",
            CrfitWarning,
            stacklevel=2,
        )
    return lowest
