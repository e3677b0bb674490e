"""The tables: the finding, the papers' Tables 1 and 2, times to goals, and the checks on crfit."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import inf

from bench.papers.newton_cg import entries as ncg
from bench.records import Check, Entry, Results
from bench.standings import Board, Goal, Times
from bench.tables import Column, markdown, prose, shown, spread_words, table_of

#: Columns that several tables begin with.
TITLE = Column[Board]("", lambda one: ncg.PROBLEMS[one.problem])
WIN = Column[Board]("to", lambda one: ncg.words(ncg.WINS[one.problem]))
UNITS = {"seconds": (".2f", " s"), "passes": (".0f", "")}
ABSENT = "not available"
#: The default, Newton-CG as published and L-BFGS(10), one run each.
SINGLE = (ncg.DEFAULT, ncg.NCG_ALL, ncg.LBFGS_10)


def tables(results: Results) -> dict[str, str]:
    return {
        "finding": _finding(results),
        "table1": _table_1(results),
        "table2": _table_2(results),
        **{one.problem: _methods(one) for one in ncg.boards(results, "methods")},
        "setting": prose(__file__, "setting", machine=results.machine),
        "products": _products(results),
        "wins": _wins(results),
    }


def _finding(results: Results) -> str:
    """What holds and why, with ranges over all tasks; empty unless everything was measured."""
    methods, wins = ncg.boards(results, "methods"), _won(results)
    newton, lbfgs = ncg.NCG_ALL, ncg.LBFGS_50
    runs = [*wins, *((one, goal, SINGLE) for one in methods for goal in ncg.GAPS)]
    forms = (newton, lbfgs), (ncg.in_papers_arithmetic(newton), ncg.in_papers_arithmetic(lbfgs))
    both = [(one, *form) for one in methods for form in forms]
    chunking = [one for one in methods if one.problem in (ncg.QUARTER, ncg.CHUNKS)]
    passes = [(one, goal) for one in methods for goal in (*ncg.GAPS, ncg.F1)]
    times: dict[str, list[Times | None]] = {
        "optimum": [one.times(fast, slow, goal) for one, fast, slow in both for goal in ncg.GAPS],
        "good": [one.times(slow, fast, ncg.F1) for one, fast, slow in both],
        "passes": [one.times(lbfgs, newton, goal, "passes") for one, goal in passes],
        "five": [one.times(newton, ncg.LBFGS_5, goal) for one in chunking for goal in ncg.GAPS],
        "cold": [one.times(default, cold, goal) for one, goal, (default, cold, _) in runs],
        "more": [one.times(ncg.DEFAULT, newton, ncg.NEAR, "passes") for one in methods],
        "lbfgs": [one.times(default, slow, goal) for one, goal, (default, _, slow) in runs],
        "lbfgs_50": [one.times(default, lbfgs, goal) for one, goal, (default, *_) in runs],
    }
    found = {name: [one.ratio for one in some if one is not None] for name, some in times.items()}
    products = [ncg.products(results, one.problem, ncg.PAPER_MODE)["times"] for one in methods]
    found["log_domain"] = [one for one in products if one is not None]
    log = [(_pass(one, forms[1][1]), _pass(one, forms[1][0])) for one in methods]
    found["average"] = [slow / fast for slow, fast in log if slow and fast]
    shares = [_vectors(results, one) for one in chunking]
    found["vectors"] = [100 * share for share in shares if share is not None]
    if not all(found.values()):
        return ""
    words = {name: spread_words(some, ".0f" if name == "vectors" else ".1f") for name, some in found.items()}
    words |= {"tasks": str(len(wins)), "papers": str(len(methods))}
    low, high = ncg.ALL_AGAINST_LBFGS
    return prose(__file__, "finding", low=f"{low:g}", high=f"{high:g}", **words)


def _pass(one: Board, entry: Entry) -> float | None:
    """Seconds of an average pass on the way to the gap of the ratios."""
    taken = [one.reach(entry, ncg.NEAR, unit) for unit in UNITS]
    seconds, passes = (None if reach is None or not reach.reached else reach.median for reach in taken)
    return seconds / passes if seconds and passes else None


def _vectors(results: Results, one: Board) -> float | None:
    """Share of the time of L-BFGS(50) that its gradients do not take."""
    taken = _pass(one, ncg.LBFGS_50)
    gradient = ncg.products(results, one.problem, ncg.OUR_MODE)["gradient"]
    return None if taken is None or gradient is None else 1.0 - gradient / taken


def _won(results: Results) -> list[tuple[Board, Goal, tuple[Entry, ...]]]:
    """Tasks of the default with goal and entries; medians of rounds if there are any, else single runs."""
    raced, run = (ncg.boards(results, what) for what in ("wins", "methods"))
    return [(one, ncg.WINS[one.problem], ncg.WINNERS) for one in raced] + [
        (one, ncg.NEAR, SINGLE) for one in run if one not in raced
    ]


def _table_1(results: Results) -> str:
    """Sizes of the corpora, in the papers and here, and F* and F1 of the optimum."""
    sizes = []
    for name in ("sequences", "labels", "attributes"):
        sizes += [
            Column(name, partial(Board.size, name=name), ","),
            Column("paper", partial(_theirs, name), ","),
        ]
    return table_of(
        ncg.boards(results, "optimum"),
        TITLE,
        *sizes,
        Column("weights", partial(Board.size, name="weights"), ","),
        Column("F*", lambda one: one.optimum, ".2f"),
        Column("test F1 at the optimum", ncg.final_f1, ".2f"),
    )


def _theirs(name: str, one: Board) -> int | None:
    return ncg.TABLE_1.get(one.problem, {}).get(name)


def _table_2(results: Results) -> str:
    """The fastest batch and online method on each task, in the paper and here."""
    near, gap = (f"here, to {ncg.words(goal)}" for goal in (ncg.F1, ncg.NEAR))
    return table_of(
        [one for one in ncg.boards(results, "methods") if one.problem in ncg.BEST_ONLINE],
        TITLE,
        Column("batch: paper", lambda one: ncg.BEST_BATCH.title),
        Column(near, lambda one: _first(one, ncg.different(one, ncg.BATCH), ncg.F1)),
        Column(gap, lambda one: _first(one, ncg.different(one, ncg.BATCH), ncg.NEAR)),
        Column("online: paper", lambda one: ncg.BEST_ONLINE[one.problem].title),
        Column(near, lambda one: _first(one, ncg.run_online(one), ncg.F1)),
        Column(f"all methods {near}", lambda one: _first(one, ncg.METHODS, ncg.F1)),
    )


def _first(one: Board, entries: Sequence[Entry], goal: Goal) -> str:
    """The first entry at a goal, with its seconds; empty if none reaches it."""
    found = one.first(entries, goal)
    return "" if found is None else f"{found[0].title}: {found[1]:.2f} s"


def _taken(one: Board, entry: Entry, goal: Goal, unit: str) -> str:
    """What an entry took to a goal; empty if its runs end before."""
    end = ncg.end_of(entry).gap
    before = end is not None and goal.gap is not None and not goal.relative and end > goal.gap
    return "" if before else shown(one.reach(entry, goal, unit), *UNITS[unit], none="")


def _methods(one: Board) -> str:
    """Seconds to each goal and passes to one, of the methods in scaled arithmetic, then in the papers'."""
    taken = [("seconds", goal) for goal in (*ncg.GAPS, ncg.F1)] + [("passes", ncg.NEAR)]
    headings = [ncg.PROBLEMS[one.problem], *(f"to {ncg.words(goal)}" for _, goal in taken[:-1])]
    headings += [f"passes to {ncg.words(ncg.NEAR)}", "test F1"]
    rows = []
    for entry in (*ncg.METHODS, *ncg.PAPERS):
        standing = one.standings.get(entry.key)
        if standing is not None and standing.trouble:
            rows.append([entry.title, standing.trouble, *[""] * (len(headings) - 2)])
        elif standing is not None:
            cells = [_taken(one, entry, goal, unit) for unit, goal in taken]
            rows.append([entry.title, *cells, shown(standing.score("f1"), ".2f", none="")])
    return markdown(headings, rows)


