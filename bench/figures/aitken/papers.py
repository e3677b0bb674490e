"""What the paper [1] says, beside what comes out here, with a verdict.

A statement *holds* or *does not hold* by the numbers alone; a comparison over seeds is *not settled* where
its interval has 0 in it. What the paper says of its method is asked of each reading of it with the paper's
constants, and of the method with constants that were chosen on held-out training sequences. The paper prints
one digit of F1 and two of errors: a number that is short of its own by no more than those digits hide *holds,
rounded*.

References
----------
[1] H.-D. Yang, H.-I. Suk, S.-W. Lee (2012). Accelerating generalized iterative scaling based on staggered
    Aitken method for on-line conditional random fields.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.figures.aitken.entries import (
    ASGD,
    BATCHES,
    CHUNKS,
    COINCIDING,
    CORPORA,
    GAMMAS,
    LBFGS,
    NAMES,
    PASSES,
    PSA,
    PSA_TUNED,
    QUICK,
    READINGS,
    SCOPES,
    SECONDS,
    SGD,
    SMD,
    THEIR_MACHINE,
    TUNED,
    Entry,
)
from bench.figures.aitken.scaling import accelerations, maps_in, times
from bench.figures.aitken.scores import (
    ERROR,
    F1,
    OBJECTIVE,
    TRAIN_F1,
    Runs,
    compared,
    gap_of,
    problems_in,
    runs_of,
)
from bench.figures.aitken.seconds import against, seconds, timed_in
from bench.figures.base import Results
from bench.pairing import Paired

__all__ = [
    "FAILS",
    "GOALS",
    "HOLDS",
    "ROUNDED",
    "SETTLED",
    "TARGETS",
    "Finding",
    "Target",
    "findings",
    "passes_words",
    "targets_on",
    "tuned_for",
]

HOLDS, ROUNDED, FAILS, UNSETTLED = "holds", "holds, rounded", "does not hold", "not settled"
#: Points of F1 that are no change, and the deviation over passes of a run that has settled.
SAME, SETTLED = 0.1, 0.05
#: Parts of a second that are the same time.
SIMILAR = 1.1
#: What passes are counted to: F1 on the test part, and distances from the optimum; the smallest is near it.
GOALS = {
    CHUNKS: ((93.0, 93.5), (1000.0, 100.0)),
    NAMES: ((64.1, 66.0), (10000.0, 1000.0)),
    QUICK: ((89.0,), (1000.0,)),
}


@dataclass(frozen=True)
class Target:
    """A number that the paper has for its method.

    Parameters
    ----------
    problem : str
        The corpus.
    what : str
        What is measured.
    passes : float
        After how many.
    value : float
        The paper's, at least or, of errors, at most.
    words : str
        In words.
    """

    problem: str
    what: str
    passes: float
    value: float
    words: str

    @property
    def printed(self) -> str:
        """The value with the paper's digits."""
        return f"{self.value:.2f}" if self.what == ERROR else f"{self.value:.1f}"

    def met(self, value: float) -> bool:
        """Whether a value is as good, as it is and not rounded."""
        return value <= self.value if self.what == ERROR else value >= self.value

    def rounds(self, value: float) -> bool:
        """Whether it is as good in the digits that the paper prints: one for F1, two for errors."""
        return self.met(round(value, 2 if self.what == ERROR else 1))

    def verdict(self, value: float) -> str:
        """One of three."""
        return HOLDS if self.met(value) else ROUNDED if self.rounds(value) else FAILS


TARGETS = (
    Target(CHUNKS, F1, 0.1, 90.0, "test F1 after 0.1 pass"),
    Target(CHUNKS, F1, 1.0, 93.1, "test F1 after one pass"),
    Target(CHUNKS, F1, 50.0, 93.8, "test F1 at the end"),
    Target(CHUNKS, F1, 50.0, 93.9, "test F1 at the end with batches of 5 or 10"),
    Target(CHUNKS, TRAIN_F1, 0.35, 90.0, "training F1 after 0.35 pass"),
    Target(CHUNKS, TRAIN_F1, 1.0, 93.2, "training F1 after one pass"),
    Target(CHUNKS, ERROR, 1.0, 4.27, "wrong tokens after one pass, %"),
    Target(NAMES, F1, 1.0, 64.1, "test F1 after one pass"),
)


def targets_on(problem: str, what: str = F1) -> list[Target]:
    """Those of a corpus."""
    return [target for target in TARGETS if (target.problem, target.what) == (problem, what)]


def tuned_for(target: Target) -> Entry:
    """The method with the constants for its passes; those for one pass where there are none."""
    return TUNED.get(target.passes, TUNED[1.0])


