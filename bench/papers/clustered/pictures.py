"""The paper's Figures 2, 3 and 5 to 13, and the classifier's race."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from bench.papers.clustered import entries as who
from bench.papers.clustered.entries import CLUSTERED, PLAIN, RIDGE, SMALL_RIDGE, SWEEP, TITLES
from bench.papers.clustered.runs import Function, functions, race_problems, ranked
from bench.papers.clustered.training import GAP
from bench.pictures import AXES, DASHED, GapLine, draw_lines, gap_picture, labelled_axes, note, titled_figure
from bench.records import Entry, Results
from bench.seeds import numbers_in
from crfit.pictures import INK, QUIET, End, colour_of, name_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Name, points, and whether it is drawn thicker.
Line: TypeAlias = "tuple[str, list[tuple[float, float]], bool]"
#: The smallest gap that is drawn, and how far below the best an F1 is drawn.
BOTTOM, BELOW = 1e-5, 12.0
NARROWEST = 8.6  # inches, for the title


def pictures(results: Results) -> dict[str, Figure]:
    topics, names = functions(results, "topic"), functions(results, "names")
    with_curves = [one for one in topics if any(row.get("curve_seconds") for row in one.rows)]
    dense = [one for one in functions(results, "dense") if one.ridge == RIDGE]
    small, large = ([one for one in with_curves if one.ridge == ridge] for ridge in (SMALL_RIDGE, RIDGE))
    made = {
        "weights": _weights(results),
        "figure5": _gaps(results, dense),
        "figure6-7": _ridges(results),
        "figure8-9": _way(results, f"Figures 8, 9: a ridge of {SMALL_RIDGE:g}", small, who.FIELD),
        "figure8-9-ridge-1": _way(results, f"Figures 8, 9: a ridge of {RIDGE:g}", large, who.FIELD),
        "figure12": _way(results, "Figure 12: names with three attributes", names, who.NAMES_FIELD),
        "figure13": _types(results, names),
    }
    made |= {f"loglinear-{problem}": _race(results, problem) for problem in race_problems(results)}
    return {name: figure for name, figure in made.items() if figure is not None}


def _words(results: Results) -> str:
    return f"from zero weights, two threads; {results.machine}"


def _draw_gaps(axes: Axes, one: Function, entries: Sequence[Entry]) -> list[End]:
    """Relative gap against seconds."""
    labelled_axes(axes, AXES["seconds"], f"{TITLES[one.problem]}: relative gap", log_x=True, log_y=True)
    best, lines = one.facts["objective"], []
    for entry in entries:
        points = [(x, max(y / best - 1.0, BOTTOM)) for x, y in one.curve(entry, "objectives")]
        lines.append((entry.title, points, entry in (CLUSTERED, who.DENSE_CLUSTERED)))
    axes.axhline(GAP, color=QUIET, linewidth=0.9, linestyle=DASHED, zorder=1)
    return draw_lines(axes, lines)


def _draw_scores(axes: Axes, one: Function, entries: Sequence[Entry], column: str, title: str) -> list[End]:
    """F1 against seconds, near its best value."""
    labelled_axes(axes, AXES["seconds"], f"{title}: test F1", log_x=True)
    lines = [(entry.title, one.curve(entry, column), entry is CLUSTERED) for entry in entries]
    values, ends = [y for _, points, _ in lines for _, y in points], draw_lines(axes, lines)
    if values:
        axes.set_ylim(max(values) - BELOW, max(values) + 0.06 * BELOW)
    return ends


def _gaps(results: Results, some: Sequence[Function]) -> Figure | None:
    """Relative gap against seconds with few words, a panel for each function."""
    if not some:
        return None
    title = "Figure 5: with 500 words, BFGS, clustered BFGS and iterative scaling"
    figure = titled_figure((max(4.6 * len(some) + 0.8, NARROWEST), 4.6), title, _words(results))
    grid = figure.subplots(1, len(some), squeeze=False)[0]
    panels = [(axes, _draw_gaps(axes, one, who.DENSE)) for axes, one in zip(grid, some, strict=True)]
    name_ends(figure, panels)
    return figure


def _way(results: Results, title: str, some: Sequence[Function], entries: Sequence[Entry]) -> Figure | None:
    """Relative gap and test F1 against seconds: a row of two panels for each function."""
    if not some:
        return None
    figure = titled_figure((12.0, 0.9 + 4.0 * len(some)), title, _words(results))
    panels = []
    for (left, right), one in zip(figure.subplots(len(some), 2, squeeze=False), some, strict=True):
        panels.append((left, _draw_gaps(left, one, entries)))
        _promised(left, one)
        panels.append((right, _draw_scores(right, one, entries, "f1", TITLES[one.problem])))
    name_ends(figure, panels)
    return figure


def _promised(axes: Axes, one: Function) -> None:
    """Where the paper's ratios would put clustered L-BFGS: a bar, or a diamond for a single number."""
    plain = one.reach(PLAIN)
    if plain is not None and plain.reached:
        ratios = (who.NAMES_SPEED,) if one.what == "names" else who.SPEED
        places = [plain.median / ratio for ratio in ratios]
        axes.plot(places, [GAP] * len(places), marker="D", markersize=5, color=INK, linewidth=2.2, zorder=5)
        words = f"paper: {'-'.join(f'{ratio:g}' for ratio in ratios)} times as fast as L-BFGS"
        note(axes, words, (places[-1], GAP), (-4, -13), "right" if len(places) == 1 else "center")


