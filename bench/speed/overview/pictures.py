"""The pictures of the group: each problem in three panels, all problems in a heat map, the open point.

Panels have the eight entries of `contests.DRAWN`; interactive pages have all.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bench.pictures import (
    AXES,
    RELATIVE_GAP,
    ROOM,
    Drawable,
    Line,
    Panel,
    Picture,
    gap_lines,
    gap_points,
    race_with_all,
    score_points,
)
from bench.records import Entry, Results
from bench.speed.overview import contests as race
from bench.speed.overview.contests import Contestants
from bench.standings import Goal
from crfit.pictures import LIGHT, METHODS, MOST_LINES, TEXT, Theme, headed_figure, shade
from crfit.racing.result import RaceResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Gaps that are drawn.
TOP, BOTTOM = 3.0, 2e-5
#: Percent below the best score: the panel shows no less and no more.
LEAST, MOST = 0.6, 4.0


def pictures(results: Results) -> dict[str, Drawable]:
    found, largest = race.boards(results), race.brown(results)
    words = f"Every trainer starts from zero weights and uses two threads of {results.machine}. "
    words += f"Dashed lines: the gaps of the tables, and {race.NEAR:g} below the best score."
    made: dict[str, Drawable] = {}
    for one in found:
        panels = [_gap_panel(one, "seconds"), _gap_panel(one, "passes"), _score_panel(one)]
        names = [line.name for line in panels[0].lines]
        unseen = [name for name in names if all(panel.missing([name]) for panel in panels)]
        told = f" Outside all panels: {', '.join(unseen)}." if unseen else ""
        made[one.problem] = Picture(one.contest.title, words + told, panels)
    made["headline"] = HeatMap(found)
    if largest is not None:
        panels = [_score_panel(largest), _gap_panel(largest, "seconds")]
        made["open-point"] = Picture(
            f"crfit's default or SGD on a large corpus: {largest.contest.title}", words, panels
        )
    return made


def races(results: Results) -> dict[str, RaceResult]:
    """All entries on each problem, for interactive pages."""
    found = {one.problem: (gap_lines(one, one.entries), one.contest.title) for one in race.boards(results)}
    return {name: race_with_all(*lines, results.machine) for name, lines in found.items()}


def _drawn(one: Contestants) -> list[Entry]:
    few = len(one.entries) <= MOST_LINES
    return [entry for entry in one.entries if few or entry in race.DRAWN]


def _gap_panel(one: Contestants, unit: str) -> Panel:
    """Relative gap against seconds or passes."""
    drawn = gap_lines(one, _drawn(one), race.NEWTON)
    points = [gap_points(line.race, line.curve, unit, BOTTOM, TOP) for line in drawn]
    lines = [Line(x.name, some, x.method, x.strong) for x, some in zip(drawn, points, strict=True)]
    limits = (BOTTOM / ROOM, TOP)
    return Panel(AXES[unit], RELATIVE_GAP, lines, "xy", race.GAPS, y_limits=limits)


def _score_panel(one: Contestants) -> Panel:
    """Test score against seconds, cut below so that the last points differ."""
    low, high = _score_limits(one)
    lines = []
    for entry in _drawn(one):
        points = score_points(one.standings[entry.key].curve, one.score, low)
        points = points if points and points[-1][1] > low else []
        lines.append(Line(entry.title, points, entry.text, entry is race.NEWTON))
    across = [] if one.level is None else [one.level]
    label = f"test {one.contest.score_title}"
    return Panel(AXES["seconds"], label, lines, "x", across, y_limits=(low, high))


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


# --- the heat map ------------------------------------------------------------------------------------------

#: From so many times the fastest on a cell has the palest colour; of a goal missed, for a mean.
FAR, MISSED = 30.0, 300.0
PALEST = 0.9  # share of the background in the palest cell
#: Inches of a row, and around the rows.
ROW, AROUND = 0.245, 1.45


@dataclass(frozen=True)
class HeatMap:
    """Seconds to both goals, one below the other, the fastest trainers at the top."""

    found: Sequence[Contestants]

    def draw(self, theme: Theme = LIGHT) -> Figure:
        run = [entry for entry in race.ENTRIES if any(entry in one.entries for one in self.found)]
        entries = sorted(run, key=partial(_rank, self.found))
        goals = {
            goal: [e for e in entries if _reached(self.found, e, goal)] for goal in (race.MIDDLE, race.SCORE)
        }
        goals = {goal: some for goal, some in goals.items() if some}
        words = "The stronger the blue, the closer to the fastest trainer of the column. A dot: not reached. "
        words += "Empty: not run. Trainers that reach a goal on no problem are left out."
        height = sum(AROUND + ROW * len(some) for some in goals.values())
        figure = headed_figure(height, theme, title="Time of every trainer on every problem", words=words)
        ratios = [AROUND / 2 + ROW * len(some) for some in goals.values()]
        grid = figure.subplots(len(goals), squeeze=False, height_ratios=ratios or None).ravel()
        for axes, (goal, some) in zip(grid, goals.items(), strict=True):
            _cells(axes, self.found, some, goal, theme)
        return figure


def _reached(found: Sequence[Contestants], entry: Entry, goal: Goal) -> bool:
    return any(one.behind(entry, goal) is not None for one in found if one.good(entry) is not None)


def _rank(found: Sequence[Contestants], entry: Entry) -> tuple[bool, float]:
    """Geometric mean of times the fastest; those in less than half of the problems come last."""
    every = [(one, goal) for one in found for goal in (race.MIDDLE, race.SCORE)]
    times = [one.behind(entry, goal) for one, goal in every if one.reach(entry, goal) is not None]
    behind = statistics.mean(math.log(MISSED if x is None else min(x, MISSED)) for x in times)
    return 2 * sum(entry in one.entries for one in found) < len(found), behind


def _readable(colour: str, theme: Theme) -> str:
    """Ink or background, whichever differs more from the colour of a cell."""

    def brightness(one: str) -> float:
        return sum(part * int(one[i : i + 2], 16) for part, i in ((0.3, 1), (0.59, 3), (0.11, 5)))

    return max(theme.ink, theme.ground, key=lambda one: abs(brightness(one) - brightness(colour)))


def _cells(
    axes: Axes, found: Sequence[Contestants], entries: Sequence[Entry], goal: Goal, theme: Theme
) -> None:
    from matplotlib.patches import Rectangle

    deep = METHODS["newton_cg"].colour(theme)
    for x, one in enumerate(found):
        for y, entry in enumerate(entries):
            reach, times = one.reach(entry, goal), one.behind(entry, goal)
            if reach is None:
                continue
            amount = PALEST if times is None else PALEST * min(math.log(times) / math.log(FAR), 1.0)
            colour = theme.ground if times is None else shade(deep, theme.ground, amount)
            box = Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor=colour, edgecolor=theme.grid)
            axes.add_patch(box)
            ink = theme.quiet if times is None else _readable(colour, theme)
            digits = 0 if reach.median >= 9.95 else 1 if reach.median >= 0.95 else 2
            told = f"{reach.median:.{digits}f}" if reach.reached else "·"
            axes.text(x, y, told, ha="center", va="center", fontsize=TEXT, color=ink)
    axes.set(xlim=(-0.6, len(found) - 0.4), ylim=(len(entries) - 0.4, -0.6), facecolor=theme.ground)
    names = [one.contest.short for one in found]
    axes.set_xticks(range(len(found)), names, rotation=55, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(entries)), [entry.title for entry in entries])
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=TEXT, labelcolor=theme.quiet)
    axes.tick_params(axis="y", labelcolor=theme.ink)
    words = race.words(goal).replace("gap", "a relative gap of")
    axes.set_title(f"Seconds to {words}", color=theme.ink, fontsize=TEXT + 1, loc="left", weight="bold")
    axes.spines[:].set_visible(False)
