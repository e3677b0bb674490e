"""The tables of the group."""

from __future__ import annotations

import math

from bench.figures.aitken.choices import tuning_table
from bench.figures.aitken.entries import (
    ASGD,
    CORPORA,
    EVALUATIONS,
    GAMMAS,
    LBFGS,
    PSA,
    PSA_TUNED,
    READINGS,
    SCOPES,
    SGD,
    SGD_STEPS,
    TIMED,
    WEIGHTS,
    Entry,
    entries_on,
)
from bench.figures.aitken.findings import findings
from bench.figures.aitken.iterating import GAP
from bench.figures.aitken.maps import SCALING
from bench.figures.aitken.papers import SECONDS, TARGETS, THEIR_MACHINE, tuned_for
from bench.figures.aitken.pass_findings import GOALS, passes_words
from bench.figures.aitken.readings import has
from bench.figures.aitken.rules import rules_table
from bench.figures.aitken.scaling import accelerations, maps_in, passes_to_gap, row_of
from bench.figures.aitken.scores import (
    F1,
    OBJECTIVE,
    TRAIN_F1,
    Runs,
    compared,
    gap_of,
    optimum_of,
    problems_in,
    runs_of,
)
from bench.figures.aitken.seconds import against, seconds, sgd_of, timed_in
from bench.figures.aitken.setting_words import setting_table
from bench.figures.aitken.telling import paragraph
from bench.figures.base import Results, markdown, shown
from bench.verdicts import verdict_tables

__all__ = ["AFTER", "tables"]

#: Passes after which trainers are compared, those of the paper.
AFTER = (0.1, 0.35, 1, 4, 50)


def tables(results: Results) -> dict[str, str]:
    made = {
        "targets": _targets(results),
        "f1": _f1(results),
        "gaps": _gaps(results),
        "reach": _reach(results),
        "differences": _differences(results),
        "tuning": tuning_table(results),
        "table1": _table1(results),
        "seconds": _seconds(results),
        "scaling": _scaling(results),
        "setting": setting_table(results),
        "verdict": paragraph(results),
    }
    lines = findings(results)
    if lines:
        made |= {
            **verdict_tables(lines),
            "rules": rules_table(),
        }
    return {name: table for name, table in made.items() if table}


def _run(results: Results) -> list[tuple[str, Entry, Runs]]:
    found = [
        (problem, entry, runs_of(results, problem, entry))
        for problem in problems_in(results)
        for entry in entries_on(problem)
    ]
    return [(problem, entry, runs) for problem, entry, runs in found if runs is not None]


def _spread(value: tuple[float, float] | None, form: str = ".2f") -> str:
    """Mean and deviation."""
    if value is None:
        return ""
    mean, deviation = value
    return f"{mean:{form}}" if math.isnan(deviation) else f"{mean:{form}} ± {deviation:{form}}"


def _fewer(runs: Runs, what: str, passes: float) -> str:
    """How many of the runs went so far, where not all did."""
    n = len(runs.at(what, passes))
    return f" ({n} of {len(runs.rows)})" if 0 < n < len(runs.rows) else ""


def _targets(results: Results) -> str:
    """What the paper prints of its figures beside ours: its constants, chosen ones, and rivals."""
    titles = ["", "the paper", *(entry.title for entry in READINGS), "aitken, tuned", "PSA"]
    headings = [*titles, "PSA, tuned", "SGD", "averaged SGD", f"L-BFGS, {EVALUATIONS} passes"]
    rows = []
    for target in TARGETS:
        problem = target.problem
        if problem not in problems_in(results):
            continue
        cells = []
        for entry in (*READINGS, tuned_for(target), PSA, PSA_TUNED.get(target.passes), SGD, ASGD):
            runs = None if entry is None else runs_of(results, problem, entry)
            value = None if entry is None else has(results, target, entry)
            words = "" if value is None else f"{value:.3f}"
            words = f"**{words}**" if value is not None and target.met(value) else words
            fewer = value is not None and target.what != TRAIN_F1
            cells.append(words + (_fewer(runs, target.what, target.passes) if fewer and runs else ""))
        optimum = runs_of(results, problem, LBFGS)
        last = [] if optimum is None else optimum.curve(target.what)
        cells.append(f"{last[-1][1]:.3f}" if last else "")
        rows.append([f"{target.figure}, {CORPORA[problem]}: {target.words}", target.printed, *cells])
    return markdown(headings, rows) if rows else ""


def _f1(results: Results) -> str:
    """Mean and deviation over seeds, and how much F1 moves in the last ten passes."""
    headings = ["test F1 after passes", "corpus", *map(str, AFTER), "last ten passes", "seeds"]
    rows = []
    for problem, entry, runs in _run(results):
        cells = [_spread(runs.mean(F1, passes)) + _fewer(runs, F1, passes) for passes in AFTER]
        moves = f"± {runs.oscillation:.3f}" if entry.online and runs.oscillation is not None else ""
        rows.append([entry.title, CORPORA[problem], *cells, moves, str(len(runs.rows))])
    return markdown(headings, rows)


