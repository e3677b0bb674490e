"""Scorers for scikit-learn's ``cross_val_score`` and searches: ``scoring=crfit.scorers.f1``.

A scorer is called with a fitted estimator, a `CRF` or a pipeline that ends in one, and labelled data. It
returns a number between 0 and 1, where larger is better, as scikit-learn's own scorers do. scikit-learn has
no way to register a scorer under a name, so pass the function itself.
"""

from collections.abc import Hashable, Sequence
from typing import Any

from crfit.evaluation import evaluate
from crfit.evaluation.scores import METRICS

__all__ = ["accuracy", "all_scores", "f1", "sequence_accuracy"]


def f1(estimator: Any, X: Any, y: Sequence[Sequence[Hashable]]) -> float:
    """Return the F1 of spans, counted as in conlleval.

    Parameters
    ----------
    estimator : estimator
        A fitted `CRF`, or a pipeline that ends in one.
    X : sequence of sequences of items
        As in `CRF.predict`.
    y : sequence of sequences of labels
        True labels. The label names decide how they encode spans, see `crfit.evaluation.spans`; without spans
        every token that is not labelled ``O`` counts as one.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV  # doctest: +SKIP
    >>> search = GridSearchCV(crfit.CRF(), {"l2": [0.1, 1.0]}, scoring=crfit.scorers.f1)  # doctest: +SKIP
    """
    return all_scores(estimator, X, y)["f1"]


def accuracy(estimator: Any, X: Any, y: Sequence[Sequence[Hashable]]) -> float:
    """Return the share of tokens with the correct label; the same as `CRF.score`.

    Parameters
    ----------
    estimator, X, y
        As in `f1`.

    Returns
    -------
    float
        Between 0 and 1.
    """
    return all_scores(estimator, X, y)["accuracy"]


def sequence_accuracy(estimator: Any, X: Any, y: Sequence[Sequence[Hashable]]) -> float:
    """Return the share of sequences in which every label is correct.

    Parameters
    ----------
    estimator, X, y
        As in `f1`.

    Returns
    -------
    float
        Between 0 and 1.
    """
    return all_scores(estimator, X, y)["sequence_accuracy"]


def all_scores(estimator: Any, X: Any, y: Sequence[Sequence[Hashable]]) -> dict[str, float]:
    """Return all three scores from one prediction, for searches with several metrics.

    Parameters
    ----------
    estimator, X, y
        As in `f1`.

    Returns
    -------
    dict of str to float
        ``f1``, ``accuracy`` and ``sequence_accuracy``, between 0 and 1. A search needs ``refit="f1"`` or
        another of these names.
    """
    scores = evaluate(y, estimator.predict(X))
    return {name: getattr(scores, name) / 100.0 for name in METRICS}
