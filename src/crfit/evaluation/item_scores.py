"""Scores of a classifier, as JSON and as text.

Every item has one class and gets one, so that micro-averaged precision, recall and F1 all equal the accuracy.
Macro F1 is the unweighted mean over the classes that occur in the gold labels or in the prediction.
"""

from __future__ import annotations

from typing import Any

from crfit.evaluation.scores import Scores, confusion_lines, score_lines

__all__ = ["item_scores", "item_text"]


def item_scores(scores: Scores, n_confusions: int = 0) -> dict[str, Any]:
    """Give scores of items as plain numbers, strings, lists and dicts, ready for JSON.

    Parameters
    ----------
    scores : Scores
        Scores under the scheme ``tokens``, each item a token.
    n_confusions : int
        How many of the most frequent errors to list.

    Returns
    -------
    dict
        ``classes``, ``items`` and ``correct`` are counts; percentages are not rounded.
    """
    table = scores.to_dict(n_confusions)
    return {
        "accuracy": scores.accuracy,
        "macro_f1": scores.macro_f1,
        "micro_f1": scores.accuracy,
        "classes": table["labels"],
        "items": scores.n_tokens,
        "correct": scores.n_correct_tokens,
        "by_class": table["by_label"],
        "confusions": table["confusions"],
    }


def item_text(scores: Scores, n_confusions: int = 0) -> str:
    """Give scores of items as plain text: one line, then a table of the classes.

    Parameters
    ----------
    scores : Scores
        Scores under the scheme ``tokens``, each item a token.
    n_confusions : int
        How many of the most frequent errors to list.

    Returns
    -------
    str
    """
    lines = [
        f"processed {scores.n_tokens} items; correct: {scores.n_correct_tokens}.",
        f"accuracy and micro F1: {scores.accuracy:6.2f}%; macro F1: {scores.macro_f1:6.2f}",
        "",
        *score_lines("class", scores.by_label),
        *confusion_lines(scores, n_confusions, "items"),
    ]
    return "\n".join(lines) + "\n"