def _products(results: Results) -> str:
    places = [(one.problem, mode) for one in ncg.boards(results, "products") for mode in ncg.MODES]
    found = {place: ncg.products(results, *place) for place in places}
    forms = {
        "gradient": ("gradient", ".3f", " s"),
        "gradient that fills the cache": ("keeping", ".3f", " s"),
        "product": ("product", ".3f", " s"),
        "gradient / product": ("times", ".2f", ""),
        "cache": ("megabytes", ",.0f", " MB"),
    }
    rows = []
    for (name, mode), one in found.items():
        cells = [shown(one[key], *form) for key, *form in forms.values()]
        rows.append([f"{ncg.PROBLEMS[name]}: {ncg.MODES[mode][0]}", *cells])
    return markdown(["", *forms], rows)


def _wins(results: Results) -> str:
    """Seconds of the default and of others, and how many times as fast it is."""
    default, *rest = ncg.DEFAULT.title, ncg.NCG_ALL.title, ncg.LBFGS_50.title, ncg.LBFGS_10.title
    rows = []
    for one, goal, (first, published, last) in _won(results):
        others = published, ncg.LBFGS_50, last
        taken = [_taken(one, entry, goal, "seconds") for entry in (first, *others)]
        times = [shown(one.times(first, other, goal), none="") for other in others]
        rows.append([TITLE.value(one), ncg.words(goal), *taken, *times])
    return markdown(["", "to", default, *rest, *(f"{title} / {default}" for title in rest)], rows)


