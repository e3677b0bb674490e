"""What the papers report about on-line methods beside what comes out here, with verdicts.

Their runs have 200 epochs; ours have fewer, and one seed or two, which a finding says. Who is before whom has
to be settled (`deciding`), and scores that differ by no more than `SAME_F1` are the same, as for batch
methods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.figures.newton_cg.boards import Board
from bench.figures.newton_cg.claiming import SAME_F1
from bench.figures.newton_cg.deciding import NOISE, SETTLED, ahead, noise_of
from bench.figures.newton_cg.entries import EG, NCG_ALL, ONLINE, SGD_EXPONENTIAL, SGD_INVERSE, Entry
from bench.figures.newton_cg.goals import F1, Goal
from bench.figures.newton_cg.papers import BEST_ONLINE
from bench.verdicts import FAILS, HOLDS, UNKNOWN, Finding

__all__ = ["EARLY", "NEAR", "best_online", "online_findings"]

#: The beginning of a run: within this share of F* of the optimum. The end: nearer than this.
EARLY, NEAR = Goal(0.5, relative=True), Goal(1.0)


def online_findings(everybody: Sequence[Board]) -> list[Finding]:
    """Report by report, problem by problem."""
    there = [one for one in everybody if len(_run(one)) > 1]
    made = [_best(one) for one in there]
    if len(there) > 1:
        made.append(_no_one_best(there))
    made += [_slowest_eg(one) for one in there if one.problem.startswith("conll2000") and EG in _run(one)]
    made += [_below_the_optimum(one) for one in everybody if _run(one)]
    for schedule in (SGD_INVERSE, SGD_EXPONENTIAL):
        made += [
            _stalls(one, schedule) for one in everybody if schedule in _run(one) and one.good(NCG_ALL.key)
        ]
    pair = {SGD_INVERSE, SGD_EXPONENTIAL}
    made += [_schedules(one) for one in there if pair <= set(_run(one))]
    return made


def _run(one: Board) -> list[Entry]:
    return [entry for entry in ONLINE if one.good(entry.key) is not None]


def _seconds(one: Board, entry: Entry, goal: Goal) -> float:
    reach = one.reach(entry.key, goal)
    return math.inf if reach is None else reach.median


def _lowest(one: Board, entry: Entry) -> float:
    standing = one.good(entry.key)
    return math.inf if standing is None else standing.lowest_gap


def best_online(one: Board) -> Entry:
    """Who is the first at a good F1, or comes nearest to the optimum if nobody is."""
    return min(_run(one), key=lambda entry: (_seconds(one, entry, F1), _lowest(one, entry)))


def _before_all(one: Board, entry: Entry) -> int:
    """Whether an entry is the first at a good F1."""
    others = [_seconds(one, other, F1) for other in _run(one) if other is not entry]
    return ahead(_seconds(one, entry, F1), min(others), noise_of(F1))


def _length(one: Board) -> str:
    """Passes and seeds of the runs."""
    runs = [curve for entry in _run(one) for curve in one.standings[entry.key].race.curves]
    passes = max(curve.points[-1].passes for curve in runs)
    seeds = max(len(one.standings[entry.key].race.curves) for entry in _run(one))
    return f"{passes:.0f} passes, {seeds} seed{'s' * (seeds > 1)}"


def _stored(one: Board) -> tuple[str, ...]:
    return (f"{one.problem}.md",)


def _told_seconds(one: Board, entries: Sequence[Entry], goal: Goal) -> str:
    found = [(entry, _seconds(one, entry, goal)) for entry in entries]
    return ", ".join(f"{entry.title} {_time(seconds)}" for entry, seconds in found)


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if math.isfinite(seconds) else "never"


CLAIM_BEST = "which on-line method is the fastest depends on the task"


def _best(one: Board) -> Finding:
    best, reported = best_online(one), BEST_ONLINE[one.problem]
    told = f"{best.title} ({_told_seconds(one, _run(one), F1)}; {_length(one)})"
    where = f"{one.title}, to {F1.words}"
    held = SETTLED[_before_all(one, reported)]
    return Finding(CLAIM_BEST, where, reported.title, told, held, ("table2.md",))


def _no_one_best(everybody: Sequence[Board]) -> Finding:
    winners = {best_online(one).title for one in everybody}
    told = ", ".join(sorted(winners)) + (" on all of them" if len(winners) == 1 else "")
    where = f"{len(everybody)} tasks together"
    worst = {entry: min(_before_all(one, entry) for one in everybody) for entry in ONLINE}
    held = SETTLED[
        -max(worst.values())
    ]  # a first everywhere refutes it, and one that may be does not settle it
    return Finding(CLAIM_BEST, where, "no one is best everywhere", told, held, ("table2.md",))


def _slowest_eg(one: Board) -> Finding:
    others = [_seconds(one, entry, F1) for entry in _run(one) if entry is not EG]
    held = SETTLED[ahead(max(others), _seconds(one, EG, F1), noise_of(F1))]
    claim = "exponentiated gradient is the slowest on-line method on chunks"
    told = _told_seconds(one, _run(one), F1)
    return Finding(claim, f"{one.title}, to {F1.words}", EG.title, told, held, _stored(one))


def _below_the_optimum(one: Board) -> Finding:
    """Whether no on-line method ends with the F1 of the optimum."""
    found = [(score, entry) for entry in _run(one) if (score := one.standings[entry.key].score("f1"))]
    claim, final = "no on-line method ends with the best F1", one.final_f1
    if final is None or not found:
        return Finding(claim, one.title, "below the optimum's", "", UNKNOWN)
    score, entry = max(found, key=lambda pair: pair[0])
    told = f"{entry.title} {score:.2f}, optimum {final:.2f} ({_length(one)})"
    held = HOLDS if score < final - SAME_F1 else f"{FAILS} (the same)" if score <= final + SAME_F1 else FAILS
    return Finding(claim, one.title, "below the optimum's", told, held, _stored(one))


def _stalls(one: Board, schedule: Entry) -> Finding:
    """Ahead at the beginning, and not at the optimum at the end."""
    first, batch = _seconds(one, schedule, EARLY), _seconds(one, NCG_ALL, EARLY)
    arrives = math.isfinite(_seconds(one, schedule, NEAR))
    told = f"to {EARLY.words} {_time(first)}, {NCG_ALL.title} {_time(batch)}; "
    told += f"lowest gap {_lowest(one, schedule):.1e} ({_length(one)})"
    held = FAILS if arrives else SETTLED[ahead(first, batch, NOISE)]
    claim = "SGD is ahead of Newton-CG at first, then stalls above the optimum"
    stored = (f"{one.problem}-seconds.png",)
    return Finding(claim, f"{one.title}, {schedule.title}", "so in a figure", told, held, stored)


def _schedules(one: Board) -> Finding:
    """The quickly falling rate is the first at a good F1, and ends below the best."""
    fast, slow = (_seconds(one, entry, F1) for entry in (SGD_EXPONENTIAL, SGD_INVERSE))
    score, final = one.standings[SGD_EXPONENTIAL.key].score("f1"), one.final_f1
    claim = f"{SGD_EXPONENTIAL.title} is ahead of {SGD_INVERSE.title} at first, and ends below the best F1"
    stored = (f"{one.problem}-f1.png",)
    if score is None or final is None:
        return Finding(claim, one.title, "so in a figure", "", UNKNOWN)
    told = f"to {F1.words} {_time(fast)} and {_time(slow)}; at the end {score:.2f}, optimum {final:.2f}"
    sooner, below = ahead(fast, slow, noise_of(F1)), score < final - SAME_F1
    held = SETTLED[sooner] if below else f"{FAILS} (it is ahead)" if sooner == 1 else FAILS
    return Finding(claim, one.title, "so in a figure", told, held, stored)
