"""Train linear-chain conditional random fields to the optimum, fast, and tag with them."""

from __future__ import annotations

#: Version of the package (semantic versioning).
__version__ = "0.1.0"

TYPE_CHECKING = False  # importing it from typing takes longer than the rest of this file
if TYPE_CHECKING:
    from typing import Any

    from crfit import errors, features, scorers, trainers
    from crfit.data import Dataset, text
    from crfit.engines import make_inference, make_objective
    from crfit.engines.cluster import Cluster
    from crfit.estimators import CRF, CRFCV, LogLinear, LogLinearCV
    from crfit.evaluation import evaluate
    from crfit.model import Model, load
    from crfit.racing import RaceResult, race
    from crfit.threads import cpu_level
    from crfit.training import callbacks
    from crfit.training.loop import train
    from crfit.training.records import Result
    from crfit.training.stopping import Progress, Stop, StopReason
    from crfit.tuning.path import path

__all__ = [
    "CRF",
    "CRFCV",
    "Cluster",
    "Dataset",
    "LogLinear",
    "LogLinearCV",
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
    "features",
    "load",
    "make_inference",
    "make_objective",
    "path",
    "race",
    "scorers",
    "text",
    "train",
    "trainers",
]

# Modules are imported on first use, so that programs that only tag start fast.
_MODULES = {
    "CRF": "estimators",
    "CRFCV": "estimators",
    "Cluster": "engines.cluster",
    "Dataset": "data",
    "LogLinear": "estimators",
    "LogLinearCV": "estimators",
    "Model": "model",
    "Progress": "training.stopping",
    "RaceResult": "racing",
    "Result": "training.records",
    "Stop": "training.stopping",
    "StopReason": "training.stopping",
    "callbacks": "training",
    "cpu_level": "threads",
    "evaluate": "evaluation",
    "load": "model",
    "make_inference": "engines",
    "make_objective": "engines",
    "path": "tuning.path",
    "race": "racing",
    "text": "data",
    "train": "training.loop",
}
_FOLDERS = {
    *("data", "engines", "errors", "evaluation", "features", "layout", "model", "racing", "scorers"),
    *("trainers", "training", "tuning"),
}

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Import the module of a name on first use."""
        from importlib import import_module

        if name in _FOLDERS:
            return import_module(f"crfit.{name}")
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"crfit.{_MODULES[name]}")
        found = getattr(module, name, None)
        if found is None:  # a module of its own
            found = import_module(f"{module.__name__}.{name}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_FOLDERS})
