"""What the paper says of passes, beside what comes out here: fewer than its rivals take, to which goal.

Passes to a goal are rounded up to the next look. They are fewer where every seed takes fewer than any of a
rival's; where seeds differ, or take as many, nothing is settled.

Tuned constants are compared with PSA as it is and tuned for the same passes. What was tuned for the end
stands beside them: of PSA nothing was.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from bench.figures.aitken.entries import (
    ASGD,
    CHUNKS,
    CORPORA,
    LBFGS,
    NAMES,
    PASSES,
    PSA,
    PSA_TUNED,
    QUICK,
    READINGS,
    SGD,
    SMD,
    TUNED,
    Entry,
)
from bench.figures.aitken.papers import SLOW
from bench.figures.aitken.readings import HELD_OUT, OWN, known, methods, short, surely
from bench.figures.aitken.scores import F1, OBJECTIVE, Runs, compared, gap_of, problems_in, runs_of
from bench.figures.base import Results
from bench.verdicts import FAILS, HOLDS, Finding

__all__ = ["FEWER", "GOALS", "fewer_passes", "passes_words"]

FEWER = "fewer passes than PSA, SGD and L-BFGS"
#: What passes are counted to: F1 on the test part, and distances from the optimum; the smallest is near it.
GOALS = {
    CHUNKS: ((93.0, 93.5), (1000.0, 100.0)),
    NAMES: ((64.1, 66.0), (10000.0, 1000.0)),
    QUICK: ((89.0,), (1000.0,)),
}


def passes_words(passes: float, last: float) -> str:
    """Passes to a goal, or how many were not enough."""
    if math.isinf(passes):
        return f"> {last:g}"
    return f"{passes:.0f}" if passes >= 10.0 else f"{passes:.2g}"


def fewer_passes(results: Results) -> Iterator[Finding]:
    """Passes to each goal beside those of every rival, and scores after one pass in pairs."""
    for problem in problems_in(results):
        for whose, every in methods(results, problem):
            found = {entry: runs for entry, runs in every.items() if entry is not TUNED[float(PASSES)]}
            tuned = () if whose == OWN else (PSA_TUNED[1.0],)
            rivals = known(results, problem, (PSA, *tuned, SGD, LBFGS))
            others = known(results, problem, (ASGD, SMD) if whose == OWN else (TUNED[float(PASSES)],))
            for what, goal, name in _goals(results, problem):
                ours, theirs, beside = (
                    {entry: runs.reach(what, goal) for entry, runs in some.items()}
                    for some in (found, rivals, others)
                )
                told = [
                    ", ".join(
                        f"{short(entry)} {passes_words(n, runs[entry].last)}" for entry, n in some.items()
                    )
                    for some, runs in ((ours, found), (theirs, rivals), (beside, others))
                    if some
                ]
                where = f"{CORPORA[problem]}, passes to {name}, {whose}"
                verdict = _fewer(found, rivals, what, goal, whose)
                yield Finding(FEWER, where, "fewer", "; ".join(told), verdict, ("reach.md",))
        yield from _ahead(results, problem)
        yield from _slow(results, problem)


def _goals(results: Results, problem: str) -> Iterator[tuple[str, float, str]]:
    scores, gaps = GOALS[problem]
    yield from ((F1, goal, f"F1 {goal:.1f}") for goal in scores)
    for gap in gaps:
        value = gap_of(results, problem, gap)
        if value is not None:
            yield OBJECTIVE, value, f"F − F* ≤ {gap:,g}"


def _fewer(ours: dict[Entry, Runs], theirs: dict[Entry, Runs], what: str, goal: float, whose: str) -> str:
    """Against all rivals: with fewer than each of them, or with more than one of them."""
    rivals = [runs.reaches(what, goal) for runs in theirs.values()]
    signs = {}
    for entry, runs in ours.items():
        needed = runs.reaches(what, goal)
        fewer = bool(rivals) and all(max(needed) < min(rival) for rival in rivals)
        more = any(min(needed) > max(rival) for rival in rivals)
        signs[entry] = int(fewer) - int(more)
    return surely(signs, whose)


def _ahead(results: Results, problem: str) -> Iterator[Finding]:
    """F1 after a single pass; a window of one step has PSA's ratio, and cannot be ahead of it."""
    tuned = (HELD_OUT, (TUNED[1.0],), PSA_TUNED[1.0])
    for whose, entries, rival in ((OWN, READINGS, PSA), (OWN, READINGS, SGD), tuned):
        theirs = runs_of(results, problem, rival)
        if theirs is None:
            continue
        ours = known(results, problem, entries)
        pairs = {entry: compared(runs, theirs, F1, 1.0) for entry, runs in ours.items()}
        found = {entry: pair for entry, pair in pairs.items() if pair is not None}
        if not found:
            continue
        verdict = surely({entry: pair.sure for entry, pair in found.items()}, whose)
        words = "; ".join(f"{short(entry)} {pair.words('+.3f')}" for entry, pair in found.items())
        where = f"{CORPORA[problem]}, F1 more than {short(rival)} after one pass, {whose}"
        yield Finding(FEWER, where, "better", words, verdict, ("differences.md", "figure3.png"))


def _slow(results: Results, problem: str) -> Iterator[Finding]:
    """Passes of the rivals to the optimum."""
    gap = GOALS[problem][1][-1]
    goal = gap_of(results, problem, gap)
    for rival, least in SLOW:
        runs = runs_of(results, problem, rival)
        if runs is not None and goal is not None:
            passes = runs.reach(OBJECTIVE, goal)
            where = f"{CORPORA[problem]}, {rival.title} to F − F* ≤ {gap:,g}"
            verdict = HOLDS if passes > least else FAILS
            words = f"{passes_words(passes, runs.last)} passes"
            yield Finding(FEWER, where, f"more than {least}", words, verdict, ("reach.md", "figure2.png"))
