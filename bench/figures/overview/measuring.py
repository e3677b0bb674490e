"""The tasks of the group, and how each is measured.

optimum     F* and the size of a problem
training    an entry on a problem: the points of its curve
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import crfit
from bench import optimum, problems
from bench.curves import curve_rows, optimum_row
from bench.figures.base import NotAvailable, Row, Task
from bench.figures.overview.contests import CONTESTS, END_GAP, GAPS, QUICK_CONTESTS, Contest, contest
from bench.figures.overview.entries import EG, Entry, entry_of
from bench.online_runs import trainer_of
from bench.optimum import StoredOptimum
from bench.problems import Loaded
from bench.setting import THREADS, Setting
from bench.trained_curves import thinned, trained_curve
from crfit import trainers
from crfit.racing.records import Curve

__all__ = ["CHAIN_MEMORY", "SEED", "TOOL", "measure", "tasks"]

TOOL = "crfit_race"
SEED = 1
#: Bytes that the chains of exponentiated gradient may take; 190 labels would take 30 GB.
CHAIN_MEMORY = 8 * 2**30
AROUND = 600.0  # seconds of a task for reading, scores, objectives and a last long step, which no limit sees


def tasks(quick: bool) -> list[Task]:
    made = []
    for one in QUICK_CONTESTS if quick else CONTESTS:
        made.append(_optimum(one.problem))
        made += [_training(one, entry) for entry in one.entries]
    return made


def _optimum(problem: str) -> Task:
    settings = {"what": "optimum", "tool": "", "variant": ""}
    return Task(f"{problem}/optimum", problem, settings, 3600.0)


def _training(one: Contest, entry: Entry) -> Task:
    settings = {
        "what": "training",
        "tool": TOOL,
        "variant": entry.key,
        "seconds_limit": entry.share * one.seconds,
        "passes_limit": None if one.sparse else entry.max_passes,
        "given": entry.text,
    }
    return Task(f"{one.problem}/{entry.key}", one.problem, settings, 2 * one.seconds + AROUND)


def measure(task: Task, setting: Setting) -> Iterator[Row]:
    loaded = problems.problem(task.problem).load(setting.data)
    best = optimum.find(loaded, setting)
    if task.settings["what"] == "optimum":
        data = loaded.train
        sizes = {
            "n_sequences": data.n_sequences,
            "n_labels": data.n_labels,
            "n_attributes": data.n_attributes,
        }
        yield {**optimum_row(best), **sizes}
        return
    one, entry = contest(task.problem, setting.quick), entry_of(task.settings["variant"])
    if entry == EG:
        _refuse_chains(loaded)
    curve = _trained(task, one, entry, loaded, best)
    facts = {"version": crfit.__version__, "threads": THREADS, "auto": _is_auto(loaded, entry)}
    yield from ({**row, **facts} for row in curve_rows(curve, best.of_curves))


def _trained(task: Task, one: Contest, entry: Entry, loaded: Loaded, best: StoredOptimum) -> Curve:
    limits = crfit.Stop(
        seconds=task.settings["seconds_limit"], max_passes=task.settings["passes_limit"], change=None
    )
    if not entry.penalised:
        curve = trained_curve(loaded.with_l2(0.0), entry.text, limits, key=entry.key, seed=SEED)
        # What it minimises is another function, whose values are no gaps here.
        return replace(curve, points=[replace(p, objective=None, grad_inf=None) for p in curve.points])
    stop = replace(limits, objective=_above(best, END_GAP))
    curve = trained_curve(loaded, entry.text, stop, key=entry.key, seed=SEED, sparse=one.sparse)
    return thinned(curve, [_above(best, gap) for gap in GAPS])


def _above(best: StoredOptimum, gap: float) -> float:
    """F at a relative gap."""
    return best.objective + gap * abs(best.objective)


def _refuse_chains(loaded: Loaded) -> None:
    needed = loaded.objective(THREADS).dual_bytes
    if needed is not None and needed > CHAIN_MEMORY:
        raise NotAvailable(f"its chains would take {needed / 1e9:.0f} GB")


def _is_auto(loaded: Loaded, entry: Entry) -> bool:
    """Whether ``auto`` chooses this trainer with these options for the problem."""
    chosen, _ = trainers.choose(trainers.resolve("auto"), loaded.objective(THREADS), seed=SEED)
    return _essence(chosen) == _essence(trainer_of(entry.text, SEED))


def _essence(trainer: trainers.Trainer) -> tuple[str, dict[str, object]]:
    """Name and options, but for those that depend on the memory of the machine."""
    info, options = trainers.info_of(trainer), trainers.options_of(trainer)
    fixed = {entry.name for entry in info.options if not entry.may_change} if info else set(options)
    return trainers.name_of(trainer), {name: value for name, value in options.items() if name in fixed}
