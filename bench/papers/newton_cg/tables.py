"""The tables of the group, and what we say of crfit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.papers.newton_cg import entries as ncg
from bench.papers.newton_cg.measuring import ROUNDS
from bench.problems import problem
from bench.records import NOT_AVAILABLE, Check, Entry, Results
from bench.setting import THREADS
from bench.standings import Board, Goal, Reach, Times, compared
from bench.tables import markdown, prose, shown

MEGABYTE = 1e6
SIZES = ("sequences", "labels", "attributes", "weights")


def tables(results: Results) -> dict[str, str]:
    return {
        "problems": _problems(results),
        "table1": _table_1(results),
        "table2": _table_2(results),
        **{one.problem: _methods(one) for one in ncg.boards(results, "methods")},
        "setting": _setting(results),
        "reference": prose(__file__, "reference"),
        "products": _products(results),
        "wins": _wins(results),
        "process": _process(results),
    }


def _problems(results: Results) -> str:
    headings = ["", *SIZES, "F*", "test F1 there"]
    rows = []
    for one in ncg.boards(results, "optimum"):
        sizes = [shown(one.facts.get(f"n_{name}"), ",") for name in SIZES]
        ends = [shown(one.optimum, ".2f"), shown(ncg.final_f1(one), ".2f", none="")]
        rows.append([ncg.PROBLEMS[one.problem], *sizes, *ends])
    return markdown(headings, rows)


def _table_1(results: Results) -> str:
    """The sizes of the papers' corpora beside ours."""
    headings = ["", "test sentences, the papers"]
    for what in ("training sentences", "attributes", "labels"):
        headings += [f"{what}, the papers", "here"]
    rows = []
    for one in ncg.boards(results, "optimum"):
        if one.problem in ncg.TABLE_1:
            train, test, attributes, labels = ncg.TABLE_1[one.problem]
            cells = [ncg.PROBLEMS[one.problem], f"{test:,}"]
            for theirs, ours in ((train, "sequences"), (attributes, "attributes"), (labels, "labels")):
                cells += [f"{theirs:,}", shown(one.facts.get(f"n_{ours}"), ",")]
            rows.append(cells)
    return markdown(headings, rows)


def _table_2(results: Results) -> str:
    """The fastest batch and on-line method of each task, there and here."""
    headings = [
        "fastest",
        "batch, the paper",
        f"here, to {ncg.words(ncg.F1)}",
        f"here, to {ncg.words(ncg.NEAR)}",
    ]
    headings += ["on-line, the paper", f"here, to {ncg.words(ncg.F1)}", "all trainers here"]
    rows = []
    for one in ncg.boards(results, "methods"):
        if one.problem in ncg.BEST_ONLINE:
            batch, online = (
                ncg.different(one, ncg.BATCH),
                ncg.best_online(one) if ncg.run_online(one) else None,
            )
            cells = [
                ncg.PROBLEMS[one.problem],
                ncg.BEST_BATCH.title,
                _first(one, batch, ncg.F1),
                _first(one, batch, ncg.NEAR),
            ]
            cells += [ncg.BEST_ONLINE[one.problem].title]
            cells += ["" if online is None else _first(one, [online], ncg.F1) or online.title]
            rows.append([*cells, _first(one, ncg.METHODS, ncg.F1)])
    return markdown(headings, rows)


def _first(one: Board, entries: Sequence[Entry], goal: Goal) -> str:
    """Who is the first at a goal, with the seconds; nothing where nobody gets there."""
    found = one.first(entries, goal)
    return "" if found is None else f"{found[0].title} ({found[1]:.2f} s)"


def _cell(reach: Reach | None, unit: str) -> str:
    return "" if reach is None else reach.words(*((".2f", " s") if unit == "seconds" else (".0f", "")))


def _asked(one: Board, entry: Entry, goal: Goal, unit: str) -> str:
    """What an entry took to a goal; nothing where its runs end before."""
    end = ncg.end_of(entry).gap
    before = end is not None and goal.gap is not None and end > goal.gap
    return "" if before else _cell(one.reach(entry, goal, unit), unit)


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
            cells = [_asked(one, entry, goal, unit) for unit in ("seconds", "passes") for goal in goals]
            rows.append([entry.title, *cells, shown(standing.score("f1"), ".2f", none="")])
    return markdown(headings, rows)


def _products(results: Results) -> str:
    headings = ["", "gradient", "gradient that keeps", "product", "products in a gradient", "kept"]
    rows = []
    for one in ncg.boards(results, "products"):
        for mode in ncg.MODES:
            found = ncg.product_seconds(results, one.problem, mode)
            gradient, product, kept = found["gradient"], found["product"], found["bytes"]
            times = None if gradient is None or product is None else gradient / product
            cells = [shown(found[name], ".3f", " s") for name in ("gradient", "keeping gradient", "product")]
            megabytes = shown(None if kept is None else kept / MEGABYTE, ",.0f", " MB")
            rows.append([f"{ncg.PROBLEMS[one.problem]}: {mode}", *cells, shown(times, ".2f"), megabytes])
    return markdown(headings, rows)


