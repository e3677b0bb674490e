"""The tasks of the group, and how each is measured.

optimum     F* and the size of a problem
methods     the papers' methods in scaled arithmetic, with test scores
papers      some of them in log-domain arithmetic
forcing     Newton-CG as published with a CG tolerance that goes to 0, every step
products    seconds of a gradient and of a Hessian-vector product, bytes of the cache
wins        the default against L-BFGS(10), in rounds
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import crfit
from bench import optimum, problems
from bench.curves import curve_rows, optimum_row, thinned, trained_curve
from bench.optimum import StoredOptimum
from bench.papers.newton_cg import entries as ncg
from bench.problems import Loaded
from bench.records import CRFIT, Entry, Row, Task
from bench.setting import THREADS, Setting, seconds_of
from crfit.engines.objective import Curvature

ROUNDS = 3
SEEDS = 2  # of the online methods on the quarter; one on larger problems
PRODUCTS = 5  # timed calls
#: Time limit of a training on the quarter and on a whole corpus; twice that in log-domain arithmetic.
QUARTER_SECONDS, SECONDS, QUICK_SECONDS = 60.0, 110.0, 25.0
AROUND = 300.0  # seconds of a task for reading, scores and objectives, which are not timed


def tasks(quick: bool) -> list[Task]:
    made = [_task(problem, "optimum", limit=3600.0) for problem in ([ncg.QUARTER] if quick else ncg.PROBLEMS)]
    for problem in [ncg.QUARTER] if quick else ncg.WIN_PROBLEMS:
        made += [
            _training("wins", problem, entry, 1, QUICK_SECONDS if quick else SECONDS) for entry in ncg.WINNERS
        ]
        for number in range(2, ROUNDS + 1) if not quick else ():  # without the warm-up it is not close
            made += [_training("wins", problem, ncg.WINNERS[n], number, SECONDS) for n in (0, 2)]
    for problem in [ncg.QUARTER] if quick else ncg.METHOD_PROBLEMS:
        seconds = QUICK_SECONDS if quick else QUARTER_SECONDS if problem == ncg.QUARTER else SECONDS
        made.append(_task(problem, "products", limit=300.0))
        made.append(_training("forcing", problem, ncg.SUPERLINEAR, 1, seconds))
        for entry in ncg.QUICK_METHODS if quick else ncg.METHODS:
            several = entry.max_passes is not None and problem == ncg.QUARTER and not quick
            rounds = range(1, SEEDS + 1) if several else (1,)
            made += [_training("methods", problem, entry, seed, seconds) for seed in rounds]
        if problem in ncg.LOG_PROBLEMS:
            papers = ncg.QUICK_PAPERS if quick else ncg.PAPERS
            made += [_training("papers", problem, e, 1, seconds if quick else 2 * seconds) for e in papers]
    return made


def _task(problem: str, what: str, end: str = "", limit: float = AROUND, **settings: Any) -> Task:
    common = {"what": what, "tool": "", "variant": "", "round": 0}
    return Task(f"{problem}/{what}{end}", problem, common | settings, limit)


def _training(what: str, problem: str, entry: Entry, number: int, seconds: float) -> Task:
    """A training; the number of the round is its seed."""
    settings = {"tool": CRFIT, "variant": entry.key, "round": number, "seconds_limit": seconds}
    settings |= {"given": entry.text, "arithmetic": entry.arithmetic}
    return _task(problem, what, f"-{entry.key}-{number}", 2 * seconds + AROUND, **settings)


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    what = task.settings["what"]
    loaded = problems.problem(task.problem).load(setting.data)
    if what == "products":
        yield from _products(loaded)
        return
    best = optimum.find(loaded, setting)
    if what == "optimum":
        yield optimum_row(best, loaded)
    else:
        yield from _trained(task, loaded, best)


def _trained(task: Task, loaded: Loaded, best: StoredOptimum) -> Iterator[Row]:
    entry, what = ncg.ENTRIES[task.settings["variant"]], task.settings["what"]
    end = ncg.WINS[task.problem] if what == "wins" else ncg.end_of(entry)
    limits = {"seconds": task.settings["seconds_limit"], "max_passes": entry.max_passes}
    stop = crfit.Stop(objective=end.objective(best.objective), **limits)
    asked = {"key": entry.key, "seed": task.settings["round"], "arithmetic": entry.arithmetic}
    curve = trained_curve(loaded, entry.text, stop, **asked)
    if what != "forcing":
        curve = thinned(curve, [goal.objective(best.objective) for goal in ncg.GAPS])
    yield from curve_rows(curve, best.of_curves, version=crfit.__version__, threads=THREADS)


def _products(loaded: Loaded) -> Iterator[Row]:
    """A row per call. The gradient is timed without and with filling the cache."""
    rng = np.random.default_rng(0)
    for mode, (_, arithmetic, kept) in ncg.MODES.items():
        objective = loaded.objective(THREADS, arithmetic=arithmetic)
        w, v = (rng.normal(size=objective.n_weights) * scale for scale in (0.1, 1.0))
        out = np.empty_like(w)
        gradient, product = partial(objective.value_and_grad, w, out=out), partial(objective.hvp, v, out=out)
        facts = {"row": "product", "mode": mode, "arithmetic": arithmetic}
        objective.keep_curvature(None)
        gradient()  # makes the tables
        for name, call in (("gradient", gradient), ("keeping gradient", gradient), ("product", product)):
            if name == "keeping gradient":
                objective.keep_curvature(Curvature(**kept))
            yield from ({**facts, "measured": name, "seconds": seconds} for seconds in timed(call))
        yield {**facts, "measured": "memory", "kept_bytes": objective.curvature_bytes}


def timed(call: Callable[[], object], n: int = PRODUCTS) -> Iterator[float]:
    """Seconds of some calls."""
    for _ in range(n):
        yield seconds_of(call)
