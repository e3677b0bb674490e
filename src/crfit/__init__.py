"""Train linear-chain conditional random fields to the optimum, fast, and tag with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

#: Version of the package (semantic versioning).
__version__ = "0.1.0"

from crfit import errors, trainers
from crfit.data import Dataset, text
from crfit.engines import make_inference, make_objective
from crfit.evaluation import evaluate
from crfit.model import Model, load
from crfit.racing import RaceResult, race
from crfit.threads import cpu_level
from crfit.training import callbacks
from crfit.training.loop import train
from crfit.training.records import Result
from crfit.training.stopping import Progress, Stop, StopReason

if TYPE_CHECKING:
    from crfit.estimators import CRF, LogLinear

__all__ = [
    "CRF",
    "Dataset",
    "LogLinear",
    "Model",
    "Progress",
    "RaceResult",
    "Result",
    "Stop",
    "StopReason",
    "__version__",
    "callbacks",
    "cpu_level",
    "errors",
    "evaluate",
    "load",
    "make_inference",
    "make_objective",
    "race",
    "text",
    "train",
    "trainers",
]


if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Import the estimators on first use, because they import scikit-learn if it is installed."""
        if name in ("CRF", "LogLinear"):
            from crfit import estimators

            return getattr(estimators, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
