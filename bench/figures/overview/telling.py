"""The choice of a trainer and the open point in sentences, made of the stored runs."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence

from bench.figures.base import shown
from bench.figures.overview import papers
from bench.figures.overview.boards import GOALS, SCORE, Board, Goal, gap_words
from bench.figures.overview.contests import GAPS
from bench.figures.overview.entries import (
    BATCH_SGD,
    EG,
    LBFGS,
    NEWTON,
    PUBLISHED,
    SGD,
    SGD_EXPONENTIAL,
    Entry,
)

__all__ = ["best_of_side", "choice_words", "has_curve", "open_point_words", "order_words"]

SGDS = (SGD, SGD_EXPONENTIAL, BATCH_SGD)
#: The sides of the open point.
SIDES: dict[str, tuple[Entry, ...]] = {
    "SGD": SGDS,
    "newton_cg": (NEWTON,),
    "Newton-CG as published": (PUBLISHED,),
    "L-BFGS": (LBFGS,),
    "EG": (EG,),
}


def choice_words(found: Sequence[Board]) -> str:
    """A sentence on each goal: who is first how often, and how far ``auto`` is behind."""
    told = [words for goal in GOALS for words in [_goal_words(found, goal)] if words]
    told += [words for words in [_score_words(found), _auto_words(found), _spread_words(found)] if words]
    return "\n".join(f"- {words}" for words in told) + "\n"


def _goal_words(found: Sequence[Board], goal: Goal) -> str:
    firsts = [(one, first[0]) for one in found for first in [one.first(goal)] if first is not None]
    if not firsts:
        return ""
    count = Counter(entry.title for _, entry in firsts)
    who = "; ".join(f"{title} on {n}" for title, n in count.most_common())
    words = f"To {goal.phrase}, first of all on {len(firsts)} problems: {who}."
    asked = [(one, one.auto_entry) for one, _ in firsts]
    times = [one.behind(auto, goal) for one, auto in asked if auto is not None]
    there = [ratio for ratio in times if ratio is not None]
    if times:
        words += f" `auto` gets there on {len(there)} of {len(times)}"
    if not there:
        return words + ("." if times else "")
    words += f", in {_range(there)} times the seconds of the first (median {statistics.median(there):.1f})."
    return words


def _range(numbers: Sequence[float]) -> str:
    low, high = f"{min(numbers):.1f}", f"{max(numbers):.1f}"
    return low if low == high else f"{low} to {high}"


def _score_words(found: Sequence[Board]) -> str:
    """Where learning by mistakes is good enough, and what that costs elsewhere."""
    rows = []
    for one in found:
        others = [one.end_score(entry) for entry in one.entries if entry.penalised]
        mistakes = [one.end_score(entry) for entry in one.entries if not entry.penalised]
        best, without = (max((s for s in some if s is not None), default=None) for some in (others, mistakes))
        if best is not None and without is not None:
            rows.append((without - best, one.contest.short))
    if not rows:
        return ""
    ahead = [f"{name} ({difference:+.2f})" for difference, name in rows if difference > 0]
    words = "The best of PA, perceptron and AROW, which know no penalty, ends "
    words += f"{_signed(rows)} from the best of the others"
    return words + (f"; ahead on {'; '.join(ahead)}." if ahead else ".")


def _signed(rows: Sequence[tuple[float, str]]) -> str:
    low, high = min(rows)[0], max(rows)[0]
    return f"{low:+.2f}" if len(rows) == 1 else f"{low:+.2f} to {high:+.2f}"


def _auto_words(found: Sequence[Board]) -> str:
    """What the weights of ``auto`` score, beside the best that anybody ended with."""
    rows = []
    for one in found:
        score = None if one.auto_entry is None else one.end_score(one.auto_entry)
        if score is not None and one.best_score is not None:
            rows.append((one.best_score - score, one.contest.short))
    if not rows:
        return ""
    most, where = max(rows)
    middle = statistics.median(difference for difference, _ in rows)
    return f"`auto` ends {middle:.2f} below the best score in the median, at most {most:.2f} ({where})."


def _spread_words(found: Sequence[Board]) -> str:
    """Near the optimum everybody has its score."""
    rows = []
    for one in found:
        near = [e for e in one.entries if (one.end_gap(e) or math.inf) <= GAPS[1]]
        scores = [score for score in map(one.end_score, near) if score is not None]
        if len(scores) > 1:
            rows.append((max(scores) - min(scores), one.contest.short))
    if not rows:
        return ""
    most, where = max(rows)
    return (
        f"Runs that end at a relative gap of {gap_words(GAPS[1])} or less have scores that are at most "
        f"{most:.2f} apart on a problem ({where}): what they are below the best is the doing of the function "
        "that they minimise, and not of the trainer."
    )


def _told_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"


def best_of_side(one: Board, side: str, goal: Goal) -> tuple[Entry, float] | None:
    """The fastest of a side, and its seconds."""
    return one.first(goal, [entry for entry in SIDES[side] if entry in one.entries])


def has_curve(one: Board, side: str) -> bool:
    """Whether anybody of a side has a run to be compared."""
    return any(entry in one.entries for entry in SIDES[side])


def order_words(one: Board, goal: Goal) -> str:
    """Who gets to a goal in which order, and who does not."""
    there: list[tuple[float, str]] = []
    absent = []
    for side, members in SIDES.items():
        if not has_curve(one, side):
            continue
        best = best_of_side(one, side, goal)
        if best is None:
            gaps = [gap for entry in members for gap in [one.end_gap(entry)] if gap is not None]
            lowest = f" (gap {gap_words(min(gaps))} at the end)" if gaps and goal.gap is not None else ""
            absent.append(f"{side}{lowest}")
        else:
            entry, seconds = best
            name = side if entry.title == side else f"{side} ({entry.title.removeprefix('SGD, ')})"
            there.append((seconds, f"{name} after {_told_seconds(seconds)}"))
    words = f"To {goal.phrase}: " + (", ".join(text for _, text in sorted(there)) or "nobody")
    if absent:
        words += f"; not in {_told_seconds(one.contest.seconds)}: {', '.join(absent)}"
    return words + "."


def open_point_words(one: Board) -> str:
    """What the paper says, who wins here, and in which order they get to each goal."""
    size = (
        f"{one.contest.title} has {shown(one.facts.get('n_sequences'), ',')} sentences and "
        f"{shown(one.facts.get('n_labels'), ',')} labels here"
    )
    paper = (
        f"The paper, in words: on {papers.TASK}, about {papers.SENTENCES:,} sentences, {papers.REPORT} "
        f"({papers.MACHINE}); {papers.ADVICE}. {size}."
    )
    orders = [f"- {order_words(one, goal)}" for goal in (SCORE, *GOALS[:-1])]
    left = [f"- {title} has no curve: {why}." for title, why in _without(one)]
    return "\n".join([paper, "", f"**{_verdict(one)}**", "", *orders, *left, *_start(one)]) + "\n"


def _start(one: Board) -> list[str]:
    """Chains that EG is refused for are more than `newton_cg` allows its start: it begins with SGD then."""
    refused = one.standings.get(EG.key)
    if refused is None or refused.available or NEWTON not in one.entries:
        return []
    return [
        "- `newton_cg` begins with epochs of SGD here, for its usual start needs the same chains: a goal "
        "that it reaches in them is the merit of SGD."
    ]


def _without(one: Board) -> list[tuple[str, str]]:
    return [(e.title, one.reasons[e.key]) for e in one.contest.entries if e.key in one.reasons]


def _verdict(one: Board) -> str:
    """Who is sooner at a good score, which is what the paper speaks of, and at the middle gap."""
    return " ".join(_duel(one, goal) for goal in (SCORE, GOALS[1]))


def _duel(one: Board, goal: Goal) -> str:
    """SGD against either form of Newton-CG."""
    sgd = best_of_side(one, "SGD", goal)
    told = []
    for side in ("Newton-CG as published", "newton_cg"):
        missing = [name for name in (side, "SGD") if not has_curve(one, name)]
        if missing:
            told.append(f"{' and '.join(missing)} has no curve")
            continue
        newton = best_of_side(one, side, goal)
        ours, theirs = (math.inf if best is None else best[1] for best in (newton, sgd))
        if math.isinf(ours) and math.isinf(theirs):
            told.append(f"neither SGD nor {side} gets there")
        elif theirs < ours:
            told.append(_beats("SGD", side, theirs, ours))
        else:
            told.append(_beats(side, "SGD", ours, theirs))
    return f"To {goal.phrase}: {'; '.join(told)}."


def _beats(winner: str, loser: str, fast: float, slow: float) -> str:
    told = "which does not get there" if math.isinf(slow) else f"{slow / fast:.1f} times as fast"
    return f"{winner} beats {loser} ({told})"
