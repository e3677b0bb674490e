"""What the papers [1, 2] report, beside what comes out here, in their arithmetic and in ours.

A report is a number of times that one thing is faster than another. It *holds* where ours is at least the
least that they say, is *weaker* where the order is the same but the ratio smaller, and *does not hold* where
the other one is faster. A run that was ended by its limit gives a ratio that is at least so large.

References
----------
[1] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI, 489-494.
[2] The same authors (2010), in Japanese.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.figures.base import Results
from bench.figures.newton_cg.boards import Board, boards, gap_ratios, product_seconds
from bench.figures.newton_cg.entries import (
    EG,
    LBFGS_50,
    NCG_AD,
    NCG_ALL,
    NCG_NONE,
    ONLINE,
    SGD_EXPONENTIAL,
    SUPERLINEAR,
    Entry,
    in_papers_arithmetic,
)
from bench.figures.newton_cg.goals import F1, Goal
from bench.standings import Times

__all__ = ["COMPARISONS", "Comparison", "Finding", "findings", "verdict"]

HOLDS, WEAKER, FAILS, UNKNOWN = "holds", "weaker", "does not hold", "not known"


@dataclass(frozen=True)
class Comparison:
    """A report about two methods.

    Parameters
    ----------
    words : str
        Who against whom, and to what.
    reported : str
        The papers' ratio in words.
    least : float
        Its lower end.
    fast, slow : Entry
        The two, in our arithmetic.
    goal : Goal
        To what.
    only_on : str
        Beginning of the names of the problems that it is about; all by default.
    """

    words: str
    reported: str
    least: float
    fast: Entry
    slow: Entry
    goal: Goal
    only_on: str = ""

    def about(self, one: Board) -> bool:
        """Whether it says something about a problem, and both were run there."""
        pairs = [(self.fast, self.slow), (in_papers_arithmetic(self.fast), in_papers_arithmetic(self.slow))]
        run = any(fast.key in one.standings and slow.key in one.standings for fast, slow in pairs)
        return run and one.problem.startswith(self.only_on)


COMPARISONS = (
    Comparison("all kept against none kept, to F − F* ≤ 1", "2-3", 2.0, NCG_ALL, NCG_NONE, Goal(1.0)),
    Comparison("all kept against L-BFGS(50), to a good F1", "3-6", 3.0, NCG_ALL, LBFGS_50, F1),
    Comparison(
        "all kept against L-BFGS(50), to F − F* ≤ 1", "> 6", 6.0, NCG_ALL, LBFGS_50, Goal(1.0), "conll2000"
    ),
    Comparison("all kept against AD, to a good F1", "2", 2.0, NCG_ALL, NCG_AD, F1),
    Comparison("none kept against L-BFGS(50), to F − F* ≤ 1", "> 1", 1.0, NCG_NONE, LBFGS_50, Goal(1.0)),
)
#: The on-line method that was best in the papers: on names, and on chunks.
BEST_ONLINE = {"conll2002": EG, "conll2000": SGD_EXPONENTIAL}
#: A rate is superlinear where the gap is divided by more and more: the last ratio against the first shown.
FALLING = 0.5


@dataclass(frozen=True)
class Finding:
    """A line of the table."""

    claim: str
    problem: str
    reported: str
    log: str
    scaled: str
    verdict: str


def verdict(least: float, log: Times | None, scaled: Times | None) -> str:
    """What two ratios, in the papers' arithmetic and in ours, say about a report."""
    held = [times is not None and times.ratio >= least for times in (log, scaled)]
    known = [times for times in (log, scaled) if times is not None]
    if not known:
        return UNKNOWN
    if any(held):
        alone = {(True, False): " in the papers' arithmetic alone", (False, True): " in ours alone"}
        return HOLDS + (alone.get((held[0], held[1]), "") if len(known) == 2 else "")
    return WEAKER if any(times.ratio > 1.0 for times in known) else FAILS


def findings(results: Results) -> list[Finding]:
    """All lines: report by report, problem by problem."""
    of_methods = boards(results, "methods")
    lines = []
    for report in COMPARISONS:
        lines += [_compared(one, report) for one in of_methods if report.about(one)]
    lines += [_products(results, one) for one in boards(results, "products")]
    lines += [_superlinear(one) for one in boards(results, "forcing")]
    for one in of_methods:
        runs = [entry for entry in ONLINE if one.good(entry.key) is not None]
        if len(runs) > 1:
            lines.append(_best_online(one, runs))
        if runs:
            lines.append(_online_f1(one, runs))
    return lines


def _compared(one: Board, report: Comparison) -> Finding:
    keys = [
        (in_papers_arithmetic(report.fast).key, in_papers_arithmetic(report.slow).key),
        (report.fast.key, report.slow.key),
    ]
    log, scaled = (one.times(fast, slow, report.goal) for fast, slow in keys)
    words = verdict(report.least, log, scaled)
    return Finding(report.words, one.title, report.reported, _words(log), _words(scaled), words)


def _words(times: Times | None) -> str:
    return "" if times is None else times.words()


def _products(results: Results, one: Board) -> Finding:
    """How many products take as long as a gradient."""
    found = []
    for mode in ("log, pairs kept", "scaled, vectors kept"):
        seconds = product_seconds(results, one.problem, mode)
        gradient, product = seconds["gradient"], seconds["product"]
        found.append(None if gradient is None or product is None else Times(gradient / product, False))
    log, scaled = ("" if times is None else f"{times.ratio:.2f}" for times in found)
    return Finding("a product against a gradient", one.title, "> 1", log, scaled, verdict(1.0, *found))


def _superlinear(one: Board) -> Finding:
    standing, words = one.good(SUPERLINEAR.key), "ratio of successive gaps, superlinear forcing"
    if standing is None or one.optimum is None:
        return Finding(words, one.title, "falls", "", "", UNKNOWN)
    ratios = gap_ratios(standing.curve, one.optimum)
    told = UNKNOWN if len(ratios) < 2 else HOLDS if ratios[-1] <= FALLING * ratios[0] else FAILS
    return Finding(words, one.title, "falls", "", ", ".join(f"{ratio:.2g}" for ratio in ratios), told)


def _best_online(one: Board, runs: Sequence[Entry]) -> Finding:
    """Who is the first at a good F1, or comes nearest to the optimum if nobody is."""

    def order(entry: Entry) -> tuple[float, float]:
        reach, standing = one.reach(entry.key, F1), one.good(entry.key)
        gap = float("inf") if standing is None else standing.lowest_gap
        return float("inf") if reach is None else reach.median, gap

    best = min(runs, key=order)
    reported = next(entry for name, entry in BEST_ONLINE.items() if one.problem.startswith(name))
    told = HOLDS if best is reported else FAILS
    return Finding("best on-line method", one.title, reported.title, "", best.title, told)


def _online_f1(one: Board, runs: Sequence[Entry]) -> Finding:
    """Whether no on-line method ends with the F1 of the optimum."""
    scores = [s for s in (one.standings[e.key].score("f1") for e in runs) if s is not None]
    claim, final = "on-line methods against the F1 of the optimum", one.final_f1
    if final is None or not scores:
        return Finding(claim, one.title, "below", "", "", UNKNOWN)
    shown = f"{max(scores):.2f}, optimum {final:.2f}"
    return Finding(claim, one.title, "below", "", shown, HOLDS if max(scores) < final else FAILS)
