"""How times become verdicts: who is before whom, and what ratios in two arithmetics say about a report.

Methods were run once on a task, so that a ratio of seconds is taken as known within `NOISE`. Times to an F1
are known less well: F1 is looked at on a geometric grid. A report that has a number, "2-3 times as fast",
holds where the ratio is at least its lower end, less the noise. A report about the order alone, "faster",
holds where the ratio is above the noise, does not hold where it is below 1 by as much, and is not settled
between. A run that was ended by its limit gives a ratio that is at least so large, which may not settle it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from bench.figures.newton_cg.boards import Board
from bench.figures.newton_cg.entries import Entry
from bench.figures.newton_cg.goals import Goal
from bench.standings import Times
from bench.verdicts import FAILS, HOLDS, OURS_ONLY, PAPER_ONLY, UNKNOWN, UNSETTLED
from crfit.racing.grid import RATIO

__all__ = ["NOISE", "OURS_ALONE", "SETTLED", "THEIRS_ALONE", "ahead", "fastest", "noise_of", "verdict"]

#: Ratio of two single runs that may be chance.
NOISE = 1.1
#: Verdicts on what is so (1), not so (-1), and not settled.
SETTLED = {1: HOLDS, 0: UNSETTLED, -1: FAILS}
OURS_ALONE = "in our arithmetic, theirs was not measured"
THEIRS_ALONE = "in their arithmetic, ours was not measured"


def noise_of(goal: Goal) -> float:
    """The ratio that may be chance for times to a goal."""
    return NOISE if goal.gap is not None else max(NOISE, RATIO)


def ahead(first: float, second: float, noise: float) -> int:
    """1 where the first of two times is the shorter, -1 where it is the longer, 0 where it is not settled."""
    if math.isinf(first) and math.isinf(second):
        return 0
    return 1 if second > noise * first else -1 if first > noise * second else 0


def fastest(one: Board, entries: Iterable[Entry], goal: Goal) -> tuple[Entry, float] | None:
    """Who of some is the first at a goal, with the seconds; None where nobody gets there."""
    reaches = [(entry, one.reach(entry.key, goal)) for entry in entries]
    there = [(entry, reach.median) for entry, reach in reaches if reach is not None and reach.reached]
    return min(there, key=lambda found: found[1]) if there else None


def verdict(least: float, log: Times | None, scaled: Times | None, noise: float = NOISE) -> str:
    """What two ratios, in the papers' arithmetic and in ours, say about a report.

    Parameters
    ----------
    least : float
        The lower end of what the papers say; 1 for a report about the order alone.
    log, scaled : Times or None
        In the papers' arithmetic and in ours; None where it was not measured.
    noise : float
        The ratio that may be chance.
    """
    theirs, ours = (None if times is None else _state(least, times, noise) for times in (log, scaled))
    if theirs is None and ours is None:
        return UNKNOWN
    if theirs is not None and ours is not None and 1 in (theirs, ours):
        return HOLDS if theirs == ours else PAPER_ONLY if theirs == 1 else OURS_ONLY
    state, remarks = ours if theirs is None else theirs, []
    if state == 0:
        remarks.append("not settled")
    elif state == -1 and any(times is not None and times.ratio > noise for times in (log, scaled)):
        remarks.append("weaker")
    if theirs is None or ours is None:
        remarks.append(OURS_ALONE if theirs is None else THEIRS_ALONE)
    word = HOLDS if state == 1 else FAILS
    return f"{word} ({', '.join(remarks)})" if remarks else word


def _state(least: float, times: Times, noise: float) -> int:
    """1 where a ratio is what a report says, -1 where it is not, 0 where that is not settled."""
    number = 1 if times.ratio >= least / noise else -1
    held = number if least > 1.0 else ahead(1.0, times.ratio, noise)
    return 0 if held == -1 and times.at_least else held
