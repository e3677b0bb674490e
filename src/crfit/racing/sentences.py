"""The outcome of a race in words and plain numbers, for people who did not run it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from crfit.racing.milestones import Milestones, milestones
from crfit.racing.records import SCORES, Curve, Optimum, Point
from crfit.racing.result import RaceResult

__all__ = [
    "number",
    "objective_value",
    "one_line",
    "optimum_words",
    "problems",
    "race_name",
    "seconds",
    "verdict",
]

_CLOSE = 0.1  # percent: scores that are as good as equal
_KINDS = {
    "given": "was given",
    "found": "was found by a run of its own",
    "lowest": "is the lowest value of this race",
}


def number(value: float | None, digits: int = 3) -> str:
    """Spell a number: ``1.2e-5``, ``0.031``, ``7,705.3``, and a dash where there is none.

    Parameters
    ----------
    value : float or None
        The number.
    digits : int
        Significant ones to keep; those before the point all stay.
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 1e9 or abs(value) < 1e-3:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def objective_value(value: float | None) -> str:
    """Spell an objective with as many digits as the others, so that they stand below each other.

    Parameters
    ----------
    value : float or None
        The objective; one that is tiny or huge is spelled as by `number`.
    """
    return number(value, 8) if value is None or not 1 <= abs(value) < 1e9 else f"{value:,.4f}"


def one_line(text: str) -> str:
    """Fold line breaks, and the spaces around them, into single spaces.

    Parameters
    ----------
    text : str
        A message that others may have written.
    """
    return " ".join(text.split())


def seconds(value: float) -> str:
    """Spell a time in seconds with three digits, to the millisecond.

    Parameters
    ----------
    value : float
        In seconds.
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def race_name(result: RaceResult) -> str:
    """Return what the race was run on, files without their folders; empty where that is not known.

    Parameters
    ----------
    result : RaceResult
        The race.
    """
    return ", ".join(map(os.path.basename, result.data.get("train") or []))


def problems(result: RaceResult) -> list[str]:
    """Return the names of the functions that were minimised, in the order of their entries.

    Parameters
    ----------
    result : RaceResult
        The race.
    """
    return list(dict.fromkeys(curve.problem for curve in result.curves))


def optimum_words(result: RaceResult) -> list[str]:
    """Say for each function what its gaps are taken to, one sentence each.

    Parameters
    ----------
    result : RaceResult
        The race.
    """
    several = len(result.optima) > 1
    return [
        (f"{problem}: " if several else "") + _one_optimum(optimum)
        for problem, optimum in result.optima.items()
    ]


def _one_optimum(optimum: Optimum) -> str:
    words = f"F* = {number(optimum.value, 8)} {_KINDS.get(optimum.kind, optimum.kind)}"
    if optimum.uncertainty is None:
        return words + "; how far the true optimum lies below is not known."
    return words + f"; the true optimum lies at most {number(optimum.uncertainty, 2)} below."


def verdict(result: RaceResult) -> list[str]:
    """Say which entry was best, by the numbers: one sentence a function, and one on held-out scores.

    Parameters
    ----------
    result : RaceResult
        The race.
    """
    named = [name for name in problems(result) if any(curve.points for curve in _on(result, name))]
    if not named:
        why = "; below is why" if any(curve.status.bad for curve in result.curves) else ""
        return [f"No entry came as far as a first look{why}."]
    reached = milestones(result)
    sentences = []
    for problem in named:
        sentence = _fastest(result, problem, reached) or _lowest(_on(result, problem))
        if sentence:
            sentences.append(f"On {problem}: {sentence}" if len(named) > 1 else sentence)
    score = _best_score(result)
    return [*sentences, *([score] if score else [])] or ["No entry got closer to the optimum than its start."]


def _on(result: RaceResult, problem: str) -> list[Curve]:
    return [curve for curve in result.curves if curve.problem == problem]


def _moved(curve: Curve) -> bool:
    """Whether an entry came further than the start, so that it is one to compare with."""
    return any(point.iteration > 0 for point in curve.points)


def _fastest(result: RaceResult, problem: str, reached: Milestones) -> str:
    """Who was first at the smallest gap that anyone is known to have reached, and by how much."""
    rows = [pair for pair in zip(reached.cells, result.curves, strict=True) if pair[1].problem == problem]
    alone = sum(_moved(curve) for _, curve in rows) == 1
    for number_of_target, target in reversed(list(enumerate(reached.targets))):
        if target.relative_gap is None:
            continue
        found = [(row[number_of_target], curve) for row, curve in rows]
        moved = [(p, c) for p, c in found if p is not None and p.iteration > 0]
        there = sorted(moved, key=lambda pair: pair[0].seconds)
        if not there:
            continue
        (point, winner), others = there[0], there[1:]
        words = f"{winner.label} {'reached' if alone else 'was first at'} a relative gap of "
        words += f"{number(target.relative_gap, 1)} after {seconds(point.seconds)} s"
        words += f" and {number(point.passes)} passes"
        if others:
            return words + f"; {_behind(point, others[0])}."
        return words + ("." if alone else "; no other entry came so close.")
    return ""


def _lowest(curves: Sequence[Curve]) -> str:
    """Who came lowest, where nobody is known to have reached a gap."""
    fell = [curve for curve in curves if curve.lowest < next(curve.values("objective"), -math.inf)]
    if not fell:
        return ""
    best = min(fell, key=lambda curve: curve.lowest)
    how = "came lowest, to" if sum(map(_moved, curves)) > 1 else "came down to"
    return f"{best.label} {how} F = {number(best.lowest, 8)}."


def _behind(first: Point, second: tuple[Point, Curve]) -> str:
    point, curve = second
    if first.seconds <= 0:
        return f"next was {curve.label}, after {seconds(point.seconds)} s"
    ratio = point.seconds / first.seconds
    return f"next was {curve.label}, which took " + (
        f"{ratio:.1f} times as long" if ratio >= 1.05 else "hardly longer"
    )


def _best_score(result: RaceResult) -> str:
    """Whose held-out score was highest, and how much that says."""
    for name, title in SCORES.items():
        reached = [(max(values), c) for c in result.curves if (values := _reached_scores(c, name))]
        if not reached:
            continue
        reached.sort(key=lambda pair: -pair[0])  # in their order where equal
        best, winner = reached[0]
        words = f"Highest {title} on held-out data: {best:.2f}, by {winner.label}"
        close = [curve.label for value, curve in reached[1:] if best - value <= _CLOSE]
        if close:
            names = "all others" if len(close) == len(reached) - 1 > 1 else _listed(close)
            return words + f"; {names} came within {_CLOSE:g} of it."
        return words + (f"; next was {reached[1][1].label} with {reached[1][0]:.2f}." if reached[1:] else ".")
    return ""


def _reached_scores(curve: Curve, name: str) -> list[float]:
    """Scores of an entry, without that of the start, which is nobody's work."""
    return [point.scores[name] for point in curve.points if point.iteration > 0 and name in point.scores]


def _listed(names: Sequence[str], most: int = 3) -> str:
    if len(names) > most:
        return f"{len(names)} others"
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
