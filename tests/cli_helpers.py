"""Data, models and ways to call the command line, for the tests of it."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from crfit import demo as synthetic
from crfit.cli import main

FORMATS = ("columns", "crfsuite", "jsonl")
N_TRAIN, N_TEST = 120, 40


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def call(capfd):
    """Run the command line in this process; it has to end with `code`, if that is given."""

    def run(*arguments, code: int | None = None) -> Ran:
        capfd.readouterr()
        ran = Ran(main([str(argument) for argument in arguments]), *capfd.readouterr())
        assert code in (None, ran.code), ran.err
        return ran

    return run


def program(*arguments, code: int | None = None, **settings) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "crfit", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, timeout=60, check=False, **settings)
    assert code in (None, ran.returncode), ran.stderr
    return ran


def interrupted_program(arguments, log: Path, event: str, count: int, number: int):
    """Exit code, output and messages of a program that gets a signal once its log has so many events."""
    command = [sys.executable, "-m", "crfit", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not (log.exists() and log.read_text().count(f'"{event}"') >= count):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    printed, said = process.communicate(timeout=30)
    return process.returncode, printed, said


def write_lines(path: Path, lines, input_format: str) -> None:
    if input_format == "columns":
        synthetic.write_columns(path, lines)
        return
    rows = []
    for line in lines:
        items = synthetic.attributes([word for word, _ in line])
        labels = [label for _, label in line]
        if input_format == "jsonl":
            rows.append(json.dumps({"tokens": items, "labels": labels}))
        else:
            escaped = [[a.replace("\\", "\\\\").replace(":", "\\:") for a in item] for item in items]
            rows += ["\t".join([label, *item]) for label, item in zip(labels, escaped, strict=True)] + [""]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def recipes(tmp_path_factory) -> Path:
    """train.F, test.F and a model F.crfit for each format F."""
    folder = tmp_path_factory.mktemp("cli")
    lines = synthetic.recipe_lines(N_TRAIN + N_TEST)
    for name in FORMATS:
        write_lines(folder / f"train.{name}", lines[:N_TRAIN], name)
        write_lines(folder / f"test.{name}", lines[N_TRAIN:], name)
        arguments = [
            folder / f"train.{name}", "-m", folder / f"{name}.crfit", "--max-iter", 30, "-q", "--json",
        ]  # fmt: skip
        assert main(["train", *map(str, arguments)]) == 0
    return folder


def blocks(text: str) -> list[list[str]]:
    """Lines of each sequence."""
    return [block.split("\n") for block in text.removesuffix("\n\n").split("\n\n")]
