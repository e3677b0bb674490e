"""The tasks, and how each is measured.

seconds     epochs of all trainers and of CRFsuite, one after another in rounds
scores      test scores of CRFsuite itself, to check the paper's
runs        test scores of a trainer after each epoch and at the end, a row per seed
slopes      the same for sigmoids with other slopes, with fewer seeds and epochs
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import crfit
from bench import seeds
from bench.papers.natural_gradient import entries as who
from bench.papers.natural_gradient.entries import LBFGS, PROBLEMS, RIVAL, RIVAL_KEYS, SMALL, TIMED
from bench.problems import Loaded, Problem, problem
from bench.records import Entry, Row, Task
from bench.seeds import text_of, trainer_of
from bench.setting import THREADS, Setting
from bench.tools import PYTHON_CRFSUITE
from crfit import Dataset, trainers
from crfit.engines import EngineObjective
from crfit.fit import HeldOutScorer
from crfit.training.callbacks import Callback
from crfit.training.stopping import Progress
from crfit.vectors import Vector

if TYPE_CHECKING:
    from crfit.training.records import Run

#: Epochs with test scores, as in the paper's figures, and epochs with scores on the training set.
EPOCHS = 50
TRAINING_EPOCHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50)
#: Epochs of a run, the most iterations of L-BFGS, and runs with errors on the training set. Trainers without
#: a likelihood stop where the paper's figures do: later they only get worse on the test set.
MOST, MOST_ITERATIONS, TRAINING_SEEDS = 60, 500, 5
ROUNDS, RIVAL_ROUNDS = 3, 2
QUICK_SEEDS, QUICK_EPOCHS = 3, 20


def tasks(quick: bool) -> list[Task]:
    if quick:
        made = [seconds_task(SMALL, 1, algorithm) for algorithm in ("", *who.RIVAL_TIMED)]
        return made + [runs_task(SMALL, "runs", one, QUICK_SEEDS, QUICK_EPOCHS) for one in who.QUICK_ENTRIES]
    # Our rounds with CRFsuite's between them.
    made = [
        seconds_task(name, number, algorithm)
        for name in PROBLEMS
        for number in range(1, ROUNDS + 1)
        for algorithm in ("", *(who.RIVAL_TIMED if number <= RIVAL_ROUNDS else ()))
    ]
    # CRFsuite's L-BFGS on the small set only: on the large one it takes minutes.
    made += [scores_task(SMALL, "lbfgs"), *(scores_task(name, "pa") for name in PROBLEMS)]
    for name in PROBLEMS:
        for entry in (*who.PAPER, *who.BESIDE):
            made.append(runs_task(name, "runs", entry, entry.seeds, EPOCHS if entry in who.MARGIN else MOST))
        made += [runs_task(name, "slopes", entry, entry.seeds, EPOCHS) for entry in who.SLOPES]
    return made


def seconds_task(name: str, number: int, algorithm: str = "") -> Task:
    """Seconds of all our trainers, or of one of CRFsuite's algorithms."""
    tool, key = (RIVAL, f"{RIVAL_KEYS[algorithm]}-{number}") if algorithm else ("", str(number))
    settings = {"what": "seconds", "tool": tool, "variant": algorithm, "round": number}
    return Task(f"{name}/seconds-{key}", name, settings, 300.0)


def scores_task(name: str, algorithm: str) -> Task:
    settings = {"what": "scores", "tool": RIVAL, "variant": algorithm}
    return Task(f"{name}/scores-{RIVAL_KEYS[algorithm]}", name, settings, 900.0)


def runs_task(name: str, what: str, entry: Entry, n_seeds: int, most: int, workers: int = THREADS) -> Task:
    settings = {"what": what, "tool": "", "variant": entry.key, "given": entry.text, "workers": workers}
    if entry is LBFGS:
        settings |= {"n_seeds": 1, "most": MOST_ITERATIONS}
    else:
        settings |= {"given": f"{entry.text}:epochs={most}", "n_seeds": n_seeds, "most": most}
    return Task(f"{name}/{what}-{entry.key}", name, settings, 1200.0)


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    settings, asked = task.settings, problem(task.problem)
    what, algorithm = settings["what"], settings["variant"]
    if what in ("runs", "slopes"):
        yield from run_seeds(asked, setting.data, settings, 0 if what == "slopes" else TRAINING_SEEDS)
        return
    loaded = asked.load(setting.data)
    if what == "scores":
        yield _rival_scores(loaded, algorithm)
    elif settings["tool"]:
        yield _rival_seconds(loaded, algorithm)
    else:
        entries = {entry.key: entry for entry in TIMED}
        for row in seeds.timed_rows(loaded, TIMED, settings["round"], who.WEIGHTS):
            entry = entries[row["measured"]]
            # Whether the default computes the transform or looks it up.
            usual = trainer_of(entry.text) == trainer_of(entry.text.partition(":table=")[0])
            yield {**row, "threads": TIMED[entry], "default": usual}


