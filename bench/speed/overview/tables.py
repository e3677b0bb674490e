"""Tables: one per problem, seconds to a gap and to a good score, final scores; claims and checks."""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from bench.claims import AT_LEAST, GRID_NOISE, NOISE, Claim, Found
from bench.problems import problem
from bench.records import Check, Entry, Results
from bench.speed.overview import contests as race
from bench.speed.overview.contests import Contestants
from bench.standings import Goal, Reach, Times
from bench.tables import Column, bullets, markdown, prose, table_of


def tables(results: Results) -> dict[str, str]:
    found, largest = race.boards(results), race.brown(results)
    made = {one.problem: _contest(one) for one in found}
    if largest is not None:
        made["open-point"] = f"{_contest(largest, every=True)}\n{_open_point(largest)}"
    made |= {"gaps": _everywhere(found, race.MIDDLE), "good-scores": _everywhere(found, race.SCORE)}
    return made | {
        "finding": _finding(found),
        "reading": prose(__file__, "reading"),
        "problems": _problems(found),
        "scores": _scores(found),
        "entries": _entries(found),
    }


def _seconds(reach: Reach | None) -> str:
    """Two digits are reproducible."""
    if reach is None:
        return ""
    digits = sum(reach.median < limit for limit in (99.5, 9.95, 0.0995)) if reach.reached else 1
    return reach.words(f".{digits}f", " s")


def _contest(one: Contestants, *, every: bool = False) -> str:
    """All entries of a problem, the fastest first; passes to the middle gap, or to every goal."""
    columns = [Column[Entry](one.contest.title, lambda entry: entry.title)]
    columns += [] if every else [Column("paper", lambda entry: entry.family)]
    for goal in race.GOALS:
        reach = partial(one.reach, goal=goal)
        columns.append(Column(f"to {race.words(goal)}", lambda entry, reach=reach: _seconds(reach(entry))))  # type: ignore[misc]
    for goal in race.GOALS if every else (race.MIDDLE,):
        passes = partial(one.reach, goal=goal, unit="passes")
        columns.append(Column(f"passes to {race.words(goal)}", passes, ".0f"))
    columns.append(Column("final gap", lambda entry: race.gap_words(one.standings[entry.key].end_gap)))
    columns.append(Column(f"final {one.contest.score_title}", one.end_score, ".2f"))
    made = table_of(one.ranked, *columns)
    for entry in one.contest.entries:
        if entry.key in one.reasons and not every:
            cells = [entry.title, entry.family, one.reasons[entry.key]]
            made += f"| {' | '.join(cells)} |{' |' * (len(columns) - 3)}\n"
    return made


def _entries(found: Sequence[Contestants]) -> str:
    run = [entry for entry in race.ENTRIES if any(entry in one.entries for one in found)]
    return table_of(
        run,
        Column("label", lambda entry: entry.title),
        Column("what it is", lambda entry: entry.notes["is"]),
        Column("trainer and options, as in `crfit race`", lambda entry: f"`{entry.text}`"),
        Column("paper", lambda entry: entry.family),
        words=True,
    )


def _problems(found: Sequence[Contestants]) -> str:
    sizes = ("sequences", "labels", "attributes", "weights")
    return table_of(
        found,
        Column("problem (all numbers)", lambda one: f"[{one.contest.title}]({one.problem}.md)"),
        *(Column(name, partial(Contestants.size, name=name), ",") for name in sizes),
        Column("optimum F*", lambda one: one.optimum, ",.2f"),
        Column("time limit", lambda one: one.contest.seconds, "g", " s"),
    )


def _scores(found: Sequence[Contestants]) -> str:
    """Final scores: the best, crfit's default, unregularised methods, and all that converged."""

    def best(one: Contestants) -> str:
        return next((e.title for e in one.entries if one.end_score(e) == one.best_score), "")

    return table_of(
        found,
        Column("problem", lambda one: one.contest.title),
        Column("score", lambda one: one.contest.score_title),
        Column("best of all trainers", lambda one: one.best_score, ".2f"),
        Column("reached by", best),
        Column("crfit (default)", lambda one: one.auto_entry and one.end_score(one.auto_entry), ".2f"),
        Column("best of PA, perceptron, AROW", _by_mistakes, ".2f"),
        Column(f"largest difference at gaps up to {race.gap_words(race.GAPS[1])}", _range, ".2f"),
    )


def _by_mistakes(one: Contestants) -> float | None:
    """The best final score of the unregularised methods."""
    scores = [one.end_score(entry) for entry in one.entries if not entry.penalised]
    return max((score for score in scores if score is not None), default=None)


def _range(one: Contestants) -> float | None:
    """Largest difference of final scores between runs that reach the middle gap."""
    near = [entry for entry in one.entries if (one.standings[entry.key].end_gap or math.inf) <= race.GAPS[1]]
    scores = [score for score in map(one.end_score, near) if score is not None]
    return max(scores) - min(scores) if len(scores) > 1 else None


