"""The tables: what was measured for the papers' claims, their Tables 1 and 2, and what we say of crfit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import inf
from statistics import median

from bench.papers.newton_cg import entries as ncg
from bench.records import Check, Entry, Results
from bench.setting import THREADS
from bench.standings import Board, Goal, Reach, Standing, Times, compared
from bench.tables import Column, markdown, prose, shown, table_of

#: Columns that several tables begin with.
TITLE = Column[Board]("", lambda one: ncg.PROBLEMS[one.problem])
WIN = Column[Board]("to", lambda one: ncg.words(ncg.WINS[one.problem]))
UNITS = {"seconds": (".2f", " s"), "passes": (".0f", "")}
ABSENT = "not available"


def tables(results: Results) -> dict[str, str]:
    return {
        "table1": _table_1(results),
        "table2": _table_2(results),
        **{one.problem: _methods(one) for one in ncg.boards(results, "methods")},
        "setting": prose(__file__, "setting", machine=results.machine),
        "reference": prose(__file__, "reference"),
        "products": _products(results),
        "wins": _wins(results),
        "process": _process(results),
    }


def _table_1(results: Results) -> str:
    """The sizes of the papers' corpora beside ours, and where our runs end."""
    sizes = []
    for name in ("sequences", "labels", "attributes"):
        sizes += [
            Column(name, partial(_size, name), ","),
            Column("in the papers", partial(_theirs, name), ","),
        ]
    return table_of(
        ncg.boards(results, "optimum"),
        TITLE,
        *sizes,
        Column("test sequences in the papers", partial(_theirs, "test"), ","),
        Column("weights", partial(_size, "weights"), ","),
        Column("F*", lambda one: one.optimum, ".2f"),
        Column("test F1 there", ncg.final_f1, ".2f"),
    )


def _size(name: str, one: Board) -> int | None:
    return one.facts.get(f"n_{name}")


def _theirs(name: str, one: Board) -> int | None:
    return ncg.TABLE_1.get(one.problem, {}).get(name)


def _table_2(results: Results) -> str:
    """The fastest batch and on-line method of each task, there and here."""
    near = f"here, to {ncg.words(ncg.F1)}"
    return table_of(
        [one for one in ncg.boards(results, "methods") if one.problem in ncg.BEST_ONLINE],
        Column("fastest", TITLE.value),
        Column("batch, the paper", lambda one: ncg.BEST_BATCH.title),
        Column(near, lambda one: _first(one, ncg.different(one, ncg.BATCH), ncg.F1)),
        Column(
            f"here, to {ncg.words(ncg.NEAR)}",
            lambda one: _first(one, ncg.different(one, ncg.BATCH), ncg.NEAR),
        ),
        Column("on-line, the paper", lambda one: ncg.BEST_ONLINE[one.problem].title),
        Column(near, lambda one: _first(one, ncg.run_online(one), ncg.F1)),
        Column("all trainers here", lambda one: _first(one, ncg.METHODS, ncg.F1)),
    )


def _first(one: Board, entries: Sequence[Entry], goal: Goal) -> str:
    """Who is the first at a goal, with the seconds; nothing where nobody gets there."""
    found = one.first(entries, goal)
    return "" if found is None else f"{found[0].title} ({found[1]:.2f} s)"


def _taken(one: Board, entry: Entry, goal: Goal, unit: str) -> str:
    """What an entry took to a goal; nothing where its runs end before."""
    end = ncg.end_of(entry).gap
    before = end is not None and goal.gap is not None and not goal.relative and end > goal.gap
    return "" if before else shown(one.reach(entry, goal, unit), *UNITS[unit], none="")


