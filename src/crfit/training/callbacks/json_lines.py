"""A log of the run, one JSON object per line."""

import contextlib
import json
import os
from dataclasses import asdict
from typing import IO, Any

from crfit.checks import json_ready
from crfit.training.records import Callback, Result, Run
from crfit.training.stopping import Progress, StopReason


class JsonLines(Callback):
    """Log the run to a file: one ``start`` line, one ``step`` line per step, one ``end`` line.

    Lines are flushed immediately, so you can follow the file, and it survives a crash. If writing fails, you
    get a warning and training continues without the log.

    Parameters
    ----------
    path : path-like
        File to write.
    append : bool
        Append to the file instead of replacing it, for a resumed run.
    """

    scores = ()

    def __init__(self, path: str | os.PathLike[str], append: bool = False) -> None:
        self.path, self.append = os.fspath(path), append
        self._file: IO[str] | None = None

    def on_start(self, run: Run) -> None:
        """Open the file and write the ``start`` line."""
        self.failed = False
        self._file = open(self.path, "a" if self.append else "w", encoding="utf-8")  # noqa: SIM115
        self._write(
            event="start",
            trainer=run.trainer,
            **({"why": run.why} if run.why else {}),
            options=run.options,
            n_weights=run.objective.n_weights,
            n_sequences=run.objective.n_sequences,
            l1=run.objective.l1,
            l2=run.objective.l2,
            iteration=run.history[-1].iteration if run.history else 0,
        )

    def on_step(self, run: Run, progress: Progress) -> StopReason | None:
        """Write a ``step`` line; on a cluster with what each worker has done so far."""
        workers = [asdict(worker) for worker in getattr(run.objective, "workers", ())]
        self._write(event="step", **progress.to_dict(), **({"workers": workers} if workers else {}))
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Write the ``end`` line and close the file."""
        if self._file is None:
            return
        if result is None:
            self._write(event="end", reason=None, message="ended by an exception")
        else:
            names = ("objective", "grad_inf", "grad_norm", "passes", "iterations", "seconds", "scores")
            numbers = {name: getattr(result, name) for name in names}
            ending = {"reason": result.reason.value, "message": result.message}
            self._write(event="end", **ending, **numbers, profile=result.profile.to_dict())
        self._close()

    def _write(self, **record: Any) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(json_ready("record", record, str), allow_nan=False) + "\n")
            self._file.flush()
        except OSError as error:
            self._close()
            self._give_up(self.path, "log", error.strerror or error)

    def _close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # the user was already warned
                self._file.close()
            self._file = None
