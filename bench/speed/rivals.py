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
    QUARTER: "CoNLL-2000 chunking, the first quarter, all weights",
    "conll2000-all": "CoNLL-2000 chunking, all weights",
    "conll2000-observed": "CoNLL-2000 chunking, observed weights",
    "reuters-topics": "Reuters-21578, nine topics",
    "reuters-earn": "Reuters-21578, one topic or not",
}
QUICK_PROBLEMS = (QUARTER,)
ROUNDS = 3  # of the full version
ONE_ROUND = ("conll2000-all", "conll2000-observed")  # of all but crfit with two threads
#: Settings of a tool other than its default alone. That of glum keeps a matrix of attributes squared.
VARIANTS = {OURS: ("default", "one thread"), "glum_glm": ("lbfgs",), "scikit_learn": ("default", "newton-cg")}
#: chaine is CRFsuite's code, and is shown once beside it; the classifier has a race in the group `clustered`.
ONLY_ON: dict[str, tuple[str, ...]] = {"chaine_crf": (QUARTER,), "crfit_loglinear": ()}
#: CRFsuite's stochastic gradient is faster down to a gap of about 1e-2. Every point of its curve is a
#: training of its own, so that it has one round, on one problem, and less time.
STOCHASTIC, STOCHASTIC_SECONDS = ("python_crfsuite", "l2sgd"), 25.0
GAPS = (1e-2, 1e-3, 1e-4)
#: A run goes on to this gap, so that the last one of the table is reached whatever the rounding of a log.
LAST_GAP = 5e-5
SECONDS, QUICK_SECONDS = 600.0, 45.0  # of training
AROUND = 120.0  # seconds of a task for reading, converting and tagging
SCORED_ROUND = 1  # a tool that leaves no model when it is stopped trains once more for its scores


def tasks(quick: bool) -> list[Task]:
    made = []
    for problem in QUICK_PROBLEMS if quick else PROBLEMS:
        made.append(Task(f"{problem}/optimum", problem, {"tool": "", "variant": "", "round": 0}, 1800.0))
        for number in range(1, (1 if quick else ROUNDS) + 1):
            seconds = QUICK_SECONDS if quick else SECONDS
            made += [_task(problem, *entry, number, seconds) for entry in _entries(problem, number)]
        if problem == QUARTER and not quick:
            made.append(_task(problem, *STOCHASTIC, 1, STOCHASTIC_SECONDS))
    return made


def _entries(problem: str, number: int) -> list[tuple[str, str]]:
    """Tools and variants that take part in a round."""
    return [
        (name, variant)
        for name, one in TOOLS.items()
        if can_be_given(one, problems.problem(problem)) and problem in ONLY_ON.get(name, (problem,))
        for variant in VARIANTS.get(name, ("default",))
        if number == 1 or (name, variant) == (OURS, "default") or problem not in ONE_ROUND
    ]


def _task(problem: str, tool_name: str, variant: str, number: int, seconds: float) -> Task:
    settings = {"tool": tool_name, "variant": variant, "round": number, "seconds_limit": seconds}
    name = tool_name if variant == "default" else f"{tool_name}-{variant.replace(' ', '-')}"
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


def _problems(results: Results) -> list[str]:
    return [name for name in PROBLEMS if results.where(problem=name)]


def _ranked(results: Results, problem: str) -> list[Standing]:
    """Ours first, then the others by their time to the middle gap, then those without a curve."""
    return ranked(results, problem, OURS, GAPS[1])


def _ours(everybody: list[Standing]) -> Standing | None:
    """Our default, with two threads; None if it has no curve."""
    found = [s for s in everybody if (s.tool, s.variant) == (OURS, "default") and not s.trouble]
    return found[0] if found else None


def _times(ours: Standing | None, other: Standing) -> Times | None:
    """How many times our seconds to the middle gap."""
    if ours is None or other.trouble:
        return None
    return compared(ours.reach(relative_gap=GAPS[1]), other.reach(relative_gap=GAPS[1]))


def tables(results: Results) -> dict[str, str]:
    return {problem: _table(results, problem) for problem in _problems(results)}


