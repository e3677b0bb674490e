"""Pictures of training runs: how far, how fast.

One row a quantity, against time in the trainer (left) and passes over the data (right):

    F - F*     objective above the optimum if that is given, else above the lowest value of the run
    |g|        largest absolute entry of the gradient
    F1         score on held-out data, where the history has one

Axes are logarithmic but for the score: a method that converges at a constant rate falls ever more steeply,
and the first second is seen as well as the last. Needs matplotlib: ``pip install 'crfit[plot]'``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crfit.errors import OptionError
from crfit.picture_names import End, name_ends
from crfit.picture_style import INK, check_picture_name, colour_of, new_figure, plain_axes, save_picture
from crfit.stopping import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_history"]


@dataclass(frozen=True)
class _Row:
    """One quantity: title of its axis, value of a step (None if it has none), spelling of the last value."""

    title: str
    value: Callable[[Progress], float | None]
    spelled: Callable[[float], str]
    log: bool


def plot_history(
    history: Sequence[Progress],
    path: str | os.PathLike[str],
    *,
    title: str = "",
    optimum: float | None = None,
    metric: str = "dev_f1",
) -> None:
    """Draw a training run.

    Parameters
    ----------
    history : sequence of Progress
        The steps, as in ``Result.history``.
    path : path-like
        File to write; its name ends in .png, .svg or .pdf.
    title : str
        Heading of the picture.
    optimum : float, optional
        Objective at the optimum, from a run to a tiny gradient; the lowest value of this run by default.
    metric : str
        Held-out score to draw, a name in ``Progress.extra``; left out where no step has it.

    Raises
    ------
    ImportError
        matplotlib is not there.
    """
    check_picture_name(path)
    rows = [row for row in _rows(history, optimum, metric) if len(_points(history, row, "seconds")[0]) > 1]
    if not rows:
        raise OptionError("history", f"{len(history)} steps", "give at least two evaluated steps")
    figure = new_figure(10.0, 1.0 + 2.6 * len(rows))
    table = figure.subplots(len(rows), 2, sharex="col", sharey="row", squeeze=False)
    ends = []
    for i, (row, line) in enumerate(zip(rows, table, strict=True)):
        for axes, unit in zip(line, ("seconds", "passes"), strict=True):
            ends.append((axes, [_draw(axes, row, colour_of(i)[0], *_points(history, row, unit))]))
        line[0].set_ylabel(row.title, color=INK)
        line[1].tick_params(labelleft=False)
    for axes, name in zip(table[-1], ("seconds in the trainer", "passes over the data"), strict=True):
        axes.set_xlabel(name, color=INK)
    figure.suptitle(title, color=INK, fontsize=13, parse_math=False)
    name_ends(figure, ends)
    save_picture(figure, path)


def _rows(history: Sequence[Progress], optimum: float | None, metric: str) -> list[_Row]:
    values = [p.objective for p in history if p.objective is not None and p.finite]
    lowest = optimum if optimum is not None else min(values, default=0.0)

    def gap(step: Progress) -> float | None:
        return None if step.objective is None else step.objective - lowest

    def spelled(value: float) -> str:
        return f"F = {lowest:,.2f}" if optimum is None else f"{value:.2g}"

    name = "lowest" if optimum is None else "optimum"
    score = metric.removeprefix("dev_").replace("f1", "F1")
    return [
        _Row(f"objective above its {name}", gap, spelled, log=True),
        _Row("largest gradient entry", lambda step: step.grad_inf, lambda v: f"{v:.2g}", log=True),
        _Row(
            f"{score} on held-out data", lambda step: step.extra.get(metric), lambda v: f"{v:.2f}", log=False
        ),
    ]


def _points(history: Sequence[Progress], row: _Row, unit: str) -> tuple[list[float], list[float]]:
    """Where the quantity is known, and positive if its axis is logarithmic."""
    found = [
        (float(getattr(step, unit)), value)
        for step in history
        if step.finite and (value := row.value(step)) is not None and (value > 0 or not row.log)
    ]
    found = [(x, value) for x, value in found if x > 0]
    return [x for x, _ in found], [value for _, value in found]


def _draw(axes: Axes, row: _Row, colour: str, x: list[float], y: list[float]) -> End:
    """Draw a quantity; return its last point."""
    plain_axes(axes, log_x=True, log_y=row.log)
    axes.plot(x, y, color=colour, linewidth=1.6, solid_capstyle="round")
    axes.plot(x[-1:], y[-1:], "o", color=colour, markersize=5)
    return End(x[-1], y[-1], row.spelled(y[-1]), colour)
