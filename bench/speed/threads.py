"""Seconds against the number of threads: gradients, training, tagging and reading.

Counts above the number of cores are not available. Training ends at a relative gap of 1e-3.
"""

import os
import statistics
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import crfit
from bench import optimum, problems
from bench.pictures import Drawable, Line, Panel, Picture
from bench.records import Check, NotAvailable, Results, Row, Task
from bench.setting import Setting, seconds_of
from bench.tables import markdown, shown
from crfit.data import text

TITLE = "seconds against the number of threads"
THREADS = (1, 2, 4, 8, 16)
PROBLEMS = {"conll2000-observed": "CoNLL-2000 chunking", "ewt-xpos-observed": "EWT parts of speech"}
QUICK = {"conll2000-quarter-observed": "CoNLL-2000 chunking (quarter)"}
GAP = 1e-3
CALLS = 7  # of which the median counts
MEASURED = ("gradient", "default", "L-BFGS", "tagging", "reading")
METHODS = {"default": "auto", "L-BFGS": "lbfgs"}  # for their colours


def tasks(quick: bool) -> list[Task]:
    chosen = QUICK if quick else PROBLEMS
    return [Task(f"{name}/{n}", name, {"threads": n}, 600.0) for name in chosen for n in THREADS]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    n = task.settings["threads"]
    if n > (os.cpu_count() or 1):
        raise NotAvailable(f"this machine has fewer than {n} cores")
    loaded = problems.problem(task.problem).load(setting.data)
    best = optimum.find(loaded, setting).objective
    objective = loaded.objective(n)
    w = np.random.default_rng(0).normal(size=objective.n_weights) * 0.1
    yield {"measured": "gradient", "seconds": _median(partial(objective.value_and_grad, w))}
    stop = crfit.Stop(objective=best * (1 + GAP), seconds=120.0)
    for measured, trainer in (("default", "auto"), ("L-BFGS", "lbfgs")):
        runs = [crfit.train(loaded.objective(n), trainer, stop=stop) for _ in range(3)]
        seconds = statistics.median(run.seconds for run in runs)
        yield {"measured": measured, "seconds": seconds, "passes": runs[0].passes}
    run = crfit.train(objective, "lbfgs", stop=crfit.Stop(max_iter=10))
    model, test = crfit.Model.from_training(objective, run), loaded.attribute_lists("test")
    yield {"measured": "tagging", "seconds": _median(partial(model.tag_many, test, n_threads=n))}
    read = partial(text.read, loaded.texts["train"], template=loaded.template, n_threads=n)
    yield {"measured": "reading", "seconds": _median(read)}


def _median(call: Callable[[], object]) -> float:
    """Of calls after a first one that allocates."""
    call()
    return statistics.median(seconds_of(call) for _ in range(CALLS))


def _seconds(results: Results, name: str, measured: str) -> dict[int, float]:
    return {row["threads"]: row["seconds"] for row in results.where(problem=name, measured=measured)}


def _titles(results: Results) -> dict[str, str]:
    return {name: title for name, title in (PROBLEMS | QUICK).items() if results.where(problem=name)}


def tables(results: Results) -> dict[str, str]:
    rows = []
    for name, title in _titles(results).items():
        for measured in MEASURED:
            found = _seconds(results, name, measured)
            ms = [shown(1e3 * found[n] if n in found else None, ",.0f", none="") for n in THREADS]
            gain = found[1] / found[max(found)] if 1 in found else None
            rows.append([title, measured, *ms, shown(gain, ".1f", none="")])
    headings = ["", "milliseconds", *(f"{n} thread{'s' * (n > 1)}" for n in THREADS), "times as fast"]
    return {"seconds": markdown(headings, rows)}


def pictures(results: Results) -> dict[str, Drawable]:
    panels = []
    for name, title in _titles(results).items():
        lines = [
            Line(measured, sorted(_seconds(results, name, measured).items()), METHODS.get(measured, measured))
            for measured in MEASURED
        ]
        panels.append(Panel(f"threads, {title}", "seconds", lines, "xy"))
    words = f"Training to a relative gap of 1e-3, the other lines a single call. {results.machine}."
    return {"threads": Picture("Seconds against threads", words, panels)}


def checks(results: Results) -> list[Check]:
    made = []
    for name, title in _titles(results).items():
        ours, other = (_seconds(results, name, measured) for measured in ("default", "L-BFGS"))
        for n in ours:
            text = f"{title}, {n} threads: the default takes {ours[n]:.2f} s, L-BFGS {other[n]:.2f} s."
            made.append(Check(f"{name}-{n}", text, ours[n] <= 1.5 / results.slack * other[n]))
    return made
