"""What the paper reports [1], beside what comes out here, with a verdict that follows from the numbers.

A ratio *holds* where our median is at least the least that the paper says, is *weaker* where it is above 1,
and *does not hold* otherwise. Passes are the same on every machine, seconds are not: both are told, and the
verdict is that of seconds unless it says otherwise.

References
----------
[1] A. Mathur, S. Chakrabarti (2006). Accelerating Newton optimization for log-linear models through feature
    redundancy. ICDM, 404-413.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.figures.base import Results
from bench.figures.clustered.entries import (
    AFFINE,
    BFGS,
    CLUSTERED,
    CLUSTERED_FIVE,
    DENSE_CLUSTERED,
    DIAGONAL,
    FACTORS,
    FIFTY,
    FIS,
    FIVE,
    IIS,
    METHODS,
    NEWTON,
    PLAIN,
    ROUNDS,
    SCIPY,
    TITLES,
    Entry,
    Policy,
)
from bench.figures.clustered.parts import PARTS
from bench.figures.clustered.reading import Function, Ratio, functions, ratio
from bench.figures.clustered.scoring import F1
from bench.figures.clustered.trajectories import AFTER, CROSSINGS

__all__ = ["FAILS", "HOLDS", "UNKNOWN", "WEAKER", "Finding", "findings", "speed_ups"]

HOLDS, WEAKER, FAILS, UNKNOWN = "holds", "weaker", "does not hold", "not known"
#: F1 is the same within this; clustering is negligible below this share of the time; a gain from
#: pre-aggregation is modest up to this ratio.
SAME_F1, NEGLIGIBLE, MODEST = 0.1, 0.05, 2.0
#: Fine steps before the first clustering, with the look at the start.
BEFORE = 6


@dataclass(frozen=True)
class Finding:
    """A line of the table."""

    claim: str
    where: str
    reported: str
    found: str
    verdict: str


def findings(results: Results) -> list[Finding]:
    """All lines, claim by claim."""
    return [line for statement in _STATEMENTS for line in statement(results)]


def speed_ups(
    some: Sequence[Function], fast: Entry, slow: Entry, unit: str = "seconds", goal: str = "gap4"
) -> list[Ratio]:
    """How many times as fast one entry is as another, on the functions where that is known."""
    found = [ratio(one.reach(fast, goal, unit), one.reach(slow, goal, unit)) for one in some]
    return [one for one in found if one is not None]


def _told(ratios: Sequence[Ratio]) -> str:
    """Least, median and largest; one alone is itself."""
    if not ratios:
        return "not reached"
    if len(ratios) == 1:
        return str(ratios[0])
    ordered = sorted(ratios, key=lambda one: one.value)
    middle = statistics.median(one.value for one in ordered)
    return f"{ordered[0]} to {ordered[-1]}, median {middle:.2f}"


def _verdict(ratios: Sequence[Ratio], least: float) -> str:
    if not ratios:
        return UNKNOWN
    middle = statistics.median(one.value for one in ratios)
    return HOLDS if middle >= least else WEAKER if middle > 1.0 else FAILS


def _by_ridge(some: Sequence[Function]) -> dict[float, list[Function]]:
    ridges: dict[float, list[Function]] = {}
    for one in some:
        ridges.setdefault(one.ridge, []).append(one)
    return ridges


def _speed(results: Results, what: str, claim: str, reported: str) -> Iterator[Finding]:
    """Clustered against plain L-BFGS, a line for each ridge, gap and form of the coarse space."""
    for ridge, some in _by_ridge(functions(results, what)).items():
        where = f"{len(some)} functions" if len(some) > 1 else TITLES[some[0].problem]
        for goal, gap in (("gap4", "gap 1e-4"), ("gap2", "gap 1e-2")):
            for entry, plain in ((CLUSTERED, PLAIN), (AFFINE, PLAIN), (CLUSTERED_FIVE, FIVE)):
                if not any(one.runs(entry) for one in some):
                    continue
                seconds, passes = (
                    speed_ups(some, entry, plain, unit, goal) for unit in ("seconds", "passes")
                )
                words = f"{_told(seconds)}; passes {_told(passes)}"
                if len(seconds) < len(some):
                    words += f"; {len(some) - len(seconds)} of {len(some)} reached by neither"
                name = "" if entry is CLUSTERED else f": {entry.title} against {plain.title}"
                place = f"{where}, ridge {ridge:g}, {gap}"
                yield Finding(f"{claim}{name}", place, reported, words, _verdict(seconds, 2.0))


def _classifiers(results: Results) -> Iterator[Finding]:
    yield from _speed(results, "topic", "classifiers: times as fast as L-BFGS", "2-9")


def _all_ridges(results: Results) -> Iterator[Finding]:
    some = functions(results, "sweep")
    if some:
        seconds, passes = (speed_ups(some, CLUSTERED, PLAIN, unit) for unit in ("seconds", "passes"))
        at_least_two = sum(one.value >= 2.0 for one in seconds)
        words = f"{_told(seconds)}; passes {_told(passes)}; 2 or more on {at_least_two} of {len(some)}"
        where = f"{len({one.problem for one in some})} topics, {len(_by_ridge(some))} ridges"
        yield Finding("classifiers: times as fast as L-BFGS", where, "2-9", words, _verdict(seconds, 2.0))


def _names(results: Results) -> Iterator[Finding]:
    yield from _speed(results, "names", "names: times as fast as L-BFGS", "2")


def _same_accuracy(results: Results) -> Iterator[Finding]:
    for what in ("topic", "names"):
        for ridge, some in _by_ridge(functions(results, what)).items():
            pairs = [[one.median(entry, f"end_{F1}") for entry in (CLUSTERED, PLAIN)] for one in some]
            differences = [a - b for a, b in pairs if a is not None and b is not None]
            if differences:
                worst = max(differences, key=abs)
                words = f"largest difference of F1 at the end {worst:+.2f}"
                where = f"{what}, ridge {ridge:g}"
                verdict = HOLDS if abs(worst) <= SAME_F1 else FAILS
                yield Finding("same accuracy", where, f"within {SAME_F1:g}", words, verdict)


def _passes(one: Function, policy: Policy) -> float | None:
    reach = one.reach(policy.entry, unit="passes")
    return None if reach is None or not reach.reached else reach.median


def _spread(values: Sequence[float | None]) -> float | None:
    """Largest against least; None unless all are known."""
    known = [value for value in values if value is not None]
    return max(known) / min(known) if len(known) == len(values) and known else None


def _factor_or_method(results: Results) -> Iterator[Finding]:
    for one in functions(results, "policies"):
        factors = [_spread([_passes(one, Policy(m, f)) for f in FACTORS]) for m in METHODS]
        methods = [_spread([_passes(one, Policy(m, f)) for m in METHODS]) for f in FACTORS]
        by_factor, by_method = ([s for s in some if s is not None] for some in (factors, methods))
        if by_factor and by_method:
            medians = statistics.median(by_factor), statistics.median(by_method)
            words = f"passes differ {medians[0]:.2f} times by factor, {medians[1]:.2f} times by method"
            yield Finding(
                "the factor matters more than the method",
                _where(one),
                "yes",
                words,
                HOLDS if medians[0] > medians[1] else FAILS,
            )


def _where(one: Function) -> str:
    return f"{TITLES[one.problem]}, ridge {one.ridge:g}"


def _large_factor(results: Results) -> Iterator[Finding]:
    for one in functions(results, "policies"):
        found = {factor: _passes(one, Policy(factor=factor, aggregate="false")) for factor in FACTORS}
        known = {factor: passes for factor, passes in found.items() if passes is not None}
        if len(known) == len(found):
            words = ", ".join(f"{factor}: {passes:.0f}" for factor, passes in known.items())
            worst = max(known, key=lambda factor: known[factor]) == max(FACTORS)
            claim = f"a factor of {max(FACTORS)} is too large"
            yield Finding(claim, _where(one), "yes", f"passes {words}", HOLDS if worst else FAILS)


def _rounds(results: Results) -> Iterator[Finding]:
    for one in functions(results, "policies"):
        known = [_passes(one, Policy(rounds=n)) for n in ROUNDS]
        plain = one.reach(PLAIN, unit="passes")
        if None in known or plain is None:
            continue
        numbers = [value for value in known if value is not None]
        words = ", ".join(f"{n}: {value:.0f}" for n, value in zip(ROUNDS, numbers, strict=True))
        words = f"passes {words}; none: {plain.words('.0f', '')}"
        enough = min(numbers[:2]) <= numbers[2]
        yield Finding("rounds 1 to 3 are enough", _where(one), "1-3", words, HOLDS if enough else FAILS)


def _ridges(results: Results) -> Iterator[Finding]:
    found = functions(results, "sweep")
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
        verdict = HOLDS if best <= 1e-6 else FAILS
        yield Finding("a small ridge is best for F1", title, "1e-7", words, verdict)
        sign = "" if (reach := spent[slowest]) is not None and reach.reached else "more than "
        words = f"slowest at {slowest:g}: {sign}{least[slowest]:.0f} passes"
        verdict = HOLDS if ridges[0] < slowest < ridges[-1] else FAILS
        yield Finding("a middle ridge is slowest", title, "yes", words, verdict)


def _negligible(results: Results) -> Iterator[Finding]:
    for what in ("topic", "names"):
        for ridge, some in _by_ridge(functions(results, what)).items():
            shares = []
            for one in some:
                spent = [one.median(CLUSTERED, f"{part}_seconds") for part in PARTS]
                known = [seconds for seconds in spent if seconds is not None]
                if len(known) == len(PARTS) and sum(known) > 0:
                    shares.append(known[-1] / sum(known))
            if shares:
                words = f"{min(shares):.0%} to {max(shares):.0%} of the seconds"
                verdict = HOLDS if statistics.median(shares) <= NEGLIGIBLE else FAILS
                where = f"{what}, ridge {ridge:g}"
                yield Finding("clustering takes negligible time", where, "yes", words, verdict)


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
            words = f"coarse runs {min(ratios):.2f} to {max(ratios):.2f} times as fast with it"
            middle = statistics.median(ratios)
            verdict = HOLDS if 1.0 <= middle <= MODEST else FAILS
            yield Finding("pre-aggregation helps modestly", _where(one), "modest", words, verdict)


def _scaling(results: Results) -> Iterator[Finding]:
    for one in functions(results, "dense"):
        for claim, fast, slow in (
            ("FIS is slower than BFGS", BFGS, FIS),
            ("FIS is faster than IIS", FIS, IIS),
        ):
            reaches = [one.reach(entry) for entry in (fast, slow)]
            found = ratio(*reaches)
            words = f"{found} times as fast"
            if found is None:
                gaps = [one.median(entry, "end_gap") for entry in (fast, slow)]
                if None in gaps:
                    continue
                words = "last gaps " + ", ".join(f"{gap:.1e}" for gap in gaps if gap is not None)
                holds = (gaps[0] or 0.0) < (gaps[1] or 0.0)
            else:
                holds = found.value > 1.0
            yield Finding(claim, _where(one), "yes", words, HOLDS if holds else FAILS)


def _patch_up(results: Results) -> Iterator[Finding]:
    for one in functions(results, "dense"):
        steps = one.median(DENSE_CLUSTERED, "fine_steps")
        if steps is not None:
            after = steps - BEFORE
            words = f"{after:.0f} to the gap and the gradient"
            claim = "steps on all weights after the clusters"
            yield Finding(claim, _where(one), "1-2", words, HOLDS if after <= 2 else FAILS)


def _crossings(results: Results) -> Iterator[Finding]:
    rows = results.where(row=CROSSINGS)
    chains = [row for row in rows if row["problem"].startswith(("conll", "recipes"))]
    others = [row for row in rows if row not in chains]
    if chains and others:
        words = ", ".join(f"{TITLES[row['problem']]}: {row['share']:.1%}" for row in rows)
        more = min(row["share"] for row in chains) > max(row["share"] for row in others)
        claim = f"weights cross more often in names (pairs turned since step {AFTER})"
        yield Finding(claim, "L-BFGS", "yes", words, HOLDS if more else FAILS)


def _still_worth(results: Results) -> Iterator[Finding]:
    """Clustered L-BFGS against what else makes the problem easier; no claim of the paper."""
    for what in ("topic", "names"):
        for ridge, some in _by_ridge(functions(results, what)).items():
            for rival in (FIFTY, DIAGONAL, NEWTON, SCIPY):
                seconds = speed_ups(some, CLUSTERED, rival)
                if not any(one.runs(rival) for one in some) or not seconds:
                    continue
                passes = speed_ups(some, CLUSTERED, rival, "passes")
                words = f"{_told(seconds)}; passes {_told(passes)}"
                claim = f"still worth it: times as fast as {rival.title}"
                where = f"{what}, ridge {ridge:g}"
                yield Finding(claim, where, "", words, _verdict(seconds, 1.0))


_STATEMENTS: tuple[Callable[[Results], Iterator[Finding]], ...] = (
    _classifiers,
    _all_ridges,
    _names,
    _same_accuracy,
    _factor_or_method,
    _large_factor,
    _rounds,
    _ridges,
    _negligible,
    _aggregation,
    _scaling,
    _patch_up,
    _crossings,
    _still_worth,
)
