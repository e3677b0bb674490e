"""Speed of the core and of whole commands on CoNLL-2000 against python-crfsuite, and training to the optimum.

Both tools minimise the same function: CRF++'s chunking template, l2 = 1, weights for all (attribute, label)
pairs or only for observed ones. crfit uses two threads, python-crfsuite is single-threaded. Rounds of both
alternate; a ratio is one of medians. The quick version has one round on a quarter.

Whole commands run from a text file to a model file, with the start of Python and reading. They end when the
relative gap is 1e-3: crfit at this objective, CRFsuite after the iterations that it needs. crfit makes the
attributes by the template; the file for CRFsuite already has them.
"""

import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import crfit
from bench import optimum, problems
from bench.command_line import column_file, reported, train_command, with_bytecode
from bench.problems import Loaded
from bench.records import Check, Results, Row, Task
from bench.setting import THREADS, Setting, seconds_of
from bench.tables import markdown, prose, shown
from bench.tools import tool
from bench.tools.data import items, label_tokens
from bench.tools.tool import Limits
from crfit.data import text
from crfit.racing.result import Point

TITLE = "speed of the core against python-crfsuite, and training to the optimum"
WEIGHTS = ("all", "observed")
OURS, RIVAL = "crfit", "python-crfsuite"
RIVAL_TOOL = "python_crfsuite"
GRADIENTS, ITERATIONS = 15, 20  # per round
FILLED = 10  # iterations until ten pairs are stored; they do not count
READINGS = 5
GAP = 1e-3  # of whole commands
#: CRFsuite from a file with a label and attributes per line: file, model, parameters as Python.
RIVAL_COMMAND = """
import ast, sys, pycrfsuite
trainer, x, y = pycrfsuite.Trainer(verbose=False), [], []
for line in open(sys.argv[1]):
    if fields := line.split():
        y.append(fields[0])
        x.append(fields[1:])
    else:
        trainer.append(x, y)
        x, y = [], []
trainer.set_params(ast.literal_eval(sys.argv[3]))
trainer.train(sys.argv[2])
"""


def tasks(quick: bool) -> list[Task]:
    rounds = 1 if quick else 3
    of = {w: f"conll2000-quarter-{w}" if quick else f"conll2000-{w}" for w in WEIGHTS}
    beside = {w: {"weights": w, "rounds": rounds, "iterations": ITERATIONS} for w in WEIGHTS}
    return [
        *(Task(f"speed-{w}", of[w], {"what": "speed", **beside[w]}, needs=RIVAL_TOOL) for w in WEIGHTS),
        Task("reading", of["observed"], {"what": "reading"}),
        *(Task(f"memory-{w}", of[w], {"what": "memory", "weights": w}) for w in WEIGHTS),
        *(Task(f"training-{w}", of[w], {"what": "training", "weights": w}) for w in WEIGHTS),
        *(
            Task(f"command-{w}", of[w], {"what": "command", "weights": w, "rounds": rounds}, needs=RIVAL_TOOL)
            for w in WEIGHTS
        ),
    ]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    measures = {"speed": _speed, "reading": _reading, "memory": _memory, "training": _training}
    loaded = problems.problem(task.problem).load(setting.data)
    if task.settings["what"] == "command":
        yield from _command(task, loaded, optimum.find(loaded, setting).objective)
    else:
        yield from measures[task.settings["what"]](task, loaded)


def row_of(measured: str, name: str, seconds: float, threads: int = 1, **more: Any) -> Row:
    version = tool(RIVAL_TOOL).version() if name == RIVAL else crfit.__version__
    row = {"measured": measured, "tool": name, "version": version, "threads": threads, "seconds": seconds}
    return {**row, **more}


def _speed(task: Task, loaded: Loaded) -> Iterator[Row]:
    """A row per gradient, and per iteration with ten stored pairs."""
    rival = tool(RIVAL_TOOL)
    objectives = {n: loaded.objective(n) for n in (1, THREADS)}
    size = {"n_weights": objectives[1].n_weights}
    w = np.random.default_rng(0).normal(size=size["n_weights"]) * 0.1
    out = np.empty_like(w)
    for _ in range(task.settings["rounds"]):
        if rival.absent() is None:
            curve = rival.run(loaded, Limits(max_iter=ITERATIONS, scores=False))
            for number, seconds in _iterations(curve.points):
                yield row_of("iteration", RIVAL, seconds, 1, iteration=number, **size)
        for threads, objective in objectives.items():
            for _ in range(GRADIENTS):
                seconds = seconds_of(partial(objective.value_and_grad, w, out=out))
                yield row_of("gradient", OURS, seconds, threads, **size)
        run = crfit.train(objectives[THREADS], "lbfgs", stop=crfit.Stop(max_iter=ITERATIONS))
        for number, seconds in _iterations(run.history):
            yield row_of("iteration", OURS, seconds, THREADS, iteration=number, **size)


