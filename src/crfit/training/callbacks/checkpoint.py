"""Checkpoints: save a run while it is training, and resume it later.

A checkpoint is one file (`crfit.data.tensor_file`). Tensors: ``weights``, ``state.<name>`` for each array of
the trainer's state, ``best_weights`` if EarlyStopping has any, and the steps: ``history.<field>`` with one
number per step, ``history.extra.<name>`` likewise, and ``history.at.<...>``, the steps that have this number,
unless all do. Header: the trainer, its options, the options of the problem, the rest of the trainer's state,
the scores, and the names of the numbers of a step in their order. All numbers are stored exactly, so a
resumed run continues exactly like an uninterrupted one. Files are replaced atomically (`crfit.files`).
"""

import os
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, get_args

import numpy as np

import crfit
from crfit.checks import check_number, check_whole_number
from crfit.data import tensor_file
from crfit.data.tensor_file import ANY, DAMAGED, FileKind, Tensors
from crfit.errors import ModelFileError, OptionError
from crfit.files import check_path, check_writable
from crfit.layout import TransitionsOption, WeightsOption
from crfit.model.tagging import Classes, Task
from crfit.training.records import Callback, KeptPoint, LastStep, Result, Run, RunState
from crfit.training.stopping import Progress, StopReason
from crfit.vectors import to_numpy

#: max_ndim=2: the state of a trainer may contain matrices. Version 1 had the steps in its header.
_STEP = {
    "iteration": int,
    "passes": float,
    "seconds": float,
    "evaluations?": int,
    "extra?": {ANY: float},
    **dict.fromkeys(("objective?", "grad_inf?", "grad_norm?", "step_size?"), (None, float)),
}
#: The options of `crfit.fit.PROBLEM`, and what `crfit train` takes from the run besides. From Python, whole
#: numbers may be 3.0 and switches 1; their values are checked where they are used.
_PROBLEM = {
    "task?": get_args(Task),
    "classes?": get_args(Classes),
    **dict.fromkeys(
        ("fit_intercept?", "penalize_intercept?", "boundary?", "scheme_in_training?"), (bool, float)
    ),
    **dict.fromkeys(("l2?", "l1?"), (None, float)),
    **dict.fromkeys(("order?", "n_free?", "min_count?"), float),
    "weights?": get_args(WeightsOption),
    "transitions?": get_args(TransitionsOption),
    "costs?": [[str, str, float]],
    "l2_by_group?": {ANY: float},
    **dict.fromkeys(("template?", "input_format?"), (None, str)),
    "features?": {"text": str, "lists": {ANY: str}},
    "pulled?": bool,
}
HEADER = {
    "trainer": str,
    "options": {},
    "state": {},
    "scores": {ANY: float},
    "best": (None, _STEP),
    "value?": (None, float),
    "facts?": {ANY: float},
    "problem?": _PROBLEM,
    "why?": str,
    "history?": [_STEP],
    "steps?": {"n": int, "extra": [str]},
    "last?": {"provisional": bool, "stop": str, "message": str, "advice": str},
    "records?": {ANY: [int]},
}
KIND = FileKind(
    "crfit-checkpoint", 2, "checkpoint", "crfit train --checkpoint or Checkpoint", max_ndim=2, header=HEADER
)
RECORD, HISTORY, AT = "state.", "history.", "history.at."
_COUNTS = ("iteration", "evaluations")
_FIELDS = tuple(field.name for field in fields(Progress) if field.name != "extra")


