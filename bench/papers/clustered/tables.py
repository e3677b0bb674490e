"""The tables: the paper's I to V, ratios to L-BFGS, names, merging, the classifier's race; and sentences."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from bench.claims import links
from bench.corpora.reuters21578 import N_DOCUMENTS, N_WORDS, TOPICS
from bench.papers.clustered import entries as who
from bench.papers.clustered.claims import CLAIMS
from bench.papers.clustered.entries import CLUSTERED, DENSE, FACTORS, GAPS, PLAIN, ROUNDS, TITLES, policy
from bench.papers.clustered.measuring import FORMS
from bench.papers.clustered.runs import (
    Function,
    end_gaps,
    functions,
    race_problems,
    ranked,
    ratio,
    ratios,
    times_ours,
)
from bench.papers.clustered.training import GOALS, PARTS
from bench.records import Entry, Results
from bench.standings import Reach
from bench.tables import markdown, shown
from crfit.trainers import ClusteredLBFGS


def tables(results: Results) -> dict[str, str]:
    made = {name: make(results) for name, make in _TABLES.items()}
    made |= {f"loglinear-{problem}": _race(results, problem) for problem in race_problems(results)}
    return {name: table for name, table in made.items() if table}


def _table(headings: Sequence[str], rows: list[list[str]]) -> str:
    return markdown(headings, rows) if rows else ""


def _cell(reach: Reach | None, unit: str = "seconds") -> str:
    form, sign = (".2f", " s") if unit == "seconds" else (".0f", "")
    return "" if reach is None else reach.words(form, sign)


def _both(one: Function, entry: Entry) -> str:
    """Seconds and passes to a gap of 1e-4 in one cell."""
    seconds, passes = (one.reach(entry, unit=unit) for unit in ("seconds", "passes"))
    return f"{_cell(seconds)} ({_cell(passes, 'passes')})" if seconds and seconds.reached else _cell(seconds)


def _words(found: object) -> str:
    return "" if found is None else str(found)


_TO_GAP = "to a gap of 1e-4: seconds (passes)"


def _dense(results: Results) -> str:
    headings = [
        _TO_GAP,
        *(entry.title for entry in DENSE),
        *(f"{entry.title}, last gap" for entry in DENSE[-2:]),
    ]
    rows = []
    for one in functions(results, "dense"):
        gaps = [shown(one.median(entry, "end_gap"), ".1e") for entry in DENSE[-2:]]
        rows.append([one.title, *(_both(one, entry) for entry in DENSE), *gaps])
    return _table(headings, rows)


def _rounds(results: Results) -> str:
    headings = [_TO_GAP, "L-BFGS", *(f"{n} round{'s' * (n > 1)}" for n in ROUNDS)]
    entries = (PLAIN, *(policy(rounds=n) for n in ROUNDS))
    found = functions(results, "policies")
    return _table(headings, [[one.title, *(_both(one, entry) for entry in entries)] for one in found])


def _totals(results: Results) -> str:
    headings = ["L-BFGS / clustered, and times as fast", "gap 1e-2", "", "gap 1e-4", "", "in passes"]
    rows = []
    for one in functions(results, "topic"):
        cells = []
        for goal in ("gap2", "gap4", "grad"):
            plain, ours = (_cell(one.reach(entry, goal)) for entry in (PLAIN, CLUSTERED))
            cells += [f"{plain} / {ours}", _words(ratio(one, CLUSTERED, PLAIN, goal))]
            cells += [_words(ratio(one, CLUSTERED, PLAIN, goal, "passes"))] if goal == "gap4" else []
        rows.append([one.title, *cells])
    return _table([*headings, "gradient 0.01", ""], rows)


def _parts(results: Results) -> str:
    headings = ["clustered L-BFGS, seconds", *PARTS, "share of clustering", "coarse passes", "fine passes"]
    rows = []
    for one in functions(results, "topic", "names"):
        found = [one.median(CLUSTERED, f"{part}_seconds") for part in PARTS]
        spent = [seconds for seconds in found if seconds is not None]
        if len(spent) == len(PARTS):
            passes = [shown(one.median(CLUSTERED, f"{part}_passes"), ".0f") for part in ("coarse", "fine")]
            share = f"{spent[2] / sum(spent):.0%}"
            rows.append([one.title, *(f"{seconds:.3f}" for seconds in spent), share, *passes])
    return _table(headings, rows)


def _factors(results: Results) -> str:
    """A row for each factor: chunks with and without pre-aggregation, then all clusterings where it pays."""
    headings = [_TO_GAP, "L-BFGS", "factor", "chunks, aggregated", "chunks, not", *who.METHODS]
    rows = []
    for one in functions(results, "policies"):
        for n in FACTORS:
            chosen = [policy(factor=n, aggregate=on) for on in ("true", "false")]
            chosen += [policy(method, n) for method in who.METHODS]
            rows.append([one.title, _both(one, PLAIN), str(n), *(_both(one, entry) for entry in chosen)])
    return _table(headings, rows)


def _ratios(results: Results) -> str:
    """How many times as fast as plain L-BFGS everybody is, in seconds and in passes."""
    others = list(dict.fromkeys([*who.FIELD[1:], *who.NAMES_FIELD[1:]]))
    headings = ["times as fast as L-BFGS: seconds (passes)", "gap", *(entry.title for entry in others)]
    rows = []
    for one in functions(results, "topic", "names"):
        for goal in ("gap2", "gap4"):
            cells = []
            for entry in others:
                seconds, passes = (ratio(one, entry, PLAIN, goal, unit) for unit in ("seconds", "passes"))
                words = "neither reached" if seconds is None else f"{seconds} ({_words(passes)})"
                cells.append(words if one.runs(entry) else "")
            rows.append([one.title, f"{GOALS[goal]:g}", *cells])
    return _table(headings, rows)


def _sweep(results: Results) -> str:
    found = functions(results, "sweep")
    columns = ["F1, clustered", "L-BFGS", "clustered", "times as fast", "gradient left"]
    headings, rows = ["ridge"], {ridge: [f"{ridge:g}"] for ridge in sorted({one.ridge for one in found})}
    for problem in dict.fromkeys(one.problem for one in found):
        headings += [f"{TITLES[problem]}: F1", *columns]
        for one in found:
            if one.problem == problem:
                rows[one.ridge] += [shown(one.median(entry, "end_f1"), ".2f") for entry in who.SWEEP]
                rows[one.ridge] += [_cell(one.reach(entry)) for entry in who.SWEEP]
                rows[one.ridge] += [_words(ratio(one, CLUSTERED, PLAIN)), shown(one.facts["grad_inf"], ".0e")]
    return _table(headings, list(rows.values()))


def _names(results: Results) -> str:
    headings = ["", "to gap 1e-4", "passes", "times as fast as L-BFGS", "in passes", "test F1"]
    rows = []
    for one in functions(results, "names"):
        for entry in who.NAMES_FIELD:
            cells = [_cell(one.reach(entry, unit=unit), unit) for unit in ("seconds", "passes")]
            cells += [_words(ratio(one, entry, PLAIN, unit=unit)) for unit in ("seconds", "passes")]
            score = shown(one.median(entry, "end_f1"), ".2f")
            rows.append([f"{TITLES[one.problem]}: {entry.title}", *cells, score])
    return _table(headings, rows)


def _accuracy(results: Results) -> str:
    """F1 of plain and clustered L-BFGS at the end, and who did not reach the goal."""
    rows = []
    for one in functions(results, "topic"):
        pair = one.both("end_f1", *who.SWEEP)
        if pair:
            late = ", ".join(entry.title for entry in who.SWEEP if one.ended(entry))
            rows.append([one.title, f"{pair[0]:.2f}", f"{pair[1]:.2f}", f"{pair[1] - pair[0]:+.3f}", late])
    return _table(["test F1 at the end", PLAIN.title, CLUSTERED.title, "more", "ran out of seconds"], rows)


def _types(results: Results) -> str:
    """F1 by type at the end, of plain and clustered L-BFGS."""
    rows = [
        [name.removeprefix("end_f1_"), *(f"{value:.2f}" for value in pair)]
        for one in functions(results, "names")
        for name in one.columns("end_f1_")
        if (pair := one.both(name, *who.SWEEP))
    ]
    return _table(["test F1 at the end", PLAIN.title, CLUSTERED.title], rows)


def _saving(results: Results) -> str:
    headings = ["", "attributes", "weights", "different positions", "gradient", "L-BFGS iteration"]
    headings += ["default trainer to 1e-4", "passes", "search for equal ones", "making the data"]
    rows = []
    for row in results.where(row="saving"):
        plain = row["form"] == FORMS[0]
        rows.append(
            [
                f"{TITLES[row['problem']]}, {row['form']}",
                *(f"{row[name]:,}" for name in ("n_attributes", "n_weights")),
                f"{row['n_distinct']:,} of {row['n_positions']:,}",
                *(f"{row[f'{name}_seconds']:.3f} s" for name in ("gradient", "iteration")),
                f"{row['training_seconds']:.2f} s",
                f"{row['training_passes']:.0f}",
                *("" if plain else f"{row[f'{name}_seconds']:.2f} s" for name in ("search", "making")),
            ]
        )
    return _table(headings, rows)


def _merging(results: Results) -> str:
    """How many attributes are left when those with the same occurrences are one."""
    rows = {row["form"]: row for row in results.where(problem=who.MERGED, row="saving")}
    if len(rows) < len(FORMS):
        return ""
    plain, merged = (rows[form] for form in FORMS)
    return (
        f"CRF++'s chunking template on {TITLES[who.MERGED]} gives {plain['n_attributes']:,} attributes, of "
        f"which {merged['n_attributes']:,} differ; with `--weights all` {merged['n_weights']:,} weights are "
        f"trained instead of {plain['n_weights']:,}.\n"
    )


def _figures(results: Results) -> str:
    """The paper's figures and tables: what its text says of them, and what comes out here."""
    lines = [(claim.text, found) for claim in CLAIMS for found in claim.measured(results)]
    rows = []
    for name, shows, printed, begins, part, stored in who.FIGURES:
        about = [one for text, one in lines if text.startswith(begins) and part in one.where]
        here = "; ".join(f"{one.where}: {one.here.partition(';')[0]}" for one in about)
        rows.append([name, shows, printed, here, links(stored.split())])
    return _table(["in the paper", "shows", "it says", "here", "rebuilt"], rows) if lines else ""


