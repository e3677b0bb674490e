"""Tables I to V of the paper, names, merging, the race of classifiers; and texts with numbers."""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product

from bench.corpora.reuters21578 import N_DOCUMENTS
from bench.papers.clustered import entries as who
from bench.papers.clustered import runs as of
from bench.papers.clustered.entries import CLUSTERED, FACTORS, GAPS, PLAIN, ROUNDS, TITLES, policy
from bench.papers.clustered.measuring import FORMS
from bench.papers.clustered.runs import Function, functions
from bench.papers.clustered.training import PARTS
from bench.records import Entry, Results, Row
from bench.standings import Standing, Times, race_table
from bench.tables import Column, gap_words, prose, table_of
from crfit.trainers import ClusteredLBFGS
from crfit.trainers.quasi_newton.clusters import CHAIN_FACTOR, CLASSIFIER_FACTOR


def tables(results: Results) -> dict[str, str]:
    made = {
        name: table_of(functions(results, *kinds), Column(heading, lambda one: one.title), *columns)
        for name, (heading, kinds, columns) in FUNCTIONS.items()
    }
    made["table4"] += _median_row(results) if made["table4"] else ""
    made |= {"table5": _policies(results), "names": _names(results), "loglinear": _loglinear(results)}
    made |= {"saving": table_of(results.where(row="saving"), *_saving())}
    made |= {"setting": _setting(results), "finding": _finding(results)}
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


def _share(one: Function) -> float | None:
    """Share of clustering in the time of clustered L-BFGS."""
    spent = [one.median(CLUSTERED, f"{part}_seconds") for part in PARTS]
    known = [seconds for seconds in spent if seconds is not None]
    return known[-1] / sum(known) if len(known) == len(PARTS) else None


def _relative(one: Function, part: str) -> float | None:
    """Passes of a part of clustered L-BFGS, relative to all passes of plain L-BFGS."""
    found, plain = one.median(CLUSTERED, f"{part}_passes"), one.median(PLAIN, "end_passes")
    return found / plain if found and plain else None


def _relative_median(some: Iterable[Function], part: str) -> float | None:
    known = [ratio for one in some if (ratio := _relative(one, part)) is not None]
    return statistics.median(known) if known else None


_TO_GAP = "to gap 1e-4: seconds (passes)"
#: Parts of a run with passes.
WORK = ("fine", "coarse")
_F1 = (_median("F1: L-BFGS", PLAIN, "end_f1", ".2f"), _median("clustered", CLUSTERED, "end_f1", ".2f"))
_COMPARED = (_seconds("L-BFGS", PLAIN), _seconds("clustered", CLUSTERED), _times("times as fast", CLUSTERED))
#: Tables with a row for each function: heading of the rows, kinds of functions, columns.
FUNCTIONS: dict[str, tuple[str, tuple[str, ...], list[Column[Function]]]] = {
    "table1": (
        _TO_GAP,
        ("dense",),
        [_taken(entry.title, entry) for entry in who.DENSE]
        + [_median(f"{entry.title}, final gap", entry, "end_gap", ".1e") for entry in who.DENSE[-2:]],
    ),
    "table2": (
        _TO_GAP,
        ("policies",),
        [_taken("L-BFGS", PLAIN), *(_taken(f"{n} round{'s' * (n > 1)}", policy(rounds=n)) for n in ROUNDS)],
    ),
    "table3": (
        "",
        ("topic",),
        [
            _seconds("gap 1e-2: L-BFGS", PLAIN, "gap2"),
            _seconds("clustered", CLUSTERED, "gap2"),
            _seconds("gap 1e-4: L-BFGS", PLAIN),
            _seconds("clustered", CLUSTERED),
            _times("times as fast", CLUSTERED),
            _times("in passes", CLUSTERED, unit="passes"),
            *_F1,
        ],
    ),
    "table4": (
        "clustered L-BFGS, seconds",
        ("topic", "names"),
        [_median(part, CLUSTERED, f"{part}_seconds", ".3f") for part in PARTS]
        + [Column("share of clustering", _share, ".0%"), _median("L-BFGS passes", PLAIN, "end_passes", ".0f")]
        + [_median(f"{part} passes", CLUSTERED, f"{part}_passes", ".0f") for part in WORK]
        + [Column(f"{part} / L-BFGS", partial(_relative, part=part), ".1f") for part in WORK],
    ),
    "methods": (_TO_GAP, ("topic",), [_taken(entry.title, entry) for entry in who.FIELD]),
    "sweep": ("to gap 1e-4", ("sweep",), [*_COMPARED, *_F1]),
}


def _median_row(results: Results) -> str:
    """The last row of Table IV: where the passes go."""
    some = functions(results, "topic", "names")
    cells = [f"{median:.1f}" for part in WORK if (median := _relative_median(some, part)) is not None]
    return f"| median |{' |' * (len(PARTS) + 4)} {' | '.join(cells)} |\n" if cells else ""


