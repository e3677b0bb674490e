"""How many times as fast clustered L-BFGS is: as plain L-BFGS, the paper's claim, and as others today.

A ratio *holds* where our median is at least the least that the paper says, is *weaker* where it is surely
above 1, and *does not hold* otherwise; where nobody came to the goal nothing was measured. Passes are the
same on every machine, seconds are not: both are told, and the verdict is that of seconds.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from bench.figures.base import Results
from bench.figures.clustered.entries import (
    AFFINE,
    CLUSTERED,
    CLUSTERED_FIVE,
    DIAGONAL,
    FIFTY,
    FIVE,
    NEWTON,
    PLAIN,
    SCIPY,
    TITLES,
    Entry,
)
from bench.figures.clustered.papers import NAMES_SPEED, SPEED
from bench.figures.clustered.reading import Function, Ratio, functions, numbers, ratio
from bench.figures.clustered.running import GRAD_INF
from bench.figures.clustered.scoring import F1
from bench.figures.clustered.settling import settled
from bench.verdicts import FAILS, HOLDS, UNKNOWN, Finding

__all__ = [
    "CLASSIFIERS",
    "NAMES",
    "NEAR_F1",
    "WORTH",
    "by_ridge",
    "place",
    "speed_of_classifiers",
    "speed_of_names",
    "still_worth",
]

CLASSIFIERS = "classifiers: 2 to 9 times as fast as L-BFGS"
NAMES = "names: twice as fast as L-BFGS"
WORTH = "worth it beside what else makes the problem easier (our question)"

WEAKER = f"{FAILS} (weaker)"
#: Where runs are compared: goals by their names in the rows.
_GOALS = {"gap4": "gap 1e-4", "grad": f"gradient {GRAD_INF:g}", "gap2": "gap 1e-2"}
#: Forms of the method, each against L-BFGS with as many pairs; L-BFGS of another.
_BESIDE = (
    ("coarse=affine", AFFINE, PLAIN),
    ("five pairs", CLUSTERED_FIVE, FIVE),
    ("against SciPy's L-BFGS-B", CLUSTERED, SCIPY),
)
#: F1 below the end of plain L-BFGS that counts as having come to it.
NEAR_F1 = 0.1


def by_ridge(some: Sequence[Function]) -> dict[float, list[Function]]:
    """Functions with the same ridge."""
    ridges: dict[float, list[Function]] = {}
    for one in some:
        ridges.setdefault(one.ridge, []).append(one)
    return ridges


def place(some: Sequence[Function]) -> str:
    """How many functions these are, or which, and their ridge."""
    what = f"{len(some)} topics" if len(some) > 1 else TITLES[some[0].problem]
    return f"{what}, ridge {some[0].ridge:g}"


def _ratios(
    some: Sequence[Function], fast: Entry, slow: Entry, unit: str = "seconds", goal: str = "gap4"
) -> list[Ratio]:
    """How many times as fast one entry is as another, on the functions where that is known."""
    found = [ratio(one.reach(fast, goal, unit), one.reach(slow, goal, unit)) for one in some]
    return [one for one in found if one is not None]


def _middle(ratios: Sequence[Ratio]) -> float:
    return statistics.median(one.value for one in ratios)


def _told(ratios: Sequence[Ratio]) -> str:
    """Least, median and largest; one alone is itself."""
    if len(ratios) == 1:
        return str(ratios[0])
    ordered = sorted(ratios, key=lambda one: one.value)
    return f"{ordered[0]} to {ordered[-1]}, median {_middle(ratios):.2f}"


def _verdict(ratios: Sequence[Ratio], least: float) -> str:
    if not ratios:
        return UNKNOWN
    middle = _middle(ratios)
    if middle >= least:
        return HOLDS
    return WEAKER if settled(middle) == HOLDS else settled(middle)


def _compared(some: Sequence[Function], goal: str, *, beside: bool = True) -> tuple[str, list[Ratio]]:
    """Clustered against plain L-BFGS in words, with its other forms, and the ratios of seconds."""
    seconds, passes = (_ratios(some, CLUSTERED, PLAIN, unit, goal) for unit in ("seconds", "passes"))
    if not seconds:
        return f"reached by neither on {len(some)} of {len(some)}", []
    words = f"{_told(seconds)}; in passes {_told(passes)}"
    for name, entry, base in _BESIDE if beside else ():
        found = _ratios(some, entry, base, "seconds", goal)
        words += f"; {name} {_middle(found):.2f}" if found else ""
    if len(seconds) < len(some):
        words += f"; {len(some) - len(seconds)} of {len(some)} reached by neither"
    return words, seconds


def speed_of_classifiers(results: Results) -> Iterator[Finding]:
    """A line for each ridge and goal, and one for the sweep over ridges."""
    paper = f"{SPEED[0]:g}-{SPEED[1]:g}"
    yield from _speed(results, "topic", CLASSIFIERS, paper, SPEED[0], ("table3.md", "ratios.md"))
    some = functions(results, "sweep")
    if some:
        words, seconds = _compared(some, "gap4", beside=False)
        often = sum(one.value >= SPEED[0] for one in seconds)
        words += f"; {SPEED[0]:g} or more on {often} of {len(some)}"
        where = f"{len({one.problem for one in some})} topics, {len(by_ridge(some))} ridges, {_GOALS['gap4']}"
        verdict = _verdict(seconds, SPEED[0])
        yield Finding(CLASSIFIERS, where, paper, words, verdict, ("sweep.md", "figure6-7.png"))


def _speed(
    results: Results, what: str, claim: str, paper: str, least: float, shown: tuple[str, ...]
) -> Iterator[Finding]:
    for some in by_ridge(functions(results, what)).values():
        for goal, title in _GOALS.items():
            reaches = [one.reach(entry, goal) for one in some for entry in (CLUSTERED, PLAIN)]
            if goal == "grad" and not any(reach is not None and reach.reached for reach in reaches):
                continue  # nobody was asked for it
            words, seconds = _compared(some, goal)
            yield Finding(claim, f"{place(some)}, {title}", paper, words, _verdict(seconds, least), shown)


def speed_of_names(results: Results) -> Iterator[Finding]:
    """To gaps, and to the F1 that plain L-BFGS ends with."""
    paper = f"{NAMES_SPEED:g}"
    yield from _speed(results, "names", NAMES, paper, NAMES_SPEED, ("names.md", "figure12.png"))
    for one in functions(results, "names"):
        end = one.median(PLAIN, f"end_{F1}")
        if end is None:
            continue
        plain, ours = (_seconds_to_f1(one, entry, end - NEAR_F1) for entry in (PLAIN, CLUSTERED))
        if plain is None or ours is None:
            continue
        words = f"{plain / ours:.2f}; L-BFGS {plain:.2f} s, clustered {ours:.2f} s"
        verdict = settled(plain / ours)
        where = f"{place([one])}, to F1 {end - NEAR_F1:.2f}, {NEAR_F1:g} below the end of L-BFGS"
        yield Finding(NAMES, where, "sooner", words, verdict, ("figure12.png", "figure13.png"))


def _seconds_to_f1(one: Function, entry: Entry, goal: float) -> float | None:
    """Of the first run with a curve; None if it does not come there."""
    for row in one.runs(entry):
        if row.get("curve_seconds") and row.get(f"curve_{F1}"):
            seconds, scores = (numbers(row[f"curve_{name}"]) for name in ("seconds", F1))
            return next((x for x, y in zip(seconds, scores, strict=True) if y >= goal), None)
    return None


def still_worth(results: Results) -> Iterator[Finding]:
    """Clustered L-BFGS against more pairs, scaled variables and Newton's method; no claim of the paper."""
    for what in ("topic", "names"):
        for some in by_ridge(functions(results, what)).values():
            told, middles = [], []
            for rival in (FIFTY, DIAGONAL, NEWTON):
                seconds, passes = (_ratios(some, CLUSTERED, rival, unit) for unit in ("seconds", "passes"))
                if seconds and passes:
                    told.append(f"{rival.title} {_middle(seconds):.2f} (passes {_middle(passes):.2f})")
                    middles.append(_middle(seconds))
            if told:
                where = f"{place(some)}, times as fast as"
                yield Finding(WORTH, where, "", ", ".join(told), settled(min(middles)), ("ratios.md",))