def _methods(one: Board) -> str:
    """Seconds and passes to each goal, of the methods in our arithmetic and then in the papers'."""
    goals: tuple[Goal, ...] = (*ncg.GAPS, ncg.F1)
    headings = [ncg.PROBLEMS[one.problem], *(f"to {ncg.words(goal)}" for goal in goals)]
    headings += [f"passes to {ncg.words(goal)}" for goal in goals] + ["test F1"]
    rows = []
    for entry in (*ncg.METHODS, *ncg.PAPERS):
        standing = one.standings.get(entry.key)
        if standing is not None and standing.trouble:
            rows.append([entry.title, standing.trouble, *[""] * (len(headings) - 2)])
        elif standing is not None:
            cells = [_taken(one, entry, goal, unit) for unit in UNITS for goal in goals]
            rows.append([entry.title, *cells, shown(standing.score("f1"), ".2f", none="")])
    return markdown(headings, rows)


def _products(results: Results) -> str:
    places = [(one.problem, mode) for one in ncg.boards(results, "products") for mode in ncg.MODES]
    found = {place: ncg.products(results, *place) for place in places}
    forms = {
        "gradient": ("gradient", ".3f", " s"),
        "gradient that keeps": ("keeping", ".3f", " s"),
        "product": ("product", ".3f", " s"),
        "products in a gradient": ("times", ".2f", ""),
        "kept": ("megabytes", ",.0f", " MB"),
    }
    rows = [
        [f"{ncg.PROBLEMS[name]}: {mode}", *(shown(one[key], *form) for key, *form in forms.values())]
        for (name, mode), one in found.items()
    ]
    return markdown(["", *forms], rows)


def _wins(results: Results) -> str:
    """The default trainer, the same from zero, and L-BFGS; medians of rounds."""
    headings = [f"{entry.title}{', passes' * (unit == 'passes')}" for unit in UNITS for entry in ncg.WINNERS]
    rows = []
    for one in ncg.boards(results, "wins"):
        goal = ncg.WINS[one.problem]
        taken = [_taken(one, entry, goal, unit) for unit in UNITS for entry in ncg.WINNERS]
        times = one.times(ncg.WINNERS[0], ncg.WINNERS[-1], goal)
        rows.append([TITLE.value(one), ncg.words(goal), *taken, shown(times, none="")])
    against = f"{ncg.WINNERS[-1].title} against {ncg.WINNERS[0].title}"
    return markdown(["", "to", *headings, against], rows)


def _process(results: Results) -> str:
    """The whole `crfit train` beside CRFsuite's training."""
    return table_of(
        ncg.boards(results, "process"),
        TITLE,
        WIN,
        Column("`crfit train`, file to model", partial(_process_seconds, results), ".1f", " s", ABSENT),
        Column(
            "training in it", partial(_process_seconds, results, of="training_seconds"), ".1f", " s", ABSENT
        ),
        Column("threads", lambda one: THREADS),
        Column("CRFsuite, training", lambda one: _crfsuite(one).trouble or _rival(one), ".1f", " s"),
        Column("threads", lambda one: _crfsuite(one).threads),
        Column("times", partial(_against_crfsuite, results)),
    )


def _process_seconds(results: Results, one: Board, of: str = "seconds") -> float | None:
    """Median of the rounds, if all came to the gap."""
    rows = results.where(problem=one.problem, row="process")
    least = -inf if one.optimum is None else ncg.WINS[one.problem].objective(one.optimum)
    return (
        median(row[of] for row in rows) if rows and all(row["objective"] <= least for row in rows) else None
    )


def _crfsuite(one: Board) -> Standing:
    return one.standings.get("default") or Standing("", "", "", ABSENT, available=False)


def _rival(one: Board) -> Reach | None:
    return one.reach("default", ncg.WINS[one.problem])


def _against_crfsuite(results: Results, one: Board) -> Times | None:
    """How many times our seconds CRFsuite takes."""
    seconds = _process_seconds(results, one)
    return None if seconds is None else compared(Reach(seconds, seconds), _rival(one))


# --- what we say of crfit ----------------------------------------------------------------------------------

