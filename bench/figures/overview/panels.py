"""Panels with two dozen lines: families by colour, the best of each strong, the others thin and quiet."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crfit.picture_names import End
from crfit.picture_style import COLOURS, GROUND, INK, QUIET, colour_of, plain_axes, shade

from bench.figures.overview.boards import Board, leaders
from bench.figures.overview.contests import GAPS, NEAR
from bench.figures.overview.entries import FAMILIES, Entry
from bench.gap_picture import AXES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Line",
    "distinct_lines",
    "family_colour",
    "gap_panel",
    "legend",
    "lines_of",
    "quiet_leaders",
    "score_panel",
]

#: Gaps that are drawn.
TOP, BOTTOM = 3.0, 2e-5
ROOM = 3.5  # below, for names
#: Percent below the best score: the panel shows no less and no more.
LEAST, MOST = 0.6, 4.0
#: How far a quiet line and its name are moved to the ground.
PALE = 0.5
#: Decades below which an axis has numbers between its powers of ten.
SHORT = 2.3
#: The last is the ink, for what is classic.
_COLOUR_NUMBERS = (0, 1, 2, 3, 4, 6)


@dataclass(frozen=True)
class Line:
    """An entry as it is drawn.

    Parameters
    ----------
    entry : Entry
        Whose run.
    name : str
        At the end of its line.
    colour : str
        Of its family, or its own.
    strong : bool
        Whether it is drawn thick.
    """

    entry: Entry
    name: str
    colour: str
    strong: bool

    @property
    def shown_colour(self) -> str:
        """Pale, for those that are not strong."""
        return self.colour if self.strong else shade(self.colour, GROUND, PALE)


def family_colour(family: str) -> str:
    """The same on all pictures."""
    return COLOURS[_COLOUR_NUMBERS[FAMILIES.index(family)]][0]


def lines_of(one: Board) -> list[Line]:
    """The entries of a problem in the colours of their families, the best of each strong."""
    chosen = leaders(one.ranked, lambda entry: entry.penalised)
    return [
        Line(entry, one.title(entry), family_colour(entry.family), entry in chosen) for entry in one.entries
    ]


def distinct_lines(one: Board) -> list[Line]:
    """Few entries, each with a colour of its own."""
    return [
        Line(entry, one.title(entry), colour_of(number)[0], strong=True)
        for number, entry in enumerate(one.entries)
    ]


def gap_panel(axes: Axes, one: Board, lines: Sequence[Line], unit: str) -> list[End]:
    """Relative gap against seconds or passes; gives the ends of the lines."""
    plain_axes(axes, log_x=True, log_y=True)
    axes.set_xlabel(AXES[unit], color=INK)
    axes.set_ylabel("relative gap (F − F*) / F*", color=INK)
    points = [_gaps(one, line.entry, unit) for line in lines]
    ends = _drawn(axes, lines, points)
    outside = [
        line.name for line, some in zip(lines, points, strict=True) if line.entry.penalised and not some
    ]
    if outside:  # no line gets to this corner
        told = f"above the panel: {'; '.join(outside)}"
        axes.text(0.012, 0.03, told, transform=axes.transAxes, fontsize=8, color=QUIET, parse_math=False)
    for gap in GAPS:
        axes.axhline(gap, color=QUIET, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
    axes.set_ylim(BOTTOM / ROOM, TOP)
    return ends


def score_panel(axes: Axes, one: Board, lines: Sequence[Line]) -> list[End]:
    """Test score against seconds, cut below so that the last points differ; gives the ends of the lines."""
    plain_axes(axes, log_x=True, log_y=False)
    axes.set_xlabel(AXES["seconds"], color=INK)
    axes.set_ylabel(f"test {one.contest.score_title}", color=INK)
    low, high = _score_limits(one)
    points = [_scores(one, line.entry, low) for line in lines]
    ends = _drawn(axes, lines, points)
    outside = [line.name for line, some in zip(lines, points, strict=True) if not some]
    if outside:
        told = f"below the panel at the end: {'; '.join(outside)}"
        axes.set_title(told, loc="left", fontsize=8, color=QUIET, parse_math=False)
    if one.best_score is not None:
        near = one.best_score - NEAR
        axes.axhline(near, color=QUIET, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
    axes.set_ylim(low, high)
    return ends


def quiet_leaders(axes: Axes) -> None:
    """Make what leads from a name to its line thinner than the lines; after the names have been written."""
    for text in axes.texts:
        leader = getattr(text, "arrow_patch", None)
        if leader is not None:
            leader.set(linewidth=0.4, alpha=0.6)


def _drawn(axes: Axes, lines: Sequence[Line], points: Sequence[Sequence[tuple[float, float]]]) -> list[End]:
    ends = []
    for line, some in zip(lines, points, strict=True):
        if not some:
            continue
        x, y = zip(*some, strict=True)
        width, order = (2.3, 3) if line.strong else (1.0, 2)
        axes.plot(x, y, color=line.shown_colour, linewidth=width, zorder=order)
        ends.append(End(x[-1], y[-1], line.name, line.shown_colour))
    _finer_ticks(axes, points)
    return ends


def _gaps(one: Board, entry: Entry, unit: str) -> list[tuple[float, float]]:
    """The gap at each point, from where the panel begins to where it ends."""
    standing = one.good(entry)
    if standing is None:
        return []
    drawn: list[tuple[float, float]] = []
    for point in standing.curve.points:
        gap, x = standing.race.gap(standing.curve, point, relative=True), getattr(point, unit)
        if gap is None or x <= 0 or gap > TOP:
            continue
        drawn.append((x, max(gap, BOTTOM)))
        if gap <= BOTTOM:
            break
    return drawn


def _scores(one: Board, entry: Entry, low: float) -> list[tuple[float, float]]:
    """Seconds and scores from the last point below the panel; nothing of those that end there."""
    standing = one.good(entry)
    points: list[tuple[float, float]] = []
    if standing is None:
        return points
    for point in standing.curve.points:
        score = point.scores.get(one.contest.score)
        if score is None or point.seconds <= 0:
            continue
        if score <= low:
            points.clear()
        points.append((point.seconds, max(score, low)))
    return points if points and points[-1][1] > low else []


def _score_limits(one: Board) -> tuple[float, float]:
    """Down to somewhat below the middle of the scores at the end, up to somewhat above the best."""
    scores = [score for entry in one.entries for score in [one.end_score(entry)] if score is not None]
    if not scores:
        return 0.0, 100.0
    best = max(scores)
    below = min(max(2.5 * (best - statistics.median(scores)), LEAST), MOST)
    peak = max(
        (
            value
            for entry in one.entries
            for standing in [one.good(entry)]
            if standing is not None
            for value in standing.curve.values(one.contest.score)
        ),
        default=best,
    )
    return best - below, max(peak, best) + 0.06 * below


def legend(axes: Axes, lines: Sequence[Line]) -> None:
    """Name the families in their colours, above a panel."""
    from matplotlib.lines import Line2D

    there = {line.entry.family: line.colour for line in lines}
    families = [family for family in FAMILIES if family in there]
    axes.legend(
        [Line2D([], [], color=there[family], linewidth=2.3) for family in families],
        families,
        ncols=len(families),
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handlelength=1.4,
        borderaxespad=0.2,
    )


def _finer_ticks(axes: Axes, points: Sequence[Sequence[tuple[float, float]]]) -> None:
    """Numbers at 1, 2 and 5 where the powers of ten are few."""
    from matplotlib.ticker import LogLocator

    x = [x for some in points for x, _ in some]
    if x and math.log10(max(x) / min(x)) < SHORT:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
