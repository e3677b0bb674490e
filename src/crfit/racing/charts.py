"""The charts of a race: which quantities are drawn, how far their axes reach, and the picture in matplotlib.

Curves on a logarithmic axis need two edges. A gap of 0 (the lowest value of the race is F* itself), or one
that is only rounding, is drawn at the lower edge. A diverging curve is drawn until it leaves by the upper
edge, somewhat above the worst value of the others. Scores start near 0 and differ in their last percents, so
their axis starts where those can be seen.

The picture has a row per quantity, seconds on the left and passes on the right, in the style of
`crfit.pictures`. A cross ends the line of an entry that diverged, a triangle at the lower edge stands for a
gap of 0. Entries without a point are named below.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crfit import pictures
from crfit.racing.outcome import optimum_words, race_name
from crfit.racing.result import SCORES, Curve, Point, RaceResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Pictures beside ``race.csv``: one for pages and one that scales.
PICTURES = ("race.png", "race.svg")
#: Gaps below this share of |F*| are rounding.
ROUNDING = 1e-13
#: The axis of a score shows this many percents, or three times the spread of the final scores; but it leaves
#: out this share of all values, the earliest.
SHOWN, OUTCOMES, LEFT_OUT = 10.0, 3.0, 0.15
#: How far above the worst value of the others a diverging curve is drawn, as a factor.
ABOVE = 10.0
#: What curves are drawn against.
UNITS = {"seconds": "seconds in the trainer", "passes": "passes over the data", "iteration": "iterations"}

_WIDTH, _ROW, _AROUND, _NOTE = 11.0, 3.3, 0.8, 0.19  # inches
_NOTE_LENGTH = 130  # characters per line
_MOST_OPTIMA = 4  # named below the panels


@dataclass(frozen=True)
class Quantity:
    """A column of ``race.csv`` that can be drawn.

    A ``distance`` is drawn on a logarithmic axis and best at 0, a ``score`` is a percentage, else ``value``.
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
    """Return the value of a quantity at a point, None where it is unknown or not finite."""
    if name in ("gap", "relative_gap"):
        value = result.gap(curve, point, relative=name == "relative_gap")
    elif name in ("objective", "grad_inf"):
        value = getattr(point, name)
    else:
        value = point.scores.get(name)
    return value if value is not None and math.isfinite(value) else None


def present(result: RaceResult) -> list[Quantity]:
    """Return the quantities that have a value somewhere (distances: one above 0), the telling ones first."""
    found = [
        quantity
        for quantity in QUANTITIES
        if any(
            quantity.kind != "distance" or value > _rounding(result, quantity)
            for value in _values(result, quantity.name)
        )
    ]
    return sorted(found, key=lambda q: q.name not in SCORES) if result.scores_first else found


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
    """Lowest and highest value that an axis shows, and the worst of the entries that did not go wrong."""

    low: float
    high: float
    worst: float


def edges(result: RaceResult, quantity: Quantity) -> Edges:
    """Return how far the axis of a quantity that is `present` reaches."""
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
    """Lowest final score of the entries that did not go wrong."""
    lasts = [list(curve.values(score))[-1:] for curve in result.curves if not _went_wrong(curve)]
    return min((value for last in lasts for value in last), default=0.0)


def below_edge(result: RaceResult, quantity: Quantity) -> bool:
    """Whether some value of a distance lies below the lower edge, and so is drawn at it."""
    return quantity.kind == "distance" and min(_values(result, quantity.name)) < edges(result, quantity).low


@dataclass(frozen=True)
class Drawn:
    """A point as it is drawn; `at_edge` if it really lies below the lower edge."""

    x: float
    y: float
    at_edge: bool


def drawn(result: RaceResult, curve: Curve, quantity: Quantity, unit: str, bounds: Edges) -> list[Drawn]:
    """Return the points of a curve on a logarithmic horizontal axis, clipped to the edges."""
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


# --- the picture -------------------------------------------------------------------------------------------


