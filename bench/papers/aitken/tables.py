"""The tables, the paper's Figures 1 to 6, and iterative scaling with its accelerations.

Passes are on a logarithmic axis. Panels show the best few points, where the curves differ. Lines are single
runs with the first seed, which show oscillation. Diamonds are the numbers that the paper prints.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from bench.claims import HOLDS, NOT_MEASURED, by_claim, judged
from bench.papers.aitken import claims
from bench.papers.aitken import entries as who
from bench.papers.aitken import runs as of
from bench.papers.aitken.claims import HELD_OUT, OWN, SECONDS, TARGETS, Target
from bench.papers.aitken.entries import CHUNKS, CORPORA, METHODS, NAMES, PASSES, PSA, PSA_TUNED, SGD, TUNED
from bench.papers.aitken.measuring import GAP, SHARE
from bench.papers.aitken.runs import ERROR, F1, OBJECTIVE, SCALING, TRAIN_F1, PassRuns, problems_in
from bench.pictures import AXES, Line, Mark, Panel, Picture
from bench.problems import problem as problem_of
from bench.records import Entry, Results
from bench.seeds import pairs_table, seconds_table
from bench.tables import Column, markdown, prose, shown, table_of

#: A corpus, an entry, and its runs there.
Ran: TypeAlias = "tuple[str, Entry, PassRuns]"
#: The paper's passes, after which trainers are compared.
AFTER = {n: f"{n:g}" for n in (0.1, 0.35, 1.0, 4.0, 50.0)}
PAIRS = [(three, base) for one, two, three in who.GAMMAS.values() for base in (one, two, PSA, SGD)]
#: The paper's Table 1, where PSA is the second estimate; every trainer with SGD of the same mini-batch size.
_GAMMAS = [(n, entry.key) for gammas in who.GAMMAS.values() for n, entry in enumerate(gammas)]
TABLE_1 = {(name, key): spent[n] for name, spent in SECONDS.items() for n, key in [*_GAMMAS, (1, PSA.key)]}
TIMED = {entry.title: (entry.key, of.sgd_of(entry).key) for entry in who.TIMED}


def tables(results: Results) -> dict[str, str]:
    corpora, timed = (
        {name: CORPORA[name] for name in problems_in(results, row)} for row in ("run", "seconds")
    )
    runs = [
        (problem, entry, some)
        for problem in corpora
        for entry, some in PassRuns.known(results, problem, who.ON[problem]).items()
    ]
    corpus: Column[Ran] = Column("corpus", lambda one: CORPORA[one[0]])
    seeds: Column[Ran] = Column("seeds", lambda one: len(one[2].rows))
    named: Column[Ran] = Column("test F1 after passes", lambda one: one[1].title)
    moves: Column[Ran] = Column("deviation, last ten passes", lambda one: one[2].oscillation, ".3f")
    scores = [Column(words, partial(_score, n)) for n, words in AFTER.items()]
    heads = ("difference in F1 after passes", "corpus")
    made = {
        "finding": _finding(results),
        "scores": _scores(results),
        "test-f1": table_of(runs, named, corpus, *scores, moves, seeds),
        "passes": "\n".join(_reach(results, problem) for problem in corpora),
        "differences": pairs_table(results, PassRuns, heads, corpora, PAIRS, F1, AFTER, "+.3f"),
        "tuning": _tuning(results),
        "table1": seconds_table(results, "seconds per pass, single-threaded", timed, TIMED, TABLE_1),
        "scaling": _scaling(results),
        "setting": _setting(results) if set(who.WEIGHTS) & set(corpora) else "",
    }
    return {name: table for name, table in made.items() if table}


def _finding(results: Results) -> str:
    """The finding and its reasons; empty unless every claim was measured."""
    lines = by_claim(judged(claims.CLAIMS, results))
    if len(lines) < len({claim.text for claim in claims.CLAIMS}):
        return ""

    def f1(entry: Entry, passes: float) -> float:
        return PassRuns.means(results, CHUNKS, [entry], F1, passes)[entry]

    scores = [one for text, some in lines.items() if text.startswith("reaches its score") for one in some]
    met = [one for one in scores if one.verdict.name == HOLDS]
    own = sum(OWN in one.found.where for one in met)
    measured = [one for one in scores if one.verdict.name != NOT_MEASURED]
    values = {"met": own, "own": sum(OWN in one.found.where for one in measured)}
    values |= {"tuned": sum(HELD_OUT in one.found.where for one in met)}
    values |= {"n": sum(HELD_OUT in one.found.where for one in measured)}
    against = [*((entry, PSA) for entry in (*METHODS, who.WINDOW)), (TUNED[1.0], PSA_TUNED[1.0])]
    found = [PassRuns.pair(results, one, *pair, F1, 1.0) for one in problems_in(results) for pair in against]
    pairs = [pair.sure for pair in found if pair is not None]
    values |= {"ahead": pairs.count(1), "behind": pairs.count(-1), "pairs": len(pairs)}
    gammas = [one.verdict.name for one in lines["γ3 is better than γ1 and γ2"]]
    values |= {"held": gammas.count(HOLDS), "estimates": len(gammas)}
    _, top = of.best_f1(results, CHUNKS) or ("", math.nan)
    ratio = {"one_step": f1(who.COINCIDING, 1), "psa": f1(PSA, 1)}
    return prose(__file__, "finding", **values, **ratio, group=f1(who.GROUP, PASSES), top=top)


def _score(passes: float, one: Ran) -> str:
    """Mean and deviation of F1, and the number of runs if some had diverged."""
    n, every = len(one[2].at(F1, passes)), len(one[2].rows)
    return shown(one[2].mean(F1, passes), none="") + (f" ({n} of {every})" if 0 < n < every else "")


def _scores(results: Results) -> str:
    """The scores that the paper prints, and ours after as many passes."""
    asked = [target for target in TARGETS if target.passes < PASSES]
    named = (*METHODS, who.WINDOW, PSA, SGD, who.ASGD)
    lines: dict[str, list[Entry | None]] = {entry.title: [entry] * len(asked) for entry in named}
    lines |= {"aitken, tuned": [one.tuned for one in asked]}
    lines |= {"PSA, tuned": [PSA_TUNED.get(one.passes) for one in asked]}
    rows = [["paper", *(target.printed for target in asked)]]
    for title, entries in lines.items():
        row = [title]
        for target, entry in zip(asked, entries, strict=True):
            runs = PassRuns.of(results, target.problem, entry) if entry else None
            mean = runs.mean(target.what, target.passes) if runs else None
            bold = "**" if mean and target.met(mean[0]) else ""
            row.append(f"{bold}{mean[0]:.3f}{bold}" if mean else "")
        rows.append(row)
    tops = [shown(of.last_of_lbfgs(results, one.problem, one.what), ".3f", none="") for one in asked]
    headings = [f"{CORPORA[one.problem]}, {one.words} (Figure {one.figure})" for one in asked]
    rows.append([f"L-BFGS, {who.EVALUATIONS} passes", *tops])
    return markdown(["", *headings], rows) if results.where(row="run") else ""


#: Entries whose passes are counted.
_REACH = (*METHODS, who.WINDOW, TUNED[1.0], TUNED[50.0], PSA, PSA_TUNED[1.0], *who.RIVALS[1:])


def _reach(results: Results, problem: str) -> str:
    """Passes to F1 and to distances from the optimum, and the relative gap at the end."""
    asked, best = list(claims.goals(results, problem)), of.optimum_of(results, problem) or math.nan
    rows = []
    for entry, runs in PassRuns.known(results, problem, _REACH).items():
        last = runs.mean(OBJECTIVE, PASSES)
        gap = shown(last and last[0] / best - 1.0, ".1%", none="")
        rows.append(
            [entry.title, *(runs.reach(what, goal) for what, goal, _ in asked), gap, str(len(runs.rows))]
        )
    headings = [*(f"to {words}".removesuffix(".0") for *_, words in asked), f"gap after {PASSES} passes"]
    return markdown([f"passes on {CORPORA[problem]}", *headings, "seeds"], rows)


def _tuning(results: Results) -> str:
    """F1 on the held-out sequences of every setting; the choice is bold."""
    rows = []
    for problem in problems_in(results):
        for entry, tuning in who.TUNINGS.items():
            best = of.chosen(results, problem, entry)
            for row in of.trials(results, problem, entry):
                bold = "**" if row["setting"] == best else ""
                score = f"{bold}{row['held_out_f1']:.2f}{bold}"
                rows.append([row["setting"], CORPORA[problem], f"{tuning.horizon:g}", score])
    headings = ["setting", "corpus", "passes", "F1 on held-out training sequences"]
    return markdown(headings, rows) if rows else ""


def _scaling(results: Results) -> str:
    """Passes of iterative scaling to the gap, and the speed-up over the plain map to where that ends."""
    rows = []
    for problem, name in of.maps_in(results):
        ratios = of.accelerations(results, problem, name)
        for entry, row in of.scaling_rows(results, problem, name).items():
            fewer = shown(ratios.get(entry), ".1f", none="")
            rows.append([entry.title, of.passes_to_gap(row), fewer])
    headings = ["iterative scaling", f"passes to a gap of {GAP:.0%}", "speed-up to plain's last gap"]
    return markdown(headings, rows) if rows else ""


def _setting(results: Results) -> str:
    """The paper's setting and ours."""
    tunings = [[who.TUNINGS[entry] for entry in some.values()] for some in (TUNED, PSA_TUNED)]
    tried, of_psa = (
        ", ".join(f"{len(one.settings)} for {one.horizon:g}" for one in some) for some in tunings
    )
    constants = " ".join(f"`{name}={x}`" for name, x in claims.CONSTANTS.items())
    values = {"tried": tried, "of_psa": of_psa, "share": SHARE, "l2": problem_of(who.CHUNKS).l2}
    machines = {"machine": results.machine, "their_machine": claims.THEIR_MACHINE}
    return prose(__file__, "setting", who=who, constants=constants, **values, **machines)


