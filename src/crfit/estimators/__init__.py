"""Estimators with scikit-learn's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crfit.estimators.crf import CRF
from crfit.estimators.sklearn_api import NotFittedError

if TYPE_CHECKING:
    from crfit.estimators.cross_validation import CRFCV, LogLinearCV
    from crfit.estimators.log_linear import LogLinear

__all__ = ["CRF", "CRFCV", "LogLinear", "LogLinearCV", "NotFittedError"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import estimators that CRF does not need on first use."""
        if name == "LogLinear":
            from crfit.estimators.log_linear import LogLinear

            return LogLinear
        if name in ("CRFCV", "LogLinearCV"):
            from crfit.estimators import cross_validation

            return getattr(cross_validation, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
