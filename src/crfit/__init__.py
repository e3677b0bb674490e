"""Train linear-chain conditional random fields to the optimum, fast, and tag with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

from crfit import callbacks, errors, text, trainers
from crfit.dataset import Dataset
from crfit.engines import make_inference, make_objective
from crfit.evaluation import evaluate
from crfit.model import Model, load
from crfit.racing import RaceResult, race
from crfit.runs import Result
from crfit.stopping import Progress, Stop, StopReason
from crfit.threads import cpu_level
from crfit.training import train

if TYPE_CHECKING:
    from crfit.estimator import CRF

__all__ = [
    "CRF",
    "Dataset",
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


if not TYPE_CHECKING:  # a type checker would take any name for good

    def __getattr__(name: str) -> Any:
        """Import the estimator when it is asked for: it brings scikit-learn along where that is installed."""
        if name == "CRF":
            from crfit.estimator import CRF

            return CRF
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
