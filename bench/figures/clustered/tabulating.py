"""The tables of the group: the paper's I to V, ratios to L-BFGS, names, merging, the classifier's race."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures.base import Results, markdown, shown
from bench.figures.clustered.entries import (
    CLUSTERED,
    DENSE,
    FACTORS,
    FIELD,
    METHODS,
    NAMES_FIELD,
    PLAIN,
    ROUNDS,
    SWEEP,
    TITLES,
    Entry,
    Policy,
)
from bench.figures.clustered.findings import findings
from bench.figures.clustered.papers import FIGURES
from bench.figures.clustered.parts import PARTS
from bench.figures.clustered.race_reading import race_tables
from bench.figures.clustered.reading import Function, functions, ratio
from bench.figures.clustered.rules import rules_table
from bench.figures.clustered.running import GOALS
from bench.figures.clustered.saving import FORMS, SAVING
from bench.figures.clustered.scoring import F1
from bench.figures.clustered.telling import answer, merging_words, setting_table
from bench.standings import Reach
from bench.verdicts import Finding, verdict_tables

__all__ = ["tables"]


def tables(results: Results) -> dict[str, str]:
    made = {
        "table1": _dense(results),
        "table2": _rounds(results),
        "table3": _totals(results),
        "table4": _parts(results),
        "table5": _factors(results),
        "ratios": _ratios(results),
        "sweep": _sweep(results),
        "accuracy": _accuracy(results),
        "names": _names(results),
        "names-types": _types(results),
        "saving": _saving(results),
        "merging": merging_words(results),
        "setting": setting_table(results),
        "verdict": answer(results),
        **race_tables(results),
    }
    lines = findings(results)
    if lines:
        made |= {
            **verdict_tables(lines),
            "figures": _figures(lines),
            "rules": rules_table(),
        }
    return {name: table for name, table in made.items() if table}


def _title(one: Function) -> str:
    return f"{TITLES[one.problem]}, ridge {one.ridge:g}"


def _table(headings: Sequence[str], rows: list[list[str]]) -> str:
    return markdown(headings, rows) if rows else ""


def _cell(reach: Reach | None, unit: str = "seconds") -> str:
    form, sign = (".2f", " s") if unit == "seconds" else (".0f", "")
    return "" if reach is None else reach.words(form, sign)


def _both(one: Function, entry: Entry, goal: str = "gap4") -> str:
    """Seconds and passes in one cell."""
    seconds, passes = (one.reach(entry, goal, unit) for unit in ("seconds", "passes"))
    if seconds is None:
        return ""
    if not seconds.reached:
        return _cell(seconds)
    return f"{_cell(seconds)} ({_cell(passes, 'passes')})"


def _dense(results: Results) -> str:
    headings = ["to a gap of 1e-4: seconds (passes)", *(entry.title for entry in DENSE)]
    headings += [f"{entry.title}, last gap" for entry in DENSE[-2:]]
    rows = []
    for one in functions(results, "dense"):
        gaps = [one.median(entry, "end_gap") for entry in DENSE[-2:]]
        rows.append(
            [_title(one), *(_both(one, entry) for entry in DENSE), *(shown(gap, ".1e") for gap in gaps)]
        )
    return _table(headings, rows)


def _rounds(results: Results) -> str:
    headings = ["to a gap of 1e-4: seconds (passes)", "L-BFGS", *(f"{n} rounds" for n in ROUNDS)]
    headings[2] = "1 round"
    rows = [
        [_title(one), _both(one, PLAIN), *(_both(one, Policy(rounds=n).entry) for n in ROUNDS)]
        for one in functions(results, "policies")
    ]
    return _table(headings, rows)


def _totals(results: Results) -> str:
    headings = ["L-BFGS / clustered, and times as fast", "gap 1e-2", "", "gap 1e-4", "", "in passes"]
    headings += ["gradient 0.01", ""]
    rows = []
    for one in functions(results, "topic"):
        cells = []
        for goal in ("gap2", "gap4", "grad"):
            ours, plain = (one.reach(entry, goal) for entry in (CLUSTERED, PLAIN))
            cells += [f"{_cell(plain)} / {_cell(ours)}", _words(ratio(ours, plain))]
            if goal == "gap4":
                cells.append(_words(ratio(*(one.reach(e, goal, "passes") for e in (CLUSTERED, PLAIN)))))
        rows.append([_title(one), *cells])
    return _table(headings, rows)


def _words(found: object) -> str:
    return "" if found is None else str(found)


def _parts(results: Results) -> str:
    headings = ["clustered L-BFGS, seconds", *PARTS, "share of clustering", "coarse passes", "fine passes"]
    rows = []
    for one in [*functions(results, "topic"), *functions(results, "names")]:
        spent = [one.median(CLUSTERED, f"{part}_seconds") for part in PARTS]
        known = [seconds for seconds in spent if seconds is not None]
        if len(known) < len(PARTS):
            continue
        rows.append(
            [
                _title(one),
                *(f"{seconds:.3f}" for seconds in known),
                f"{known[2] / sum(known):.0%}",
                *(shown(one.median(CLUSTERED, f"{part}_passes"), ".0f") for part in ("coarse", "fine")),
            ]
        )
    return _table(headings, rows)


def _factors(results: Results) -> str:
    """A row for each factor: chunks with and without pre-aggregation, then all clusterings where it pays."""
    headings = ["to a gap of 1e-4: seconds (passes)", "L-BFGS", "factor"]
    headings += ["chunks, aggregated", "chunks, not", *METHODS]
    rows = []
    for one in functions(results, "policies"):
        for factor in FACTORS:
            chosen = [Policy(factor=factor, aggregate=on) for on in ("true", "false")]
            chosen += [Policy(method, factor) for method in METHODS]
            cells = [_both(one, policy.entry) for policy in chosen]
            rows.append([_title(one), _both(one, PLAIN), str(factor), *cells])
    return _table(headings, rows)


def _ratios(results: Results) -> str:
    """How many times as fast as plain L-BFGS everybody is, in seconds and in passes."""
    others = list(dict.fromkeys([*FIELD[1:], *NAMES_FIELD[1:]]))
    headings = ["times as fast as L-BFGS: seconds (passes)", "gap", *(entry.title for entry in others)]
    rows = []
    for one in [*functions(results, "topic"), *functions(results, "names")]:
        for goal in ("gap2", "gap4"):
            cells = [_ratio_cell(one, entry, goal) for entry in others]
            rows.append([_title(one), f"{GOALS[goal]:g}", *cells])
    return _table(headings, rows)


def _ratio_cell(one: Function, entry: Entry, goal: str) -> str:
    seconds, passes = (
        ratio(one.reach(entry, goal, unit), one.reach(PLAIN, goal, unit)) for unit in ("seconds", "passes")
    )
    if not one.runs(entry):
        return ""
    return "neither reached" if seconds is None else f"{seconds} ({_words(passes)})"


def _sweep(results: Results) -> str:
    headings = ["ridge"]
    found = functions(results, "sweep")
    problems = list(dict.fromkeys(one.problem for one in found))
    for problem in problems:
        name = TITLES[problem]
        headings += [f"{name}: F1", "F1, clustered", "L-BFGS", "clustered", "times as fast", "gradient left"]
    rows = []
    for ridge in sorted({one.ridge for one in found}):
        row = [f"{ridge:g}"]
        for problem in problems:
            (one,) = [f for f in found if (f.problem, f.ridge) == (problem, ridge)]
            reaches = [one.reach(entry) for entry in SWEEP]
            row += [
                *(shown(one.median(entry, f"end_{F1}"), ".2f") for entry in SWEEP),
                *(_cell(reach) for reach in reaches),
                _words(ratio(reaches[1], reaches[0])),
                shown(one.facts["grad_inf"], ".0e"),
            ]
        rows.append(row)
    return _table(headings, rows)


def _names(results: Results) -> str:
    headings = [
        "",
        "to gap 1e-4",
        "passes",
        "times as fast as L-BFGS",
        "in passes",
        "test F1",
    ]
    rows = []
    for one in functions(results, "names"):
        for entry in NAMES_FIELD:
            reaches = {
                unit: (one.reach(entry, unit=unit), one.reach(PLAIN, unit=unit))
                for unit in ("seconds", "passes")
            }
            rows.append(
                [
                    f"{TITLES[one.problem]}: {entry.title}",
                    _cell(reaches["seconds"][0]),
                    _cell(reaches["passes"][0], "passes"),
                    *(_words(ratio(*pair)) for pair in reaches.values()),
                    shown(one.median(entry, f"end_{F1}"), ".2f"),
                ]
            )
    return _table(headings, rows)


def _accuracy(results: Results) -> str:
    """F1 of plain and clustered L-BFGS at the end, and who did not come there."""
    rows = []
    for one in functions(results, "topic"):
        plain, ours = (one.median(entry, f"end_{F1}") for entry in SWEEP)
        if plain is not None and ours is not None:
            late = [entry.title for entry in SWEEP if one.ended(entry)]
            cells = [f"{plain:.2f}", f"{ours:.2f}", f"{ours - plain:+.3f}", ", ".join(late)]
            rows.append([_title(one), *cells])
    return _table(["test F1 at the end", PLAIN.title, CLUSTERED.title, "more", "ran out of seconds"], rows)


def _types(results: Results) -> str:
    """F1 by type at the end, of plain and clustered L-BFGS."""
    rows = []
    for one in functions(results, "names"):
        prefix = f"end_{F1}_"
        types = sorted({name for row in one.rows for name in row if name.startswith(prefix)})
        for name in types:
            pair = [one.median(entry, name) for entry in (PLAIN, CLUSTERED)]
            if None not in pair:
                rows.append([name.removeprefix(prefix), *(shown(value, ".2f") for value in pair)])
    return _table(["test F1 at the end", PLAIN.title, CLUSTERED.title], rows)


def _saving(results: Results) -> str:
    headings = [
        "",
        "attributes",
        "weights",
        "different positions",
        "gradient",
        "L-BFGS iteration",
        "default trainer to 1e-4",
    ]
    headings += ["passes", "search for equal ones", "making the data"]
    rows = []
    for row in results.where(row=SAVING):
        rows.append(
            [
                f"{TITLES[row['problem']]}, {row['form']}",
                *(f"{row[name]:,}" for name in ("n_attributes", "n_weights")),
                f"{row['n_distinct']:,} of {row['n_positions']:,}",
                *(f"{row[f'{name}_seconds']:.3f} s" for name in ("gradient", "iteration")),
                f"{row['training_seconds']:.2f} s",
                f"{row['training_passes']:.0f}",
                *(
                    "" if row["form"] == FORMS[0] else f"{row[f'{n}_seconds']:.2f} s"
                    for n in ("search", "making")
                ),
            ]
        )
    return _table(headings, rows)


def _figures(lines: Sequence[Finding]) -> str:
    """The paper's figures and tables: what its text says of them, and what comes out here."""
    rows = []
    for figure in FIGURES:
        claim, part = figure.about
        about = [line for line in lines if line.claim.startswith(claim) and part in line.where]
        here = "; ".join(f"{line.where}: {line.here.partition(';')[0]}" for line in about)
        links = ", ".join(f"[{name.rpartition('.')[0]}]({name})" for name in figure.stored)
        rows.append([figure.name, figure.shows, figure.printed, here, links])
    return _table(["in the paper", "shows", "it says", "here", "rebuilt"], rows)
