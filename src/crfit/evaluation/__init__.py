"""How good are predicted labels: accuracy, spans as conlleval counts them, tables."""

from crfit.evaluation.scores import Scores, evaluate, evaluate_ids

__all__ = ["Scores", "evaluate", "evaluate_ids"]
