"""A service in a thread of the test, and ways to call it."""

import http.client
import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest


@contextmanager
def running(model, seconds=5.0, **limits):
    """Serve a model on a free port; yields a caller."""
    uvicorn = pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'crfit[serve]'")
    from crfit.service import Limits, create_app
    from crfit.service.server import bind, protocol

    app = create_app(model, limits=Limits(seconds=seconds, **limits), n_threads=2, name="test.crfit")
    listening = bind("127.0.0.1", 0)
    config = uvicorn.Config(app, http=protocol(seconds), ws="none", log_level="error", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    try:
        yield Caller(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
    assert not thread.is_alive()


class Caller:
    """Requests to a port of this machine."""

    def __init__(self, port):
        self.port = port

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)

    def __call__(self, path, body=None, method=None, headers=None):
        """Status and body: bytes, or what the JSON says."""
        connection = self.connection()
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, data, headers or {})
            response = connection.getresponse()
            found = response.read()
            if response.headers["Content-Type"].startswith("application/json"):
                found = json.loads(found)
            return response.status, found
        finally:
            connection.close()

    def raw(self, data, then_close=False):
        """What comes back for these bytes; b"" if the service closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(data)
            if then_close:
                return b""
            found = b""
            while more := connection.recv(65536):
                found += more
                if b"\r\n\r\n" in found:
                    break
            return found