def _iterations(steps: Sequence[Point | crfit.Progress]) -> Iterator[tuple[int, float]]:
    """Number and seconds of each iteration with ten stored pairs."""
    for before, after in pairwise(steps):
        if before.iteration >= FILLED:
            yield after.iteration, after.seconds - before.seconds


def _reading(task: Task, loaded: Loaded) -> Iterator[Row]:
    """From the compressed file."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "train.txt.gz")
        Path(file).write_bytes(gzip.compress(loaded.texts["train"].data))
        for _ in range(READINGS):
            seconds = seconds_of(lambda: text.read(file, template=loaded.template, n_threads=THREADS))
            yield row_of("reading", OURS, seconds, THREADS)


def _memory(task: Task, loaded: Loaded) -> Iterator[Row]:
    """Peak memory of `crfit train` from file to model, with ten stored pairs."""
    watch = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=2); "
    watch += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    with tempfile.TemporaryDirectory() as folder:
        command = [*train_command(loaded, folder), "--max-iter", "12", "--no-progress"]
        done = subprocess.check_output([sys.executable, "-c", watch, *command], text=True)
    yield {"measured": "memory", "tool": OURS, "megabytes": int(done.split()[-1]) / 1024}


def _training(task: Task, loaded: Loaded) -> Iterator[Row]:
    """With the command line."""
    with tempfile.TemporaryDirectory() as folder:
        train = reported([*train_command(loaded, folder), "--stop-grad-inf", "0.05", "--json"])
        model, test = str(Path(folder) / "m.crfit"), column_file(loaded, "test", folder)
        scores = reported([sys.executable, "-m", "crfit", "eval", "-m", model, test, "--json"])
    numbers = {name: train[name] for name in ("n_weights", "objective", "grad_inf", "passes", "iterations")}
    numbers |= {name: scores[name] for name in ("accuracy", "f1")}
    yield row_of("training", OURS, train["seconds"], THREADS, **numbers)


def _command(task: Task, loaded: Loaded, best: float) -> Iterator[Row]:
    """`crfit train` and a program with python-crfsuite, from text to model."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *train_command(loaded, folder, "auto"),
            "--stop-objective",
            repr(best * (1 + GAP)),
            "--no-progress",
            "--json",
        ]
        for _ in range(task.settings["rounds"]):
            begin = time.perf_counter()
            ended = reported(command)["objective"]
            yield row_of("command", OURS, time.perf_counter() - begin, THREADS, gap=ended / best - 1)
        rival = tool(RIVAL_TOOL)
        if rival.absent() is not None:
            return
        curve = rival.run(loaded, Limits(objective=best * (1 + GAP), scores=False))
        path, last = Path(folder) / "attributes.txt", curve.points[-1]
        assert last.objective is not None
        with path.open("w") as file:
            for x, y in zip(items(loaded.train), label_tokens(loaded.train), strict=True):
                file.writelines(f"{label} {' '.join(item)}\n" for label, item in zip(y, x, strict=True))
                file.write("\n")
        options = rival.options(loaded, Limits(), "default") | {"max_iterations": last.iteration}
        del options["algorithm"]  # L-BFGS, as by default
        program = [sys.executable, "-c", RIVAL_COMMAND, str(path), str(Path(folder) / "m"), repr(options)]
        seconds = seconds_of(partial(subprocess.run, program, check=True, env=with_bytecode()))
        yield row_of("command", RIVAL, seconds, 1, gap=last.objective / best - 1)


# --- what follows ------------------------------------------------------------------------------------------

