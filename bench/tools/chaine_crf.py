"""CRFsuite through chaine; `bench.tools.base.crfsuite` has what its three forms share.

chaine logs through Python's logging, line by line, to a logger of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version as package_version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.problems import Loaded, Problem
from bench.tools.base import Limits, crfsuite
from bench.tools.base.data import items, label_tokens, labels_of
from crfit import Dataset
from crfit.racing.records import Curve

TITLE = "CRFsuite (chaine)"
SOLVES = crfsuite.SOLVES
VARIANTS = {"default": crfsuite.VARIANTS["default"]}

#: Names of parameters that chaine has changed.
NAMES = {
    "feature.possible_states": "all_possible_states",
    "feature.possible_transitions": "all_possible_transitions",
}


def absent() -> str | None:
    return None if find_spec("chaine") else "chaine is not installed: pip install chaine"


def version() -> str:
    return package_version("chaine")


def refuses(problem: Problem, variant: str = "default") -> str | None:
    return crfsuite.refuses(problem, variant)


def threads(most: int, variant: str = "default") -> int:
    return 1


def run(loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
    return crfsuite.run(TITLE, "chaine_crf", variant, loaded, limits, lambda: _Package(loaded.train))


class _Enough(Exception):  # noqa: N818
    """Raised in the log handler, which is the only way to end a training."""


class _Package:
    """Training data and trainers of chaine, which takes mappings alone."""

    def __init__(self, data: Dataset) -> None:
        self._items, self._labels = items(data, mappings=True), label_tokens(data)

    def train(self, algorithm: str, parameters: dict[str, Any], model: Path, line: crfsuite.Line) -> None:
        from chaine.crf import Trainer

        trainer = Trainer(algorithm, **{NAMES.get(name, name): value for name, value in parameters.items()})
        with _log_lines(line):
            try:
                trainer.train(self._items, self._labels, model_filepath=str(model))
            except _Enough:
                model.unlink(missing_ok=True)

    def tag(self, model: Path, data: Dataset) -> list[list[str]]:
        from chaine.crf import Model

        return labels_of(data, Model(str(model)).predict(items(data, mappings=True)))


@contextmanager
def _log_lines(line: crfsuite.Line) -> Iterator[None]:
    """Hand what chaine logs to `line`, and to nobody else."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                raise RuntimeError(f"chaine could not read a sequence: {record.getMessage()}")
            print(record.getMessage(), flush=True)
            if line(record.getMessage() + "\n"):
                raise _Enough

    loggers = [logging.getLogger(name) for name in ("chaine.crf", "chaine._core.crf")]
    before = [(logger.handlers, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [Handler()], False
    try:
        yield
    finally:
        for logger, (handlers, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