def _gaps(results: Results) -> str:
    """Mean distance of the objective from the optimum."""
    headings = ["F − F* after passes", "corpus", *map(str, AFTER), "seeds"]
    rows = []
    for problem, entry, runs in _run(results):
        best = optimum_of(results, problem)
        means = [runs.mean(OBJECTIVE, passes) for passes in AFTER]
        cells = ["" if mean is None or best is None else f"{mean[0] - best:,.0f}" for mean in means]
        rows.append([entry.title, CORPORA[problem], *cells, str(len(runs.rows))])
    return markdown(headings, rows)


def _reach(results: Results) -> str:
    """Median passes to scores and gaps, for each corpus."""
    made = []
    for problem in problems_in(results):
        scores, gaps = GOALS[problem]
        goals = [(F1, goal, f"to F1 {goal:g}") for goal in scores]
        for gap in gaps:
            value = gap_of(results, problem, gap)
            goals += [] if value is None else [(OBJECTIVE, value, f"to F − F* ≤ {gap:,g}")]
        rows = []
        for name, entry, runs in _run(results):
            if name == problem:
                cells = [passes_words(runs.reach(what, goal), runs.last) for what, goal, _ in goals]
                rows.append([entry.title, *cells, str(len(runs.rows))])
        headings = [f"passes on {CORPORA[problem]}", *(words for _, _, words in goals), "seeds"]
        made.append(markdown(headings, rows))
    return "\n".join(made)


def _differences(results: Results) -> str:
    """F1 of gamma 3 less that of the other estimates, PSA and SGD, paired over seeds."""
    headings = ["more F1 after passes", "corpus", *map(str, AFTER), "seeds"]
    rows = []
    for problem in problems_in(results):
        for scope in SCOPES:
            one, two, three = GAMMAS[scope]
            for base in (one, two, PSA, SGD):
                first, second = (runs_of(results, problem, entry) for entry in (three, base))
                if first is None or second is None:
                    continue
                found = [compared(first, second, F1, passes) for passes in AFTER]
                cells = ["" if each is None else each.words("+.3f") for each in found]
                n = len(first.rows.keys() & second.rows.keys())
                rows.append([f"{three.title} against {base.title}", CORPORA[problem], *cells, str(n)])
    return markdown(headings, rows) if rows else ""


def _table1(results: Results) -> str:
    """The paper's Table 1: seconds of a pass with each estimate, the second being PSA's there."""
    headings = ["seconds of a pass", "weights", "γ1", "γ2", "γ3", "PSA", "SGD, batch 5", "γ3 / SGD"]
    rows = []
    for problem in timed_in(results):
        weights = f"{WEIGHTS[problem]:,}" if problem in WEIGHTS else ""
        if problem in SECONDS:
            theirs = SECONDS[problem]
            cells = [f"{spent:,.1f} s" for spent in theirs]
            rows.append(
                [
                    f"{CORPORA[problem]}, the paper on {THEIR_MACHINE}",
                    weights,
                    *cells,
                    f"{theirs[1]:,.1f} s",
                    "",
                    "",
                ]
            )
        for scope in SCOPES:
            times = [seconds(results, problem, entry) for entry in (*GAMMAS[scope], PSA, SGD_STEPS)]
            cells = [shown(spent, ".3f", " s") for spent in times]
            ratio = shown(against(results, problem, GAMMAS[scope][2]), ".2f")
            rows.append([f"{CORPORA[problem]}, {scope}", weights, *cells, ratio])
    return markdown(headings, rows) if rows else ""


def _seconds(results: Results) -> str:
    """Of a pass, for every trainer."""
    problems = timed_in(results)
    headings = ["a pass on one thread"]
    for problem in problems:
        headings += [CORPORA[problem], "times SGD with such steps"]
    rows = []
    for entry in TIMED:
        cells = [entry.title]
        for problem in problems:
            cells.append(shown(seconds(results, problem, entry), ".3f", " s"))
            cells.append("" if sgd_of(entry) is entry else shown(against(results, problem, entry), ".2f"))
        rows.append(cells)
    return markdown(headings, rows) if problems else ""


def _scaling(results: Results) -> str:
    """Passes of iterative scaling to the gap, and how many times fewer to where the map alone ends."""
    headings = [
        "iterative scaling",
        "data",
        f"passes to a gap of {GAP:.0%}",
        "times fewer to plain's last gap",
    ]
    rows = []
    for problem, name in maps_in(results):
        ratios = {entry.key: ratio for entry, ratio in accelerations(results, problem, name)}
        for entry in SCALING:
            row = row_of(results, problem, entry)
            if entry.map == name and row is not None:
                told = f"{ratios[entry.key]:.1f}" if entry.key in ratios else ""
                rows.append([entry.title, CORPORA[problem], passes_to_gap(row), told])
    return markdown(headings, rows) if rows else ""
