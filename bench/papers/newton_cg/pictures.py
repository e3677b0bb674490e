"""The pictures of the group: gap and test F1 against seconds, gap against passes, for each problem.

Those against seconds are the panels of the paper's Figure 2. A grey bar shows when Newton-CG with all kept
would be there if it were as much faster than the method it was compared with as the papers say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.papers.newton_cg import entries as ncg
from bench.pictures import AXES, DASHED, GapLine, draw_lines, gap_picture, labelled_axes, titled_figure
from bench.records import Entry, Results
from bench.standings import Board, Goal
from crfit.pictures import QUIET, name_ends
from crfit.racing.result import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Percent below and above the F1 of the optimum that are drawn.
BELOW, ABOVE = 3.0, 0.6
#: With whom Newton-CG with all kept is compared, and the papers' ratio.
SOONER_THAN_NONE, SOONER_THAN_LBFGS = (
    (ncg.NCG_NONE, ncg.ALL_AGAINST_NONE),
    (ncg.LBFGS_50, ncg.ALL_AGAINST_LBFGS),
)


def pictures(results: Results) -> dict[str, Figure]:
    made = {}
    for one in ncg.boards(results, "methods"):
        found = [(entry, one.good(entry)) for entry in ncg.METHODS]
        lines = [
            GapLine(entry.title, standing.race, standing.curve, strong=entry is ncg.DEFAULT)
            for entry, standing in found
            if standing is not None
        ]
        words = f"crfit's trainers on the same function, from zero weights: {results.machine}"
        title = f"Newton-CG and its rivals: {ncg.PROBLEMS[one.problem]}"
        made[f"{one.problem}-seconds"] = gap_picture(title, words + _bar_words(*SOONER_THAN_NONE), lines)
        made[f"{one.problem}-passes"] = gap_picture(title, words, lines, unit="passes")
        level = None if one.optimum is None else ncg.NEAR.relative_gap(one.optimum)
        if level is not None:
            axes = made[f"{one.problem}-seconds"].axes[0]
            _draw_bar(axes, one, ncg.NEAR, level, *SOONER_THAN_NONE)
        final = ncg.final_f1(one)
        if final is not None:
            made[f"{one.problem}-f1"] = _f1_picture(one, final, lines, words)
    steps = _steps_picture(results)
    return made if steps is None else {**made, "forcing": steps}


def _bar_words(slow: Entry, times: tuple[float, float]) -> str:
    short = slow.title.removeprefix("Newton-CG, ")
    return f"; bar: all kept in the papers, {times[0]:g}-{times[1]:g} times before {short}"


def _draw_bar(
    axes: Axes, one: Board, goal: Goal, level: float, slow: Entry, times: tuple[float, float]
) -> None:
    """Where the papers' ratio to another method would put Newton-CG with all kept."""
    reach = one.reach(slow, goal)
    if reach is not None and reach.reached:
        ends = [reach.median / ratio for ratio in times]
        axes.plot(ends, [level] * 2, color=QUIET, alpha=0.45, linewidth=6, solid_capstyle="butt", zorder=1)


def _steps_picture(results: Results) -> Figure | None:
    """Gap against the steps of Newton's method with a tolerance that goes to 0."""
    lines = []
    for one in ncg.boards(results, "forcing"):
        standing, optimum = one.good(ncg.SUPERLINEAR), one.optimum
        if standing is not None and optimum is not None:
            points = [
                (float(point.iteration), point.objective - optimum)
                for point in standing.curve.points
                if point.objective is not None and point.objective > optimum
            ]
            lines.append((ncg.PROBLEMS[one.problem], points, False))
    if not lines:
        return None
    words = "A superlinear rate bends down in the end: steps divide the gap by more and more"
    figure = titled_figure((9.0, 4.6), "Newton-CG with a tolerance that goes to zero", words)
    axes = labelled_axes(figure.subplots(), "steps of Newton's method", "F − F*", log_y=True)
    name_ends(figure, [(axes, draw_lines(axes, lines))])
    return figure


def _f1_picture(one: Board, final: float, lines: list[GapLine], words: str) -> Figure:
    """Test F1 against seconds, up to a line at what the tables call near."""
    title = f"Test F1 while training: {ncg.PROBLEMS[one.problem]}"
    figure = titled_figure((9.0, 4.6), title, words + _bar_words(*SOONER_THAN_LBFGS))
    axes = labelled_axes(figure.subplots(), AXES["seconds"], "test F1", log_x=True)
    ends = draw_lines(axes, [(line.name, _rise(line.curve, final), line.strong) for line in lines])
    axes.axhline(final - ncg.NEAR_F1, color=QUIET, linewidth=0.9, linestyle=DASHED, zorder=1)
    axes.set_ylim(final - BELOW, final + ABOVE)
    _draw_bar(axes, one, ncg.F1, final - ncg.NEAR_F1, *SOONER_THAN_LBFGS)
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
        if score >= final - ncg.NEAR_F1:
            break
    return points
