"""crfit against other tools: seconds to the same gap of the same function, on the same machine.

Every tool that can be given a problem minimises the same F with settings chosen by trials, from zero
weights, in a process of its own. Seconds are those of training as the tool's log or callback states them;
reading and converting the data, and tagging the test part at the end, are not in them. A run ends at a gap
below the smallest that the table asks for, or after a limit of seconds.

The gap is taken to the reference optimum of the problem (`bench.optimum`), relative to its value. Tools that
are not installed have a row that says so. In the full version everybody runs three times, in rounds, and a
time is the median of them; on the whole of CoNLL-2000, where a run takes minutes, only crfit with two threads
does so. The quick version has one round on a quarter of CoNLL-2000.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from bench import optimum, problems
from bench.curves import optimum_row, tool_rows
from bench.pictures import GapLine, gap_picture
from bench.records import Check, Results, Row, Task
from bench.setting import THREADS, Setting
from bench.standings import Standing, Times, compared, race_table, ranked
from bench.tables import Column
from bench.tools import TOOLS, can_be_given
from bench.tools.tool import Limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "seconds to the same gap: crfit and other tools"
OURS = "crfit_race"
QUARTER = "conll2000-quarter-all"
PROBLEMS = {
    "conll2000-all": "CoNLL-2000 chunking, all weights",
    "conll2000-observed": "CoNLL-2000 chunking, observed weights",
    "conll2002-es-all": "CoNLL-2002 Spanish names, all weights",
    QUARTER: "CoNLL-2000 chunking, the first quarter, all weights",
}
ROUNDS = 3  # of crfit on two threads in the full version; all others have one, of minutes
VARIANTS = {OURS: ("default", "L-BFGS", "one thread", "L-BFGS, one thread")}
IN_ROUNDS = ("default", "L-BFGS")
#: CRFsuite's stochastic gradient is faster down to a gap of about 1e-2. Every point of its curve is a
#: training of its own, so it runs on the small problem only.
STOCHASTIC, STOCHASTIC_SECONDS = ("python_crfsuite", "l2sgd"), 25.0
GAPS = (1e-2, 1e-3, 1e-4)
#: A run goes on to this gap, so that the last one of the table is reached whatever the rounding of a log.
LAST_GAP = 5e-5
SECONDS, QUICK_SECONDS = 600.0, 45.0  # of training
AROUND = 120.0  # seconds of a task for reading, converting and tagging
SCORED_ROUND = 1  # a tool that leaves no model when it is stopped trains once more for its scores


def tasks(quick: bool) -> list[Task]:
    made = []
    for problem in PROBLEMS:
        if (problem == QUARTER) is not quick:
            continue
        made.append(Task(f"{problem}/optimum", problem, {"tool": "", "variant": "", "round": 0}, 1800.0))
        for number in range(1, (1 if quick else ROUNDS) + 1):
            seconds = QUICK_SECONDS if quick else SECONDS
            made += [_task(problem, *entry, number, seconds) for entry in _entries(problem, number)]
        if quick:
            made.append(_task(problem, *STOCHASTIC, 1, STOCHASTIC_SECONDS))
    return made


def _entries(problem: str, number: int) -> list[tuple[str, str]]:
    """Tools and variants that take part in a round."""
    return [
        (name, variant)
        for name, one in TOOLS.items()
        if can_be_given(one, problems.problem(problem))
        for variant in VARIANTS.get(name, ("default",))
        if number == 1 or (name == OURS and variant in IN_ROUNDS)
    ]


def _task(problem: str, tool_name: str, variant: str, number: int, seconds: float) -> Task:
    settings = {"tool": tool_name, "variant": variant, "round": number, "seconds_limit": seconds}
    name = tool_name if variant == "default" else f"{tool_name}-{variant.replace(',', '').replace(' ', '-')}"
    # Trainings of their own take some three times the last one's time, and each makes its features anew.
    longest = (8 if (tool_name, variant) == STOCHASTIC else 2) * seconds
    return Task(f"{problem}/{name}-{number}", problem, settings, longest + AROUND)


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    name, variant = task.settings["tool"], task.settings["variant"]
    loaded = problems.problem(task.problem).load(setting.data)
    best = optimum.find(loaded, setting)
    if not name:
        yield optimum_row(best)
        return
    limits = Limits(
        seconds=task.settings["seconds_limit"],
        n_threads=THREADS,
        objective=best.objective * (1 + LAST_GAP),
        scores=task.settings["round"] == SCORED_ROUND,
    )
    yield from tool_rows(name, variant, loaded, limits, best)


# --- what follows ------------------------------------------------------------------------------------------

#: How many times our seconds to the middle gap the others need at least, with slack for other machines; for
#: chains. Classifiers are in the tables only: the one-position case has no kernel of its own yet.
FASTER = {"python_crfsuite": 3.0, "libwapiti_library": 3.0}
#: Logs have two decimals; a value this much below F*, relatively, may be rounding.
ROUNDING = 1e-6


def _ours(everybody: list[Standing]) -> Standing | None:
    """Our default, with two threads; None if it has no curve."""
    return next((s for s in everybody if (s.tool, s.variant) == (OURS, "default") and not s.trouble), None)


def _times(ours: Standing | None, other: Standing) -> Times | None:
    """How many times our seconds to the middle gap."""
    if ours is None or other.trouble:
        return None
    return compared(*(standing.reach(relative_gap=GAPS[1]) for standing in (ours, other)))


def _ranked(results: Results) -> dict[str, list[Standing]]:
    """Who was run on each problem, in the order of the table."""
    there = [problem for problem in PROBLEMS if results.where(problem=problem)]
    return {problem: ranked(results, problem, OURS, GAPS[1]) for problem in there}


def tables(results: Results) -> dict[str, str]:
    return {problem: _table(everybody, problem) for problem, everybody in _ranked(results).items()}


def _table(everybody: list[Standing], problem: str) -> str:
    score = "f1" if problems.problem(problem).kind == "chain" else "accuracy"
    titles = [f"to gap {gap:.0e}".replace("e-0", "e-") for gap in GAPS]
    reached = [partial(Standing.reach, relative_gap=gap) for gap in GAPS]
    return race_table(
        PROBLEMS[problem],
        everybody,
        Column("threads", lambda standing: standing.threads),
        Column("iteration", lambda standing: standing.per_iteration, ".3f", " s", "not available"),
        *map(Column, titles, reached),
        Column(f"times ours, {titles[1]}", partial(_times, _ours(everybody))),
        Column(
            "test F1" if score == "f1" else "test accuracy", lambda standing: standing.score(score), ".2f"
        ),
    )


def checks(results: Results) -> list[Check]:
    made = []
    for problem, everybody in _ranked(results).items():
        made.append(_same_function(everybody, problem))
        for name, least in FASTER.items() if problems.problem(problem).kind == "chain" else ():
            variants = [s for s in everybody if s.tool == name and s.available]
            if variants:
                made.append(_faster(_ours(everybody), variants, problem, least * results.slack))
    return made


def _faster(ours: Standing | None, variants: list[Standing], problem: str, least: float) -> Check:
    """What a tool needs with the fastest of its settings. It does not hold where that cannot be said."""
    name = f"{problem}-{variants[0].tool}"
    known = [(times.ratio, times.told, one) for one in variants if (times := _times(ours, one))]
    why = "crfit has no curve" if ours is None else next((s.trouble for s in variants if s.trouble), "")
    if ours is None or why or not known:
        text = f"{PROBLEMS[problem]}: {variants[0].title} cannot be compared with crfit: "
        return Check(name, f"{text}{why or 'the gap was not reached'}.", False)
    ratio, told, one = min(known, key=lambda found: found[0])
    text = f"{PROBLEMS[problem]}: {one.title} (threads: {one.threads}) takes {told} times as long as crfit "
    text += f"(threads: {ours.threads}) to a relative gap of {GAPS[1]:g}, at least {least:g} times."
    return Check(name, text, ratio >= least)


def _same_function(everybody: list[Standing], problem: str) -> Check:
    """Nobody is below F*, nobody failed, and all that had the time come near F*: it is one function."""
    there = [standing for standing in everybody if standing.available]
    good, bad = ([s for s in there if bool(s.trouble) is trouble] for trouble in (False, True))
    names = {standing.tool for standing in good}
    text = (
        f"{PROBLEMS[problem]}: {len(names)} tools minimise the same function: their lowest relative gaps to "
    )
    text += f"the reference optimum are {', '.join(f'{standing.lowest_gap:.1e}' for standing in good)}."
    text += f" Not so {', '.join(standing.title for standing in bad)}." if bad else ""
    near = all(s.lowest_gap >= -ROUNDING and (s.lowest_gap <= GAPS[0] or s.cut_off) for s in good)
    return Check(f"{problem}-same-function", text, len(names) > 1 and OURS in names and not bad and near)


def pictures(results: Results) -> dict[str, Figure]:
    made = {}
    for problem, everybody in _ranked(results).items():
        ours = _ours(everybody)
        lines = []
        for one in (standing for standing in everybody if not standing.trouble):
            times = None if one is ours else _times(ours, one)
            name = one.title + ("" if times is None else f", {times.words()}×")
            lines.append(GapLine(name, one.race, one.curve, strong=one is ours))
        words = f"same function, same attributes, same machine: {results.machine}; "
        words += f"numbers: seconds to a gap of {GAPS[1]:g}, as multiples of ours"
        title = f"Training to the optimum: {PROBLEMS[problem]}"
        made[problem] = gap_picture(title, words, lines, mark=GAPS[1], bottom=LAST_GAP / 2)
    return made