#: How many times the seconds of the default trainer L-BFGS(10) takes at least, less on a small problem.
FASTER = {ncg.QUARTER: 1.5, "conll2000-all": 3.0, "jnlpba-all": 5.0, "conll2002-es-all": 5.0}
#: How many times the seconds of the whole `crfit train` CRFsuite takes at least, for training alone.
FASTER_PROCESS = {ncg.QUARTER: 5.0, "conll2000-all": 25.0}
#: Memory of the pair marginals against what is kept here, for the same products, at 22 labels.
LESS_MEMORY, LABELS = 7.0, 22


def checks(results: Results) -> list[Check]:
    made = []
    for name, one, text, times, least in _ratios(results):
        told = text.format("an unknown number of" if times is None else times.told)
        holds = times is not None and times.ratio >= least
        made.append(Check(f"{name}-{one.problem}", f"{TITLE.value(one)}: {told}, at least {least:g}.", holds))
    return made + [check for one in ncg.boards(results, "methods") for check in _end_checks(one)]


def _ratios(results: Results) -> Iterator[tuple[str, Board, str, Times | None, float]]:
    """Name, problem, words, ratio and the least that it has to be. An unknown ratio does not hold."""
    default, cold, lbfgs = ncg.WINNERS
    for one in ncg.boards(results, "wins"):
        for name, slow, least in (("wins", lbfgs, FASTER[one.problem]), ("start", cold, 1.0)):
            times = one.times(default, slow, ncg.WINS[one.problem])
            yield name, one, f"{slow.title} takes {{}} times as long as {default.title}", times, least
    for one in ncg.boards(results, "process"):
        if _crfsuite(one).available:  # nothing is said about a tool that is not installed
            text = "CRFsuite's training takes {} times as long as the whole `crfit train`"
            yield "process", one, text, _against_crfsuite(results, one), FASTER_PROCESS[one.problem]
    for one in ncg.boards(results, "products"):
        if one.facts.get("n_labels") == LABELS:
            modes = ncg.OUR_MODE, "scaled, pairs kept"
            ours, pairs = (ncg.products(results, one.problem, mode)["megabytes"] for mode in modes)
            times = None if not ours or pairs is None else Times(pairs / ours)
            text = "pair marginals take {} times the memory of the vectors kept for the same products"
            yield "memory", one, text, times, LESS_MEMORY


def _end_checks(one: Board) -> Iterator[Check]:
    """They get to the last gap, all with the same F1; and all minimise one function, in either arithmetic."""
    who, title = (ncg.LBFGS_10, ncg.NCG_ALL, ncg.DEFAULT), TITLE.value(one)
    there = [one.seconds(entry, ncg.GAPS[-1]) for entry in who[1:]]
    told = " and ".join(f"{seconds:.1f} s" for seconds in there)
    text = f"{title}: Newton-CG and the default come to {ncg.words(ncg.GAPS[-1])} after {told}."
    yield Check(f"optimum-{one.problem}", text, max(there) < inf)
    scores = [score for score in map(one.end_score, who) if score is not None]
    near = len(scores) == len(who) and max(scores) - min(scores) <= ncg.SAME_F1
    told = ", ".join(f"{score:.2f}" for score in scores)
    text = f"{title}: L-BFGS(10), Newton-CG and the default end with the same F1: {told}."
    yield Check(f"f1-{one.problem}", text, near)
    everybody = [s for key, s in one.standings.items() if key != "default"]
    failed = [f"; not {s.variant} ({s.trouble})" for s in everybody if s.trouble]
    lowest = min(s.lowest_gap for s in everybody)
    text = f"{title}: {len(everybody)} entries minimise the same function, lowest relative gap {lowest:.1e}"
    holds = not failed and lowest >= -one.uncertainty and len(everybody) > 1
    yield Check(f"same-function-{one.problem}", f"{text}{''.join(failed)}.", holds)