#: Why a trainer that reaches the optimum may have no time to a good score.
WHY_NOT = (
    " A dash does not mean a worse model: every run uses `l2 = 1`, and the best score is the maximum over "
    "all trainers, including those that stop far from the optimum of that penalty. Choosing `l2` changes the "
    "score more than choosing a trainer that converges."
)


def _everywhere(found: Sequence[Contestants], goal: Goal) -> str:
    """Seconds to a goal on all problems, without the methods that never reach it."""
    rows, absent = [], []
    for entry in race.ENTRIES:
        reaches = [one.reach(entry, goal) for one in found]
        if any(reach is not None and reach.reached for reach in reaches):
            rows.append([entry.title, *(_cell(one, entry, goal) for one in found)])
        elif any(reach is not None for reach in reaches):
            absent.append(entry.title)
    told = "Bold: fastest, or within 10 % of it. –: not reached. Blank: not run."
    told += f" Did not reach the target on any problem: {'; '.join(absent)}." if absent else ""
    told += WHY_NOT if goal is race.SCORE else ""
    headings = [f"seconds to {race.words(goal)}", *(one.contest.short for one in found)]
    return f"{markdown(headings, rows)}\n{told}\n"


def _cell(one: Contestants, entry: Entry, goal: Goal) -> str:
    reach, behind = one.reach(entry, goal), one.behind(entry, goal)
    if reach is None or not reach.reached:
        return "" if reach is None else "–"
    told = _seconds(reach).removesuffix(" s")
    return f"**{told}**" if behind is not None and behind <= NOISE else told


def _finding(found: Sequence[Contestants]) -> str:
    """On how many problems crfit's default is the fastest, and how the papers' methods do."""
    behind = [one.behind(one.auto_entry, race.MIDDLE) for one in found]
    later = [times for times in behind if times is not None and times > NOISE]
    missed = [one.contest.title for one, times in zip(found, behind, strict=True) if times is None]
    published = [times for one in found if (times := one.times(race.NEWTON, race.PUBLISHED, race.MIDDLE))]
    clustered = [times for one in found if (times := one.times(race.LBFGS, race.CLUSTERED, race.MIDDLE))]
    stochastic = [entry for entry in race.ENTRIES if entry.max_passes is not None]
    with_eg = [one for one in found if race.EG in one.entries]
    firsts = Counter(first[0].title for one in found if (first := one.first(one.entries, race.SCORE)))
    if not (published and clustered):
        return ""
    return prose(
        __file__,
        "finding",
        gap=race.gap_words(race.GAPS[1]),
        near=race.NEAR,
        problems=len(found),
        first=len(found) - len(later) - len(missed),
        later=len(later),
        worst=max(later, default=None),
        missed=" and ".join(missed) or None,
        published=_slower(published),
        times=statistics.median(times.ratio for times in published),
        clustered=_slower(clustered),
        stochastic=sum(any(math.isfinite(one.seconds(e, race.MIDDLE)) for e in stochastic) for one in found),
        eg=sum(math.isfinite(one.seconds(race.EG, race.MIDDLE)) for one in with_eg),
        eg_run=len(with_eg),
        firsts=_counted(firsts),
    )


def _counted(firsts: Counter[str]) -> str:
    """Titles with their counts, the unit after the first."""
    told = [f"{title} ({count})" for title, count in firsts.most_common()]
    return ", ".join(told).replace(")", " problems)", 1)


def _slower(times: Sequence[Times]) -> str:
    """On how many problems a method is slower; within the noise and faster, if there are such."""
    slower, faster = (sum(find(one.ratio) for one in times) for find in (NOISE.__lt__, (1 / NOISE).__gt__))
    level = len(times) - slower - faster
    told = f"{slower} of {len(times)} problems"
    told += f", within 10 % of it on {level}" * (level > 0)
    return told + f", faster on {faster}" * (faster > 0)


# --- the Japanese paper's open point: is SGD faster than Newton-CG on a large corpus? ----------------------

# The paper reports the best score of its method; crfit's default and the gaps are our own question.
SGD = (race.SGD, race.SGD_EXPONENTIAL, race.BATCH_SGD)
NO_BOUND = "killed without a curve, so not even a bound is known"


def _sooner(form: Entry, *goals: Goal) -> Callable[[Results], Iterator[Found]]:
    """Seconds of a Newton-CG / seconds of the fastest variant of SGD."""

    def find(results: Results) -> Iterator[Found]:
        one = race.brown(results)
        for goal in goals if one is not None else ():
            assert one is not None
            seconds, told = [], []  # nan without a curve, infinity where the goal is not reached
            for side, entries in {"SGD": SGD, form.title: (form,)}.items():
                found = [one.seconds(entry, goal) for entry in entries if entry in one.entries]
                seconds.append(min(found, default=math.nan))
                reached = f"{seconds[-1]:.0f} s" if math.isfinite(seconds[-1]) else "not reached"
                told.append(f"{side} {reached if found else 'without a result'}")
            sgd, newton = seconds
            neither = sgd == newton == math.inf
            value = None if math.isnan(sgd + newton) else math.nan if neither else newton / sgd
            where = f"{one.contest.title}, to {race.words(goal)}"
            remark = "neither reached it" if neither else "" if value is not None else NO_BOUND
            yield Found(where, value, ", ".join(told), remark=remark)

    return find


