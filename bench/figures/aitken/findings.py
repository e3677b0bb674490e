"""What the paper says, claim by claim, beside what comes out here: all findings, in the order of the claims.

The seconds of a pass and iterative scaling are here; scores and passes have modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.figures.aitken.entries import CORPORA, GAMMAS, PSA, SCOPES, SGD, SGD_STEPS
from bench.figures.aitken.iterating import GAP
from bench.figures.aitken.papers import SECONDS, THEIR_MACHINE
from bench.figures.aitken.pass_findings import fewer_passes
from bench.figures.aitken.scaling import accelerations, maps_in, passes_to_gap, plain_of, row_of
from bench.figures.aitken.score_findings import batches, best_estimate, one_pass, one_pass_of_names, settles
from bench.figures.aitken.seconds import against, seconds, timed_in
from bench.figures.base import Results
from bench.verdicts import FAILS, HOLDS, UNKNOWN, Finding

__all__ = ["ACCELERATED", "COST", "findings"]

COST = "a pass takes as long as PSA's, and is short enough"
ACCELERATED = "accelerated iterative scaling takes fewer passes than plain"
#: Parts of a second that are the same time.
SIMILAR = 1.1


def findings(results: Results) -> list[Finding]:
    """All lines, claim by claim."""
    return [line for statement in _STATEMENTS for line in statement(results)]


def _cost(results: Results) -> Iterator[Finding]:
    for problem in timed_in(results):
        corpus = CORPORA[problem]
        for scope in SCOPES:
            ratios = [against(results, problem, entry, PSA) for entry in GAMMAS[scope]]
            known = [ratio for ratio in ratios if ratio is not None]
            if len(known) == len(ratios):
                theirs = SECONDS.get(problem)
                paper = " / ".join(f"{one / theirs[1]:.2f}" for one in theirs) if theirs else "1.00"
                words = " / ".join(f"{ratio:.2f}" for ratio in known)
                where = f"{corpus}, {scope}, γ1 / γ2 / γ3 in passes of PSA"
                verdict = HOLDS if max(known) <= SIMILAR else FAILS
                yield Finding(COST, where, paper, words, verdict, ("table1.md",))
        yield from _seconds(results, problem)
        sgd = seconds(results, problem, SGD)
        if sgd is not None:
            words = f"crfsgd was not run; our SGD with its schedule takes {sgd:.3f} s"
            yield Finding(COST, f"{corpus}, against crfsgd", "", words, UNKNOWN, ("seconds.md",))


def _seconds(results: Results, problem: str) -> Iterator[Finding]:
    """Against the paper's seconds, on whatever machine this is."""
    asked = {scope: seconds(results, problem, GAMMAS[scope][2]) for scope in SCOPES}
    spent = {scope: value for scope, value in asked.items() if value is not None}
    if problem not in SECONDS or not spent:
        return
    theirs = SECONDS[problem][2]
    words = [f"{scope} {value:.3f} s, {theirs / value:,.0f} times less" for scope, value in spent.items()]
    for entry in (PSA, SGD_STEPS):
        other = seconds(results, problem, entry)
        words += [] if other is None else [f"{entry.title} {other:.3f} s"]
    told = f"{'; '.join(words)}; on one of {results.machine}"
    verdict = HOLDS if max(spent.values()) <= theirs else FAILS
    paper = f"{theirs:,.1f} s on {THEIR_MACHINE}"
    yield Finding(COST, f"{CORPORA[problem]}, seconds with γ3", paper, told, verdict, ("table1.md",))


def _scaling(results: Results) -> Iterator[Finding]:
    """A line for each acceleration, with both maps in it."""
    for problem in dict.fromkeys(problem for problem, _ in maps_in(results)):
        lines: dict[str, list[tuple[float, str]]] = {}
        for name in (name for where, name in maps_in(results) if where == problem):
            plain = row_of(results, problem, plain_of(name))
            for entry, ratio in accelerations(results, problem, name):
                row = row_of(results, problem, entry)
                if row is None or plain is None:
                    continue
                bound, _, how = entry.title.partition(", ")
                saved = f"{ratio:.1f} times fewer" if ratio > 0.0 else "not as far"
                words = f"{bound}: {saved}, {passes_to_gap(row)}; plain {passes_to_gap(plain)}"
                lines.setdefault(how, []).append((ratio, words))
        for how, found in lines.items():
            verdict = HOLDS if all(ratio > 1.0 for ratio, _ in found) else FAILS
            where = f"{CORPORA[problem]}, passes to a gap of {GAP:.0%}, {how}"
            words = ". ".join(words for _, words in found)
            yield Finding(ACCELERATED, where, "yes", words, verdict, ("scaling.md", "scaling.png"))


_STATEMENTS: tuple[Callable[[Results], Iterator[Finding]], ...] = (
    one_pass,
    best_estimate,
    fewer_passes,
    _cost,
    batches,
    one_pass_of_names,
    settles,
    _scaling,
)
