"""The Japanese paper's open point: does SGD come before Newton-CG on a large corpus?

The paper speaks of the best score; gaps are looked at too, and both forms of Newton-CG: as published, and
with its start on the dual or by stochastic descent. For SGD stands the soonest of its schedules and batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from bench.claims import AT_LEAST, NOISE, Claim, Found
from bench.records import Entry, Results
from bench.speed.overview import contests as race
from bench.standings import Goal
from bench.tables import bullets, shown

#: What the paper says about its largest task, in our words; it prints no numbers of it, and rounds.
TASK, SENTENCES = "tagging parts of speech in the Penn Treebank", 40_000
REPORT = "SGD came to the best score sooner than the proposed method"
ADVICE = "the method suits tasks of small and middle size, as large corpora are hard to come by"
MACHINE = "Java on a Core 2 Quad of 2.4 GHz with 8 GB"
SIDES: dict[str, tuple[Entry, ...]] = {
    "SGD": (race.SGD, race.SGD_EXPONENTIAL, race.BATCH_SGD),
    "newton_cg": (race.NEWTON,),
    "Newton-CG as published": (race.PUBLISHED,),
    "L-BFGS": (race.LBFGS,),
    "EG": (race.EG,),
}
FORMS = ("Newton-CG as published", "newton_cg")


def brown(results: Results) -> race.Contestants | None:
    """The problem that stands in for the paper's largest."""
    return next((one for one in race.boards(results) if one.problem == race.BROWN), None)


def has_curve(one: race.Contestants, side: str) -> bool:
    return any(entry in one.entries for entry in SIDES[side])


def _best(one: race.Contestants, side: str, goal: Goal) -> tuple[Entry | None, float]:
    """The fastest of a side, and its seconds."""
    found = one.first([entry for entry in SIDES[side] if entry in one.entries], goal)
    return (None, math.inf) if found is None else found


def _sooner(results: Results) -> Iterator[Found]:
    one = brown(results)
    if one is None:
        return
    for form in FORMS:
        for goal in (race.SCORE, *race.GOALS[:-1]):
            seconds = {side: _best(one, side, goal)[1] for side in ("SGD", form)}
            told = [
                f"{side} {'not reached' if math.isinf(x) else f'{x:.0f} s'}"
                if has_curve(one, side)
                else f"{side} has no curve"
                for side, x in seconds.items()
            ]
            known, sgd, newton = all(has_curve(one, side) for side in seconds), *seconds.values()
            neither = math.isinf(sgd) and math.isinf(newton)
            yield Found(
                f"{one.contest.title}, {form}, to {race.phrase(goal)}",
                None if not known else math.nan if neither else newton / sgd,
                ", ".join(told),
                f"on {TASK} {REPORT}" if goal is race.SCORE else "",
                ("open-point.md", "open-point.png"),
                "neither arrived" if known and neither else "",
            )


CLAIMS = (
    Claim(
        "SGD comes before Newton-CG on a large corpus",
        "seconds of Newton-CG / seconds of the soonest form of SGD",
        AT_LEAST,
        _sooner,
        noise=NOISE,
    ),
)


def open_point_words(one: race.Contestants) -> str:
    """What the paper says, who wins here, and in which order they get to each goal."""
    sizes = [shown(one.facts.get(f"n_{name}"), ",") for name in ("sequences", "labels")]
    paper = (
        f"The paper, in words: on {TASK}, about {SENTENCES:,} sentences, {REPORT} ({MACHINE}); {ADVICE}. "
        f"{one.contest.title} has {sizes[0]} sentences and {sizes[1]} labels here."
    )
    lines = [_order(one, goal) for goal in (race.SCORE, *race.GOALS[:-1])]
    without = [entry for entry in one.contest.entries if entry.key in one.reasons]
    lines += [f"{entry.title} has no curve: {one.reasons[entry.key]}." for entry in without]
    refused = one.standings.get(race.EG.key)
    if refused is not None and not refused.available and race.NEWTON in one.entries:
        # Chains that EG is refused for are more than `newton_cg` allows its start.
        lines.append(
            "`newton_cg` begins with epochs of SGD here, for its usual start needs the same chains: a goal "
            "that it reaches in them is the merit of SGD."
        )
    verdict = " ".join(_duel(one, goal) for goal in (race.SCORE, race.MIDDLE))
    return f"{paper}\n\n**{verdict}**\n\n{bullets(lines)}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"


def _order(one: race.Contestants, goal: Goal) -> str:
    """Who gets to a goal in which order, and who does not."""
    there: list[tuple[float, str]] = []
    absent = []
    for side, members in SIDES.items():
        if not has_curve(one, side):
            continue
        entry, seconds = _best(one, side, goal)
        if entry is None:
            gaps = [gap for member in members for gap in [one.end_gap(member)] if gap is not None]
            lowest = f" (gap {race.gap_words(min(gaps))} at the end)" if gaps and goal.gap is not None else ""
            absent.append(f"{side}{lowest}")
        else:
            name = side if entry.title == side else f"{side} ({entry.title.removeprefix('SGD, ')})"
            there.append((seconds, f"{name} after {_seconds(seconds)}"))
    told = f"To {race.phrase(goal)}: " + (", ".join(text for _, text in sorted(there)) or "nobody")
    return told + (f"; not in {_seconds(one.contest.seconds)}: {', '.join(absent)}." if absent else ".")


def _duel(one: race.Contestants, goal: Goal) -> str:
    """SGD against either form of Newton-CG."""
    told = []
    for side in FORMS:
        missing = [name for name in (side, "SGD") if not has_curve(one, name)]
        (fast, winner), (slow, loser) = sorted((_best(one, name, goal)[1], name) for name in (side, "SGD"))
        if missing:
            told.append(f"{' and '.join(missing)} has no curve")
        elif math.isinf(fast):
            told.append(f"neither SGD nor {side} gets there")
        else:
            by = "which does not get there" if math.isinf(slow) else f"{slow / fast:.1f} times as fast"
            told.append(f"{winner} beats {loser} ({by})")
    return f"To {race.phrase(goal)}: {'; '.join(told)}."
