"""What is drawn of a race: the quantities, their values, and how far the axis of each goes.

A curve on a logarithmic axis needs two edges. Below, a gap of 0 (the lowest value of the race is F* itself)
and gaps that are only rounding are drawn at the lower edge. Above, a curve that diverges is drawn until it
leaves by the upper edge, some way over the worst value of the others. Scores begin near 0 and differ in their
last percents: their axis begins where that is seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from crfit.racing.records import Curve, Point
from crfit.racing.result import RaceResult

__all__ = [
    "QUANTITIES",
    "UNITS",
    "Drawn",
    "Edges",
    "Quantity",
    "below_edge",
    "drawn",
    "edges",
    "present",
    "value_of",
]

#: Gaps below this share of |F*| are rounding.
ROUNDING = 1e-13
#: The axis of a score shows this many percents, and three times what the outcomes differ by; but it leaves
#: out this share of all values, those of the beginning.
SHOWN, OUTCOMES, LEFT_OUT = 10.0, 3.0, 0.15
#: How far over the worst value of the others a diverging curve is drawn, as a factor.
ABOVE = 10.0

#: What curves are drawn against.
UNITS = {"seconds": "seconds in the trainer", "passes": "passes over the data", "iteration": "iterations"}


@dataclass(frozen=True)
class Quantity:
    """Something that a point has a value of.

    Parameters
    ----------
    name : str
        A column of ``race.csv``.
    title : str
        Of its axis.
    kind : str
        ``distance``, to be drawn on a logarithmic axis and best at 0; ``score``, a percentage; or ``value``.
    """

    name: str
    title: str
    kind: str


#: In the order in which a reader looks at them.
QUANTITIES = (
    Quantity("relative_gap", "relative gap (F − F*) / |F*|", "distance"),
    Quantity("gap", "gap F − F*", "distance"),
    Quantity("objective", "objective F", "value"),
    Quantity("f1", "F1 on held-out data, %", "score"),
    Quantity("accuracy", "accuracy on held-out data, %", "score"),
    Quantity("grad_inf", "largest gradient entry", "distance"),
)


def value_of(result: RaceResult, curve: Curve, point: Point, name: str) -> float | None:
    """Return the value of a quantity at a point, None where it is not known or not finite.

    Parameters
    ----------
    result : RaceResult
        The race.
    curve : Curve
        One of its entries.
    point : Point
        One of its points.
    name : str
        A name in `QUANTITIES`.
    """
    if name in ("gap", "relative_gap"):
        value = result.gap(curve, point, relative=name == "relative_gap")
    elif name in ("objective", "grad_inf"):
        value = getattr(point, name)
    else:
        value = point.scores.get(name)
    return value if value is not None and math.isfinite(value) else None


def present(result: RaceResult) -> list[Quantity]:
    """Return the quantities that some point has a value of, and distances only if one is not 0.

    Parameters
    ----------
    result : RaceResult
        The race.
    """
    return [
        quantity
        for quantity in QUANTITIES
        if any(
            quantity.kind != "distance" or value > _rounding(result, quantity)
            for value in _values(result, quantity.name)
        )
    ]


def _rounding(result: RaceResult, quantity: Quantity) -> float:
    """Distances up to this are as good as 0."""
    if quantity.name == "gap":
        return ROUNDING * max((abs(optimum.value) for optimum in result.optima.values()), default=0.0)
    return ROUNDING if quantity.name == "relative_gap" else 0.0


def _values(result: RaceResult, name: str, *, good: bool = False) -> Iterator[float]:
    for curve in result.curves:
        for point in curve.points if not (good and _went_wrong(curve)) else ():
            value = value_of(result, curve, point, name)
            if value is not None:
                yield value


def _went_wrong(curve: Curve) -> bool:
    """Whether an axis need not have room for all of an entry."""
    return curve.status.bad or curve.diverged


@dataclass(frozen=True)
class Edges:
    """How far the axis of a quantity goes.

    Parameters
    ----------
    low, high : float
        Lowest and highest value to show.
    worst : float
        Highest value of the entries that did not go wrong.
    """

    low: float
    high: float
    worst: float


def edges(result: RaceResult, quantity: Quantity) -> Edges:
    """Return how far the axis of a quantity goes.

    Parameters
    ----------
    result : RaceResult
        The race.
    quantity : Quantity
        One that is `present`.
    """
    values = sorted(_values(result, quantity.name))
    worst = max(_values(result, quantity.name, good=True), default=values[-1])
    if quantity.kind == "score":
        best, outcome = values[-1], _lowest_outcome(result, quantity.name)
        begin = best - max(SHOWN, OUTCOMES * (best - outcome))
        begin = min(outcome, max(begin, values[int(LEFT_OUT * (len(values) - 1))]))
        return Edges(max(0.0, best - 1.1 * (best - begin) - 0.05), best, worst)
    if quantity.kind == "value":
        return Edges(values[0], worst, worst)
    smallest = min(value for value in values if value > _rounding(result, quantity))
    highest = max(smallest, min(values[-1], ABOVE * worst))
    # What is drawn at the edge lies visibly below all others.
    return Edges(smallest / 3 if values[0] < smallest else smallest, highest, max(smallest, worst))


def _lowest_outcome(result: RaceResult, score: str) -> float:
    """Lowest last score of the entries that did not go wrong."""
    lasts = [list(curve.values(score))[-1:] for curve in result.curves if not _went_wrong(curve)]
    return min((value for last in lasts for value in last), default=0.0)


def below_edge(result: RaceResult, quantity: Quantity) -> bool:
    """Whether some value of a distance lies below the lower edge, so that it is drawn at it.

    Parameters
    ----------
    result : RaceResult
        The race.
    quantity : Quantity
        One that is `present`.
    """
    return quantity.kind == "distance" and min(_values(result, quantity.name)) < edges(result, quantity).low


@dataclass(frozen=True)
class Drawn:
    """A point as it is drawn.

    Parameters
    ----------
    x, y : float
        Where.
    at_edge : bool
        Whether it really lies below the lower edge.
    """

    x: float
    y: float
    at_edge: bool


def drawn(result: RaceResult, curve: Curve, quantity: Quantity, unit: str, bounds: Edges) -> list[Drawn]:
    """Return a curve on a logarithmic horizontal axis, brought between the edges.

    Parameters
    ----------
    result : RaceResult
        The race.
    curve : Curve
        One of its entries.
    quantity : Quantity
        What to draw.
    unit : str
        A name in `UNITS`.
    bounds : Edges
        Of the quantity.
    """
    line: list[Drawn] = []
    for point in curve.points:
        x, y = float(getattr(point, unit)), value_of(result, curve, point, quantity.name)
        if x <= 0 or y is None:
            continue
        if quantity.kind == "score":
            line.append(Drawn(x, y, False))
            continue
        line.append(Drawn(x, min(max(y, bounds.low), bounds.high), y < bounds.low))
        if y > bounds.high:
            break
    return line
