"""The tables of the group: one for each problem, the headline, who is first; and what we say of them."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from bench.claims import AT_LEAST, NOISE, Claim, Found
from bench.problems import problem
from bench.records import Check, Entry, Results
from bench.speed.overview import contests as race
from bench.speed.overview.contests import Contestants
from bench.standings import Goal, Reach
from bench.tables import Column, bullets, markdown, prose, shown, table_of


def tables(results: Results) -> dict[str, str]:
    found, largest = race.boards(results), race.brown(results)
    made = {one.problem: _contest(one) for one in found}
    if largest is not None:
        made["open-point"] = f"{_contest(largest, every=True)}\n{_open_point(largest)}"
    run = [entry for entry in race.ENTRIES if any(entry in one.entries for one in found)]
    trainers = Column[Entry](
        "trainer and options, as `crfit race` takes them", lambda entry: f"`{entry.text}`"
    )
    columns = (
        Column[Entry]("", lambda entry: entry.title),
        trainers,
        Column[Entry]("of", lambda entry: entry.family),
    )
    return {
        **made,
        "reading": prose(__file__, "reading"),
        "problems": _problems(found),
        "headline": _headline(found),
        "entries": table_of(run, *columns, words=True),
        "choice": _choice(found),
    }


def _taken(one: Contestants, goal: Goal, entry: Entry) -> str:
    return _seconds(one.reach(entry, goal))


def _seconds(reach: Reach | None) -> str:
    """Two digits are as many as a repetition keeps."""
    if reach is None:
        return ""
    form = ".0f" if reach.reached and reach.median >= 99.5 else ".1f" if reach.median >= 9.95 else ".2f"
    return reach.words(form, " s")


def _contest(one: Contestants, *, every: bool = False) -> str:
    """Everybody on a problem, the first at the middle gap first; passes to that, or to every goal."""
    asked = race.GOALS if every else (race.MIDDLE,)
    columns = [Column[Entry](one.contest.title, one.title)]
    columns += [] if every else [Column("of", lambda entry: entry.family)]
    columns += [Column(f"to {race.words(goal)}", partial(_taken, one, goal)) for goal in race.GOALS]
    for goal in asked:
        passes = partial(one.reach, goal=goal, unit="passes")
        columns.append(Column(f"passes to {race.words(goal)}", passes, ".0f"))
    columns.append(Column("gap at the end", lambda entry: race.gap_words(one.standings[entry.key].end_gap)))
    columns.append(Column(f"{one.contest.score_title} at the end", one.end_score, ".2f"))
    made = table_of(one.ranked, *columns)
    for entry in one.contest.entries:
        if entry.key in one.reasons and not every:
            cells = [entry.title, entry.family, one.reasons[entry.key]]
            made += f"| {' | '.join(cells)} |{' |' * (len(columns) - 3)}\n"
    return made


def _problems(found: Sequence[Contestants]) -> str:
    """Sizes; the best score, and how far from it `auto`, those by mistakes, and those at small gaps end."""
    sizes = [
        Column(name, partial(_size, name), ",") for name in ("sequences", "labels", "attributes", "weights")
    ]
    return table_of(
        found,
        Column("", lambda one: f"[{one.contest.title}]({one.problem}.md)"),
        *sizes,
        Column("F*", lambda one: one.optimum, ",.2f"),
        Column("seconds", lambda one: one.contest.seconds, "g"),
        Column("score", lambda one: one.contest.score_title),
        Column("the best", lambda one: one.best_score, ".2f"),
        Column(
            "of",
            lambda one: next((one.title(e) for e in one.entries if one.end_score(e) == one.best_score), ""),
        ),
        Column("auto", lambda one: one.auto_entry and one.end_score(one.auto_entry), ".2f"),
        Column("best of PA, perceptron, AROW", _by_mistakes, ".2f"),
        Column(f"range at gaps up to {race.gap_words(race.GAPS[1])}", _range, ".2f"),
    )


def _size(name: str, one: Contestants) -> int | None:
    return one.facts.get(f"n_{name}")


def _by_mistakes(one: Contestants) -> float | None:
    """The best score at the end of those that minimise another function."""
    scores = [one.end_score(entry) for entry in one.entries if not entry.penalised]
    return max((score for score in scores if score is not None), default=None)


def _range(one: Contestants) -> float | None:
    """Of the scores at the end of runs that come to the middle gap."""
    near = [entry for entry in one.entries if (one.standings[entry.key].end_gap or math.inf) <= race.GAPS[1]]
    scores = [score for score in map(one.end_score, near) if score is not None]
    return max(scores) - min(scores) if len(scores) > 1 else None


def _headline(found: Sequence[Contestants]) -> str:
    """Seconds to the middle gap, then to a good score; the fastest in bold, nobody who gets nowhere."""
    legend = (
        "Bold: fastest. –: not reached. Blank: not run. [Names as "
        "commands](../../results/index.md#how-to-read-it).\n"
    )
    goals = {
        race.MIDDLE: f"a relative gap of {race.gap_words(race.GAPS[1])}",
        race.SCORE: f"a test score {race.words(race.SCORE)}",
    }
    parts = [f"Seconds to {told}:\n\n{_everywhere(found, goal)}" for goal, told in goals.items()]
    return "\n".join([*parts, legend])


def _everywhere(found: Sequence[Contestants], goal: Goal) -> str:
    rows, absent = [], []
    for entry in race.ENTRIES:
        reaches = [one.reach(entry, goal) for one in found]
        if any(reach is not None and reach.reached for reach in reaches):
            rows.append([race.title_everywhere(found, entry), *(_cell(one, entry, goal) for one in found)])
        elif any(reach is not None for reach in reaches):
            absent.append(entry.title)
    table = markdown(["", *(one.contest.short for one in found)], rows)
    return table + (f"\nDid not reach the target anywhere: {'; '.join(absent)}.\n" if absent else "")


def _cell(one: Contestants, entry: Entry, goal: Goal) -> str:
    reach, first = one.reach(entry, goal), one.first(one.entries, goal)
    if reach is None or not reach.reached:
        return "" if reach is None else "–"
    told = _seconds(reach).removesuffix(" s")
    return f"**{told}**" if first is not None and first[0] == entry else told


def _choice(found: Sequence[Contestants]) -> str:
    """Who is first, and how far `auto` is behind; last, who is first most often, and the median."""
    headings, rows, last = (
        [""],
        [[one.contest.title] for one in found],
        ["most often first; `auto` in the median"],
    )
    for goal in race.GOALS:
        headings += [f"first to {race.words(goal)}", "auto takes"]
        firsts = [one.first(one.entries, goal) for one in found]
        times = [one.behind(one.auto_entry, goal) for one in found]
        for one, row, first, behind in zip(found, rows, firsts, times, strict=True):
            row.append(
                "nobody" if first is None else f"{one.title(first[0])}, {_seconds(one.reach(first[0], goal))}"
            )
            absent = "not run" if one.auto_entry is None else "not reached"
            row.append("" if first is None else shown(behind, ".1f", " ×", absent))
        (most, n), *_ = Counter(first[0].title for first in firsts if first).most_common() or [("nobody", 0)]
        known = [behind for behind in times if behind is not None]
        middle = f"{statistics.median(known):.1f} × on {len(known)}" if known else "nowhere"
        last += [f"{most} on {n}", middle]
    return markdown(headings, [*rows, last])


# --- the Japanese paper's open point: does SGD come before Newton-CG on a large corpus? --------------------

# The paper speaks of the best score; gaps are looked at too, and both forms of Newton-CG: as published, and
# with its start on the dual or by stochastic descent. For SGD stands the soonest of its forms.
REPORT = "on tagging parts of speech SGD came to the best score sooner than the proposed method"
SGD = (race.SGD, race.SGD_EXPONENTIAL, race.BATCH_SGD)


def _sooner(results: Results) -> Iterator[Found]:
    one = race.brown(results)
    goals = (race.SCORE, *race.GOALS[:-1]) if one is not None else ()
    for form, goal in product((race.PUBLISHED, race.NEWTON), goals):
        assert one is not None
        seconds, told = [], []  # nan without a curve, infinity where the goal is not reached
        for side, entries in {"SGD": SGD, form.title: (form,)}.items():
            found = [one.seconds(entry, goal) for entry in entries if entry in one.entries]
            seconds.append(min(found, default=math.nan))
            reached = f"{seconds[-1]:.0f} s" if math.isfinite(seconds[-1]) else "not reached"
            told.append(f"{side} {reached if found else 'has no curve'}")
        sgd, newton = seconds
        neither = sgd == newton == math.inf
        yield Found(
            f"{one.contest.title}, {form.title}, to {race.words(goal)}",
            None if math.isnan(sgd + newton) else math.nan if neither else newton / sgd,
            ", ".join(told),
            REPORT if goal is race.SCORE else "",
            ("open-point.md", "open-point.png"),
            "neither arrived" * neither,
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


def _open_point(one: Contestants) -> str:
    """What the paper says, who has no curve, and what that means for the start of `newton_cg`."""
    refused = one.standings.get(
        race.EG.key
    )  # for its chains, which are more than `newton_cg` allows its start
    own_start = refused is None or refused.available or race.NEWTON not in one.entries
    without = [entry for entry in one.contest.entries if entry.key in one.reasons]
    return prose(
        __file__,
        "open-point",
        title=one.contest.title,
        sequences=one.facts.get("n_sequences"),
        labels=one.facts.get("n_labels"),
        without=bullets(f"{entry.title} has no curve: {one.reasons[entry.key]}." for entry in without),
        start=None if own_start else "- ",
    )


# --- what we say: little, with margin, for one run each was made -------------------------------------------

#: How many times the seconds of the first ``auto`` takes at most to the middle gap.
BEHIND = 4.0
#: How many times the seconds of `newton_cg` the published method takes at least, in the median of the chains.
FASTER = 2.0


def checks(results: Results) -> list[Check]:
    found = race.boards(results)
    usual = [one for one in found if one.problem != race.BROWN]
    stochastic = [entry for entry in race.ENTRIES if entry.max_passes is not None and entry.penalised]
    scaling = [entry for entry in race.ENTRIES if entry.share < 1.0]
    return [
        *map(_same_function, found),
        _auto(usual, results.slack),
        _published(usual, results.slack),
        _never("stochastic", "stochastic method", stochastic, found, race.TIGHT),
        _never("scaling", "iterative scaling, plain or accelerated,", scaling, found, race.LOOSE),
    ]


def _same_function(one: Contestants) -> Check:
    """Nobody is below F* by more than it is uncertain."""
    gaps = [one.standings[entry.key].lowest_gap for entry in one.entries if entry.penalised]
    lowest = min(gaps, default=math.inf)
    text = f"{one.contest.title}: {len(gaps)} entries minimise one function: lowest gap "
    holds = len(gaps) > 1 and -one.uncertainty <= lowest < math.inf
    return Check(f"same-function-{one.problem}", f"{text}{race.gap_words(lowest)}.", holds)


def _auto(found: Sequence[Contestants], slack: float) -> Check:
    """What `auto` chooses gets to the last gap everywhere, and to the middle one not much after the first."""
    late = [one.contest.title for one in found if one.behind(one.auto_entry, race.TIGHT) is None]
    worst = max((one.behind(one.auto_entry, race.MIDDLE) or math.inf for one in found), default=math.inf)
    text = f"`auto` gets to {race.words(race.TIGHT)} on {len(found) - len(late)} of {len(found)} problems, "
    text += f"to {race.words(race.MIDDLE)} in {worst:.1f} times the seconds of the first, "
    text += f"at most {BEHIND / slack:g}."
    return Check("auto", text, not late and worst <= BEHIND / slack)


def _published(found: Sequence[Contestants], slack: float) -> Check:
    """A run that was ended by its limit counts with the seconds that it had."""
    ratios = []
    for one in found:
        entries = race.NEWTON, race.PUBLISHED
        if problem(one.problem).kind == "chain" and all(one.reach(entry, race.MIDDLE) for entry in entries):
            times = one.times(*entries, race.MIDDLE)
            ratios.append(0.0 if times is None else times.ratio)
    median, sooner = statistics.median(ratios or [0.0]), sum(ratio > 1.0 for ratio in ratios)
    text = f"To {race.words(race.MIDDLE)} `newton_cg` is sooner than the published Newton-CG on {sooner} of "
    text += f"{len(ratios)} chains, in the median {median:.1f} times as fast, at least {FASTER * slack:g}."
    return Check("published", text, median >= FASTER * slack)


def _never(name: str, who: str, entries: Sequence[Entry], found: Sequence[Contestants], goal: Goal) -> Check:
    """In the passes and seconds that they had."""
    gaps = [one.standings[e.key].lowest_gap for one in found for e in entries if e in one.entries]
    lowest = min(gaps, default=-math.inf)
    text = f"In {len(gaps)} runs no {who} gets to {race.words(goal)}: the lowest is {race.gap_words(lowest)}."
    return Check(name, text, lowest > (goal.gap or 0.0))
