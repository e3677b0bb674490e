"""The tasks of the group, and how each is measured.

topic      everybody on one topic against the rest, at the paper's small ridge and at 1: Tables III, IV,
           Figures 8, 9
sweep      plain and clustered L-BFGS over all ridges: Figures 6, 7
policies   rounds, cluster factors, clusterings, pre-aggregation: Tables II, V
dense      500 words: BFGS, clustered BFGS, IIS, FIS: Table I, Figure 5
weights    trajectories of weights: Figures 2, 3, 10, 11
names      everybody on names with three attributes: Figures 12, 13
saving     what lossless merging saves
race, end  `LogLinear` beside other tools
"""

from __future__ import annotations

from collections.abc import Iterator

from bench import optimum, problems
from bench.corpora.reuters21578 import TOPICS
from bench.curves import optimum_row
from bench.figures.base import Row, Task
from bench.figures.clustered.competing import Conditions, Found, compete, ready
from bench.figures.clustered.entries import (
    CLUSTERED,
    DENSE,
    DENSE_TOPICS,
    FACTORS,
    FIELD,
    FIFTY,
    MERGED,
    NAMES,
    NAMES_FIELD,
    PLAIN,
    POLICY_TOPICS,
    QUICK,
    QUICK_NAMES,
    QUICK_NAMES_FIELD,
    RIDGE,
    RIDGES,
    ROUNDS,
    SHOWN_TOPICS,
    SMALL_RIDGE,
    SWEEP,
    SWEEP_TOPICS,
    Policy,
    policies,
    topic_problem,
)
from bench.figures.clustered.racing import race, race_tasks
from bench.figures.clustered.saving import saving
from bench.figures.clustered.scoring import name_scores, topic_score
from bench.figures.clustered.trajectories import trajectories
from bench.optimum import StoredOptimum
from bench.problems import Loaded
from bench.setting import Setting

__all__ = ["measure", "tasks"]

QUICK_MERGED = QUICK_NAMES
#: Limits of a run in seconds.
SECONDS, SWEEP_SECONDS, DENSE_SECONDS, NAMES_SECONDS, QUICK_SECONDS = 8.0, 4.0, 5.0, 30.0, 1.5
REPEATS, NAMES_REPEATS = 3, 1
RIDGES_OF_DENSE = (1e-2, 1.0)
QUICK_RIDGES = (1e-3, 1.0, 1e2)


def tasks(quick: bool) -> list[Task]:
    if quick:
        return [
            _task("topic", QUICK, 300.0, limit_seconds=QUICK_SECONDS),
            _task("sweep", QUICK, 300.0, limit_seconds=QUICK_SECONDS),
            _task("policies", QUICK, 300.0, limit_seconds=QUICK_SECONDS),
            _task("weights", QUICK, 120.0),
            _task("optimum", QUICK_NAMES, 300.0),
            _task("names", QUICK_NAMES, 300.0, limit_seconds=QUICK_SECONDS),
            _task("weights", QUICK_NAMES, 120.0),
            _task("saving", QUICK_MERGED, 300.0),
            *race_tasks(["rows-small"]),
        ]
    made = [_task("topic", topic_problem(topic), 600.0, limit_seconds=SECONDS) for topic in TOPICS]
    made += [
        _task("sweep", topic_problem(topic), 600.0, limit_seconds=SWEEP_SECONDS) for topic in SWEEP_TOPICS
    ]
    made += [
        _task("policies", topic_problem(topic), 600.0, limit_seconds=SWEEP_SECONDS) for topic in POLICY_TOPICS
    ]
    made += [
        _task("dense", topic_problem(topic, dense=True), 600.0, limit_seconds=DENSE_SECONDS)
        for topic in DENSE_TOPICS
    ]
    made += [_task("weights", topic_problem(topic), 120.0) for topic in SHOWN_TOPICS]
    made += [
        _task("optimum", NAMES, 900.0),
        _task("names", NAMES, 900.0, limit_seconds=NAMES_SECONDS),
        _task("weights", NAMES, 300.0),
        _task("saving", NAMES, 300.0),
        _task("optimum", MERGED, 900.0),
        _task("saving", MERGED, 900.0),
    ]
    return made + race_tasks(["reuters-apte", "reuters-apte-earn", "rows-binary", "rows-ten"])


