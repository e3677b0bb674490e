"""The paper's Figures 1 to 6, and iterative scaling with its accelerations.

Passes are on a logarithmic axis. As in the paper, the right panel enlarges a part of the left one. Lines are
runs with the first seed, so that what a run does from one evaluation to the next is seen. Diamonds are the
numbers that the paper prints of its method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from bench.papers.aitken import entries as who
from bench.papers.aitken import runs as of
from bench.papers.aitken.claims import TARGETS, Target
from bench.papers.aitken.entries import CHUNKS, CORPORA, NAMES, PASSES, PSA, WEIGHTS
from bench.papers.aitken.measuring import GAP
from bench.papers.aitken.runs import ERROR, F1, OBJECTIVE, SCALING, TRAIN_F1, PassRuns
from bench.pictures import AXES, RELATIVE_GAP, Line, Panel, curves_picture, note
from bench.records import Entry, Results
from crfit.pictures import GROUND, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

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

    def panel(self, results: Results, problem: str) -> Panel:
        """All of a corpus; with a line at the optimum for the objective."""
        found = PassRuns.known(results, problem, self.entries)
        curves = {
            e: [(x, y) for x, y in runs.curve(self.measure) if x <= PASSES] for e, runs in found.items()
        }
        lines = [Line(e.title, points, e is who.METHOD) for e, points in curves.items() if points]
        label = f"{CORPORA[problem]}: {LABELS[self.measure]}"
        best = of.optimum_of(results, problem) if self.measure == OBJECTIVE else None
        log = "xy" if self.measure == OBJECTIVE else "x"
        return Panel(AXES["passes"], label, lines, log, [] if best is None else [best])

    def targets(self, problem: str) -> list[Target]:
        """The paper's own numbers that belong into it."""
        here = [one for one in TARGETS if one.problem == problem]
        return [one for one in here if self.name.startswith(f"figure{one.figure}")]


_BOTH, _ALL = (CHUNKS, NAMES), (who.GROUP, who.WINDOW, who.TUNED[1.0], *who.RIVALS)
FIGURES = (
    Figure("figure1", "Figure 1: F1 on the training part", TRAIN_F1, _BOTH, _ALL),
    Figure("figure2", "Figure 2: the objective", OBJECTIVE, _BOTH, _ALL),
    Figure("figure3", "Figure 3: F1 on the test part", F1, _BOTH, _ALL),
    Figure("figure4", "Figure 4: wrong tokens of the test part", ERROR, (CHUNKS,), _ALL),
    *(
        Figure(f"figure{number}{end}", f"Figure {number}: {title}, {scope}", F1, (CHUNKS,), entries)
        for scope, end in zip(who.SCOPES, ("", "-window"), strict=True)
        for number, title, entries in (
            (5, "sequences in a step", tuple(who.BATCHES[scope].values())),
            (6, "the three estimates", (*who.GAMMAS[scope], PSA)),
        )
    ),
)


def pictures(results: Results) -> dict[str, Picture]:
    made = {}
    for figure in FIGURES:
        there = [name for name in of.problems_in(results) if name in (*figure.problems, who.QUICK)]
        panels = {name: figure.panel(results, name) for name in there}
        panels = {name: panel for name, panel in panels.items() if len(panel.lines) > 1}
        if panels:
            made[figure.name] = _picture(figure, panels)
    for problem in dict.fromkeys(problem for problem, _ in of.maps_in(results)):
        made["scaling"] = _scaling(results, problem)
    return made


def _picture(figure: Figure, panels: dict[str, Panel]) -> Picture:
    """A row for each corpus, the whole and an enlargement; of the objective a panel for each."""
    told = [f"{CORPORA[name]}, {WEIGHTS[name]:,} weights" for name in panels if name in WEIGHTS]
    told.append("one run each, with the first of the seeds, from zero weights")
    told += ["diamonds: printed in the paper"] if any(map(figure.targets, panels)) else []
    words, n = "; ".join(told), len(panels)
    if figure.measure == OBJECTIVE:
        size = (5.8 * n + 1.0, 5.0)
        return curves_picture(figure.title, words, list(panels.values()), columns=n, size=size)
    rows: list[Panel] = []
    for name, panel in panels.items():
        targets = figure.targets(name)
        early = [target for target in targets if target.passes < PASSES]
        rows.append(replace(panel, more=partial(_printed, targets=early), named=False))
        limits = _enlarged(panel.lines, targets, figure.measure)
        far = replace(panel, y=LABELS[figure.measure], x_limits=(ENLARGED_FROM, None), y_limits=limits)
        rows.append(replace(far, more=partial(_printed, targets=targets)))
    size = (11.0, 0.9 + 3.9 * n)
    return curves_picture(figure.title, words, rows, columns=2, size=size, widths=(1.0, 1.5))


def _printed(axes: Axes, targets: Sequence[Target]) -> None:
    """Marks where the paper's own numbers are; their words stand where few curves go."""
    for target in targets:
        place = (target.passes, target.value)
        axes.plot(*place, marker="D", markersize=6, color=GROUND, markeredgecolor=INK, zorder=5)
        shift = (-9, -3) if target.passes == PASSES else (-6, -13) if target.what == ERROR else (7, -11)
        note(axes, f"paper {target.printed}", place, shift, "left" if shift[0] > 0 else "right", clip_on=True)


def _enlarged(lines: Sequence[Line], targets: Sequence[Target], measure: str) -> tuple[float, float]:
    """Limits around the best value, with the paper's numbers from one pass on between them."""
    late = [target.value for target in targets if target.passes >= 1.0]
    values, span = [y for line in lines for _, y in line.points], ENLARGED[measure]
    room = 0.06 * span
    if measure == ERROR:
        return min(values) - room, max([min(values) + span, *(value + room for value in late)])
    return min([max(values) - span, *(value - room for value in late)]), max([*values, *late]) + room


def _scaling(results: Results, problem: str) -> Picture:
    """Relative gap against passes, a panel for each map."""
    best, panels = of.optimum_of(results, problem) or math.nan, []
    for name in [name for where, name in of.maps_in(results) if where == problem]:
        rows, plain = of.scaling_rows(results, problem, name), who.SCALING[name][0]
        curves = {e: [(x, y / best - 1.0) for x, y in SCALING.points(row)] for e, row in rows.items()}
        lines = [Line(entry.title, points, entry is plain) for entry, points in curves.items()]
        panels.append(Panel(AXES["passes"], RELATIVE_GAP, lines, "xy", [GAP]))
    words = f"{CORPORA[problem]}, from zero weights; every evaluation is a pass; dashed: a gap of {GAP:.0%}"
    title, n = "Iterative scaling and its accelerations", len(panels)
    return curves_picture(title, words, panels, columns=n, size=(5.8 * n + 1.0, 5.0))