#: How many times as fast crfit must be at least, with slack for other machines.
FASTER = {"gradient-all": 10.0, "iteration-all": 4.0, "gradient-observed": 6.0, "iteration-observed": 5.0}
FASTER |= {"threads-all": 1.5, "threads-observed": 1.5, "command-all": 12.0, "command-observed": 10.0}
#: Optimum and scores of the whole corpus: of CRF++, CRFsuite and Wapiti with all weights, of CRFsuite with
#: observed weights.
PUBLISHED = {"all": (7705.31, 96.05, 93.79), "observed": (8856.50, 95.96, 93.63)}
NEAR = 0.03  # of a score


def _seconds(value: float | None) -> str:
    return shown(value, ".3f", " s")


def _ratio(slow: float | None, fast: float | None) -> float | None:
    return None if slow is None or fast is None else slow / fast


def lines(results: Results) -> Iterator[tuple[str, str, str, str, float | None]]:
    """Rows of the table: key, title, crfit, the rival, and how many times as fast crfit is."""
    for weights in WEIGHTS:
        n_weights = results.median("n_weights", measured="gradient", weights=weights)
        label = f"{'all' if weights == 'all' else 'only observed'} weights ({shown(n_weights, ',.0f')})"
        seconds = partial(results.median, "seconds", weights=weights)
        rival = seconds(measured="iteration", tool=RIVAL, threads=1)
        iteration = seconds(measured="iteration", tool=OURS, threads=THREADS)
        gradient, one = (seconds(measured="gradient", tool=OURS, threads=n) for n in (THREADS, 1))
        beside = f"{_seconds(rival)} (iteration)"  # its log has no time of a gradient
        title, ratio = f"objective and gradient, {label}", _ratio(rival, gradient)
        yield f"gradient-{weights}", title, _seconds(gradient), beside, ratio
        title, ratio = f"L-BFGS iteration, {label}", _ratio(rival, iteration)
        yield f"iteration-{weights}", title, _seconds(iteration), _seconds(rival), ratio
        ours, rival = (seconds(measured="command", tool=name) for name in (OURS, RIVAL))
        title, ratio = f"from text to model, gap 1e-3, {label}", _ratio(rival, ours)
        yield f"command-{weights}", title, shown(ours, ".1f", " s"), shown(rival, ".1f", " s"), ratio
        both = f"{_seconds(one)}, {_seconds(gradient)}"
        title, ratio = f"gradient on one and two threads, {label}", _ratio(one, gradient)
        yield f"threads-{weights}", title, both, "", ratio


def tables(results: Results) -> dict[str, str]:
    reading = results.median("seconds", measured="reading")
    memory = results.median("megabytes", weights="all")
    found = list(lines(results))
    speed, commands = (
        [
            (title, ours, theirs, shown(ratio, ".1f"))
            for key, title, ours, theirs, ratio in found
            if key.startswith("command") is whole
        ]
        for whole in (False, True)
    )
    speed.append(("reading the training file", shown(reading, ".2f", " s"), "", ""))
    speed.append(("peak memory of training, all weights", shown(memory, ",.0f", " MB"), "", ""))
    part = " (quarter)" * results.config["quick"]
    headings = [f"CoNLL-2000 chunking{part}", "crfit, two threads", "python-crfsuite", "times as fast"]
    ratios = {key.replace("-", "_"): ratio for key, *_, ratio in found}
    return {
        "speed": markdown(headings, speed),
        "commands": markdown(headings, commands),
        "answer": prose(__file__, "core", **ratios),
    }


def checks(results: Results) -> list[Check]:
    """Ratios that were measured; a quick run is too short for threads."""
    quick = results.config["quick"]
    made = [
        Check(key, f"{title}: {ratio:.1f} times as fast, at least {least:g}.", ratio >= least)
        for key, title, _, _, ratio in lines(results)
        for least in [FASTER[key] * results.slack]
        if ratio is not None and not (quick and key.startswith(("threads", "command")))
    ]
    return made + [_published(row) for row in results.where(measured="training") if not quick]


def _published(row: Row) -> Check:
    (objective, *scores), found = PUBLISHED[row["weights"]], [row["accuracy"], row["f1"]]
    near = all(abs(ours - theirs) <= NEAR for ours, theirs in zip(found, scores, strict=True))
    text = f"Training with {row['weights']} weights ends at an objective of {row['objective']:.2f}, accuracy "
    text += "{:.2f} and F1 {:.2f}; other tools reach ".format(*found)
    text += "{}, {} and {}.".format(objective, *scores)
    return Check(f"training-{row['weights']}", text, near and row["objective"] <= objective)
