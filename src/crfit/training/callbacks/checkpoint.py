"""Checkpoints: save a run while it is training, and resume it later.

A checkpoint is one file (`crfit.data.tensor_file`). Tensors: ``weights``, ``state.<name>`` for each array of
the trainer's state, ``best_weights`` if EarlyStopping has any. Header: the trainer, its options, the options
of the problem, the rest of the trainer's state, the scores, and every step. All numbers are stored exactly,
so a resumed run continues exactly like an uninterrupted one. Files are replaced atomically (`crfit.files`).
"""

import os
from typing import Any

import crfit
from crfit.checks import check_number, check_whole_number
from crfit.data import tensor_file
from crfit.data.tensor_file import DAMAGED, FileKind, Tensors
from crfit.errors import ModelFileError, OptionError
from crfit.files import check_writable
from crfit.training.records import Callback, KeptPoint, Result, Run, RunState
from crfit.training.stopping import Progress, StopReason
from crfit.vectors import to_numpy

#: max_ndim=2: the state of a trainer may contain matrices.
KIND = FileKind("crfit-checkpoint", 1, "checkpoint", "crfit train --checkpoint or Checkpoint", max_ndim=2)
RECORD = "state."


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
    header = {
        "format": KIND.format,
        "version": KIND.version,
        "crfit_version": crfit.__version__,
        "state": numbers,
        "history": [progress.to_dict() for progress in state.history],
        "best": None if state.best is None else state.best.progress.to_dict(),
        **{
            name: getattr(state, name)
            for name in ("trainer", "options", "scores", "value", "facts", "problem")
        },
    }
    tensor_file.write(path, tensors, header)


def load_checkpoint(path: str | os.PathLike[str]) -> RunState:
    """Load a checkpoint; resume it with ``train(objective, state=load_checkpoint(path))``.

    Arrays are read-only views of the file. Raises ModelFileError if it is missing, truncated or damaged.
    """
    try:
        header, tensors = tensor_file.read(path, KIND, mapped=tensor_file.MAPPED)
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
            [Progress(**entry) for entry in header["history"]],
            dict(header["scores"]),
            best,
            header.get("value"),
            dict(header.get("facts", {})),
            dict(header.get("problem", {})),
        )
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        # The checksum is correct, so the file was written wrongly.
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise ModelFileError(f"{os.fspath(path)}: {DAMAGED.format(reason)}") from None
