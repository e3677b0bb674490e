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
from typing import TYPE_CHECKING, Any

from crfit.atomic import replacing
from crfit.errors import OptionError
from crfit.stopping import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_history"]

_INK, _GREY = "#222222", "#8a8a8a"
# Blue, vermilion and bluish green of Okabe and Ito, which colour-blind people tell apart.
_COLOURS = ("#0072b2", "#d55e00", "#009e73")
_SUFFIXES = (".png", ".svg", ".pdf")


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
    kind = os.path.splitext(os.fspath(path))[1].lower()
    if kind not in _SUFFIXES:
        raise OptionError("path", os.fspath(path), f"the name must end in one of {', '.join(_SUFFIXES)}")
    rows = [row for row in _rows(history, optimum, metric) if len(_points(history, row, "seconds")[0]) > 1]
    if not rows:
        raise OptionError("history", f"{len(history)} steps", "give at least two evaluated steps")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'crfit[plot]'") from None

    figure = Figure(figsize=(10.0, 1.0 + 2.6 * len(rows)), dpi=150, layout="constrained")
    table = figure.subplots(len(rows), 2, sharex="col", sharey="row", squeeze=False)
    for row, colour, line in zip(rows, _COLOURS, table, strict=False):
        for axes, unit in zip(line, ("seconds", "passes"), strict=True):
            _draw(axes, row, colour, *_points(history, row, unit))
        line[0].set_ylabel(row.title, color=_INK)
        line[1].tick_params(labelleft=False)
    for axes, name in zip(table[-1], ("seconds in the trainer", "passes over the data"), strict=True):
        axes.set_xlabel(name, color=_INK)
        low, high = axes.get_xlim()
        axes.set_xlim(low, high * (high / low) ** 0.26)  # room for the labels at the last points
    figure.suptitle(title, color=_INK, fontsize=13)
    with replacing(path) as unfinished:
        figure.savefig(unfinished, format=kind[1:], facecolor="white")


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


def _draw(axes: Axes, row: _Row, colour: str, x: list[float], y: list[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    if row.log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(numticks=6))
    axes.plot(x, y, color=colour, linewidth=1.6, solid_capstyle="round")
    axes.plot(x[-1:], y[-1:], "o", color=colour, markersize=5)
    axes.annotate(
        row.spelled(y[-1]),
        (x[-1], y[-1]),
        textcoords="offset points",
        xytext=(7, 0),
        va="center",
        color=colour,
        fontsize=9,
    )
    axes.margins(x=0.03, y=0.12)

    def plain(value: float, _: Any) -> str:
        return f"{value:g}"

    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_GREY, which="both", labelcolor=_INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_GREY)
