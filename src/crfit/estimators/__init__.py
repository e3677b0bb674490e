"""Estimators with scikit-learn's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crfit.estimators.crf import CRF
from crfit.estimators.sklearn_api import NotFittedError

if TYPE_CHECKING:
    from crfit.estimators.log_linear import LogLinear

__all__ = ["CRF", "LogLinear", "NotFittedError"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import LogLinear on first use, because CRF does not need it."""
        if name == "LogLinear":
            from crfit.estimators.log_linear import LogLinear

            return LogLinear
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