@dataclass(frozen=True)
class Finding:
    """A line of the table."""

    claim: str
    corpus: str
    reported: str
    found: str
    verdict: str


def findings(results: Results) -> list[Finding]:
    """All lines, statement by statement, for each corpus that it was measured on."""
    lines = [
        line for find in _STATEMENTS for problem in problems_in(results) for line in find(results, problem)
    ]
    return [*lines, *_cost(results), *_scaling(results)]


def _readings(results: Results, problem: str, least: int = 1) -> Iterator[tuple[Entry, Runs]]:
    """Those with runs of so many passes."""
    for entry in (*READINGS, *TUNED.values()):
        runs = runs_of(results, problem, entry) if entry.most >= least else None
        if runs is not None:
            yield entry, runs


def _verdict(holds: bool) -> str:
    return HOLDS if holds else FAILS


def _sure(difference: Paired) -> str:
    return {1: HOLDS, 0: UNSETTLED, -1: FAILS}[difference.sure]


def passes_words(passes: float, last: float) -> str:
    """Passes to a goal, or how many were not enough."""
    return f"> {last:g}" if math.isinf(passes) else f"{passes:.2g}"


def _reached(results: Results, problem: str) -> Iterator[Finding]:
    """The paper's numbers of its method; what rivals have stands beside them."""
    for target in (target for target in TARGETS if target.problem == problem):
        rivals = []
        for entry in (PSA, SGD, ASGD):
            runs = runs_of(results, problem, entry)
            mean = None if runs is None else runs.mean(target.what, target.passes)
            rivals += [] if mean is None else [f"{entry.title} {mean[0]:.2f}"]
        for entry, runs in _readings(results, problem):
            mean = runs.mean(target.what, target.passes)
            if mean is None or (entry.grid and entry is not tuned_for(target)):
                continue
            words = f"{mean[0]:.3f}, {runs.n_words(target.what, target.passes)}"
            words += f" ({', '.join(rivals)})" if rivals else ""
            claim = f"{target.words}: {entry.title}"
            yield Finding(claim, CORPORA[problem], target.printed, words, target.verdict(mean[0]))


def _settles(results: Results, problem: str) -> Iterator[Finding]:
    for entry, runs in _readings(results, problem):
        ends = [runs.mean(what, passes) for what in (F1, OBJECTIVE) for passes in (4, 50)]
        if any(end is None for end in ends):
            continue
        early, late, before, after = (end[0] for end in ends if end is not None)
        words = f"F1 {early:.2f} and {late:.2f}, objective {before:,.0f} and {after:,.0f}"
        verdict = _verdict(abs(late - early) <= SAME and before <= 1.01 * after)
        claim = f"nothing changes from 4 to 50 passes: {entry.title}"
        yield Finding(claim, CORPORA[problem], "negligible", words, verdict)


def _gammas(results: Results, problem: str) -> Iterator[Finding]:
    for scope in SCOPES:
        runs = [runs_of(results, problem, entry) for entry in GAMMAS[scope]]
        if runs[2] is None:
            continue
        for number in (1, 2):
            other = runs[number - 1]
            if other is None:
                continue
            for passes, after in ((1.0, "one pass"), (50.0, "50 passes")):
                difference = compared(runs[2], other, F1, passes)
                if difference is not None:
                    claim = f"γ3 above γ{number} after {after}: {scope}"
                    words = f"F1 {difference.words('+.3f')}"
                    yield Finding(claim, CORPORA[problem], "slightly", words, _sure(difference))


def _faster(results: Results, problem: str) -> Iterator[Finding]:
    """Passes to each goal against those of every rival; it must be faster to all of them."""
    scores, gaps = GOALS[problem]
    goals = [(F1, goal, f"F1 {goal:g}") for goal in scores]
    for gap in gaps:
        value = gap_of(results, problem, gap)
        goals += [] if value is None else [(OBJECTIVE, value, f"gap {gap:,g}")]
    for entry, runs in _readings(results, problem, PASSES):
        psa = PSA_TUNED[1.0] if entry.grid else PSA
        for rival, reported in ((psa, "slightly"), (SGD, "yes"), (LBFGS, "yes"), (ASGD, ""), (SMD, "")):
            theirs = runs_of(results, problem, rival)
            if theirs is None:
                continue
            words, wins, losses = [], 0, 0
            for what, goal, name in goals:
                ours, other = runs.reach(what, goal), theirs.reach(what, goal)
                words.append(f"{name}: {passes_words(ours, runs.last)} / {passes_words(other, theirs.last)}")
                wins, losses = wins + (ours < other), losses + (ours > other)
            verdict = FAILS if losses else HOLDS if wins else UNSETTLED
            claim = f"fewer passes than {rival.title}: {entry.title}"
            yield Finding(claim, CORPORA[problem], reported, "; ".join(words), verdict)


