"""The default on large corpora and label sets, beside crfit's L-BFGS and SGD and CRFsuite.

One run of the default to an estimated distance of 1e-5 gives the reference optimum, the seconds to each gap,
and when a run with default rules would end. CRFsuite has `RIVAL_SECONDS`, which is rarely enough: the
seconds that it would need are those of its iterations so far, times the iterations of crfit's L-BFGS, which
takes the same kind of steps. If L-BFGS did not get there either, they are a lower bound. crfit has as many
threads as the process may use.
"""

import math
import os
import warnings
from collections.abc import Iterator
from typing import Any

import crfit
from bench import problems
from bench.pictures import Drawable
from bench.records import Check, Results, Row, Task
from bench.setting import Setting
from bench.tables import Column, table_of
from bench.tools import can_be_given, tool
from bench.tools.tool import Limits
from crfit.errors import ConvergenceWarning

TITLE = "the default on large corpora and label sets"
RIVAL = "python_crfsuite"
PROBLEMS = {
    "amalgum-few-pairs": "AMALGUM parts of speech",
    "brown-few-pairs": "Brown parts of speech",
    "brown-all-pairs": "Brown parts of speech, all label pairs",
    "brown-full-few-pairs": "Brown, full tags",
    "icepahc-few-pairs": "IcePaHC Icelandic morphology",
    "lasla-few-pairs": "LASLA Latin morphology",
}
QUICK = {"recipes-few": "recipe lines"}
#: Trainers by title; the first is the default.
TRAINERS = {
    "default": "auto",
    "L-BFGS": "lbfgs",
    "SGD": "sgd:schedule=exponential:batch=8:epochs=20",
}
GAP, SURE = 1e-3, 1e-5
SECONDS, OTHER_SECONDS, RIVAL_SECONDS, QUICK_SECONDS = 450.0, 45.0, 240.0, 10.0
#: One iteration of CRFsuite takes longer than that.
NO_RIVAL = ("lasla-few-pairs",)


def tasks(quick: bool) -> list[Task]:
    made = []
    for name in QUICK if quick else PROBLEMS:
        for title, text in TRAINERS.items():
            limit = QUICK_SECONDS if quick else SECONDS if text == "auto" else OTHER_SECONDS
            facts: Row = {"what": "training", "tool": "crfit_race", "variant": title, "seconds_limit": limit}
            made.append(
                Task(f"{name}/{text.partition(':')[0]}", name, {**facts, "text": text}, 3 * limit + 300)
            )
        if name not in NO_RIVAL and can_be_given(tool(RIVAL), problems.problem(name)):
            limit = QUICK_SECONDS if quick else RIVAL_SECONDS
            facts = {"what": "rival", "tool": RIVAL, "variant": "CRFsuite", "seconds_limit": limit}
            made.append(Task(f"{name}/crfsuite", name, facts, limit + 30))
    return made


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    settings, data = task.settings, loaded.train
    if settings["what"] == "rival":
        limits = Limits(seconds=settings["seconds_limit"], scores=False)
        for point in tool(RIVAL).run(loaded, limits).points:
            yield {"seconds": point.seconds, "objective": point.objective, "iteration": point.iteration}
        return
    n_threads = len(os.sched_getaffinity(0))
    if settings["text"] != "auto":
        limits = Limits(seconds=settings["seconds_limit"], n_threads=n_threads, scores=False)
        for point in tool(settings["tool"]).run(loaded, limits, settings["text"]).points:
            yield {"seconds": point.seconds, "objective": point.objective, "iteration": point.iteration}
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stop = crfit.Stop(seconds=settings["seconds_limit"], tol=SURE)
        run = crfit.train(loaded.objective(n_threads), stop=stop)
    yield {"n_labels": data.n_labels, "n_tokens": data.n_tokens, "threads": n_threads}
    for p in run.history:
        if p.objective is not None:
            left = p.extra.get("left", math.inf)
            row = {"seconds": p.seconds, "objective": p.objective, "iteration": p.iteration}
            yield {**row, "passes": p.passes, "left": left if math.isfinite(left) else None}


