"""Ctrl-C during training: once to end after the current step with a valid model, twice to end at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

__all__ = ["InterruptGuard"]


class InterruptGuard:
    """Context in which the first SIGINT is noted and the second raises KeyboardInterrupt.

    Python allows handlers in the main thread only; elsewhere, and where SIGINT is ignored or handled by
    foreign code, the context does nothing. The handler found on entry is put back on exit.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._previous: Any = None
        self._installed = False

    def __enter__(self) -> InterruptGuard:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.getsignal(signal.SIGINT)
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

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
