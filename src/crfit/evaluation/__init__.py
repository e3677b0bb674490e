"""How good are predicted labels: accuracy, spans as conlleval counts them, tables."""

from crfit.evaluation.evaluation import evaluate, evaluate_ids
from crfit.evaluation.scores import Scores

__all__ = ["Scores", "evaluate", "evaluate_ids"]
