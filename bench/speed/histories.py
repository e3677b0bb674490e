"""Gradients with label histories: two labels before each, with all n-grams and with those seen in training.

With CRFIT_BEFORE=DIR, a built checkout of an older version, its gradients are measured in turn with these.
"""

import statistics
from collections.abc import Iterator
from dataclasses import replace

from bench import problems
from bench.records import Check, Results, Row, Task
from bench.setting import Setting
from bench.speed.growth import gradients
from bench.tables import markdown, shown

TITLE = "gradients with label histories"
PROBLEMS = {"conll2000-order-2": "all", "conll2000-order-2-few": "seen in training"}


def tasks(quick: bool) -> list[Task]:
    return [Task(name, name, {"quick": quick}, 600.0) for name in PROBLEMS]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    problem = problems.problem(task.problem)
    yield from gradients(replace(problem, n_train=500) if task.settings["quick"] else problem, setting)


def tables(results: Results) -> dict[str, str]:
    rows = []
    for name, which in PROBLEMS.items():
        found = results.where(task=name)
        if not found:
            continue
        times = {
            tool: statistics.median(1e9 * r["seconds"] / r["n_tokens"] for r in found if r["tool"] == tool)
            for tool in {row["tool"] for row in found}
        }
        ours, before = times.get("crfit"), times.get("before")
        ratio = before / ours if ours and before else None
        line = [which, f"{found[0]['n_pairs']:,}", shown(ours, ",.0f"), shown(before, ",.0f", none="")]
        rows.append([*line, shown(ratio, ".1f", none="")])
    headings = ["n-grams with a weight", "number", "gradient, ns per token", "before lanes", "times as fast"]
    return {"seconds": markdown(headings, rows)}


def checks(results: Results) -> list[Check]:
    return []
