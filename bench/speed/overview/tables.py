"""The tables of the group: one for each problem, the headline, who is first; and what we say of them."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from bench.problems import problem
from bench.records import Check, Entry, Results
from bench.setting import THREADS
from bench.speed.overview import contests as race
from bench.speed.overview.open_point import brown, open_point_words
from bench.standings import Goal, Reach
from bench.tables import bullets, markdown, prose, shown


def tables(results: Results) -> dict[str, str]:
    found = race.boards(results)
    made = {one.problem: _contest(one) for one in found}
    made["reading"] = _reading(found)
    made["problems"] = _problems(found)
    made["headline"] = _headline(found)
    made["entries"] = _entries(found)
    made["choice"] = f"{_choice(found)}\n{bullets(_choice_words(found))}"
    largest = brown(results)
    if largest is not None:
        made["open-point"] = f"{_contest(largest, every=True)}\n{open_point_words(largest)}"
    return made


def _seconds(reach: Reach | None) -> str:
    """Two digits are as many as a repetition keeps."""
    if reach is None:
        return ""
    form = ".0f" if reach.reached and reach.median >= 99.5 else ".1f" if reach.median >= 9.95 else ".2f"
    return reach.words(form, " s")


def _problems(found: Sequence[race.Contestants]) -> str:
    sizes = ("sequences", "labels", "attributes", "weights")
    headings = ["", *sizes, "F*", "seconds", "score", "the best", "of"]
    rows = []
    for one in found:
        best = next((entry for entry in one.entries if one.end_score(entry) == one.best_score), None)
        cells = [shown(one.facts.get(f"n_{name}"), ",") for name in sizes]
        cells += [shown(one.optimum, ",.2f"), f"{one.contest.seconds:g}", one.contest.score_title]
        cells += [shown(one.best_score, ".2f"), "" if best is None else one.title(best)]
        rows.append([f"[{one.contest.title}]({one.problem}.md)", *cells])
    return markdown(headings, rows)


def _contest(one: race.Contestants, *, every: bool = False) -> str:
    """Everybody on a problem, the first at the middle gap first; passes to that, or to every goal."""
    asked = race.GOALS if every else (race.MIDDLE,)
    headings = [
        one.contest.title,
        *([] if every else ["of"]),
        *(f"to {race.words(goal)}" for goal in race.GOALS),
    ]
    headings += [f"passes to {race.words(goal)}" for goal in asked]
    headings += ["gap at the end", f"{one.contest.score_title} at the end"]
    rows = []
    for entry in one.ranked:
        passes, gap = [one.reach(entry, goal, "passes") for goal in asked], one.end_gap(entry)
        cells = [one.title(entry), *([] if every else [entry.family])]
        cells += [_seconds(one.reach(entry, goal)) for goal in race.GOALS]
        cells += ["" if reach is None else reach.words(".0f", "") for reach in passes]
        rows.append([*cells, "" if gap is None else race.gap_words(gap), shown(one.end_score(entry), ".2f")])
    without = [] if every else [entry for entry in one.contest.entries if entry.key in one.reasons]
    for entry in without:
        rows.append([entry.title, entry.family, one.reasons[entry.key], *[""] * (len(headings) - 3)])
    return markdown(headings, rows)


def _headline(found: Sequence[race.Contestants]) -> str:
    """Seconds to the middle gap, then to a good score; the fastest in bold, nobody who gets nowhere."""
    legend = (
        "Bold: fastest. –: not reached. Blank: not run. [Names as "
        "commands](../../results/index.md#how-to-read-it).\n"
    )
    goals = ((race.MIDDLE, race.phrase(race.MIDDLE)), (race.SCORE, f"a test score {race.phrase(race.SCORE)}"))
    parts = [f"Seconds to {told}:\n\n{_everywhere(found, goal)}" for goal, told in goals]
    return "\n".join([*parts, legend])


def _entries(found: Sequence[race.Contestants]) -> str:
    """What is behind the names of the tables: trainer and options."""
    run = [entry for entry in race.ENTRIES if any(entry in one.entries for one in found)]
    rows = [[entry.title, f"`{entry.text}`", entry.family] for entry in run]
    return markdown(["", "trainer and options, as `crfit race` takes them", "of"], rows, words=True)


def _everywhere(found: Sequence[race.Contestants], goal: Goal) -> str:
    rows, absent = [], []
    for entry in race.ENTRIES:
        reaches = [one.reach(entry, goal) for one in found]
        if any(reach is not None and reach.reached for reach in reaches):
            cells = [_cell(one, entry, goal) for one in found]
            rows.append([race.title_everywhere(found, entry), *cells])
        elif any(reach is not None for reach in reaches):
            absent.append(entry.title)
    table = markdown(["", *(one.contest.short for one in found)], rows)
    return table + (f"\nDid not reach the target anywhere: {'; '.join(absent)}.\n" if absent else "")


def _cell(one: race.Contestants, entry: Entry, goal: Goal) -> str:
    reach, first = one.reach(entry, goal), one.first(one.entries, goal)
    if reach is None or not reach.reached:
        return "" if reach is None else "–"
    told = _seconds(reach).removesuffix(" s")
    return f"**{told}**" if first is not None and first[0] == entry else told


def _choice(found: Sequence[race.Contestants]) -> str:
    headings = [""]
    for goal in race.GOALS:
        headings += [f"first to {race.words(goal)}", "auto takes"]
    rows = [
        [one.contest.title, *(cell for goal in race.GOALS for cell in _first_and_auto(one, goal))]
        for one in found
    ]
    return markdown(headings, rows)


def _first_and_auto(one: race.Contestants, goal: Goal) -> list[str]:
    first, times = one.first(one.entries, goal), one.behind(one.auto_entry, goal)
    if first is None:
        return ["nobody", ""]
    told = f"{one.title(first[0])}, {_seconds(one.reach(first[0], goal))}"
    if one.auto_entry is None:
        return [told, "not run"]
    return [told, "not reached" if times is None else f"{times:.1f} ×"]


def _reading(found: Sequence[race.Contestants]) -> str:
    """How the tables are to be read, with the limits that the runs had."""
    return prose(
        __file__,
        "reading",
        threads=THREADS,
        l2=" or ".join(f"{l2:g}" for l2 in sorted({problem(one.problem).l2 for one in found})),
        end=race.gap_words(race.END_GAP),
        passes=race.ONLINE_PASSES,
        share=race.SLOW_SHARE,
        slow="; ".join(entry.title for entry in race.ENTRIES if entry.share < 1.0),
        near=race.NEAR,
        sparse=next((one.contest.title for one in found if one.contest.sparse), None),
        mistakes=", ".join(entry.title for entry in race.ENTRIES if not entry.penalised),
    )


def _choice_words(found: Sequence[race.Contestants]) -> Iterator[str]:
    """Who is first how often, and how far ``auto`` is behind, in seconds and in scores."""
    yield from (_goal_words(found, goal) for goal in race.GOALS)
    rows = []
    for one in found:
        some = [
            [one.end_score(e) for e in one.entries if e.penalised is penalised] for penalised in (True, False)
        ]
        best, without = (max((s for s in scores if s is not None), default=None) for scores in some)
        if best is not None and without is not None:
            rows.append((without - best, one.contest.short))
    if rows:
        low, high = min(rows)[0], max(rows)[0]
        told = f"{low:+.2f}" if len(rows) == 1 else f"{low:+.2f} to {high:+.2f}"
        ahead = "; ".join(f"{name} ({difference:+.2f})" for difference, name in rows if difference > 0)
        yield (
            f"The best of PA, perceptron and AROW, which are unregularised, ends {told} from the best of the "
            f"others{'; ahead on ' * bool(ahead)}{ahead}."
        )
    scores = [(one, one.end_score(one.auto_entry)) for one in found if one.auto_entry is not None]
    below = [
        (one.best_score - score, one.contest.short)
        for one, score in scores
        if score is not None and one.best_score is not None
    ]
    if below:
        most, where = max(below)
        middle = statistics.median(difference for difference, _ in below)
        yield f"`auto` ends {middle:.2f} below the best score in the median, at most {most:.2f} ({where})."
    spreads = []
    for one in found:
        near = [e for e in one.entries if (one.end_gap(e) or math.inf) <= race.GAPS[1]]
        ends = [score for score in map(one.end_score, near) if score is not None]
        if len(ends) > 1:
            spreads.append((max(ends) - min(ends), one.contest.short))
    if spreads:
        most, where = max(spreads)
        yield (
            f"Runs that end at a relative gap of {race.gap_words(race.GAPS[1])} or less "
            "have scores that are at most "
            f"{most:.2f} apart on a problem ({where}): what they are below the best is the doing of the "
            "function that they minimise, and not of the trainer."
        )


def _goal_words(found: Sequence[race.Contestants], goal: Goal) -> str:
    firsts = [
        (one, first[0]) for one in found for first in [one.first(one.entries, goal)] if first is not None
    ]
    if not firsts:
        return ""
    count = Counter(entry.title for _, entry in firsts)
    who = "; ".join(f"{title} on {n}" for title, n in count.most_common())
    told = f"To {race.phrase(goal)}, first of all on {len(firsts)} problems: {who}."
    times = [one.behind(one.auto_entry, goal) for one, _ in firsts if one.auto_entry is not None]
    there = [ratio for ratio in times if ratio is not None]
    if times:
        told += f" `auto` gets there on {len(there)} of {len(times)}"
    if not there:
        return told + ("." if times else "")
    low, high = f"{min(there):.1f}", f"{max(there):.1f}"
    between = low if low == high else f"{low} to {high}"
    return f"{told}, in {between} times the seconds of the first (median {statistics.median(there):.1f})."


# --- what we say: little, with margin, for one run each was made -------------------------------------------

#: How many times the seconds of the first ``auto`` takes at most to the middle gap.
BEHIND = 4.0
#: How many times the seconds of `newton_cg` the published method takes at least, in the median of the chains.
FASTER = 2.0


def checks(results: Results) -> list[Check]:
    found = race.boards(results)
    usual = [one for one in found if one.problem != race.BROWN]
    made = [_same_function(one) for one in found]
    made += [_auto_arrives(usual), _auto_behind(usual, results.slack), _published(usual, results.slack)]
    stochastic = [entry for entry in race.ENTRIES if entry.max_passes is not None and entry.penalised]
    scaling = [entry for entry in race.ENTRIES if entry.share < 1.0]
    made.append(_never("stochastic", "no stochastic method", stochastic, found, race.TIGHT))
    made.append(_never("scaling", "no iterative scaling, plain or accelerated,", scaling, found, race.LOOSE))
    return made


def _same_function(one: race.Contestants) -> Check:
    """Nobody is below F* by more than it is uncertain."""
    gaps = [one.standings[entry.key].lowest_gap for entry in one.entries if entry.penalised]
    lowest = min(gaps, default=math.inf)
    text = (
        f"{one.contest.title}: {len(gaps)} entries minimise one function: lowest gap "
        f"{race.gap_words(lowest)}."
    )
    return Check(
        f"same-function-{one.problem}", text, len(gaps) > 1 and -one.uncertainty <= lowest < math.inf
    )


def _auto_arrives(found: Sequence[race.Contestants]) -> Check:
    there = [
        one for one in found if one.auto_entry and math.isfinite(one.seconds(one.auto_entry, race.TIGHT))
    ]
    text = f"What `auto` chooses gets to {race.phrase(race.TIGHT)} on {len(there)} of {len(found)} problems."
    return Check("auto-arrives", text, bool(found) and len(there) == len(found))


def _auto_behind(found: Sequence[race.Contestants], slack: float) -> Check:
    times = [(one.behind(one.auto_entry, race.MIDDLE) or math.inf, one.contest.title) for one in found]
    worst, where = max(times, default=(math.inf, "none"))
    most = BEHIND / slack
    text = (
        f"To {race.phrase(race.MIDDLE)} `auto` takes at most {worst:.1f} times the seconds of "
        f"the first ({where}), "
    )
    return Check("auto-behind", f"{text}no more than {most:g}.", worst <= most)


def _published(found: Sequence[race.Contestants], slack: float) -> Check:
    """A run that was ended by its limit counts with the seconds that it had."""
    times = []
    for one in found:
        entries = (race.NEWTON, race.PUBLISHED)
        if problem(one.problem).kind == "chain" and all(one.reach(entry, race.MIDDLE) for entry in entries):
            ratio = one.times(*entries, race.MIDDLE)
            times.append((0.0 if ratio is None else ratio.ratio, one.contest.title))
    ratios = [ratio for ratio, _ in times]
    (least, where), median = min(times, default=(0.0, "none")), statistics.median(ratios) if ratios else 0.0
    sooner, needed = sum(ratio > 1.0 for ratio in ratios), FASTER * slack
    text = (
        f"To {race.phrase(race.MIDDLE)} `newton_cg` is sooner than the published "
        f"Newton-CG on {sooner} of {len(times)} "
        f"chains: that takes {median:.1f} times its seconds in the median, at least {needed:g}, and "
        f"{least:.1f} times on {where}."
    )
    return Check("published", text, median >= needed)


def _never(
    name: str, who: str, entries: Sequence[Entry], found: Sequence[race.Contestants], goal: Goal
) -> Check:
    """In the passes and seconds that they had."""
    runs = [(one, entry) for one in found for entry in entries if entry in one.entries]
    lowest = min((one.standings[entry.key].lowest_gap for one, entry in runs), default=math.inf)
    text = (
        f"In {len(runs)} runs {who} gets to {race.phrase(goal)}: the lowest gap is {race.gap_words(lowest)}."
    )
    return Check(name, text, bool(runs) and goal.gap is not None and lowest > goal.gap)
