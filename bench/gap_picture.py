"""Relative gap to the optimum against seconds or passes, logarithmic; names at the ends of the lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crfit.picture_names import End, name_ends
from crfit.picture_style import INK, QUIET, colour_of, dashes_of, plain_axes

from bench.pictures import titled_figure
from crfit.racing.records import Curve
from crfit.racing.result import RaceResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["AXES", "GapLine", "draw_lines", "gap_picture"]

TOP = 10.0  # the largest gap that is drawn
ROOM = 6.0  # all lines end near the bottom; below it is room for their names
AXES = {"seconds": "seconds of training", "passes": "passes over the data"}


@dataclass(frozen=True)
class GapLine:
    """A line of the picture.

    Parameters
    ----------
    name : str
        At its end.
    race : RaceResult
        Which knows the optimum.
    curve : Curve
        The points, one of the race's curves.
    strong : bool
        Whether it is drawn thicker than the others, and above them.
    """

    name: str
    race: RaceResult
    curve: Curve
    strong: bool = False

    def points(self, unit: str, bottom: float) -> list[tuple[float, float]]:
        """Seconds or passes with gaps, from where the picture begins to where it ends."""
        drawn = []
        for point in self.curve.points:
            gap, x = self.race.gap(self.curve, point, relative=True), getattr(point, unit)
            if x > 0 and gap is not None and gap <= TOP:
                drawn.append((x, max(gap, bottom)))
                if gap <= bottom:
                    break
        return drawn


def gap_picture(
    title: str,
    words: str,
    lines: Sequence[GapLine],
    *,
    unit: str = "seconds",
    mark: float | None = None,
    bottom: float = 1e-6,
) -> Figure:
    """Draw lines.

    Parameters
    ----------
    title, words : str
        Heading, and the small print below it.
    lines : sequence of GapLine
        In the order of their colours.
    unit : {"seconds", "passes"}
        What goes to the right.
    mark : float, optional
        A gap that has a line across.
    bottom : float
        The smallest gap that is drawn.
    """
    figure = titled_figure((9.0, 4.6), title, words)
    axes = figure.subplots()
    plain_axes(axes, log_x=True, log_y=True)
    axes.set_xlabel(AXES[unit], color=INK)
    axes.set_ylabel("relative gap (F − F*) / F*", color=INK)
    drawn = [(line.name, line.points(unit, bottom), line.strong) for line in lines]
    ends = draw_lines(axes, drawn)
    if mark is not None:
        axes.axhline(mark, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.set_ylim(bottom / ROOM, TOP * 2)
    name_ends(figure, [(axes, ends)])
    return figure


def draw_lines(axes: Axes, lines: Iterable[tuple[str, Sequence[tuple[float, float]], bool]]) -> list[End]:
    """Draw lines, each with its name, its points and whether it is strong; gives where their names go."""
    ends = []
    for number, (name, points, strong) in enumerate(lines):
        if not points:
            continue
        x, y = zip(*points, strict=True)
        colour = colour_of(number)[0]
        width, order = (2.6, 3) if strong else (1.6, 2)
        (stroke,) = axes.plot(x, y, color=colour, linewidth=width, zorder=order)
        if dashes_of(number):
            stroke.set_dashes(dashes_of(number))
        ends.append(End(x[-1], y[-1], name, colour))
    return ends
