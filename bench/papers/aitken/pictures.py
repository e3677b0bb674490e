"""The paper's Figures 1 to 6, and iterative scaling with its accelerations.

Passes are on a logarithmic axis. As in the paper, the right panel enlarges a part of the left one. Lines are
runs with the first seed, so that what a run does from one evaluation to the next is seen. Diamonds are the
numbers that the paper prints of its method.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bench.papers.aitken import entries as who
from bench.papers.aitken import runs as of
from bench.papers.aitken.claims import TARGETS, Target
from bench.papers.aitken.entries import CHUNKS, CORPORA, NAMES, PASSES, PSA, WEIGHTS
from bench.papers.aitken.measuring import GAP
from bench.papers.aitken.runs import ERROR, F1, OBJECTIVE, TRAIN_F1, PassRuns
from bench.pictures import AXES, DASHED, RELATIVE_GAP, draw_lines, labelled_axes, note, titled_figure
from bench.records import Entry, Results
from crfit.pictures import GROUND, INK, QUIET, End, name_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

#: Name, points of a curve, and whether it is the method.
Line: TypeAlias = "tuple[str, list[tuple[float, float]], bool]"
LABELS = {F1: "test F1", TRAIN_F1: "training F1", ERROR: "wrong tokens, %", OBJECTIVE: "objective F"}
#: What the enlargement shows: passes from, and how far below or above the best value.
ENLARGED_FROM, ENLARGED = 0.3, {F1: 2.5, TRAIN_F1: 8.0, ERROR: 1.6}


@dataclass(frozen=True)
class Figure:
    """A picture of the paper: a measure against passes, with panels for each corpus."""

    name: str
    title: str
    measure: str
    problems: tuple[str, ...]
    entries: tuple[Entry, ...]
    names: tuple[str, ...] = ()

    def lines(self, results: Results, problem: str) -> list[Line]:
        found = PassRuns.known(results, problem, self.entries)
        names = dict(zip(self.entries, self.names or [one.title for one in self.entries], strict=True))
        curves = {
            entry: [(x, y) for x, y in runs.curve(self.measure) if x <= PASSES]
            for entry, runs in found.items()
        }
        return [(names[entry], points, entry is who.METHOD) for entry, points in curves.items() if points]

    def targets(self, problem: str) -> list[Target]:
        """The paper's own numbers that belong into it."""
        here = [one for one in TARGETS if one.problem == problem]
        return [one for one in here if self.name.startswith(f"figure{one.figure}")]


def _by_scope(number: int, scope: str) -> Figure:
    name = f"figure{number}{'' if scope == 'group' else '-window'}"
    if number == 5:
        sizes = who.BATCHES[scope]
        names, title = tuple(f"{size} in a step" for size in sizes), f"Figure 5: sequences in a step, {scope}"
        return Figure(name, title, F1, (CHUNKS,), tuple(sizes.values()), names)
    title = f"Figure 6: the three estimates, {scope}"
    return Figure(name, title, F1, (CHUNKS,), (*who.GAMMAS[scope], PSA), ("γ1", "γ2", "γ3", "PSA"))


_BOTH, _ALL = (CHUNKS, NAMES), (who.GROUP, who.WINDOW, who.TUNED[1.0], *who.RIVALS)
FIGURES = (
    Figure("figure1", "Figure 1: F1 on the training part", TRAIN_F1, _BOTH, _ALL),
    Figure("figure2", "Figure 2: the objective", OBJECTIVE, _BOTH, _ALL),
    Figure("figure3", "Figure 3: F1 on the test part", F1, _BOTH, _ALL),
    Figure("figure4", "Figure 4: wrong tokens of the test part", ERROR, (CHUNKS,), _ALL),
    *(_by_scope(number, scope) for number in (5, 6) for scope in who.SCOPES),
)


def pictures(results: Results) -> dict[str, Picture]:
    made = {}
    for figure in FIGURES:
        there = [name for name in of.problems_in(results) if name in (*figure.problems, who.QUICK)]
        problems = [name for name in there if len(figure.lines(results, name)) > 1]
        if problems:
            draw = _objectives if figure.measure == OBJECTIVE else _scores
            made[figure.name] = draw(results, figure, problems)
    for problem in dict.fromkeys(problem for problem, _ in of.maps_in(results)):
        made["scaling"] = _scaling(results, problem)
    return made


