"""What a callback is."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypeAlias

from crfit.errors import CrfitWarning
from crfit.training.stopping import Progress, StopReason

if TYPE_CHECKING:
    from crfit.training.records import Result, Run

__all__ = ["Callback", "Ending"]

#: Why a callback ends a run, with a sentence about it or without.
Ending: TypeAlias = "StopReason | tuple[StopReason, str]"


class Callback:
    """Something that looks on while a model is trained, and may end the run. Override what is needed.

    The clock is stopped during callbacks. They are called in the order given to ``train``, so one that uses a
    score comes after the one that computes it.

    Attributes
    ----------
    failed : bool
        Whether it gave up an output, such as a log on a disk that is full. Training goes on without it.
    """

    failed = False

    def on_start(self, run: Run) -> None:
        """Look at the run before its first step; `run.history` is not empty if it is resumed.

        Parameters
        ----------
        run : Run
            The run.
        """

    def on_step(self, run: Run, progress: Progress) -> Ending | None:
        """Look at one step; return a reason, or a reason and a sentence, to end the run after it.

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

    def _give_up(self, path: str, output: str, reason: object) -> None:
        """Warn that an output cannot be written any more: no run is lost for the sake of its records."""
        self.failed = True
        warnings.warn(
            f"{path}: the {output} cannot be written: {reason}; training goes on without it",
            CrfitWarning,
            stacklevel=4,
        )
