"""Progress of a search on standard error: the last fit and a forecast of the end."""

from __future__ import annotations

import sys
import time

from crfit.tuning.search import Step


class Progress:
    """Shows one live line on a terminal, elsewhere a line every few seconds."""

    def __init__(self, every_seconds: float = 5.0) -> None:
        self.every, self.last = every_seconds, -1e9
        self.live = sys.stderr is not None and sys.stderr.isatty()
        self.width = 0

    def __call__(self, step: Step) -> None:
        """Show a step."""
        over = step.done >= step.planned
        if sys.stderr is None or not (self.live or over or time.perf_counter() - self.last >= self.every):
            return
        self.last = time.perf_counter()
        score = step.trial.scores[step.fold]
        text = f"fit {step.done} of about {step.planned}  fold {step.fold + 1}  {step.trial.candidate.name}  "
        text += f"score {score:.4g}  {step.seconds:.1f}s  left {clock(step.left)}"
        end = "\n" if not self.live or over else ""
        print(("\r" if self.live else "") + text.ljust(self.width), end=end, file=sys.stderr, flush=True)
        self.width = len(text) if end == "" else 0


def show_groups(step: int, first: float, loss: float) -> None:
    """Show a step of the search for an l2 per group."""
    if sys.stderr is not None:
        change = 100.0 * (loss / first - 1.0)
        print(f"l2 per group, step {step}: held-out loss {change:+.2f} %", file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds, or hours too."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
