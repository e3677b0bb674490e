"""The paper's Figures 2, 3 and 5 to 13, and the classifier's race."""

from collections.abc import Sequence

from bench.papers.clustered import entries as who
from bench.papers.clustered.entries import CLUSTERED, PLAIN, RIDGE, SMALL_RIDGE, SWEEP, TITLES
from bench.papers.clustered.runs import Function, functions, race_problems, racers
from bench.papers.clustered.training import GAP
from bench.pictures import AXES, GapLine, Line, Mark, Panel, Picture, gap_picture, race_with_all
from bench.records import Entry, Results
from bench.seeds import numbers_in
from crfit.pictures import power
from crfit.racing.result import RaceResult

#: Curves of topics, and those that are wide.
SHOWN, STRONG = (PLAIN, CLUSTERED, who.NEWTON), (CLUSTERED, who.DENSE_CLUSTERED, who.NEWTON)
#: Weights of the enlarged panels.
CLOSE = 6
#: The smallest gap that is drawn, and how far below the best an F1 is drawn.
BOTTOM, BELOW = 1e-5, 12.0


def pictures(results: Results) -> dict[str, Picture]:
    topics, names, sweep = (functions(results, what) for what in ("topic", "names", "sweep"))
    shown = [one for one in topics if any(row.get("curve_seconds") for row in one.rows)]
    small, large = (_ways([f for f in shown if f.ridge == r], SHOWN) for r in (SMALL_RIDGE, RIDGE))
    # The affine variant coincides with the average one.
    ways = _ways(names, [entry for entry in who.NAMES_FIELD if entry is not who.AFFINE])
    dense = [_gap(one, who.DENSE) for one in functions(results, "dense") if one.ridge == RIDGE]
    kinds = [(name.removeprefix("curve_f1_"), one) for one in names[:1] for name in one.columns("curve_f1_")]
    types = [_score(one, SWEEP, f"f1_{name}", name) for name, one in kinds]
    problems = dict.fromkeys(one.problem for one in sweep)
    ridges = [panel for name in problems for panel in _ridges([f for f in sweep if f.problem == name])]
    words = f"All methods start from zero weights and use two threads of {results.machine}."
    marks = f"Dashed line: the l2 that the paper finds best. Where one line is seen, both are equal. {words}"
    late = f"{words} The default does not compute F during its warm-up, so its curve starts after it."
    about = "Each line is a weight at l2 = 1; the right panels enlarge some that are close at the end."
    made = {}
    #: Name, title, sentence, panels row by row, how many in a row.
    for name, title, below, panels, columns in (
        ("weights", "Figures 2, 3, 10, 11: weights during L-BFGS", about, _weights(results), 2),
        ("figure5", "Figure 5: with 500 words", words, dense, 1),
        ("figure6-7", "Figures 6, 7: the penalty l2", marks, ridges, 2),
        ("figure8-9", f"Figures 8, 9: l2 = {power(SMALL_RIDGE)}", words, small, 2),
        ("figure8-9-ridge-1", f"Figures 8, 9: l2 = {RIDGE:g}", words, large, 2),
        ("figure12", "Figure 12: names with three attributes", late, ways, 2),
        ("figure13", "Figure 13: F1 by type of name", words, types, 2),
    ):
        if panels:
            made[name] = Picture(title, below, panels, columns)
    return made | {f"loglinear-{problem}": _race(results, problem) for problem in _raced(results)}


def races(results: Results) -> dict[str, RaceResult]:
    """All classifiers, for interactive pages."""
    titles = {problem: who.RACES[problem][0] for problem in _raced(results)}
    lines = {problem: _racers(results, problem) for problem in titles}
    return {f"loglinear-{one}": race_with_all(lines[one], titles[one], results.machine) for one in titles}


def _raced(results: Results) -> list[str]:
    """The races that a page shows; the others are only in tables."""
    return [problem for problem in race_problems(results) if problem in ("rows-binary", "rows-small")]


def _gap(one: Function, entries: Sequence[Entry], *, promised: bool = False) -> Panel:
    """Relative gap against seconds."""
    best, lines = one.facts["objective"], []
    for entry in entries:
        points = [(x, max(y / best - 1.0, BOTTOM)) for x, y in one.curve(entry, "objectives")]
        lines.append(Line(entry.title, points, entry.text, entry in STRONG))
    marks = _promised(one) if promised else []
    title = TITLES[one.problem].partition(",")[0]
    return Panel(AXES["seconds"], f"{title}: relative gap", lines, "xy", [GAP], marks=marks)


