"""Ctrl-C during training: once to end after the current step with a valid model, twice to end at once.

A program may treat SIGTERM, by which batch systems and containers end a process, in the same way
(`termination_as_interrupt`); a library that changed what it does would be in its user's way.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, ClassVar


class InterruptGuard:
    """Context in which the first SIGINT is noted and the second raises KeyboardInterrupt.

    Python allows handlers in the main thread only; elsewhere, and where SIGINT is ignored or handled by
    foreign code, the context does nothing. The handler found on entry is put back on exit. A context inside
    another gives the guard of the outer one, so that whoever has more to do after training, such as saving
    the model, can be guarded for longer than `train` is.

    Where SIGINT is ignored, as in the background of a shell script, a guard still hears of a SIGTERM from
    `termination_as_interrupt`.
    """

    _ignoring: ClassVar[InterruptGuard | None] = None  # the outermost guard where SIGINT is ignored

    def __init__(self) -> None:
        self.interrupted = False
        self._previous: Any = None
        self._installed = False

    def __enter__(self) -> InterruptGuard:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.getsignal(signal.SIGINT)
            outer = getattr(self._previous, "__self__", None)
            if isinstance(outer, InterruptGuard):
                return outer
            if self._previous is signal.SIG_IGN:
                if InterruptGuard._ignoring is not None:
                    return InterruptGuard._ignoring
                InterruptGuard._ignoring = self
            # None: set by foreign code and impossible to put back; SIG_IGN: the user wants it ignored.
            if self._previous not in (None, signal.SIG_IGN):
                signal.signal(signal.SIGINT, self._note)
                self._installed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._previous)
            self._installed = False
        if InterruptGuard._ignoring is self:
            InterruptGuard._ignoring = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True


@dataclass
class Termination:
    """Whether the process was asked to end."""

    received: bool = False


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[Termination]:
    """Context in which SIGTERM does what Ctrl-C would do at that moment, also where Ctrl-C is ignored.

    Does nothing outside the main thread, and where SIGTERM is ignored or handled by somebody else.
    """
    termination = Termination()

    def handle(number: int, frame: FrameType | None) -> None:
        termination.received = True
        on_interrupt = signal.getsignal(signal.SIGINT)
        if callable(on_interrupt):
            on_interrupt(signal.SIGINT, frame)
        elif InterruptGuard._ignoring is not None:
            InterruptGuard._ignoring._note(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt

    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield termination
        return
    signal.signal(signal.SIGTERM, handle)
    try:
        yield termination
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
