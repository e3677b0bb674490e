"""Fixtures that several test files share, and how hypothesis draws.

Hypothesis draws the same examples in every run, so that a failure is the fault of a change and not of the
day; ``CRFIT_HYPOTHESIS=random make test`` looks for new ones.

Tests on corpora whose licences do not allow shipping them read the folder ``CRFIT_DATA``, and are skipped
where a file is not in it; bench/README.md says what is expected there.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from cli_helpers import call, recipes

__all__ = ["call", "corpus", "recipes"]

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("CRFIT_HYPOTHESIS", "repeatable"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background of a script
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # ignored under nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "data"
#: Workers take whole files, so that what a file builds is built once; these come first, the longest ahead, so
#: that none is left alone with one of them at the end.
LONGEST = [
    "docs/test_site.py", "test_corpora.py", "engines/test_engines.py", "engines/test_periods.py",
    "cli/test_cli.py", "estimators/test_log_linear_sklearn.py", "estimators/test_log_linear.py",
    "trainers/test_newton_start.py", "trainers/test_trainers.py", "engines/test_cpu.py",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first; the others stay in their order."""
    rank = {str(Path(__file__).parent / name): number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(str(item.path), len(rank)))


@pytest.fixture(scope="session")
def corpus() -> Callable[[str], Path]:
    """Path of a file or folder of the corpora, by its name there; skips the test where it is absent."""
    folder = Path(os.environ.get("CRFIT_DATA") or BESIDE_THE_REPOSITORY)

    def find(name: str) -> Path:
        if not (folder / name).exists():
            pytest.skip(f"no {name} in {folder}; set CRFIT_DATA to the folder with the corpora")
        return folder / name

    return find
