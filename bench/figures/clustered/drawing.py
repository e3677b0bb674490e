"""The pictures of the group: the paper's Figures 2, 3 and 5 to 13, and the classifier's race."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from crfit.picture_names import End, name_ends
from crfit.picture_style import GROUND, INK, QUIET, colour_of, plain_axes

from bench.figures.base import Results
from bench.figures.clustered.entries import (
    CLUSTERED,
    DENSE,
    DENSE_CLUSTERED,
    FIELD,
    NAMES_FIELD,
    PLAIN,
    RIDGE,
    SMALL_RIDGE,
    SWEEP,
    TITLES,
    Entry,
)
from bench.figures.clustered.papers import NAMES_SPEED, SPEED
from bench.figures.clustered.race_reading import race_problems, ranked
from bench.figures.clustered.racing import GAPS, LAST_GAP, OURS, RACES
from bench.figures.clustered.reading import Function, functions, numbers
from bench.figures.clustered.running import GAP
from bench.figures.clustered.scoring import F1
from bench.figures.clustered.trajectories import WEIGHT
from bench.gap_picture import AXES, GapLine, draw_lines, gap_picture
from bench.pictures import titled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["pictures"]

#: Name, points, and whether it is drawn thicker.
Line: TypeAlias = "tuple[str, list[tuple[float, float]], bool]"
#: The smallest gap that is drawn, and how far below the best an F1 is drawn.
BOTTOM, BELOW = 1e-5, 12.0
NARROWEST = 8.6  # inches, for the title


def pictures(results: Results) -> dict[str, Figure]:
    made: dict[str, Figure] = {}
    weights = _weights(results)
    if weights:
        made["weights"] = weights
    dense = [one for one in functions(results, "dense") if one.ridge == RIDGE]
    if dense:
        title = "Figure 5: with 500 words, BFGS, clustered BFGS and iterative scaling"
        made["figure5"] = _gaps(results, title, dense, DENSE)
    sweep = functions(results, "sweep")
    if sweep:
        made["figure6-7"] = _ridges(results, sweep)
    for ridge, name in ((SMALL_RIDGE, "figure8-9"), (RIDGE, "figure8-9-ridge-1")):
        some = [one for one in functions(results, "topic") if one.ridge == ridge and _has_curves(one)]
        if some:
            made[name] = _way(results, f"Figures 8, 9: a ridge of {ridge:g}", some, FIELD)
    names = functions(results, "names")
    if names:
        made["figure12"] = _way(results, "Figure 12: names with three attributes", names, NAMES_FIELD)
        types = _types(results, names[0])
        if types:
            made["figure13"] = types
    for problem in race_problems(results):
        made[f"loglinear-{problem}"] = _race(results, problem)
    return made


def _has_curves(one: Function) -> bool:
    return any(row.get("curve_seconds") for row in one.rows)


def _curve(one: Function, entry: Entry, column: str) -> list[tuple[float, float]]:
    """Seconds with values of the first run."""
    rows = [row for row in one.runs(entry) if row.get("curve_seconds") and row.get(f"curve_{column}")]
    if not rows:
        return []
    x, y = (numbers(rows[0][f"curve_{name}"]) for name in ("seconds", column))
    return [(seconds, value) for seconds, value in zip(x, y, strict=True) if seconds > 0.0]


def _gap_lines(one: Function, entries: Sequence[Entry]) -> list[Line]:
    best = one.facts["objective"]
    lines: list[Line] = []
    for entry in entries:
        points = [(x, max(y / best - 1.0, BOTTOM)) for x, y in _curve(one, entry, "objectives")]
        lines.append((entry.title, points, entry in (CLUSTERED, DENSE_CLUSTERED)))
    return lines


def _score_lines(one: Function, entries: Sequence[Entry], column: str = F1) -> list[Line]:
    return [(entry.title, _curve(one, entry, column), entry is CLUSTERED) for entry in entries]


def _title(one: Function) -> str:
    return TITLES[one.problem]


def _words(results: Results) -> str:
    return f"from zero weights, two threads; {results.machine}"


def _axes(axes: Axes, label: str, *, log_y: bool) -> None:
    plain_axes(axes, log_x=True, log_y=log_y)
    axes.set_xlabel(AXES["seconds"], color=INK)
    axes.set_ylabel(label, color=INK)


def _gaps(results: Results, title: str, some: Sequence[Function], entries: Sequence[Entry]) -> Figure:
    """Relative gap against seconds, a panel for each function."""
    figure = titled_figure((max(4.6 * len(some) + 0.8, NARROWEST), 4.6), title, _words(results))
    panels = []
    for axes, one in zip(figure.subplots(1, len(some), squeeze=False)[0], some, strict=True):
        _axes(axes, f"{_title(one)}: relative gap", log_y=True)
        panels.append((axes, draw_lines(axes, _gap_lines(one, entries))))
        axes.axhline(GAP, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    name_ends(figure, panels)
    return figure


def _way(results: Results, title: str, some: Sequence[Function], entries: Sequence[Entry]) -> Figure:
    """Relative gap and test F1 against seconds: a row of two panels for each function."""
    figure = titled_figure((12.0, 0.9 + 4.0 * len(some)), title, _words(results))
    panels = []
    for (left, right), one in zip(figure.subplots(len(some), 2, squeeze=False), some, strict=True):
        _axes(left, f"{_title(one)}: relative gap", log_y=True)
        panels.append((left, draw_lines(left, _gap_lines(one, entries))))
        left.axhline(GAP, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        _promised(left, one)
        _axes(right, f"{_title(one)}: test F1", log_y=False)
        panels.append((right, _scores(right, _score_lines(one, entries))))
    name_ends(figure, panels)
    return figure


def _promised(axes: Axes, one: Function) -> None:
    """Where the paper's ratios would put clustered L-BFGS: a bar, or a diamond for a single number."""
    plain = one.reach(PLAIN)
    if plain is None or not plain.reached:
        return
    ratios = (NAMES_SPEED,) if one.what == "names" else SPEED
    places = [plain.median / ratio for ratio in ratios]
    axes.plot(places, [GAP] * len(places), marker="D", markersize=5, color=INK, linewidth=2.2, zorder=5)
    axes.annotate(
        f"paper: {'-'.join(f'{ratio:g}' for ratio in ratios)} times as fast as L-BFGS",
        (places[-1], GAP),
        xytext=(-4, -13),
        textcoords="offset points",
        ha="right" if len(places) == 1 else "center",
        fontsize=8,
        color=INK,
        zorder=5,
        bbox={"facecolor": GROUND, "edgecolor": "none", "alpha": 0.8, "pad": 0.4},
    ).set_in_layout(False)


