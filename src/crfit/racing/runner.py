"""The run of a race: one entry after the other, each in the ordinary training loop.

    for each problem:  objective, evaluation at zero weights  ->  its entries  ->  its optimum, if wanted

Each entry is one `crfit.train` with an `EvaluationGrid` as callback, so a user's own run shows the same
numbers. Entries of one problem share its objective, which is freed before the next one is created; only the
best weights are kept. An entry that fails is marked as failed, and the others still run.
"""

import contextlib
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crfit import trainers as registry
from crfit.data import Dataset
from crfit.errors import ConvergenceWarning, CrfitError, CrfitWarning
from crfit.files import check_writable
from crfit.racing.entries import Entry
from crfit.racing.folder import checkpoint_folder, checkpoint_path, optimum_key
from crfit.racing.grid import EvaluationGrid
from crfit.racing.journal import Journal
from crfit.racing.live import Display, ShownSteps
from crfit.racing.optimum import approach, found_optimum
from crfit.racing.problems import Problem, ProblemOptions, prepare
from crfit.racing.result import Curve, Optimum, Point, Status
from crfit.training.callbacks import Callback, Checkpoint
from crfit.training.interrupts import InterruptGuard
from crfit.training.loop import train
from crfit.training.records import Result, Run, RunState
from crfit.training.stopping import Stop, StopReason
from crfit.vectors import Vector

#: How an entry ended, from how its run ended.
STATUSES = dict.fromkeys(StopReason, Status.LIMIT) | {
    StopReason.CONVERGED: Status.CONVERGED,
    StopReason.STALLED: Status.STOPPED,
    StopReason.LINE_SEARCH: Status.STOPPED,
    StopReason.DIVERGED: Status.DIVERGED,
    StopReason.INTERRUPTED: Status.INTERRUPTED,
}


