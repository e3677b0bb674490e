"""Scorers for ``cross_val_score`` and grid searches."""

from sklearn.metrics import make_scorer

from crfit.compat.sklearn_crfsuite import metrics

__all__ = ["flat_accuracy", "sequence_accuracy"]

#: Fraction of tokens with the correct label.
flat_accuracy = make_scorer(metrics.flat_accuracy_score)
#: Fraction of sequences without an error.
sequence_accuracy = make_scorer(metrics.sequence_accuracy_score)