def _wins(results: Results) -> str:
    titles = [entry.title for entry in ncg.WINNERS]
    headings = ["", "to", *titles, *(f"{title}, passes" for title in titles)]
    headings.append(f"{titles[-1]} against {titles[0]}")
    rows = []
    for one in ncg.boards(results, "wins"):
        goal = ncg.WINS[one.problem]
        times = one.times(ncg.WINNERS[0], ncg.WINNERS[-1], goal)
        cells = [_cell(one.reach(e, goal, unit), unit) for unit in ("seconds", "passes") for e in ncg.WINNERS]
        rows.append(
            [ncg.PROBLEMS[one.problem], ncg.words(goal), *cells, "" if times is None else times.words()]
        )
    return markdown(headings, rows)


@dataclass(frozen=True)
class Process:
    """The whole `crfit train` against CRFsuite's training to the same gap.

    Our seconds, of the process and of the training in it, are medians of the rounds, None unless all came to
    the gap. CRFsuite's are those of training; `trouble` says why it has none.
    """

    seconds: float | None
    training: float | None
    rival: Reach | None
    trouble: str
    available: bool
    rival_threads: int | None

    @property
    def times(self) -> Times | None:
        """How many times our seconds CRFsuite takes."""
        return None if self.seconds is None else compared(Reach(self.seconds, self.seconds), self.rival)


def process(results: Results, name: str) -> Process:
    """What was measured on a problem."""
    one, goal = ncg.board(results, name), ncg.WINS[name]
    rows = [row for row in results.where(problem=name, what="process") if not row["tool"]]
    least = None if one.optimum is None else goal.objective(one.optimum)
    values = [row.get("objective") for row in rows]
    seconds = training = None
    if rows and least is not None and all(value is not None and value <= least for value in values):
        medians = (results.median(of, problem=name, row="process") for of in ("seconds", "training_seconds"))
        seconds, training = medians
    rival = one.standings.get("default")
    reach = one.reach("default", goal)
    if rival is None:
        return Process(seconds, training, reach, NOT_AVAILABLE, False, None)
    return Process(seconds, training, reach, rival.trouble, rival.available, rival.threads)


def _processes(results: Results) -> Iterator[tuple[str, Process]]:
    for name in ncg.PROBLEMS:
        if results.where(problem=name, what="process"):
            yield name, process(results, name)


def _process(results: Results) -> str:
    headings = ["", "to", "`crfit train`, file to model", "training in it", "threads"]
    headings += ["CRFsuite, training", "threads", "times"]
    rows = []
    for name, found in _processes(results):
        rival = found.trouble if found.rival is None else found.rival.words(".1f", " s")
        ours = [shown(found.seconds, ".1f", " s"), shown(found.training, ".1f", " s"), str(THREADS)]
        threads = shown(found.rival_threads, "d", none="")
        times = "" if found.times is None else found.times.words()
        rows.append([ncg.PROBLEMS[name], ncg.words(ncg.WINS[name]), *ours, rival, threads, times])
    return markdown(headings, rows)


def _setting(results: Results) -> str:
    """Where our setting is another than theirs; what was run is read from the rows."""
    runs = results.where(what="methods", variant=ncg.SGD_INVERSE.key, row="run")
    seeds = {ncg.PROBLEMS[row["problem"]]: row["round"] for row in runs}  # the last round of each
    told = "; ".join(f"{n} seed{'s' * (n > 1)} on {title}" for title, n in seeds.items())
    return prose(
        __file__,
        "setting",
        machine=results.machine,
        l2=problem(ncg.SPANISH).l2,
        rounds=ROUNDS,
        epochs=ncg.EPOCHS,
        passes=ncg.ONLINE_PASSES,
        seeds=f", with {told}" if told else "",
        log_problems=" and ".join(ncg.PROBLEMS[p] for p in ncg.LOG_PROBLEMS),
        near=ncg.NEAR_F1,
        attributes=ncg.board(results, ncg.SPANISH).facts.get("n_attributes"),
        theirs=ncg.TABLE_1[ncg.SPANISH][2],
    )


# --- what we say of crfit ----------------------------------------------------------------------------------

#: How many times the seconds of the default trainer L-BFGS(10) takes at least, less on a small problem.
FASTER = {ncg.QUARTER: 1.5, "conll2000-all": 3.0, "jnlpba-all": 5.0, "conll2002-es-all": 5.0}
#: How many times the seconds of the whole `crfit train` CRFsuite takes at least, for training alone.
FASTER_PROCESS = {ncg.QUARTER: 5.0, "conll2000-all": 25.0}
#: Memory of the pair marginals against what is kept here, for the same products, at 22 labels.
LESS_MEMORY, LABELS = 7.0, 22


