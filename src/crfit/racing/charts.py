"""The charts of a race: which quantities are drawn, the limits of their axes, and the picture in matplotlib.

A logarithmic axis needs two limits. A gap of 0 (the lowest value of the race is F* itself), or one that is
only rounding, is drawn at the lower limit. A diverging curve is drawn until it leaves at the upper limit,
somewhat above the worst value of the other entries. Scores start near 0 and differ in their last percents, so
their axis starts where the differences are visible.

The picture has a row per quantity, seconds on the left and passes on the right, in the style of
`crfit.pictures`, with at most eight entries: those that reached the most targets soonest. A cross marks the
end of an entry that diverged, a triangle a gap of 0. Entries that are not drawn are named below.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crfit import pictures
from crfit.pictures import LIGHT, MOST_LINES, TEXT, Look, Theme
from crfit.racing.outcome import milestones, optimum_words, race_name
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
UNITS = {"seconds": "seconds of training", "passes": "passes over the data", "iteration": "iterations"}

_ROW, _NOTE = 2.6, 0.18  # inches
_NOTE_LENGTH = 84  # characters per line
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
    Quantity("sequence_accuracy", "sequence accuracy on held-out data, %", "score"),
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


def entry_looks(result: RaceResult) -> list[Look]:
    """Return the colours and dashes of all entries, those of their trainers."""
    return pictures.looks([pictures.method_name(curve.trainer, curve.options) for curve in result.curves])


def entries_drawn(result: RaceResult) -> list[int]:
    """Return the entries in the picture by number: all, or those that reached the most targets soonest."""

    def rank(number: int) -> tuple[int, float]:
        reached = [point.seconds for point in cells[number] if point is not None]
        return -len(reached), max(reached, default=math.inf)

    evaluated = [number for number, curve in enumerate(result.curves) if curve.points]
    if len(evaluated) <= MOST_LINES:
        return evaluated
    cells = milestones(result).cells
    return sorted(sorted(evaluated, key=rank)[:MOST_LINES])


def draw_race(result: RaceResult, path: str | os.PathLike[str] | None = None, theme: Theme = LIGHT) -> Figure:
    """Draw the curves of a race as a matplotlib figure, written to `path` if given (.png, .svg or .pdf)."""
    if path is not None:
        pictures.check_picture_name(path)
    shown = entries_drawn(result)
    rows, notes = _rows(result), _notes(result, shown)
    names, styles = _names(result), entry_looks(result)
    legend = [(names[i], pictures.legend_line(styles[i], theme)) for i in shown]
    name = race_name(result)
    title = "Race of trainers" + (f": {pictures.shortened(name, 80)}" if name else "")
    height = _ROW * len(rows) + _NOTE * len(notes)
    figure = pictures.headed_figure(max(height, 0.3), theme, title=title, legend=legend if rows else ())
    style: dict[str, Any] = {"ha": "left", "x": 0.015, "parse_math": False}
    figure.supxlabel("\n".join(notes), color=theme.quiet, fontsize=TEXT, **style)
    if rows:
        _draw_panels(figure, result, rows, shown, theme)
    if path is not None:
        pictures.save_picture(figure, path)
    return figure


def _draw_panels(
    figure: Figure, result: RaceResult, rows: Sequence[Quantity], shown: Sequence[int], theme: Theme
) -> None:
    panels = figure.subplots(len(rows), 2, sharex="col", sharey="row", squeeze=False)
    for line, quantity in zip(panels, rows, strict=True):
        for axes, unit in zip(line, ("seconds", "passes"), strict=True):
            pictures.plain_axes(axes, theme, log_x=True, log_y=quantity.kind == "distance")
            _draw(axes, result, quantity, unit, shown, theme)
        line[0].set_ylabel(quantity.title, color=theme.ink)
        line[1].tick_params(labelleft=False)
    for axes, unit in zip(panels[-1], ("seconds", "passes"), strict=True):
        axes.set_xlabel(UNITS[unit], color=theme.ink)


def _rows(result: RaceResult) -> list[Quantity]:
    """The gap, or the objective where there is no F*, and one score."""
    there = {quantity.name: quantity for quantity in present(result)}
    pairs: list[Sequence[str]] = [("relative_gap", "objective"), result.score_names]
    if result.scores_first:
        pairs.reverse()
    return [there[next(n for n in names if n in there)] for names in pairs if any(n in there for n in names)]


def _draw(
    axes: Axes, result: RaceResult, quantity: Quantity, unit: str, shown: Sequence[int], theme: Theme
) -> None:
    """Draw the curves of a panel."""
    bounds, styles = edges(result, quantity), entry_looks(result)
    for index in shown:
        curve, look = result.curves[index], styles[index]
        line = drawn(result, curve, quantity, unit, bounds)
        if not line:
            continue
        last = line[-1]
        pictures.draw_line(axes, [p.x for p in line], [p.y for p in line], look, theme)
        if last.y < bounds.low:  # a score; what is not clipped would be drawn far below the panel
            continue
        marker, size = ("X", 8) if curve.diverged else ("v", 7) if last.at_edge else ("o", 5)
        mark: dict[str, Any] = {
            "color": look.colour(theme),
            "markersize": size,
            "clip_on": False,
            "zorder": 3,
        }
        axes.plot([last.x], [last.y], marker, **mark)
    if quantity.kind == "score":
        axes.set_ylim(bounds.low, bounds.high + 0.08 * max(bounds.high - bounds.low, 0.1))


def _names(result: RaceResult) -> list[str]:
    return pictures.short_names([curve.label for curve in result.curves])


def _notes(result: RaceResult, shown: Sequence[int]) -> list[str]:
    """What F* is, what the marks mean, and which entries have no curve."""
    notes = optimum_words(result)[:_MOST_OPTIMA]
    names = _names(result)
    marks = []
    if any(curve.diverged and curve.points for curve in result.curves):
        marks.append("✕ diverged.")
    if any(below_edge(result, quantity) for quantity in _rows(result)):
        marks.append("▼ a gap of 0: this entry has the lowest value, F*.")
    notes += ["  ".join(marks)] if marks else []
    left_out = [names[i] for i, curve in enumerate(result.curves) if curve.points and i not in shown]
    if left_out:
        notes.append(f"Not drawn here, but in race.html: {', '.join(left_out)}.")
    if not any(curve.points for curve in result.curves):
        notes.append("No entry was evaluated.")
    for curve, name in zip(result.curves, names, strict=True):
        if not curve.points:
            notes.append(f"{name}: {curve.status.value}. {curve.message}")
    return [line for note in notes for line in textwrap.wrap(pictures.plain(note), _NOTE_LENGTH)]