# --- what follows ------------------------------------------------------------------------------------------


def _steps(results: Results, name: str, variant: str) -> list[Row]:
    return [row for row in results.where(problem=name, variant=variant) if row.get("seconds") is not None]


def _line(results: Results, name: str, title: str) -> "Row | None":
    runs = {one: _steps(results, name, one) for one in (*TRAINERS, "CRFsuite")}
    ours = runs["default"]
    if not ours:
        return None
    best = min(row["objective"] for steps in runs.values() for row in steps)
    at = {
        one: next((row for row in steps if row["objective"] <= best * (1 + GAP)), None)
        for one, steps in runs.items()
    }
    end = next((row for row in ours if row["left"] is not None and row["left"] <= 1e-4), ours[-1])
    (sizes,) = (row for row in results.where(problem=name, variant="default") if row.get("n_labels"))
    # Iteration 0 is the evaluation at zero weights; reading is not part of the seconds.
    done = [row for row in runs["CRFsuite"] if row["iteration"]]
    each = done[-1]["seconds"] / done[-1]["iteration"] if done else None
    reached, tried = at["L-BFGS"], runs["L-BFGS"][-1:]
    iterations = reached["iteration"] if reached else tried[0]["iteration"] if tried else None
    needed = None
    if at["CRFsuite"]:
        needed = at["CRFsuite"]["seconds"]
    elif each is not None and iterations is not None:
        needed = each * iterations
    seconds = at["default"]["seconds"] if at["default"] else None
    return {
        "title": title,
        **{key: sizes[key] for key in ("n_labels", "n_tokens", "threads")},
        "seconds": seconds,
        "end": end["seconds"],
        "gap": end["objective"] / best - 1,
        "lbfgs": reached["seconds"] if reached else None,
        "sgd": at["SGD"]["seconds"] if at["SGD"] else None,
        "iteration": each,
        "needed": needed,
        "bound": at["CRFsuite"] is None and reached is None,
        "times": needed / seconds if needed and seconds else None,
    }


def _lines(results: Results) -> list[Row]:
    titles = PROBLEMS | QUICK
    return [line for name, title in titles.items() if (line := _line(results, name, title)) is not None]


def tables(results: Results) -> dict[str, str]:
    lines = _lines(results)

    def bounded(key: str, text: str) -> Any:
        return lambda row: "" if row[key] is None else f"{'> ' * row['bound']}{row[key]:{text}}"

    columns: list[Column[Any]] = [
        Column("", lambda row: row["title"]),
        Column("labels", lambda row: row["n_labels"], ",d"),
        Column("tokens", lambda row: row["n_tokens"], ",d"),
        Column("default", lambda row: row["seconds"], ".1f", none="–"),
        Column("L-BFGS", lambda row: row["lbfgs"], ".1f", none="–"),
        Column("SGD", lambda row: row["sgd"], ".1f", none="–"),
        Column("the default ends after", lambda row: row["end"], ".1f"),
        Column("CRFsuite, one iteration", lambda row: row["iteration"], ".1f", none="–"),
        Column("CRFsuite", bounded("needed", ",.0f")),
        Column("times as fast", bounded("times", ",.0f")),
    ]
    return {"seconds": table_of(lines, *columns)}


def pictures(results: Results) -> dict[str, Drawable]:
    return {}


def checks(results: Results) -> list[Check]:
    """The default is ahead of crfit's other trainers, and ends where it says."""
    made = []
    for row in _lines(results):
        others = [row[key] for key in ("lbfgs", "sgd") if row[key] is not None]
        if row["seconds"] is not None and others:
            ratio = row["seconds"] / min(others)
            text = (
                f"{row['title']}: the default takes {ratio:.2f} times as long as the fastest other trainer."
            )
            made.append(Check(f"{row['title']}-behind", text, ratio <= 1.15 / results.slack**2))
        text = f"{row['title']}: with default rules it ends {row['gap']:.1e} above the optimum."
        made.append(Check(f"{row['title']}-end", text, row["gap"] <= 5e-4))
    return made