class Checkpoint(Callback):
    """Save the run to a file regularly and at its end, to resume it with `load_checkpoint`.

    If writing fails, for example on a full disk, you get a warning, the last checkpoint is kept, and training
    continues without further checkpoints.

    Parameters
    ----------
    path : path-like
        File to write; an existing checkpoint is replaced.
    every_seconds : float, optional
        Training time between two checkpoints; 60 if neither option is given.
    every_iter : int, optional
        Number of iterations between two checkpoints.
    """

    scores = ()

    def __init__(
        self, path: str | os.PathLike[str], every_seconds: float | None = None, every_iter: int | None = None
    ) -> None:
        if every_seconds is not None:
            check_number("every_seconds", every_seconds, at_least=0)
        if every_iter is not None:
            check_whole_number("every_iter", every_iter, at_least=1)
        if every_seconds is None and every_iter is None:
            every_seconds = 60.0
        self.path, self.every_seconds, self.every_iter = os.fspath(path), every_seconds, every_iter
        self._written = Progress(0, 0.0, 0.0)

    def on_start(self, run: Run) -> None:
        """Raise OptionError early if the file cannot be written."""
        self.failed = False
        try:
            check_writable(self.path)
        except OSError as error:
            remedy = f"cannot write a checkpoint there: {error.strerror}"
            raise OptionError("path", self.path, remedy) from None
        self._written = run.history[-1] if run.history else Progress(0, 0.0, 0.0)

    def on_step(self, run: Run, progress: Progress) -> StopReason | None:
        """Write a checkpoint if one is due."""
        due = (
            self.every_seconds is not None and progress.seconds - self._written.seconds >= self.every_seconds
        ) or (self.every_iter is not None and progress.iteration - self._written.iteration >= self.every_iter)
        if due and progress.finite and not run.diverged:
            self._write(run, progress)
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Write the last step, so a run that reached a limit can be resumed."""
        if result is not None and run.history and run.history[-1].finite and not run.diverged:
            self._write(run, run.history[-1])

    def _write(self, run: Run, progress: Progress) -> None:
        if self.failed:
            return
        try:
            save_checkpoint(self.path, run.snapshot())
        except ModelFileError as error:
            cause = error.__cause__ or error
            self._give_up(self.path, "checkpoint", getattr(cause, "strerror", None) or cause)
        self._written = progress


def save_checkpoint(path: str | os.PathLike[str], state: RunState) -> None:
    """Save the state of a run to a file.

    Parameters
    ----------
    path : path-like
        File to write; replaced atomically.
    state : RunState
        From ``Run.snapshot`` or ``Result.state``.
    """
    tensors: Tensors = {"weights": to_numpy(state.weights)}
    numbers: dict[str, Any] = {}
    for name, value in state.state.items():
        if hasattr(value, "shape") and value.ndim > 0:
            tensors[RECORD + name] = to_numpy(value)
        else:
            numbers[name] = value.item() if hasattr(value, "item") else value
    if state.best is not None:
        tensors["best_weights"] = to_numpy(state.best.weights)
    names = _store_history(state.history, tensors)
    header = {
        "format": KIND.format,
        "version": KIND.version,
        "crfit_version": crfit.__version__,
        "state": numbers,
        "steps": {"n": len(state.history), "extra": names},
        "last": vars(state.last),
        "records": {name: list(array.shape) for name, array in tensors.items()},
        "best": None if state.best is None else state.best.progress.to_dict(),
        **{
            name: getattr(state, name)
            for name in ("trainer", "options", "scores", "value", "facts", "problem", "why")
        },
    }
    tensor_file.write(path, tensors, header)


def _store_history(history: Sequence[Progress], tensors: Tensors) -> list[str]:
    """The names of `Progress.extra`, in order of first occurrence. Sets: the steps in `tensors`."""
    names = list(dict.fromkeys(name for progress in history for name in progress.extra))
    columns: dict[str, list[Any]] = {
        name: [getattr(progress, name) for progress in history] for name in _FIELDS
    }
    columns |= {f"extra.{name}": [progress.extra.get(name) for progress in history] for name in names}
    for name, values in columns.items():
        there = [k for k, value in enumerate(values) if value is not None]
        if len(there) < len(values):
            tensors[AT + name] = np.array(there, dtype=np.int64)
        numbers = [values[k] for k in there]
        tensors[HISTORY + name] = np.array(numbers, dtype=np.int64 if name in _COUNTS else np.float64)
    return names


def _last_step(stop: str = "", **others: Any) -> LastStep:
    if stop:
        StopReason(stop)  # ValueError if it is unknown
    return LastStep(stop=stop, **others)


def _restored_history(steps: dict[str, Any], tensors: Tensors) -> list[Progress]:
    """Inverse of `_store_history`, which removes the tensors; ValueError if they do not fit together."""
    n, names = steps["n"], steps["extra"]
    if n != len(tensors[HISTORY + _COUNTS[0]]):
        raise ValueError(f"it has {len(tensors[HISTORY + _COUNTS[0]])} of {n} steps")
    columns: dict[str, list[Any]] = {}
    for name in (*_FIELDS, *(f"extra.{name}" for name in names)):
        values = tensors.pop(HISTORY + name)
        there = tensors.pop(AT + name, np.arange(n))
        if values.dtype != (np.int64 if name in _COUNTS else np.float64) or values.shape != there.shape:
            raise ValueError(f"{HISTORY}{name} has {values.size} numbers for {there.size} of {n} steps")
        if there.size and not 0 <= there.min() <= there.max() < n:
            raise ValueError(f"{AT}{name} names steps beyond {n}")
        column: list[Any] = [None] * n
        for k, value in zip(there.tolist(), values.tolist(), strict=True):
            column[k] = value
        columns[name] = column
    kept = [(name, columns[f"extra.{name}"]) for name in names]
    extras = ({name: column[k] for name, column in kept if column[k] is not None} for k in range(n))
    return [Progress(*row) for row in zip(*(columns[name] for name in _FIELDS), extras, strict=True)]


def load_checkpoint(path: str | os.PathLike[str]) -> RunState:
    """Load a checkpoint; resume it with ``train(objective, state=load_checkpoint(path))``.

    Arrays are read-only views of the file. Raises ModelFileError if it is missing, truncated or damaged.
    """
    check_path(path)
    try:
        header, tensors = tensor_file.read(path, KIND, mapped=tensor_file.MAPPED)
        for name, shape in header.get("records", {}).items():
            if tensors[name].shape != tuple(shape):
                raise ValueError(f"{name} has the shape {tensors[name].shape}, not {tuple(shape)}")
        if "history" in header:  # version 1
            history = [Progress(**entry) for entry in header["history"]]
        else:
            history = _restored_history(header["steps"], tensors)
        state = dict(header["state"])
        for name, array in tensors.items():
            if name.startswith(RECORD):
                state[name.removeprefix(RECORD)] = array
        best = None
        if header["best"] is not None:
            best = KeptPoint(tensors["best_weights"], Progress(**header["best"]))
        return RunState(
            str(header["trainer"]),
            dict(header["options"]),
            tensors["weights"],
            state,
            history,
            dict(header["scores"]),
            best,
            header.get("value"),
            dict(header.get("facts", {})),
            dict(header.get("problem", {})),
            str(header.get("why", "")),
            _last_step(**header.get("last", {})),
        )
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        # The checksum is correct, so the file was written wrongly.
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise ModelFileError(f"{os.fspath(path)}: {DAMAGED.format(reason)}") from None
