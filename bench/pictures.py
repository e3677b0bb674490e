"""Pictures: panels of curves with a legend above them, and bars.

A group's `pictures` say what is drawn; `draw` makes the figure in a light or a dark theme. A stored picture
names the config.json that it was drawn with, so that `check` sees when it is out of date. There is no date in
it: the same results give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from bench.setting import digest
from crfit.files import replacing
from crfit.pictures import (
    LIGHT,
    TEXT,
    Look,
    Theme,
    draw_line,
    headed_figure,
    legend_line,
    looks,
    plain_axes,
    wrapped,
)
from crfit.racing.result import Curve, Optimum, RaceResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from bench.records import Entry
    from bench.standings import Board

_KEY = "Source"
TOP = 10.0  # the largest gap that is drawn
ROOM = 1.6  # below the smallest gap that is drawn, as a factor
AXES = {"seconds": "seconds of training", "passes": "passes over the data"}
RELATIVE_GAP = "relative gap (F − F*) / F*"
DASHED = (0, (4, 3))
#: Inches of a panel, by columns.
HEIGHTS = {1: 2.75, 2: 2.4}
THIN, STRONG = 1.8, 2.8  # points


class Drawable(Protocol):
    """What groups make for each picture."""

    def draw(self, theme: Theme = LIGHT) -> Figure:
        """The figure in a theme."""


def save(figure: Figure, path: Path, config: Path) -> None:
    """Write a picture as PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format="png", metadata={"Software": None, _KEY: digest(config)})


def drawn_from(path: Path) -> str | None:
    """Digest that a picture names, None if it names none."""
    from PIL import Image

    with Image.open(path) as picture:
        found: str | None = picture.info.get(_KEY)
    return found


class Line(NamedTuple):
    """A curve in the colour of its `method`, an entry of ``crfit race`` or a tool; `band`: half a height."""

    name: str
    points: Sequence[tuple[float, float]]
    method: str
    strong: bool = False
    band: Sequence[float] = ()


class Mark(NamedTuple):
    """Markers (o, D, ^), a grey ``bar``, ``dots`` or ``line``; coloured as the curve `line`."""

    points: Sequence[tuple[float, float]]
    shape: str
    name: str = ""
    line: str = ""


@dataclass(frozen=True)
class Panel:
    """One panel; `log` has the logarithmic axes ("x", "y", "xy"), `across` and `upright` dashed lines."""

    x: str
    y: str
    lines: Sequence[Line]
    log: str = ""
    across: Sequence[float] = ()
    upright: Sequence[float] = ()
    x_limits: tuple[float | None, float | None] | None = None
    y_limits: tuple[float | None, float | None] | None = None
    marks: Sequence[Mark] = ()

    def missing(self, names: Sequence[str]) -> list[str]:
        """Names without a point between the limits."""
        low, high = self.y_limits or (None, None)
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        seen = {line.name for line in self.lines if any(low <= y <= high for _, y in line.points)}
        return [name for name in names if name not in seen]


