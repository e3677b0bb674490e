"""The picture of the group: microseconds of a sequence against length, labels and label tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crfit.picture_names import End, name_ends
from crfit.picture_style import INK, QUIET, plain_axes

from bench.figures.base import Results
from bench.figures.cost.laws import per_sequence
from bench.figures.cost.measuring import AXES, PRODUCT, Axis
from bench.figures.cost.tabulating import COLUMNS
from bench.gap_picture import draw_lines
from bench.pictures import titled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["pictures"]


def pictures(results: Results) -> dict[str, Figure]:
    words = f"Lines of dots rise as the paper says, as T L^(k+1); one thread of {results.machine}"
    figure = titled_figure((15.0, 5.2), "What a sequence takes: gradient, Hessian product, best path", words)
    panels = [
        (axes, _draw(axes, results, axis)) for axes, axis in zip(figure.subplots(1, 3), AXES, strict=True)
    ]
    name_ends(figure, panels)
    return {"cost": figure}


def _draw(axes: Axes, results: Results, axis: Axis) -> list[End]:
    plain_axes(axes, log_x=True, log_y=True)
    grows = "label tuples at a position, L^(k+1)" if axis.name == "order" else axis.words
    axes.set_xlabel(grows, color=INK)
    axes.set_ylabel("µs of a sequence", color=INK)
    lines = []
    for mode, measured, title in COLUMNS:
        found = per_sequence(results, axis, mode, measured)
        points = [(axis.value(row), value) for row, value in found]
        lines.append((title, points, measured == PRODUCT))
        if measured == PRODUCT and points:
            end_x, end_y = points[-1]
            law = [end_y * (x / end_x) ** axis.power for x, _ in points]
            axes.plot([x for x, _ in points], law, color=QUIET, linewidth=1.0, linestyle=":", zorder=1)
    return draw_lines(axes, lines)
