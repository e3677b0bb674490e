"""The optimum of each problem, from which gaps are measured: given, found, or the lowest value of the race.

With every weight penalised and l1 = 0, F is strongly convex with constant l2, so the gradient at any point
bounds how much lower F can be:

    F(w) - F*  <=  |g(w)|^2 / (2 l2)        and at most F(w), since F >= 0
"""

import math
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

from crfit.engines import EngineObjective
from crfit.errors import ConvergenceWarning, CrfitWarning, OptionError
from crfit.racing.entries import Entry
from crfit.racing.result import Optimum, RaceResult
from crfit.training.callbacks import Callback
from crfit.training.loop import train
from crfit.training.records import Result, RunState
from crfit.training.stopping import Stop
from crfit.vectors import Vector

#: Close to the end of double precision; the limit is for problems without an optimum, such as l2 = 0.
APPROACH = Stop(grad_inf=1e-6, max_passes=10_000)


def check_optimum(optimum: Any, entries: Sequence[Entry]) -> None:
    """Raise OptionError unless `optimum` can be that of what the entries minimise."""
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
    n_problems = len({entry.problem for entry in entries if entry.minimises})
    if n_problems > 1:
        remedy = f'the entries minimise {n_problems} functions, each with an optimum of its own: give "find"'
        raise OptionError("optimum", optimum, remedy)


def _uncertainty(
    value: float, grad_norm: float | None, l1: float, l2: float, n_free: int = 0
) -> float | None:
    if grad_norm is None or l1 > 0 or not l2 > 0 or n_free:
        return None
    # The last digits of F are rounding, however small the gradient is.
    return max(min(grad_norm**2 / (2 * l2), value), 1e-15 * abs(value))


def lowest_optima(result: RaceResult) -> dict[str, Optimum]:
    """Return the lowest value reached on each problem that some entry minimises."""
    optima: dict[str, Optimum] = {}
    for curve in result.curves:
        if not curve.minimises:
            continue
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
    """Minimise as far as double precision goes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the end of double precision is the goal
        return train(objective, "auto", w0, APPROACH, callbacks, state)


def found_optimum(objective: EngineObjective, result: Result) -> Optimum:
    """Return the optimum that `approach` found."""
    value, norm = result.objective, result.grad_norm
    uncertainty = _uncertainty(value, norm, objective.l1, objective.l2, objective.layout.n_free)
    return Optimum(value, "found", uncertainty)


def settled(lowest: Optimum, better: Optimum | None) -> Optimum:
    """Return the given or found optimum, or the lowest value if the race went below it."""
    if better is None or lowest.value >= better.value:
        return better or lowest
    if better.kind == "given":
        message = f"optimum={better.value!r}: the race went lower, to {lowest.value!r}"
        warnings.warn(f"{message}; gaps are measured from that", CrfitWarning, stacklevel=2)
    return lowest
