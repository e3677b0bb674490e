"""Ctrl-C during training: once to stop soon with a valid model, twice to stop at once.

A long step asks `must_hurry` from time to time, and ends early after Ctrl-C and when its time is up. A pass
over data that is larger than memory may take minutes: it calls `end_pass_if_hurried` now and then, which ends
the step that needs the pass.

A program can handle SIGTERM, which batch systems and containers send, and SIGHUP, which a closing terminal
sends, in the same way (`termination_as_interrupt`). The library does not change them by itself.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, ClassVar

_hurry: ContextVar[Callable[[], bool] | None] = ContextVar("hurry", default=None)
_end_pass: ContextVar[Callable[[], bool] | None] = ContextVar("end_pass", default=None)


def must_hurry() -> bool:
    """Whether the run in this thread should end soon: a step that can be cut short should be."""
    asked = _hurry.get()
    return asked is not None and asked()


class PassEnded(Exception):  # noqa: N818
    """A pass over the data was ended, because the run that needs it should end soon."""


def end_pass_if_hurried() -> None:
    """Raise `PassEnded` if the run in this thread should end soon, and has an earlier step to return."""
    asked = _end_pass.get()
    if asked is not None and asked():
        raise PassEnded


@contextlib.contextmanager
def hurry_when(asked: Callable[[], bool], end_pass: Callable[[], bool] | None = None) -> Iterator[None]:
    """Context of a run whose steps should end soon once ``asked()`` is true, and passes on ``end_pass()``."""
    token, other = _hurry.set(asked), _end_pass.set(end_pass)
    try:
        yield
    finally:
        _hurry.reset(token)
        _end_pass.reset(other)


class InterruptGuard:
    """Context in which the first SIGINT is recorded and the second raises KeyboardInterrupt.

    Python allows signal handlers only in the main thread; elsewhere, and if SIGINT is ignored or handled by
    foreign code, the context does nothing. The previous handler is restored on exit. A nested context returns
    the guard of the outer one, so a caller can also guard work after training, for example saving the model.

    If SIGINT is ignored, as in background jobs of a shell script, a guard still receives SIGTERM from
    `termination_as_interrupt`.
    """

    _ignoring: ClassVar[InterruptGuard | None] = None  # the outermost guard if SIGINT is ignored

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
            # None: set by foreign code and cannot be restored; SIG_IGN: the user wants it ignored.
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
    """The signal that asked the process to end: SIGTERM or SIGHUP, 0 without one."""

    received: int = 0


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[Termination]:
    """Context in which SIGTERM and SIGHUP act like Ctrl-C, even if Ctrl-C is ignored.

    Does nothing outside the main thread, nor for a signal that is ignored (nohup) or already handled.
    """
    termination = Termination()

    def handle(number: int, frame: FrameType | None) -> None:
        if termination.received and number != signal.SIGTERM:
            return  # a closing terminal sends several
        termination.received = number
        on_interrupt = signal.getsignal(signal.SIGINT)
        if callable(on_interrupt):
            on_interrupt(signal.SIGINT, frame)
        elif InterruptGuard._ignoring is not None:
            InterruptGuard._ignoring._note(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    handled = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, handle)
    try:
        yield termination
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
