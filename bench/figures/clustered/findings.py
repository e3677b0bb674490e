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
from bench.figures.clustered.speed_findings import (
    by_ridge,
    place,
    speed_of_classifiers,
    speed_of_names,
    still_worth,
)
from bench.figures.clustered.trajectories import AFTER, CROSSINGS
from bench.verdicts import FAILS, HOLDS, UNKNOWN, Finding

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
#: pre-aggregation is modest up to this ratio; ridges up to this times the paper's are small.
SAME_F1, SMALL_SHARE, MODEST, AS_SMALL = 0.1, 0.05, 2.0, 10.0
#: Fine steps before the first clustering, with the look at the start.
BEFORE = 6


def findings(results: Results) -> list[Finding]:
    """All lines, claim by claim."""
    return [line for statement in _STATEMENTS for line in statement(results)]


def _verdict(holds: bool) -> str:
    return HOLDS if holds else FAILS


def _accuracy(results: Results) -> Iterator[Finding]:
    for what, shown in (("topic", ("figure8-9.png",)), ("names", ("names.md", "figure13.png"))):
        for some in by_ridge(functions(results, what)).values():
            pairs = [[one.median(entry, f"end_{F1}") for entry in (CLUSTERED, PLAIN)] for one in some]
            differences = [a - b for a, b in pairs if a is not None and b is not None]
            if differences:
                worst = max(differences, key=abs)
                words = f"largest difference of F1 at the end {worst:+.3f}"
                verdict = _verdict(abs(worst) <= SAME_F1)
                yield Finding(ACCURACY, place(some), f"within {SAME_F1:g}", words, verdict, shown)
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
            verdict = _verdict(max(map(abs, found.values())) <= SAME_F1)
            where = f"{place([one])}, by type"
            yield Finding(ACCURACY, where, f"within {SAME_F1:g}", words, verdict, ("names-types.md",))


def _passes(one: Function, policy: Policy) -> float | None:
    reach = one.reach(policy.entry, unit="passes")
    return None if reach is None or not reach.reached else reach.median


def _spread(values: Sequence[float | None]) -> float | None:
    """Largest against least; None unless all are known."""
    known = [value for value in values if value is not None]
    return max(known) / min(known) if len(known) == len(values) and known else None


def _factor(results: Results) -> Iterator[Finding]:
    for one in functions(results, "policies"):
        factors = [_spread([_passes(one, Policy(m, f)) for f in FACTORS]) for m in METHODS]
        methods = [_spread([_passes(one, Policy(m, f)) for m in METHODS]) for f in FACTORS]
        by_factor, by_method = ([s for s in some if s is not None] for some in (factors, methods))
        words, verdict = "only chunks were run", UNKNOWN
        if by_factor and by_method:
            medians = statistics.median(by_factor), statistics.median(by_method)
            words = f"passes differ {medians[0]:.2f} times by factor, {medians[1]:.2f} times by method"
            verdict = _verdict(medians[0] > medians[1])
        yield Finding(FACTOR, place([one]), "yes", words, verdict, ("table5.md",))
    for one in functions(results, "policies"):
        found = {factor: _passes(one, Policy(factor=factor, aggregate="false")) for factor in FACTORS}
        known = {factor: passes for factor, passes in found.items() if passes is not None}
        words, verdict = _not_reached(one), UNKNOWN
        if len(known) == len(found):
            words = "passes " + ", ".join(f"{factor}: {passes:.0f}" for factor, passes in known.items())
            verdict = _verdict(max(known, key=lambda factor: known[factor]) == LARGE_FACTOR)
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
            verdict = _verdict(min(numbers[n] for n in ROUNDS[:-1]) <= numbers[ROUNDS[-1]])
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
        if not known or not least:
            continue
        ridges, title = sorted(known), TITLES[problem]
        best, slowest = max(known, key=lambda r: known[r]), max(least, key=lambda r: least[r])
        words = f"best F1 {known[best]:.2f} at {best:g}; {known[ridges[0]]:.2f} at {ridges[0]:g}"
        small = best <= AS_SMALL * SMALL_RIDGE
        yield Finding(RIDGE, f"{title}, best F1", f"{SMALL_RIDGE:g}", words, _verdict(small), shown)
        sign = "" if (reach := spent[slowest]) is not None and reach.reached else "more than "
        words = f"slowest at {slowest:g}: {sign}{least[slowest]:.0f} passes"
        middle = ridges[0] < slowest < ridges[-1]
        yield Finding(RIDGE, f"{title}, slowest", "in the middle", words, _verdict(middle), shown)


