"""The tables of the group."""

from __future__ import annotations

from bench.figures.base import Results, markdown, shown
from bench.figures.newton_cg.boards import Board, boards, product_seconds
from bench.figures.newton_cg.entries import METHODS, PAPERS, WINNERS, Entry
from bench.figures.newton_cg.goals import F1, GAPS, WINS, Goal
from bench.figures.newton_cg.measuring import MODES, PROBLEMS
from bench.figures.newton_cg.papers import findings
from bench.figures.newton_cg.process import process
from bench.standings import Reach

__all__ = ["tables"]

#: Attributes that the papers report.
PUBLISHED = {"conll2000-all": 338_539, "conll2002-es-s3": 99_135}
MEGABYTE = 1e6


def tables(results: Results) -> dict[str, str]:
    made = {one.problem: _methods(one) for one in boards(results, "methods")}
    return {
        "problems": _problems(results),
        **made,
        "papers": _papers(results),
        "products": _products(results),
        "wins": _wins(results),
        "process": _process(results),
    }


def _problems(results: Results) -> str:
    headings = ["", "sequences", "labels", "attributes", "in the papers", "weights", "F*", "test F1 there"]
    rows = []
    for one in boards(results, "optimum"):
        sizes = [shown(one.facts.get(f"n_{name}"), ",") for name in ("sequences", "labels", "attributes")]
        published = PUBLISHED.get(one.problem)
        final = one.final_f1
        rows.append(
            [
                one.title,
                *sizes,
                "" if published is None else f"{published:,}",
                shown(one.facts.get("n_weights"), ","),
                shown(one.optimum, ".2f"),
                "" if final is None else f"{final:.2f}",
            ]
        )
    return markdown(headings, rows)


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


def _papers(results: Results) -> str:
    headings = ["times as fast", "problem", "the papers", "here, their arithmetic", "here, ours", "verdict"]
    lines = findings(results)
    return markdown(
        headings,
        ([line.claim, line.problem, line.reported, line.log, line.scaled, line.verdict] for line in lines),
    )


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
    headings = ["", "to", "`crfit train`, file to model", "training in it", "CRFsuite, training", "times"]
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
                    rival,
                    "" if found.times is None else found.times.words(),
                ]
            )
    return markdown(headings, rows)