def _rival_seconds(loaded: Loaded, algorithm: str) -> Row:
    """Seconds per epoch of CRFsuite, single-threaded, from its log, which has processor time."""
    parameters: dict[str, Any] = {"max_iterations": 1 + seeds.TIMED_EPOCHS}
    if algorithm == "l2sgd":
        parameters |= {"c2": loaded.problem.l2 / 2, "period": 10**6, "delta": 0}
    seconds = PYTHON_CRFSUITE.epoch_seconds(loaded, algorithm, parameters)[1:]
    return {"row": "seconds", "measured": RIVAL_KEYS[algorithm], "threads": 1, **seeds.epoch_row(seconds)}


def _rival_scores(loaded: Loaded, algorithm: str) -> Row:
    """CRFsuite on the test part, with its defaults except the penalty, or the number of epochs."""
    given = {"c2": loaded.problem.l2 / 2} if algorithm == "lbfgs" else {"max_iterations": EPOCHS}
    scores = PYTHON_CRFSUITE.test_scores(loaded, algorithm, given)
    errors = scores.n_tokens - scores.n_correct_tokens
    numbers = {"n_tokens": scores.n_tokens, "final_errors": errors, "f1": scores.f1}
    return {"row": "scores", "measured": RIVAL_KEYS[algorithm], **numbers}


def run_seeds(asked: Problem, folder: Path | None, settings: Row, n_train: int) -> Iterator[Row]:
    """Train with every seed; the first few also have errors on the training set."""
    text, most = settings["given"], settings["most"]
    orders = [(text, seed, most, seed <= n_train) for seed in range(1, settings["n_seeds"] + 1)]
    prepare = partial(seeds.prepared, text, 1, who.WEIGHTS)
    yield from seeds.trained_seeds(asked, folder, prepare, _trained, orders, settings["workers"])


class _Errors(Callback):
    """Counts wrong tokens of a part after some iterations, and the passes so far."""

    def __init__(self, part: Dataset, objective: EngineObjective, epochs: Container[int]) -> None:
        self.score = HeldOutScorer(part, objective.layout, n_threads=1)
        self.epochs = epochs
        self.errors: list[int] = []
        self.passes: list[float] = []

    def on_step(self, run: Run, progress: Progress) -> None:
        if progress.iteration in self.epochs:
            self.errors.append(self.wrong(run.weights))
            self.passes.append(progress.passes)

    def wrong(self, weights: Vector) -> int:
        scores = self.score(weights)
        return scores.n_tokens - scores.n_correct_tokens


def _trained(loaded: Loaded, objective: EngineObjective, text: str, seed: int, most: int, train: bool) -> Row:
    """Train from zero weights for `most` epochs; a batch trainer may stop earlier by its own rule."""
    test = _Errors(loaded.part("test"), objective, range(1, EPOCHS + 1))
    training, trainer = _Errors(loaded.train, objective, TRAINING_EPOCHS), trainer_of(text, seed)
    online = "seed" in trainers.options_of(trainer)
    stop = crfit.Stop(max_iter=most, change=None) if online else crfit.Stop(max_iter=most)
    result = crfit.train(objective, trainer, stop=stop, callbacks=[test, training] if train else [test])
    row = {
        "row": "run",
        "seed": seed,
        "status": result.reason.value,
        "words": result.message,
        "epochs": result.iterations,
        "first_rate": next((p.step_size for p in result.history if p.iteration > 0), None),
        "objective": result.objective,
        "n_weights": objective.n_weights,
        "n_tokens": loaded.part("test").n_tokens,
        "final_errors": test.wrong(result.weights),
        "f1": test.score(result.weights).f1,
        "errors": text_of(test.errors),
        "train_seconds": result.seconds,
    }
    if train:
        row |= {"n_train_tokens": loaded.train.n_tokens, "train_errors": text_of(training.errors)}
        row["final_train_errors"] = training.wrong(result.weights)
    return row if online else {**row, "passes": text_of(test.passes)}
