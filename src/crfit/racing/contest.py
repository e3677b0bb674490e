"""race(): several trainers on the same data, all from the same start.

What the user gave is checked before any work, a race that was interrupted is taken up again, the entries are
run (`crfit.racing.running`), and everything that was seen is written to a folder (`crfit.racing.folder`).
"""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from crfit import trainers as registry
from crfit.data import Dataset
from crfit.engines import choose_engine
from crfit.errors import CrfitWarning, DataError, ModelFileError, OptionError
from crfit.fit import check_dev
from crfit.racing.entries import Entry, Trainers, read_entries
from crfit.racing.facts import data_facts, differences, settings_facts
from crfit.racing.folder import checkpoint_path, claimed_folder, clear_folder, optimum_key
from crfit.racing.journal import JOURNAL, Journal, read_journal
from crfit.racing.live import Display
from crfit.racing.optimum import check_optimum, lowest_optima, settled
from crfit.racing.problems import read_problem_options
from crfit.racing.records import Curve, Optimum, Status
from crfit.racing.result import RaceResult
from crfit.racing.running import Runner
from crfit.threads import machine_facts, resolve_threads
from crfit.training.callbacks import load_checkpoint
from crfit.training.interrupts import InterruptGuard
from crfit.training.records import RunState
from crfit.training.stopping import Stop

__all__ = ["MAX_PASSES", "race"]

#: Passes after which an entry ends if no limit was given: not every trainer meets a rule of convergence.
MAX_PASSES = 1000


def race(
    dataset: Dataset,
    trainers: Trainers,
    *,
    dev: Dataset | None = None,
    stop: Stop | None = None,
    optimum: float | Literal["find"] | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    seed: int = 0,
    n_threads: int | None = None,
    device: str = "cpu",
    progress: bool = True,
    **options: Any,
) -> RaceResult:
    """Run several trainers on the same data, all from zero weights, and compare how they get on.

    Objective, gap to the optimum and held-out scores are looked at on a grid of passes and of seconds, with
    the clock stopped. A trainer that fails or diverges is marked so and does not stop the others. Ctrl-C once
    ends the race after the current step; with `out` it can be resumed.

    Parameters
    ----------
    dataset : Dataset
        Labelled sequences.
    trainers : str, sequence or mapping
        Entries such as ``["lbfgs", "lbfgs:memory=3", "lbfgs:l2=0.1", LBFGS(memory=20)]``, or a mapping of
        labels to such. An option behind a colon is one of the trainer or of the problem (see `options`).
    dev : Dataset, optional
        Labelled held-out sequences, with any alphabets.
    stop : Stop, optional
        Stopping rules, the same for all entries. Where they have no limit of passes, iterations or seconds,
        an entry ends after 1000 passes.
    optimum : float or {"find"}, optional
        What gaps are taken to: a value, the outcome of a run of its own, or by default the lowest value of
        the race.
    out : path-like, optional
        Folder for journal, table, pictures and page.
    resume : bool, default=False
        Whether to go on with the race in `out`, if there is one: entries that are finished are not run again.
    overwrite : bool, default=False
        Whether to throw away the race in `out`, if there is one, or to replace other files of the same names.
    seed : int, default=0
        For trainers that have an option ``seed``.
    n_threads : int, optional
        Threads; None for all cores. No result depends on it but the times, so that a resumed race may have
        another number, with a warning.
    device : str, default="cpu"
        The engine, a name in `crfit.engines.ENGINES`.
    progress : bool, default=True
        Whether to show the race on standard error.
    **options
        Options of the problem, as for `crfit.make_objective`: ``l2``, ``l1``, ``weights``, ``transitions``,
        ``boundary``, ``order``, ``min_count``.

    Returns
    -------
    RaceResult
        The curves; ``plot()``, ``to_frame()`` and ``write(folder)`` make something of them.

    Raises
    ------
    OptionError, DataError
        Before any work.
    """
    problem = read_problem_options(options)
    entries = read_entries(trainers, problem, seed=seed)
    _check_arguments(dataset, dev, stop, device)
    check_optimum(optimum, len({entry.problem for entry in entries}))
    threads = resolve_threads(n_threads)
    rules = _limited(Stop() if stop is None else stop)
    place: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if out is not None:
        place = claimed_folder(out, resume=resume, overwrite=overwrite)
    elif resume or overwrite:
        raise OptionError("resume" if resume else "overwrite", True, "name the folder of the race: give out")

    with place:
        settings = settings_facts(
            problem, rules, seed=seed, n_threads=threads, device=device, optimum=optimum
        )
        curves = [_curve(entry) for entry in entries]
        result = RaceResult(curves, {}, data_facts(dataset, dev), settings, machine_facts())
        states: dict[str, RunState] = {}
        if out is not None and overwrite:
            clear_folder(out)
        if out is not None and resume and Path(out, JOURNAL).exists():
            states = _take_up(result, read_journal(Path(out, JOURNAL)), out)
        with InterruptGuard() as guard:
            journal = Journal(None if out is None else Path(out, JOURNAL), result)
            display = Display(result.curves, shown=progress)
            find, found = optimum == "find", dict(result.optima)
            runner = Runner(
                dataset, dev, rules, device, threads, journal, display, guard, out, states, find, found
            )
            running = {curve.label: curve for curve in result.curves}
            note = ""
            try:
                runner.run([(entry, running[entry.label]) for entry in entries])
                note = "" if out is None else f"writing table, page and pictures to {os.fspath(out)}"
            finally:
                display.close(note)
                journal.close()
            better = found
            if optimum is not None and optimum != "find":
                better = {entries[0].problem.name: Optimum(float(optimum), "given")}
            lowest = lowest_optima(result)
            result.optima = {name: settled(value, better.get(name)) for name, value in lowest.items()}
            if out is not None:
                _write(result, out)
    return result


