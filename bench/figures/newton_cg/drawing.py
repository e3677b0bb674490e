"""The pictures of the group: gap and test F1 against seconds, gap against passes, for each problem.

Those against seconds are the panels of the paper's Figure 2. A grey bar shows when Newton-CG with all kept
would be there if it were as much faster than the method it was compared with as the papers say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crfit.picture_names import name_ends
from crfit.picture_style import INK, QUIET, plain_axes

from bench.figures.base import Results
from bench.figures.newton_cg.boards import Board, boards
from bench.figures.newton_cg.entries import DEFAULT, LBFGS_50, METHODS, NCG_NONE, SUPERLINEAR, Entry
from bench.figures.newton_cg.goals import F1, NEAR_F1, Goal
from bench.figures.newton_cg.papers import ALL_AGAINST_LBFGS, ALL_AGAINST_NONE
from bench.gap_picture import AXES, GapLine, draw_lines, gap_picture
from bench.pictures import titled_figure
from crfit.racing.records import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["pictures"]

#: Percent below and above the F1 of the optimum that are drawn.
BELOW, ABOVE = 3.0, 0.6
#: The gap at which the papers' ratio is drawn, and with whom Newton-CG with all kept is compared.
NEAR = Goal(1.0)
SOONER_THAN_NONE, SOONER_THAN_LBFGS = (NCG_NONE, ALL_AGAINST_NONE), (LBFGS_50, ALL_AGAINST_LBFGS)


def pictures(results: Results) -> dict[str, Figure]:
    made = {}
    for one in boards(results, "methods"):
        lines = [
            GapLine(entry.title, standing.race, standing.curve, strong=entry is DEFAULT)
            for entry in METHODS
            for standing in [one.good(entry.key)]
            if standing is not None
        ]
        words = f"crfit's trainers on the same function, from zero weights: {results.machine}"
        title = f"Newton-CG and its rivals: {one.title}"
        made[f"{one.problem}-seconds"] = gap_picture(title, words + _bar_words(*SOONER_THAN_NONE), lines)
        made[f"{one.problem}-passes"] = gap_picture(title, words, lines, unit="passes")
        level = None if one.optimum is None else NEAR.relative_gap(one.optimum)
        if level is not None:
            axes = made[f"{one.problem}-seconds"].axes[0]
            _draw_bar(axes, one, NEAR, level, *SOONER_THAN_NONE)
        if one.final_f1 is not None:
            made[f"{one.problem}-f1"] = _f1_picture(one, one.final_f1, lines, words)
    steps = _steps_picture(results)
    return made if steps is None else {**made, "forcing": steps}


def _bar_words(slow: Entry, times: tuple[float, float]) -> str:
    short = slow.title.removeprefix("Newton-CG, ")
    return f"; bar: all kept in the papers, {times[0]:g}-{times[1]:g} times before {short}"


def _draw_bar(
    axes: Axes, one: Board, goal: Goal, level: float, slow: Entry, times: tuple[float, float]
) -> None:
    """Where the papers' ratio to another method would put Newton-CG with all kept."""
    reach = one.reach(slow.key, goal)
    if reach is None or not reach.reached:
        return
    ends = [reach.median / ratio for ratio in times]
    axes.plot(ends, [level, level], color=QUIET, alpha=0.45, linewidth=6, solid_capstyle="butt", zorder=1)


def _steps_picture(results: Results) -> Figure | None:
    """Gap against the steps of Newton's method with a tolerance that goes to 0."""
    lines = []
    for one in boards(results, "forcing"):
        standing, optimum = one.good(SUPERLINEAR.key), one.optimum
        if standing is None or optimum is None:
            continue
        points = [
            (float(point.iteration), point.objective - optimum)
            for point in standing.curve.points
            if point.objective is not None and point.objective > optimum
        ]
        lines.append((one.title, points, False))
    if not lines:
        return None
    words = "A superlinear rate bends down in the end: steps divide the gap by more and more"
    figure = titled_figure((9.0, 4.6), "Newton-CG with a tolerance that goes to zero", words)
    axes = figure.subplots()
    plain_axes(axes, log_x=False, log_y=True)
    axes.set_xlabel("steps of Newton's method", color=INK)
    axes.set_ylabel("F − F*", color=INK)
    name_ends(figure, [(axes, draw_lines(axes, lines))])
    return figure


def _f1_picture(one: Board, final: float, lines: list[GapLine], words: str) -> Figure:
    """Test F1 against seconds, up to a line at what the tables call near."""
    figure = titled_figure(
        (9.0, 4.6), f"Test F1 while training: {one.title}", words + _bar_words(*SOONER_THAN_LBFGS)
    )
    axes = figure.subplots()
    plain_axes(axes, log_x=True, log_y=False)
    axes.set_xlabel(AXES["seconds"], color=INK)
    axes.set_ylabel("test F1", color=INK)
    drawn = [(line.name, _rise(line.curve, final), line.strong) for line in lines]
    ends = draw_lines(axes, drawn)
    axes.axhline(final - NEAR_F1, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.set_ylim(final - BELOW, final + ABOVE)
    _draw_bar(axes, one, F1, final - NEAR_F1, *SOONER_THAN_LBFGS)
    name_ends(figure, [(axes, ends)])
    return figure


def _rise(curve: Curve, final: float) -> list[tuple[float, float]]:
    """Seconds and F1 from the last point below the picture to the first that is near the final F1."""
    points: list[tuple[float, float]] = []
    for point in curve.points:
        score = point.scores.get("f1")
        if score is None or point.seconds <= 0:
            continue
        if score <= final - BELOW:
            points.clear()
        points.append((point.seconds, max(score, final - BELOW)))
        if score >= final - NEAR_F1:
            break
    return points