def _score(one: Function, entries: Sequence[Entry], column: str, title: str) -> Panel:
    """F1 against seconds, near its best value."""
    lines = [Line(entry.title, one.curve(entry, column), entry.text, entry in STRONG) for entry in entries]
    best = max((y for line in lines for _, y in line.points), default=BELOW)
    # Every curve is seen at its end, and from where the first one comes into view.
    halves = [line.points[len(line.points) // 2 :] for line in lines if line.points]
    low = min([best - BELOW, *(min(y for _, y in half) - 0.5 for half in halves)])
    first = min((x for line in lines for x, y in line.points if y >= low), default=None)
    across = None if first is None else (first / 1.5, None)
    limits = low, best + 0.06 * (best - low)
    return Panel(AXES["seconds"], f"{title}: test F1", lines, "x", x_limits=across, y_limits=limits)


def _ways(some: Sequence[Function], entries: Sequence[Entry]) -> list[Panel]:
    """Relative gap and test F1 against seconds, for each function."""
    return [
        panel
        for one in some
        for panel in (_gap(one, entries, promised=True), _score(one, entries, "f1", TITLES[one.problem]))
    ]


def _promised(one: Function) -> list[Mark]:
    """Where the paper's factor would put clustered L-BFGS: a bar, or a diamond for a single number."""
    plain = one.reach(PLAIN)
    if plain is None or not plain.reached:
        return []
    ratios = (who.NAMES_SPEED,) if one.what == "names" else who.SPEED
    name = f"paper: {' to '.join(f'{ratio:g}' for ratio in ratios)} times as fast as L-BFGS"
    return [Mark([(plain.median / ratio, GAP) for ratio in ratios], "bar" if ratios[1:] else "D", name)]


def _ridges(some: Sequence[Function]) -> list[Panel]:
    """F1 and seconds to the gap against l2, on one topic."""
    title, scores, times, missed = TITLES[some[0].problem], [], [], []
    for entry in SWEEP:
        f1 = [(one.ridge, y) for one in some if (y := one.median(entry, "end_f1")) is not None]
        reaches = [(one.ridge, reach) for one in some if (reach := one.reach(entry)) and reach.at_least]
        points = [(x, reach.at_least or 0.0) for x, reach in reaches]
        scores.append(Line(entry.title, f1, entry.text, entry is CLUSTERED))
        times.append(Line(entry.title, points, entry.text, entry is CLUSTERED))
        ended = [(x, 1.12 * (reach.at_least or 0.0)) for x, reach in reaches if not reach.reached]
        missed += [Mark(ended, "^", "stopped at the time limit", entry.title)] if ended else []
    seconds = f"{title}: seconds to a gap of {power(GAP)}"
    return [
        Panel("l2", f"{title}: test F1", scores, "x", upright=[SMALL_RIDGE]),
        Panel("l2", seconds, times, "xy", marks=missed),
    ]


def _weights(results: Results) -> list[Panel]:
    """Weights against iterations of L-BFGS, for each problem; next to them some close ones, enlarged."""
    rows, made = results.where(row="weight"), []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        curves = [numbers_in(row["values"]) for row in rows if row["problem"] == problem]
        marks = [Mark(list(enumerate(values)), "line", "a weight") for values in curves]
        # The closest of those with neighbouring values at the end.
        ends = sorted(values[-1] for values in curves)
        close = min(
            (ends[n : n + CLOSE] for n in range(len(ends) - CLOSE + 1)), key=lambda some: some[-1] - some[0]
        )
        room = 1.5 * (close[-1] - close[0]) or 1.0
        limits = close[0] - room, close[-1] + room
        made.append(Panel("iterations", f"{TITLES[problem]}: weight", [], marks=marks))
        made.append(Panel("iterations", f"{TITLES[problem]}: enlarged", [], marks=marks, y_limits=limits))
    return made


def _racers(results: Results, problem: str) -> list[GapLine]:
    return [
        GapLine(s.title, s.race, s.curve, s.method, strong=(s.tool, s.variant) == (who.OURS, "default"))
        for s in racers(results, problem)
        if not s.trouble
    ]


def _race(results: Results, problem: str) -> Picture:
    drawn = {s.title for s in racers(results, problem) if (s.tool, s.variant) not in who.PAGE_ONLY}
    lines = [line for line in _racers(results, problem) if line.name in drawn]
    words = f"Same function, same matrix; time runs from the call of fit. {results.machine}."
    title = f"LogLinear and other classifiers: {who.RACES[problem][0]}"
    return gap_picture(title, words, lines, mark=who.GAPS[-1], bottom=who.LAST_GAP / 2)
