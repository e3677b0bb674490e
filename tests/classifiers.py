"""Problems for tests of classifiers, and their objective in its own words."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from crfit import Stop

TIGHT = Stop(grad_inf=1e-8)
quiet = pytest.mark.filterwarnings("ignore::crfit.errors.ConvergenceWarning")


def problem(n=60, n_features=7, n_classes=3, seed=0):
    """Counts that are not negative, so that every trainer takes them, half of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, (n, n_features)).astype(float)
    scores = X @ rng.normal(size=(n_features, n_classes)) + rng.gumbel(size=(n, n_classes))
    y = scores.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def objective_of(X, y, coef, intercept, l2=1.0, weights=1.0, one_vs_rest=False):
    """F in its own words; `coef` and `intercept` as in scikit-learn."""
    scores = X @ np.atleast_2d(coef).T + intercept
    if one_vs_rest:
        signs = np.where(y[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
        losses = -np.log(expit(signs * scores)).sum(axis=1)
    else:
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        losses = -log_softmax(scores, axis=1)[np.arange(len(y)), y]
    return float((weights * losses).sum() + 0.5 * l2 * np.square(coef).sum())
