"""What the paper says, claim by claim, beside what comes out here: all findings, in the order of the claims.

The seconds of a pass and iterative scaling are here; scores and passes have modules of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from bench.figures.aitken.entries import CORPORA, GAMMAS, PSA, SCOPES, SGD, SGD_STEPS
from bench.figures.aitken.iterating import GAP
from bench.figures.aitken.maps import Scaling
from bench.figures.aitken.papers import SECONDS, THEIR_MACHINE
from bench.figures.aitken.pass_findings import fewer_passes
from bench.figures.aitken.scaling import accelerations, maps_in, passes_to_gap, plain_of, row_of
from bench.figures.aitken.score_findings import batches, best_estimate, one_pass, one_pass_of_names, settles
from bench.figures.aitken.seconds import against, seconds, timed_in
from bench.figures.base import Results, Row
from bench.verdicts import FAILS, HOLDS, UNKNOWN, Finding

__all__ = ["ACCELERATED", "COST", "SIMILAR", "findings"]

COST = "a pass takes as long as PSA's, and is short enough"
ACCELERATED = "accelerated iterative scaling takes fewer passes than plain"
#: Times the seconds of PSA that are as long.
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
    """A line for each map and goal: the gap that was asked for, and the one where the map alone ends."""
    shown = ("scaling.md", "scaling.png")
    for problem, name in maps_in(results):
        plain = row_of(results, problem, plain_of(name))
        found = {e: ratio for e, ratio in accelerations(results, problem, name) if e.paper}
        rows = {_how(entry): row_of(results, problem, entry) for entry in found}
        if plain is None or not found:
            continue
        where = f"{CORPORA[problem]}, {plain_of(name).title.partition(',')[0]}, {{}}"
        told = [f"{how} {passes_to_gap(row)}" for how, row in rows.items() if row is not None]
        words = f"{'; '.join(told)}; plain {passes_to_gap(plain)}"
        verdict = _to_gap([row for row in rows.values() if row is not None], plain)
        yield Finding(ACCELERATED, where.format(f"to a gap of {GAP:.0%}"), "yes", words, verdict, shown)
        words = "; ".join(f"{_how(e)} {ratio:.1f} times fewer" for e, ratio in found.items())
        verdict = f"{HOLDS} (to plain's last gap)" if min(found.values()) > 1.0 else FAILS
        there = where.format(f"to plain's last gap ({plain['last_gap']:.0%})")
        yield Finding(ACCELERATED, there, "yes", words, verdict, shown)


def _how(entry: Scaling) -> str:
    return entry.title.partition(", ")[2]


def _to_gap(rows: list[Row], plain: Row) -> str:
    """Whether all take fewer passes to the gap than plain; unknown where nobody comes there."""
    if not any(row["reached"] for row in (*rows, plain)):
        return UNKNOWN
    most = plain["reached"] or math.inf
    return HOLDS if all(row["reached"] and row["reached"] < most for row in rows) else FAILS


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
