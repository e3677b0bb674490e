"""What the paper [1] says, beside what comes out here, with a verdict.

A statement *holds* or *does not hold* by the numbers alone. Where it has two parts, or says how much, it is
*weaker* if only the direction is right, and it is *not settled* where an interval has 0 in it.

References
----------
[1] Y. Cao (2015). Training conditional random fields with natural gradient descent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.figures.base import Results
from bench.figures.natural_gradient.entries import (
    ADAGRAD,
    ARCTAN_1,
    LBFGS,
    NATURAL,
    PA,
    PROBLEMS,
    SGD,
    SIGMOIDS,
    SLOPES,
    U1,
    Entry,
)
from bench.figures.natural_gradient.running import EPOCHS
from bench.figures.natural_gradient.scores import Difference, Runs, compared, problems_in, runs_of
from bench.figures.natural_gradient.seconds import POTENTIALS, against, slowest

__all__ = ["NEAR", "SAME_COST", "Finding", "findings"]

HOLDS, WEAKER, FAILS, UNSETTLED = "holds", "weaker", "does not hold", "not settled"
#: Points of accuracy that are the same, times the seconds of SGD that are, and what a table must save.
NEAR, SAME_COST, MUCH, SOME = 0.02, 1.15, 1.25, 1.02
#: Passes after which L-BFGS is looked at.
SLOW = 10


@dataclass(frozen=True)
class Finding:
    """A line of the table."""

    claim: str
    weights: str
    reported: str
    found: str
    verdict: str


def findings(results: Results) -> list[Finding]:
    """All lines, statement by statement, for each feature set that it was measured on."""
    return [
        line for find in _STATEMENTS for problem in problems_in(results) for line in find(results, problem)
    ]


def _runs(results: Results, problem: str, entries: Sequence[Entry]) -> list[Runs] | None:
    """The runs of some entries, None unless all were run."""
    found = [runs_of(results, problem, entry) for entry in entries]
    known = [runs for runs in found if runs is not None]
    return known if len(known) == len(entries) else None


def _sure(difference: Difference) -> str:
    return {1: HOLDS, 0: UNSETTLED, -1: FAILS}[difference.sure]


def _each_epoch(results: Results, problem: str) -> Iterator[Finding]:
    for entry in (U1, ARCTAN_1):
        found = _runs(results, problem, (entry, SGD))
        if found is None:
            continue
        longest = min(EPOCHS, *(runs.longest for runs in found))
        each = [compared(found[0], found[1], epoch) for epoch in range(1, longest + 1)]
        ahead, sure = sum(d.tokens > 0 for d in each), sum(d.sure > 0 for d in each)
        behind = sum(d.sure < 0 for d in each)
        words = f"mean ahead after {ahead} of {longest} epochs, surely {sure}; surely behind {behind}"
        verdict = HOLDS if 2 * sure > longest else WEAKER if 2 * ahead > longest else FAILS
        claim = f"{entry.title} stays above SGD"
        yield Finding(claim, PROBLEMS[problem], "most of 50 epochs", words, verdict)


def _final(results: Results, problem: str) -> Iterator[Finding]:
    for entry in NATURAL:
        found, paper = _runs(results, problem, (entry,)), entry.paper(problem)
        if found is None or paper is None:
            continue
        mean = found[0].accuracy()[0]
        claim = f"accuracy of {entry.title} at the end"
        verdict = HOLDS if mean >= paper[0] - NEAR else FAILS
        yield Finding(claim, PROBLEMS[problem], f"{paper[0]:.2f}", f"{mean:.3f}", verdict)


def _beats(claim: str, first: Entry, second: Entry) -> Callable[[Results, str], Iterator[Finding]]:
    """A statement that one is better than another at the end."""

    def find(results: Results, problem: str) -> Iterator[Finding]:
        found = _runs(results, problem, (first, second))
        if found is None:
            return
        papers = first.paper(problem), second.paper(problem)
        reported = "" if papers[0] is None or papers[1] is None else f"{papers[0][0] - papers[1][0]:+.2f}"
        difference = compared(found[0], found[1])
        words = f"{difference.points:+.3f}; tokens {difference.words()}"
        yield Finding(claim, PROBLEMS[problem], reported, words, _sure(difference))

    return find


def _sigmoids(results: Results, problem: str) -> Iterator[Finding]:
    found = _runs(results, problem, SIGMOIDS)
    if found is None:
        return
    means = [runs.accuracy()[0] for runs in found]
    apart = max(means) - min(means)
    papers = [paper[0] for entry in SIGMOIDS if (paper := entry.paper(problem)) is not None]
    reported = f"within {max(papers) - min(papers):.2f}"
    verdict = HOLDS if apart <= NEAR else FAILS
    claim = "sigmoids cannot be told apart"
    yield Finding(claim, PROBLEMS[problem], reported, f"within {apart:.3f} at the end", verdict)


def _slopes(results: Results, problem: str) -> Iterator[Finding]:
    n_seeds = min(entry.n_seeds for entry in SLOPES)
    for potential in ("arctan", "erf", "gd"):
        entries = [entry for entry in (*SIGMOIDS, *SLOPES) if entry.slope and entry.slope[0] == potential]
        found = _runs(results, problem, entries)
        if found is None:
            continue
        few = [Runs({seed: row for seed, row in runs.rows.items() if seed <= n_seeds}) for runs in found]
        ends = {
            entry.slope[1]: runs.accuracy(EPOCHS)[0]
            for entry, runs in zip(entries, few, strict=True)
            if entry.slope
        }
        apart = max(ends.values()) - min(ends.values())
        told = ", ".join(f"{ends[slope]:.2f}" for slope in sorted(ends))
        claim = f"slope of {potential} does not matter: about 3, 10, 30"
        reported = "insensitive" if potential == "arctan" else "expected"
        words = f"{told} after epoch {EPOCHS}, within {apart:.3f}"
        best, worst = (choose(few, key=lambda runs: runs.accuracy(EPOCHS)[0]) for choose in (max, min))
        far = FAILS if compared(best, worst, EPOCHS).sure else UNSETTLED
        yield Finding(claim, PROBLEMS[problem], reported, words, HOLDS if apart <= NEAR else far)


def _cost(results: Results, problem: str) -> Iterator[Finding]:
    found = slowest(results, problem)
    if found is not None:
        words = f"at most {found[1]:.2f} times ({found[0]})"
        verdict = HOLDS if found[1] <= SAME_COST else FAILS
        yield Finding("an epoch costs what SGD's does", PROBLEMS[problem], "the same", words, verdict)


def _table(results: Results, problem: str) -> Iterator[Finding]:
    keys = [(entry, f"{entry.key}-exact", f"{entry.key}-table") for entry in POTENTIALS]
    found = [(entry, against(results, problem, exact, table)) for entry, exact, table in keys]
    known = [(entry, ratio) for entry, ratio in found if ratio is not None]
    if known:
        words = ", ".join(f"{entry.title} {ratio:.2f}" for entry, ratio in known)
        best = max(ratio for _, ratio in known)
        verdict = HOLDS if best >= MUCH else WEAKER if best >= SOME else FAILS
        claim = "a table for T saves time: epoch computed / looked up"
        yield Finding(claim, PROBLEMS[problem], "much", words, verdict)


def _lbfgs(results: Results, problem: str) -> Iterator[Finding]:
    found = _runs(results, problem, (LBFGS, SGD))
    if found is None:
        return
    lbfgs, sgd = found
    early = next((value for passes, value in reversed(lbfgs.passes) if passes <= SLOW), None)
    first, last, end = sgd.accuracy(1)[0], sgd.accuracy()[0], lbfgs.accuracy()[0]
    if early is None:
        return
    slow, catches = early < first, end >= last - NEAR
    verdict = HOLDS if slow and catches else WEAKER if slow or catches else FAILS
    words = f"{early:.2f} after {SLOW} passes, SGD {first:.2f} after one; at the end {end:.2f} and {last:.2f}"
    yield Finding(
        "L-BFGS is slow at first and catches up", PROBLEMS[problem], "so in a figure", words, verdict
    )


def _overfits(results: Results, problem: str) -> Iterator[Finding]:
    found = _runs(results, problem, (PA, SGD))
    if found is None:
        return
    training = [runs.final_training for runs in found]
    if training[0] is None or training[1] is None:
        return
    test = [runs.accuracy()[0] for runs in found]
    overfits = training[0] > training[1] and test[0] < test[1]
    words = (
        f"training part {training[0]:.2f}, SGD {training[1]:.2f}; test part {test[0]:.2f}, SGD {test[1]:.2f}"
    )
    yield Finding("PA overfits", PROBLEMS[problem], "so in a figure", words, HOLDS if overfits else FAILS)


_STATEMENTS: tuple[Callable[[Results, str], Iterator[Finding]], ...] = (
    _each_epoch,
    _final,
    _beats(f"{U1.title} is above SGD at the end", U1, SGD),
    _beats(f"{ARCTAN_1.title} is above SGD at the end", ARCTAN_1, SGD),
    _beats("U2 is a little better than U1", ARCTAN_1, U1),
    _sigmoids,
    _slopes,
    _cost,
    _table,
    _lbfgs,
    _overfits,
    _beats("it has second-order information: better than AdaGrad, which has a diagonal", ARCTAN_1, ADAGRAD),
)
