"""Scores over all tokens of all sequences, from scikit-learn's metrics; and over whole sequences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from crfit.compat.sklearn_crfsuite.utils import flatten

if TYPE_CHECKING:
    from sklearn import metrics as sklearn_metrics
else:
    try:
        from sklearn import metrics as sklearn_metrics
    except ImportError:
        raise ImportError("these metrics need scikit-learn: pip install 'crfit[sklearn]'") from None

__all__ = [
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
    "flatten",
    "sequence_accuracy_score",
]


def flat_accuracy_score(y_true: Iterable[Any], y_pred: Iterable[Any], **kwargs: Any) -> float:
    """Return ``sklearn.metrics.accuracy_score`` of all tokens."""
    return float(sklearn_metrics.accuracy_score(flatten(y_true), flatten(y_pred), **kwargs))


def flat_precision_score(y_true: Iterable[Any], y_pred: Iterable[Any], **kwargs: Any) -> Any:
    """Return ``sklearn.metrics.precision_score`` of all tokens."""
    return sklearn_metrics.precision_score(flatten(y_true), flatten(y_pred), **kwargs)


def flat_recall_score(y_true: Iterable[Any], y_pred: Iterable[Any], **kwargs: Any) -> Any:
    """Return ``sklearn.metrics.recall_score`` of all tokens."""
    return sklearn_metrics.recall_score(flatten(y_true), flatten(y_pred), **kwargs)


def flat_f1_score(y_true: Iterable[Any], y_pred: Iterable[Any], **kwargs: Any) -> Any:
    """Return ``sklearn.metrics.f1_score`` of all tokens."""
    return sklearn_metrics.f1_score(flatten(y_true), flatten(y_pred), **kwargs)


def flat_fbeta_score(y_true: Iterable[Any], y_pred: Iterable[Any], beta: float, **kwargs: Any) -> Any:
    """Return ``sklearn.metrics.fbeta_score`` of all tokens."""
    return sklearn_metrics.fbeta_score(flatten(y_true), flatten(y_pred), beta=beta, **kwargs)


def flat_classification_report(
    y_true: Iterable[Any], y_pred: Iterable[Any], labels: Any = None, **kwargs: Any
) -> Any:
    """Return ``sklearn.metrics.classification_report`` of all tokens."""
    return sklearn_metrics.classification_report(flatten(y_true), flatten(y_pred), labels=labels, **kwargs)


def sequence_accuracy_score(y_true: Iterable[Any], y_pred: Iterable[Any]) -> float:
    """Return the fraction of sequences without an error; 0 if there are no sequences."""
    right = [list(true) == list(found) for true, found in zip(y_true, y_pred, strict=True)]
    return sum(right) / len(right) if right else 0.0
