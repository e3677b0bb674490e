"""Progress for people: one live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import IO, TYPE_CHECKING, Literal

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as RichProgress

from crfit.callbacks.base import Callback
from crfit.callbacks.time_left import seconds_left
from crfit.errors import OptionError
from crfit.stopping import Progress, StopReason

if TYPE_CHECKING:
    from crfit.runs import Result, Run

__all__ = ["ProgressBar"]

#: Shortest time between two redraws; drawing costs about a millisecond.
REDRAW_SECONDS = 0.1
#: Columns of a terminal from which the speed is shown too.
WIDE = 90


class ProgressBar(Callback):
    """Show iteration, objective, gradient, speed, time spent and time left, on standard error.

    Time left is a guess from the stopping rules (`crfit.callbacks.time_left`).

    Parameters
    ----------
    speed : {"passes", "tokens"}
        Unit of the speed; tokens need an objective that knows its dataset.
    every_seconds : float
        Time between two lines when the output is not a terminal.
    file : text file, optional
        Where to write, standard error unless given.
    """

    def __init__(
        self,
        speed: Literal["passes", "tokens"] = "passes",
        every_seconds: float = 10.0,
        file: IO[str] | None = None,
    ) -> None:
        if speed not in ("passes", "tokens"):
            raise OptionError("speed", speed, 'give "passes" or "tokens"')
        self.speed, self.every_seconds, self.file = speed, every_seconds, file
        self._console: Console | None = None
        self._bar: RichProgress | None = None
        self._shown = -float("inf")

    def on_start(self, run: Run) -> None:
        """Say what is trained and open the bar."""
        self._console = Console(file=self.file or sys.stderr, highlight=False, soft_wrap=True)
        self._shown = -float("inf")
        if self._console.is_terminal:
            # Redrawn by hand after steps: a thread of its own would take time from the trainer.
            columns = (
                TextColumn("{task.description}"),
                BarColumn(bar_width=16),
                TextColumn("{task.fields[text]}"),
            )
            self._bar = RichProgress(*columns, console=self._console, auto_refresh=False)
            self._bar.add_task(run.trainer, total=1.0, text="")
            self._bar.start()
        else:
            n = run.objective
            self._print(f"{run.trainer}: {n.n_weights:,} weights, {n.n_sequences:,} sequences")

    def on_step(self, run: Run, progress: Progress) -> StopReason | None:
        """Redraw, or write a line if it is time."""
        now = time.monotonic()
        if now - self._shown < (REDRAW_SECONDS if self._bar else self.every_seconds):
            return None
        self._shown = now
        left = seconds_left(run.history, run.stop)
        text = self._text(run, progress, left)
        if self._bar is None:
            self._print(text)
        else:
            total = progress.seconds + (left or 0.0)
            share = progress.seconds / total if left is not None and total > 0 else 0.0
            self._bar.update(self._bar.task_ids[0], completed=share, text=text, refresh=True)
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Close the bar and say how it ended."""
        if self._bar is not None:
            if result is not None and run.history:
                text = self._text(run, run.history[-1], 0.0)
                self._bar.update(self._bar.task_ids[0], completed=1.0, text=text, refresh=True)
            self._bar.stop()
            self._bar = None
        if result is not None:
            self._print(
                f"{result.reason.value} after {result.iterations} iterations, {result.passes:.1f} passes, "
                f"{clock(result.seconds)}: F {result.objective:.4f}, |g| {result.grad_inf:.3g} "
                f"({result.message})"
            )
        self._console = None  # it holds a stream, which can be neither copied nor pickled

    def _text(self, run: Run, progress: Progress, left: float | None) -> str:
        parts = [f"iter {progress.iteration}"]
        if progress.objective is not None:
            parts.append(f"F {progress.objective:.{2 if abs(progress.objective) >= 1000 else 4}f}")
        if progress.grad_inf is not None:
            parts.append(f"|g| {progress.grad_inf:.3g}")
        if run.scores:  # one of them: the line is to fit a terminal
            name = next((name for name in run.scores if name.endswith("f1")), next(iter(run.scores)))
            parts.append(f"{name} {run.scores[name]:.2f}")
        if self._bar is None or self._bar.console.width >= WIDE:
            parts.append(self._speed(run, progress))
        parts.append(clock(progress.seconds))
        if left is not None:
            parts.append(f"left {clock(left)}")
        return "  ".join(part for part in parts if part)

    def _speed(self, run: Run, progress: Progress) -> str:
        if progress.seconds <= 0.0 or progress.passes <= 0.0:
            return ""
        rate = progress.passes / progress.seconds
        n_tokens = getattr(getattr(run.objective, "dataset", None), "n_tokens", None)
        if self.speed == "tokens" and n_tokens is not None:
            return f"{rate * n_tokens:,.0f} tokens/s"
        return f"{rate:.3g} passes/s"

    def _print(self, text: str) -> None:
        if self._console is not None:
            self._console.print(text, markup=False)


def clock(seconds: float) -> str:
    """Return a time as people read it: ``8.5s``, ``2:05``, ``1:02:05``.

    Parameters
    ----------
    seconds : float
        Time, not negative.
    """
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
