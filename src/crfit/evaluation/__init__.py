"""Scores of predicted labels: accuracy, span F1 as in conlleval, tables."""

from crfit.evaluation.scores import Scores, evaluate, evaluate_ids

__all__ = ["Scores", "evaluate", "evaluate_ids"]
