"""Who was there first: the points at which entries reach gaps and held-out scores.

    gap      (F - F*) / |F*| <= 1e-1, 1e-2, ... 1e-5
    score    within 1, 0.5 and 0.1 of the best that any entry reached; F1, or accuracy where no F1 is known

A target that nobody reaches, or that the common start already meets for all, tells nothing and is left out.
So is a gap smaller than the uncertainty of F*: nobody knows who reaches it.
Gaps are those of a function: who was first is asked among the entries that minimise the same one. Scores
compare across all entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crfit.racing.records import SCORES, Curve, Point
from crfit.racing.result import RaceResult

__all__ = ["Milestones", "Target", "milestones"]

GAPS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
BELOW_BEST = (1.0, 0.5, 0.1)


@dataclass(frozen=True)
class Target:
    """Something to reach: a gap or a score.

    Parameters
    ----------
    title : str
        Heading of a column.
    relative_gap : float, optional
        ``(F - F*) / |F*|`` at most.
    score : tuple of str and float, optional
        Name of a held-out score and its value at least.
    """

    title: str
    relative_gap: float | None = None
    score: tuple[str, float] | None = None


@dataclass(frozen=True)
class Milestones:
    """The targets of a race, and who reached which when.

    Parameters
    ----------
    targets : list of Target
        Gaps from the largest to the smallest, then scores from the lowest to the highest.
    cells : list of lists of Point or None, [n_curves][n_targets]
        The first point that reaches the target; None where none does.
    problems : list of str [n_curves]
        The function that each entry minimises.
    """

    targets: list[Target]
    cells: list[list[Point | None]]
    problems: list[str]

    def first(self, target: int, unit: Literal["seconds", "passes"] = "seconds") -> set[int]:
        """Return the numbers of the entries that were there first, several where they cannot be compared.

        An entry that was there at the start has reached nothing.

        Parameters
        ----------
        target : int
            Number of the target.
        unit : {"seconds", "passes"}
            What is to be least.
        """
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
    """Find the first point of each entry that reaches each target.

    Parameters
    ----------
    result : RaceResult
        The race.

    Returns
    -------
    Milestones
    """
    targets = [Target(f"gap {gap:.0e}".replace("e-0", "e-"), relative_gap=gap) for gap in GAPS]
    name = next((name for name in SCORES if result.best_score(name) is not None), None)
    best = None if name is None else result.best_score(name)
    if name is not None and best is not None:
        for below in BELOW_BEST:
            value = best - below
            targets.append(Target(f"{SCORES[name]} {value:.2f}", score=(name, value)))
    columns = [[_reached(result, curve, target) for curve in result.curves] for target in targets]
    telling = [
        i for i, column in enumerate(columns) if any(p is not None and p.iteration > 0 for p in column)
    ]
    cells = [[columns[i][k] for i in telling] for k in range(len(result.curves))]
    return Milestones([targets[i] for i in telling], cells, [curve.problem for curve in result.curves])


def _reached(result: RaceResult, curve: Curve, target: Target) -> Point | None:
    """First point of an entry at a target, None for none, or where F* is not known well enough to tell."""
    optimum, gap = result.optima.get(curve.problem), target.relative_gap
    if gap is not None and optimum is not None and (optimum.uncertainty or 0.0) > gap * abs(optimum.value):
        return None
    return result.first_reaching(curve, relative_gap=gap, score=target.score)