def _slow_rivals(results: Results, problem: str) -> Iterator[Finding]:
    goal = gap_of(results, problem, GOALS[problem][1][-1])
    if goal is None:
        return
    for rival, least in ((SGD, 20), (LBFGS, 50)):
        runs = runs_of(results, problem, rival)
        if runs is not None:
            passes = runs.reach(OBJECTIVE, goal)
            words = f"{passes_words(passes, runs.last)} to gap {GOALS[problem][1][-1]:,g}"
            claim = f"passes of {rival.title} to the optimum"
            yield Finding(claim, CORPORA[problem], f"more than {least}", words, _verdict(passes > least))


def _batches(results: Results, problem: str) -> Iterator[Finding]:
    for scope in SCOPES:
        runs = {size: runs_of(results, problem, entry) for size, entry in BATCHES[scope].items()}
        for passes, claim, reported, best in (
            (0.1, "larger batches rise faster", "50", (50,)),
            (50.0, "batches of 5 and 10 end highest", "93.9", (5, 10)),
        ):
            means = {size: each.mean(F1, passes) for size, each in runs.items() if each is not None}
            known = {size: mean[0] for size, mean in means.items() if mean is not None}
            if len(known) < len(runs):
                continue
            words = ", ".join(f"{size}: {mean:.2f}" for size, mean in known.items())
            verdict = _verdict(max(known, key=lambda size: known[size]) in best)
            yield Finding(
                f"{claim}: {scope}", CORPORA[problem], reported, f"{words} after {passes:g}", verdict
            )


def _oscillates(results: Results, problem: str) -> Iterator[Finding]:
    """A method that does not oscillate has settled, and one that does has not."""
    sgd = runs_of(results, problem, SGD)
    asked = [("oscillates", SGD, sgd)] if sgd is not None else []
    asked += [("does not oscillate", *found) for found in _readings(results, problem, PASSES)]
    for what, entry, runs in asked:
        if runs.oscillation is None:
            continue
        words = f"F1 deviates by {runs.oscillation:.3f} over the last ten passes; settled: {SETTLED:g}"
        holds = (runs.oscillation <= SETTLED) == (entry is not SGD)
        claim = f"{what} at the end: {entry.title}"
        yield Finding(claim, CORPORA[problem], "so in figures", words, _verdict(holds))


def _coincides(results: Results, problem: str) -> Iterator[Finding]:
    """What follows from the method, and what the paper leaves out: a window of one step is PSA."""
    window, psa = (runs_of(results, problem, entry) for entry in (COINCIDING, PSA))
    if window is None or psa is None:
        return
    for passes, after in ((1.0, "one pass"), (50.0, "50 passes")):
        difference = compared(window, psa, F1, passes)
        if difference is not None:
            claim = f"above PSA after {after}: {COINCIDING.title}"
            words = f"F1 {difference.words('+.3f')}; the same ratio where it is positive"
            yield Finding(claim, CORPORA[problem], "slightly", words, _sure(difference))


def _cost(results: Results) -> Iterator[Finding]:
    for problem in timed_in(results):
        for scope in SCOPES:
            ratios = [against(results, problem, entry, PSA) for entry in GAMMAS[scope]]
            known = [ratio for ratio in ratios if ratio is not None]
            if len(known) == len(ratios):
                words = " / ".join(f"{ratio:.2f}" for ratio in known) + " times PSA's"
                claim = f"a pass takes what PSA's takes: γ1, γ2, γ3, {scope}"
                yield Finding(claim, CORPORA[problem], "1.00", words, _verdict(max(known) <= SIMILAR))
            spent = seconds(results, problem, GAMMAS[scope][2])
            if spent is not None and problem in SECONDS:
                theirs = SECONDS[problem][2]
                claim = f"seconds of a pass: γ3, {scope}"
                words = f"{spent:.3f} s on one of {results.machine}, {theirs / spent:,.0f} times less"
                reported = f"{theirs:,.0f} s on {THEIR_MACHINE}"
                yield Finding(claim, CORPORA[problem], reported, words, _verdict(spent <= theirs))


def _scaling(results: Results) -> Iterator[Finding]:
    for problem, name in maps_in(results):
        for entry, ratio in accelerations(results, problem, name):
            claim = f"acceleration saves passes: {entry.title}"
            words = times(results, problem, entry, ratio)
            yield Finding(claim, CORPORA[problem], "yes", words, _verdict(ratio > 1.0))


_STATEMENTS: tuple[Callable[[Results, str], Iterator[Finding]], ...] = (
    _reached,
    _settles,
    _gammas,
    _faster,
    _slow_rivals,
    _batches,
    _oscillates,
    _coincides,
)