def _write(result: RaceResult, out: str | os.PathLike[str]) -> None:
    """Write everything, or say why that cannot be done: the result is there all the same."""
    try:
        result.write(out)
    except OSError as error:
        message = f"{os.fspath(out)}: cannot be written to: {error.strerror or error}"
        warnings.warn(message, CrfitWarning, stacklevel=3)


def _check_arguments(dataset: Dataset, dev: Dataset | None, stop: Stop | None, device: str) -> None:
    """Refuse what would otherwise make every entry fail."""
    for name, data in (("dataset", dataset), ("dev", dev)):
        if not isinstance(data, Dataset) and not (name == "dev" and data is None):
            raise OptionError(name, data, "give a crfit.Dataset, such as Dataset.from_sequences(X, y)")
    if dataset.labels is None or dataset.n_sequences == 0:
        what = "no labels" if dataset.labels is None else "no sequences"
        raise DataError(f"there is nothing to learn: the data has {what}", file=dataset.source)
    check_dev(dev)
    if stop is not None and not isinstance(stop, Stop):
        raise OptionError("stop", stop, "give crfit.Stop(...), such as Stop(max_passes=100)")
    choose_engine(device, 1, warn=False)


def _limited(stop: Stop) -> Stop:
    unlimited = stop.max_passes is None and stop.max_iter is None and stop.seconds is None
    return replace(stop, max_passes=MAX_PASSES) if unlimited else stop


def _curve(entry: Entry) -> Curve:
    name = registry.name_of(entry.trainer)
    return Curve(entry.label, name, dict(entry.options), entry.problem.name)


def _take_up(result: RaceResult, before: RaceResult, out: str | os.PathLike[str]) -> dict[str, RunState]:
    """Go on with a race: take what it has, and return from where its unfinished entries go on.

    Sets: curves and optima of `result`. Entries that had begun and are not given any more stay as they are.
    """
    different = differences(before, result)
    if different:
        remedy = f"the race there has {'; '.join(different)}: give the same, or name another folder"
        raise OptionError("resume", os.fspath(out), remedy)
    threads = [facts.get("n_threads") for facts in (before.settings, result.settings)]
    changed = ["on another machine or with other versions"] if before.machine != result.machine else []
    changed += [f"with n_threads={threads[0]}, now {threads[1]}"] if threads[0] != threads[1] else []
    if changed:
        message = f"{os.fspath(out)}: the race was begun {' and '.join(changed)}"
        warnings.warn(f"{message}, so that its seconds do not compare", CrfitWarning, stacklevel=3)
    states = {}
    known = {curve.label: curve for curve in before.curves}
    for number, curve in enumerate(result.curves):
        old = known.pop(curve.label, None)
        if old is None or not (old.status.finished or old.status is Status.INTERRUPTED):
            continue
        if old.status is Status.INTERRUPTED:
            state = _saved(checkpoint_path(out, curve.label))
            if state is None:
                continue
            states[curve.label] = state
            # A crash may have come after later looks, which the entry will pass again.
            last = state.history[-1]
            old.points = [point for point in old.points if point.iteration <= last.iteration]
            if not _ends_at(old.profile, last.seconds):  # it is told at an end, the checkpoint came later
                old.profile = {}
        result.curves[number] = old
    result.curves += [curve for curve in known.values() if curve.points]
    result.optima = {name: value for name, value in before.optima.items() if value.kind == "found"}
    for problem in dict.fromkeys(curve.problem for curve in result.curves):
        state = _saved(checkpoint_path(out, optimum_key(problem)))
        if state is not None:
            states[optimum_key(problem)] = state
    return states


def _ends_at(profile: Mapping[str, float], seconds: float) -> bool:
    """Whether a profile is that of a run of so many seconds."""
    inside = sum(spent for phase, spent in profile.items() if phase != "evaluation")
    return math.isclose(inside, seconds, rel_tol=1e-6, abs_tol=1e-6)


def _saved(path: Path) -> RunState | None:
    """State of an interrupted run; None if there is none to go on from, so that it begins anew."""
    if not path.exists():
        return None
    try:
        state = load_checkpoint(path)
    except ModelFileError as error:
        warnings.warn(f"{error}; the run begins anew", CrfitWarning, stacklevel=4)
        return None
    return state if state.history else None