def _scores(axes: Axes, lines: list[Line]) -> list[End]:
    """Draw F1 near its best value."""
    values = [y for _, points, _ in lines for _, y in points]
    ends = draw_lines(axes, lines)
    if values:
        axes.set_ylim(max(values) - BELOW, max(values) + 0.06 * BELOW)
    return ends


def _types(results: Results, one: Function) -> Figure | None:
    """F1 against seconds, a panel for each type of name."""
    prefix = f"curve_{F1}_"
    names = sorted({name for row in one.rows for name in row if name.startswith(prefix) and row[name]})
    if not names:
        return None
    title = "Figure 13: F1 by type of name"
    figure = titled_figure((12.0, 0.9 + 3.6 * ((len(names) + 1) // 2)), title, _words(results))
    panels = []
    grid = figure.subplots((len(names) + 1) // 2, 2, squeeze=False).ravel()
    for axes in grid[len(names) :]:
        axes.set_visible(False)
    for axes, name in zip(grid, names, strict=False):
        _axes(axes, f"{name.removeprefix(prefix)}: test F1", log_y=False)
        lines = _score_lines(one, (PLAIN, CLUSTERED), name.removeprefix("curve_"))
        panels.append((axes, _scores(axes, lines)))
    name_ends(figure, panels)
    return figure


def _ridges(results: Results, found: Sequence[Function]) -> Figure:
    """F1 and seconds to the gap against the ridge: a row of two panels for each topic."""
    problems = list(dict.fromkeys(one.problem for one in found))
    words = f"{_words(results)}; triangles: ended by the limit; dashed: the ridge that the paper finds best"
    figure = titled_figure((12.0, 0.9 + 3.8 * len(problems)), "Figures 6, 7: the ridge", words)
    panels = []
    for (left, right), problem in zip(
        figure.subplots(len(problems), 2, squeeze=False), problems, strict=True
    ):
        some = [one for one in found if one.problem == problem]
        for axes, label in ((left, "test F1"), (right, "seconds to a gap of 1e-4")):
            plain_axes(axes, log_x=True, log_y=axes is right)
            axes.set_xlabel("ridge", color=INK)
            axes.set_ylabel(f"{TITLES[problem]}: {label}", color=INK)
        scores: list[Line] = []
        times: list[Line] = []
        for number, entry in enumerate(SWEEP):
            pairs = [(one.ridge, one.median(entry, f"end_{F1}")) for one in some]
            strong = entry is CLUSTERED
            scores.append((entry.title, [(x, y) for x, y in pairs if y is not None], strong))
            reaches = [(one.ridge, one.reach(entry)) for one in some]
            known = [(x, reach) for x, reach in reaches if reach is not None and reach.at_least]
            times.append((entry.title, [(x, reach.at_least or 0.0) for x, reach in known], strong))
            cut = [(x, reach.at_least or 0.0) for x, reach in known if not reach.reached]
            for x, y in cut:
                right.plot([x], [y * 1.12], marker="^", color=colour_of(number)[0], markersize=5)
        panels += [(left, draw_lines(left, scores)), (right, draw_lines(right, times))]
        left.axvline(SMALL_RIDGE, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    name_ends(figure, panels)
    return figure


def _weights(results: Results) -> Figure | None:
    """Weights against iterations of L-BFGS, a column for each problem; below, the middle ones from near."""
    rows = results.where(row=WEIGHT)
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    if not problems:
        return None
    title = "Figures 2, 3, 10, 11: weights while L-BFGS goes on"
    words = "some of the largest weights, at equal distances in their order, and a close-up; ridge 1"
    figure = titled_figure((max(4.3 * len(problems) + 0.6, NARROWEST), 8.2), title, words)
    grid = figure.subplots(2, len(problems), squeeze=False)
    for (whole, near), problem in zip(grid.T, problems, strict=True):
        curves = [numbers(row["values"]) for row in rows if row["problem"] == problem]
        for axes, label in ((whole, "weight"), (near, "close-up")):
            plain_axes(axes, log_x=False, log_y=False)
            axes.set_xlabel("iterations", color=INK)
            axes.set_ylabel(f"{TITLES[problem]}: {label}", color=INK)
            for number, values in enumerate(curves):
                axes.plot(range(len(values)), values, color=colour_of(number)[0], linewidth=1.1, alpha=0.85)
        near.set_ylim(*_middle([values[-1] for values in curves]))
    return figure


def _middle(ends: Sequence[float]) -> tuple[float, float]:
    """Limits that leave out the outermost weights on either side, with zero between them."""
    cut = len(ends) // 8
    middle = [0.0, *sorted(ends)[cut : len(ends) - cut]]
    room = 0.1 * (max(middle) - min(middle)) or 1.0
    return min(middle) - room, max(middle) + room


def _race(results: Results, problem: str) -> Figure:
    lines = [
        GapLine(standing.title, standing.race, standing.curve, strong=standing.tool == OURS)
        for standing in ranked(results, problem)
        if not standing.trouble
    ]
    words = f"same function, same matrix, from the call of fit: {results.machine}"
    return gap_picture(
        f"LogLinear and other classifiers: {RACES[problem][0]}",
        words,
        lines,
        mark=GAPS[-1],
        bottom=LAST_GAP / 2,
    )
