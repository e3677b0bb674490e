"""The estimator in scikit-learn's style."""

from crfit.estimator.estimator import CRF, NotFittedError

__all__ = ["CRF", "NotFittedError"]