def _task(what: str, problem: str, limit: float, **settings: float) -> Task:
    return Task(f"{what}/{problem}", problem, {"what": what, "tool": "", "variant": "", **settings}, limit)


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    what = task.settings["what"]
    loaded = problems.problem(task.problem).load(setting.data)
    if what in ("topic", "sweep", "policies", "dense"):
        yield from _MEASURES[what](task, loaded, setting.quick)
        return
    if what == "weights":
        yield from trajectories(loaded, ready(loaded))
        return
    best = optimum.find(loaded, setting)
    if what == "optimum":
        yield optimum_row(best)
    elif what == "names":
        yield from _names(task, loaded, best)
    elif what == "saving":
        yield from saving(loaded, best)
    else:
        yield from race(task, loaded, best)


def _topic(task: Task, loaded: Loaded, quick: bool) -> Iterator[Row]:
    """Everybody with a ridge of 1, in rounds; at the small one once, on topics that are not shown a few."""
    seconds = task.settings["limit_seconds"]
    shown = quick or task.problem in [topic_problem(topic) for topic in SHOWN_TOPICS]
    small = FIELD if shown else (PLAIN, CLUSTERED, FIFTY)
    for ridge, entries, repeats in (
        (RIDGE, FIELD, 1 if quick else REPEATS),
        (SMALL_RIDGE, small, 1),
    ):
        one = loaded.with_l2(ridge)
        conditions = Conditions(seconds, repeats, curves=shown, long_seconds=seconds / 2)
        yield from compete(ready(one), entries, conditions, topic_score(one))


def _sweep(task: Task, loaded: Loaded, quick: bool) -> Iterator[Row]:
    seconds = task.settings["limit_seconds"]
    for ridge in QUICK_RIDGES if quick else RIDGES:
        one = loaded.with_l2(ridge)
        conditions = Conditions(seconds, curves=False, long_seconds=0.75 * seconds)
        yield from compete(ready(one), SWEEP, conditions, topic_score(one))


def _policies(task: Task, loaded: Loaded, quick: bool) -> Iterator[Row]:
    """All policies with a ridge of 1; those of rounds and factors at the small ridge too."""
    few = [
        *(Policy(rounds=rounds) for rounds in ROUNDS),
        *(Policy(factor=factor, aggregate=on) for factor in FACTORS for on in ("true", "false")),
    ]
    seconds = task.settings["limit_seconds"]
    orders = [(RIDGE, few[:5] if quick else policies())]
    if not quick:
        orders.append((SMALL_RIDGE, list(dict.fromkeys(few))))
    for ridge, chosen in orders:
        one = loaded.with_l2(ridge)
        entries = [PLAIN, *(policy.entry for policy in dict.fromkeys(chosen))]
        conditions = Conditions(seconds, curves=False, long_seconds=seconds)
        yield from compete(ready(one), entries, conditions, topic_score(one))


def _dense(task: Task, loaded: Loaded, quick: bool) -> Iterator[Row]:
    for ridge in RIDGES_OF_DENSE:
        one = loaded.with_l2(ridge)
        conditions = Conditions(task.settings["limit_seconds"])
        yield from compete(ready(one), DENSE, conditions, topic_score(one))


_MEASURES = {"topic": _topic, "sweep": _sweep, "policies": _policies, "dense": _dense}


def _names(task: Task, loaded: Loaded, best: StoredOptimum) -> Iterator[Row]:
    objective = ready(loaded)
    known = Found(best.objective, best.grad_inf, best.reason)
    quick = task.problem == QUICK_NAMES
    repeats = 1 if quick else NAMES_REPEATS
    conditions = Conditions(task.settings["limit_seconds"], repeats, gradient=False)
    entries = QUICK_NAMES_FIELD if quick else NAMES_FIELD
    yield from compete(objective, entries, conditions, name_scores(loaded, objective), known)
