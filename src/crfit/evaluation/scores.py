"""Records of scores: percentages, tables by type and by label, confusions; as data, JSON and plain text.

With ``gold``, ``predicted`` and ``correct`` counts of spans or of tokens,

    precision P = 100 * correct / predicted,   recall R = 100 * correct / gold,   F1 = 2 P R / (P + R),

each 0 when its denominator is 0. Only counts are stored; the percentages follow and are never rounded here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crfit.evaluation.spans import OUTSIDE


@dataclass(frozen=True)
class Score:
    """Precision, recall and F1 of one type of span or of one label.

    `gold`, `predicted` and `correct` count spans (of a type) or tokens (of a label) in the gold data, in the
    prediction, and in both.
    """

    name: str
    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        """Percentage of what was predicted that is right; 0 when nothing was predicted."""
        return 100.0 * self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Percentage of what is in the gold data that was found; 0 when there is nothing to find."""
        return 100.0 * self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2.0 * self.precision * self.recall / total if total else 0.0

    def to_dict(self) -> dict[str, float | int]:
        """Figures and counts, without the name."""
        names = ("precision", "recall", "f1", "gold", "predicted", "correct")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Confusion:
    """``count`` tokens of gold label ``gold`` were labelled ``predicted``."""

    gold: str
    predicted: str
    count: int


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of a prediction against the gold labels; made by `evaluate` and `evaluate_ids`.

    Attributes
    ----------
    scheme : str
        How spans were read: ``conll``, ``iobes`` or ``tokens``.
    n_tokens, n_sequences : int
        Size of the data.
    n_correct_tokens, n_correct_sequences : int
        Tokens with the right label, and sequences without a wrong one.
    overall : Score
        All spans together. Under ``tokens``, all tokens but those labelled ``O``.
    by_type : tuple of Score
        One for each type of span, sorted by name; empty under ``tokens``.
    by_label : tuple of Score
        One for each label that occurs, in the order of the label names.
    error_pairs : ndarray of int64, shape (n_pairs, 2)
        Wrongly labelled tokens as (gold, predicted) indices into ``by_label``, most frequent pair first.
    error_counts : ndarray of int64, shape (n_pairs,)
        Number of tokens of each pair.
    """

    scheme: str
    n_tokens: int
    n_sequences: int
    n_correct_tokens: int
    n_correct_sequences: int
    overall: Score
    by_type: tuple[Score, ...]
    by_label: tuple[Score, ...]
    error_pairs: NDArray[np.int64]
    error_counts: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """Percentage of tokens with the right label."""
        return 100.0 * self.n_correct_tokens / self.n_tokens if self.n_tokens else 0.0

    @property
    def sequence_accuracy(self) -> float:
        """Percentage of sequences without a wrong label."""
        return 100.0 * self.n_correct_sequences / self.n_sequences if self.n_sequences else 0.0

    @property
    def precision(self) -> float:
        """Percentage of the predicted spans that are correct."""
        return self.overall.precision

    @property
    def recall(self) -> float:
        """Percentage of the gold spans that were found."""
        return self.overall.recall

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return self.overall.f1

    @property
    def macro_f1(self) -> float:
        """Unweighted mean of F1 over the types of spans, or over the labels under ``tokens``."""
        table = self.by_label if self.scheme == "tokens" else self.by_type
        return sum(score.f1 for score in table) / len(table) if table else 0.0

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that occur in the gold data or in the prediction."""
        return tuple(score.name for score in self.by_label)

    def confusion(self) -> NDArray[np.int64]:
        """Matrix of token counts, int64, rows gold and columns predicted, both in the order of `labels`."""
        matrix = np.diag(np.array([score.correct for score in self.by_label], dtype=np.int64))
        matrix[self.error_pairs[:, 0], self.error_pairs[:, 1]] = self.error_counts
        return matrix

    def top_confusions(self, n: int = 10) -> tuple[Confusion, ...]:
        """The `n` most frequent errors, the most frequent first."""
        names = self.labels
        pairs = zip(self.error_pairs[:n].tolist(), self.error_counts[:n].tolist(), strict=True)
        return tuple(Confusion(names[gold], names[guess], count) for (gold, guess), count in pairs)

    def to_dict(self, n_confusions: int = 10) -> dict[str, Any]:
        """Scores as plain numbers, strings, lists and dicts, ready for JSON.

        ``labels``, ``sequences`` and ``tokens`` are counts; percentages are not rounded. `n_confusions` of
        the most frequent errors are listed.
        """
        percentages = ("accuracy", "precision", "recall", "f1", "macro_f1", "sequence_accuracy")
        return {
            **{name: getattr(self, name) for name in percentages},
            "labels": len(self.by_label),
            "sequences": self.n_sequences,
            "tokens": self.n_tokens,
            "scheme": self.scheme,
            "gold": self.overall.gold,
            "predicted": self.overall.predicted,
            "correct": self.overall.correct,
            "by_type": {score.name: score.to_dict() for score in self.by_type},
            "by_label": {score.name: score.to_dict() for score in self.by_label},
            "confusions": [
                {"gold": c.gold, "predicted": c.predicted, "count": c.count}
                for c in self.top_confusions(n_confusions)
            ],
        }

    def to_text(self, *, labels: bool | None = None, n_confusions: int = 0) -> str:
        """Plain text: conlleval's first two lines, then aligned tables.

        By default the table of `labels` is added only where there are no spans. `n_confusions` of the most
        frequent errors are listed.
        """
        if self.scheme == "tokens":
            lines = [
                f"processed {self.n_tokens} tokens in {self.n_sequences} sequences; "
                f"correct: {self.n_correct_tokens} tokens, {self.n_correct_sequences} sequences.",
                f"accuracy: {self.accuracy:6.2f}%; sequence accuracy: {self.sequence_accuracy:6.2f}%; "
                f"macro F1: {self.macro_f1:6.2f}",
            ]
            if OUTSIDE in self.labels:
                lines.append(
                    f"without {OUTSIDE}: precision: {self.precision:6.2f}%; recall: {self.recall:6.2f}%; "
                    f"F1: {self.f1:6.2f}"
                )
        else:
            lines = [
                f"processed {self.n_tokens} tokens with {self.overall.gold} phrases; "
                f"found: {self.overall.predicted} phrases; correct: {self.overall.correct}.",
                f"accuracy: {self.accuracy:6.2f}%; precision: {self.precision:6.2f}%; "
                f"recall: {self.recall:6.2f}%; FB1: {self.f1:6.2f}",
                f"sequence accuracy: {self.sequence_accuracy:6.2f}% of {self.n_sequences} sequences",
            ]
        if self.by_type:
            lines += ["", *_score_lines("type", self.by_type)]
        if (self.scheme == "tokens") if labels is None else labels:
            lines += ["", *_score_lines("label", self.by_label)]
        lines += _confusion_lines(self, n_confusions, "tokens")
        return "\n".join(lines) + "\n"


