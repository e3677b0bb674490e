"""The service: routes, limits on time and number, metrics.

Tagging runs in threads, without Python's global lock for most of its time, so that the event loop can answer
``/health`` meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from crfit import __version__
from crfit.model import Model
from crfit.service.limits import Limits
from crfit.service.page import try_out_page
from crfit.service.requests import Answered, Answering, RequestError
from crfit.threads import resolve_threads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


def create_app(
    model: Model, *, limits: Limits | None = None, n_threads: int | None = None, name: str = "model"
) -> Starlette:
    """An ASGI application that tags with a model; needs the extra ``serve``.

    Parameters
    ----------
    model : Model
        The model; `crfit.load` gives one.
    limits : Limits, optional
        What a request may ask for, and how many may run at once.
    n_threads : int, optional
        Number of requests that are tagged at the same time; None uses all cores.
    name : str, default="model"
        Shown on the page and by ``/health``.

    Examples
    --------
    >>> import crfit
    >>> from crfit.service import create_app
    >>> crf = crfit.CRF().fit([[["w=the"], ["w=dog"]]], [["DET", "NOUN"]])
    >>> app = create_app(crf.model_)  # uvicorn.run(app), or any other ASGI server
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Route

    service = _Service(model, limits or Limits(), resolve_threads(n_threads), name)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        service.pool.shutdown(wait=True)

    async def refused(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        known = {404: "there is nothing here: see /", 405: "this address needs another method"}
        answer = service.failure(RequestError(status, "http_error", known.get(status, "the request failed")))
        answer.headers.update(getattr(error, "headers", None) or {})  # Allow
        return answer

    routes = [
        Route("/", service.page, methods=["GET"]),
        Route("/health", service.health, methods=["GET"]),
        Route("/metrics", service.metrics, methods=["GET"]),
        Route("/tag", service.tagging("tag", service.answering.one), methods=["POST"]),
        Route("/batch", service.tagging("batch", service.answering.many), methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: refused}, lifespan=lifespan)


class _Service:
    """What the routes share."""

    def __init__(self, model: Model, limits: Limits, n_threads: int, name: str) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

        self.limits, self.name = limits, name
        self.answering = Answering(model, limits)
        self.pool = ThreadPoolExecutor(n_threads, thread_name_prefix="crfit-tag")
        self.facts = {"status": "ok", "version": __version__, "model": name, "labels": len(model.labels)}
        self.facts |= {"takes": self.answering.kind, "text": self.answering.takes_text}
        self._page = try_out_page(self.answering, name).encode("utf-8", "xmlcharrefreplace")
        self._n_open = 0
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        own: dict[str, Any] = {"registry": self.registry}
        self._requests = Counter(
            "crfit_requests", "Requests by address and status.", ["endpoint", "status"], **own
        )
        self._seconds = Histogram(
            "crfit_request_seconds",
            "Seconds from the head of a request to its answer.",
            ["endpoint"],
            buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
            **own,
        )
        self._sequences = Counter("crfit_sequences", "Sequences tagged.", **own)
        self._tokens = Counter("crfit_tokens", "Tokens tagged.", **own)
        self._unknown = Counter(
            "crfit_unknown_attributes",
            "Attributes that the model does not know; more per token, other input.",
            **own,
        )
        Gauge("crfit_requests_open", "Requests running or waiting.", **own).set_function(lambda: self._n_open)
        model._prepared()  # so that the first request need not wait

    async def page(self, _: Request) -> Response:
        from starlette.responses import Response

        # The page has a policy for what it loads; these limits only work in a header.
        policy = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        headers = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
        headers["Content-Security-Policy"] = policy
        return Response(self._page, media_type="text/html; charset=utf-8", headers=headers)

    async def health(self, _: Request) -> Response:
        return self.answer(200, json.dumps(self.facts).encode())

    async def metrics(self, _: Request) -> Response:
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
        from starlette.responses import Response

        return Response(generate_latest(self.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    def tagging(
        self, endpoint: str, work: Callable[[bytes], Answered]
    ) -> Callable[[Request], Awaitable[Response]]:
        """A route that reads a body, and answers it in a thread."""

        async def route(request: Request) -> Response:
            begin = time.perf_counter()
            try:
                found = await self._limited(request, work)
                response = self.answer(200, found.body)
                self._sequences.inc(found.n_sequences)
                self._tokens.inc(found.n_tokens)
                self._unknown.inc(found.n_unknown)
            except RequestError as error:
                response = self.failure(error)
            except Exception as error:
                # Only its type: the message may quote the data.
                print(f"crfit: error: {endpoint}: {type(error).__name__}", file=sys.stderr, flush=True)
                response = self.failure(RequestError(500, "failed", "the service failed: see its log"))
            self._requests.labels(endpoint, response.status_code).inc()
            self._seconds.labels(endpoint).observe(time.perf_counter() - begin)
            return response

        return route

    async def _limited(self, request: Request, work: Callable[[bytes], Answered]) -> Answered:
        if self._n_open >= self.limits.requests:
            raise RequestError(503, "busy", "too many requests at once: try again")
        self._n_open += 1
        running: asyncio.Future[Answered] | None = None
        try:
            try:
                body = await asyncio.wait_for(self._body(request), self.limits.seconds)
            except asyncio.TimeoutError:
                raise RequestError(408, "slow", "the request did not arrive in time") from None
            job = self.pool.submit(work, body)
            running = asyncio.wrap_future(job)
            try:
                return await asyncio.wait_for(asyncio.shield(running), self.limits.seconds)
            except asyncio.TimeoutError:
                job.cancel()  # if it still waits for a thread
                raise RequestError(503, "timeout", "the answer took too long: send less") from None
        finally:
            # A thread cannot be stopped: what runs for too long keeps its place until it has ended.
            if running is None or running.done():
                self._close()
            else:
                running.add_done_callback(self._ended)

    def _close(self) -> None:
        self._n_open -= 1

    def _ended(self, running: asyncio.Future[Answered]) -> None:
        running.cancelled() or running.exception()
        self._close()

    async def _body(self, request: Request) -> bytes:
        from starlette.requests import ClientDisconnect

        limit = self.limits.body
        too_large = RequestError(413, "too_large", f"the body has more than {limit} bytes")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > limit:
            raise too_large
        parts, n = list[bytes](), 0
        try:
            async for part in request.stream():
                n += len(part)
                if n > limit:
                    raise too_large
                parts.append(part)
        except ClientDisconnect:
            raise RequestError(400, "cut_off", "the request was cut off") from None
        return b"".join(parts)

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> Response:
        """A response in JSON."""
        from starlette.responses import Response

        return Response(body, status, headers, media_type="application/json")

    def failure(self, error: RequestError) -> Response:
        """An error in JSON; the rest of a body that is not read ends the connection."""
        body = json.dumps({"error": {"code": error.code, "message": error.message}}).encode()
        headers = {}
        if error.status in (408, 413, 503):
            headers["Connection"] = "close"
        if error.status == 503:
            headers["Retry-After"] = "1"
        return self.answer(error.status, body, headers)