def _types(results: Results, names: Sequence[Function]) -> Figure | None:
    """F1 against seconds, a panel for each type of name."""
    types = [name.removeprefix("curve_") for one in names[:1] for name in one.columns("curve_f1_")]
    if not types:
        return None
    rows = (len(types) + 1) // 2
    figure = titled_figure((12.0, 0.9 + 3.6 * rows), "Figure 13: F1 by type of name", _words(results))
    grid = figure.subplots(rows, 2, squeeze=False).ravel()
    for axes in grid[len(types) :]:
        axes.set_visible(False)
    panels = [
        (axes, _draw_scores(axes, names[0], SWEEP, name, name.removeprefix("f1_")))
        for axes, name in zip(grid, types, strict=False)
    ]
    name_ends(figure, panels)
    return figure


def _ridges(results: Results) -> Figure | None:
    """F1 and seconds to the gap against the ridge: a row of two panels for each topic."""
    found = functions(results, "sweep")
    problems = list(dict.fromkeys(one.problem for one in found))
    if not problems:
        return None
    words = f"{_words(results)}; triangles: ended by the limit; dashed: the ridge that the paper finds best"
    figure = titled_figure((12.0, 0.9 + 3.8 * len(problems)), "Figures 6, 7: the ridge", words)
    panels = []
    grid = figure.subplots(len(problems), 2, squeeze=False)
    for (left, right), problem in zip(grid, problems, strict=True):
        some = [one for one in found if one.problem == problem]
        labelled_axes(left, "ridge", f"{TITLES[problem]}: test F1", log_x=True)
        label = f"{TITLES[problem]}: seconds to a gap of 1e-4"
        labelled_axes(right, "ridge", label, log_x=True, log_y=True)
        scores: list[Line] = []
        times: list[Line] = []
        for number, entry in enumerate(SWEEP):
            f1 = [(one.ridge, y) for one in some if (y := one.median(entry, "end_f1")) is not None]
            scores.append((entry.title, f1, entry is CLUSTERED))
            reaches = [(one.ridge, reach) for one in some if (reach := one.reach(entry)) and reach.at_least]
            points = [(x, reach.at_least or 0.0) for x, reach in reaches]
            times.append((entry.title, points, entry is CLUSTERED))
            for (x, y), (_, reach) in zip(points, reaches, strict=True):
                if not reach.reached:
                    right.plot([x], [y * 1.12], marker="^", color=colour_of(number)[0], markersize=5)
        panels += [(left, draw_lines(left, scores)), (right, draw_lines(right, times))]
        left.axvline(SMALL_RIDGE, color=QUIET, linewidth=0.9, linestyle=DASHED, zorder=1)
    name_ends(figure, panels)
    return figure


def _weights(results: Results) -> Figure | None:
    """Weights against iterations of L-BFGS, a column for each problem; below, the middle ones from near."""
    rows = results.where(row="weight")
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    if not problems:
        return None
    title = "Figures 2, 3, 10, 11: weights while L-BFGS goes on"
    words = "some of the largest weights, at equal distances in their order, and a close-up; ridge 1"
    figure = titled_figure((max(4.3 * len(problems) + 0.6, NARROWEST), 8.2), title, words)
    grid = figure.subplots(2, len(problems), squeeze=False)
    for (whole, near), problem in zip(grid.T, problems, strict=True):
        curves = [numbers_in(row["values"]) for row in rows if row["problem"] == problem]
        for axes, label in ((whole, "weight"), (near, "close-up")):
            labelled_axes(axes, "iterations", f"{TITLES[problem]}: {label}")
            for number, values in enumerate(curves):
                axes.plot(range(len(values)), values, color=colour_of(number)[0], linewidth=1.1, alpha=0.85)
        # Without the outermost weights on either side, with zero between them.
        cut = len(curves) // 8
        middle = [0.0, *sorted(values[-1] for values in curves)[cut : len(curves) - cut]]
        room = 0.1 * (max(middle) - min(middle)) or 1.0
        near.set_ylim(min(middle) - room, max(middle) + room)
    return figure


def _race(results: Results, problem: str) -> Figure:
    lines = [
        GapLine(standing.title, standing.race, standing.curve, strong=standing.tool == who.OURS)
        for standing in ranked(results, problem)
        if not standing.trouble
    ]
    words = f"same function, same matrix, from the call of fit: {results.machine}"
    title = f"LogLinear and other classifiers: {who.RACES[problem][0]}"
    return gap_picture(title, words, lines, mark=who.GAPS[-1], bottom=who.LAST_GAP / 2)
