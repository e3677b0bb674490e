"""The live view of a race: a table on a terminal, elsewhere a line at the start, end and now and then.

It goes to standard error, so that standard output has results only. If that is closed, nothing is shown.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, cast

from crfit.racing.outcome import objective_value, one_line
from crfit.racing.result import SCORES, Curve, Point, Status
from crfit.training.callbacks.progress_bar import REDRAW_SECONDS, TolerantStream, clock
from crfit.training.records import Callback, Ending, Run
from crfit.training.stopping import Progress

if TYPE_CHECKING:  # imported where a display is shown
    from rich.live import Live
    from rich.table import Table

_STYLES = {
    Status.WAITING: "dim",
    Status.RUNNING: "bold",
    Status.CONVERGED: "green",
    Status.LIMIT: "green",
    Status.STOPPED: "yellow",
    Status.INTERRUPTED: "yellow",
    Status.DIVERGED: "red",
    Status.FAILED: "red",
}
_NUMBERS = ("iterations", "passes", "time", "objective", "gap", *(SCORES[name] for name in reversed(SCORES)))
#: Time between two lines about an entry when the output is not a terminal.
LINE_SECONDS = 10.0
#: Columns to drop on a narrow terminal, in this order, after the scores that do not decide.
_LEAST_NEEDED = ("iterations", "passes", "objective", "time")


class Display:
    """Shows a running race; `file` is standard error unless given."""

    def __init__(
        self,
        curves: Sequence[Curve],
        *,
        metric: str = "f1",
        shown: bool = True,
        file: IO[str] | None = None,
    ) -> None:
        self._curves = list(curves)
        scores = [SCORES[name] for name in reversed(SCORES) if name != metric]
        self._least_needed = (*scores, *_LEAST_NEEDED)
        self._now: dict[str, Progress | Point] = {}
        self._lowest: dict[str, float] = {}  # objective so far, by problem
        for curve in curves:
            self._note(curve, curve.lowest)
        self._shown = -math.inf
        self._begun: set[str] = set()
        self._live: Live | None = None
        stream = file or sys.stderr
        if not shown or stream is None:  # None: closed when the program started
            self._console = None
            return
        from rich.console import Console  # a slow import, needed here only
        from rich.live import Live

        output = cast("IO[str]", TolerantStream(stream))
        self._console = Console(file=output, highlight=False, emoji=False, soft_wrap=True)
        if self._console.is_terminal:
            # Redrawn by hand after steps: a thread of its own would take time from the trainer.
            self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
            self._live.start()
            self._draw()

    def begin(self, curve: Curve) -> None:
        """Show that an entry runs; a new one gets a further line."""
        if not any(other is curve for other in self._curves):
            self._curves.append(curve)
        self._draw()
        if curve.label not in self._begun:  # again when its objective is made
            self._begun.add(curve.label)
            last = curve.last
            how = "begins" if last is None else f"goes on after {last.iteration} iterations"
            self._print(f"{curve.label}: {how}")

    def step(self, curve: Curve, progress: Progress) -> None:
        """Show the last step of an entry, if it is time to draw."""
        if self._console is None:
            return
        self._now[curve.label] = progress
        self._note(curve, progress.objective)
        self._note(curve, None if curve.last is None else curve.last.objective)
        if time.monotonic() - self._shown >= (LINE_SECONDS if self._live is None else REDRAW_SECONDS):
            self._draw()
            self._print(self._sentence(curve))

    def end(self, curve: Curve) -> None:
        """Show how an entry ended."""
        self._draw()
        self._print(self._sentence(curve))

    def close(self, note: str = "") -> None:
        """Leave the final table on the terminal, and `note`, what is done next."""
        if self._live is not None:
            self._draw()
            self._live.stop()
        if self._console is not None and note:
            self._console.print(note, markup=False)
        self._live = self._console = None

    def _latest(self, curve: Curve) -> Progress | Point | None:
        return self._now.get(curve.label) or curve.last

    def _note(self, curve: Curve, objective: float | None) -> None:
        if objective is not None and math.isfinite(objective) and curve.minimises:
            self._lowest[curve.problem] = min(objective, self._lowest.get(curve.problem, math.inf))

    def _draw(self) -> None:
        """Draw the table, on a terminal."""
        if self._live is not None:
            self._live.update(self._table(self._live.console.width), refresh=True)
            self._shown = time.monotonic()

    def _print(self, line: str) -> None:
        """Write a line, where there is no terminal."""
        if self._live is None and self._console is not None:
            self._console.print(line, markup=False)
            self._shown = time.monotonic()

    def _table(self, width: int) -> Table:
        from rich.table import Table
        from rich.text import Text

        rows = [self._cells(curve) for curve in self._curves]
        label = min(max(len(curve.label) for curve in self._curves), max(width // 3, 10))
        status = max(len(curve.status.value) for curve in self._curves)
        used = _fitting(rows, width - label - status - 4, self._least_needed)
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("entry", style="bold", no_wrap=True, overflow="ellipsis", max_width=label)
        table.add_column("", no_wrap=True)
        for name in used:
            table.add_column(name, justify="right", no_wrap=True)
        for curve, row in zip(self._curves, rows, strict=True):
            cells = [cell for cell, name in zip(row, _NUMBERS, strict=True) if name in used]
            state = Text(curve.status.value, style=_STYLES.get(curve.status, ""))
            table.add_row(Text(curve.label), state, *cells)
        return table

    def _cells(self, curve: Curve) -> list[str]:
        """Values of `_NUMBERS`, empty where unknown."""
        now, scores = self._latest(curve), curve.latest_scores
        if now is None:
            return [""] * len(_NUMBERS)
        cells = [f"{now.iteration}", f"{now.passes:.1f}", clock(now.seconds), "", ""]
        if now.objective is not None and math.isfinite(now.objective):
            cells[3] = objective_value(now.objective)
            if curve.minimises:
                lowest = min(self._lowest.get(curve.problem, math.inf), now.objective)
                gap = (now.objective - lowest) / max(abs(lowest), 1e-300)
                cells[4] = f"{gap:.1e}" if gap > 0 else "lowest"
        return cells + [f"{scores[name]:.2f}" if name in scores else "" for name in reversed(SCORES)]

    def _sentence(self, curve: Curve) -> str:
        now = self._latest(curve)
        if now is None or curve.status is Status.FAILED:
            return f"{curve.label}: {curve.status.value}: {one_line(curve.message)}"
        words = f"{curve.label}: {curve.status.value} after {now.iteration} iterations, "
        words += f"{now.passes:.1f} passes, {clock(now.seconds)}"
        values = (look.objective for look in (now, curve.last) if look is not None)
        known = [value for value in values if value is not None and math.isfinite(value)]
        words += f": F {objective_value(known[0])}" if known else ""
        scores = curve.latest_scores
        words += "".join(
            f", {SCORES[name]} {scores[name]:.2f}" for name in reversed(SCORES) if name in scores
        )
        return f"{words} ({one_line(curve.message)})" if curve.message else words


def _fitting(rows: Sequence[Sequence[str]], room: int, least_needed: Sequence[str]) -> list[str]:
    """The names in `_NUMBERS` that have a value somewhere, as many as fit."""
    columns = zip(_NUMBERS, zip(*rows, strict=True), strict=True)
    widths = {name: 2 + max(len(name), *map(len, cells)) for name, cells in columns if any(cells)}
    for name in least_needed:
        if sum(widths.values()) > room:
            widths.pop(name, None)
    return list(widths)


class ShownSteps(Callback):
    """Passes the steps of a run to a display."""

    def __init__(self, display: Display, curve: Curve) -> None:
        self._display, self._curve = display, curve

    def on_step(self, run: Run, progress: Progress) -> Ending | None:
        """Show it, if it is time to draw."""
        self._display.step(self._curve, progress)
        return None
