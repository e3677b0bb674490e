"""The paper's Figures 2, 3 and 5 to 13, and the classifier's race."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bench.papers.clustered import entries as who
from bench.papers.clustered.entries import CLUSTERED, PLAIN, RIDGE, SMALL_RIDGE, SWEEP, TITLES
from bench.papers.clustered.runs import Function, functions, race_problems, racers
from bench.papers.clustered.training import GAP
from bench.pictures import AXES, GapLine, Line, Panel, curves_picture, gap_picture, note
from bench.records import Entry, Results
from bench.seeds import numbers_in
from crfit.pictures import INK, colour_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The smallest gap that is drawn, and how far below the best an F1 is drawn.
BOTTOM, BELOW = 1e-5, 12.0
NARROWEST = 8.6  # inches, for the title


def pictures(results: Results) -> dict[str, "Figure"]:
    topics, names, sweep = (functions(results, what) for what in ("topic", "names", "sweep"))
    shown = [one for one in topics if any(row.get("curve_seconds") for row in one.rows)]
    small, large = (_ways([f for f in shown if f.ridge == r], who.FIELD) for r in (SMALL_RIDGE, RIDGE))
    ways = _ways(names, who.NAMES_FIELD)
    dense = [_gap(one, who.DENSE) for one in functions(results, "dense") if one.ridge == RIDGE]
    kinds = [(name.removeprefix("curve_f1_"), one) for one in names[:1] for name in one.columns("curve_f1_")]
    types = [_score(one, SWEEP, f"f1_{name}", name) for name, one in kinds]
    problems = dict.fromkeys(one.problem for one in sweep)
    ridges = [panel for name in problems for panel in _ridges([f for f in sweep if f.problem == name])]
    weights = _weights(results)
    n_weights = len(weights) // 2
    words = f"from zero weights, two threads; {results.machine}"
    marks = f"{words}; triangles: ended by the limit; dashed: the ridge that the paper finds best"
    about = "some of the largest weights, at equal distances in their order, and a close-up; ridge 1"
    made = {}
    #: Name, title, small print, panels row by row, how many in a row, inches of a panel.
    for name, title, below, panels, columns, (width, height) in (
        (
            "weights",
            "Figures 2, 3, 10, 11: weights while L-BFGS goes on",
            about,
            weights,
            n_weights,
            (4.3, 3.6),
        ),
        ("figure5", "Figure 5: with 500 words", words, dense, len(dense), (4.6, 3.7)),
        ("figure6-7", "Figures 6, 7: the ridge", marks, ridges, 2, (6.0, 3.8)),
        ("figure8-9", f"Figures 8, 9: a ridge of {SMALL_RIDGE:g}", words, small, 2, (6.0, 4.0)),
        ("figure8-9-ridge-1", f"Figures 8, 9: a ridge of {RIDGE:g}", words, large, 2, (6.0, 4.0)),
        ("figure12", "Figure 12: names with three attributes", words, ways, 2, (6.0, 4.0)),
        ("figure13", "Figure 13: F1 by type of name", words, types, 2, (6.0, 3.6)),
    ):
        if panels:
            size = max(width * columns, NARROWEST), 0.9 + height * -(-len(panels) // columns)
            made[name] = curves_picture(title, below, panels, columns=columns, size=size)
    return made | {f"loglinear-{problem}": _race(results, problem) for problem in race_problems(results)}


def _gap(one: Function, entries: Sequence[Entry], *, promised: bool = False) -> Panel:
    """Relative gap against seconds."""
    best, lines = one.facts["objective"], []
    for entry in entries:
        points = [(x, max(y / best - 1.0, BOTTOM)) for x, y in one.curve(entry, "objectives")]
        lines.append(Line(entry.title, points, entry in (CLUSTERED, who.DENSE_CLUSTERED)))
    more = partial(_promised, one=one) if promised else None
    return Panel(AXES["seconds"], f"{TITLES[one.problem]}: relative gap", lines, "xy", [GAP], more=more)


def _score(one: Function, entries: Sequence[Entry], column: str, title: str) -> Panel:
    """F1 against seconds, near its best value."""
    lines = [Line(entry.title, one.curve(entry, column), entry is CLUSTERED) for entry in entries]
    best = max((y for line in lines for _, y in line.points), default=BELOW)
    limits = best - BELOW, best + 0.06 * BELOW
    return Panel(AXES["seconds"], f"{title}: test F1", lines, "x", y_limits=limits)


def _ways(some: Sequence[Function], entries: Sequence[Entry]) -> list[Panel]:
    """Relative gap and test F1 against seconds, for each function."""
    return [
        panel
        for one in some
        for panel in (
            _gap(one, entries, promised=True),
            _score(one, entries, "f1", TITLES[one.problem]),
        )
    ]


def _promised(axes: "Axes", one: Function) -> None:
    """Where the paper's ratios would put clustered L-BFGS: a bar, or a diamond for a single number."""
    plain = one.reach(PLAIN)
    if plain is not None and plain.reached:
        ratios = (who.NAMES_SPEED,) if one.what == "names" else who.SPEED
        places = [plain.median / ratio for ratio in ratios]
        axes.plot(places, [GAP] * len(places), marker="D", markersize=5, color=INK, linewidth=2.2, zorder=5)
        words = f"paper: {'-'.join(f'{ratio:g}' for ratio in ratios)} times as fast as L-BFGS"
        note(axes, words, (places[-1], GAP), (-4, -13), "right" if len(places) == 1 else "center")


