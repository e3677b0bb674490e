"""The tables of the group."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures.base import Results, markdown, shown
from bench.figures.newton_cg.boards import Board, boards, product_seconds
from bench.figures.newton_cg.deciding import fastest
from bench.figures.newton_cg.differing import REFERENCE, setting_words
from bench.figures.newton_cg.entries import METHODS, ONLINE, PAPERS, WINNERS, Entry
from bench.figures.newton_cg.goals import F1, GAPS, WINS, Goal
from bench.figures.newton_cg.judging import batch_entries, findings
from bench.figures.newton_cg.judging_online import best_online
from bench.figures.newton_cg.measuring import MODES, PROBLEMS
from bench.figures.newton_cg.papers import BEST_BATCH, BEST_ONLINE, TABLE_1
from bench.figures.newton_cg.process import process
from bench.figures.newton_cg.ruling import rules_words
from bench.setting import THREADS
from bench.standings import Reach
from bench.verdicts import verdict_tables

__all__ = ["tables"]

MEGABYTE = 1e6


def tables(results: Results) -> dict[str, str]:
    made = {one.problem: _methods(one) for one in boards(results, "methods")}
    found = findings(results)
    return {
        "problems": _problems(results),
        "table1": _table_1(results),
        "table2": _table_2(results),
        **made,
        **verdict_tables(found),
        "rules": rules_words(),
        "setting": setting_words(results),
        "reference": REFERENCE,
        "products": _products(results),
        "wins": _wins(results),
        "process": _process(results),
    }


def _problems(results: Results) -> str:
    headings = ["", "sequences", "labels", "attributes", "weights", "F*", "test F1 there"]
    rows = []
    for one in boards(results, "optimum"):
        sizes = [
            shown(one.facts.get(f"n_{name}"), ",")
            for name in ("sequences", "labels", "attributes", "weights")
        ]
        final = one.final_f1
        rows.append([one.title, *sizes, shown(one.optimum, ".2f"), "" if final is None else f"{final:.2f}"])
    return markdown(headings, rows)


def _table_1(results: Results) -> str:
    """The sizes of the papers' corpora beside ours."""
    headings = ["", "test sentences, the papers"]
    for what in ("training sentences", "attributes", "labels"):
        headings += [f"{what}, the papers", "here"]
    rows = []
    for one in boards(results, "optimum"):
        published = TABLE_1.get(one.problem)
        if published is None:
            continue
        cells = [one.title, f"{published.test:,}"]
        for theirs, ours in (
            (published.train, "sequences"),
            (published.attributes, "attributes"),
            (published.labels, "labels"),
        ):
            cells += [f"{theirs:,}", shown(one.facts.get(f"n_{ours}"), ",")]
        rows.append(cells)
    return markdown(headings, rows)


def _table_2(results: Results) -> str:
    """The fastest batch and on-line method of each task, there and here."""
    headings = ["fastest", "batch, the paper", f"here, to {F1.words}", f"here, to {GAPS[1].words}"]
    headings += ["on-line, the paper", f"here, to {F1.words}", "all trainers here"]
    rows = []
    for one in boards(results, "methods"):
        if one.problem not in BEST_ONLINE:
            continue
        online = best_online(one) if any(one.good(entry.key) for entry in ONLINE) else None
        rows.append(
            [
                one.title,
                BEST_BATCH.title,
                _first(one, batch_entries(one), F1),
                _first(one, batch_entries(one), GAPS[1]),
                BEST_ONLINE[one.problem].title,
                "" if online is None else _first(one, [online], F1) or online.title,
                _first(one, METHODS, F1),
            ]
        )
    return markdown(headings, rows)


def _first(one: Board, entries: Sequence[Entry], goal: Goal) -> str:
    """Who is the first at a goal, with the seconds; nothing where nobody gets there."""
    found = fastest(one, entries, goal)
    return "" if found is None else f"{found[0].title} ({found[1]:.2f} s)"


def _cell(reach: Reach | None, unit: str) -> str:
    form, sign = (".2f", " s") if unit == "seconds" else (".0f", "")
    return "" if reach is None else reach.words(form, sign)


def _asked(one: Board, entry: Entry, goal: Goal, unit: str) -> str:
    """What an entry took to a goal; nothing where its runs end before."""
    return "" if entry.end.before(goal) else _cell(one.reach(entry.key, goal, unit), unit)


def _methods(one: Board) -> str:
    """Seconds and passes to each goal, of the methods in our arithmetic and then in the papers'."""
    goals: tuple[Goal, ...] = (*GAPS, F1)
    headings = [one.title, *(f"to {goal.words}" for goal in goals)]
    headings += [f"passes to {goal.words}" for goal in goals] + ["test F1"]
    rows = []
    for entry in (*METHODS, *PAPERS):
        standing = one.standings.get(entry.key)
        if standing is None:
            continue
        if standing.trouble:
            rows.append([entry.title, standing.trouble, *[""] * (len(headings) - 2)])
            continue
        score = standing.score("f1")
        rows.append(
            [
                entry.title,
                *(_asked(one, entry, goal, "seconds") for goal in goals),
                *(_asked(one, entry, goal, "passes") for goal in goals),
                "" if score is None else f"{score:.2f}",
            ]
        )
    return markdown(headings, rows)


def _products(results: Results) -> str:
    headings = ["", "gradient", "gradient that keeps", "product", "products in a gradient", "kept"]
    rows = []
    for one in boards(results, "products"):
        for mode in MODES:
            found = product_seconds(results, one.problem, mode)
            gradient, product, kept = found["gradient"], found["product"], found["bytes"]
            times = None if gradient is None or product is None else gradient / product
            rows.append(
                [
                    f"{one.title}: {mode}",
                    *(
                        shown(found[name], ".3f", " s")
                        for name in ("gradient", "keeping gradient", "product")
                    ),
                    shown(times, ".2f"),
                    shown(None if kept is None else kept / MEGABYTE, ",.0f", " MB"),
                ]
            )
    return markdown(headings, rows)


def _wins(results: Results) -> str:
    titles = [entry.title for entry in WINNERS]
    headings = [
        "",
        "to",
        *titles,
        *(f"{title}, passes" for title in titles),
        f"{titles[-1]} against {titles[0]}",
    ]
    rows = []
    for one in boards(results, "wins"):
        goal = WINS[one.problem]
        times = one.times(WINNERS[0].key, WINNERS[-1].key, goal)
        rows.append(
            [
                one.title,
                goal.words,
                *(_cell(one.reach(entry.key, goal), "seconds") for entry in WINNERS),
                *(_cell(one.reach(entry.key, goal, "passes"), "passes") for entry in WINNERS),
                "" if times is None else times.words(),
            ]
        )
    return markdown(headings, rows)


def _process(results: Results) -> str:
    headings = ["", "to", "`crfit train`, file to model", "training in it", "threads"]
    headings += ["CRFsuite, training", "threads", "times"]
    rows = []
    for problem in PROBLEMS:
        if results.where(problem=problem, what="process"):
            found = process(results, problem)
            rival = found.trouble if found.rival is None else found.rival.words(".1f", " s")
            rows.append(
                [
                    PROBLEMS[problem],
                    WINS[problem].words,
                    shown(found.seconds, ".1f", " s"),
                    shown(found.training, ".1f", " s"),
                    str(THREADS),
                    rival,
                    "" if found.rival_threads is None else str(found.rival_threads),
                    "" if found.times is None else found.times.words(),
                ]
            )
    return markdown(headings, rows)
