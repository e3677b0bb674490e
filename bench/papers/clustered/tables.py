"""The tables: the paper's I to V, ratios to L-BFGS, names, merging, the classifier's race; and sentences."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.claims import links
from bench.corpora.reuters21578 import N_DOCUMENTS, N_WORDS, TOPICS
from bench.papers.clustered import entries as who
from bench.papers.clustered import runs as of
from bench.papers.clustered.claims import CLAIMS
from bench.papers.clustered.entries import CLUSTERED, DENSE, FACTORS, GAPS, PLAIN, ROUNDS, TITLES, policy
from bench.papers.clustered.measuring import FORMS
from bench.papers.clustered.runs import Function, functions, middle, ranked, ratio, ratios
from bench.papers.clustered.training import GOALS, PARTS
from bench.records import Entry, Results
from bench.standings import Reach
from bench.tables import markdown, prose, shown, table
from crfit.trainers import ClusteredLBFGS


def tables(results: Results) -> dict[str, str]:
    made = {name: make(results) for name, make in _TABLES.items()}
    made |= {f"loglinear-{problem}": _race(results, problem) for problem in of.race_problems(results)}
    return {name: table for name, table in made.items() if table}


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


@table(_TO_GAP, *(entry.title for entry in DENSE), *(f"{entry.title}, last gap" for entry in DENSE[-2:]))
def _dense(results: Results) -> Iterator[list[str]]:
    for one in functions(results, "dense"):
        gaps = [shown(one.median(entry, "end_gap"), ".1e") for entry in DENSE[-2:]]
        yield [one.title, *(_both(one, entry) for entry in DENSE), *gaps]


@table(_TO_GAP, "L-BFGS", *(f"{n} round{'s' * (n > 1)}" for n in ROUNDS))
def _rounds(results: Results) -> Iterator[list[str]]:
    entries = (PLAIN, *(policy(rounds=n) for n in ROUNDS))
    for one in functions(results, "policies"):
        yield [one.title, *(_both(one, entry) for entry in entries)]


_TOTALS = ("gap 1e-2", "", "gap 1e-4", "", "in passes", "gradient 0.01", "")


@table("L-BFGS / clustered, and times as fast", *_TOTALS)
def _totals(results: Results) -> Iterator[list[str]]:
    for one in functions(results, "topic"):
        cells = [one.title]
        for goal in ("gap2", "gap4", "grad"):
            plain, ours = (_cell(one.reach(entry, goal)) for entry in (PLAIN, CLUSTERED))
            cells += [f"{plain} / {ours}", _words(ratio(one, CLUSTERED, PLAIN, goal))]
            cells += [_words(ratio(one, CLUSTERED, PLAIN, goal, "passes"))] if goal == "gap4" else []
        yield cells


@table("clustered L-BFGS, seconds", *PARTS, "share of clustering", "coarse passes", "fine passes")
def _parts(results: Results) -> Iterator[list[str]]:
    for one in functions(results, "topic", "names"):
        found = [one.median(CLUSTERED, f"{part}_seconds") for part in PARTS]
        spent = [seconds for seconds in found if seconds is not None]
        if len(spent) == len(PARTS):
            passes = [shown(one.median(CLUSTERED, f"{part}_passes"), ".0f") for part in ("coarse", "fine")]
            share = f"{spent[2] / sum(spent):.0%}"
            yield [one.title, *(f"{seconds:.3f}" for seconds in spent), share, *passes]


@table(_TO_GAP, "L-BFGS", "factor", "chunks, aggregated", "chunks, not", *who.METHODS)
def _factors(results: Results) -> Iterator[list[str]]:
    """A row for each factor: chunks with and without pre-aggregation, then all clusterings where it pays."""
    for one in functions(results, "policies"):
        for n in FACTORS:
            chosen = [policy(factor=n, aggregate=on) for on in ("true", "false")]
            chosen += [policy(method, n) for method in who.METHODS]
            yield [one.title, _both(one, PLAIN), str(n), *(_both(one, entry) for entry in chosen)]


_OTHERS = tuple(dict.fromkeys([*who.FIELD[1:], *who.NAMES_FIELD[1:]]))


@table("times as fast as L-BFGS: seconds (passes)", "gap", *(entry.title for entry in _OTHERS))
def _ratios(results: Results) -> Iterator[list[str]]:
    """How many times as fast as plain L-BFGS everybody is, in seconds and in passes."""
    for one in functions(results, "topic", "names"):
        for goal in ("gap2", "gap4"):
            cells = []
            for entry in _OTHERS:
                seconds, passes = (ratio(one, entry, PLAIN, goal, unit) for unit in ("seconds", "passes"))
                words = "neither reached" if seconds is None else f"{seconds} ({_words(passes)})"
                cells.append(words if one.runs(entry) else "")
            yield [one.title, f"{GOALS[goal]:g}", *cells]


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
    return markdown(headings, rows.values()) if rows else ""


@table("", "to gap 1e-4", "passes", "times as fast as L-BFGS", "in passes", "test F1")
def _names(results: Results) -> Iterator[list[str]]:
    for one in functions(results, "names"):
        for entry in who.NAMES_FIELD:
            cells = [_cell(one.reach(entry, unit=unit), unit) for unit in ("seconds", "passes")]
            cells += [_words(ratio(one, entry, PLAIN, unit=unit)) for unit in ("seconds", "passes")]
            score = shown(one.median(entry, "end_f1"), ".2f")
            yield [f"{TITLES[one.problem]}: {entry.title}", *cells, score]


@table("test F1 at the end", PLAIN.title, CLUSTERED.title, "more", "ran out of seconds")
def _accuracy(results: Results) -> Iterator[list[str]]:
    """F1 of plain and clustered L-BFGS at the end, and who did not reach the goal."""
    for one in functions(results, "topic"):
        pair = one.both("end_f1", *who.SWEEP)
        if pair:
            late = ", ".join(entry.title for entry in who.SWEEP if one.ended(entry))
            yield [one.title, f"{pair[0]:.2f}", f"{pair[1]:.2f}", f"{pair[1] - pair[0]:+.3f}", late]


@table("test F1 at the end", PLAIN.title, CLUSTERED.title)
def _types(results: Results) -> Iterator[list[str]]:
    """F1 by type at the end, of plain and clustered L-BFGS."""
    for one in functions(results, "names"):
        pairs = {name: one.both(name, *who.SWEEP) for name in one.columns("end_f1_")}
        yield from ([name[7:], *(f"{f1:.2f}" for f1 in pair)] for name, pair in pairs.items() if pair)


_MEASURED = ("attributes", "weights", "different positions", "gradient", "L-BFGS iteration")
_TRAINED = ("default trainer to 1e-4", "passes", "search for equal ones", "making the data")


@table("", *_MEASURED, *_TRAINED)
def _saving(results: Results) -> Iterator[list[str]]:
    for row in results.where(row="saving"):
        cells = [f"{row['n_attributes']:,}", f"{row['n_weights']:,}"]
        cells.append(f"{row['n_distinct']:,} of {row['n_positions']:,}")
        cells += [f"{row['gradient_seconds']:.3f} s", f"{row['iteration_seconds']:.3f} s"]
        cells += [f"{row['training_seconds']:.2f} s", f"{row['training_passes']:.0f}"]
        spent = [f"{row[f'{name}_seconds']:.2f} s" for name in ("search", "making")]
        title = f"{TITLES[row['problem']]}, {row['form']}"
        yield [title, *cells, *(["", ""] if row["form"] == FORMS[0] else spent)]


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


@table("in the paper", "shows", "it says", "here", "rebuilt")
def _figures(results: Results) -> Iterator[list[str]]:
    """The paper's figures and tables: what its text says of them, and what comes out here."""
    lines = [(claim.text, found) for claim in CLAIMS for found in claim.measured(results)]
    for name, shows, printed, begins, part, stored in who.FIGURES if lines else ():
        about = [one for text, one in lines if text.startswith(begins) and part in one.where]
        here = "; ".join(f"{one.where}: {one.here.partition(';')[0]}" for one in about)
        yield [name, shows, printed, here, links(stored.split())]


