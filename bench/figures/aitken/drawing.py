"""The pictures of the group: the paper's Figures 1-6, and iterative scaling with its accelerations.

Passes are on a logarithmic axis. As in the paper, the right panel enlarges a part of the left one. Lines are
runs with the first seed, so that what a run does from one look to the next is seen. Diamonds are the numbers
that the paper prints of its method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from crfit.picture_names import End, name_ends
from crfit.picture_style import GROUND, INK, QUIET, plain_axes

from bench.figures.aitken.entries import CORPORA, METHOD, PASSES, QUICK, WEIGHTS
from bench.figures.aitken.iterating import GAP
from bench.figures.aitken.maps import SCALING, Scaling
from bench.figures.aitken.panels import FIGURES, Figure
from bench.figures.aitken.papers import TARGETS, Target
from bench.figures.aitken.scaling import curve, maps_in, row_of
from bench.figures.aitken.scores import ERROR, F1, OBJECTIVE, TRAIN_F1, optimum_of, problems_in, runs_of
from bench.figures.base import Results
from bench.gap_picture import AXES, draw_lines
from bench.pictures import titled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

__all__ = ["pictures"]

#: Name, points of a curve, and whether it is the method.
Line: TypeAlias = "tuple[str, list[tuple[float, float]], bool]"

LABELS = {
    F1: "test F1",
    TRAIN_F1: "training F1",
    ERROR: "wrong tokens, %",
    OBJECTIVE: "objective F",
}
#: What the enlargement shows: passes from, and how far below or above the best value.
ENLARGED_FROM, ENLARGED = 0.3, {F1: 2.5, TRAIN_F1: 8.0, ERROR: 1.6}


def pictures(results: Results) -> dict[str, Picture]:
    made = {}
    for figure in FIGURES:
        problems = [name for name in _shown(figure, results) if len(_lines(results, name, figure)) > 1]
        if problems:
            draw = _objectives if figure.measure == OBJECTIVE else _scores
            made[figure.name] = draw(results, figure, problems)
    for problem in dict.fromkeys(problem for problem, _ in maps_in(results)):
        made["scaling"] = _scaling(results, problem)
    return made


def _shown(figure: Figure, results: Results) -> list[str]:
    """The figure's corpora, or the one of a quick run."""
    return [name for name in problems_in(results) if name in figure.problems or name == QUICK]


def _lines(results: Results, problem: str, figure: Figure) -> list[Line]:
    lines = []
    for name, entry in figure.lines:
        runs = runs_of(results, problem, entry)
        points = [] if runs is None else [(x, y) for x, y in runs.curve(figure.measure) if x <= PASSES]
        if points:
            lines.append((name, points, entry is METHOD))
    return lines


def _words(figure: Figure, problems: list[str]) -> str:
    sizes = [f"{CORPORA[name]}, {WEIGHTS[name]:,} weights" for name in problems if name in WEIGHTS]
    words = [*sizes, "one run each, with the first of the seeds, from zero weights"]
    printed = any(_targets(problem, figure) for problem in problems)
    return "; ".join([*words, "diamonds: printed in the paper"] if printed else words)


def _scores(results: Results, figure: Figure, problems: list[str]) -> Picture:
    """Two panels for each corpus: the whole, and the part where lines are close."""
    picture = titled_figure((11.0, 0.9 + 3.9 * len(problems)), figure.title, _words(figure, problems))
    panels = []
    grid = picture.subplots(len(problems), 2, squeeze=False, width_ratios=(1.0, 1.5))
    for (left, right), problem in zip(grid, problems, strict=True):
        lines = _lines(results, problem, figure)
        _axes(left, f"{CORPORA[problem]}: {LABELS[figure.measure]}")
        draw_lines(left, lines)
        targets = _targets(problem, figure)
        _printed(left, [target for target in targets if target.passes < PASSES])
        _printed(right, targets)
        _axes(right, LABELS[figure.measure])
        bounds = _enlarge(lines, targets, figure.measure)
        ends = [
            End(e.x, min(max(e.y, bounds[0]), bounds[1]), e.name, e.colour) for e in draw_lines(right, lines)
        ]
        right.set_ylim(*bounds)
        right.set_xlim(left=ENLARGED_FROM)
        panels.append((right, ends))
    name_ends(picture, panels)
    return picture


