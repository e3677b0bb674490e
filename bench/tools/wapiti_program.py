"""Wapiti's own program; `bench.tools.base.wapiti` has what it shares with libwapiti.

Debian has a scanner of web sites under the same name. What the program says of its version tells them apart.
"""

from __future__ import annotations

import shutil
import subprocess

from bench.problems import Loaded, Problem
from bench.tools.base import Limits, wapiti
from crfit.racing.records import Curve

TITLE = "Wapiti (program)"
SOLVES = wapiti.SOLVES
VARIANTS = wapiti.VARIANTS
PROGRAM = "wapiti"


def absent() -> str | None:
    how_to_get = "build it from wapiti.limsi.fr"
    if not shutil.which(PROGRAM):
        return f"there is no program {PROGRAM} on the PATH: {how_to_get}"
    if not version():
        return f"the program {PROGRAM} on the PATH is not the CRF tool but another one: {how_to_get}"
    return None


def version() -> str:
    done = subprocess.run(
        [PROGRAM, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return wapiti.version_in(done.stdout + done.stderr)


def refuses(problem: Problem, variant: str = "default") -> str | None:
    return wapiti.refuses(problem)


def threads(most: int, variant: str = "default") -> int:
    return most


def run(loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
    return wapiti.run(TITLE, "wapiti_program", variant, loaded, limits, [PROGRAM])