def _table(results: Results, problem: str) -> str:
    score = "f1" if problems.problem(problem).kind == "chain" else "accuracy"
    gaps = {f"to gap {gap:.0e}".replace("e-0", "e-"): gap for gap in GAPS}
    last = "test F1" if score == "f1" else "test accuracy"
    everybody = _ranked(results, problem)
    ours = _ours(everybody)
    return race_table(
        PROBLEMS[problem],
        everybody,
        Column("threads", lambda standing: standing.threads),
        Column("iteration", lambda standing: standing.per_iteration, ".3f", " s", "not available"),
        *(
            Column(title, partial(Standing.reach, relative_gap=gap))
            for title, gap in zip(gaps, GAPS, strict=True)
        ),
        Column(f"times ours, {[*gaps][1]}", partial(_times, ours)),
        Column(last, lambda standing: standing.score(score), ".2f"),
    )


#: How many times our seconds to the middle gap the others need at least, with slack for other machines; for
#: chains. Classifiers are in the tables only: the one-position case has no kernel of its own yet.
FASTER = {"python_crfsuite": 3.0, "chaine_crf": 3.0, "libwapiti_library": 3.0}
#: Logs have two decimals; a value this much below F*, relatively, may be rounding.
ROUNDING = 1e-6


def checks(results: Results) -> list[Check]:
    made = []
    for problem in _problems(results):
        everybody = _ranked(results, problem)
        made.append(_same_function(everybody, problem))
        if problems.problem(problem).kind == "chain":
            for name in FASTER:
                variants = [s for s in everybody if s.tool == name and s.available]
                if variants:
                    made.append(_faster(_ours(everybody), variants, problem, results.slack))
    return made


def _faster(ours: Standing | None, variants: list[Standing], problem: str, slack: float) -> Check:
    """What a tool needs with the fastest of its settings. It does not hold where that cannot be said."""
    name, where = variants[0].tool, f"{PROBLEMS[problem]}: {variants[0].title}"
    least = FASTER[name] * slack
    times = [(_times(ours, standing), standing) for standing in variants]
    known = [(found.ratio, found, standing) for found, standing in times if found is not None]
    if ours is None or not known or any(standing.trouble for standing in variants):
        why = next((s.trouble for s in variants if s.trouble), "the gap was not reached")
        words = f"{where} cannot be compared with crfit: {why if ours else 'crfit has no curve'}."
        return Check(f"{problem}-{name}", words, False)
    ratio, found, standing = min(known, key=lambda entry: entry[0])
    words = (
        f"{PROBLEMS[problem]}: {standing.title} ({_threads(standing)}) takes {found.told} "
        f"times as long as crfit ({_threads(ours)}) to a relative gap of {GAPS[1]:g}, at least {least:g} "
        "times."
    )
    return Check(f"{problem}-{name}", words, ratio >= least)


def _threads(standing: Standing) -> str:
    return f"{standing.threads} thread{'s' if standing.threads != 1 else ''}"


def _same_function(everybody: list[Standing], problem: str) -> Check:
    """Nobody is below F*, nobody failed, and all that had the time come near F*: it is one function."""
    there = [standing for standing in everybody if standing.available]
    good = [standing for standing in there if not standing.trouble]
    gaps = ", ".join(f"{standing.lowest_gap:.1e}" for standing in good)
    names = {standing.tool for standing in good}
    words = (
        f"{PROBLEMS[problem]}: {len(names)} tools minimise the same function: their lowest relative gaps to "
        f"the reference optimum are {gaps}."
    )
    if len(good) < len(there):
        words += f" Not so {', '.join(standing.title for standing in there if standing.trouble)}."
    near = all(standing.lowest_gap <= GAPS[0] or standing.cut_off for standing in good)
    above = all(standing.lowest_gap >= -ROUNDING for standing in good)
    enough = len(names) > 1 and OURS in names and len(good) == len(there)
    return Check(f"{problem}-same-function", words, enough and near and above)


def pictures(results: Results) -> dict[str, Figure]:
    return {problem: _picture(results, problem) for problem in _problems(results)}


def _picture(results: Results, problem: str) -> Figure:
    everybody = [standing for standing in _ranked(results, problem) if not standing.trouble]
    ours = _ours(everybody)
    lines = []
    for standing in everybody:
        times = _times(ours, standing) if standing is not ours else None
        name = standing.title if times is None else f"{standing.title}, {times.words()}×"
        lines.append(GapLine(name, standing.race, standing.curve, strong=standing is ours))
    return gap_picture(
        f"Training to the optimum: {PROBLEMS[problem]}",
        f"same function, same attributes, same machine: {results.machine}; "
        f"numbers: seconds to a gap of {GAPS[1]:g}, as multiples of ours",
        lines,
        mark=GAPS[1],
        bottom=LAST_GAP / 2,
    )
