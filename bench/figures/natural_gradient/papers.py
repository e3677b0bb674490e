"""What the paper [1] says, beside what comes out here, with a verdict.

A statement *holds* or *does not hold* by the numbers alone. Where it has two parts, or says how much, the
remark is *weaker* if only the direction is right, and *not settled* where an interval has 0 in it.
`ruling` says so with the numbers. The paper's accuracies (its Table 2) are with the trainers in `entries`.

References
----------
[1] Y. Cao (2015). Training conditional random fields with natural gradient descent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

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
from bench.figures.natural_gradient.scores import END, Difference, Runs, compared, problems_in, runs_of
from bench.figures.natural_gradient.seconds import POTENTIALS, against, slowest
from bench.verdicts import FAILS, HOLDS, UNSETTLED, Finding

__all__ = ["MUCH", "NEAR", "SAME_COST", "SLOW", "SOME", "WEAKER", "findings"]

WEAKER = f"{FAILS} (weaker)"
#: Points of accuracy that are the same, times the seconds of SGD that are, and what a table must save: epochs
#: with the transform computed against looked up, for much and for some.
NEAR, SAME_COST, MUCH, SOME = 0.02, 1.15, 1.25, 1.02
#: Passes after which L-BFGS is looked at.
SLOW = 10


def findings(results: Results) -> list[Finding]:
    """All of them, statement by statement, for each feature set that it was measured on."""
    return [
        line for find in _STATEMENTS for problem in problems_in(results) for line in find(results, problem)
    ]


def _set(problem: str, entry: Entry | None = None) -> str:
    """The feature set, and whose."""
    return f"{PROBLEMS[problem]} set" + ("" if entry is None else f", {entry.title}")


def _figure(problem: str, first: int = 3) -> str:
    """The paper has its figures for the small set and then for the large one."""
    return f"figure{first + list(PROBLEMS).index(problem)}.png"


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
        behind, n_seeds = sum(d.sure < 0 for d in each), min(len(runs.rows) for runs in found)
        words = f"mean ahead after {ahead} of {longest} epochs, surely after {sure}, surely behind after "
        words += f"{behind} ({n_seeds} seeds)"
        verdict = HOLDS if 2 * sure > longest else WEAKER if 2 * ahead > longest else FAILS
        claim = "natural gradients stay above SGD for most of the first epochs"
        shown = (_figure(problem), "differences.md")
        yield Finding(claim, _set(problem, entry), f"most of {EPOCHS} epochs", words, verdict, shown)


def _final(results: Results, problem: str) -> Iterator[Finding]:
    for entry in NATURAL:
        found, paper = _runs(results, problem, (entry,)), entry.paper(problem)
        if found is None or paper is None:
            continue
        mean = found[0].accuracy()[0]
        claim = "natural gradients end with the accuracies of its table"
        verdict = HOLDS if mean >= paper[0] - NEAR else FAILS
        yield Finding(
            claim, _set(problem, entry), f"{paper[0]:.2f}", f"{mean:.3f}", verdict, ("accuracy.md",)
        )


def _beats(
    claim: str, firsts: Sequence[Entry], second: Entry, after: Sequence[int | None] = (END,)
) -> Callable[[Results, str], Iterator[Finding]]:
    """A statement that some are better than another, at the end or after some epochs."""

    def find(results: Results, problem: str) -> Iterator[Finding]:
        for first in firsts:
            found = _runs(results, problem, (first, second))
            if found is None:
                continue
            papers = first.paper(problem), second.paper(problem)
            reported = f"{papers[0][0] - papers[1][0]:+.2f}" if papers[0] and papers[1] else ""
            for epoch in after:
                difference = compared(found[0], found[1], epoch)
                words = f"{difference.points:+.3f}; tokens {difference.words()}"
                look = "at the end" if epoch is END else f"after epoch {epoch}"
                where = _set(problem, first) + (f", {look}" if len(after) > 1 else "")
                yield Finding(claim, where, reported, words, _sure(difference), ("differences.md",))

    return find


def _alike(titled: Sequence[tuple[str, Runs]], epoch: int | None) -> tuple[str, str]:
    """How far some are apart, the pair of which that is surest, and whether they cannot be told apart."""
    means = [runs.accuracy(epoch)[0] for _, runs in titled]
    pairs = [
        (compared(first, second, epoch), f"{one} against {other}")
        for (one, first), (other, second) in permutations(titled, 2)
    ]
    difference, sides = max(pairs, key=lambda pair: pair[0].tokens - pair[0].margin)
    near, sure = max(means) - min(means) <= NEAR, difference.sure > 0
    words = f"within {max(means) - min(means):.3f}; {sides}: tokens {difference.words()}"
    return words, HOLDS if near and not sure else FAILS if sure and not near else UNSETTLED


def _sigmoids(results: Results, problem: str) -> Iterator[Finding]:
    found = _runs(results, problem, SIGMOIDS)
    if found is None:
        return
    papers = [paper[0] for entry in SIGMOIDS if (paper := entry.paper(problem)) is not None]
    reported = f"within {max(papers) - min(papers):.2f}"
    titles = [entry.title for entry in SIGMOIDS]
    words, verdict = _alike(list(zip(titles, found, strict=True)), END)
    claim, shown = "sigmoids cannot be told apart", (_figure(problem, 5), "accuracy.md")
    yield Finding(claim, _set(problem), reported, f"at the end {words}", verdict, shown)


def _slopes(results: Results, problem: str) -> Iterator[Finding]:
    n_seeds = min(entry.n_seeds for entry in SLOPES)
    for potential in ("arctan", "erf", "gd"):
        entries = [entry for entry in (*SIGMOIDS, *SLOPES) if entry.slope and entry.slope[0] == potential]
        found = _runs(results, problem, entries)
        if found is None:
            continue
        few = [Runs({seed: row for seed, row in runs.rows.items() if seed <= n_seeds}) for runs in found]
        slopes = sorted(
            (entry.slope[1], runs) for entry, runs in zip(entries, few, strict=True) if entry.slope
        )
        told = ", ".join(f"{runs.accuracy(EPOCHS)[0]:.2f}" for _, runs in slopes)
        claim = "the slope of a sigmoid does not matter: about 3, 10, 30"
        reported = "insensitive" if potential == "arctan" else "expected"
        alike, verdict = _alike([(f"{slope:.3g}", runs) for slope, runs in slopes], EPOCHS)
        words = f"{told} after epoch {EPOCHS}, {alike}"
        yield Finding(claim, f"{_set(problem)}, {potential}", reported, words, verdict, ("slopes.md",))


def _cost(results: Results, problem: str) -> Iterator[Finding]:
    found = slowest(results, problem)
    if found is not None:
        words = f"of the defaults at most {found[1]:.2f} times ({found[0]})"
        tables = [against(results, problem, f"{entry.key}-table") for entry in POTENTIALS]
        known = [ratio for ratio in tables if ratio is not None]
        words += f"; looked up, as in the paper, at most {max(known):.2f}" if known else ""
        verdict = HOLDS if found[1] <= SAME_COST else FAILS
        claim, shown = "an epoch costs what SGD's does", ("seconds.md", "transform.md")
        yield Finding(claim, _set(problem), "the same, O(d)", words, verdict, shown)


def _table(results: Results, problem: str) -> Iterator[Finding]:
    keys = [(entry, f"{entry.key}-exact", f"{entry.key}-table") for entry in POTENTIALS]
    found = [(entry, against(results, problem, exact, table)) for entry, exact, table in keys]
    known = [(entry, ratio) for entry, ratio in found if ratio is not None]
    if known:
        words = "epoch computed / looked up: "
        words += ", ".join(f"{entry.title} {ratio:.2f}" for entry, ratio in known)
        best = max(ratio for _, ratio in known)
        verdict = HOLDS if best >= MUCH else WEAKER if best >= SOME else FAILS
        claim = "looking the transform up in a table saves much time"
        yield Finding(claim, _set(problem), "much", words, verdict, ("transform.md",))


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
    claim, shown = "L-BFGS is slow at first and catches up", (_figure(problem), "accuracy.md")
    yield Finding(claim, _set(problem), "so in a figure", words, verdict, shown)


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
    verdict, shown = HOLDS if overfits else FAILS, (_figure(problem),)
    yield Finding("PA overfits", _set(problem), "so in a figure", words, verdict, shown)


_STATEMENTS: tuple[Callable[[Results, str], Iterator[Finding]], ...] = (
    _each_epoch,
    _final,
    _beats("natural gradients are above SGD at the end", NATURAL, SGD),
    _beats("U2 is a little better than U1", (ARCTAN_1,), U1),
    _sigmoids,
    _slopes,
    _cost,
    _table,
    _lbfgs,
    _overfits,
    _beats(
        "it has second-order information (our check: it is above AdaGrad, which has a rate for each weight)",
        (ARCTAN_1,),
        ADAGRAD,
        (1, END),
    ),
)