LABELS = {F1: "test F1", TRAIN_F1: "training F1", ERROR: "wrong tokens, %", OBJECTIVE: "relative gap"}
#: Passes from which a panel shows the scores.
FROM = 0.09


@dataclass(frozen=True)
class Figure:
    """A measure against passes, a panel for each corpus; `span`: how far it goes from the best value."""

    name: str
    title: str
    measure: str
    problems: tuple[str, ...]
    entries: tuple[Entry, ...]
    span: float = 5.0
    labels: tuple[str, ...] = ()

    def panel(self, results: Results, problem: str) -> Panel:
        """All of a corpus; the objective as relative gap."""
        found = PassRuns.known(results, problem, self.entries)
        curves = {
            e: [(x, y) for x, y in runs.curve(self.measure) if x <= PASSES] for e, runs in found.items()
        }
        method = {**dict.fromkeys(who.TUNED.values(), "aitken:tuned"), who.LBFGS: "lbfgs"}
        if self.measure == OBJECTIVE:
            best = of.optimum_of(results, problem) or math.nan
            curves = {e: [(x, y / best - 1.0) for x, y in points] for e, points in curves.items()}
        names = dict(zip(self.entries, self.labels, strict=False))
        lines = [
            Line(names.get(e, e.title), points, method.get(e, e.text))
            for e, points in curves.items()
            if points
        ]
        log = "xy" if self.measure == OBJECTIVE else "x"
        return Panel(AXES["passes"], f"{CORPORA[problem]}: {LABELS[self.measure]}", lines, log)

    def targets(self, problem: str) -> list[Target]:
        """The paper's own numbers that belong into it."""
        here = [one for one in TARGETS if one.problem == problem]
        return [one for one in here if self.name.startswith(f"figure{one.figure}")]


