"""Scorers for ``cross_val_score`` and grid searches."""

# From our metrics, which say what to do if scikit-learn is missing.
from crfit.compat.sklearn_crfsuite.metrics import (  # type: ignore[attr-defined]
    flat_accuracy_score,
    sequence_accuracy_score,
    sklearn_metrics,
)

__all__ = ["flat_accuracy", "sequence_accuracy"]

#: Fraction of tokens with the correct label.
flat_accuracy = sklearn_metrics.make_scorer(flat_accuracy_score)
#: Fraction of sequences without an error.
sequence_accuracy = sklearn_metrics.make_scorer(sequence_accuracy_score)
