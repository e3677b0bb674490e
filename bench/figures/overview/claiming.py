"""What the group claims: little, with margin, for one run each was made."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from bench.figures.base import Claim, Results
from bench.figures.overview.boards import GOALS, Board, Goal, boards, gap_words
from bench.figures.overview.contests import BROWN
from bench.figures.overview.entries import ENTRIES, NEWTON, PUBLISHED, Entry
from bench.problems import problem
from bench.standings import compared

__all__ = ["BEHIND", "FASTER", "claims"]

#: How many times the seconds of the first ``auto`` takes at most to the middle gap.
BEHIND = 4.0
#: How many times the seconds of `newton_cg` the published method takes at least, in the median of the chains.
FASTER = 2.0
#: Relative rounding of F, a sum of thousands of logarithms.
ROUNDING = 1e-12
LOOSE, MIDDLE, TIGHT = GOALS[:3]


def claims(results: Results) -> list[Claim]:
    found = boards(results)
    usual = [one for one in found if one.contest.problem != BROWN]
    made = [_same_function(one) for one in found]
    made += [_auto_arrives(usual), _auto_behind(usual, results.slack), _published(usual, results.slack)]
    stochastic = [entry for entry in ENTRIES if entry.max_passes is not None and entry.penalised]
    scaling = [entry for entry in ENTRIES if entry.share < 1.0]
    made.append(_never("stochastic", "no stochastic method", stochastic, found, TIGHT))
    made.append(_never("scaling", "no iterative scaling, plain or accelerated,", scaling, found, LOOSE))
    return made


def _same_function(one: Board) -> Claim:
    """Nobody is below F* by more than it is uncertain."""
    gaps = [one.standings[entry.key].lowest_gap for entry in one.entries if entry.penalised]
    lowest = min(gaps, default=math.inf)
    unsure = ROUNDING + (one.facts.get("uncertainty") or 0.0) / abs(one.facts.get("objective") or 1.0)
    text = f"{one.contest.title}: {len(gaps)} entries minimise one function: lowest gap {gap_words(lowest)}."
    return Claim(f"same-function-{one.contest.problem}", text, len(gaps) > 1 and -unsure <= lowest < math.inf)


def _auto_arrives(found: Sequence[Board]) -> Claim:
    there = [one for one in found if one.auto_entry and math.isfinite(one.seconds(one.auto_entry, TIGHT))]
    text = f"What `auto` chooses gets to {TIGHT.phrase} on {len(there)} of {len(found)} problems."
    return Claim("auto-arrives", text, bool(found) and len(there) == len(found))


def _auto_behind(found: Sequence[Board], slack: float) -> Claim:
    times = [
        (math.inf if ratio is None else ratio, one.contest.title)
        for one in found
        for ratio in [one.behind(one.auto_entry, MIDDLE) if one.auto_entry else None]
    ]
    worst, where = max(times, default=(math.inf, "none"))
    most = BEHIND / slack
    text = (
        f"To {MIDDLE.phrase} `auto` takes at most {worst:.1f} times the seconds of the first ({where}), "
        f"no more than {most:g}."
    )
    return Claim("auto-behind", text, worst <= most)


def _published(found: Sequence[Board], slack: float) -> Claim:
    """A run that was ended by its limit counts with the seconds that it had."""
    times = []
    for one in found:
        ours, theirs = (one.reach(entry, MIDDLE) for entry in (NEWTON, PUBLISHED))
        if problem(one.contest.problem).kind == "chain" and ours is not None and theirs is not None:
            ratio = compared(ours, theirs)
            times.append((0.0 if ratio is None else ratio.ratio, one.contest.title))
    (least, where), median = min(times, default=(0.0, "none")), _median([ratio for ratio, _ in times])
    sooner, needed = sum(ratio > 1.0 for ratio, _ in times), FASTER * slack
    text = (
        f"To {MIDDLE.phrase} `newton_cg` is sooner than the published Newton-CG on {sooner} of {len(times)} "
        f"chains: that takes {median:.1f} times its seconds in the median, at least {needed:g}, and "
        f"{least:.1f} times on {where}."
    )
    return Claim("published", text, median >= needed)


def _median(numbers: Sequence[float]) -> float:
    return statistics.median(numbers) if numbers else 0.0


def _never(name: str, who: str, entries: Sequence[Entry], found: Sequence[Board], goal: Goal) -> Claim:
    """In the passes and seconds that they had."""
    runs = [(one, entry) for one in found for entry in entries if entry in one.entries]
    lowest = min((one.standings[entry.key].lowest_gap for one, entry in runs), default=math.inf)
    text = f"In {len(runs)} runs {who} gets to {goal.phrase}: the lowest gap is {gap_words(lowest)}."
    return Claim(name, text, bool(runs) and goal.gap is not None and lowest > goal.gap)
