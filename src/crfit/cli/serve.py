"""``crfit serve``: a model as an HTTP service, with a page to try it."""

from __future__ import annotations

import ipaddress
import os
from typing import Any

import click

from crfit.cli.arguments import COMMON, options, section
from crfit.cli.output import Verb, debug_option, say
from crfit.errors import CrfitError, OptionError
from crfit.model import load
from crfit.threads import resolve_threads

_LIMITS = "Limits"


@click.command(
    "serve",
    cls=Verb,
    epilog="Addresses: POST /tag, POST /batch, GET /health, GET /metrics (Prometheus), GET / (a page to try "
    "sentences in). Requests and answers: docs/service.md. Needs: pip install 'crfit[serve]'.",
)
@click.argument("model", metavar="MODEL", type=click.Path())
@options(
    section(
        COMMON,
        (
            "--port N",
            "Port to listen on; 0 is any that is free.",
            {"type": click.IntRange(0, 65535), "default": 8000, "show_default": True},
        ),
        (
            "--host H",
            "Address to listen on; 0.0.0.0 is all of them.",
            {"default": "127.0.0.1", "show_default": True},
        ),
        (
            "--threads n_threads N",
            "Number of requests that are tagged at the same time.  [default: all cores]",
            {"type": int},
        ),
        ("--access-log", "Write a line for each request."),
    )
    + section(
        _LIMITS,
        (
            "--max-body N",
            "Largest request, in bytes.",
            {"type": click.IntRange(1), "default": 1 << 20, "show_default": True},
        ),
        (
            "--max-tokens N",
            "Largest number of tokens of a request.",
            {"type": click.IntRange(1), "default": 10_000, "show_default": True},
        ),
        (
            "--max-sequences N",
            "Largest number of sequences of a batch.",
            {"type": click.IntRange(1), "default": 1_000, "show_default": True},
        ),
        (
            "--max-requests N",
            "Largest number of requests at a time; more get status 503.",
            {"type": click.IntRange(1), "default": 64, "show_default": True},
        ),
        (
            "--seconds S",
            "Longest time for a request to arrive, and for its answer.",
            {"type": click.FloatRange(0, min_open=True), "default": 10.0, "show_default": True},
        ),
    )
)
@debug_option
def command(model: str, host: str, port: int, n_threads: int | None, access_log: bool, **given: Any) -> None:
    """Serve a model over HTTP.

    Tags sequences that programs send as JSON. Open the address in a browser to try sentences, correct
    labels, and download the corrections for retraining. SIGTERM or Ctrl-C finishes running requests, then
    stops.

    The service has no passwords and no encryption, and anyone who reaches the address can use it. It listens
    on this machine only unless --host says otherwise; put a reverse proxy in front before you open it.

    \b
    Examples:
      crfit serve parser.crfit
      crfit serve parser.crfit --port 9000 --max-tokens 50000
      curl localhost:8000/tag -d '{"text": "2 cups flour", "spans": true}'
      curl localhost:8000/batch -d '{"sequences": [{"id": 1, "tokens": ["2", "cups"]}]}'
    """  # noqa: D301
    threads = resolve_threads(n_threads)
    try:
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401

        from crfit.service.server import bind, serve
    except ImportError as error:
        raise CrfitError(f"'crfit serve' needs {error.name}: pip install 'crfit[serve]'") from None
    from crfit.service import Limits, create_app

    limits = Limits(
        body=given["max_body"],
        tokens=given["max_tokens"],
        sequences=given["max_sequences"],
        seconds=given["seconds"],
        requests=given["max_requests"],
    )
    app = create_app(load(model), limits=limits, n_threads=threads, name=os.path.basename(model))
    try:
        listening = bind(host, port)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        name, value = ("port", port) if _is_address(host) else ("host", host)
        raise OptionError(name, value, f"cannot listen on {host}:{port}, {reason}: choose another") from None
    shown = f"[{host}]" if ":" in host else host
    say(f"serving {model} on http://{shown}:{listening.getsockname()[1]}/  (Ctrl-C stops)")
    if not _is_loopback(host):
        say("warning: other machines can reach this address; there are no passwords and no encryption")
    serve(app, listening, seconds=limits.seconds, access_log=access_log)
    say("stopped")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
