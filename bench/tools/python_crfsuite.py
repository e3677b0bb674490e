"""CRFsuite through python-crfsuite; `bench.tools.base.crfsuite` has what its three forms share."""

from __future__ import annotations

from importlib.metadata import version as package_version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.problems import Loaded, Problem
from bench.tools.base import Limits, crfsuite
from bench.tools.base.data import items, label_tokens, labels_of
from crfit import Dataset
from crfit.evaluation import Scores
from crfit.racing.records import Curve

TITLE = "CRFsuite (python-crfsuite)"
SOLVES = crfsuite.SOLVES
VARIANTS = crfsuite.VARIANTS


def absent() -> str | None:
    return (
        None if find_spec("pycrfsuite") else "python-crfsuite is not installed: pip install python-crfsuite"
    )


def version() -> str:
    return package_version("python-crfsuite")


def refuses(problem: Problem, variant: str = "default") -> str | None:
    return crfsuite.refuses(problem, variant)


def threads(most: int, variant: str = "default") -> int:
    return 1


def run(loaded: Loaded, limits: Limits, variant: str = "default") -> Curve:
    return crfsuite.run(TITLE, "python_crfsuite", variant, loaded, limits, lambda: _Package(loaded.train))


def epoch_seconds(loaded: Loaded, algorithm: str, parameters: dict[str, Any]) -> list[float]:
    """Seconds of each epoch of an on-line algorithm."""
    return crfsuite.epoch_seconds(_Package(loaded.train), loaded.problem, algorithm, parameters)


def test_scores(loaded: Loaded, algorithm: str, parameters: dict[str, Any]) -> Scores:
    """Scores on the test part of a model that an algorithm ends with."""
    return crfsuite.test_scores(_Package(loaded.train), loaded, algorithm, parameters)


class _Enough(Exception):  # noqa: N818
    """Raised in the callback, which is the only way to end a training."""


class _Package:
    """Training data and trainers of python-crfsuite."""

    def __init__(self, data: Dataset) -> None:
        self._items, self._labels = items(data), label_tokens(data)

    def train(self, algorithm: str, parameters: dict[str, Any], model: Path, line: crfsuite.Line) -> None:
        import pycrfsuite

        class Trainer(pycrfsuite.Trainer):  # type: ignore[misc,name-defined,unused-ignore]
            def message(self, message: str) -> None:
                print(message, end="", flush=True)
                if line(message):
                    raise _Enough

        trainer = Trainer(algorithm=algorithm)
        for x, y in zip(self._items, self._labels, strict=True):
            trainer.append(x, y)
        trainer.set_params(parameters)
        try:
            trainer.train(str(model))
        except _Enough:
            model.unlink(missing_ok=True)

    def tag(self, model: Path, data: Dataset) -> list[list[str]]:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        with tagger.open(str(model)):
            return labels_of(data, [tagger.tag(x) for x in items(data)])
