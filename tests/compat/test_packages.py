"""Packages that import pycrfsuite give the same with python-crfsuite and after crfit.compat install.

Runs the packages that are installed; for all of them, in an environment with crfit:
``pip install pytest python-crfsuite sklearn-crfsuite usaddress probablepeople parserator nltk pythainlp eli5
'ingredient-parser-nlp<2'``.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from compat.packages import PACKAGES
from crfit.compat import installation

PROGRAM = Path(__file__).with_name("packages.py")


def run(package: str, folders: list[str]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    return subprocess.run(
        [sys.executable, PROGRAM, package], env=environment, capture_output=True, text=True, encoding="utf-8"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_outputs_are_the_same(package: str, tmp_path: Path) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    theirs = run(package, sys.path)
    if theirs.returncode:
        pytest.skip(f"{package} does not run with the originals: {theirs.stderr[-300:]}")
    installation.install(tmp_path)
    ours = run(package, [str(tmp_path), *sys.path])
    assert ours.returncode == 0, ours.stderr
    expected, found = json.loads(theirs.stdout), json.loads(ours.stdout)
    assert expected["trainer"].startswith("pycrfsuite")
    assert found["trainer"].startswith("crfit")
    assert len(found["found"]) == len(expected["found"]) >= 200
    for one, other in zip(found["found"], expected["found"], strict=True):
        assert_same(one, other)


def assert_same(one: Any, other: Any) -> None:
    """Compare values of JSON; numbers up to the tolerance of training."""
    if isinstance(one, float):
        assert one == pytest.approx(other, abs=1e-4)
    elif isinstance(one, list):
        assert len(one) == len(other)
        for part, other_part in zip(one, other, strict=True):
            assert_same(part, other_part)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    else:
        assert one == other