def _race(results: Results, problem: str) -> str:
    """Seconds of everybody to each gap."""
    gaps = [f"to gap {gap:.0e}".replace("e-0", "e-") for gap in GAPS]
    headings = [who.RACES[problem][0], "threads", *gaps, f"times ours, {gaps[-1]}", "lowest gap", "accuracy"]
    everybody, ends, rows = ranked(results, problem), of.end_gaps(results, problem), []
    for standing in everybody:
        if standing.trouble:
            rows.append([standing.title, "", standing.trouble, *[""] * (len(headings) - 3)])
            continue
        times, end = of.times_ours(everybody, standing), ends.get((standing.tool, standing.variant))
        cells = [standing.reach(relative_gap=gap).words(".2f", " s") for gap in GAPS]
        cells += ["" if times is None else times.words(), shown(end, ".0e", none="")]
        score = shown(standing.score("accuracy"), ".2f", none="")
        rows.append([standing.title, str(standing.threads), *cells, score])
    return markdown(headings, rows)


# --- sentences ---------------------------------------------------------------------------------------------


def _setting(results: Results) -> str:
    """The paper's setting beside ours; empty for a run on other data."""
    words = [one.facts["n_weights"] for one in functions(results, "topic", "sweep")]
    names = [one.facts["n_weights"] for one in functions(results, "names") if one.problem == who.NAMES]
    if not words or not names:
        return ""
    dense = sorted({one.ridge for one in functions(results, "dense")})
    values: dict[str, object] = {
        "words": words[0],
        "names": names[0],
        "ours": ClusteredLBFGS(),
        **N_DOCUMENTS,
    }
    values |= {"topics": ", ".join(TOPICS), "n_topics": len(TOPICS), "dense_words": N_WORDS}
    values |= {"low": who.RIDGES[0], "high": who.RIDGES[-1], "swept": ", ".join(who.SWEEP_TOPICS)}
    values |= {"rounds": ", ".join(map(str, ROUNDS)), "factors": ", ".join(map(str, FACTORS))}
    values |= {"ridges": " and ".join(f"{ridge:g}" for ridge in dense), "machine": results.machine}
    return prose(__file__, "setting", repeats=_repeats(results), **values)


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
        listed = [f"{entry.title} {middle(known):.2f}" for entry, known in medians.items() if known]
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
