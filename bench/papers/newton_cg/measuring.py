"""The tasks of the group, and how each is measured.

optimum     F* and the size of a problem
methods     the papers' methods in our arithmetic, with test scores
papers      some of them in the papers' arithmetic
forcing     Newton-CG with a CG tolerance that goes to 0, all its steps
products    seconds of a gradient and of a Hessian product, bytes that are kept for it
wins        the default trainer against L-BFGS(10), in rounds
process     the whole `crfit train`, from file to model, and CRFsuite's training to the same gap
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import crfit
from bench import optimum, problems
from bench.command_line import reported, train_command
from bench.curves import curve_rows, optimum_row, thinned, tool_rows, trained_curve
from bench.optimum import StoredOptimum
from bench.papers.newton_cg import entries as ncg
from bench.problems import Loaded
from bench.records import CRFIT, Entry, Row, Task
from bench.setting import THREADS, Setting
from bench.tools.tool import Limits
from crfit.engines.objective import Curvature

RIVAL = "python_crfsuite"
ROUNDS = 3
SEEDS = 2  # of the on-line methods on the quarter; on larger problems they have one
PRODUCTS = 5  # timed calls
#: Seconds of a training: on the quarter and on a whole corpus; the papers' arithmetic gets twice as much.
QUARTER_SECONDS, SECONDS, QUICK_SECONDS = 60.0, 110.0, 25.0
RIVAL_SECONDS = 600.0
AROUND = 300.0  # of a task for reading, scores and objectives, which no clock sees


def tasks(quick: bool) -> list[Task]:
    if quick:
        entries = [("methods", entry) for entry in ncg.QUICK_METHODS]
        entries += [("papers", entry) for entry in ncg.QUICK_PAPERS]
        entries += [("forcing", ncg.SUPERLINEAR), *(("wins", entry) for entry in ncg.WINNERS)]
        return [
            _plain(ncg.QUARTER, "optimum", 3600.0),
            _plain(ncg.QUARTER, "products", 120.0),
            *(_training(what, ncg.QUARTER, entry, 1, QUICK_SECONDS) for what, entry in entries),
            *_process(ncg.QUARTER, 1),
        ]
    made = [_plain(problem, "optimum", 3600.0) for problem in ncg.PROBLEMS]
    for problem in ncg.WIN_PROBLEMS:
        for number in range(1, ROUNDS + 1):
            entries_of_round = (
                ncg.WINNERS if number == 1 else (ncg.WINNERS[0], ncg.WINNERS[2])
            )  # cold: no close race
            made += [_training("wins", problem, entry, number, SECONDS) for entry in entries_of_round]
    made += _process(ncg.CHUNKS, ROUNDS)
    for problem in ncg.METHOD_PROBLEMS:
        seconds = QUARTER_SECONDS if problem == ncg.QUARTER else SECONDS
        made.append(_plain(problem, "products", 300.0))
        made.append(_training("forcing", problem, ncg.SUPERLINEAR, 1, seconds))
        for entry in ncg.METHODS:
            n_seeds = SEEDS if entry.max_passes is not None and problem == ncg.QUARTER else 1
            made += [_training("methods", problem, entry, seed, seconds) for seed in range(1, n_seeds + 1)]
        if problem in ncg.LOG_PROBLEMS:
            made += [_training("papers", problem, entry, 1, 2 * seconds) for entry in ncg.PAPERS]
    return made


def _plain(problem: str, what: str, limit: float) -> Task:
    settings = {"what": what, "tool": "", "variant": "", "round": 0}
    return Task(f"{problem}/{what}", problem, settings, limit)


def _training(what: str, problem: str, entry: Entry, number: int, seconds: float) -> Task:
    """A training from the seed that is the number of the round."""
    settings = {
        "what": what,
        "tool": CRFIT,
        "variant": entry.key,
        "round": number,
        "seconds_limit": seconds,
        "given": entry.text,
        "arithmetic": entry.arithmetic,
    }
    return Task(f"{problem}/{what}-{entry.key}-{number}", problem, settings, 2 * seconds + AROUND)


def _process(problem: str, rounds: int) -> list[Task]:
    """The command line in rounds, and one run of CRFsuite, which takes minutes."""
    made = []
    for number in range(1, rounds + 1):
        settings = {"what": "process", "tool": "", "variant": "", "round": number}
        made.append(Task(f"{problem}/process-{number}", problem, settings, AROUND))
    settings = {"what": "process", "tool": RIVAL, "variant": "default", "round": 1}
    settings["seconds_limit"] = RIVAL_SECONDS
    return [*made, Task(f"{problem}/process-crfsuite", problem, settings, 2 * RIVAL_SECONDS + AROUND)]


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    what, name = task.settings["what"], task.settings["tool"]
    loaded = problems.problem(task.problem).load(setting.data)
    if what == "products":
        yield from _products(loaded)
        return
    best = optimum.find(loaded, setting)
    if what == "optimum":
        yield optimum_row(best, loaded)
    elif name == RIVAL:
        goal, seconds = ncg.WINS[task.problem].objective(best.objective), task.settings["seconds_limit"]
        limits = Limits(seconds=seconds, n_threads=THREADS, objective=goal, scores=False)
        yield from tool_rows(RIVAL, "default", loaded, limits, best)
    elif what == "process":
        yield _whole_process(loaded, best)
    else:
        yield from _trained(task, loaded, best)


def _trained(task: Task, loaded: Loaded, best: StoredOptimum) -> Iterator[Row]:
    entry, what = ncg.ENTRIES[task.settings["variant"]], task.settings["what"]
    end = ncg.WINS[task.problem] if what == "wins" else ncg.end_of(entry)
    stop = crfit.Stop(
        objective=end.objective(best.objective),
        seconds=task.settings["seconds_limit"],
        max_passes=entry.max_passes,
    )
    asked = {"key": entry.key, "seed": task.settings["round"], "arithmetic": entry.arithmetic}
    curve = trained_curve(loaded, entry.text, stop, **asked)
    if what != "forcing":
        curve = thinned(curve, [goal.objective(best.objective) for goal in ncg.GAPS])
    yield from curve_rows(curve, best.of_curves, version=crfit.__version__, threads=THREADS)


def _whole_process(loaded: Loaded, best: StoredOptimum) -> Row:
    """From the start of the program to its end: reading, training, saving the model."""
    goal = ncg.WINS[loaded.problem.name].objective(best.objective)
    with tempfile.TemporaryDirectory() as folder:
        command = [*train_command(loaded, folder, ncg.DEFAULT.text), "--stop-objective", repr(goal)]
        begin = time.perf_counter()
        record = reported([*command, "--no-progress", "--json"])
        seconds = time.perf_counter() - begin
    numbers = {"objective": record["objective"], "passes": record["passes"]}
    return {"row": "process", "seconds": seconds, "training_seconds": record["seconds"], **numbers}


def _products(loaded: Loaded) -> Iterator[Row]:
    """Every call has a row. The gradient is timed without and with what it keeps for the products."""
    rng = np.random.default_rng(0)
    for mode, (arithmetic, kept) in ncg.MODES.items():
        objective = loaded.objective(THREADS, arithmetic=arithmetic)
        w, v = (rng.normal(size=objective.n_weights) * scale for scale in (0.1, 1.0))
        out = np.empty_like(w)
        gradient = partial(objective.value_and_grad, w, out=out)
        facts = {"row": "product", "mode": mode, "arithmetic": arithmetic}
        objective.keep_curvature(None)
        gradient()  # makes the tables
        yield from ({**facts, "measured": "gradient", "seconds": s} for s in _timed(gradient))
        objective.keep_curvature(Curvature(**kept))
        yield from ({**facts, "measured": "keeping gradient", "seconds": s} for s in _timed(gradient))
        product = partial(objective.hvp, v, out=out)
        yield from ({**facts, "measured": "product", "seconds": s} for s in _timed(product))
        yield {**facts, "measured": "memory", "kept_bytes": objective.curvature_bytes}


def _timed(call: Callable[[], object]) -> Iterator[float]:
    for _ in range(PRODUCTS):
        begin = time.perf_counter()
        call()
        yield time.perf_counter() - begin
