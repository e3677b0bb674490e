"""Programs of the command line: run one, read its log as it grows, and end it when it has done enough."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.tools.tool import Recording


class ProgramError(Exception):
    """A program ended with an error; the message is the last thing that it said."""


def follow(
    command: Sequence[str], line: Callable[[float, str], bool], *, stop: signal.Signals = signal.SIGTERM
) -> bool:
    """Run a program, hand over its output line by line with the time at which a line came, and print it.

    ``line(time, text)`` has the time of `time.perf_counter`; True asks the program to end, once, by the
    signal `stop`; its last lines are read as well. Says whether it ended well, having been asked or not.
    """
    environment = {**os.environ, "LC_ALL": "C"}  # numbers with a point, bytes as they are
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    )
    asked, last = False, ""
    try:
        assert process.stdout is not None
        for text in process.stdout:
            last = text.strip() or last
            if line(time.perf_counter(), text) and not asked:
                asked = True
                process.send_signal(stop)
            print(text, end="", flush=True)
        code = process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if code != 0 and not asked:
        raise ProgramError(f"{Path(command[0]).name} ended with exit code {code}: {last}")
    return code == 0


def finish(command: Sequence[str]) -> str:
    """Run a program to its end and give its standard output."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        last = said[-1] if said else "it said nothing"
        raise ProgramError(f"{Path(command[0]).name} ended with exit code {done.returncode}: {last}")
    return done.stdout


class TimedLog:
    """The log of a program that does not tell the time well enough: a line counts when it comes.

    `begin` is how the last line before training begins, `point` a regular expression for the lines of
    iterations, with the iteration and F in its groups. There may be more passes over the data than
    iterations.
    """

    def __init__(self, recording: Recording, begin: str, point: str, more_passes: int = 0) -> None:
        self._recording = recording
        self._first, self._point = begin, re.compile(point)
        self._more_passes = more_passes
        self._begin = 0.0

    def line(self, time: float, text: str) -> bool:
        """Take a line, for `follow`; says whether the program should end."""
        if text.startswith(self._first):
            self._begin = time
        elif (match := self._point.match(text)) and int(match[1]) > 0:  # 0 is at zero weights, and known
            iteration, objective = int(match[1]), float(match[2])
            self._recording.add(iteration, iteration + self._more_passes, time - self._begin, objective)
            return self._recording.interrupts
        return False
