"""The tasks of the group, and how each is measured.

seconds     epochs of all trainers and of CRFsuite, one after the other in rounds
scores      test scores of CRFsuite itself, by which those of the paper can be judged
runs        test scores of a trainer after each epoch and at the end, a row for each seed
slopes      the same of sigmoids with other slopes, with fewer seeds and epochs
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures.base import NotAvailable, Row, Task
from bench.figures.natural_gradient.entries import (
    BESIDE,
    PAPER,
    PROBLEMS,
    QUICK_ENTRIES,
    RIVAL_ALGORITHMS,
    SLOPES,
    SMALL,
    Entry,
    rival_key,
)
from bench.figures.natural_gradient.rival import RIVAL, rival_scores, rival_seconds
from bench.figures.natural_gradient.running import EPOCHS, run_seeds
from bench.figures.natural_gradient.timing import our_seconds
from bench.problems import problem
from bench.setting import THREADS, Setting
from bench.tools import tool

__all__ = ["measure", "tasks"]

#: Epochs of a run, iterations of L-BFGS at most, and runs with errors in the training part. Trainers without
#: a likelihood end with the paper's figures: later they only get worse on the test part.
MOST, MOST_ITERATIONS, TRAINING_SEEDS = 60, 500, 5
ROUNDS, RIVAL_ROUNDS = 3, 2
#: Of the quick version.
QUICK_SEEDS, QUICK_EPOCHS = 3, 20


def tasks(quick: bool) -> list[Task]:
    if quick:
        made = _seconds(SMALL, 1, 1)
        made += [_runs(SMALL, "runs", entry, QUICK_SEEDS, QUICK_EPOCHS) for entry in QUICK_ENTRIES]
        return made
    made = []
    for name in PROBLEMS:
        made += _seconds(name, ROUNDS, RIVAL_ROUNDS)
    made += [_scores(SMALL, "lbfgs"), *(_scores(name, "pa") for name in PROBLEMS)]
    for name in PROBLEMS:
        for entry in (*PAPER, *BESIDE):
            made.append(_runs(name, "runs", entry, entry.n_seeds, EPOCHS if entry.margin else MOST))
        made += [_runs(name, "slopes", entry, entry.n_seeds, EPOCHS) for entry in SLOPES]
    return made


def _seconds(name: str, rounds: int, rival_rounds: int) -> list[Task]:
    """Rounds of ours with one of CRFsuite's between them, for as long as there are any."""
    made = []
    for number in range(1, rounds + 1):
        settings = {"what": "seconds", "tool": "", "variant": "", "round": number}
        made.append(Task(f"{name}/seconds-{number}", name, settings, 300.0))
        if number <= rival_rounds:
            for algorithm in RIVAL_ALGORITHMS:
                settings = {"what": "seconds", "tool": RIVAL, "variant": algorithm, "round": number}
                made.append(Task(f"{name}/seconds-{rival_key(algorithm)}-{number}", name, settings, 300.0))
    return made


def _scores(name: str, algorithm: str) -> Task:
    """L-BFGS on the small set alone: on the large one it takes minutes, and ours has the paper's score."""
    settings = {"what": "scores", "tool": RIVAL, "variant": algorithm}
    return Task(f"{name}/scores-{rival_key(algorithm)}", name, settings, 900.0)


def _runs(name: str, what: str, entry: Entry, n_seeds: int, most: int, workers: int = THREADS) -> Task:
    settings = {"what": what, "tool": "", "variant": entry.key, "given": entry.text, "workers": workers}
    if entry.online:
        settings |= {"given": f"{entry.text}:epochs={most}", "n_seeds": n_seeds, "most": most}
    else:
        settings |= {"n_seeds": 1, "most": MOST_ITERATIONS}
    return Task(f"{name}/{what}-{entry.key}", name, settings, 1200.0)


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    name = task.settings["tool"]
    reason = tool(name).absent() if name else None
    if reason is not None:
        raise NotAvailable(reason)
    asked = problem(task.problem)
    if task.settings["what"] in ("runs", "slopes"):
        seeds = range(1, task.settings["n_seeds"] + 1)
        n_train = 0 if task.settings["what"] == "slopes" else TRAINING_SEEDS
        given, most, workers = (task.settings[key] for key in ("given", "most", "workers"))
        yield from run_seeds(asked, setting.data, given, seeds, most, n_train, workers)
        return
    loaded = asked.load(setting.data)
    if task.settings["what"] == "scores":
        yield rival_scores(loaded, task.settings["variant"])
    elif name == RIVAL:
        yield rival_seconds(loaded, task.settings["variant"])
    else:
        yield from our_seconds(loaded, task.settings["round"])
