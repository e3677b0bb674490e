"""Estimators in scikit-learn's style."""

from crfit.estimators.crf import CRF
from crfit.estimators.log_linear import LogLinear
from crfit.estimators.sklearn_api import NotFittedError

__all__ = ["CRF", "LogLinear", "NotFittedError"]
