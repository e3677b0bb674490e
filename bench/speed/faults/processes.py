"""Work in forked processes that are limited, killed or run out of time, and how they end."""

import contextlib
import io
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from crfit.cli import main
from crfit.errors import CrfitError

Work = Callable[[], object]
#: Seconds after which a process hangs.
PATIENCE = 30.0
#: Exit code of an exception that no user should see; codes of crfit are below.
UNEXPECTED = 70
#: Errors that a program can expect of a library.
EXPECTED = (CrfitError, MemoryError, OSError)


class Ended(NamedTuple):
    """Exit code of a process, minus the signal that ended it, None if it hung; and what it printed.

    `printed` is its standard output if that was read apart from its errors.
    """

    code: int | None
    said: str
    printed: str | None = None

    @property
    def answer(self) -> str:
        """What it printed on standard output, with the errors if it has one stream for both."""
        return self.said if self.printed is None else self.printed

    @property
    def clean(self) -> bool:
        """Whether it succeeded, or failed with a message."""
        told = "error: " in self.said and "unexpected" not in self.said and "Traceback" not in self.said
        return self.code == 0 or (self.code in (1, 2) and told)

    @property
    def words(self) -> str:
        """How it ended, for the log."""
        return f"exit code {self.code}: {' / '.join(self.said.split(chr(10))[-4:])[-400:]}"


def in_process(work: Work, *, kill_after: float | None = None, seconds: float = PATIENCE) -> Ended:
    """Do some work in a forked process; it is killed after `kill_after` seconds, if that is given."""
    out, into = os.pipe()
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 1 << 20)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _child(work, into)
    os.close(into)
    code = _wait(pid, kill_after, seconds)
    os.set_blocking(out, False)  # its children may still have the other end
    said = b""
    with open(out, "rb", buffering=0) as file:
        while part := file.read():
            said += part
    return Ended(code, said.decode(errors="replace").strip())


def ran(command: list[str], *, seconds: float = PATIENCE, memory: int | None = None) -> Ended:
    """Run a program, within so many bytes of memory if that is given."""
    limit = None if memory is None else lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, preexec_fn=limit)
    except subprocess.TimeoutExpired as error:
        return Ended(None, (error.stderr or b"").decode(errors="replace"))
    printed, wrong = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
    return Ended(done.returncode, (printed + wrong).strip(), printed)


def _child(work: Work, into: int) -> None:
    """Do the work and exit; never returns."""
    code = UNEXPECTED
    try:
        os.dup2(into, 1)
        os.dup2(into, 2)
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), write_through=True)
        code = explained(work)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def explained(work: Work) -> int:
    """Exit code of some work; errors that a program can expect are printed."""
    try:
        found = work()
    except EXPECTED as error:
        os.write(2, f"error: {type(error).__name__}: {error}\n".encode(errors="replace"))
        return 2
    return found if isinstance(found, int) else 0


def _wait(pid: int, kill_after: float | None, seconds: float) -> int | None:
    begin, hung = time.monotonic(), False
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return None if hung else os.waitstatus_to_exitcode(status)
        passed = time.monotonic() - begin
        if passed > seconds and not hung:
            hung = True
            os.kill(pid, signal.SIGKILL)
        if kill_after is not None and passed >= kill_after:
            os.kill(pid, signal.SIGKILL)
        time.sleep(5e-4)


def program(words: str, **values: object) -> Work:
    """The command line of crfit with these words, in which {name} is a value."""
    arguments = [word.format(**values) for word in words.split()]
    return lambda: main(arguments)


def dies_at(work: Work, folder: Path, operation: int) -> Work:
    """The same work, in a process that kills itself before one operation on files in `folder`.

    Without an operation (-1) it prints their number.
    """
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if (event == "open" or event.startswith(("os.", "shutil."))) and any(
            isinstance(one, str | os.PathLike) and os.fspath(one).startswith(str(folder)) for one in arguments
        ):
            if count == operation:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1

    def watched() -> object:
        sys.addaudithook(hook)
        found = work()
        if operation < 0:
            print(f"operations {count}")
        return found

    return watched


def limited(work: Work, kind: int, most: int) -> Work:
    """The same work with a limit of `resource`."""

    def run() -> object:
        resource.setrlimit(kind, (most, most))
        return work()

    return run


class Count:
    """Tries and losses of one kind of fault."""

    def __init__(self, kind: str, title: str) -> None:
        self.kind, self.title = kind, title
        self.tries = self.lost = self.refused = self.ended = 0

    def add(self, *losses: str | None, refused: bool = False, ended: bool = False) -> None:
        """Note a try and what was lost in it; it is printed into the log.

        `refused`: with an error message. `ended`: by the C library, with a message of its own.
        """
        self.tries += 1
        self.refused += refused
        self.ended += ended
        found = [loss for loss in losses if loss]
        self.lost += bool(found)
        for loss in found:
            print(f"{self.kind}, {self.title}: {loss}", flush=True)

    @property
    def row(self) -> dict[str, Any]:
        """The row of results."""
        counts = {"tries": self.tries, "refused": self.refused, "ended": self.ended, "lost": self.lost}
        return {"what": self.title, **counts}


def spread(least: int, most: int, n: int) -> Iterator[int]:
    """At most `n` whole numbers from `least` to `most`, evenly spread, each once."""
    yield from dict.fromkeys(least + round(i * (most - least) / max(n - 1, 1)) for i in range(n))
