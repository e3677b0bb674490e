"""`crfit train` and `crfit eval` as a user runs them: commands for a problem, and what they report."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.problems import Loaded
from bench.records import Row
from bench.setting import THREADS, BenchError


def column_file(loaded: Loaded, part: str, folder: str) -> str:
    """Write a part of a column corpus to a folder; gives the path."""
    path = Path(folder) / f"{part}.txt"
    path.write_bytes(loaded.texts[part].data)
    return str(path)


def train_command(loaded: Loaded, folder: str, trainer: str = "lbfgs") -> list[str]:
    """Words of `crfit train` on a column corpus; the model goes to ``m.crfit`` in the folder."""
    if loaded.template is None:
        raise BenchError(f"{loaded.problem.name} is not read from columns")
    return [
        *(sys.executable, "-m", "crfit", "train", column_file(loaded, "train", folder)),
        *("--template", str(loaded.template.name), "--weights", loaded.problem.weights),
        *("--l2", f"{loaded.problem.l2:g}", "--trainer", trainer, "--threads", str(THREADS)),
        *("-m", str(Path(folder) / "m.crfit")),
    ]


def with_bytecode() -> dict[str, str]:
    """The environment, in which Python stores bytecode as it does for users: it starts much faster then."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def reported(command: Sequence[str]) -> Row:
    """Run a command with ``--json``; gives what it printed."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=with_bytecode())
    record: Row = json.loads(done.stdout.splitlines()[-1])
    return record