_LARGE = "[large corpus](../../results/index.md#a-large-corpus-newton-cg-or-sgd)"
CLAIMS = (
    Claim(
        "on a large corpus, SGD reaches the best score before Newton-CG",
        "seconds of Newton-CG as published / seconds of the fastest variant of SGD",
        AT_LEAST,
        _sooner(race.PUBLISHED, race.SCORE),
        noise=GRID_NOISE,
        paper="SGD was first (no numbers)",
        shown=(_LARGE,),
    ),
    Claim(
        "on a large corpus, SGD is faster than crfit's default",
        "seconds of crfit's default / seconds of the fastest variant of SGD",
        AT_LEAST,
        _sooner(race.NEWTON, race.SCORE, *race.GOALS[:-1]),
        noise=GRID_NOISE,
        ours=True,
        shown=(_LARGE,),
    ),
)


def _open_point(one: Contestants) -> str:
    """What the paper reports, which runs have no curve, and how the default starts here."""
    # The warm-up on the dual needs as much memory as EG, which was refused.
    refused = one.standings.get(race.EG.key)
    own_start = refused is None or refused.available or race.NEWTON not in one.entries
    without = [entry for entry in one.contest.entries if entry.key in one.reasons]
    return prose(
        __file__,
        "open-point",
        title=one.contest.title,
        sequences=one.facts.get("n_sequences"),
        labels=one.facts.get("n_labels"),
        without=bullets(f"{entry.title}: {one.reasons[entry.key]}." for entry in without),
        warm_up=None if own_start else "- ",
    )


# --- checks, with margin because there is one run of each -------------------------------------------------

#: Seconds of crfit's default over those of the fastest, to the middle gap: at most.
BEHIND = 4.0
#: Seconds of Newton-CG as published over those of crfit's default: at least, in the median of the chains.
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
    """No run is below F* by more than its uncertainty."""
    gaps = [one.standings[entry.key].lowest_gap for entry in one.entries if entry.penalised]
    lowest = min(gaps, default=math.inf)
    text = f"{one.contest.title}: {len(gaps)} entries minimise one function: lowest gap "
    holds = len(gaps) > 1 and -one.uncertainty <= lowest < math.inf
    return Check(f"same-function-{one.problem}", f"{text}{race.gap_words(lowest)}.", holds)


def _auto(found: Sequence[Contestants], slack: float) -> Check:
    """The default reaches the last gap everywhere, and the middle one not much later than the fastest."""
    late = [one.contest.title for one in found if one.behind(one.auto_entry, race.TIGHT) is None]
    worst = max((one.behind(one.auto_entry, race.MIDDLE) or math.inf for one in found), default=math.inf)
    text = f"crfit's default reaches {race.words(race.TIGHT)} on {len(found) - len(late)} of {len(found)} "
    text += f"problems, and {race.words(race.MIDDLE)} in at most {worst:.1f} times the seconds of the "
    text += f"fastest trainer (limit {BEHIND / slack:g})."
    return Check("auto", text, not late and worst <= BEHIND / slack)


def _published(found: Sequence[Contestants], slack: float) -> Check:
    """A run that hit its time limit counts with that limit."""
    ratios = []
    for one in found:
        entries = race.NEWTON, race.PUBLISHED
        if problem(one.problem).kind == "chain" and all(one.reach(entry, race.MIDDLE) for entry in entries):
            times = one.times(*entries, race.MIDDLE)
            ratios.append(0.0 if times is None else times.ratio)
    median, sooner = statistics.median(ratios or [0.0]), sum(ratio > 1.0 for ratio in ratios)
    text = f"To {race.words(race.MIDDLE)} crfit's default is faster than Newton-CG as published on {sooner} "
    text += f"of {len(ratios)} chain problems, {median:.1f} times in the median (limit {FASTER * slack:g})."
    return Check("published", text, median >= FASTER * slack)


def _never(name: str, who: str, entries: Sequence[Entry], found: Sequence[Contestants], goal: Goal) -> Check:
    """Within their passes and seconds."""
    gaps = [one.standings[e.key].lowest_gap for one in found for e in entries if e in one.entries]
    lowest = min(gaps, default=-math.inf)
    text = f"In {len(gaps)} runs no {who} reaches {race.words(goal)}: the lowest is {race.gap_words(lowest)}."
    return Check(name, text, lowest > (goal.gap or 0.0))