def draw_race(result: RaceResult, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw the curves of a race as a matplotlib figure, written to `path` if given (.png, .svg or .pdf)."""
    if path is not None:
        pictures.check_picture_name(path)
    rows, notes = _rows(result), _notes(result)
    figure = pictures.new_figure(_WIDTH, _AROUND + _ROW * len(rows) + _NOTE * len(notes))
    name = race_name(result)
    title = "Race of trainers" + (f": {pictures.shortened(name, 80)}" if name else "")
    at_left: dict[str, Any] = {"ha": "left", "x": 0.012, "parse_math": False}
    figure.suptitle(title, color=pictures.INK, fontsize=13, **at_left)
    figure.supxlabel("\n".join(notes), color=pictures.QUIET, fontsize=9, **at_left)
    if rows:
        _draw_panels(figure, result, rows)
    if path is not None:
        pictures.save_picture(figure, path)
    return figure


def _draw_panels(figure: Figure, result: RaceResult, rows: Sequence[Quantity]) -> None:
    panels = figure.subplots(len(rows), 2, sharex="col", sharey="row", squeeze=False)
    named = []
    for line, quantity in zip(panels, rows, strict=True):
        for axes, unit in zip(line, ("seconds", "passes"), strict=True):
            pictures.plain_axes(axes, log_x=True, log_y=quantity.kind == "distance")
            named.append((axes, _draw(axes, result, quantity, unit)))
        line[0].set_ylabel(quantity.title, color=pictures.INK)
        line[1].tick_params(labelleft=False)
    for axes, unit in zip(panels[-1], ("seconds", "passes"), strict=True):
        axes.set_xlabel(UNITS[unit], color=pictures.INK)
    pictures.name_ends(figure, named)


def _rows(result: RaceResult) -> list[Quantity]:
    """The gap, or the objective where there is no F*, and one score."""
    there = {quantity.name: quantity for quantity in present(result)}
    pairs = [("relative_gap", "objective"), ("f1", "accuracy")]
    if result.scores_first:
        pairs.reverse()
    return [there[next(n for n in names if n in there)] for names in pairs if any(n in there for n in names)]


def _draw(axes: Axes, result: RaceResult, quantity: Quantity, unit: str) -> list[pictures.End]:
    """Draw the curves of a panel; return where they end."""
    bounds = edges(result, quantity)
    ends = []
    for index, (curve, name) in enumerate(zip(result.curves, _names(result), strict=True)):
        line = drawn(result, curve, quantity, unit, bounds)
        if not line:
            continue
        last, colour, dashes = line[-1], pictures.colour_of(index)[0], pictures.dashes_of(index)
        (stroke,) = axes.plot([p.x for p in line], [p.y for p in line], color=colour, linewidth=1.7)
        if dashes:
            stroke.set_dashes(dashes)
        if last.y < bounds.low:  # a score; what is not clipped would be drawn far below the panel
            continue
        marker, size = ("X", 8) if curve.diverged else ("v", 7) if last.at_edge else ("o", 5)
        axes.plot([last.x], [last.y], marker, color=colour, markersize=size, clip_on=False, zorder=3)
        ends.append(pictures.End(last.x, last.y, name, colour))
    if quantity.kind == "score":
        axes.set_ylim(bounds.low, bounds.high + 0.08 * max(bounds.high - bounds.low, 0.1))
    return ends


def _names(result: RaceResult) -> list[str]:
    return pictures.short_names([curve.label for curve in result.curves])


def _notes(result: RaceResult) -> list[str]:
    """What F* is, what the marks mean, and which entries have no curve."""
    notes = optimum_words(result)[:_MOST_OPTIMA]
    marks = []
    if any(curve.diverged and curve.points for curve in result.curves):
        marks.append("✕ diverged.")
    if any(below_edge(result, quantity) for quantity in _rows(result)):
        marks.append("▼ at the lower edge: a gap of 0, F* itself.")
    notes += ["  ".join(marks)] if marks else []
    if not any(curve.points for curve in result.curves):
        notes.append("No entry was evaluated.")
    for curve, name in zip(result.curves, _names(result), strict=True):
        if not curve.points:
            notes.append(f"{name}: {curve.status.value}. {curve.message}")
    return [line for note in notes for line in textwrap.wrap(pictures.plain(note), _NOTE_LENGTH)]