@dataclass(frozen=True)
class Picture:
    """Panels row by row, with one legend for all; `height` is that of a panel, in inches."""

    title: str
    words: str
    panels: Sequence[Panel]
    columns: int = 1
    height: float | None = None

    @property
    def styles(self) -> dict[str, Look]:
        """Colours and dashes by the names of lines."""
        methods = {line.name: line.method for panel in self.panels for line in panel.lines if line.points}
        return dict(zip(methods, looks(list(methods.values())), strict=True))

    def draw(self, theme: Theme = LIGHT) -> Figure:
        rows, styles = -(-len(self.panels) // self.columns), self.styles
        height = rows * (self.height or HEIGHTS[self.columns])
        legend = list(self._legend(styles, theme))
        figure = headed_figure(height, theme, title=self.title, words=self.words, legend=legend)
        grid = figure.subplots(rows, self.columns, squeeze=False).ravel()
        for axes in grid[len(self.panels) :]:
            axes.set_visible(False)
        for axes, panel in zip(grid, self.panels, strict=False):
            _draw(axes, panel, styles, theme, self.columns)
            if missing := panel.missing(list(styles)):
                words = wrapped(f"not in view: {', '.join(missing)}", 72 // self.columns)
                style: dict[str, Any] = {"fontsize": TEXT, "color": theme.quiet, "parse_math": False}
                axes.set_title("\n".join(words), loc="left", **style)
        return figure

    def _legend(self, styles: Mapping[str, Look], theme: Theme) -> Iterator[tuple[str, Line2D]]:
        strong = {line.name for panel in self.panels for line in panel.lines if line.strong}
        for name, look in styles.items():
            yield name, legend_line(look, theme, STRONG if name in strong else THIN)
        marks = {mark.name: mark for panel in self.panels for mark in panel.marks if mark.name}
        for name, mark in marks.items():
            yield name, _mark(mark, [[], []], {}, theme)


def _draw(axes: Axes, panel: Panel, styles: Mapping[str, Look], theme: Theme, columns: int) -> None:
    plain_axes(axes, theme, log_x="x" in panel.log, log_y="y" in panel.log)
    axes.set_xlabel(panel.x, color=theme.ink)
    axes.set_ylabel("\n".join(wrapped(panel.y, 30 if columns == 1 else 20)), color=theme.ink)
    for line in panel.lines:
        if line.points:
            x, y = map(np.array, zip(*line.points, strict=True))
            width, order = (STRONG, 2) if line.strong else (THIN, 3)  # a wide line covers no thin one
            draw_line(axes, x, y, styles[line.name], theme, width=width, zorder=order)
            if len(line.band):
                band, colour = np.array(line.band), styles[line.name].colour(theme)
                axes.fill_between(x, y - band, y + band, color=colour, alpha=0.14, linewidth=0, zorder=1)
    for mark in panel.marks:
        if mark.points:
            axes.add_line(_mark(mark, list(zip(*mark.points, strict=True)), styles, theme))
    grey: dict[str, Any] = {"color": theme.quiet, "linewidth": 0.9, "linestyle": DASHED, "zorder": 1.5}
    for level in panel.across:
        axes.axhline(level, **grey)
    for place in panel.upright:
        axes.axvline(place, **grey)
    axes.autoscale_view()
    if panel.x_limits is not None:
        axes.set_xlim(*panel.x_limits)
    if panel.y_limits is not None:
        axes.set_ylim(*panel.y_limits)


def _mark(mark: Mark, data: Sequence[Any], styles: Mapping[str, Look], theme: Theme) -> Line2D:
    from matplotlib.lines import Line2D

    if mark.shape == "bar":
        return Line2D(*data, color=theme.quiet, alpha=0.4, linewidth=6, solid_capstyle="butt", zorder=1)
    if mark.shape == "line":
        return Line2D(*data, color=theme.quiet, linewidth=1.2, zorder=2)
    if mark.shape == "dots":
        return Line2D(*data, color=theme.quiet, linewidth=1.2, linestyle=":", zorder=4)
    colour = styles[mark.line].colour(theme) if mark.line in styles else theme.ink
    fill = colour if mark.shape == "^" else theme.ground
    style: dict[str, Any] = {
        "markeredgecolor": colour,
        "markerfacecolor": fill,
        "markersize": 6.5,
        "zorder": 5,
    }
    return Line2D(*data, linestyle="", marker=mark.shape, **style)


@dataclass(frozen=True)
class Bars:
    """Horizontal bars from top to bottom, with a value at the end of each."""

    title: str
    words: str
    lines: Sequence[tuple[str, float, str, str]]  # name, length, value in words, method

    def draw(self, theme: Theme = LIGHT) -> Figure:
        figure = headed_figure(0.25 + 0.42 * len(self.lines), theme, title=self.title, words=self.words)
        axes = figure.subplots()
        plain_axes(axes, theme, log_x=False, log_y=False)
        names, lengths, words, methods = zip(*self.lines, strict=True)
        colours = [look.colour(theme) for look in looks(methods)]
        places = range(len(names))
        bars = axes.barh(places, lengths, color=colours, height=0.66)
        axes.bar_label(bars, words, padding=4, color=theme.ink, fontsize=TEXT + 1)
        axes.set_yticks(places, names, fontsize=TEXT + 1)
        axes.tick_params(axis="y", length=0, labelcolor=theme.ink)
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.invert_yaxis()
        axes.grid(False, axis="y")
        axes.set_xlim(0, 1.12 * max(lengths))
        return figure


def gap_points(
    race: RaceResult, curve: Curve, unit: str, bottom: float, top: float = TOP
) -> list[tuple[float, float]]:
    """Seconds or passes with relative gaps, from where a panel begins to where it ends."""
    drawn = []
    for point in curve.points:
        gap, x = race.gap(curve, point, relative=True), getattr(point, unit)
        if x > 0 and gap is not None and gap <= top:
            drawn.append((x, max(gap, bottom)))
            if gap <= bottom:
                break
    return drawn


def score_points(curve: Curve, score: str, low: float, high: float = math.inf) -> list[tuple[float, float]]:
    """Seconds and scores from the last point below a panel to the first at `high`."""
    points: list[tuple[float, float]] = []
    for point in curve.points:
        value = point.scores.get(score)
        if value is not None and point.seconds > 0:
            points = [*([] if value <= low else points), (point.seconds, max(value, low))]
            if value >= high:
                break
    return points


class GapLine(NamedTuple):
    """A line of a picture of gaps: its name, a curve of a race, which knows the optimum, and its method."""

    name: str
    race: RaceResult
    curve: Curve
    method: str
    strong: bool = False


def gap_lines(board: Board, entries: Iterable[Entry], strong: Entry | None = None) -> list[GapLine]:
    """The lines of the entries that can be compared."""
    found = [(entry, board.good(entry)) for entry in entries]
    return [GapLine(e.title, s.race, s.curve, e.text, e is strong) for e, s in found if s is not None]


def gap_picture(
    title: str,
    words: str,
    lines: Sequence[GapLine],
    *,
    unit: str = "seconds",
    mark: float | None = None,
    bottom: float = 1e-6,
    marks: Sequence[Mark] = (),
) -> Picture:
    """Gaps against seconds or passes; `mark` is a gap that has a line across."""
    drawn = [
        Line(line.name, gap_points(line.race, line.curve, unit, bottom), line.method, line.strong)
        for line in lines
    ]
    limits, across = (bottom / ROOM, TOP * 2), [] if mark is None else [mark]
    panel = Panel(AXES[unit], RELATIVE_GAP, drawn, "xy", across, y_limits=limits, marks=marks)
    return Picture(title, words, [panel], height=3.6)


def race_with_all(lines: Sequence[GapLine], title: str, machine: str) -> RaceResult:
    """The curves of some lines as one race, for an interactive page."""
    curves: list[Curve] = []
    optima: dict[str, Optimum] = {}
    for line in lines:
        trainer, *options = line.method.split(":")
        given = dict(option.partition("=")[::2] for option in options)
        curves.append(replace(line.curve, label=line.name, trainer=trainer, options=given))
        optima |= line.race.optima
    return RaceResult(curves, optima, {"train": [title]}, machine={"machine": machine})
