"""race(): several trainers on the same data, all from the same start.

Arguments are checked before any work, an interrupted race is resumed (`crfit.racing.resume`), the entries run
(`crfit.racing.runner`), and all results are written to a folder (`crfit.racing.folder`).
"""

import contextlib
import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from crfit import trainers as registry
from crfit.data import Dataset
from crfit.engines import choose_engine
from crfit.errors import CrfitWarning, DataError, OptionError
from crfit.evaluation.scores import METRICS, Metric
from crfit.fit import check_dev
from crfit.racing.entries import Trainers, read_entries
from crfit.racing.folder import claimed_folder, clear_folder
from crfit.racing.journal import JOURNAL, Journal, read_journal
from crfit.racing.live import Display
from crfit.racing.optimum import check_optimum, lowest_optima, settled
from crfit.racing.problems import read_problem_options
from crfit.racing.result import Curve, Optimum, RaceResult
from crfit.racing.resume import data_facts, settings_facts, take_up
from crfit.racing.runner import Runner
from crfit.threads import machine_facts, resolve_threads
from crfit.training.interrupts import InterruptGuard
from crfit.training.records import RunState
from crfit.training.stopping import Stop

#: Limit of passes where none is given: not every trainer meets a convergence rule.
MAX_PASSES = 1000


def race(
    dataset: Dataset | tuple[Any, Any],
    trainers: Trainers,
    *,
    dev: Dataset | tuple[Any, Any] | None = None,
    stop: Stop | None = None,
    metric: Metric = METRICS[0],
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
    """Run several trainers on the same data, all from zero weights, and compare them.

    Objective, gap to the optimum and held-out scores are evaluated at intervals, with the clock stopped. A
    trainer that fails or diverges is marked, and the others continue. Ctrl-C ends the race after the current
    step; if you set `out`, you can resume it.

    Parameters
    ----------
    dataset : Dataset or (X, y)
        Labelled sequences, or what `Dataset.from_sequences` takes.
    trainers : str, sequence or mapping
        Entries such as ``["lbfgs", "lbfgs:memory=3", "lbfgs:l2=0.1", LBFGS(memory=20)]``, or a mapping of
        labels to these. Options after a colon belong to the trainer or to the problem (see `options`).
    dev : Dataset or (X, y), optional
        Labelled held-out sequences.
    stop : Stop, optional
        Stopping rules for every entry. Without a limit of passes, iterations or seconds, an entry stops after
        1000 passes.
    metric : {"f1", "accuracy", "sequence_accuracy"}, default="f1"
        Held-out score that decides which entry is best. All of them are recorded.
    optimum : float or {"find"}, optional
        Value that gaps are measured from: a number, "find" to compute it with a separate run, or by default
        the lowest objective of the race.
    out : path-like, optional
        Folder for journal, table, pictures and page.
    resume : bool, default=False
        Whether to resume the race in `out`, if there is one; finished entries are not run again.
    overwrite : bool, default=False
        Whether to replace a race in `out`, and other files of the same names.
    seed : int, default=0
        Random seed.
    n_threads : int, optional
        Number of threads; None uses all cores. Only times depend on it, so resuming with another number only
        triggers a warning.
    device : str, default="cpu"
        The engine, a name in `crfit.engines.ENGINES`.
    progress : bool, default=True
        Whether to show progress on standard error.
    **options
        Options of the problem, as for `crfit.make_objective`: ``l2``, ``l1``, ``weights``, ``transitions``,
        ``boundary``, ``order``, ``min_count``.

    Returns
    -------
    RaceResult
        The curves, with ``plot()``, ``to_frame()`` and ``write(folder)``.

    Raises
    ------
    OptionError, DataError
        An argument or the data is invalid; raised before any training.
    """
    problem = read_problem_options(options)
    entries = read_entries(trainers, problem, seed=seed)
    dataset = _labelled("dataset", dataset)
    dev = None if dev is None else _labelled("dev", dev)
    _check_arguments(dataset, dev, stop, device, metric)
    check_optimum(optimum, entries)
    threads = resolve_threads(n_threads)
    rules = _limited(Stop() if stop is None else stop)
    place: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if out is not None:
        place = claimed_folder(out, resume=resume, overwrite=overwrite)
    elif resume or overwrite:
        raise OptionError("resume" if resume else "overwrite", True, "name the folder of the race: give out")

    with place:
        shared = {"seed": seed, "n_threads": threads, "device": device, "optimum": optimum, "metric": metric}
        settings = settings_facts(problem, rules, **shared)
        curves = [
            Curve(e.label, registry.name_of(e.trainer), dict(e.options), e.problem.name) for e in entries
        ]
        result = RaceResult(curves, {}, data_facts(dataset, dev), settings, machine_facts())
        states: dict[str, RunState] = {}
        if out is not None and overwrite:
            clear_folder(out)
        if out is not None and resume and Path(out, JOURNAL).exists():
            states = take_up(result, read_journal(Path(out, JOURNAL)), out)
        with InterruptGuard() as guard:
            journal = Journal(None if out is None else Path(out, JOURNAL), result)
            display = Display(result.curves, metric=metric, shown=progress)
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
                better = {e.problem.name: Optimum(float(optimum), "given") for e in entries if e.minimises}
            lowest = lowest_optima(result)
            result.optima = {name: settled(value, better.get(name)) for name, value in lowest.items()}
            if out is not None:
                _write(result, out)
    return result


def _write(result: RaceResult, out: str | os.PathLike[str]) -> None:
    """Write everything, or warn why that failed: the result is returned either way."""
    try:
        result.write(out)
    except OSError as error:
        message = f"{os.fspath(out)}: cannot be written to: {error.strerror or error}"
        warnings.warn(message, CrfitWarning, stacklevel=3)


def _labelled(name: str, data: Dataset | tuple[Any, Any]) -> Dataset:
    """Return the data as a `Dataset`; a message names its type, never its contents."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, tuple) and len(data) == 2:
        return Dataset.from_sequences(*data)
    raise OptionError(name, type(data).__name__, "give a pair (X, y) or a crfit.Dataset")


def _check_arguments(
    dataset: Dataset, dev: Dataset | None, stop: Stop | None, device: str, metric: str
) -> None:
    """Raise an error for arguments that would make every entry fail."""
    if dataset.labels is None or dataset.n_sequences == 0:
        what = "no labels" if dataset.labels is None else "no sequences"
        raise DataError(f"there is nothing to learn: the data has {what}", file=dataset.source)
    check_dev(dev)
    if stop is not None and not isinstance(stop, Stop):
        raise OptionError("stop", stop, "give crfit.Stop(...), such as Stop(max_passes=100)")
    choose_engine(device, 1, warn=False)
    if metric not in METRICS:
        raise OptionError("metric", metric, f"choose {', '.join(METRICS)}")


def _limited(stop: Stop) -> Stop:
    unlimited = stop.max_passes is None and stop.max_iter is None and stop.seconds is None
    return replace(stop, max_passes=MAX_PASSES) if unlimited else stop
