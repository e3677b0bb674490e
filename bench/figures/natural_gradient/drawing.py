"""The pictures of the group, the paper's Figures 3-6: accuracy on the test and training part by epochs.

Circles are the paper's accuracies at the end of training (its Table 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from crfit.picture_names import End, name_ends
from crfit.picture_style import INK, colour_of, dashes_of, plain_axes

from bench.figures.base import Results
from bench.figures.natural_gradient.entries import FIGURES, PROBLEMS, WEIGHTS, Entry
from bench.figures.natural_gradient.running import EPOCHS
from bench.figures.natural_gradient.scores import Runs, runs_of
from bench.figures.natural_gradient.transforms import transform_picture
from bench.pictures import titled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["pictures"]

#: Passes, mean and deviation.
Points: TypeAlias = "list[tuple[float, float, float]]"
#: Points below the best that are drawn at least, and above it; both parts begin at the same accuracy.
BELOW, ABOVE = 0.95, 0.08


def pictures(results: Results) -> dict[str, Figure]:
    made = {"figure1": transform_picture()}
    for name, problem, title, entries in FIGURES:
        found = [(entry, runs_of(results, problem, entry)) for entry in entries]
        lines = [(entry, runs) for entry, runs in found if runs is not None]
        if len(lines) > 1:
            made[name] = _picture(problem, title, lines)
    return made


def _picture(problem: str, title: str, lines: Sequence[tuple[Entry, Runs]]) -> Figure:
    seeds = min(len(runs.rows) for entry, runs in lines if entry.online)
    online = all(entry.online for entry, _ in lines)
    words = "Mean token accuracy after each epoch" + ("" if online else ", of L-BFGS after each pass")
    words += f"; bands are the deviation over {seeds} seeds or more, circles the paper's at the end"
    heading = f"{title}: CoNLL-2000, {WEIGHTS[problem]:,} weights ({PROBLEMS[problem]} set)"
    figure = titled_figure((11.0, 4.8), heading, words)
    test, training = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    panels = []
    for axes, part in ((test, "test"), (training, "training")):
        plain_axes(axes, log_x=False, log_y=False)
        axes.set_xlabel("epochs", color=INK)
        axes.set_ylabel(f"accuracy on the {part} part, %", color=INK)
        drawn = [(entry, _points(entry, runs, part)) for entry, runs in lines]
        panels.append((axes, _draw(axes, drawn)))
    for number, (entry, _) in enumerate(lines):
        paper = entry.paper(problem)
        if paper is not None:
            test.plot(
                [EPOCHS],
                [paper[0]],
                "o",
                markersize=6,
                fillstyle="none",
                color=colour_of(number)[0],
                clip_on=False,
            )
    accuracies = [[y for _, y, _ in _points(entry, runs, "test")] for entry, runs in lines]
    best, last = max(map(max, accuracies)), min(each[-1] for each in accuracies)
    bottom = min(best - BELOW, last - ABOVE)  # the names stand at the ends, which must be seen
    test.set_ylim(bottom, best + ABOVE)
    training.set_ylim(bottom, 100.05)
    for axes in (test, training):
        axes.set_xlim(0, EPOCHS)
        axes.set_xticks(range(0, EPOCHS + 1, 10))
    name_ends(figure, panels)
    return figure


def _points(entry: Entry, runs: Runs, part: str) -> Points:
    if part == "training":
        return [(float(epoch), mean, deviation) for epoch, mean, deviation in runs.training]
    if not entry.online:
        return [(passes, value, math.nan) for passes, value in runs.passes if passes <= EPOCHS]
    each = enumerate(runs.accuracies(min(runs.longest, EPOCHS)), start=1)
    return [(float(epoch), mean, deviation) for epoch, (mean, deviation) in each]


def _draw(axes: Axes, lines: Sequence[tuple[Entry, Points]]) -> list[End]:
    """Draw lines with their bands; gives where their names go."""
    ends = []
    for number, (entry, points) in enumerate(lines):
        if not points:
            continue
        x, y, deviation = zip(*points, strict=True)
        colour = colour_of(number)[0]
        (stroke,) = axes.plot(x, y, color=colour, linewidth=1.6, zorder=2)
        if dashes_of(number):
            stroke.set_dashes(dashes_of(number))
        if not any(map(math.isnan, deviation)):
            low, high = ([m + side * d for m, d in zip(y, deviation, strict=True)] for side in (-1, 1))
            axes.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0, zorder=1)
        ends.append(End(x[-1], y[-1], entry.title, colour))
    return ends
