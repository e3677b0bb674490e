"""Programs of the command line: run one, read its log as it grows, and end it when it has done enough."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["ProgramError", "finish", "follow"]


class ProgramError(Exception):
    """A program ended with an error; the message is the last thing that it said."""


def follow(
    command: Sequence[str], line: Callable[[float, str], bool], *, stop: signal.Signals = signal.SIGTERM
) -> bool:
    """Run a program, hand over its output line by line with the time at which a line came, and print it.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    line : callable
        ``line(time, text)`` with the time of `time.perf_counter`; True asks the program to end.
    stop : Signals
        How it is asked. It is asked once, and its last lines are read as well.

    Returns
    -------
    bool
        Whether it ended well, having been asked or not.
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
