"""What the stages share: where things are, which run is meant, how many threads, how refusals look."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

HOME = Path(__file__).parent
THREADS = 2  # of everything that is measured and can use them


class BenchError(click.ClickException):
    """Bad use or missing data: a message and no traceback."""

    exit_code = 2


@dataclass(frozen=True)
class Setting:
    """Which run is meant and where its files are.

    Parameters
    ----------
    data : Path or None
        Folder with the corpora; None where only the built-in data is needed.
    quick : bool
        The short version of a group.
    out : Path
        Folder with ``raw/`` (what was measured, not in git) and ``results/`` (what was made of it, in git).
    """

    data: Path | None = None
    quick: bool = False
    out: Path = HOME

    def raw(self, group: str) -> Path:
        """Folder of the raw files of a group, one for each task."""
        return self.out / "raw" / self._run(group)

    def results(self, group: str) -> Path:
        """Folder of what was made of them."""
        return self.out / "results" / self._run(group)

    def _run(self, group: str) -> str:
        return f"{group}-quick" if self.quick else group
