"""Trainers and problems at one glance: seconds in the cells, times the fastest as the colour."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crfit.picture_style import GROUND, INK, LINE, QUIET, shade

from bench.figures.overview.boards import GOALS, SCORE, Board, Goal, title_everywhere
from bench.figures.overview.entries import ENTRIES, Entry
from bench.figures.overview.panels import family_colour
from bench.pictures import titled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["heat_map"]

DEEP = "#0651b4"
#: From so many times the fastest on a cell has the palest colour.
FAR = 30.0
MISSED = 300.0  # times, for a mean
#: Of the ground in the palest; and from which on the ink is read better than the ground.
PALEST, PALE = 0.9, 0.45
#: Inches of a cell.
CELL = (0.36, 0.235)


def heat_map(found: Sequence[Board]) -> Figure:
    """Draw both goals side by side, the trainers that are soonest at the top."""
    entries = _ordered(found)
    words = "seconds; deeper: nearer to the fastest of the column; ·: not reached; empty: not asked"
    size = (2.3 + 2 * (CELL[0] * max(len(found), 6) + 0.2), 2.2 + CELL[1] * len(entries))
    figure = titled_figure(size, "Who is there first?", words)
    left, right = figure.subplots(1, 2, sharey=True)
    _panel(left, found, entries, GOALS[1], f"to {GOALS[1].phrase}")
    _panel(right, found, entries, SCORE, f"to {SCORE.phrase}")
    left.set_yticks(range(len(entries)), [title_everywhere(found, entry) for entry in entries])
    for label, entry in zip(left.get_yticklabels(), entries, strict=True):
        label.set_color(shade(family_colour(entry.family), INK))
    return figure


def _ordered(found: Sequence[Board]) -> list[Entry]:
    """By times the fastest, a geometric mean over problems and goals that it has; a goal missed is far."""

    def behind(entry: Entry) -> float:
        every = [(one, goal) for one in found for goal in (GOALS[1], SCORE)]
        times = [one.behind(entry, goal) for one, goal in every if one.reach(entry, goal) is not None]
        return statistics.mean(math.log(MISSED if ratio is None else min(ratio, MISSED)) for ratio in times)

    def order(entry: Entry) -> tuple[bool, float]:
        """Those that take part in less than half of the problems come last."""
        return 2 * sum(entry in one.entries for one in found) < len(found), behind(entry)

    return sorted((e for e in ENTRIES if any(e in one.entries for one in found)), key=order)


def _panel(axes: Axes, found: Sequence[Board], entries: Sequence[Entry], goal: Goal, title: str) -> None:
    from matplotlib.patches import Rectangle

    for x, one in enumerate(found):
        for y, entry in enumerate(entries):
            reach, times = one.reach(entry, goal), one.behind(entry, goal)
            if reach is None:
                continue
            amount = PALEST if times is None else PALEST * min(math.log(times) / math.log(FAR), 1.0)
            colour = GROUND if times is None else shade(DEEP, GROUND, amount)
            axes.add_patch(Rectangle((x - 0.48, y - 0.47), 0.96, 0.94, facecolor=colour, edgecolor=LINE))
            ink = QUIET if times is None else INK if amount > PALE else GROUND
            weight = "bold" if times == 1.0 else "normal"
            axes.text(
                x, y, _seconds(reach.median), ha="center", va="center", fontsize=7, color=ink, weight=weight
            )
    axes.set_xlim(-0.6, len(found) - 0.4)
    axes.set_ylim(len(entries) - 0.4, -0.6)
    names = [one.contest.short for one in found]
    axes.set_xticks(range(len(found)), names, rotation=45, ha="left", rotation_mode="anchor")
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=8, labelcolor=QUIET)
    axes.set_title(title, color=INK, fontsize=10, loc="left")
    axes.set_facecolor(GROUND)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _seconds(seconds: float) -> str:
    if math.isinf(seconds):
        return "·"
    return f"{seconds:.0f}" if seconds >= 9.95 else f"{seconds:.1f}" if seconds >= 0.95 else f"{seconds:.2f}"
