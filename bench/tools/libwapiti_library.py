"""Wapiti from libwapiti's shared library; `bench.tools.base.wapiti` has what it shares with the program.

The library has the program's `main` in it, and that is called here, in a process of its own: the package's
interface has no development data, and what it promises to log goes to the standard error instead.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version as package_version
from importlib.util import find_spec

from bench.problems import Loaded, Problem
from bench.tools.base import Limits, wapiti
from crfit.racing.records import Curve

TITLE = "Wapiti (libwapiti)"
SOLVES = wapiti.SOLVES
VARIANTS = wapiti.VARIANTS

#: A program that calls the library's main with the words behind the library's name.
PROGRAM = """
import ctypes, sys
words = [b"wapiti", *map(str.encode, sys.argv[2:])]
sys.exit(ctypes.CDLL(sys.argv[1]).main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))
"""


def absent() -> str | None:
    spec = find_spec("libwapiti")
    return None if spec and spec.origin else "libwapiti is not installed: pip install libwapiti"


def version() -> str:
    """That of the package, and that of Wapiti inside."""
    said = subprocess.run([*_program(), "--version"], capture_output=True, text=True, check=False)
    return f"{package_version('libwapiti')} with v{wapiti.version_in(said.stdout + said.stderr)}"


def refuses(problem: Problem, variant: str = "default") -> str | None:
    return wapiti.refuses(problem)


def threads(most: int, variant: str = "default") -> int:
    return most


def run(loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
    return wapiti.run(TITLE, "libwapiti_library", variant, loaded, limits, _program())


def _program() -> list[str]:
    spec = find_spec("libwapiti")
    assert spec is not None
    assert spec.origin is not None
    return [sys.executable, "-c", PROGRAM, spec.origin]
