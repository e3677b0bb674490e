"""Progress display: one live line on a terminal, a line every few seconds elsewhere.

    lbfgs ━━━━━     iter 57  F 12345.67  |g| 0.0123  dev_f1 93.25  8.61 passes/s  6.6s  left 0:42

If the terminal is too narrow, parts are dropped in the order of `LEAST_NEEDED`; objective, gradient, duality
gap (if the trainer has one), speed and time left always stay. Trainers that do not evaluate the objective
show the running loss of the last epoch, ``F~``, or ``loss``.

The time left is estimated from the stopping rules. Limits are extrapolated at the current speed. Convergence
rules compare a quantity q, which decreases about geometrically, with a tolerance, so a line is fitted to
log q over the last steps,

    log q(t) = a + b t,  b < 0        time left = (log tolerance - log q_now) / b,

with q_now taken from the line, because the largest gradient entry jumps up and down between steps. The first
rule that holds ends the run, so the smallest estimate is shown.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, Literal, cast

from crfit.checks import check_number
from crfit.errors import OptionError
from crfit.trainers.registry import shown_name
from crfit.training.records import Callback, Result, Run
from crfit.training.stopping import Progress, Stop, StopReason

if TYPE_CHECKING:  # imported when a bar is shown
    from rich.console import Console
    from rich.live import Live

#: Number of steps in the fit: enough to smooth, few enough to follow the current phase of the run.
FITTED_STEPS = 20
FEWEST_STEPS = 5


def seconds_left(history: Sequence[Progress], stop: Stop) -> float | None:
    """Return the estimated remaining training time in seconds, or None if it cannot be estimated."""
    if not history:
        return None
    guesses = [guess for guess in (*_limits(history, stop), *_rules(history, stop)) if math.isfinite(guess)]
    return min(guesses) if guesses else None


def _limits(history: Sequence[Progress], stop: Stop) -> list[float]:
    recent = history[-FITTED_STEPS:]
    first, now = recent[0], recent[-1]
    elapsed = now.seconds - first.seconds
    guesses = []
    for limit, before, done in (
        (stop.max_iter, first.iteration, now.iteration),
        (stop.max_passes, first.passes, now.passes),
    ):
        if limit is not None and done > before:
            guesses.append(max(0.0, limit - done) * elapsed / (done - before))
    if stop.seconds is not None:
        guesses.append(max(0.0, stop.seconds - now.seconds))
    return guesses


def _rules(history: Sequence[Progress], stop: Stop) -> list[float]:
    guesses = []
    tolerance = stop.change_tolerance
    if tolerance is not None:
        ends = range(max(1, len(history) - FITTED_STEPS + 1), len(history) + 1)
        changes = [stop.relative_change(history, end) for end in ends]
        guesses.append(_until(tolerance, changes, [history[end - 1].seconds for end in ends]))
    recent = history[-FITTED_STEPS:]
    seconds = [p.seconds for p in recent]
    if stop.grad_inf is not None:
        guesses.append(_until(stop.grad_inf, [p.grad_inf for p in recent], seconds))
    if stop.grad_rel is not None:
        guesses.append(_until(stop.grad_rel, [p.extra.get("grad_rel") for p in recent], seconds))
    if stop.gap is not None:
        guesses.append(_until(stop.gap, [p.extra.get("gap") for p in recent], seconds))
    return [guess for guess in guesses if guess is not None]


def _until(tolerance: float, values: Sequence[float | None], seconds: Sequence[float]) -> float | None:
    """Seconds from the last step until the fitted line reaches the tolerance; None if it never does."""
    points = [
        (t, math.log(q)) for t, q in zip(seconds, values, strict=True) if q is not None and 0 < q < math.inf
    ]
    if len(points) < FEWEST_STEPS or tolerance <= 0.0:
        return None
    mean_t = sum(t for t, _ in points) / len(points)
    mean_q = sum(q for _, q in points) / len(points)
    spread = sum((t - mean_t) ** 2 for t, _ in points)
    slope = sum((t - mean_t) * (q - mean_q) for t, q in points) / spread if spread > 0.0 else 0.0
    if slope >= 0.0:
        return None
    return max(0.0, (math.log(tolerance) - mean_q) / slope + mean_t - seconds[-1])


#: Minimum time between two redraws; drawing takes about a millisecond.
REDRAW_SECONDS = 0.1
#: Width of the bar in characters.
BAR_WIDTH = 8
#: Parts of the line to drop on a narrow terminal, in this order.
LEAST_NEEDED = ("spent", "bar", "trainer", "iteration", "score")
#: Numbers shown for trainers that do not evaluate the objective, with their titles.
ON_LINE = {"online_objective": "F~", "online_loss": "loss"}


class ProgressBar(Callback):
    """Show progress: iteration, objective, gradient, duality gap, speed, elapsed time and time left.

    The time left is an estimate from the stopping rules. If the output can no longer be written, training
    continues without it.

    Parameters
    ----------
    speed : {"passes", "tokens"}
        Unit of the speed. "tokens" needs an objective with a dataset.
    every_seconds : float
        Time between two lines if the output is not a terminal.
    file : text file, optional
        Where to write; by default standard error.
    metric : str, optional
        Held-out score to show, for example "dev_accuracy"; by default F1.
    """

    scores = ()

    def __init__(
        self,
        speed: Literal["passes", "tokens"] = "passes",
        every_seconds: float = 10.0,
        file: IO[str] | None = None,
        metric: str | None = None,
    ) -> None:
        if speed not in ("passes", "tokens"):
            raise OptionError("speed", speed, 'give "passes" or "tokens"')
        check_number("every_seconds", every_seconds, at_least=0)
        self.speed, self.every_seconds, self.file, self.metric = speed, every_seconds, file, metric
        self._output: TolerantStream | None = None
        self._console: Console | None = None
        self._live: Live | None = None
        self._shown = -float("inf")

    def on_start(self, run: Run) -> None:
        """Print what is trained, or open the live line."""
        # rich is the slowest import and needed only here.
        from rich.console import Console
        from rich.live import Live

        self._shown = -float("inf")
        self.failed = False
        stream = self.file or sys.stderr
        if stream is None:  # closed when the program started
            return
        self._output = TolerantStream(stream)
        file = cast("IO[str]", self._output)
        self._console = Console(file=file, highlight=False, emoji=False, soft_wrap=True)
        name = shown_name(run.trainer, run.options)
        if run.why:
            self._print(f"{name} was chosen: {run.why}")
        if self._console.is_terminal:
            # Redrawn explicitly after steps: a separate thread would take time from the trainer.
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        else:
            n = run.objective
            self._print(f"{name}: {n.n_weights:,} weights, {n.n_sequences:,} sequences")

    def on_step(self, run: Run, progress: Progress) -> StopReason | None:
        """Redraw, or print a line if one is due."""
        now = time.monotonic()
        if now - self._shown < (REDRAW_SECONDS if self._live else self.every_seconds):
            return None
        self._shown = now
        left = seconds_left(run.history, _scheduled(run))
        parts = self._parts(run, progress)
        parts["left"] = f"left {'?' if left is None else clock(left)}"
        if self._live is None:
            self._print("  ".join(part for name, part in parts.items() if name != "trainer"))
        else:
            total = progress.seconds + (left or 0.0)
            self._draw(parts, progress.seconds / total if left is not None and total > 0 else 0.0)
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Close the live line and print the outcome."""
        if self._live is not None:
            if result is not None and run.history:
                self._draw(self._parts(run, run.history[-1]), 1.0)
            self._live.stop()
            self._live = None
        if result is not None:
            outcome = f"F {result.objective:.4f}, |g| {result.grad_inf:.3g}"
            if (
                mistakes := result.latest("mistakes")
            ) is not None:  # mistake-driven trainers do not minimise F
                outcome = f"wrong {mistakes:.0f}, loss {result.latest('online_loss'):.4g}"
            self._print(
                f"{result.reason.value} after {result.iterations} iterations, {result.passes:.1f} passes, "
                f"{clock(result.seconds)}: {outcome} ({result.message})"
            )
        self.failed = self._output is not None and self._output.failed
        self._console = self._output = None  # streams cannot be copied or pickled

    def _parts(self, run: Run, progress: Progress) -> dict[str, str]:
        """Parts of the line by name, in order, without the time left."""
        parts = {"trainer": shown_name(run.trainer, run.options), "iteration": f"iter {progress.iteration}"}
        objective = ("F", progress.objective) if progress.objective is not None else _met(run)
        if objective is not None:
            digits = 2 if abs(objective[1]) >= 1000 else 4
            parts["objective"] = f"{objective[0]} {objective[1]:.{digits}f}"
        if progress.grad_inf is not None:
            parts["gradient"] = f"|g| {progress.grad_inf:.3g}"
        if "mistakes" in progress.extra:
            parts["mistakes"] = f"wrong {progress.extra['mistakes']:.0f}"
        if "gap" in progress.extra:
            parts["gap"] = f"gap {progress.extra['gap']:.3g}"
        if run.scores:  # only one, so the line fits a terminal
            name = min(run.scores, key=lambda name: (name != self.metric, not name.endswith("f1")))
            parts["score"] = f"{name} {run.scores[name]:.2f}"
        if progress.seconds > 0.0 and progress.passes > 0.0:
            parts["speed"] = self._speed(run, progress.passes / progress.seconds)
        parts["spent"] = clock(progress.seconds)
        return parts

    def _speed(self, run: Run, rate: float) -> str:
        n_tokens = getattr(getattr(run.objective, "dataset", None), "n_tokens", None)
        if self.speed == "tokens" and n_tokens is not None:
            return f"{rate * n_tokens:,.0f} tokens/s"
        return f"{rate:,.0f} passes/s" if rate >= 100 else f"{rate:.3g} passes/s"

    def _draw(self, parts: dict[str, str], share: float) -> None:
        """Draw as much of the live line as fits."""
        from rich.text import Text

        if self._live is None:
            return
        console = self._live.console
        tick = "━" if console.encoding.lower().startswith("utf") else "="
        bar = {"bar": (tick * round(BAR_WIDTH * share)).ljust(BAR_WIDTH)}
        line = {"trainer": parts["trainer"], **bar, **parts}
        for name in LEAST_NEEDED:
            if sum(len(part) + 2 for part in line.values()) - 2 <= console.width:
                break
            line.pop(name, None)
        text = Text("  ", no_wrap=True, overflow="crop").join(
            Text(part, style="green" if name == "bar" else "") for name, part in line.items()
        )
        self._live.update(text, refresh=True)

    def _print(self, text: str) -> None:
        if self._console is not None:
            self._console.print(text, markup=False)


def _scheduled(run: Run) -> Stop:
    """The stopping rules of a run, including the number of epochs of its trainer."""
    epochs, stop = run.options.get("epochs"), run.stop
    if not isinstance(epochs, int):
        return stop
    limit = epochs * int(run.options.get("report", 1))
    return replace(stop, max_iter=limit if stop.max_iter is None else min(limit, stop.max_iter))


def _met(run: Run) -> tuple[str, float] | None:
    """Title and value of the running loss last reported by an online trainer."""
    for progress in reversed(run.history):
        for name, title in ON_LINE.items():
            if name in progress.extra:
                return title, progress.extra[name]
    return None


class TolerantStream:
    """A stream that ignores output after a failure instead of raising an error."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.failed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, unless an earlier write failed."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush, unless an earlier write failed."""
        self._try(self._stream.flush)

    def _try(self, act: Callable[[], object]) -> None:
        if not self.failed:
            try:
                act()
            except (OSError, ValueError):  # a full disk, a closed pipe or file
                self.failed = True


def clock(seconds: float) -> str:
    """Format a time: ``8.5s``, ``2:05``, ``1:02:05``."""
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
