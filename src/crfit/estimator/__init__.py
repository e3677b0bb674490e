"""Estimators in scikit-learn's style."""

from crfit.estimator.base import NotFittedError
from crfit.estimator.estimator import CRF
from crfit.estimator.log_linear import LogLinear

__all__ = ["CRF", "LogLinear", "NotFittedError"]