def _race(results: Results, problem: str) -> str:
    """Seconds of everybody to each gap."""
    gaps = [f"to gap {gap:.0e}".replace("e-0", "e-") for gap in GAPS]
    headings = [who.RACES[problem][0], "threads", *gaps, f"times ours, {gaps[-1]}", "lowest gap", "accuracy"]
    everybody, ends, rows = ranked(results, problem), end_gaps(results, problem), []
    for standing in everybody:
        if standing.trouble:
            rows.append([standing.title, "", standing.trouble, *[""] * (len(headings) - 3)])
            continue
        times, end = times_ours(everybody, standing), ends.get((standing.tool, standing.variant))
        cells = [standing.reach(relative_gap=gap).words(".2f", " s") for gap in GAPS]
        cells += ["" if times is None else times.words(), shown(end, ".0e", none="")]
        score = shown(standing.score("accuracy"), ".2f", none="")
        rows.append([standing.title, str(standing.threads), *cells, score])
    return markdown(headings, rows)


# --- sentences ---------------------------------------------------------------------------------------------


def _setting(results: Results) -> str:
    """The paper's setting beside ours; empty for a run on other data."""
    words = {one.facts["n_weights"] for one in functions(results, "topic", "sweep")}
    names = {one.facts["n_weights"] for one in functions(results, "names") if one.problem == who.NAMES}
    if not words or not names:
        return ""
    ours, (train, test) = ClusteredLBFGS(), N_DOCUMENTS.values()
    dense = sorted({one.ridge for one in functions(results, "dense")})
    here = (
        f"ModApte: {train:,} for training, {test:,} for testing",
        _listed(words, ","),
        f"{len(TOPICS)}: {', '.join(TOPICS)}; no intercept",
        f"{N_WORDS} for each topic",
        f"{who.RIDGES[0]:g} to {who.RIDGES[-1]:g} by tens",
        ", ".join(who.SWEEP_TOPICS),
        " and ".join(f"{ridge:g}" for ridge in dense),
        "our reconstruction",
        f"CoNLL-2003, English; {_listed(names, ',')} weights",
        "the same",
        f"{ours.rounds} rounds of {ours.fine_iterations} fine steps; see `crfit trainers`",
        f"{_listed(ROUNDS)} rounds; clusters of {_listed(FACTORS)}",
        f"{ours.memory}; `{who.FIVE.text}` beside",
        f"the same: {ours.coarse_tolerance:g} over {ours.coarse_window}",
        "crfit, the same L-BFGS inside and beside; SciPy's L-BFGS-B",
        _repeats(results),
        results.machine,
    )
    rows = [[*theirs, one] for theirs, one in zip(who.SETTING.items(), here, strict=True)]
    return markdown(["", "the paper", "here"], rows)


