"""The tests of the core in C++, `tests/native/core/`; ``make test`` builds them with the environment."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_core():
    built = sorted(ROOT.glob("build/*/crfit_tests"), key=lambda path: path.stat().st_mtime)
    if not built:
        pytest.skip("crfit_tests is not built: make test")
    ran = subprocess.run([built[-1]], capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert " 0 checks failed" in ran.stdout
