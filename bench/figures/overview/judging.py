"""The Japanese paper's open point as findings: does SGD come before Newton-CG on a large corpus?

The paper speaks of the best score; gaps are looked at too, and both forms of Newton-CG: as published, and
with its start on the dual or by stochastic descent. For SGD stands the soonest of its schedules and batches.
"""

from __future__ import annotations

import math

from bench.figures.overview import papers
from bench.figures.overview.boards import GOALS, SCORE, Board, Goal
from bench.figures.overview.telling import best_of_side
from bench.verdicts import FAILS, HOLDS, Finding

__all__ = ["CLAIM", "open_point_findings"]

CLAIM = "SGD comes before Newton-CG on a large corpus"
FORMS = ("Newton-CG as published", "newton_cg")


def open_point_findings(one: Board) -> list[Finding]:
    """One for each form of Newton-CG and goal."""
    return [_finding(one, form, goal) for form in FORMS for goal in (SCORE, *GOALS[:-1])]


def _finding(one: Board, form: str, goal: Goal) -> Finding:
    sgd, newton = (best_of_side(one, side, goal) for side in ("SGD", form))
    first, other = (math.inf if best is None else best[1] for best in (sgd, newton))
    verdict = HOLDS if first < other else FAILS if other < math.inf else f"{FAILS} (neither arrived)"
    where = f"{one.contest.title}, {form}, to {goal.phrase}"
    reported = f"on {papers.TASK} {papers.REPORT}" if goal is SCORE else ""
    told = f"{_told('SGD', first)}, {_told(form, other)}"
    return Finding(CLAIM, where, reported, told, verdict, ("open-point.md", "open-point.png"))


def _told(name: str, seconds: float) -> str:
    return f"{name} {'not reached' if math.isinf(seconds) else f'{seconds:.0f} s'}"
