"""The pictures of the group: each problem in three panels, the headline as a heat map, the open point.

A panel has two dozen lines: families by colour, the best of each strong, the others pale. In the heat map
seconds are in the cells, and times the fastest are the colour.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.pictures import (
    AXES,
    RELATIVE_GAP,
    Line,
    Panel,
    curves_picture,
    gap_points,
    score_points,
    titled_figure,
)
from bench.records import Entry, Results
from bench.speed.overview import contests as race
from bench.speed.overview.contests import Contestants
from bench.standings import Goal
from crfit.pictures import COLOURS, GROUND, INK, LINE, QUIET, colour_of, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Gaps that are drawn, and room below for names.
TOP, BOTTOM, ROOM = 3.0, 2e-5, 3.5
#: Percent below the best score: the panel shows no less and no more.
LEAST, MOST = 0.6, 4.0
#: How far a quiet line and its name are moved to the ground.
PALE = 0.5
#: Of the families; the last is the ink, for what is classic.
FAMILY_COLOURS = {family: COLOURS[n][0] for family, n in zip(race.FAMILIES, (0, 1, 2, 3, 4, 6), strict=True)}


def pictures(results: Results) -> dict[str, Figure]:
    found, largest = race.boards(results), race.brown(results)
    words = f"crfit's trainers from zero weights, two threads: {results.machine}"
    made = {one.problem: _contest(one, f"{words}; strong: best of a family") for one in found}
    made["headline"] = heat_map(found)
    if largest is not None:
        lines = [Line(e.title, (), True, colour_of(n)[0]) for n, e in enumerate(largest.entries)]
        panels = [_score_panel(largest, lines), _gap_panel(largest, lines, "seconds")]
        title = f"Newton-CG or SGD on a large task: {largest.contest.title}"
        made["open-point"] = curves_picture(title, words, panels, size=(9.0, 8.4))
    return made


def _contest(one: Contestants, words: str) -> Figure:
    leaders: dict[str, Entry] = {}
    for entry in one.ranked:
        if entry.penalised:
            leaders.setdefault(entry.family, entry)
    lines = []
    for entry in one.entries:
        colour, strong = FAMILY_COLOURS[entry.family], entry in leaders.values()
        lines.append(Line(entry.title, (), strong, colour if strong else shade(colour, GROUND, PALE)))
    upper, middle = (_gap_panel(one, lines, unit) for unit in AXES)
    panels = [replace(upper, more=partial(_legend, one, upper.more or str)), middle, _score_panel(one, lines)]
    return curves_picture(one.contest.title, words, panels, size=(9.0, 13.0))


def _gap_panel(one: Contestants, lines: Sequence[Line], unit: str) -> Panel:
    """Relative gap against seconds or passes; who stays above it is named in an empty corner."""
    drawn, outside = [], []
    for line, entry in zip(lines, one.entries, strict=True):
        standing = one.standings[entry.key]
        drawn.append(line._replace(points=gap_points(standing.race, standing.curve, unit, BOTTOM, TOP)))
        outside += [line.name] if entry.penalised and not drawn[-1].points else []
    told = f"above the panel: {'; '.join(outside)}" if outside else ""
    style: dict[str, Any] = {"fontsize": 8, "color": QUIET, "parse_math": False}
    return Panel(
        AXES[unit],
        RELATIVE_GAP,
        drawn,
        "xy",
        race.GAPS,
        y_limits=(BOTTOM / ROOM, TOP),
        more=lambda axes: told and axes.text(0.012, 0.03, told, transform=axes.transAxes, **style),
    )


def _score_panel(one: Contestants, lines: Sequence[Line]) -> Panel:
    """Test score against seconds, cut below so that the last points differ; who ends below it is named."""
    low, high = _score_limits(one)
    drawn = []
    for line, entry in zip(lines, one.entries, strict=True):
        points = score_points(one.standings[entry.key].curve, one.score, low)
        drawn.append(line._replace(points=points if points and points[-1][1] > low else ()))
    outside = [line.name for line in drawn if not line.points]
    told = f"below the panel at the end: {'; '.join(outside)}" if outside else ""
    return Panel(
        AXES["seconds"],
        f"test {one.contest.score_title}",
        drawn,
        "x",
        [] if one.level is None else [one.level],
        y_limits=(low, high),
        more=partial(_titled, told),
    )


def _titled(told: str, axes: Axes) -> None:
    axes.set_title(told, loc="left", fontsize=8, color=QUIET, parse_math=False)


def _score_limits(one: Contestants) -> tuple[float, float]:
    """Down to somewhat below the middle of the scores at the end, up to somewhat above the best."""
    scores = [score for score in map(one.end_score, one.entries) if score is not None]
    if not scores:
        return 0.0, 100.0
    best = max(scores)
    below = min(max(2.5 * (best - statistics.median(scores)), LEAST), MOST)
    curves = [one.standings[entry.key].curve for entry in one.entries]
    peak = max((value for curve in curves for value in curve.values(one.score)), default=best)
    return best - below, max(peak, best) + 0.06 * below


def _legend(one: Contestants, more: Callable[[Axes], object], axes: Axes) -> None:
    """Name the families in their colours, above a panel."""
    from matplotlib.lines import Line2D

    families = [family for family in race.FAMILIES if any(entry.family == family for entry in one.entries)]
    handles = [Line2D([], [], color=FAMILY_COLOURS[family], linewidth=2.3) for family in families]
    style: dict[str, Any] = {"frameon": False, "fontsize": 9, "labelcolor": INK, "handlelength": 1.4}
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    axes.legend(handles, families, ncols=len(families), **style, **place)
    more(axes)


# --- the heat map ------------------------------------------------------------------------------------------

DEEP = "#0651b4"
#: From so many times the fastest on a cell has the palest colour; of a goal missed, for a mean.
FAR, MISSED = 30.0, 300.0
#: Of the ground in the palest; and from which on the ink is read better than the ground.
PALEST, PALE_CELL = 0.9, 0.45
#: Inches of a cell.
CELL = (0.36, 0.235)


def heat_map(found: Sequence[Contestants]) -> Figure:
    """Draw both goals side by side, the trainers that are soonest at the top."""
    run = [entry for entry in race.ENTRIES if any(entry in one.entries for one in found)]
    entries = sorted(run, key=partial(_rank, found))
    words = "seconds; deeper: nearer to the fastest of the column; ·: not reached; empty: not asked"
    size = (2.3 + 2 * (CELL[0] * max(len(found), 6) + 0.2), 2.2 + CELL[1] * len(entries))
    figure = titled_figure(size, "Who is there first?", words)
    left, right = figure.subplots(1, 2, sharey=True)
    _cells(left, found, entries, race.MIDDLE)
    _cells(right, found, entries, race.SCORE)
    left.set_yticks(range(len(entries)), [entry.title for entry in entries])
    for label, entry in zip(left.get_yticklabels(), entries, strict=True):
        label.set_color(shade(FAMILY_COLOURS[entry.family], INK))
    return figure


def _rank(found: Sequence[Contestants], entry: Entry) -> tuple[bool, float]:
    """By times the fastest, a geometric mean over problems and goals that it has; a goal missed is far.

    Those that take part in less than half of the problems come last.
    """
    every = [(one, goal) for one in found for goal in (race.MIDDLE, race.SCORE)]
    times = [one.behind(entry, goal) for one, goal in every if one.reach(entry, goal) is not None]
    behind = statistics.mean(math.log(MISSED if x is None else min(x, MISSED)) for x in times)
    return 2 * sum(entry in one.entries for one in found) < len(found), behind


def _cells(axes: Axes, found: Sequence[Contestants], entries: Sequence[Entry], goal: Goal) -> None:
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
            digits = 0 if reach.median >= 9.95 else 1 if reach.median >= 0.95 else 2
            told, weight = (
                f"{reach.median:.{digits}f}" if reach.reached else "·",
                "bold" if times == 1.0 else "normal",
            )
            axes.text(x, y, told, ha="center", va="center", fontsize=7, color=ink, weight=weight)
    axes.set(xlim=(-0.6, len(found) - 0.4), ylim=(len(entries) - 0.4, -0.6), facecolor=GROUND)
    names = [one.contest.short for one in found]
    axes.set_xticks(range(len(found)), names, rotation=45, ha="left", rotation_mode="anchor")
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=8, labelcolor=QUIET)
    axes.set_title(f"to {race.words(goal)}", color=INK, fontsize=10, loc="left")
    axes.spines[:].set_visible(False)
