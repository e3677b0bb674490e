"""The log of a program that does not tell the time, or not well enough: a line counts when it comes."""

from __future__ import annotations

import re

from bench.tools.base.recording import Recording

__all__ = ["TimedLog"]


class TimedLog:
    """Takes the lines of a log, for `follow`.

    Parameters
    ----------
    recording : Recording
        Where the points go.
    begin : str
        How the last line before training begins.
    point : str
        Regular expression for the lines of iterations, with the iteration and F in its two groups.
    more_passes : int
        How many passes over the data more than iterations there are.
    """

    def __init__(self, recording: Recording, begin: str, point: str, more_passes: int = 0) -> None:
        self._recording = recording
        self._first, self._point = begin, re.compile(point)
        self._more_passes = more_passes
        self._begin = 0.0

    def line(self, time: float, text: str) -> bool:
        """Take a line; says whether the program should end."""
        if text.startswith(self._first):
            self._begin = time
        elif (match := self._point.match(text)) and int(match[1]) > 0:  # 0 is at zero weights, and known
            iteration, objective = int(match[1]), float(match[2])
            self._recording.add(iteration, iteration + self._more_passes, time - self._begin, objective)
            return self._recording.interrupts
        return False
