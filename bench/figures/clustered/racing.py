"""`crfit.LogLinear` beside scikit-learn, LIBLINEAR and glum: seconds to the same gap of the same function.

Everybody is given a matrix without an intercept and begins at zero weights; seconds run from the call. Runs
that are watched go on to a gap of 5e-7, which shows that all minimise the same function: their values agree
to 1e-6. Where every point is a training of its own they end at 5e-5, and LIBLINEAR and glum have one training
with a small tolerance besides.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench import problems
from bench.curves import curve_rows
from bench.figures.base import NotAvailable, Row, Task
from bench.optimum import StoredOptimum
from bench.problems import Loaded
from bench.setting import THREADS
from bench.tools import can_be_given, tool
from bench.tools.base import Limits

__all__ = ["GAPS", "LAST_GAP", "LOGLINEAR", "OURS", "RACES", "SAME", "race", "race_tasks"]

#: Beginning of the ids of these tasks: ``--only loglinear`` measures them alone.
LOGLINEAR = "loglinear"
OURS = "crfit_loglinear"
#: Problems, with the seconds that a training may take and the rounds.
RACES = {
    "reuters-apte": ("Reuters-21578, all topics", 40.0, 1),
    "reuters-apte-earn": ("Reuters-21578, earn or not", 10.0, 3),
    "rows-binary": ("a million rows, two labels", 60.0, 1),
    "rows-ten": ("a million rows, ten labels", 120.0, 1),
    "rows-small": ("made rows, two labels", 10.0, 1),
}
#: Who has a training with a small tolerance where.
ENDS = {
    "reuters-apte-earn": (("liblinear_lr", "newton"), ("glum_glm", "lbfgs")),
    "rows-binary": (("liblinear_lr", "newton"),),
    "rows-small": (("liblinear_lr", "newton"),),
}
#: Whose iterations are told while they train.
WATCHED = (OURS, "default"), (OURS, "lbfgs"), ("scikit_learn", "default")
TOOLS = {
    OURS: ("default", "lbfgs", "diagonal", "newton"),
    "scikit_learn": ("default", "newton-cg", "saga"),
    "liblinear_lr": ("default", "newton"),
    "glum_glm": ("lbfgs",),
}
#: Of the quick version.
QUICK_TOOLS = {OURS: ("default",), "scikit_learn": ("default",), "liblinear_lr": ("newton",)}
#: Those that say nothing on the way make every point by a training of its own, four times the work: on large
#: problems they have so many seconds, to see whether any of them is faster than the rest.
UNWATCHED = (
    ("scikit_learn", "newton-cg"),
    ("scikit_learn", "saga"),
    ("liblinear_lr", "default"),
    ("glum_glm", "lbfgs"),
)
UNWATCHED_SECONDS = {"rows-ten": 15.0, "rows-binary": 12.0, "reuters-apte": 10.0}
GAPS = (1e-2, 1e-3, 1e-4)
LAST_GAP = 5e-5
#: Values at the end are the same within this.
SAME = 1e-6
MOST_ITERATIONS, AROUND = 3000, 120.0


def race_tasks(names: list[str]) -> list[Task]:
    """Tasks on some problems: the optimum, the runs to the last gap, the runs to the end."""
    made = []
    for name in names:
        _, seconds, rounds = RACES[name]
        made.append(
            Task(
                f"{LOGLINEAR}/{name}/optimum",
                name,
                {"what": "optimum", "tool": "", "variant": "", "round": 0},
                900.0,
            )
        )
        for number in range(1, rounds + 1):
            made += [_task(name, *entry, "race", number, seconds) for entry in _entries(name)]
        made += [_task(name, *entry, "end", 1, seconds) for entry in ENDS.get(name, ())]
    return made


def _entries(problem: str) -> list[tuple[str, str]]:
    return [
        (name, variant)
        for name, variants in (QUICK_TOOLS if problem == "rows-small" else TOOLS).items()
        if can_be_given(tool(name), problems.problem(problem))
        for variant in variants
    ]


def _task(problem: str, name: str, variant: str, what: str, number: int, seconds: float) -> Task:
    if (name, variant) in UNWATCHED and what == "race":
        seconds = UNWATCHED_SECONDS.get(problem, seconds)
    settings = {
        "what": what,
        "tool": name,
        "variant": variant,
        "round": number,
        "seconds_limit": seconds,
    }
    slug = name if variant == "default" else f"{name}-{variant}"
    # Trainings of their own take some four times the last one's time.
    return Task(f"{LOGLINEAR}/{problem}/{slug}-{what}-{number}", problem, settings, 6.0 * seconds + AROUND)


def race(task: Task, loaded: Loaded, best: StoredOptimum) -> Iterator[Row]:
    """Rows of the curve of a tool."""
    name, variant, ends = task.settings["tool"], task.settings["variant"], task.settings["what"] == "end"
    reason = tool(name).absent()
    if reason is not None:
        raise NotAvailable(reason)
    limits = Limits(
        max_iter=MOST_ITERATIONS,
        seconds=task.settings["seconds_limit"],
        n_threads=THREADS,
        objective=best.objective * (1.0 + (SAME / 2 if ends or (name, variant) in WATCHED else LAST_GAP)),
        scores=task.settings["round"] == 1 and not ends,
        one_training=ends,
    )
    curve = tool(name).run(loaded, limits, variant)
    facts = {"version": tool(name).version(), "threads": tool(name).threads(THREADS, variant)}
    yield from ({**row, **facts} for row in curve_rows(curve, best.of_curves))
