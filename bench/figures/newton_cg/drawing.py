"""The pictures of the group: gap and test F1 against seconds, gap against passes, for each problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figures.base import Results
from bench.figures.newton_cg.boards import Board, boards
from bench.figures.newton_cg.entries import DEFAULT, METHODS
from bench.figures.newton_cg.goals import NEAR_F1
from bench.gap_picture import AXES, GapLine, draw_lines, gap_picture
from bench.pictures import titled_figure
from crfit.picture_names import name_ends
from crfit.picture_style import INK, QUIET, plain_axes
from crfit.racing.records import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["pictures"]

#: Percent below and above the F1 of the optimum that are drawn.
BELOW, ABOVE = 3.0, 0.6


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
        for unit in ("seconds", "passes"):
            title = f"Newton-CG and its rivals: {one.title}"
            made[f"{one.problem}-{unit}"] = gap_picture(title, words, lines, unit=unit)
        if one.final_f1 is not None:
            made[f"{one.problem}-f1"] = _f1_picture(one, one.final_f1, lines, words)
    return made


def _f1_picture(one: Board, final: float, lines: list[GapLine], words: str) -> Figure:
    """Test F1 against seconds, up to a line at what the tables call near."""
    figure = titled_figure((9.0, 4.6), f"Test F1 while training: {one.title}", words)
    axes = figure.subplots()
    plain_axes(axes, log_x=True, log_y=False)
    axes.set_xlabel(AXES["seconds"], color=INK)
    axes.set_ylabel("test F1", color=INK)
    drawn = [(line.name, _rise(line.curve, final), line.strong) for line in lines]
    ends = draw_lines(axes, drawn)
    axes.axhline(final - NEAR_F1, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.set_ylim(final - BELOW, final + ABOVE)
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
