"""The paper's Figure 1, and 3 to 6: accuracy on the test and training part by epochs.

Circles are the paper's accuracies at the end of training (its Table 2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from bench.papers.natural_gradient import entries as who
from bench.papers.natural_gradient.entries import LARGE, LBFGS, PROBLEMS, SGD, SMALL
from bench.papers.natural_gradient.measuring import EPOCHS
from bench.papers.natural_gradient.runs import BY_PASSES, TEST, TRAINING, EpochRuns
from bench.papers.natural_gradient.tables import SLOPES, transform_values
from bench.pictures import draw_lines, labelled_axes, titled_figure
from bench.records import Entry, Results
from crfit.pictures import End, colour_of, name_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Passes, mean and deviation.
Points: TypeAlias = "list[tuple[float, float, float]]"
#: Points below the best that are drawn at least, and above it; both parts begin at the same accuracy.
BELOW, ABOVE = 0.95, 0.08
#: Title and entries of a picture, by its names for the small and the large set.
FIGURES = {
    ("figure3", "figure4"): (
        "Natural gradients and the baselines",
        (SGD, who.PA, LBFGS, who.U1, who.ARCTAN_1),
    ),
    ("figure5", "figure6"): ("The sigmoids", (SGD, *who.SIGMOIDS)),
    ("beside-small", "beside-large"): ("What the paper has not", (SGD, who.ARCTAN_1, *who.BESIDE)),
}


def pictures(results: Results) -> dict[str, Figure]:
    made = {"figure1": _transforms()}
    for names, (title, entries) in FIGURES.items():
        for name, problem in zip(names, (SMALL, LARGE), strict=True):
            lines = EpochRuns.known(results, problem, entries)
            if len(lines) > 1:
                made[name] = _picture(problem, title, lines)
    return made


def _transforms() -> Figure:
    words = "U1: u / (u² + 0.1); U2: the sigmoids with the constants of the paper's experiments"
    figure = titled_figure((9.0, 4.8), "What natural gradients make of a residual", words)
    axes = labelled_axes(figure.subplots(), "residual u: expected minus observed count", "T(u)")
    u = np.linspace(-1.0, 1.0, 401)
    values = {entry.title: transform_values(entry, u).tolist() for entry in SLOPES}
    lines = [(title, list(zip(u.tolist(), y, strict=True)), False) for title, y in values.items()]
    name_ends(figure, [(axes, draw_lines(axes, lines))])
    return figure


def _picture(problem: str, title: str, lines: Mapping[Entry, EpochRuns]) -> Figure:
    seeds = min(len(runs.rows) for entry, runs in lines.items() if entry is not LBFGS)
    words = "Mean token accuracy after each epoch" + (", of L-BFGS after each pass" if LBFGS in lines else "")
    words += f"; bands are the deviation over {seeds} seeds or more, circles the paper's at the end"
    heading = f"{title}: CoNLL-2000, {who.WEIGHTS[problem]:,} weights ({PROBLEMS[problem]} set)"
    figure = titled_figure((11.0, 4.8), heading, words)
    test, training = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
    drawn = {
        axes: {
            entry: _points(runs, BY_PASSES if what == TEST and entry is LBFGS else what)
            for entry, runs in lines.items()
        }
        for axes, what in ((test, TEST), (training, TRAINING))
    }
    panels = []
    for axes, part in ((test, "test"), (training, "training")):
        labelled_axes(axes, "epochs", f"accuracy on the {part} part, %")
        panels.append((axes, _draw(axes, drawn[axes])))
        axes.set_xlim(0, EPOCHS)
        axes.set_xticks(range(0, EPOCHS + 1, 10))
    for number, entry in enumerate(lines):
        if entry.notes:
            place, colour = ([EPOCHS], [entry.notes[problem][0]]), colour_of(number)[0]
            test.plot(*place, "o", markersize=6, fillstyle="none", color=colour, clip_on=False)
    accuracies = [[y for _, y, _ in points] for points in drawn[test].values()]
    best, last = max(map(max, accuracies)), min(each[-1] for each in accuracies)
    bottom = min(best - BELOW, last - ABOVE)  # the names stand at the ends, which must be seen
    test.set_ylim(bottom, best + ABOVE)
    training.set_ylim(bottom, 100.05)
    name_ends(figure, panels)
    return figure


def _points(runs: EpochRuns, what: str) -> Points:
    places = [x for x, _ in runs.curve(what) if x <= EPOCHS]
    return [(x, *mean) for x in places if (mean := runs.mean(what, x)) is not None]


def _draw(axes: Axes, lines: Mapping[Entry, Points]) -> list[End]:
    """Draw lines with their bands; gives where their names go."""
    for number, points in enumerate(lines.values()):
        x, y, deviation = zip(*points, strict=True) if points else ((), (), (math.nan,))
        if not any(map(math.isnan, deviation)):
            low, high = ([m + side * d for m, d in zip(y, deviation, strict=True)] for side in (-1, 1))
            axes.fill_between(x, low, high, color=colour_of(number)[0], alpha=0.12, linewidth=0, zorder=1)
    plain = [(entry.title, [(x, y) for x, y, _ in points], False) for entry, points in lines.items()]
    return draw_lines(axes, plain)
