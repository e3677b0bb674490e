"""Powers by which seconds and bytes of a sequence grow, and what they say about the paper's O(T L^(k+1)).

A power is the slope of the logarithms over the largest sizes. As a bound says nothing about small ones,
and as it is one from above, it holds where the slope is at most the paper's power and a little.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from bench.figures.base import Claim, Results, Row
from bench.figures.cost.measuring import AXES, GRADIENT, OURS, PAPER, PRODUCT, Axis
from bench.verdicts import FAILS, HOLDS, PAPER_ONLY, UNKNOWN, Finding

__all__ = ["CLAIM", "MORE", "claims", "findings", "per_sequence", "power"]

CLAIM = "a Hessian product takes O(T L^(k+1)) time and space"
#: By how much a measured power may be above the paper's: what fits into which cache changes with sizes.
MORE = 0.2
#: The largest sizes that are looked at. Order 1 has loops of its own, from which no line leads on.
LARGEST = {"length": 3, "n_labels": 3, "order": 2}
MICRO = 1e6


def per_sequence(results: Results, axis: Axis, mode: str, measured: str) -> list[tuple[Row, float]]:
    """Rows from the smallest to the largest size, with the microseconds of a sequence."""
    rows = results.where(axis=axis.name, mode=mode, measured=measured)
    found = [(row, MICRO * row["seconds"] / row["n_sequences"]) for row in rows]
    return sorted(found, key=lambda pair: axis.value(pair[0]))


def power(axis: Axis, points: Sequence[tuple[float, float]]) -> float | None:
    """Slope of log y against log x over the largest sizes; None where there are too few."""
    last = [(math.log(x), math.log(y)) for x, y in points][-LARGEST[axis.name] :]
    if len(last) < LARGEST[axis.name]:
        return None
    return statistics.linear_regression(*zip(*last, strict=True)).slope


def findings(results: Results) -> list[Finding]:
    """Time and space against each of the three sizes, in both arithmetics."""
    return [
        _finding(results, axis, space)
        for space in (False, True)
        for axis in AXES
        if results.where(axis=axis.name)
    ]


def _finding(results: Results, axis: Axis, space: bool) -> Finding:
    powers = {mode: _power(results, axis, mode, space) for mode in (PAPER, OURS)}
    what, grows = ("space" if space else "time"), "L^(k+1)" if axis.name == "order" else axis.words[-1]
    told = "; ".join(
        f"{grows} to the {value:.2f} ({mode})" for mode, value in powers.items() if value is not None
    )
    held = [value is not None and value <= axis.power + MORE for value in powers.values()]
    verdict = HOLDS if all(held) else PAPER_ONLY if held[0] else FAILS
    if None in powers.values():
        verdict = UNKNOWN
    return Finding(
        CLAIM,
        f"{what} against the {axis.words}",
        f"{grows} to the {axis.power:g}",
        told,
        verdict,
        (f"{axis.name}.md", "cost.png"),
    )


def _power(results: Results, axis: Axis, mode: str, space: bool) -> float | None:
    rows = per_sequence(results, axis, mode, PRODUCT)
    values = [(axis.value(row), row["kept_bytes"] / row["n_sequences"] if space else y) for row, y in rows]
    return power(axis, values)


def claims(results: Results) -> list[Claim]:
    """A product is cheaper than a gradient with logarithms at every size, which is why it was thought of."""
    ratios = [
        gradient / product
        for axis in AXES
        for (_, gradient), (_, product) in zip(
            *(per_sequence(results, axis, PAPER, name) for name in (GRADIENT, PRODUCT)), strict=True
        )
    ]
    least = min(ratios, default=0.0)
    words = (
        f"With logarithms a gradient takes at least {least:.1f} times as long as a product, at every size."
    )
    return [Claim("cheap", words, least > 1.0)]
