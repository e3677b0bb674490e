"""CRFsuite's own program; `bench.tools.base.crfsuite` has what its three forms share."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.problems import Loaded, Problem
from bench.tools.base import Limits, crfsuite
from bench.tools.base.data import Item, items, label_tokens, labels_of
from bench.tools.base.programs import finish, follow
from crfit import Dataset
from crfit.racing.records import Curve

TITLE = "CRFsuite (program)"
SOLVES = crfsuite.SOLVES
VARIANTS = crfsuite.VARIANTS
PROGRAM = "crfsuite"


def absent() -> str | None:
    if shutil.which(PROGRAM):
        return None
    return f"there is no program {PROGRAM} on the PATH: build it from www.chokkan.org/software/crfsuite"


def version() -> str:
    return finish([PROGRAM, "--help"]).split("Copyright")[0].split()[-1]


def refuses(problem: Problem, variant: str = "default") -> str | None:
    return crfsuite.refuses(problem, variant)


def threads(most: int, variant: str = "default") -> int:
    return 1


def run(loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
    with tempfile.TemporaryDirectory() as folder:
        form = _Program(Path(folder))

        def make() -> _Program:
            form.write("train.txt", loaded.train, label_tokens(loaded.train))
            return form

        return crfsuite.run(TITLE, "crfsuite_program", variant, loaded, limits, make)


class _Program:
    """The program with its files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, data: Dataset, labels: list[list[str]]) -> str:
        path = self._folder / name
        with path.open("w") as file:
            for x, y in zip(items(data), labels, strict=True):
                lines = ["\t".join([label, *_fields(item)]) for item, label in zip(x, y, strict=True)]
                file.write("\n".join(lines) + "\n\n")
        return str(path)

    def train(self, algorithm: str, parameters: dict[str, Any], model: Path, line: crfsuite.Line) -> None:
        command = [PROGRAM, "learn", "-a", algorithm, "-m", str(model)]
        for name, value in parameters.items():
            command += ["-p", f"{name}={value}"]
        command.append(str(self._folder / "train.txt"))
        # A training that is ended leaves half a model at most.
        if not follow(command, lambda time, text: line(text), stop=signal.SIGKILL):
            model.unlink(missing_ok=True)

    def tag(self, model: Path, data: Dataset) -> list[list[str]]:
        unknown = [["y0"] * n for n in data.lengths.tolist()]  # the first field is not looked at
        output = finish([PROGRAM, "tag", "-m", str(model), self.write("test.txt", data, unknown)])
        return labels_of(data, [block.split() for block in output.strip().split("\n\n")])


def _fields(item: Item) -> Sequence[str]:
    if isinstance(item, list):
        return item
    return [f"{name}:{value!r}" for name, value in item.items()]
