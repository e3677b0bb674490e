"""What a callback is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crfit.runs import Result, Run
    from crfit.stopping import Progress, StopReason

__all__ = ["Callback"]


class Callback:
    """Something that looks on while a model is trained, and may end the run. Override what is needed.

    The clock is stopped during callbacks. They are called in the order given to ``train``, so one that uses a
    score comes after the one that computes it.
    """

    def on_start(self, run: Run) -> None:
        """Look at the run before its first step; `run.history` is not empty if it is resumed.

        Parameters
        ----------
        run : Run
            The run.
        """

    def on_step(self, run: Run, progress: Progress) -> StopReason | None:
        """Look at one step; return a reason to end the run after it.

        Parameters
        ----------
        run : Run
            The run; ``run.weights`` is a live view.
        progress : Progress
            The step; ``run.record`` adds scores to it.
        """
        return None

    def on_end(self, run: Run, result: Result | None) -> None:
        """Clean up; always called, last.

        Parameters
        ----------
        run : Run
            The run.
        result : Result or None
            What ``train`` will return; None if an exception ended the run.
        """
