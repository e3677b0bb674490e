"""The pictures of the group: gap and test F1 against seconds, gap against passes, for each problem.

Those against seconds are the panels of the paper's Figure 2. A grey bar shows when Newton-CG as published
would reach the goal if the papers' speed-up over the method it was compared with held here.
"""

from bench.papers.newton_cg import entries as ncg
from bench.pictures import (
    AXES,
    Line,
    Mark,
    Panel,
    Picture,
    gap_lines,
    gap_picture,
    race_with_all,
    score_points,
)
from bench.records import Results
from bench.standings import Board, Goal
from crfit.racing.result import RaceResult

#: Percent below and above the F1 of the optimum that are drawn.
BELOW, ABOVE = 3.0, 0.6
#: The method that Newton-CG as published is compared with to a goal, and the papers' ratio.
COMPARED = {ncg.NEAR: (ncg.NCG_NONE, ncg.ALL_AGAINST_NONE), ncg.F1: (ncg.LBFGS_50, ncg.ALL_AGAINST_LBFGS)}
EXPECTED = "as published, if the paper's speed-up held"


def pictures(results: Results) -> dict[str, Picture]:
    made = {}
    words = f"All methods minimise the same function from zero weights, on {results.machine}."
    for one in ncg.boards(results, "methods"):
        name, final, optimum = ncg.PROBLEMS[one.problem], ncg.final_f1(one), one.optimum
        lines = gap_lines(one, ncg.DRAWN, ncg.DEFAULT)
        title = f"Distance from the optimum: {name}"
        made[f"{one.problem}-passes"] = gap_picture(title, words, lines, unit="passes")
        level = 0.0 if optimum is None else ncg.NEAR.relative_gap(optimum) or 0.0
        told = f"{words} {_told(ncg.NEAR)}"
        made[f"{one.problem}-seconds"] = gap_picture(title, told, lines, marks=_bar(one, ncg.NEAR, level))
        if final is not None:
            low, level = final - BELOW, final - ncg.NEAR_F1
            drawn = [Line(x.name, score_points(x.curve, "f1", low, level), x.method, x.strong) for x in lines]
            limits, marks = (low, final + ABOVE), _bar(one, ncg.F1, level)
            panel = Panel(AXES["seconds"], "test F1", drawn, "x", [level], y_limits=limits, marks=marks)
            title = f"Test F1 while training: {name}"
            told = f"Curves end at the dashed line, {ncg.NEAR_F1:g} below the F1 of the optimum. "
            told += _told(ncg.F1)
            made[f"{one.problem}-f1"] = Picture(title, told, [panel], height=3.6)
    steps = [
        Line(ncg.PROBLEMS[one.problem], _steps(one), one.problem) for one in ncg.boards(results, "forcing")
    ]
    if steps:
        words = "Superlinear: each of the last two steps divides the gap by more than the step before."
        panel = Panel("Newton steps", "F − F*", steps, log="y")
        made["forcing"] = Picture("Newton-CG with a CG tolerance that goes to zero", words, [panel])
    return made


def races(results: Results) -> dict[str, RaceResult]:
    """All methods on each problem, for interactive pages."""
    made = {}
    for one in ncg.boards(results, "methods"):
        lines = gap_lines(one, ncg.METHODS, ncg.DEFAULT)
        made[one.problem] = race_with_all(lines, ncg.PROBLEMS[one.problem], results.machine)
    return made


def _told(goal: Goal) -> str:
    slow, (low, high) = COMPARED[goal]
    return f"Grey bar: {low:g} to {high:g} times as fast as {slow.title}."


def _bar(one: Board, goal: Goal, level: float) -> list[Mark]:
    """Where the papers' ratio to another method would put Newton-CG as published."""
    slow, times = COMPARED[goal]
    reach = one.reach(slow, goal)
    if reach is None or not reach.reached:
        return []
    return [Mark([(reach.median / ratio, level) for ratio in times], "bar", EXPECTED)]


def _steps(one: Board) -> list[tuple[float, float]]:
    """Steps of Newton's method with a tolerance that goes to 0, and gaps."""
    standing, optimum = one.good(ncg.SUPERLINEAR), one.optimum
    points = [] if standing is None or optimum is None else standing.curve.points
    gaps = [(float(p.iteration), p.objective - (optimum or 0.0)) for p in points if p.objective is not None]
    return [(step, gap) for step, gap in gaps if gap > 0]
