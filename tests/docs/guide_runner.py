"""Runs the blocks of a guide in their order: Python, commands, and the outputs that it shows."""

import contextlib
import io
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest

_BLOCK = re.compile(
    r"^```(?P<kind>python|text)\n(?P<code>.*?)^```|^(?P<lines>(?: {4}\S[^\n]*\n)+)", re.M | re.S
)


class Block(NamedTuple):
    """``python``, ``text`` (an output) or ``lines``, indented, of which those with a program are commands."""

    kind: str
    text: str


def blocks(page):
    """The blocks of a page."""
    for found in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if found["kind"] is None:
            yield Block("lines", "".join(line[4:] for line in found["lines"].splitlines(keepends=True)))
        else:
            yield Block(found["kind"], found["code"])


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Runner:
    """Runs blocks in a folder; what they print is in `printed`."""

    def __init__(self, folder):
        self.folder, self.printed, self.names = Path(folder), "", {"__name__": "__main__"}
        self.port, self.service = free_port(), None
        programs = self.folder / "bin"
        programs.mkdir()
        script = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m crfit "$@"\n'
        (programs / "crfit").write_text(script)
        (programs / "crfit").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    def python(self, code):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "<guide>", "exec"), self.names)
        self.printed = printed.getvalue()

    def command(self, line):
        line = line.replace("8000", str(self.port))
        if line.startswith("crfit serve"):
            self.service = subprocess.Popen(
                ["sh", "-c", f"exec {line}"], cwd=self.folder, env=self.environment
            )
            self._wait()
        elif line.startswith("curl") and shutil.which("curl") is None:
            words = shlex.split(line)
            url = next(f"http://{word}" for word in words if word.startswith("localhost"))
            data = words[words.index("-d") + 1].encode()
            with urllib.request.urlopen(url, data, timeout=20) as answer:
                self.printed = answer.read().decode()
        else:
            ran = subprocess.run(
                ["sh", "-c", line],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert ran.returncode == 0, f"{line}: {ran.stderr}"
            self.printed = ran.stdout

    def _wait(self):
        deadline = time.monotonic() + 60
        while True:
            assert self.service.poll() is None
            assert time.monotonic() < deadline
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
                return
            time.sleep(0.05)

    def stop(self):
        """End the service, which has to go without an error."""
        if self.service is not None:
            self.service.terminate()
            assert self.service.wait(30) == 0


def check_shown(shown, printed):
    """Every line that is shown was printed, in this order; numbers are close, whatever the processor.

    Lines that end in three dots were printed with more behind.
    """
    rest = iter(printed.splitlines())
    for line in filter(str.strip, shown.splitlines()):
        assert any(_alike(line, other) for other in rest), f"not printed: {line}\n\n{printed}"


_PIECES = re.compile(r"\d+(?:\.\d+)?|[^\W\d]+|[^\s\w]")


def _alike(one, other):
    ours, theirs = _PIECES.findall(one.removesuffix("...")), _PIECES.findall(other)
    if one.endswith("..."):
        theirs = theirs[: len(ours)]
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _same(one, other):
    try:
        return float(other) == pytest.approx(float(one), abs=0.02)
    except ValueError:
        return one == other