def _targets(problem: str, figure: Figure) -> list[Target]:
    """The paper's own numbers that belong into a figure."""
    of_figure = [one for one in TARGETS if figure.name.startswith(one.picture.removesuffix(".png"))]
    return [one for one in of_figure if one.problem == problem]


def _printed(axes: Axes, targets: Sequence[Target]) -> None:
    """Marks where the paper's own numbers are; their words stand where few curves go."""
    ends = [target for target in targets if target.passes == PASSES]
    for target in targets:
        place = (target.passes, target.value)
        axes.plot(*place, marker="D", markersize=6, color=GROUND, markeredgecolor=INK, zorder=5)
        words, shift = f"paper {target.printed}", (7, -11)
        if target.what == ERROR:
            shift = (-6, -13)
        if target in ends:
            words, shift = f"paper {' to '.join(one.printed for one in ends)}", (-9, -3)
        if target in ends[:-1]:
            continue  # the last of them is named for all
        axes.annotate(
            words,
            place,
            xytext=shift,
            textcoords="offset points",
            ha="left" if shift[0] > 0 else "right",
            fontsize=8,
            color=INK,
            clip_on=True,
            zorder=5,
            bbox={"facecolor": GROUND, "edgecolor": "none", "alpha": 0.8, "pad": 0.4},
        ).set_in_layout(False)


def _axes(axes: Axes, label: str, *, log_y: bool = False) -> None:
    plain_axes(axes, log_x=True, log_y=log_y)
    axes.set_xlabel(AXES["passes"], color=INK)
    axes.set_ylabel(label, color=INK)


def _enlarge(lines: list[Line], targets: Sequence[Target], measure: str) -> tuple[float, float]:
    """Limits around the best value, with the paper's numbers between them."""
    printed = [target.value for target in targets if target.passes >= ENLARGED_FROM]
    values = [y for _, points, _ in lines for _, y in points] + printed
    span = ENLARGED[measure]
    room = 0.06 * span
    if measure == ERROR:
        return min(values) - room, max([min(values) + span, *(value + room for value in printed)])
    late = [target.value - room for target in targets if target.passes >= 1.0]
    return min([max(values) - span, *late]), max(values) + room


def _objectives(results: Results, figure: Figure, problems: list[str]) -> Picture:
    """A panel for each corpus, with a line at the optimum."""
    picture = titled_figure((5.8 * len(problems) + 1.0, 5.0), figure.title, _words(figure, problems))
    panels = []
    for axes, problem in zip(picture.subplots(1, len(problems), squeeze=False)[0], problems, strict=True):
        _axes(axes, f"{CORPORA[problem]}: {LABELS[figure.measure]}", log_y=True)
        panels.append((axes, draw_lines(axes, _lines(results, problem, figure))))
        best = optimum_of(results, problem)
        if best is not None:
            axes.axhline(best, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    name_ends(picture, panels)
    return picture


def _scaling(results: Results, problem: str) -> Picture:
    """Relative gap against passes, a panel for each map."""
    best = optimum_of(results, problem)
    maps = [name for where, name in maps_in(results) if where == problem]
    words = f"{CORPORA[problem]}, from zero weights; every evaluation is a pass; dashed: a gap of {GAP:.0%}"
    picture = titled_figure((5.8 * len(maps) + 1.0, 5.0), "Iterative scaling and its accelerations", words)
    panels = []
    for axes, name in zip(picture.subplots(1, len(maps), squeeze=False)[0], maps, strict=True):
        _axes(axes, "relative gap (F − F*) / F*", log_y=True)
        entries = [entry for entry in SCALING if entry.map == name]
        lines = [_gap_line(results, problem, entry, best) for entry in entries]
        panels.append((axes, draw_lines(axes, [line for line in lines if line[1]])))
        axes.axhline(GAP, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    name_ends(picture, panels)
    return picture


def _gap_line(results: Results, problem: str, entry: Scaling, best: float | None) -> Line:
    row = row_of(results, problem, entry)
    if row is None or best is None:
        return entry.title, [], False
    return entry.title, [(x, y / best - 1.0) for x, y in curve(row)], entry.plain
