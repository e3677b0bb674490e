"""Saving a run while it goes on, and resuming it later.

A checkpoint is one file (`crfit.data.tensor_file`). Tensors: ``weights``, ``state.<name>`` for each array of
the trainer's record, ``best_weights`` if EarlyStopping kept any. Header: the trainer, its options, those of
the problem, the rest of the trainer's record, the scores, and every step. Numbers read back bit by bit, hence
a resumed run continues exactly like one that was never interrupted.

At any moment the path holds a whole checkpoint or none (`crfit.files`).
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

#: A trainer may keep matrices, such as the products of its vectors.
KIND = FileKind("crfit-checkpoint", 1, "checkpoint", "crfit train --checkpoint and Checkpoint", max_ndim=2)
RECORD = "state."


class Checkpoint(Callback):
    """Write the run to a file regularly, and at its end.

    If it cannot be written, as on a full disk, a warning says so, the last whole checkpoint stays and no
    further one is tried.

    Parameters
    ----------
    path : path-like
        File to write; an older checkpoint there is replaced.
    every_seconds : float, optional
        Time of training between two checkpoints; 60 unless one of both is given.
    every_iter : int, optional
        Iterations between two checkpoints.
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
        """Refuse a file that cannot be written before any work is done."""
        self.failed = False
        try:
            check_writable(self.path)
        except OSError as error:
            remedy = f"no checkpoint can be written there: {error.strerror}"
            raise OptionError("path", self.path, remedy) from None
        self._written = run.history[-1] if run.history else Progress(0, 0.0, 0.0)

    def on_step(self, run: Run, progress: Progress) -> StopReason | None:
        """Write, if it is time."""
        due = (
            self.every_seconds is not None and progress.seconds - self._written.seconds >= self.every_seconds
        ) or (self.every_iter is not None and progress.iteration - self._written.iteration >= self.every_iter)
        if due and progress.finite and not run.diverged:
            self._write(run, progress)
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Write the last step, so that a run that met a limit can be resumed."""
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
    """Write the state of a run.

    Parameters
    ----------
    path : path-like
        File to write; replaced at once or not at all.
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
    """Read a checkpoint; ``train(objective, state=load_checkpoint(path))`` resumes the run.

    The arrays are views of the file and not writable. ModelFileError if it is absent, cut or altered.
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
        # The checksum fits, so that whoever wrote the file did so wrongly.
        reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
        raise ModelFileError(f"{os.fspath(path)}: {DAMAGED.format(reason)}") from None
