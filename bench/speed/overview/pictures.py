"""The pictures of the group: each problem in three panels, the headline as a heat map, the open point.

A panel has two dozen lines: families by colour, the best of each strong, the others thin and pale. In the
heat map seconds are in the cells, and times the fastest are the colour.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.pictures import AXES, DASHED, RELATIVE_GAP, gap_points, labelled_axes, titled_figure
from bench.records import Entry, Results
from bench.speed.overview import contests as race
from bench.speed.overview.open_point import brown
from bench.standings import Goal
from crfit.pictures import COLOURS, GROUND, INK, LINE, QUIET, End, colour_of, name_ends, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 9.0, 13.0
#: Gaps that are drawn, and room below for names.
TOP, BOTTOM, ROOM = 3.0, 2e-5, 3.5
#: Percent below the best score: the panel shows no less and no more.
LEAST, MOST = 0.6, 4.0
#: How far a quiet line and its name are moved to the ground.
PALE = 0.5
#: Decades below which an axis has numbers between its powers of ten.
SHORT = 2.3
#: The last is the ink, for what is classic.
_COLOUR_NUMBERS = (0, 1, 2, 3, 4, 6)


def pictures(results: Results) -> dict[str, Figure]:
    found, largest = race.boards(results), brown(results)
    made = {one.problem: _contest(one, results) for one in found}
    made["headline"] = heat_map(found)
    return made if largest is None else {**made, "open-point": _open_point(largest, results)}


@dataclass(frozen=True)
class Line:
    """An entry as it is drawn: the name at its end, the colour of its family or its own."""

    entry: Entry
    name: str
    colour: str
    strong: bool

    @property
    def shown_colour(self) -> str:
        return self.colour if self.strong else shade(self.colour, GROUND, PALE)


def _family_colour(family: str) -> str:
    return COLOURS[_COLOUR_NUMBERS[race.FAMILIES.index(family)]][0]


def _contest(one: race.Contestants, results: Results) -> Figure:
    words = f"crfit's trainers from zero weights, two threads: {results.machine}; strong: best of a family"
    figure = titled_figure((WIDTH, HEIGHT), one.contest.title, words)
    upper, middle, lower = figure.subplots(3, 1)
    leaders: dict[str, Entry] = {}
    for entry in one.ranked:
        if entry.penalised:
            leaders.setdefault(entry.family, entry)
    lines = [Line(e, one.title(e), _family_colour(e.family), e in leaders.values()) for e in one.entries]
    _legend(upper, lines)
    panels = [
        (axes, _gap_panel(axes, one, lines, unit)) for axes, unit in zip((upper, middle), AXES, strict=True)
    ]
    return _named(figure, [*panels, (lower, _score_panel(lower, one, lines))])


def _open_point(one: race.Contestants, results: Results) -> Figure:
    """Few entries, each with a colour of its own."""
    words = f"crfit's trainers from zero weights, two threads: {results.machine}"
    title = f"Newton-CG or SGD on a large task: {one.contest.title}"
    figure = titled_figure((WIDTH, 8.4), title, words)
    upper, lower = figure.subplots(2, 1)
    lines = [Line(e, one.title(e), colour_of(n)[0], strong=True) for n, e in enumerate(one.entries)]
    panels = [(upper, _score_panel(upper, one, lines)), (lower, _gap_panel(lower, one, lines, "seconds"))]
    return _named(figure, panels)


def _named(figure: Figure, panels: list[tuple[Axes, list[End]]]) -> Figure:
    """With names at the ends; what leads from a name to its line is thinner than the lines."""
    name_ends(figure, panels)
    for text in (text for axes, _ in panels for text in axes.texts):
        leader = getattr(text, "arrow_patch", None)
        if leader is not None:
            leader.set(linewidth=0.4, alpha=0.6)
    return figure


def _gap_panel(axes: Axes, one: race.Contestants, lines: Sequence[Line], unit: str) -> list[End]:
    """Relative gap against seconds or passes; gives the ends of the lines."""
    labelled_axes(axes, AXES[unit], RELATIVE_GAP, log_x=True, log_y=True)
    points = []
    for line in lines:
        standing = one.standings[line.entry.key]
        points.append(gap_points(standing.race, standing.curve, unit, BOTTOM, TOP))
    ends = _drawn(axes, lines, points)
    outside = [
        line.name for line, some in zip(lines, points, strict=True) if line.entry.penalised and not some
    ]
    if outside:  # no line gets to this corner
        told = f"above the panel: {'; '.join(outside)}"
        axes.text(0.012, 0.03, told, transform=axes.transAxes, fontsize=8, color=QUIET, parse_math=False)
    for gap in race.GAPS:
        axes.axhline(gap, color=QUIET, linewidth=0.7, linestyle=DASHED, zorder=1)
    axes.set_ylim(BOTTOM / ROOM, TOP)
    return ends


def _score_panel(axes: Axes, one: race.Contestants, lines: Sequence[Line]) -> list[End]:
    """Test score against seconds, cut below so that the last points differ; gives the ends of the lines."""
    labelled_axes(axes, AXES["seconds"], f"test {one.contest.score_title}", log_x=True)
    low, high = _score_limits(one)
    points = [_scores(one, line.entry, low) for line in lines]
    ends = _drawn(axes, lines, points)
    outside = [line.name for line, some in zip(lines, points, strict=True) if not some]
    if outside:
        told = f"below the panel at the end: {'; '.join(outside)}"
        axes.set_title(told, loc="left", fontsize=8, color=QUIET, parse_math=False)
    if one.level is not None:
        axes.axhline(one.level, color=QUIET, linewidth=0.7, linestyle=DASHED, zorder=1)
    axes.set_ylim(low, high)
    return ends


def _drawn(axes: Axes, lines: Sequence[Line], points: Sequence[Sequence[tuple[float, float]]]) -> list[End]:
    from matplotlib.ticker import LogLocator

    ends = []
    for line, some in zip(lines, points, strict=True):
        if some:
            x, y = zip(*some, strict=True)
            width, order = (2.3, 3) if line.strong else (1.0, 2)
            axes.plot(x, y, color=line.shown_colour, linewidth=width, zorder=order)
            ends.append(End(x[-1], y[-1], line.name, line.shown_colour))
    every = [x for some in points for x, _ in some]
    if every and math.log10(max(every) / min(every)) < SHORT:  # few powers of ten: also at 2 and 5
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    return ends


def _scores(one: race.Contestants, entry: Entry, low: float) -> list[tuple[float, float]]:
    """Seconds and scores from the last point below the panel; nothing of those that end there."""
    points: list[tuple[float, float]] = []
    for point in one.standings[entry.key].curve.points:
        score = point.scores.get(one.score)
        if score is None or point.seconds <= 0:
            continue
        if score <= low:
            points.clear()
        points.append((point.seconds, max(score, low)))
    return points if points and points[-1][1] > low else []


def _score_limits(one: race.Contestants) -> tuple[float, float]:
    """Down to somewhat below the middle of the scores at the end, up to somewhat above the best."""
    scores = [score for score in map(one.end_score, one.entries) if score is not None]
    if not scores:
        return 0.0, 100.0
    best = max(scores)
    below = min(max(2.5 * (best - statistics.median(scores)), LEAST), MOST)
    curves = [one.standings[entry.key].curve for entry in one.entries]
    peak = max((value for curve in curves for value in curve.values(one.score)), default=best)
    return best - below, max(peak, best) + 0.06 * below


def _legend(axes: Axes, lines: Sequence[Line]) -> None:
    """Name the families in their colours, above a panel."""
    from matplotlib.lines import Line2D

    there = {line.entry.family: line.colour for line in lines}
    families = [family for family in race.FAMILIES if family in there]
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


# --- the heat map ------------------------------------------------------------------------------------------

DEEP = "#0651b4"
#: From so many times the fastest on a cell has the palest colour; of a goal missed, for a mean.
FAR, MISSED = 30.0, 300.0
#: Of the ground in the palest; and from which on the ink is read better than the ground.
PALEST, PALE_CELL = 0.9, 0.45
#: Inches of a cell.
CELL = (0.36, 0.235)


def heat_map(found: Sequence[race.Contestants]) -> Figure:
    """Draw both goals side by side, the trainers that are soonest at the top."""
    entries = _ordered(found)
    words = "seconds; deeper: nearer to the fastest of the column; ·: not reached; empty: not asked"
    size = (2.3 + 2 * (CELL[0] * max(len(found), 6) + 0.2), 2.2 + CELL[1] * len(entries))
    figure = titled_figure(size, "Who is there first?", words)
    left, right = figure.subplots(1, 2, sharey=True)
    _panel(left, found, entries, race.MIDDLE)
    _panel(right, found, entries, race.SCORE)
    left.set_yticks(range(len(entries)), [race.title_everywhere(found, entry) for entry in entries])
    for label, entry in zip(left.get_yticklabels(), entries, strict=True):
        label.set_color(shade(_family_colour(entry.family), INK))
    return figure


def _ordered(found: Sequence[race.Contestants]) -> list[Entry]:
    """By times the fastest, a geometric mean over problems and goals that it has; a goal missed is far.

    Those that take part in less than half of the problems come last.
    """

    def order(entry: Entry) -> tuple[bool, float]:
        every = [(one, goal) for one in found for goal in (race.MIDDLE, race.SCORE)]
        times = [one.behind(entry, goal) for one, goal in every if one.reach(entry, goal) is not None]
        behind = statistics.mean(math.log(MISSED if x is None else min(x, MISSED)) for x in times)
        return 2 * sum(entry in one.entries for one in found) < len(found), behind

    return sorted((e for e in race.ENTRIES if any(e in one.entries for one in found)), key=order)


def _panel(axes: Axes, found: Sequence[race.Contestants], entries: Sequence[Entry], goal: Goal) -> None:
    from matplotlib.patches import Rectangle

    for x, one in enumerate(found):
        for y, entry in enumerate(entries):
            reach, times = one.reach(entry, goal), one.behind(entry, goal)
            if reach is None:
                continue
            amount = PALEST if times is None else PALEST * min(math.log(times) / math.log(FAR), 1.0)
            colour = GROUND if times is None else shade(DEEP, GROUND, amount)
            axes.add_patch(Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor=colour, edgecolor=LINE))
            ink = QUIET if times is None else INK if amount > PALE_CELL else GROUND
            weight, told = "bold" if times == 1.0 else "normal", _seconds(reach.median)
            axes.text(x, y, told, ha="center", va="center", fontsize=7, color=ink, weight=weight)
    axes.set_xlim(-0.6, len(found) - 0.4)
    axes.set_ylim(len(entries) - 0.4, -0.6)
    names = [one.contest.short for one in found]
    axes.set_xticks(range(len(found)), names, rotation=45, ha="left", rotation_mode="anchor")
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=8, labelcolor=QUIET)
    axes.set_title(f"to {race.phrase(goal)}", color=INK, fontsize=10, loc="left")
    axes.set_facecolor(GROUND)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _seconds(seconds: float) -> str:
    if math.isinf(seconds):
        return "·"
    return f"{seconds:.0f}" if seconds >= 9.95 else f"{seconds:.1f}" if seconds >= 0.95 else f"{seconds:.2f}"