def _score_lines(title: str, rows: Sequence[Score]) -> list[str]:
    """Aligned lines of a table of scores; a type without a name is shown as ``(none)``."""
    width = max(len(title), len("(none)"), *(len(row.name) for row in rows)) if rows else len(title)
    head = f"{title:<{width}}  precision  recall      f1     gold  predicted  correct"
    return [head] + [
        f"{row.name or '(none)':<{width}}  {row.precision:9.2f}  {row.recall:6.2f}  {row.f1:6.2f}"
        f"  {row.gold:7d}  {row.predicted:9d}  {row.correct:7d}"
        for row in rows
    ]


def _confusion_lines(scores: Scores, n: int, unit: str) -> list[str]:
    """Aligned lines of the most frequent errors, after an empty one; none if there are no errors."""
    confusions = scores.top_confusions(n)
    if not confusions:
        return []
    width = max(len("gold"), *(len(c.gold) for c in confusions))
    guess_width = max(len("predicted"), *(len(c.predicted) for c in confusions))
    head = f"{'gold':<{width}}  {'predicted':<{guess_width}}  {unit:>6}"
    rows = [f"{c.gold:<{width}}  {c.predicted:<{guess_width}}  {c.count:6d}" for c in confusions]
    return ["", head, *rows]


def item_scores(scores: Scores, n_confusions: int = 0) -> dict[str, Any]:
    """Scores of a classifier, ready for JSON; `scores` have the scheme ``tokens``, an item being a token.

    Every item has one class and gets one, so that micro-averaged precision, recall and F1 equal the accuracy.
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
    """`item_scores` as plain text: one line, then a table of the classes."""
    lines = [
        f"processed {scores.n_tokens} items; correct: {scores.n_correct_tokens}.",
        f"accuracy and micro F1: {scores.accuracy:6.2f}%; macro F1: {scores.macro_f1:6.2f}",
        "",
        *_score_lines("class", scores.by_label),
        *_confusion_lines(scores, n_confusions, "items"),
    ]
    return "\n".join(lines) + "\n"