_BOTH, _ALL = (CHUNKS, NAMES), (who.GROUP, who.WINDOW, who.TUNED[1.0], *who.RIVALS)
_SIZES = tuple(f"mini-batch {size}" for size in who.BATCH_SIZES)
FIGURES = (
    Figure("figure1", "Figure 1: F1 on the training set", TRAIN_F1, _BOTH, _ALL, 11.0),
    Figure("figure2", "Figure 2: the objective", OBJECTIVE, _BOTH, _ALL),
    Figure("figure3", "Figure 3: F1 on the test set", F1, _BOTH, _ALL),
    Figure("figure4", "Figure 4: wrong tokens on the test set", ERROR, (CHUNKS,), _ALL, 3.5),
    *(
        Figure(
            f"figure{number}{end}", f"Figure {number}: {title}, {name}", F1, (CHUNKS,), entries, span, labels
        )
        for (scope, name), end in zip(who.SCOPES.items(), ("", "-window"), strict=True)
        for number, title, entries, span, labels in (
            (5, "mini-batch sizes", tuple(who.BATCHES[scope].values()), 8.0, _SIZES),
            (6, "the three estimates of γ", (*who.GAMMAS[scope], PSA), 5.0, ()),
        )
    ),
)


def pictures(results: Results) -> dict[str, Picture]:
    made = {}
    for figure in FIGURES:
        there = [name for name in problems_in(results) if name in (*figure.problems, who.QUICK)]
        panels = {name: figure.panel(results, name) for name in there}
        panels = {name: panel for name, panel in panels.items() if len(panel.lines) > 1}
        if panels:
            made[figure.name] = _picture(figure, panels)
    for problem in dict.fromkeys(problem for problem, _ in of.maps_in(results)):
        made["scaling"] = _scaling_picture(results, problem)
    return made


