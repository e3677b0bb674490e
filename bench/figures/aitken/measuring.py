"""The tasks of the group, and how each is measured.

optimum     the reference optimum of a problem, for gaps
seconds     passes of all trainers, one after the other in rounds, with nothing else running
runs        scores and objective of a trainer on the way, a row for each seed; of an entry with a grid the
            trials on held-out sequences come before them
scaling     passes of iterative scaling to a gap, a row for each acceleration
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench import optimum
from bench.curves import optimum_row
from bench.figures.aitken.entries import (
    CHUNKS,
    EVALUATIONS,
    NAMES,
    QUARTER,
    QUICK,
    QUICK_OBSERVED,
    TIMED,
    Entry,
    Grid,
    entries_on,
)
from bench.figures.aitken.iterating import scale_all
from bench.figures.aitken.maps import QUICK_SCALING, SCALING, Scaling
from bench.figures.aitken.running import objective_of, run_seeds
from bench.figures.aitken.tuning import run_tuned
from bench.figures.base import Row, Task
from bench.online_runs import epoch_seconds, told
from bench.problems import Loaded, problem
from bench.setting import THREADS, Setting

__all__ = ["measure", "tasks"]

ROUNDS = 3
#: Of the quick version.
QUICK_SEEDS, QUICK_PASSES = 2, 15


def tasks(quick: bool) -> list[Task]:
    if quick:
        made = [_optimum(QUICK), _optimum(QUICK_OBSERVED), _seconds(QUICK, 1)]
        made += [_runs(QUICK, _quickly(entry), QUICK_SEEDS, QUICK_PASSES) for entry in entries_on(QUICK)]
        return [*made, _scaling(QUICK_OBSERVED, QUICK_SCALING)]
    made = [_optimum(name) for name in (CHUNKS, NAMES, QUARTER)]
    made += [_seconds(name, number) for number in range(1, ROUNDS + 1) for name in (CHUNKS, NAMES)]
    made += [_runs(CHUNKS, entry, entry.n_seeds, entry.most) for entry in entries_on(CHUNKS)]
    made += [_runs(NAMES, entry, entry.n_names, entry.most) for entry in entries_on(NAMES)]
    return [*made, _scaling(QUARTER, SCALING)]


def _quickly(entry: Entry) -> Entry:
    """With the paper's constants alone where others are tried, and one trial of each form."""
    if entry.grid is None:
        return entry
    return replace(entry, grid=replace(entry.grid, constants=entry.grid.constants[:1]), n_tries=1)


def _optimum(name: str) -> Task:
    return Task(f"{name}/optimum", name, {"what": "optimum", "variant": ""}, 900.0)


def _seconds(name: str, number: int) -> Task:
    return Task(f"{name}/seconds-{number}", name, {"what": "seconds", "variant": "", "round": number}, 300.0)


def _runs(name: str, entry: Entry, n_seeds: int, most: int, workers: int = THREADS) -> Task:
    settings = {"what": "runs", "variant": entry.key, "given": entry.text, "workers": workers}
    if entry.online:
        settings |= {"n_seeds": n_seeds, "most": most}
    else:
        settings |= {"n_seeds": 1, "most": most if name == QUICK else EVALUATIONS}
    if entry.grid:
        settings |= {"given": str(entry.grid), "horizon": entry.horizon, "n_tries": entry.n_tries}
    return Task(f"{name}/runs-{entry.key}", name, settings, 600.0)


def _scaling(name: str, entries: tuple[Scaling, ...], workers: int = THREADS) -> Task:
    given = " ".join(f"{entry.key}={entry.most}={entry.text}" for entry in entries)
    settings = {"what": "scaling", "variant": "", "given": given, "workers": workers}
    return Task(f"{name}/scaling", name, settings, 900.0)


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    settings, asked = task.settings, problem(task.problem)
    if settings["what"] == "runs":
        entry = next(entry for entry in entries_on(task.problem) if entry.key == settings["variant"])
        n_seeds, most, workers = (settings[name] for name in ("n_seeds", "most", "workers"))
        if entry.grid:
            forms, constants = (tuple(part.split()) for part in settings["given"].split(" x "))
            tried, horizon, n_tries = (
                Grid(forms, constants).settings,
                settings["horizon"],
                settings["n_tries"],
            )
            yield from run_tuned(asked, setting.data, tried, horizon, n_tries, n_seeds, most, workers)
            return
        seeds = list(range(1, n_seeds + 1)) if entry.online else [None]
        yield from run_seeds(asked, setting.data, settings["given"], seeds, most, workers)
        return
    loaded = asked.load(setting.data)
    if settings["what"] == "seconds":
        yield from _timed(loaded, settings["round"])
        return
    best = optimum.find(loaded, setting)
    if settings["what"] == "optimum":
        yield optimum_row(best)
        return
    parts = [each.split("=", 2) for each in settings["given"].split()]
    orders = [(key, text, int(most)) for key, most, text in parts]
    yield from scale_all(asked, setting.data, orders, best.objective, settings["workers"])


def _timed(loaded: Loaded, number: int) -> Iterator[Row]:
    """One row for each trainer: the median of its passes after the first.

    Every round has another order: what a trainer takes may depend on the one before it.
    """
    objective = objective_of(loaded.problem.name, loaded, 1)
    first = (number - 1) * len(TIMED) // ROUNDS % len(TIMED)
    for entry in (*TIMED[first:], *TIMED[:first]):
        yield {"row": "seconds", "measured": entry.key, **told(epoch_seconds(objective, entry.text))}