def _policies(results: Results) -> str:
    """A row per cluster size. With two labels there is one weight per attribute, so rows are chunks."""

    def taken(title: str, entry: Callable[[int], Entry]) -> Column[tuple[Function, int]]:
        return Column(title, lambda row: _both(row[0], entry(row[1])))

    return table_of(
        product(functions(results, "policies"), FACTORS),
        Column(_TO_GAP, lambda row: row[0].title),
        taken("L-BFGS", lambda n: PLAIN),
        Column("cluster size", lambda row: str(row[1])),
        taken("chunks, pre-aggregated", lambda n: policy(factor=n, aggregate="true")),
        taken("chunks, not pre-aggregated", lambda n: policy(factor=n, aggregate="false")),
        taken("k-means", lambda n: policy("kmeans", n)),
        taken("temporal", lambda n: policy("temporal", n)),
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


# --- merging, and the race ---------------------------------------------------------------------------------


def _saving() -> Iterator[Column[Row]]:
    yield Column("", lambda row: f"{TITLES[row['problem']]}, {'not ' * (row['form'] == FORMS[0])}merged")
    yield Column("attributes", lambda row: row["n_attributes"], ",")
    yield Column("weights", lambda row: row["n_weights"], ",")
    yield Column("distinct positions", lambda row: f"{row['n_distinct']:,} of {row['n_positions']:,}")
    yield Column("gradient", lambda row: row["gradient_seconds"], ".3f", " s")
    yield Column("L-BFGS iteration", lambda row: row["iteration_seconds"], ".3f", " s")
    yield Column("crfit (default) to gap 1e-4", lambda row: row["training_seconds"], ".2f", " s")
    yield Column("passes", lambda row: row["training_passes"], ".0f")
    yield Column("finding equal attributes", lambda row: row["search_seconds"] or None, ".2f", " s")
    yield Column("merging", lambda row: row["making_seconds"] or None, ".2f", " s")


def _race(results: Results, problem: str) -> str:
    """Seconds to each gap."""
    everyone, ends = of.racers(results, problem), of.end_gaps(results, problem)
    return race_table(
        who.RACES[problem][0],
        everyone,
        Column("threads", lambda standing: standing.threads),
        *(Column(f"to gap {gap_words(gap)}", partial(Standing.reach, relative_gap=gap)) for gap in GAPS),
        Column("time / LogLinear (default), to 1e-4", lambda standing: of.times_ours(everyone, standing)),
        Column("final gap", lambda standing: ends.get((standing.tool, standing.variant)), ".0e"),
        Column("accuracy", lambda standing: standing.score("accuracy"), ".2f"),
    )


def _ends(some: Sequence[Times]) -> str | None:
    """Smallest and largest, for a sentence."""
    found = [one.told for one in sorted(some, key=lambda one: one.ratio)]
    return " to ".join(dict.fromkeys([found[0], found[-1]])) if found else None


def _loglinear(results: Results) -> str:
    """How many times as long the fastest setting of scikit-learn takes, and where another tool is faster."""
    times: dict[str, list[Times]] = {"scikit-learn": [], "LIBLINEAR": []}
    faster = []
    for problem in of.race_problems(results):
        everyone = of.racers(results, problem)
        for name, tool in {"scikit-learn": "scikit_learn", "LIBLINEAR": "liblinear_lr"}.items():
            known = [t for s in everyone if s.tool == tool and (t := of.times_ours(everyone, s))]
            if known:
                least = min(known, key=lambda one: one.ratio)
                if least.ratio >= 1.0 or not least.at_least:  # a bound below 1 says nothing
                    times[name].append(least)
                    faster += [f"{name} on {who.RACES[problem][0]}"] if least.ratio < 1.0 else []
    words = {name.replace("-", "_"): _ends(some) for name, some in times.items()}
    return prose(__file__, "loglinear", gap=gap_words(GAPS[-1]), faster=", ".join(faster) or None, **words)


# --- sentences ---------------------------------------------------------------------------------------------


def _setting(results: Results) -> str:
    """The paper's setting and ours; empty for a run on other data."""
    words = [one.facts["n_weights"] for one in functions(results, "topic", "sweep")]
    names = [one.facts["n_weights"] for one in functions(results, "names") if one.problem == who.NAMES]
    if not words or not names:
        return ""
    sizes = {"words": words[0], "names": names[0], "size": CLASSIFIER_FACTOR, "chain_size": CHAIN_FACTOR}
    sizes |= N_DOCUMENTS
    return prose(__file__, "setting", machine=results.machine, ours=ClusteredLBFGS(), **sizes)


def _finding(results: Results) -> str:
    """On how many functions it is faster than plain L-BFGS, and where its passes go; each function once."""
    kinds = {kind: functions(results, kind) for kind in ("sweep", "topic", "names")}
    # A function of the sweep that is also a topic has more runs there.
    found = {(one.problem, one.ridge): one for some in kinds.values() for one in some}
    times = of.all_times(found.values(), CLUSTERED, PLAIN)
    if not times:
        return ""

    topics, swept = (dict.fromkeys(one.problem for one in kinds[kind]) for kind in ("topic", "sweep"))
    extra = len({one.ridge for one in kinds["sweep"]} - {one.ridge for one in kinds["topic"]})
    default = of.all_times(kinds["names"], who.NEWTON, PLAIN)
    better = of.all_times(found.values(), who.NEWTON, CLUSTERED)
    five = of.all_times(kinds["topic"], who.CLUSTERED_FIVE, who.FIVE)
    work = {part: _relative_median([*kinds["topic"], *kinds["names"]], part) for part in WORK}
    return prose(
        __file__,
        "finding",
        faster=sum(one.ratio > 1.0 for one in times),
        counted=len(times),
        slower=1.0 / of.middle(times),
        speed=who.SPEED,
        names=who.NAMES_SPEED,
        default=default[0].told if default else None,
        better=sum(one.ratio > 1.0 for one in better),
        known=len(better),
        topics=len(topics) or None,
        swept=len(swept) or None,
        more=extra,
        five=5,
        five_slower=1.0 / of.middle(five) if five else None,
        **work,
    )
