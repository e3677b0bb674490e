"""Saving a run while it goes on, and going on with it later.

A checkpoint is one safetensors file. Tensors: ``weights``, ``state.<name>`` for each array of the trainer's
record, ``best_weights`` if a callback kept such. Header: one JSON text with the trainer, its options, the
other entries of its record, the scores, and every step. Numbers are written so that they read back
bit by bit, hence a resumed run goes on exactly like one that was never interrupted.

At any moment the path holds a whole checkpoint or none (`crfit.atomic`).
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from crfit.atomic import replacing
from crfit.callbacks.base import Callback
from crfit.errors import ModelFileError, OptionError
from crfit.runs import KeptPoint, RunState
from crfit.stopping import Progress, StopReason
from crfit.vectors import to_numpy

if TYPE_CHECKING:
    from crfit.runs import Result, Run

__all__ = ["Checkpoint", "load_checkpoint", "save_checkpoint"]

FORMAT = "crfit-checkpoint"
VERSION = 1


class Checkpoint(Callback):
    """Write the run to a file now and then, and at its end.

    Parameters
    ----------
    path : path-like
        File to write; an older checkpoint there is replaced.
    every_seconds : float, optional
        Time of training between two checkpoints; 60 unless one of both is given.
    every_iter : int, optional
        Iterations between two checkpoints.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every_seconds: float | None = None,
        every_iter: int | None = None,
    ) -> None:
        if every_seconds is not None and not every_seconds >= 0:
            raise OptionError("every_seconds", every_seconds, "give a number that is not negative")
        if every_iter is not None and every_iter < 1:
            raise OptionError("every_iter", every_iter, "give at least 1")
        if every_seconds is None and every_iter is None:
            every_seconds = 60.0
        self.path, self.every_seconds, self.every_iter = os.fspath(path), every_seconds, every_iter
        self._written = Progress(0, 0.0, 0.0)

    def on_start(self, run: Run) -> None:
        """Refuse a folder that cannot be written to before any work is done."""
        folder = os.path.dirname(os.path.abspath(self.path))
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise OptionError(
                "path", self.path, f"the folder {folder} does not exist or cannot be written to"
            )
        self._written = run.history[-1] if run.history else Progress(0, 0.0, 0.0)

    def on_step(self, run: Run, progress: Progress) -> StopReason | None:
        """Write, if it is time."""
        due = (
            self.every_seconds is not None and progress.seconds - self._written.seconds >= self.every_seconds
        ) or (self.every_iter is not None and progress.iteration - self._written.iteration >= self.every_iter)
        if due and progress.finite:
            self._write(run, progress)
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Write the last step, so that a run that met a limit can be prolonged."""
        if result is not None and run.history and run.history[-1].finite:
            self._write(run, run.history[-1])

    def _write(self, run: Run, progress: Progress) -> None:
        save_checkpoint(self.path, run.snapshot())
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
    tensors = {"weights": to_numpy(state.weights)}
    numbers: dict[str, Any] = {}
    for name, value in state.state.items():
        if hasattr(value, "shape") and value.ndim > 0:
            tensors["state." + name] = to_numpy(value)
        else:
            numbers[name] = value.item() if hasattr(value, "item") else value
    if state.best is not None:
        tensors["best_weights"] = to_numpy(state.best.weights)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "trainer": state.trainer,
        "options": state.options,
        "state": numbers,
        "scores": state.scores,
        "history": [progress.to_dict() for progress in state.history],
        "best": None if state.best is None else state.best.progress.to_dict(),
    }
    contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    with replacing(path) as unfinished:
        save_file(contiguous, unfinished, metadata={"crfit": json.dumps(header)})


def load_checkpoint(path: str | os.PathLike[str]) -> RunState:
    """Read a checkpoint; ``train(objective, state=load_checkpoint(path))`` goes on with the run.

    Parameters
    ----------
    path : path-like
        File written by `Checkpoint`.

    Returns
    -------
    RunState
        Trainer, weights, record and history. ModelFileError if the file is cut, altered or something else.
    """
    path = os.fspath(path)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            header = json.loads(metadata["crfit"])
            if header["format"] != FORMAT or header["version"] != VERSION:
                raise ModelFileError(
                    f"{path}: {header['format']} version {header['version']}; "
                    f"this version of crfit reads {FORMAT} version {VERSION}"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        state = dict(header["state"])
        state.update({name[6:]: array for name, array in tensors.items() if name.startswith("state.")})
        best = None
        if header["best"] is not None:
            best = KeptPoint(tensors["best_weights"], Progress(**header["best"]))
        history = [Progress(**entry) for entry in header["history"]]
        weights, scores = tensors["weights"], dict(header["scores"])
        return RunState(header["trainer"], dict(header["options"]), weights, state, history, scores, best)
    except FileNotFoundError:
        raise
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise ModelFileError(f"{path}: no whole checkpoint of crfit ({error})") from error