def _words(figure: Figure, problems: Iterable[str]) -> str:
    words = [f"{CORPORA[name]}, {WEIGHTS[name]:,} weights" for name in problems if name in WEIGHTS]
    words.append("one run each, with the first of the seeds, from zero weights")
    printed = any(figure.targets(problem) for problem in problems)
    return "; ".join([*words, "diamonds: printed in the paper"] if printed else words)


def _axes(axes: Axes, label: str, *, log_y: bool = False) -> Axes:
    return labelled_axes(axes, AXES["passes"], label, log_x=True, log_y=log_y)


def _scores(results: Results, figure: Figure, problems: list[str]) -> Picture:
    """Two panels for each corpus: the whole, and the part where lines are close."""
    picture = titled_figure((11.0, 0.9 + 3.9 * len(problems)), figure.title, _words(figure, problems))
    panels = []
    grid = picture.subplots(len(problems), 2, squeeze=False, width_ratios=(1.0, 1.5))
    for (left, right), problem in zip(grid, problems, strict=True):
        lines, targets = figure.lines(results, problem), figure.targets(problem)
        _axes(left, f"{CORPORA[problem]}: {LABELS[figure.measure]}")
        draw_lines(left, lines)
        _printed(left, [target for target in targets if target.passes < PASSES])
        _printed(right, targets)
        _axes(right, LABELS[figure.measure])
        low, high = _enlarge(lines, targets, figure.measure)
        drawn = draw_lines(right, lines)
        panels.append((right, [End(e.x, min(max(e.y, low), high), e.name, e.colour) for e in drawn]))
        right.set_ylim(low, high)
        right.set_xlim(left=ENLARGED_FROM)
    name_ends(picture, panels)
    return picture


def _printed(axes: Axes, targets: Sequence[Target]) -> None:
    """Marks where the paper's own numbers are; their words stand where few curves go."""
    ends = [target for target in targets if target.passes == PASSES]
    for target in targets:
        place = (target.passes, target.value)
        axes.plot(*place, marker="D", markersize=6, color=GROUND, markeredgecolor=INK, zorder=5)
        words, shift = f"paper {target.printed}", (-6, -13) if target.what == ERROR else (7, -11)
        if target in ends:
            words, shift = f"paper {' to '.join(one.printed for one in ends)}", (-9, -3)
        if target in ends[:-1]:
            continue  # the last of them is named for all
        note(axes, words, place, shift, "left" if shift[0] > 0 else "right", clip_on=True)


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
        panels.append((axes, draw_lines(axes, figure.lines(results, problem))))
        best = of.optimum_of(results, problem)
        if best is not None:
            axes.axhline(best, color=QUIET, linewidth=0.9, linestyle=DASHED, zorder=1)
    name_ends(picture, panels)
    return picture


def _scaling(results: Results, problem: str) -> Picture:
    """Relative gap against passes, a panel for each map."""
    best = of.optimum_of(results, problem)
    maps = [name for where, name in of.maps_in(results) if where == problem]
    words = f"{CORPORA[problem]}, from zero weights; every evaluation is a pass; dashed: a gap of {GAP:.0%}"
    picture = titled_figure((5.8 * len(maps) + 1.0, 5.0), "Iterative scaling and its accelerations", words)
    panels = []
    for axes, name in zip(picture.subplots(1, len(maps), squeeze=False)[0], maps, strict=True):
        _axes(axes, RELATIVE_GAP, log_y=True)
        rows = {entry: of.scaling_row(results, problem, entry) for entry in who.SCALING[name]}
        lines = [
            (
                entry.title,
                [(x, y / best - 1.0) for x, y in of.scaling_curve(row)],
                entry.key.endswith("-none"),
            )
            for entry, row in rows.items()
            if row is not None and best is not None
        ]
        panels.append((axes, draw_lines(axes, lines)))
        axes.axhline(GAP, color=QUIET, linewidth=0.9, linestyle=DASHED, zorder=1)
    name_ends(picture, panels)
    return picture