def _picture(figure: Figure, panels: dict[str, Panel]) -> Picture:
    """A panel for each corpus, with the paper's numbers."""
    words = "One run of each method from zero weights, with the first random seed."
    if figure.measure == OBJECTIVE:
        return Picture(figure.title, words, list(panels.values()))
    rows = []
    for name, panel in panels.items():
        targets = figure.targets(name)
        limits = _limits(panel.lines, targets, figure.span, figure.measure == ERROR)
        rows.append(replace(panel, x_limits=(FROM, None), y_limits=limits, marks=_printed(targets)))
    return Picture(figure.title, words, rows)


def _printed(targets: Sequence[Target]) -> list[Mark]:
    """The numbers that the paper prints; at the end there is one for some sizes and one for all."""
    early = [(target.passes, target.value) for target in targets if target.passes < PASSES]
    late = [target for target in targets if target.passes == PASSES]
    ends = zip("D^", late, strict=False)
    marks = [Mark([(PASSES, one.value)], shape, f"paper: {one.words}") for shape, one in ends]
    return [Mark(early, "D", "printed in the paper"), *marks] if early else marks


def _limits(
    lines: Sequence[Line], targets: Sequence[Target], span: float, errors: bool
) -> tuple[float, float]:
    """Limits around the best value, with the paper's numbers between them."""
    printed = [target.value for target in targets]
    values, room = [y for line in lines for _, y in line.points], 0.06 * span
    if errors:
        return min(values) - room, max([min(values) + span, *(value + room for value in printed)])
    return min([max(values) - span, *(value - room for value in printed)]), max([*values, *printed]) + room


def _scaling_picture(results: Results, problem: str) -> Picture:
    """Relative gap against passes, a panel for each map."""
    best, panels = of.optimum_of(results, problem) or math.nan, []
    for name in [name for where, name in of.maps_in(results) if where == problem]:
        plain, bound, lines = who.SCALING[name][0], who.MAPS[name][0], []
        for entry, row in of.scaling_rows(results, problem, name).items():
            if not entry.key.endswith(who.TABLE_ONLY):
                points = [(x, y / best - 1.0) for x, y in SCALING.points(row)]
                lines.append(Line(entry.title.removeprefix(f"{bound}, "), points, entry.text, entry is plain))
        panels.append(Panel(AXES["passes"], f"relative gap with {bound}", lines, "xy", [GAP]))
    words = f"On {CORPORA[problem]}, from zero weights. S: one bound for all sequences; T(x): one for each "
    words += f"bin of sequence lengths. Aitken γ1 has γ2's curve. Dashed line: a relative gap of {GAP:.0%}."
    return Picture("Iterative scaling and its accelerations", words, panels)
