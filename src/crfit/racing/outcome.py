"""The outcome of a race: which entry reached which target first, in numbers and in words.

    gap      (F - F*) / |F*| <= 1e-1, 1e-2, ... 1e-5
    score    within 1, 0.5 and 0.1 of the best of any entry; F1, or the metric of the race

Targets that no entry reaches, or that the common start already meets, are left out. So are gaps smaller than
the uncertainty of F*. Gaps are compared among entries that minimise the same function, scores among all;
where entries minimise different functions, scores come first.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from crfit.racing.result import SCORES, Curve, Optimum, Point, RaceResult

GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
BELOW_BEST = (1.0, 0.5, 0.1)

_CLOSE = 0.1  # percent: scores that are as good as equal
_KINDS = {
    "given": "was given",
    "found": "was found by a separate run",
    "lowest": "is the lowest value of this race",
}


# --- milestones --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A relative gap, or a held-out score by name and least value; `title` heads its column."""

    title: str
    relative_gap: float | None = None
    score: tuple[str, float] | None = None


@dataclass(frozen=True)
class Milestones:
    """The targets of a race, and the first point of each entry that reaches each, None where none does."""

    targets: list[Target]
    cells: list[list[Point | None]]  # [n_curves][n_targets]
    problems: list[str]  # [n_curves]

    def first(self, target: int, unit: Literal["seconds", "passes"] = "seconds") -> set[int]:
        """Return the entries that were first at a target, one per function for a gap."""
        spent: dict[str, dict[int, float]] = {}  # by group of entries that compare
        for number, (row, problem) in enumerate(zip(self.cells, self.problems, strict=True)):
            point = row[target]
            if point is not None and point.iteration > 0:
                group = problem if self.targets[target].score is None else ""
                spent.setdefault(group, {})[number] = getattr(point, unit)
        return {
            number
            for group in spent.values()
            for number, least in group.items()
            if least == min(group.values())
        }


def milestones(result: RaceResult) -> Milestones:
    """Find the first point of each entry that reaches each target."""
    gaps = [Target(f"gap {gap:.0e}".replace("e-0", "e-"), relative_gap=gap) for gap in GAPS]
    scores: list[Target] = []
    for name in result.score_names:
        best = result.best_score(name)
        if best is not None:
            values = [best - below for below in BELOW_BEST]
            scores = [Target(f"{SCORES[name]} {value:.2f}", score=(name, value)) for value in values]
            break
    targets = scores + gaps if result.scores_first else gaps + scores
    columns = [[_reached(result, curve, target) for curve in result.curves] for target in targets]
    kept = [i for i, column in enumerate(columns) if any(p is not None and p.iteration > 0 for p in column)]
    cells = [[columns[i][k] for i in kept] for k in range(len(result.curves))]
    return Milestones([targets[i] for i in kept], cells, [curve.problem for curve in result.curves])


def _reached(result: RaceResult, curve: Curve, target: Target) -> Point | None:
    """First point of an entry at a target; None for none, or where F* is too uncertain to tell."""
    optimum, gap = result.optima.get(curve.problem), target.relative_gap
    if gap is not None and optimum is not None and (optimum.uncertainty or 0.0) > gap * abs(optimum.value):
        return None
    return result.first_reaching(curve, relative_gap=gap, score=target.score)


# --- the verdict -------------------------------------------------------------------------------------------


def verdict(result: RaceResult) -> list[str]:
    """Name the best entry: one sentence per function, and one on held-out scores."""
    if not any(curve.points for curve in result.curves):
        why = "; see the messages below" if any(curve.status.bad for curve in result.curves) else ""
        return [f"No entry was evaluated{why}."]
    reached = milestones(result)
    several = len([name for name in result.problems if any(c.points for c in _on(result, name))]) > 1
    gaps = []
    for problem in result.problems:
        curves = [curve for curve in _on(result, problem) if curve.minimises]
        sentence = _fastest(result, problem, reached) or _lowest(curves)
        if sentence:
            gaps.append(f"On {problem}: {sentence}" if several else sentence)
    score = _best_score(result)
    scores = [score] if score else []
    found = scores + gaps if result.scores_first else gaps + scores
    return found or ["No entry improved on its starting point."]


def _on(result: RaceResult, problem: str) -> list[Curve]:
    return [curve for curve in result.curves if curve.problem == problem]


def _moved(curve: Curve) -> bool:
    """Whether an entry made a step, so that it competes."""
    return any(point.iteration > 0 for point in curve.points)


