"""The tasks of the group, and how each is measured."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import crfit
from bench import problems
from bench.command_line import column_file, reported, train_command
from bench.figures.base import Row, Task
from bench.problems import Loaded
from bench.setting import THREADS, Setting
from bench.tools import tool
from bench.tools.base import Limits
from crfit import text
from crfit.racing.records import Point

__all__ = ["OURS", "RIVAL", "WEIGHTS", "measure", "tasks"]

WEIGHTS = ("all", "observed")
OURS, RIVAL = "crfit", "python-crfsuite"
RIVAL_TOOL = "python_crfsuite"

ROUNDS, QUICK_ROUNDS = 3, 1
GRADIENTS = 15  # per round
ITERATIONS = 20  # per round, of either tool
FILLED = 10  # iterations after which the memory of ten pairs is full on both sides; they do not count
READINGS = 5
TAGGER_ITERATIONS = 30


def tasks(quick: bool) -> list[Task]:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    of = {w: f"conll2000-quarter-{w}" if quick else f"conll2000-{w}" for w in WEIGHTS}
    beside = {w: {"weights": w, "rounds": rounds, "iterations": ITERATIONS} for w in WEIGHTS}
    return [
        *(Task(f"speed-{w}", of[w], {"what": "speed", **beside[w]}, needs=RIVAL_TOOL) for w in WEIGHTS),
        Task(
            "tagging",
            of["observed"],
            {"what": "tagging", "weights": "observed", "rounds": rounds},
            needs=RIVAL_TOOL,
        ),
        Task("reading", of["observed"], {"what": "reading"}),
        *(Task(f"memory-{w}", of[w], {"what": "memory", "weights": w}) for w in WEIGHTS),
        *(Task(f"training-{w}", of[w], {"what": "training", "weights": w}) for w in WEIGHTS),
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    measures = {
        "speed": _speed,
        "tagging": _tagging,
        "reading": _reading,
        "memory": _memory,
        "training": _training,
    }
    yield from measures[task.settings["what"]](task, loaded)


def _row(measured: str, name: str, seconds: float, threads: int, **more: Any) -> Row:
    version = tool(RIVAL_TOOL).version() if name == RIVAL else crfit.__version__
    row = {"measured": measured, "tool": name, "version": version, "threads": threads, "seconds": seconds}
    return {**row, **more}


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _speed(task: Task, loaded: Loaded) -> Iterator[Row]:
    """Every gradient has a row, and every iteration from the first with a full memory on."""
    rival = tool(RIVAL_TOOL)
    objectives = {n: loaded.objective(n) for n in (1, THREADS)}
    size = {"n_weights": objectives[1].n_weights}
    w = np.random.default_rng(0).normal(size=size["n_weights"]) * 0.1
    out = np.empty_like(w)
    for _ in range(task.settings["rounds"]):
        if rival.absent() is None:
            curve = rival.run(loaded, Limits(max_iter=ITERATIONS, scores=False))
            for number, seconds in _iterations(curve.points):
                yield _row("iteration", RIVAL, seconds, 1, iteration=number, **size)
        for threads, objective in objectives.items():
            for _ in range(GRADIENTS):
                seconds = _timed(partial(objective.value_and_grad, w, out=out))
                yield _row("gradient", OURS, seconds, threads, **size)
        run = crfit.train(objectives[THREADS], "lbfgs", stop=crfit.Stop(max_iter=ITERATIONS))
        for number, seconds in _iterations(run.history):
            yield _row("iteration", OURS, seconds, THREADS, iteration=number, **size)


def _iterations(steps: Sequence[Point | crfit.Progress]) -> Iterator[tuple[int, float]]:
    """Number and seconds of each iteration with a full memory."""
    for before, after in pairwise(steps):
        if before.iteration >= FILLED:
            yield after.iteration, after.seconds - before.seconds


def _tagging(task: Task, loaded: Loaded) -> Iterator[Row]:
    """The test part as lists of str, with a model of each tool."""
    test = loaded.attribute_lists("test")
    size = {"n_tokens": loaded.part("test").n_tokens}
    objective = loaded.objective(THREADS)
    run = crfit.train(objective, "lbfgs", stop=crfit.Stop(max_iter=TAGGER_ITERATIONS))
    model = crfit.Model.from_training(objective, run)
    with tempfile.TemporaryDirectory() as folder:
        tagger = None if tool(RIVAL_TOOL).absent() else _crfsuite_tagger(loaded, folder)
        for _ in range(task.settings["rounds"]):
            if tagger is not None:
                yield _row("tagging", RIVAL, _timed(lambda: [tagger.tag(x) for x in test]), 1, **size)
            ours = _timed(lambda: model.tag_many(test, n_threads=THREADS))
            yield _row("tagging", OURS, ours, THREADS, **size)


def _crfsuite_tagger(loaded: Loaded, folder: str) -> Any:
    """With the attributes under their own names: `bench.tools` shortens them, which is quicker to look up."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for x, y in zip(loaded.attribute_lists(), loaded.label_lists(), strict=True):
        trainer.append(x, y)
    options = {"c1": 0.0, "c2": loaded.problem.l2 / 2, "feature.possible_transitions": True}
    trainer.set_params({**options, "max_iterations": TAGGER_ITERATIONS})
    path = str(Path(folder) / "crfsuite.model")
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    return tagger


def _reading(task: Task, loaded: Loaded) -> Iterator[Row]:
    """From the compressed file, as it is distributed."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "train.txt.gz")
        Path(file).write_bytes(gzip.compress(loaded.texts["train"].data))
        for _ in range(READINGS):
            seconds = _timed(lambda: text.read(file, template=loaded.template, n_threads=THREADS))
            yield _row("reading", OURS, seconds, THREADS)


def _memory(task: Task, loaded: Loaded) -> Iterator[Row]:
    """Of `crfit train` from file to model, with the memory of ten pairs full."""
    watch = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=2); "
    watch += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    with tempfile.TemporaryDirectory() as folder:
        command = [*train_command(loaded, folder), "--max-iter", "12", "--no-progress"]
        done = subprocess.run(
            [sys.executable, "-c", watch, *command], check=True, stdout=subprocess.PIPE, text=True
        )
    yield {"measured": "memory", "tool": OURS, "megabytes": int(done.stdout.split()[-1]) / 1024}


def _training(task: Task, loaded: Loaded) -> Iterator[Row]:
    """By the command line alone."""
    with tempfile.TemporaryDirectory() as folder:
        train = reported([*train_command(loaded, folder), "--stop-grad-inf", "0.05", "--json"])
        model, test = str(Path(folder) / "m.crfit"), column_file(loaded, "test", folder)
        scores = reported([sys.executable, "-m", "crfit", "eval", "-m", model, test, "--json"])
    numbers = {name: train[name] for name in ("n_weights", "objective", "grad_inf", "passes", "iterations")}
    numbers |= {name: scores[name] for name in ("accuracy", "f1")}
    yield _row("training", OURS, train["seconds"], THREADS, **numbers)