def checks(results: Results) -> list[Check]:
    made = [one for found in ncg.boards(results, "wins") for one in _win_checks(found)]
    made += [one for name, found in _processes(results) for one in _process_checks(name, found)]
    made += [one for found in ncg.boards(results, "products") for one in _memory_checks(results, found)]
    for found in ncg.boards(results, "methods"):
        made += [_optimum_check(found), _score_check(found), _function_check(found)]
    return made


def _ratio_check(name: str, text: str, times: Times | None, least: float) -> Check:
    """A check of a ratio, which does not hold where it is not known."""
    told = "an unknown number of" if times is None else times.told
    return Check(
        name, f"{text.format(told)}, at least {least:g}.", times is not None and times.ratio >= least
    )


def _win_checks(one: Board) -> Iterator[Check]:
    """The default is ahead of L-BFGS, and its start is no loss."""
    default, cold, lbfgs = ncg.WINNERS
    goal = ncg.WINS[one.problem]
    for name, slow, least in (("wins", lbfgs, FASTER[one.problem]), ("start", cold, 1.0)):
        text = f"{ncg.PROBLEMS[one.problem]}: to {ncg.words(goal)} {slow.title} takes {{}} times as long as "
        times = one.times(default, slow, goal)
        yield _ratio_check(f"{name}-{one.problem}", text + default.title, times, least)


def _process_checks(name: str, found: Process) -> Iterator[Check]:
    """Nothing is said about a tool that is not installed."""
    if found.available:
        text = (
            f"{ncg.PROBLEMS[name]}: CRFsuite's training to {ncg.words(ncg.WINS[name])}, which has "
            f"{found.rival_threads or 'no known number of'} thread{'s' * (found.rival_threads != 1)}, takes "
            f"{{}} times as long as the whole `crfit train --trainer newton_cg` with {THREADS}, from file to "
            "model"
        )
        yield _ratio_check(f"process-{name}", text, found.times, FASTER_PROCESS[name])


def _memory_checks(results: Results, one: Board) -> Iterator[Check]:
    if one.facts.get("n_labels") != LABELS:
        return
    modes = (ncg.OUR_MODE, "scaled, pairs kept")
    ours, pairs = (ncg.product_seconds(results, one.problem, mode)["bytes"] for mode in modes)
    times = None if not ours or pairs is None else Times(pairs / ours)
    text = (
        f"{ncg.PROBLEMS[one.problem]}: pair marginals take {{}} times the memory of the vectors kept for the "
    )
    yield _ratio_check(f"memory-{one.problem}", f"{text}same products", times, LESS_MEMORY)


def _optimum_check(one: Board) -> Check:
    """The papers' Newton-CG and the default get to the last gap of the table."""
    reached = {entry.title: one.reach(entry, ncg.GAPS[-1]) for entry in (ncg.NCG_ALL, ncg.DEFAULT)}
    there = {title: reach is not None and reach.reached for title, reach in reached.items()}
    told = [
        f"{title} in {reach.words('.1f', ' s')}" if reach and there[title] else f"not {title}"
        for title, reach in reached.items()
    ]
    text = f"{ncg.PROBLEMS[one.problem]}: {ncg.words(ncg.GAPS[-1])} is reached by {', '.join(told)}."
    return Check(f"optimum-{one.problem}", text, all(there.values()))


def _score_check(one: Board) -> Check:
    """Newton-CG ends with the F1 that L-BFGS ends with."""
    entries = [entry for entry in (ncg.LBFGS_10, ncg.NCG_ALL, ncg.DEFAULT) if one.good(entry)]
    scores = {entry.title: one.end_score(entry) for entry in entries}
    told = ", ".join(f"{title} {shown(score, '.2f')}" for title, score in scores.items())
    found = [score for score in scores.values() if score is not None]
    near = len(found) == 3 and max(found) - min(found) <= ncg.SAME_F1
    text = f"{ncg.PROBLEMS[one.problem]}: test F1 at the end is the same within {ncg.SAME_F1:g}: {told}."
    return Check(f"f1-{one.problem}", text, near)


def _function_check(one: Board) -> Check:
    """Nobody failed or is below F* by more than it is uncertain, in either arithmetic."""
    everybody = [s for key, s in one.standings.items() if key != "default"]
    lowest = min((s.lowest_gap for s in everybody if not s.trouble), default=None)
    failed = [f"{s.variant} ({s.trouble})" for s in everybody if s.trouble]
    text = (
        f"{ncg.PROBLEMS[one.problem]}: {len(everybody)} entries minimise the same function: lowest relative "
    )
    text += f"gap {shown(lowest, '.1e', none='none')}{'; not so ' * bool(failed)}{', '.join(failed)}."
    holds = not failed and lowest is not None and lowest >= -one.uncertainty and len(everybody) > 1
    return Check(f"same-function-{one.problem}", text, holds)
