"""The tasks, and how each is measured.

optimum     the reference optimum of a problem, for gaps
seconds     passes of all trainers, one after another in rounds, with nothing else running
runs        scores and objective of a trainer during training, a row per seed; for an entry with a `Tuning`
            the trials on held-out sequences come first
scaling     passes of iterative scaling to a gap, a row per acceleration

A pass of an online trainer visits each sequence once; as in the paper, its calibration does not count. A pass
of L-BFGS and of iterative scaling is an evaluation, also at points that are not accepted.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench import optimum, seeds
from bench.curves import optimum_row
from bench.papers.aitken import entries as who
from bench.papers.aitken.entries import CHUNKS, LBFGS, NAMES, PASSES, QUARTER, QUICK, QUICK_OBSERVED, TUNINGS
from bench.problems import Loaded, Problem, problem
from bench.records import Entry, Row, Task
from bench.seeds import TOLERANCE, text_of, trained_seeds, trainer_of
from bench.setting import THREADS, Setting
from crfit.fit import HeldOutScorer

if TYPE_CHECKING:
    from crfit.engines import EngineObjective
    from crfit.trainers import Step

ROUNDS = 3
QUICK_SEEDS, QUICK_PASSES, QUICK_SCALING_PASSES = 2, 15, 200
#: Final passes that are scored one by one, and reports in the first pass.
LAST, PARTS = 10, 20
#: Passes after which the objective and both scores are evaluated; the paper's are 0.1, 0.35, 1, 4, 50.
EVALUATED = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1, 2, 3, 4, 6, 8, 10, 14, 20, 28, 40, 50, 70, 100, 140, 200)
#: Share of the training sequences held out, the last ones.
SHARE = 0.1
#: Relative gap that iterative scaling runs to; ratio of passes between points of its curve.
GAP, THIN = 0.1, 1.1


def tasks(quick: bool) -> list[Task]:
    if quick:
        made = [optimum_task(QUICK), optimum_task(QUICK_OBSERVED), seconds_task(QUICK, 1)]
        made += [runs_task(QUICK, entry, QUICK_SEEDS, QUICK_PASSES, quick=True) for entry in who.ON[QUICK]]
        few = [
            one for some in who.SCALING.values() for one in some if one.key.endswith(("-none", "-aitken-3"))
        ]
        return [*made, scaling_task(QUICK_OBSERVED, dict.fromkeys(few, QUICK_SCALING_PASSES))]
    made = [optimum_task(name) for name in (CHUNKS, NAMES, QUARTER)]
    made += [seconds_task(name, number) for number in range(1, ROUNDS + 1) for name in (CHUNKS, NAMES)]
    made += [
        runs_task(CHUNKS, entry, entry.seeds, 1 if entry in who.SHORT else PASSES) for entry in who.ON[CHUNKS]
    ]
    made += [runs_task(NAMES, entry, who.FEW, PASSES) for entry in who.ON[NAMES]]
    most = {entry: who.MAPS[name][1] for name, some in who.SCALING.items() for entry in some}
    return [*made, scaling_task(QUARTER, most)]


def optimum_task(name: str) -> Task:
    return Task(f"{name}/optimum", name, {"what": "optimum", "variant": ""}, 900.0)


def seconds_task(name: str, number: int) -> Task:
    return Task(f"{name}/seconds-{number}", name, {"what": "seconds", "variant": "", "round": number}, 300.0)


def runs_task(
    name: str, entry: Entry, n_seeds: int, most: int, workers: int = THREADS, *, quick: bool = False
) -> Task:
    settings = {"what": "runs", "variant": entry.key, "given": entry.text, "workers": workers}
    if entry is LBFGS:
        settings |= {"n_seeds": 1, "most": most if quick else who.EVALUATIONS}
    else:
        settings |= {"n_seeds": n_seeds, "most": most}
    if entry in TUNINGS:
        tuning = TUNINGS[entry]
        if quick:  # only the paper's constants, and one trial of each form
            tuning = replace(tuning, constants=tuning.constants[:1], n_tries=1)
        settings |= {"given": str(tuning), "horizon": tuning.horizon, "n_tries": tuning.n_tries}
    return Task(f"{name}/runs-{entry.key}", name, settings, 600.0)


def scaling_task(name: str, most: dict[Entry, int], workers: int = THREADS) -> Task:
    given = " ".join(f"{entry.key}={passes}={entry.text}" for entry, passes in most.items())
    settings = {"what": "scaling", "variant": "", "given": given, "workers": workers}
    return Task(f"{name}/scaling", name, settings, 900.0)


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    settings, asked = task.settings, problem(task.problem)
    if settings["what"] == "runs":
        entry = next(entry for entry in who.ENTRIES if entry.key == settings["variant"])
        yield from (run_tuned if entry in TUNINGS else run_seeds)(asked, setting.data, settings)
        return
    loaded = asked.load(setting.data)
    if settings["what"] == "seconds":
        yield from seeds.timed_rows(loaded, dict.fromkeys(who.TIMED, 1), settings["round"], who.WEIGHTS)
        return
    best = optimum.find(loaded, setting)
    if settings["what"] == "optimum":
        yield optimum_row(best)
        return
    parts = [each.split("=", 2) for each in settings["given"].split()]
    orders = [(best.objective, key, text, int(most)) for key, most, text in parts]
    prepare = partial(seeds.prepared, "gis", 1, who.WEIGHTS)
    yield from trained_seeds(asked, setting.data, prepare, scaled, orders, settings["workers"])


def online_steps(objective: EngineObjective, text: str, seed: int, most: int) -> Iterator[tuple[float, Step]]:
    """Passes and steps of a run, with many reports in the first pass and one after each of the others."""
    w, state = objective.xp.zeros(objective.n_weights), None
    for epochs, report in ((1, PARTS), (most, 1)):
        trainer = trainer_of(f"{text}:epochs={epochs}:report={report}", seed)
        for step in trainer.steps(objective, w, state):
            state = step.state
            yield step.state["k"] / objective.n_sequences, step
            if step.stop is not None:
                return


def batch_steps(objective: EngineObjective, text: str, most: int) -> Iterator[tuple[float, Step]]:
    """Passes and steps of a trainer that evaluates the objective."""
    begin = objective.counts.sequences
    for step in trainer_of(text).steps(objective, objective.xp.zeros(objective.n_weights)):
        passes = (objective.counts.sequences - begin) / objective.n_sequences
        yield passes, step
        if passes >= most or step.stop is not None:
            return


def trained(
    loaded: Loaded, objective: EngineObjective, text: str, seed: int | None, most: int, thorough: bool
) -> Row:
    """Train and evaluate from zero weights; `seed`: None for a batch trainer; `thorough`: training F1 too."""
    test, train = (
        HeldOutScorer(loaded.part(part), objective.layout, n_threads=objective.n_threads)
        for part in ("test", "train")
    )
    due, scored, full, train_f1 = list(EVALUATED), [], [], []
    if seed is None:
        steps, one_by_one = batch_steps(objective, text, most), most
    else:
        steps, one_by_one = online_steps(objective, text, seed, most), most - LAST
    words = "ended after its passes"
    for passes, step in steps:
        words = step.message or words
        if step.initial or step.stop is not None:
            continue
        here = passes >= due[0] - TOLERANCE if due else False
        if here or passes > one_by_one:
            scores = test(step.w)
            scored.append((passes, scores.f1, scores.n_tokens - scores.n_correct_tokens))
        if here:
            due = [one for one in due if one > passes + TOLERANCE]
            full.append((passes, objective.value(step.w) if step.objective is None else step.objective))
            if thorough:
                train_f1.append(train(step.w).f1)
    row = {
        "row": "run",
        "seed": seed or 0,
        "words": words,
        "n_weights": objective.n_weights,
        "n_tokens": loaded.part("test").n_tokens,
        "passes": text_of(passes for passes, _, _ in scored),
        "f1": text_of(f1 for _, f1, _ in scored),
        "errors": text_of(errors for _, _, errors in scored),
        "full_passes": text_of(passes for passes, _ in full),
        "objectives": text_of(value for _, value in full),
    }
    return row | {"train_f1": text_of(train_f1)} if thorough else row


def run_seeds(asked: Problem, folder: Path | None, settings: Row) -> Iterator[Row]:
    """Train with every seed; the first also has scores on the training set. A single run has all threads."""
    text, online = settings["given"], settings["variant"] != LBFGS.key
    every = range(1, settings["n_seeds"] + 1) if online else [None]
    orders = [(text, seed, settings["most"], n == 0) for n, seed in enumerate(every)]
    prepare = partial(seeds.prepared, text, settings["workers"] if len(orders) == 1 else 1, who.WEIGHTS)
    yield from trained_seeds(asked, folder, prepare, trained, orders, settings["workers"])


def best_setting(rows: Sequence[Row]) -> Row:
    """The trial with the highest mean F1."""
    return max(rows, key=lambda row: float(row["held_out_f1"]))


def run_tuned(asked: Problem, folder: Path | None, settings: Row) -> Iterator[Row]:
    """A row for each trial, then one for each run with the best setting.

    Trials train on all but the held-out sequences for the passes they are tuned for; one that diverges has an
    F1 of 0. The grids were chosen after runs scored on the test set; the choice within them does not use it.
    """
    forms, constants = (tuple(part.split()) for part in settings["given"].split(" x "))
    horizon, n_tries = settings["horizon"], settings["n_tries"]
    grid = who.Tuning(forms, constants, horizon, n_tries).settings
    orders = [(text, seed, horizon) for text in grid for seed in range(1, n_tries + 1)]
    found: dict[str, list[float]] = {text: [] for text in grid}
    for row in trained_seeds(asked, folder, _divided, _trial, orders, settings["workers"]):
        found[row["setting"]].append(row["f1"])
    rows = [
        {"row": "tuning", "setting": text, "held_out_f1": statistics.fmean(f1), "f1": text_of(f1)}
        for text, f1 in found.items()
    ]
    yield from rows
    chosen = best_setting(rows)["setting"]
    for row in run_seeds(asked, folder, {**settings, "given": chosen}):
        yield {**row, "setting": chosen}


def _divided(loaded: Loaded) -> tuple[EngineObjective, HeldOutScorer]:
    """The problem on most of its training sequences, and a scorer on the held-out ones."""
    train = loaded.train
    cut = train.n_sequences - int(SHARE * train.n_sequences)
    first, held_out = (train.subset(np.arange(*ends)) for ends in ((0, cut), (cut, train.n_sequences)))
    objective = replace(loaded, train=first).objective(1)
    return objective, HeldOutScorer(held_out, objective.layout, n_threads=1)


def _trial(objective: EngineObjective, scorer: HeldOutScorer, text: str, seed: int, horizon: float) -> Row:
    for passes, step in online_steps(objective, text, seed, math.ceil(horizon)):
        if step.stop is not None:
            break
        if passes >= horizon - TOLERANCE:
            return {"setting": text, "f1": scorer(step.w).f1}
    return {"setting": text, "f1": 0.0}


def scaled(_: Loaded, objective: EngineObjective, best: float, key: str, text: str, most: int) -> Row:
    """Iterative scaling from zero weights until the gap is reached, for at most `most` passes."""
    points: list[tuple[float, float]] = []
    reached, passes, value = None, 0.0, float("nan")
    for passes, step in batch_steps(objective, text, most):
        if step.objective is None or step.stop is not None:
            continue
        value = step.objective
        if not points or passes >= THIN * points[-1][0]:
            points.append((passes, value))
        if value <= (1.0 + GAP) * best:
            reached = passes
            break
    if points[-1][0] < passes:
        points.append((passes, value))
    return {
        "row": "scaling",
        "measured": key,
        "reached": reached,
        "last_gap": value / best - 1.0,
        "n_weights": objective.n_weights,
        "full_passes": text_of(x for x, _ in points),
        "objectives": text_of(y for _, y in points),
    }