def _negligible(results: Results) -> Iterator[Finding]:
    for what, shown in (("topic", ("table4.md",)), ("names", ())):
        for some in by_ridge(functions(results, what)).values():
            shares = []
            for one in some:
                spent = [one.median(CLUSTERED, f"{part}_seconds") for part in PARTS]
                known = [seconds for seconds in spent if seconds is not None]
                if len(known) == len(PARTS) and sum(known) > 0:
                    shares.append(known[-1] / sum(known))
            if shares:
                low, high = min(shares), max(shares)
                words = f"{high:.1%}" if len(shares) == 1 else f"{low:.1%} to {high:.1%}"
                verdict = _verdict(statistics.median(shares) <= SMALL_SHARE)
                paper = f"negligible (≤ {SMALL_SHARE:.0%})"
                yield Finding(NEGLIGIBLE, place(some), paper, f"{words} of the seconds", verdict, shown)


def _aggregation(results: Results) -> Iterator[Finding]:
    for one in functions(results, "policies"):
        ratios = []
        for factor in FACTORS:
            on, off = (
                one.median(Policy(factor=factor, aggregate=aggregate).entry, "coarse_seconds")
                for aggregate in ("true", "false")
            )
            if on and off:
                ratios.append(off / on)
        if ratios:
            middle = statistics.median(ratios)
            words = f"coarse runs {min(ratios):.2f} to {max(ratios):.2f} times as fast, median {middle:.2f}"
            verdict = _verdict(1.0 <= middle <= MODEST)
            yield Finding(AGGREGATION, place([one]), "modest", words, verdict, ("table5.md",))


def _scaling(results: Results) -> Iterator[Finding]:
    """Seconds to the gap, or the last gaps where nobody of the two came there."""
    for claim, fast, slow in ((SLOW_FIS, BFGS, FIS), (FIS_IIS, FIS, IIS)):
        for one in functions(results, "dense"):
            found = ratio(*(one.reach(entry) for entry in (fast, slow)))
            gaps = [one.median(entry, "end_gap") for entry in (fast, slow)]
            known = [gap for gap in gaps if gap is not None]
            if found is not None:
                words, holds = f"{fast.title} {found} times as fast", found.value > 1.0
            elif len(known) == len(gaps):
                pairs = zip((fast, slow), known, strict=True)
                words = "last gaps: " + ", ".join(f"{entry.title} {gap:.1e}" for entry, gap in pairs)
                holds = known[0] < known[1]
            else:
                continue
            yield Finding(claim, place([one]), "yes", words, _verdict(holds), ("table1.md", "figure5.png"))


def _fis(results: Results) -> Iterator[Finding]:
    yield from (line for line in _scaling(results) if line.claim == SLOW_FIS)


def _also(results: Results) -> Iterator[Finding]:
    """What the paper says besides."""
    yield from (line for line in _scaling(results) if line.claim == FIS_IIS)
    for one in functions(results, "dense"):
        steps = one.median(DENSE_CLUSTERED, "fine_steps")
        if steps is not None:
            words = f"{steps - BEFORE:.0f} to the gap and the gradient"
            verdict = _verdict(steps - BEFORE <= PATCH_UP)
            yield Finding(FEW_STEPS, place([one]), f"1-{PATCH_UP}", words, verdict, ("figure5.png",))
    rows = results.where(row=CROSSINGS)
    chains = [row for row in rows if row["problem"].startswith(("conll", "recipes"))]
    others = [row for row in rows if row not in chains]
    if chains and others:
        words = ", ".join(f"{TITLES[row['problem']]} {row['share']:.1%}" for row in rows)
        more = min(row["share"] for row in chains) > max(row["share"] for row in others)
        where = f"pairs whose order has changed since step {AFTER}"
        yield Finding(CROSS, where, "yes", words, _verdict(more), ("weights.png",))


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
