"""The server: uvicorn with limits on slow heads of requests, and a stop that finishes what runs."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.applications import Starlette

#: Seconds that a connection may be idle between two requests.
KEEP_ALIVE = 30
#: Connections that wait to be accepted.
BACKLOG = 512


def protocol(seconds: float) -> type[H11Protocol]:
    """HTTP in which the head of a request has to arrive within so many seconds."""

    class Protocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._forget()

        def _watch(self) -> None:
            """Start the clock when a head is awaited, stop it when it is there."""
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()
            elif self._deadline is None:
                self._deadline = self.loop.call_later(seconds, self._give_up)

        def _forget(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _give_up(self) -> None:
            self._deadline = None
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

    return Protocol


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens on an address; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only if the protocol is named; others take 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def serve(app: Starlette, listening: socket.socket, *, seconds: float, access_log: bool = False) -> None:
    """Answer requests until SIGTERM or Ctrl-C, then finish those that run, for at most so many seconds."""
    config = uvicorn.Config(
        app,
        http=protocol(seconds),
        ws="none",
        log_level="info" if access_log else "warning",
        access_log=access_log,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(2 * seconds)),
        server_header=False,
        backlog=BACKLOG,
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn raises the signal again once it has stopped
        pass
    finally:
        listening.close()