# --- checks on crfit ---------------------------------------------------------------------------------------

#: Least seconds of L-BFGS(10) / seconds of the default.
FASTER = {ncg.QUARTER: 1.5, "conll2000-all": 3.0, "jnlpba-all": 5.0, "conll2002-es-all": 5.0}
#: Least memory of the pair marginals / memory of crfit's cache, at 22 labels.
LESS_MEMORY, LABELS = 7.0, 22


def checks(results: Results) -> list[Check]:
    made = []
    for name, one, text, times, least in _ratios(results):
        told = text.format("an unknown number of" if times is None else times.told)
        holds = times is not None and times.ratio >= least
        made.append(Check(f"{name}-{one.problem}", f"{TITLE.value(one)}: {told}, at least {least:g}.", holds))
    return made + [check for one in ncg.boards(results, "methods") for check in _end_checks(one)]


def _ratios(results: Results) -> Iterator[tuple[str, Board, str, Times | None, float]]:
    """Name, problem, words, ratio and its least value. An unknown ratio does not hold."""
    default, cold, lbfgs = ncg.WINNERS
    for one in ncg.boards(results, "wins"):
        for name, slow, least in (("wins", lbfgs, FASTER[one.problem]), ("start", cold, 1.0)):
            times = one.times(default, slow, ncg.WINS[one.problem])
            yield name, one, f"{slow.title} takes {{}} times as long as {default.title}", times, least
    for one in ncg.boards(results, "products"):
        if one.facts.get("n_labels") == LABELS:
            modes = ncg.OUR_MODE, ncg.PAIRS_MODE
            ours, pairs = (ncg.products(results, one.problem, mode)["megabytes"] for mode in modes)
            times = None if not ours or pairs is None else Times(pairs / ours)
            text = "pair marginals take {} times the memory of cached vectors"
            yield "memory", one, text, times, LESS_MEMORY


def _end_checks(one: Board) -> Iterator[Check]:
    """All reach the last gap with the same F1 and minimise one function, in either arithmetic."""
    who, title = (ncg.LBFGS_10, ncg.NCG_ALL, ncg.DEFAULT), TITLE.value(one)
    there = [one.seconds(entry, ncg.GAPS[-1]) for entry in who[1:]]
    told = " and ".join(f"{seconds:.1f} s" for seconds in there)
    text = f"{title}: Newton-CG as published and the default reach {ncg.words(ncg.GAPS[-1])} after {told}."
    yield Check(f"optimum-{one.problem}", text, max(there) < inf)
    scores = [score for score in map(one.end_score, who) if score is not None]
    near = len(scores) == len(who) and max(scores) - min(scores) <= ncg.SAME_F1
    told = ", ".join(f"{score:.2f}" for score in scores)
    text = f"{title}: L-BFGS(10), Newton-CG as published and the default end with the same F1: {told}."
    yield Check(f"f1-{one.problem}", text, near)
    everybody = [s for key, s in one.standings.items() if key != "default"]
    failed = [f"; not {s.variant} ({s.trouble})" for s in everybody if s.trouble]
    lowest = min(s.lowest_gap for s in everybody)
    text = f"{title}: {len(everybody)} entries minimise the same function, lowest relative gap {lowest:.1e}"
    holds = not failed and lowest >= -one.uncertainty and len(everybody) > 1
    yield Check(f"same-function-{one.problem}", f"{text}{''.join(failed)}.", holds)