def _ridges(some: Sequence[Function]) -> list[Panel]:
    """F1 and seconds to the gap against the ridge, on one topic."""
    title, scores, times, missed = TITLES[some[0].problem], [], [], []
    for number, entry in enumerate(SWEEP):
        f1 = [(one.ridge, y) for one in some if (y := one.median(entry, "end_f1")) is not None]
        reaches = [(one.ridge, reach) for one in some if (reach := one.reach(entry)) and reach.at_least]
        points = [(x, reach.at_least or 0.0) for x, reach in reaches]
        scores.append(Line(entry.title, f1, entry is CLUSTERED))
        times.append(Line(entry.title, points, entry is CLUSTERED))
        ended = [(x, 1.12 * (reach.at_least or 0.0)) for x, reach in reaches if not reach.reached]
        missed += [(x, y, colour_of(number)[0]) for x, y in ended]

    def triangles(axes: "Axes") -> None:
        for x, y, colour in missed:
            axes.plot([x], [y], marker="^", color=colour, markersize=5)

    seconds = f"{title}: seconds to a gap of 1e-4"
    return [
        Panel("ridge", f"{title}: test F1", scores, "x", upright=[SMALL_RIDGE]),
        Panel("ridge", seconds, times, "xy", more=triangles),
    ]


def _weights(results: Results) -> list[Panel]:
    """Weights against iterations of L-BFGS, for each problem; then the middle ones from near."""
    rows, whole, near = results.where(row="weight"), [], []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        curves = [numbers_in(row["values"]) for row in rows if row["problem"] == problem]
        lines = [Line("", list(enumerate(values))) for values in curves]
        # Without the outermost weights on either side, with zero between them.
        cut = len(curves) // 8
        middle = [0.0, *sorted(values[-1] for values in curves)[cut : len(curves) - cut]]
        room = 0.1 * (max(middle) - min(middle)) or 1.0
        limits = min(middle) - room, max(middle) + room
        whole.append(Panel("iterations", f"{TITLES[problem]}: weight", lines, named=False))
        near.append(Panel("iterations", f"{TITLES[problem]}: close-up", lines, y_limits=limits, named=False))
    return whole + near


def _race(results: Results, problem: str) -> "Figure":
    lines = [
        GapLine(standing.title, standing.race, standing.curve, strong=standing.tool == who.OURS)
        for standing in racers(results, problem)
        if not standing.trouble
    ]
    words = f"same function, same matrix, from the call of fit: {results.machine}"
    title = f"LogLinear and other classifiers: {who.RACES[problem][0]}"
    return gap_picture(title, words, lines, mark=who.GAPS[-1], bottom=who.LAST_GAP / 2)