def _listed(numbers: Iterable[int], form: str = "") -> str:
    return ", ".join(f"{n:{form}}" for n in sorted(numbers))


def _repeats(results: Results) -> str:
    """How many runs of each there are on which functions; the median counts."""
    kinds = {"sweep": "the sweep", "policies": "Tables II and V", "dense": "few words", "names": "names"}
    found: dict[int, list[str]] = {}
    for one in functions(results, "topic", *kinds):
        n = len(one.runs(who.BFGS if one.what == "dense" else PLAIN))
        found.setdefault(n, []).append(kinds.get(one.what, f"topics at {one.ridge:g}"))
    each = [f"{n}: {', '.join(dict.fromkeys(some))}" for n, some in sorted(found.items(), reverse=True)]
    return f"{'; '.join(each)}; medians count"


def _verdict(results: Results) -> str:
    """Whether it is faster than plain L-BFGS, and what is."""
    topics, sweep, names = (functions(results, what) for what in ("topic", "sweep", "names"))
    # A function of the sweep that is among the topics has more runs there.
    seen = {(one.problem, one.ridge) for one in topics}
    others = [one for one in sweep if (one.problem, one.ridge) not in seen]
    kinds = {"topics": topics, "topics at other ridges": others, "names": names}
    found = {kind: [one.value for one in ratios(some, CLUSTERED, PLAIN)] for kind, some in kinds.items()}
    counts = {kind: (sum(x > 1.0 for x in some), len(some)) for kind, some in found.items() if some}
    if not counts:
        return ""
    faster, counted = (sum(numbers) for numbers in zip(*counts.values(), strict=True))
    told = [
        f"{kind} {n} of {most} (median {statistics.median(found[kind]):.2f} times as fast)"
        for kind, (n, most) in counts.items()
    ]
    words = f"**Clustered L-BFGS is faster than plain L-BFGS on {faster} of {counted} functions.** The paper "
    words += f"puts it at {who.SPEED[0]:g} to {who.SPEED[1]:g} times as fast for classifiers and at "
    words += f"{who.NAMES_SPEED:g} for names. Faster here, in seconds to a gap of 1e-4: {'; '.join(told)}."
    for kind in ("topics", "names"):
        some = [one for one in kinds[kind] if one.ridge == who.RIDGE]
        medians = {entry: ratios(some, entry, PLAIN) for entry in (who.FIFTY, who.DIAGONAL, who.NEWTON)}
        listed = [
            f"{entry.title} {statistics.median(one.value for one in found):.2f}"
            for entry, found in medians.items()
            if found
        ]
        if listed:
            words += f" Others on {kind} at a ridge of {who.RIDGE:g}, times as fast as plain L-BFGS: "
            words += f"{', '.join(listed)}."
    return f"{words}\n"


_TABLES = {
    "table1": _dense,
    "table2": _rounds,
    "table3": _totals,
    "table4": _parts,
    "table5": _factors,
    "ratios": _ratios,
    "sweep": _sweep,
    "accuracy": _accuracy,
    "names": _names,
    "names-types": _types,
    "saving": _saving,
    "merging": _merging,
    "figures": _figures,
    "setting": _setting,
    "verdict": _verdict,
}
