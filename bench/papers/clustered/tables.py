"""The tables: the paper's I to V, ratios to L-BFGS, names, merging, the classifier's race; and sentences."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

from bench.corpora.reuters21578 import N_DOCUMENTS
from bench.papers.clustered import entries as who
from bench.papers.clustered import runs as of
from bench.papers.clustered.entries import CLUSTERED, FACTORS, GAPS, PLAIN, ROUNDS, TITLES, policy
from bench.papers.clustered.measuring import FORMS
from bench.papers.clustered.runs import Function, functions
from bench.papers.clustered.training import GOALS, PARTS
from bench.records import Entry, Results, Row
from bench.standings import Standing, race_table
from bench.tables import Column, prose, table_of
from crfit.trainers import ClusteredLBFGS


def tables(results: Results) -> dict[str, str]:
    made = {
        name: table_of(functions(results, *kinds), Column(heading, lambda one: one.title), *columns)
        for name, (heading, kinds, columns) in FUNCTIONS.items()
    }
    made |= {"table5": _policies(results), "names": _names(results), "names-types": _types(results)}
    made |= {"saving": table_of(results.where(row="saving"), *_saving()), "merging": _merging(results)}
    made |= {"setting": _setting(results), "verdict": _verdict(results)}
    made |= {f"loglinear-{problem}": _race(results, problem) for problem in of.race_problems(results)}
    return {name: table for name, table in made.items() if table}


# --- what was run on each function -------------------------------------------------------------------------


def _both(one: Function, entry: Entry) -> str | None:
    """Seconds and passes to a gap of 1e-4 in one cell."""
    seconds, passes = one.reach(entry), one.passes(entry)
    return None if seconds is None else seconds.words() + (f" ({passes:.0f})" if passes is not None else "")


def _taken(title: str, entry: Entry) -> Column[Function]:
    return Column(title, lambda one: _both(one, entry))


def _seconds(title: str, entry: Entry, goal: str = "gap4") -> Column[Function]:
    return Column(title, lambda one: one.reach(entry, goal))


def _times(title: str, entry: Entry, goal: str = "gap4", unit: str = "seconds") -> Column[Function]:
    return Column(title, lambda one: one.times(entry, PLAIN, goal, unit), ".2f")


def _median(title: str, entry: Entry, column: str, form: str) -> Column[Function]:
    return Column(title, lambda one: one.median(entry, column), form)


def _ratio(one: Function, entry: Entry, goal: str) -> str | None:
    seconds, passes = (one.times(entry, PLAIN, goal, unit) for unit in ("seconds", "passes"))
    if seconds is None:
        return "neither reached" if one.runs(entry) else None
    return f"{seconds.words('.2f')} ({passes.words('.2f') if passes else ''})"


def _ratio_column(entry: Entry, goal: str) -> Column[Function]:
    return Column(f"{entry.title}, {GOALS[goal]:g}", lambda one: _ratio(one, entry, goal))


def _share(one: Function) -> float | None:
    """The part of clustering in the seconds of clustered L-BFGS."""
    spent = [one.median(CLUSTERED, f"{part}_seconds") for part in PARTS]
    known = [seconds for seconds in spent if seconds is not None]
    return known[-1] / sum(known) if len(known) == len(PARTS) else None


_TO_GAP = "to a gap of 1e-4: seconds (passes)"
_F1 = (_median("F1, L-BFGS", PLAIN, "end_f1", ".2f"), _median("clustered", CLUSTERED, "end_f1", ".2f"))
_OTHERS = dict.fromkeys([*who.FIELD[1:], *who.NAMES_FIELD[1:]])
_COMPARED = (_seconds("L-BFGS", PLAIN), _seconds("clustered", CLUSTERED), _times("times as fast", CLUSTERED))
#: Tables with a row for each function: heading of the rows, kinds of functions, columns.
FUNCTIONS: dict[str, tuple[str, tuple[str, ...], list[Column[Function]]]] = {
    "table1": (
        _TO_GAP,
        ("dense",),
        [_taken(entry.title, entry) for entry in who.DENSE]
        + [_median(f"{entry.title}, last gap", entry, "end_gap", ".1e") for entry in who.DENSE[-2:]],
    ),
    "table2": (
        _TO_GAP,
        ("policies",),
        [
            _taken("L-BFGS", PLAIN),
            *(_taken(f"{n} round{'s' * (n > 1)}", policy(rounds=n)) for n in ROUNDS),
        ],
    ),
    "table3": (
        "",
        ("topic",),
        [
            column
            for goal, title in (("gap2", "gap 1e-2"), ("gap4", "gap 1e-4"), ("grad", "gradient 0.01"))
            for column in (
                _seconds(f"{title}: L-BFGS", PLAIN, goal),
                _seconds("clustered", CLUSTERED, goal),
                _times("times as fast", CLUSTERED, goal),
            )
        ]
        + [_times("gap 1e-4, in passes", CLUSTERED, unit="passes"), *_F1],
    ),
    "table4": (
        "clustered L-BFGS, seconds",
        ("topic", "names"),
        [_median(part, CLUSTERED, f"{part}_seconds", ".3f") for part in PARTS]
        + [Column("share of clustering", _share, ".0%")]
        + [_median(f"{part} passes", CLUSTERED, f"{part}_passes", ".0f") for part in ("coarse", "fine")],
    ),
    "ratios": (
        "times as fast as L-BFGS: seconds (passes)",
        ("topic", "names"),
        [_ratio_column(entry, goal) for entry, goal in product(_OTHERS, ("gap2", "gap4"))],
    ),
    "sweep": (
        "to a gap of 1e-4",
        ("sweep",),
        [*_COMPARED, *_F1, Column("gradient left", lambda one: one.facts["grad_inf"], ".0e")],
    ),
}


def _policies(results: Results) -> str:
    """A row for each factor: chunks with and without pre-aggregation, then all clusterings where it pays."""

    def taken(title: str, entry: Callable[[int], Entry]) -> Column[tuple[Function, int]]:
        return Column(title, lambda row: _both(row[0], entry(row[1])))

    return table_of(
        product(functions(results, "policies"), FACTORS),
        Column(_TO_GAP, lambda row: row[0].title),
        taken("L-BFGS", lambda n: PLAIN),
        Column("factor", lambda row: str(row[1])),
        taken("chunks, aggregated", lambda n: policy(factor=n, aggregate="true")),
        taken("chunks, not", lambda n: policy(factor=n, aggregate="false")),
        *(taken(method, lambda n, method=method: policy(method, n)) for method in who.METHODS),  # type: ignore[misc]
    )


def _names(results: Results) -> str:
    return table_of(
        product(functions(results, "names"), who.NAMES_FIELD),
        Column("", lambda row: f"{TITLES[row[0].problem]}: {row[1].title}"),
        Column("to gap 1e-4", lambda row: row[0].reach(row[1])),
        Column("passes", lambda row: row[0].reach(row[1], unit="passes"), ".0f"),
        Column("times as fast as L-BFGS", lambda row: row[0].times(row[1], PLAIN), ".2f"),
        Column("in passes", lambda row: row[0].times(row[1], PLAIN, unit="passes"), ".2f"),
        Column("test F1", lambda row: row[0].median(row[1], "end_f1"), ".2f"),
    )


def _types(results: Results) -> str:
    """F1 by type at the end, of plain and clustered L-BFGS."""
    rows = [(one, name) for one in functions(results, "names") for name in one.columns("end_f1_")]
    return table_of(
        rows,
        Column("test F1 at the end", lambda row: row[1].removeprefix("end_f1_")),
        Column(PLAIN.title, lambda row: row[0].median(PLAIN, row[1]), ".2f"),
        Column(CLUSTERED.title, lambda row: row[0].median(CLUSTERED, row[1]), ".2f"),
    )


# --- merging, and the race ---------------------------------------------------------------------------------


def _saving() -> Iterator[Column[Row]]:
    yield Column("", lambda row: f"{TITLES[row['problem']]}, {row['form']}")
    yield Column("attributes", lambda row: row["n_attributes"], ",")
    yield Column("weights", lambda row: row["n_weights"], ",")
    yield Column("different positions", lambda row: f"{row['n_distinct']:,} of {row['n_positions']:,}")
    yield Column("gradient", lambda row: row["gradient_seconds"], ".3f", " s")
    yield Column("L-BFGS iteration", lambda row: row["iteration_seconds"], ".3f", " s")
    yield Column("default trainer to 1e-4", lambda row: row["training_seconds"], ".2f", " s")
    yield Column("passes", lambda row: row["training_passes"], ".0f")
    yield Column("search for equal ones", lambda row: row["search_seconds"] or None, ".2f", " s")
    yield Column("making the data", lambda row: row["making_seconds"] or None, ".2f", " s")


def _merging(results: Results) -> str:
    """How many attributes are left when those with the same occurrences are one."""
    rows = {row["form"]: row for row in results.where(problem=who.MERGED, row="saving")}
    if len(rows) < len(FORMS):
        return ""
    plain, merged = (rows[form] for form in FORMS)
    return prose(__file__, "merging", title=TITLES[who.MERGED], plain=plain, merged=merged)


def _race(results: Results, problem: str) -> str:
    """Seconds of everybody to each gap."""
    everybody, ends = of.racers(results, problem), of.end_gaps(results, problem)
    gaps = {f"to gap {gap:.0e}".replace("e-0", "e-"): gap for gap in GAPS}

    return race_table(
        who.RACES[problem][0],
        everybody,
        Column("threads", lambda standing: standing.threads),
        *(Column(title, partial(Standing.reach, relative_gap=gap)) for title, gap in gaps.items()),
        Column(f"times ours, {[*gaps][-1]}", lambda standing: of.times_ours(everybody, standing)),
        Column("lowest gap", lambda standing: ends.get((standing.tool, standing.variant)), ".0e"),
        Column("accuracy", lambda standing: standing.score("accuracy"), ".2f"),
    )


# --- sentences ---------------------------------------------------------------------------------------------


def _setting(results: Results) -> str:
    """The paper's setting beside ours; empty for a run on other data."""
    words = [one.facts["n_weights"] for one in functions(results, "topic", "sweep")]
    names = [one.facts["n_weights"] for one in functions(results, "names") if one.problem == who.NAMES]
    if not words or not names:
        return ""
    sizes = {"words": words[0], "names": names[0], **N_DOCUMENTS}
    return prose(__file__, "setting", machine=results.machine, ours=ClusteredLBFGS(), **sizes)


def _verdict(results: Results) -> str:
    """On how many functions it is faster than plain L-BFGS, each counted once."""
    # A function of the sweep that is among the topics has more runs there.
    found = {(one.problem, one.ridge): one for one in functions(results, "sweep", "topic", "names")}
    times = of.all_times(found.values(), CLUSTERED, PLAIN)
    if not times:
        return ""
    faster = sum(one.ratio > 1.0 for one in times)
    values = {"faster": faster, "counted": len(times), "median": of.middle(times)}
    return prose(__file__, "verdict", speed=who.SPEED, names=who.NAMES_SPEED, **values)
