"""What the paper says, claim by claim, beside what comes out here: all findings, in the order of the claims.

Speed is in `bench.figures.clustered.speed_findings`; accuracy, the policies of the clustering, the ridge and
iterative scaling are here. Where runs were ended before they came to the goal, nothing was measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

from bench.figures.base import Results
from bench.figures.clustered.entries import (
    BFGS,
    CLUSTERED,
    DENSE_CLUSTERED,
    FACTORS,
    FIS,
    IIS,
    METHODS,
    PLAIN,
    ROUNDS,
    SMALL_RIDGE,
    TITLES,
    Policy,
)
from bench.figures.clustered.papers import LARGE_FACTOR, PATCH_UP, ROUNDS_ENOUGH
from bench.figures.clustered.parts import PARTS
from bench.figures.clustered.reading import Function, functions, ratio
from bench.figures.clustered.scoring import F1
from bench.figures.clustered.settling import at_most, settled
from bench.figures.clustered.speed_findings import (
    by_ridge,
    place,
    speed_of_classifiers,
    speed_of_names,
    still_worth,
)
from bench.figures.clustered.trajectories import AFTER, CROSSINGS
from bench.verdicts import FAILS, HOLDS, UNKNOWN, UNSETTLED, Finding

__all__ = ["findings"]

ACCURACY = "same accuracy"
FACTOR = "the size of clusters matters more than how they are made"
ENOUGH = "1 to 3 rounds are enough"
RIDGE = "a small ridge is best for F1, a middle one is slowest"
NEGLIGIBLE = "clustering takes negligible time"
AGGREGATION = "pre-aggregation helps modestly"
SLOW_FIS = "FIS is slower than BFGS"
FEW_STEPS = "few steps on all weights after the clusters"
CROSS = "weights cross more often in names"
FIS_IIS = "faster iterative scaling (FIS) is faster than IIS"

#: F1 is the same within this; clustering is negligible up to this share of the time; a gain from
#: pre-aggregation is modest up to this ratio.
SAME_F1, SMALL_SHARE, MODEST = 0.1, 0.05, 2.0
#: Ways to cluster that differ: a classifier of two labels has a weight for an attribute, and rows are chunks.
WAYS = tuple(method for method in METHODS if method != "rows")
NONE_BETTER, MORE = f"{HOLDS} (none would be better)", f"{FAILS} (more than modest)"
#: Fine steps before the first clustering, with the look at the start.
BEFORE = 6


def findings(results: Results) -> list[Finding]:
    """All lines, claim by claim."""
    return [line for statement in _STATEMENTS for line in statement(results)]


def _accuracy(results: Results) -> Iterator[Finding]:
    for what, shown in (("topic", ("accuracy.md", "figure8-9.png")), ("names", ("names.md", "figure13.png"))):
        for some in by_ridge(functions(results, what)).values():
            ends = [one for one in some if not one.ended(CLUSTERED) and not one.ended(PLAIN)]
            pairs = [[one.median(entry, f"end_{F1}") for entry in (CLUSTERED, PLAIN)] for one in ends]
            differences = [a - b for a, b in pairs if a is not None and b is not None]
            told, verdict = [], UNKNOWN
            if differences:
                worst = max(differences, key=abs)
                told.append(f"largest difference of F1 at the end {worst:+.3f}")
                verdict = at_most(abs(worst), SAME_F1)
            if len(ends) < len(some):
                told.append(f"{len(some) - len(ends)} of {len(some)} ran out of seconds")
            if told:
                yield Finding(ACCURACY, place(some), "the same", "; ".join(told), verdict, shown)
    for one in functions(results, "names"):
        prefix = f"end_{F1}_"
        types = sorted({name for row in one.rows for name in row if name.startswith(prefix)})
        pairs = [[one.median(entry, name) for entry in (CLUSTERED, PLAIN)] for name in types]
        found = {
            name.removeprefix(prefix): a - b
            for name, (a, b) in zip(types, pairs, strict=True)
            if a is not None and b is not None
        }
        if found:
            words = ", ".join(f"{name} {difference:+.3f}" for name, difference in found.items())
            verdict = at_most(max(map(abs, found.values())), SAME_F1)
            where = f"{place([one])}, by type"
            yield Finding(ACCURACY, where, "the same", words, verdict, ("names-types.md",))


def _passes(one: Function, policy: Policy) -> float | None:
    reach = one.reach(policy.entry, unit="passes")
    return None if reach is None or not reach.reached else reach.median


def _spread(values: Sequence[float | None]) -> float | None:
    """Largest against least; None unless all are known."""
    known = [value for value in values if value is not None]
    return max(known) / min(known) if len(known) == len(values) and known else None


def _factor(results: Results) -> Iterator[Finding]:
    for one in functions(results, "policies"):
        factors = [_spread([_passes(one, Policy(m, f)) for f in FACTORS]) for m in WAYS]
        methods = [_spread([_passes(one, Policy(m, f)) for m in WAYS]) for f in FACTORS]
        by_factor, by_method = ([s for s in some if s is not None] for some in (factors, methods))
        words, verdict = "only chunks were run", UNKNOWN
        if by_factor and by_method:
            medians = statistics.median(by_factor), statistics.median(by_method)
            words = f"passes differ {medians[0]:.2f} times by factor, {medians[1]:.2f} times by method"
            verdict = settled(medians[0] / medians[1])
        yield Finding(FACTOR, place([one]), "yes", words, verdict, ("table5.md",))
    for one in functions(results, "policies"):
        found = {factor: _passes(one, Policy(factor=factor, aggregate="false")) for factor in FACTORS}
        known = {factor: passes for factor, passes in found.items() if passes is not None}
        words, verdict = _not_reached(one), UNKNOWN
        if len(known) == len(found):
            words = "passes " + ", ".join(f"{factor}: {passes:.0f}" for factor, passes in known.items())
            others = [passes for factor, passes in known.items() if factor != LARGE_FACTOR]
            verdict = settled(known[LARGE_FACTOR] / max(others))
        where = f"{place([one])}, the slowest size"
        yield Finding(FACTOR, where, str(LARGE_FACTOR), words, verdict, ("table5.md",))


def _not_reached(one: Function) -> str:
    longest = max((row["end_seconds"] for row in one.rows), default=0.0)
    return f"not all came to a gap of 1e-4 within {longest:.0f} s"


def _rounds(results: Results) -> Iterator[Finding]:
    for one in functions(results, "policies"):
        known = {n: _passes(one, Policy(rounds=n)) for n in ROUNDS}
        numbers = {n: value for n, value in known.items() if value is not None}
        plain = one.reach(PLAIN, unit="passes")
        words, verdict = _not_reached(one), UNKNOWN
        if len(numbers) == len(known) and plain is not None:
            words = ", ".join(f"{n}: {value:.0f}" for n, value in numbers.items())
            words = f"passes {words}; plain L-BFGS {plain.words('.0f', '')}"
            fewer = min(numbers[n] for n in ROUNDS[:-1])
            gains = settled(fewer / numbers[ROUNDS[-1]]) == HOLDS
            verdict = FAILS if gains else HOLDS if min(numbers.values()) < plain.median else NONE_BETTER
        paper = f"{ROUNDS_ENOUGH[0]}-{ROUNDS_ENOUGH[1]}"
        yield Finding(ENOUGH, place([one]), paper, words, verdict, ("table2.md",))


def _ridges(results: Results) -> Iterator[Finding]:
    found, shown = functions(results, "sweep"), ("sweep.md", "figure6-7.png")
    for problem in dict.fromkeys(one.problem for one in found):
        some = [one for one in found if one.problem == problem]
        scores = {one.ridge: one.median(PLAIN, f"end_{F1}") for one in some}
        known = {ridge: score for ridge, score in scores.items() if score is not None}
        spent = {one.ridge: one.reach(PLAIN, unit="passes") for one in some}
        least = {
            ridge: reach.at_least
            for ridge, reach in spent.items()
            if reach is not None and reach.at_least is not None
        }
        if not known or len(least) < 3:
            continue
        title, best, slowest = TITLES[problem], *(max(some, key=lambda r: some[r]) for some in (known, least))
        if SMALL_RIDGE in known:
            words = f"{known[SMALL_RIDGE]:.2f} at {SMALL_RIDGE:g}; the best F1 {known[best]:.2f} at {best:g}"
            verdict = at_most(known[best] - known[SMALL_RIDGE], SAME_F1)
            yield Finding(RIDGE, f"{title}, best F1", f"{SMALL_RIDGE:g}", words, verdict, shown)
        sign = "" if (reach := spent[slowest]) is not None and reach.reached else "more than "
        words = f"slowest at {slowest:g}: {sign}{least[slowest]:.0f} passes"
        low, *middle, high = (least[ridge] for ridge in sorted(least))
        verdict = settled(max(middle) / max(low, high))
        yield Finding(RIDGE, f"{title}, slowest", "in the middle", words, verdict, shown)


def _negligible(results: Results) -> Iterator[Finding]:
    for what in ("topic", "names"):
        for some in by_ridge(functions(results, what)).values():
            shares = []
            for one in some:
                spent = [one.median(CLUSTERED, f"{part}_seconds") for part in PARTS]
                known = [seconds for seconds in spent if seconds is not None]
                if len(known) == len(PARTS) and sum(known) > 0:
                    shares.append(known[-1] / sum(known))
            if shares:
                low, high = min(shares), max(shares)
                middle = statistics.median(shares)
                spread = f"{low:.1%} to {high:.1%}, median {middle:.1%}"
                words = f"{spread if len(shares) > 1 else f'{middle:.1%}'} of the seconds"
                verdict = at_most(middle, SMALL_SHARE)
                yield Finding(NEGLIGIBLE, place(some), "negligible", words, verdict, ("table4.md",))


def _aggregation(results: Results) -> Iterator[Finding]:
    """Of the whole training, in which the sums have to be made; coarse runs alone stand beside it."""
    for one in functions(results, "policies"):
        whole, coarse = (_gains(one, column) for column in ("gap4_seconds", "coarse_seconds"))
        if not coarse:
            continue
        words, verdict = _not_reached(one), UNKNOWN
        if len(whole) == len(FACTORS):
            middle = statistics.median(whole)
            words = f"{min(whole):.2f} to {max(whole):.2f} times as fast, median {middle:.2f}"
            verdict = settled(middle) if middle <= MODEST else MORE
        words += f"; coarse runs alone {statistics.median(coarse):.2f}"
        yield Finding(AGGREGATION, place([one]), "modest", words, verdict, ("table5.md",))


def _gains(one: Function, column: str) -> list[float]:
    """How many times as fast runs with pre-aggregation are, by size of clusters, where both are known."""
    pairs = [
        [one.median(Policy(factor=factor, aggregate=on).entry, column) for on in ("true", "false")]
        for factor in FACTORS
    ]
    return [off / on for on, off in pairs if on and off]


def _scaling(results: Results) -> Iterator[Finding]:
    """Seconds to the gap, or the last gaps where nobody of the two came there."""
    for claim, fast, slow in ((SLOW_FIS, BFGS, FIS), (FIS_IIS, FIS, IIS)):
        for one in functions(results, "dense"):
            found = ratio(*(one.reach(entry) for entry in (fast, slow)))
            gaps = [one.median(entry, "end_gap") for entry in (fast, slow)]
            known = [gap for gap in gaps if gap is not None]
            if found is not None:
                words, times = f"{fast.title} {found} times as fast", found.value
            elif len(known) == len(gaps):
                pairs = zip((fast, slow), known, strict=True)
                words = "last gaps: " + ", ".join(f"{entry.title} {gap:.1e}" for entry, gap in pairs)
                times = known[1] / known[0]
            else:
                continue
            verdict = settled(times)
            verdict += "" if verdict == UNSETTLED else " (FIS is our reconstruction)"
            yield Finding(claim, place([one]), "yes", words, verdict, ("table1.md", "figure5.png"))


def _fis(results: Results) -> Iterator[Finding]:
    yield from (line for line in _scaling(results) if line.claim == SLOW_FIS)


def _also(results: Results) -> Iterator[Finding]:
    """What the paper says besides."""
    yield from (line for line in _scaling(results) if line.claim == FIS_IIS)
    for one in functions(results, "dense"):
        steps = one.median(DENSE_CLUSTERED, "fine_steps")
        if steps is not None:
            words = f"{steps - BEFORE:.0f} to the gap and the gradient"
            verdict = f"{HOLDS if steps - BEFORE <= PATCH_UP else FAILS} (here with a ridge)"
            yield Finding(FEW_STEPS, place([one]), f"1-{PATCH_UP}", words, verdict, ("figure5.png",))
    rows = results.where(row=CROSSINGS)
    chains = [row for row in rows if row["problem"].startswith(("conll", "recipes"))]
    others = [row for row in rows if row not in chains]
    if chains and others:
        words = ", ".join(f"{TITLES[row['problem']]} {row['share']:.1%}" for row in rows)
        more = min(row["share"] for row in chains) / max(row["share"] for row in others)
        where = f"pairs whose order has changed since step {AFTER}"
        yield Finding(CROSS, where, "yes", words, settled(more), ("weights.png",))


_STATEMENTS: tuple[Callable[[Results], Iterator[Finding]], ...] = (
    speed_of_classifiers,
    speed_of_names,
    _accuracy,
    _factor,
    _rounds,
    _ridges,
    _negligible,
    _aggregation,
    _fis,
    still_worth,
    _also,
)
