"""The pictures of the group: each problem in three panels, the headline as a heat map, the open point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crfit.picture_names import End, name_ends

from bench.figures.base import Results
from bench.figures.overview.boards import Board, boards
from bench.figures.overview.contests import BROWN
from bench.figures.overview.heat_map import heat_map
from bench.figures.overview.panels import (
    distinct_lines,
    gap_panel,
    legend,
    lines_of,
    quiet_leaders,
    score_panel,
)
from bench.pictures import titled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["pictures"]

WIDTH, HEIGHT = 9.0, 13.0


def pictures(results: Results) -> dict[str, Figure]:
    found = boards(results)
    made = {one.contest.problem: _contest(one, results) for one in found}
    made["headline"] = heat_map(found)
    brown = next((one for one in found if one.contest.problem == BROWN), None)
    if brown is not None:
        made["open-point"] = _open_point(brown, results)
    return made


def _contest(one: Board, results: Results) -> Figure:
    words = f"crfit's trainers from zero weights, two threads: {results.machine}; strong: best of a family"
    figure = titled_figure((WIDTH, HEIGHT), one.contest.title, words)
    upper, middle, lower = figure.subplots(3, 1)
    lines = lines_of(one)
    legend(upper, lines)
    panels = [
        (upper, gap_panel(upper, one, lines, "seconds")),
        (middle, gap_panel(middle, one, lines, "passes")),
        (lower, score_panel(lower, one, lines)),
    ]
    return _named(figure, panels)


def _open_point(one: Board, results: Results) -> Figure:
    words = f"crfit's trainers from zero weights, two threads: {results.machine}"
    title = f"Newton-CG or SGD on a large task: {one.contest.title}"
    figure = titled_figure((WIDTH, 8.4), title, words)
    upper, lower = figure.subplots(2, 1)
    lines = distinct_lines(one)
    panels = [(upper, score_panel(upper, one, lines)), (lower, gap_panel(lower, one, lines, "seconds"))]
    return _named(figure, panels)


def _named(figure: Figure, panels: list[tuple[Axes, list[End]]]) -> Figure:
    name_ends(figure, panels)
    for axes, _ in panels:
        quiet_leaders(axes)
    return figure