def _fastest(result: RaceResult, problem: str, reached: Milestones) -> str:
    """The first entry at the smallest gap that any reached, and by how much."""
    pairs = zip(reached.cells, result.curves, strict=True)
    rows = [(row, curve) for row, curve in pairs if curve.problem == problem and curve.minimises]
    alone = sum(_moved(curve) for _, curve in rows) == 1
    gaps = [(i, target.relative_gap) for i, target in enumerate(reached.targets)]
    for i, gap in reversed(gaps):
        if gap is None:
            continue
        moved = [(p, curve) for row, curve in rows if (p := row[i]) is not None and p.iteration > 0]
        there = sorted(moved, key=lambda pair: pair[0].seconds)
        if not there:
            continue
        (point, winner), others = there[0], there[1:]
        words = f"{winner.label} {'reached' if alone else 'was the first to reach'} a relative gap of "
        words += f"{number(gap, 1)} after {seconds(point.seconds)} s and {number(point.passes)} passes"
        if others:
            return words + f"; {_behind(point, others[0])}."
        return words + ("." if alone else "; no other entry reached it.")
    return ""


def _lowest(curves: Sequence[Curve]) -> str:
    """The entry with the lowest objective, if none is known to have reached a gap."""
    fell = [curve for curve in curves if curve.lowest < next(curve.values("objective"), -math.inf)]
    if not fell:
        return ""
    best = min(fell, key=lambda curve: curve.lowest)
    how = "reached the lowest objective," if sum(map(_moved, curves)) > 1 else "reached"
    return f"{best.label} {how} F = {number(best.lowest, 8)}."


def _behind(first: Point, second: tuple[Point, Curve]) -> str:
    point, curve = second
    if first.seconds <= 0:
        return f"next was {curve.label}, after {seconds(point.seconds)} s"
    ratio = point.seconds / first.seconds
    took = f"{ratio:.1f} times as long" if ratio >= 1.05 else "about as long"
    return f"next was {curve.label}, which took {took}"


def _best_score(result: RaceResult) -> str:
    """Whose held-out score was highest, that of the start not counted, and how close the others came."""
    for name in result.score_names:
        scored = [
            (max(values), curve)
            for curve in result.curves
            if (values := [p.scores[name] for p in curve.points if p.iteration > 0 and name in p.scores])
        ]
        if not scored:
            continue
        scored.sort(key=lambda pair: -pair[0])  # stable: ties in the order of entries
        best, winner = scored[0]
        words = f"Highest {SCORES[name]} on held-out data: {best:.2f}, by {winner.label}"
        close = [curve.label for value, curve in scored[1:] if best - value <= _CLOSE]
        if close:
            names = "all others" if len(close) == len(scored) - 1 > 1 else _listed(close)
            return words + f"; {names} {'was' if len(close) == 1 else 'were'} within {_CLOSE:g} of it."
        return words + (f"; next was {scored[1][1].label} with {scored[1][0]:.2f}." if scored[1:] else ".")
    return ""


def _listed(names: Sequence[str], most: int = 3) -> str:
    if len(names) > most:
        return f"{len(names)} others"
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def optimum_words(result: RaceResult) -> list[str]:
    """Say what the gaps of each function are measured from, and which entries have none."""
    several = len(result.optima) > 1
    sentences = [
        (f"{problem}: " if several else "") + _one_optimum(optimum)
        for problem, optimum in result.optima.items()
    ]
    without = [curve.label for curve in result.curves if not curve.minimises]
    if without:
        have = "does not minimise F and has" if len(without) == 1 else "do not minimise F and have"
        sentences.append(f"{_listed(without, len(without))} {have} no gap.")
    return sentences


def _one_optimum(optimum: Optimum) -> str:
    words = f"F* = {number(optimum.value, 8)} {_KINDS.get(optimum.kind, optimum.kind)}"
    if optimum.uncertainty is None:
        return words + "; how far below the true optimum lies is not known."
    return words + f"; the true optimum is at most {number(optimum.uncertainty, 2)} lower."


# --- numbers and names -------------------------------------------------------------------------------------


def number(value: float | None, digits: int = 3) -> str:
    """Format to significant digits: ``1.2e-5``, ``0.031``, ``7,705.3``; a dash for None and non-finite."""
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
    """Format an objective to four decimals, so that columns line up; tiny and huge ones as `number` does."""
    return number(value, 8) if value is None or not 1 <= abs(value) < 1e9 else f"{value:,.4f}"


def seconds(value: float) -> str:
    """Format a time with three digits, to the millisecond."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def one_line(text: str) -> str:
    """Fold line breaks and the spaces around them into single spaces."""
    return " ".join(text.split())


def race_name(result: RaceResult) -> str:
    """Return the training files without their folders; empty where unknown."""
    return ", ".join(map(os.path.basename, result.data.get("train") or []))
