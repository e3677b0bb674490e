"""How long a run will still take, guessed from its stopping rules.

Limits are extrapolated at the present speed. The convergence rules compare a quantity q that falls about
geometrically with a tolerance, so log q is fitted by a line over the last steps,

    log q(t) = a + b t,  b < 0        time left = (log tolerance - log q_now) / b,

with q_now taken from the line, because the largest gradient entry jumps up and down from step to step. The
run ends with the first rule that holds, so the smallest of the guesses counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from crfit.stopping import Progress, Stop

__all__ = ["seconds_left"]

#: Steps through which the line is put: enough to smooth, few enough to follow the phase the run is in.
FITTED_STEPS = 20
FEWEST_STEPS = 5


def seconds_left(history: Sequence[Progress], stop: Stop) -> float | None:
    """Return the seconds that a run will still take inside the trainer, None while there is no telling.

    Parameters
    ----------
    history : sequence of Progress
        The run so far.
    stop : Stop
        Its rules.
    """
    if not history:
        return None
    guesses = [guess for guess in (*_limits(history, stop), *_rules(history, stop)) if math.isfinite(guess)]
    return min(guesses) if guesses else None


def _limits(history: Sequence[Progress], stop: Stop) -> list[float]:
    recent = history[-FITTED_STEPS:]
    first, now = recent[0], recent[-1]
    elapsed = now.seconds - first.seconds
    guesses = []
    for limit, before, done in (
        (stop.max_iter, first.iteration, now.iteration),
        (stop.max_passes, first.passes, now.passes),
    ):
        if limit is not None and done > before:
            guesses.append(max(0.0, limit - done) * elapsed / (done - before))
    if stop.seconds is not None:
        guesses.append(max(0.0, stop.seconds - now.seconds))
    return guesses


def _rules(history: Sequence[Progress], stop: Stop) -> list[float]:
    guesses = []
    tolerance = stop.change_tolerance
    if tolerance is not None:
        ends = range(max(1, len(history) - FITTED_STEPS + 1), len(history) + 1)
        changes = [stop.relative_change(history, end) for end in ends]
        guesses.append(_until(tolerance, changes, [history[end - 1].seconds for end in ends]))
    recent = history[-FITTED_STEPS:]
    seconds = [p.seconds for p in recent]
    if stop.grad_inf is not None:
        guesses.append(_until(stop.grad_inf, [p.grad_inf for p in recent], seconds))
    if stop.grad_rel is not None:
        guesses.append(_until(stop.grad_rel, [p.extra.get("grad_rel") for p in recent], seconds))
    if stop.gap is not None:
        guesses.append(_until(stop.gap, [p.extra.get("gap") for p in recent], seconds))
    return [guess for guess in guesses if guess is not None]


def _until(tolerance: float, values: Sequence[float | None], seconds: Sequence[float]) -> float | None:
    """Seconds from the last step until the fitted line meets the tolerance; None if it never does."""
    points = [
        (t, math.log(q)) for t, q in zip(seconds, values, strict=True) if q is not None and 0 < q < math.inf
    ]
    if len(points) < FEWEST_STEPS or tolerance <= 0.0:
        return None
    mean_t = sum(t for t, _ in points) / len(points)
    mean_q = sum(q for _, q in points) / len(points)
    spread = sum((t - mean_t) ** 2 for t, _ in points)
    slope = sum((t - mean_t) * (q - mean_q) for t, q in points) / spread if spread > 0.0 else 0.0
    if slope >= 0.0:
        return None
    return max(0.0, (math.log(tolerance) - mean_q) / slope + mean_t - seconds[-1])