@dataclass
class Runner:
    """What the entries of a race share, and how they are run."""

    dataset: Dataset
    dev: Dataset | None
    stop: Stop
    device: str
    n_threads: int
    journal: Journal
    display: Display
    guard: InterruptGuard
    folder: str | os.PathLike[str] | None = None  # for checkpoints
    states: dict[str, RunState] = field(default_factory=dict)  # to resume from, by label
    find: bool = False  # the optimum of each problem, too
    found: dict[str, Optimum] = field(default_factory=dict)  # by problem; filled by `run`
    checkpoints: bool = True  # as long as they can be written

    def run(self, entries: Sequence[tuple[Entry, Curve]]) -> None:
        """Run the entries, problem by problem; an interrupt leaves the rest waiting.

        Sets: points, status and message of the curves that have not finished.
        """
        try:
            for options in dict.fromkeys(entry.problem for entry, _ in entries):
                group = [pair for pair in entries if pair[0].problem == options]
                waiting = [(entry, curve) for entry, curve in group if not curve.status.finished]
                minimised = any(curve.minimises for _, curve in group)
                find = self.find and minimised and options.name not in self.found
                if (waiting or find) and not self.guard.interrupted:
                    self._run_problem(options, waiting, find=find)
        finally:
            if self.folder is not None:
                with contextlib.suppress(OSError):  # not empty, or never made
                    checkpoint_folder(self.folder).rmdir()

    def _run_problem(
        self, options: ProblemOptions, waiting: Sequence[tuple[Entry, Curve]], *, find: bool
    ) -> None:
        try:
            with self._shown_as_running([curve for _, curve in waiting[:1]]):
                problem = prepare(
                    options, self.dataset, self.dev, device=self.device, n_threads=self.n_threads
                )
        except Exception as error:
            for _, curve in waiting:
                self._end(curve, Status.FAILED, explained(error))
            return
        best: tuple[float, Vector] | None = None  # lowest objective and its weights
        for entry, curve in waiting:
            if self.guard.interrupted:
                return
            result = self._run_entry(entry, curve, problem)
            if find and result is not None and (best is None or result.objective < best[0]):
                best = result.objective, result.weights
        if find and not self.guard.interrupted:
            self._find_optimum(options.name, problem, None if best is None else best[1])

    @contextlib.contextmanager
    def _shown_as_running(self, curves: Sequence[Curve]) -> Iterator[None]:
        """Show entries as running while their problem is prepared, which takes a while on large data."""
        before = [curve.status for curve in curves]
        for curve in curves:
            curve.status = Status.RUNNING
            self.display.begin(curve)
        try:
            yield
        finally:
            for curve, status in zip(curves, before, strict=True):
                curve.status = status

    def _run_entry(self, entry: Entry, curve: Curve, problem: Problem) -> Result | None:
        """Train; None if that failed."""
        curve.status, curve.message = Status.RUNNING, ""
        self.display.begin(curve)

        def seen(point: Point) -> None:
            curve.add(point)
            self.journal.point(curve, point)

        if not curve.points:
            seen(problem.start)
        # The order matters: the journal has a point before a checkpoint includes it.
        callbacks: list[Callback] = [EvaluationGrid(seen, problem.score), ShownSteps(self.display, curve)]
        state = self.states.pop(curve.label, None)
        path = self._checkpoint(curve.label, fresh=state is None)
        if path is not None:
            callbacks.append(_CheckpointUntilFinished(path))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the curve says it
                result = train(
                    problem.objective, entry.trainer, stop=self.stop, callbacks=callbacks, state=state
                )
        except Exception as error:
            self._end(curve, Status.FAILED, explained(error), path)
            return None
        if state is None or curve.profile:  # else that of the part before is unknown
            for phase, seconds in result.profile.to_dict().items():
                curve.profile[phase] = curve.profile.get(phase, 0.0) + seconds
        chosen = registry.name_of(entry.trainer) != result.trainer  # as "auto" does
        message = f"{result.trainer}: {result.message}" if chosen else result.message
        self._end(curve, STATUSES[result.reason], message, path)
        return result

    def _checkpoint(self, label: str, *, fresh: bool) -> Path | None:
        """Where a run keeps its checkpoint, free of one from an earlier race.

        None without a folder, or, with a warning, where it cannot be written to.
        """
        if self.folder is None or not self.checkpoints:
            return None
        path = checkpoint_path(self.folder, label)
        try:
            path.parent.mkdir(exist_ok=True)
            if fresh:
                path.unlink(missing_ok=True)
            check_writable(path)
        except OSError as error:
            self.checkpoints = False
            reason = f"{path.parent}: no checkpoint can be written there: {error.strerror}"
            message = f"{reason}; an interrupted entry will have to start again"
            warnings.warn(message, CrfitWarning, stacklevel=2)
            return None
        return path

    def _end(self, curve: Curve, status: Status, message: str, checkpoint: Path | None = None) -> None:
        curve.status, curve.message = status, message
        self.journal.end(curve)
        self.display.end(curve)
        if status is not Status.INTERRUPTED:
            _remove(checkpoint)

    def _find_optimum(self, name: str, problem: Problem, w0: Vector | None) -> None:
        curve = Curve(f"optimum of {name}", "auto", problem=name, status=Status.RUNNING)
        state = self.states.pop(optimum_key(name), None)
        if state is not None:
            w0, last = None, state.history[-1]
            curve.add(Point(last.iteration, last.passes, last.seconds, last.objective))
        self.display.begin(curve)
        callbacks: list[Callback] = [ShownSteps(self.display, curve)]
        path = self._checkpoint(optimum_key(name), fresh=state is None)
        if path is not None:
            callbacks.append(_CheckpointUntilFinished(path))
        try:
            result = approach(problem.objective, w0, callbacks, state)
        except Exception as error:
            _remove(path)
            self._no_optimum(name, explained(error))
            return
        curve.status, curve.message = STATUSES[result.reason], result.message
        curve.add(Point(result.iterations, result.passes, result.seconds, result.objective))
        self.display.end(curve)
        if result.reason is StopReason.INTERRUPTED:
            return
        if result.reason is StopReason.DIVERGED:
            self._no_optimum(name, result.message)
        else:
            self.found[name] = found_optimum(problem.objective, result)
            self.journal.optimum(name, self.found[name])
        _remove(path)

    def _no_optimum(self, name: str, reason: str) -> None:
        message = f"no optimum of {name}: {reason}; gaps are measured from the lowest value"
        warnings.warn(message, CrfitWarning, stacklevel=3)


def _remove(checkpoint: Path | None) -> None:
    """Delete the checkpoint of a run that has ended, if there is one."""
    if checkpoint is not None:
        with contextlib.suppress(OSError):  # the journal says that the run has ended
            checkpoint.unlink(missing_ok=True)


class _CheckpointUntilFinished(Checkpoint):
    """Regular checkpoints, but a final one only of a run that was interrupted and may be resumed."""

    def on_end(self, run: Run, result: Result | None) -> None:
        """Write the last step of an interrupted run."""
        if result is not None and result.reason is StopReason.INTERRUPTED:
            super().on_end(run, result)


def explained(error: Exception) -> str:
    """Return an error as a message for users."""
    if isinstance(error, CrfitError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    return f"{type(error).__name__}: {error}"
