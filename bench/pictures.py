"""Pictures: one function draws any figure of panels with curves whose names stand at their ends.

A stored picture names the config.json that it was drawn with, so that `check` sees when it is out of date.
There is no date in it: the same results give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench.setting import digest
from crfit.files import replacing
from crfit.pictures import GROUND, INK, QUIET, End, colour_of, dashes_of, name_ends, new_figure, plain_axes
from crfit.racing.result import Curve, RaceResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KEY = "Source"
TOP = 10.0  # the largest gap that is drawn
ROOM = 6.0  # all lines end near the bottom; below it is room for their names
AXES = {"seconds": "seconds of training", "passes": "passes over the data"}
RELATIVE_GAP = "relative gap (F − F*) / F*"
DASHED = (0, (4, 3))


def save(figure: Figure, path: Path, config: Path) -> None:
    """Write a picture as PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        metadata = {"Software": None, _KEY: digest(config)}
        figure.savefig(unfinished, format="png", facecolor=GROUND, metadata=metadata)


def drawn_from(path: Path) -> str | None:
    """Digest that a picture names, None if it names none."""
    from PIL import Image

    with Image.open(path) as picture:
        found: str | None = picture.info.get(_KEY)
    return found


class Line(NamedTuple):
    """A curve: the name at its end, its points, whether it is strong, a colour if not that of its number.

    `band` is half the height of a band around each point.
    """

    name: str
    points: Sequence[tuple[float, float]]
    strong: bool = False
    colour: str | None = None
    band: Sequence[float] = ()


@dataclass(frozen=True)
class Panel:
    """What is in one panel of a picture.

    `log` names the logarithmic axes ("x", "y", "xy"). Dashed lines lie `across` at some y, stand `upright` at
    some x. `more` draws whatever else there is; the names of lines are left out where they are not `named`.
    """

    x: str
    y: str
    lines: Sequence[Line]
    log: str = ""
    across: Sequence[float] = ()
    upright: Sequence[float] = ()
    x_limits: tuple[float | None, float | None] | None = None
    y_limits: tuple[float | None, float | None] | None = None
    more: Callable[[Axes], object] | None = None
    named: bool = True


def curves_picture(
    title: str,
    words: str,
    panels: Sequence[Panel],
    *,
    columns: int = 1,
    size: tuple[float, float] = (9.0, 4.6),
    widths: Sequence[float] | None = None,
) -> Figure:
    """Draw panels row by row in so many columns; inches of the whole, relative widths of the columns."""
    figure = titled_figure(size, title, words)
    grid = figure.subplots(-(-len(panels) // columns), columns, squeeze=False, width_ratios=widths).ravel()
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    ends = [(axes, _draw(axes, panel)) for axes, panel in zip(grid, panels, strict=False)]
    name_ends(figure, ends)
    return figure


def _draw(axes: Axes, panel: Panel) -> list[End]:
    """Draw a panel; gives where the names of its lines go."""
    labelled_axes(axes, panel.x, panel.y, log_x="x" in panel.log, log_y="y" in panel.log)
    ends = draw_lines(axes, panel.lines)
    for y in panel.across:
        axes.axhline(y, color=QUIET, linewidth=0.9, linestyle=DASHED, zorder=1)
    for x in panel.upright:
        axes.axvline(x, color=QUIET, linewidth=0.9, linestyle=DASHED, zorder=1)
    if panel.x_limits is not None:
        axes.set_xlim(*panel.x_limits)
    if panel.y_limits is not None:
        axes.set_ylim(*panel.y_limits)
    if panel.more is not None:
        panel.more(axes)
    low, high = axes.get_ylim()
    return [End(e.x, float(np.clip(e.y, low, high)), e.name, e.colour) for e in ends] if panel.named else []


def draw_lines(axes: Axes, lines: Iterable[tuple[Any, ...]]) -> list[End]:
    """Draw lines, each with its name, its points and whether it is strong; gives where their names go."""
    ends = []
    for number, line in enumerate(Line(*line) for line in lines):
        if not line.points:
            continue
        x, y = map(np.array, zip(*line.points, strict=True))
        colour = line.colour or colour_of(number)[0]
        width, order = (2.6, 3) if line.strong else (1.6, 2)
        (stroke,) = axes.plot(x, y, color=colour, linewidth=width, zorder=order)
        if line.colour is None and dashes_of(number):
            stroke.set_dashes(dashes_of(number))
        if len(line.band):
            band = np.array(line.band)
            axes.fill_between(x, y - band, y + band, color=colour, alpha=0.12, linewidth=0, zorder=1)
        ends.append(End(float(x[-1]), float(y[-1]), line.name, colour))
    return ends


def titled_figure(size: tuple[float, float], title: str, words: str) -> Figure:
    """An empty figure, in inches, with a heading and a line of small print below it."""
    width, height = size
    figure = new_figure(width, height)
    figure.set_layout_engine("constrained", rect=(0, 0, 1, 1 - 0.72 / height), w_pad=0.08)
    left = 0.1 / width
    figure.text(left, 1 - 0.32 / height, title, fontsize=14, weight="bold", color=INK)
    figure.text(left, 1 - 0.58 / height, words, fontsize=9, color=QUIET)
    return figure


def labelled_axes(axes: Axes, x: str, y: str, *, log_x: bool = False, log_y: bool = False) -> Axes:
    """Plain axes with labels."""
    plain_axes(axes, log_x=log_x, log_y=log_y)
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    return axes


def note(
    axes: Axes, words: str, place: tuple[float, float], shift: tuple[float, float], ha: str, **more: Any
) -> None:
    """Small words beside a place, shifted by so many points, on a ground that hides lines."""
    style = {"fontsize": 8, "color": INK, "zorder": 5, "textcoords": "offset points", **more}
    box = {"facecolor": GROUND, "edgecolor": "none", "alpha": 0.8, "pad": 0.4}
    axes.annotate(words, place, xytext=shift, ha=ha, bbox=box, **style).set_in_layout(False)


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
    """A line of a picture of gaps: its name, and a curve of a race, which knows the optimum."""

    name: str
    race: RaceResult
    curve: Curve
    strong: bool = False


def gap_picture(
    title: str,
    words: str,
    lines: Sequence[GapLine],
    *,
    unit: str = "seconds",
    mark: float | None = None,
    bottom: float = 1e-6,
    more: Callable[[Axes], object] | None = None,
) -> Figure:
    """Draw gaps against seconds or passes; `mark` is a gap that has a line across."""
    drawn = [Line(line.name, gap_points(line.race, line.curve, unit, bottom), line.strong) for line in lines]
    limits, across = (bottom / ROOM, TOP * 2), [] if mark is None else [mark]
    panel = Panel(AXES[unit], RELATIVE_GAP, drawn, "xy", across, y_limits=limits, more=more)
    return curves_picture(title, words, [panel])
