"""The numbers that tables, claims and pictures speak of: who took how long to a goal on a problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from bench.curves import OPTIMUM
from bench.figures.base import Results, Row
from bench.figures.newton_cg.goals import NEAR_F1, Goal
from bench.figures.newton_cg.measuring import PROBLEMS
from bench.standings import Reach, Standing, Times, compared, standings
from crfit.racing.records import Curve

__all__ = ["SHOWN_RATIOS", "Board", "board", "boards", "gap_ratios", "product_seconds"]

#: Ratios of successive gaps that a rate is read from, the last ones.
SHOWN_RATIOS = 4


@dataclass(frozen=True, eq=False)
class Board:
    """Everybody's runs on a problem.

    Parameters
    ----------
    problem : str
        Its name.
    facts : Row
        F* and sizes.
    standings : dict of str to Standing
        By the key of the entry, "default" for CRFsuite; those that failed too.
    """

    problem: str
    facts: Row
    standings: dict[str, Standing]

    @property
    def title(self) -> str:
        """The problem in words."""
        return PROBLEMS[self.problem]

    @property
    def optimum(self) -> float | None:
        """F*."""
        return self.facts.get("objective")

    @property
    def final_f1(self) -> float | None:
        """Test F1 at the lowest objective of any run, which stands for the optimum."""
        ends = [
            (curve.points[-1].objective, curve.points[-1].scores["f1"])
            for standing in self.standings.values()
            for curve in standing.race.curves
            if curve.points[-1].objective is not None and "f1" in curve.points[-1].scores
        ]
        return min(ends)[1] if ends else None

    def good(self, key: str) -> Standing | None:
        """The runs of an entry; None if there are none to be compared."""
        standing = self.standings.get(key)
        return None if standing is None or standing.trouble else standing

    def reach(self, key: str, goal: Goal, unit: str = "seconds") -> Reach | None:
        """What an entry took to a goal; None if it was not run, or nobody knows where the goal is."""
        standing = self.good(key)
        if standing is None or self.optimum is None:
            return None
        if goal.gap is not None:
            return standing.reach(relative_gap=goal.relative_gap(self.optimum), unit=unit)
        if self.final_f1 is None:
            return None
        return standing.reach(score=("f1", self.final_f1 - NEAR_F1), unit=unit)

    def times(self, fast: str, slow: str, goal: Goal, unit: str = "seconds") -> Times | None:
        """How many times the seconds or passes of one entry another takes; None where that is not known."""
        reaches = [self.reach(key, goal, unit) for key in (fast, slow)]
        ours, other = reaches
        return None if ours is None or other is None else compared(ours, other)


@cache
def board(results: Results, problem: str) -> Board:
    """The runs on a problem."""
    facts = next(iter(results.where(problem=problem, row=OPTIMUM)), {})
    return Board(problem, facts, {s.variant: s for s in standings(results, problem)})


def boards(results: Results, what: str) -> list[Board]:
    """Those of the problems that have tasks of a kind, in their order."""
    return [board(results, problem) for problem in PROBLEMS if results.where(problem=problem, what=what)]


def gap_ratios(curve: Curve, optimum: float, last: int = SHOWN_RATIOS) -> list[float]:
    """gap(k+1) / gap(k) of the last steps that went down; rounding is below what is looked at."""
    gaps: list[float] = []
    for point in curve.points:
        gap = math.inf if point.objective is None else point.objective - optimum
        if 0 < gap < (gaps[-1] if gaps else math.inf):
            gaps.append(gap)
    return [after / before for before, after in pairwise(gaps)][-last:]


def product_seconds(results: Results, problem: str, mode: str) -> dict[str, float | None]:
    """Median seconds of a gradient and of a product, and the bytes that are kept."""
    asked = {"problem": problem, "mode": mode}
    found = {
        name: results.median("seconds", measured=name, **asked)
        for name in ("gradient", "keeping gradient", "product")
    }
    return {**found, "bytes": results.median("kept_bytes", measured="memory", **asked)}
