"""The default on large corpora, beside crfit's L-BFGS and SGD, and CRFsuite.

One run of the default to an estimated distance of 1e-5 gives the reference optimum, the seconds to the gap,
and when a run with default rules would end. crfit has as many threads as the process may use. CRFsuite runs
until its limit of seconds: how near it is then bounds how long it would take.
"""

import math
import os
import warnings
from collections.abc import Iterator
from typing import Any

import crfit
from bench import problems
from bench.records import Check, Results, Row, Task
from bench.setting import Setting
from bench.tables import Column, gap_words, table_of
from bench.tools import can_be_given, tool
from bench.tools.tool import Limits
from crfit.errors import ConvergenceWarning

TITLE = "the default on large corpora"
PROBLEMS = {
    "amalgum-few-pairs": "AMALGUM parts of speech",
    "brown-few-pairs": "Brown parts of speech",
    "brown-all-pairs": "Brown parts of speech, all pairs of labels",
    "brown-full-few-pairs": "Brown, full tags",
    "icepahc-few-pairs": "IcePaHC morphology",
}
QUICK = {"recipes-few": "recipe lines"}
#: CRFsuite does not finish two iterations within its seconds.
TOO_LARGE = {"brown-full-few-pairs", "icepahc-few-pairs"}
#: Trainers by title; the first is the default.
TRAINERS = {
    "default": "auto",
    "L-BFGS": "lbfgs",
    "SGD": "sgd:schedule=exponential:batch=8:epochs=20",
}
RIVAL = "python_crfsuite"
GAP, SURE = 1e-3, 1e-5
SECONDS, OTHER_SECONDS, RIVAL_SECONDS, QUICK_SECONDS = 450.0, 45.0, 300.0, 10.0


def tasks(quick: bool) -> list[Task]:
    made = []
    for name in QUICK if quick else PROBLEMS:
        for title, text in TRAINERS.items():
            limit = QUICK_SECONDS if quick else SECONDS if text == "auto" else OTHER_SECONDS
            facts: Row = {"what": "training", "tool": "crfit_race", "variant": title, "seconds_limit": limit}
            made.append(
                Task(f"{name}/{text.partition(':')[0]}", name, {**facts, "text": text}, 3 * limit + 300)
            )
        limit = QUICK_SECONDS if quick else RIVAL_SECONDS
        if name not in TOO_LARGE and can_be_given(tool(RIVAL), problems.problem(name)):
            facts = {"what": "rival", "tool": RIVAL, "variant": "CRFsuite", "seconds_limit": limit}
            made.append(Task(f"{name}/crfsuite", name, facts, 4 * limit + 300))
    return made


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    settings, data = task.settings, loaded.train
    n_threads = len(os.sched_getaffinity(0))
    if settings.get("text") != "auto":
        limits = Limits(seconds=settings["seconds_limit"], n_threads=n_threads, scores=False)
        for point in tool(settings["tool"]).run(loaded, limits, settings.get("text", "default")).points:
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
    runs = {one: _steps(results, name, one) for one in TRAINERS}
    ours = runs["default"]
    if not ours:
        return None
    rival = _steps(results, name, "CRFsuite")
    best = min(row["objective"] for steps in runs.values() for row in steps)
    end = next((row for row in ours if row["left"] is not None and row["left"] <= 1e-4), None)
    (sizes,) = (row for row in results.where(problem=name, variant="default") if row.get("n_labels"))
    line: Row = {"title": title, "end": None, "gap": None}
    if end is not None:
        line |= {"end": end["seconds"], "gap": end["objective"] / best - 1}
    line |= {key: sizes[key] for key in ("n_labels", "n_tokens", "threads")}
    for one, steps in runs.items():
        there = (row["seconds"] for row in steps if row["objective"] <= best * (1 + GAP))
        line[one] = next(there, None)
        line[f"{one} at last"] = steps[-1]["objective"] / best - 1 if steps else None
    if rival:
        line["CRFsuite seconds"] = rival[-1]["seconds"]
        line["CRFsuite at last"] = rival[-1]["objective"] / best - 1
    return line


def _lines(results: Results) -> list[Row]:
    titles = PROBLEMS | QUICK
    return [line for name, title in titles.items() if (line := _line(results, name, title)) is not None]


def _others(row: Row, one: str) -> str:
    """Seconds to the gap, or how far it got."""
    if row[one] is not None:
        return f"{row[one]:.1f}"
    return "" if row[f"{one} at last"] is None else f"– ({gap_words(row[f'{one} at last'])})"


def _rival(row: Row) -> str:
    """How near CRFsuite came in its seconds."""
    if "CRFsuite seconds" not in row:
        return ""
    return f"– ({gap_words(row['CRFsuite at last'])} after {row['CRFsuite seconds']:.0f})"


def tables(results: Results) -> dict[str, str]:
    columns: list[Column[Any]] = [
        Column("", lambda row: row["title"]),
        Column("labels", lambda row: row["n_labels"], ",d"),
        Column("tokens", lambda row: row["n_tokens"], ",d"),
        Column("threads", lambda row: row["threads"], "d"),
        Column("default", lambda row: row["default"], ".1f", none="–"),
        Column("L-BFGS", lambda row: _others(row, "L-BFGS")),
        Column("SGD", lambda row: _others(row, "SGD")),
        Column("CRFsuite", _rival),
        Column("the default ends after", lambda row: row["end"], ".1f", none="–"),
        Column("at a gap of", lambda row: "" if row["gap"] is None else gap_words(row["gap"])),
    ]
    return {"seconds": table_of(_lines(results), *columns)}


def checks(results: Results) -> list[Check]:
    """The default is ahead of crfit's other trainers, and ends where it says."""
    made = []
    for row in _lines(results):
        others = [row[one] for one in TRAINERS if one != "default" and row[one] is not None]
        if row["default"] is not None and others:
            ratio = row["default"] / min(others)
            text = (
                f"{row['title']}: the default takes {ratio:.2f} times as long as the fastest other trainer."
            )
            made.append(Check(f"{row['title']}-behind", text, ratio <= 1.15 / results.slack**2))
        if row["gap"] is not None:
            text = f"{row['title']}: with default rules it ends {row['gap']:.1e} above the optimum."
            made.append(Check(f"{row['title']}-end", text, row["gap"] <= 5e-4))
    return made
