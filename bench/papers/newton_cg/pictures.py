"""The pictures of the group: gap and test F1 against seconds, gap against passes, for each problem.

Those against seconds are the panels of the paper's Figure 2. A grey bar shows when Newton-CG with all kept
would be there if it were as much faster than the method it was compared with as the papers say.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench.papers.newton_cg import entries as ncg
from bench.pictures import AXES, GapLine, Line, Panel, curves_picture, gap_picture, score_points
from bench.records import Results
from bench.standings import Board, Goal
from crfit.pictures import QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Percent below and above the F1 of the optimum that are drawn.
BELOW, ABOVE = 3.0, 0.6
#: With whom Newton-CG with all kept is compared to a goal, and the papers' ratio.
COMPARED = {
    ncg.NEAR: (ncg.NCG_NONE, ncg.ALL_AGAINST_NONE),
    ncg.F1: (ncg.LBFGS_50, ncg.ALL_AGAINST_LBFGS),
}


def pictures(results: Results) -> dict[str, Figure]:
    made = {}
    for one in ncg.boards(results, "methods"):
        name, final, optimum = ncg.PROBLEMS[one.problem], ncg.final_f1(one), one.optimum
        found = [(entry, one.good(entry)) for entry in ncg.METHODS]
        lines = [
            GapLine(e.title, s.race, s.curve, strong=e is ncg.DEFAULT) for e, s in found if s is not None
        ]
        words = f"crfit's trainers on the same function, from zero weights: {results.machine}"
        title = f"Newton-CG and its rivals: {name}"
        made[f"{one.problem}-passes"] = gap_picture(title, words, lines, unit="passes")
        level = 0.0 if optimum is None else ncg.NEAR.relative_gap(optimum) or 0.0
        bar = partial(_bar, one, ncg.NEAR, level)
        told = f"{words}; {_told(ncg.NEAR)}"
        made[f"{one.problem}-seconds"] = gap_picture(title, told, lines, more=bar)
        if final is not None:
            level = final - ncg.NEAR_F1
            drawn = [
                Line(line.name, score_points(line.curve, "f1", final - BELOW, level), line.strong)
                for line in lines
            ]
            panel = Panel(
                AXES["seconds"],
                "test F1",
                drawn,
                log="x",
                across=[level],
                y_limits=(final - BELOW, final + ABOVE),
                more=partial(_bar, one, ncg.F1, level),
            )
            title = f"Test F1 while training: {name}"
            made[f"{one.problem}-f1"] = curves_picture(title, f"{words}; {_told(ncg.F1)}", [panel])
    steps = [Line(ncg.PROBLEMS[one.problem], _steps(one)) for one in ncg.boards(results, "forcing")]
    if steps:
        words = "A superlinear rate bends down in the end: steps divide the gap by more and more"
        panel = Panel("steps of Newton's method", "F − F*", steps, log="y")
        made["forcing"] = curves_picture("Newton-CG with a tolerance that goes to zero", words, [panel])
    return made


def _told(goal: Goal) -> str:
    slow, (low, high) = COMPARED[goal]
    return (
        f"bar: all kept in the papers, {low:g}-{high:g} times before {slow.title.removeprefix('Newton-CG, ')}"
    )


def _bar(one: Board, goal: Goal, level: float, axes: Axes) -> None:
    """Where the papers' ratio to another method would put Newton-CG with all kept."""
    slow, times = COMPARED[goal]
    reach = one.reach(slow, goal)
    if reach is not None and reach.reached:
        ends = [reach.median / ratio for ratio in times]
        axes.plot(ends, [level] * 2, color=QUIET, alpha=0.45, linewidth=6, solid_capstyle="butt", zorder=1)


def _steps(one: Board) -> list[tuple[float, float]]:
    """Steps of Newton's method with a tolerance that goes to 0, and gaps."""
    standing, optimum = one.good(ncg.SUPERLINEAR), one.optimum
    points = [] if standing is None or optimum is None else standing.curve.points
    gaps = [(float(p.iteration), p.objective - (optimum or 0.0)) for p in points if p.objective is not None]
    return [(step, gap) for step, gap in gaps if gap > 0]
