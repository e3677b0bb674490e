"""Scores of predicted labels against gold labels, as objects, JSON and text.

Tokens: accuracy over all tokens, including ``O``, and the percentage of sequences without an error.
Spans: micro-averaged precision, recall and F1, counted as in conlleval (`crfit.evaluation.spans`).
Labels: precision, recall and F1 of each label over tokens, and the most frequent confusions.

With ``gold``, ``predicted`` and ``correct`` counts of spans or of tokens,

    precision P = 100 * correct / predicted,   recall R = 100 * correct / gold,   F1 = 2 P R / (P + R),

each 0 if its denominator is 0. Only counts are stored; percentages are computed from them and not rounded.
Tokens whose gold label is unknown to the model count as errors.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.checks import first_outside
from crfit.data.label_sets import runs_of
from crfit.data.label_texts import distinct_texts
from crfit.errors import DataError, OptionError
from crfit.evaluation.spans import OUTSIDE, Scheme, count_spans, resolve_scheme
from crfit.names import printable

#: Scores that can decide early stopping, a race or a search.
Metric: TypeAlias = Literal["f1", "accuracy", "sequence_accuracy"]
METRICS: tuple[Metric, ...] = get_args(Metric)


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
        """Percentage of the predicted that is correct; 0 if nothing was predicted."""
        return 100.0 * self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Percentage of the gold that was found; 0 if there is nothing to find."""
        return 100.0 * self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2.0 * self.precision * self.recall / total if total else 0.0

    def to_dict(self) -> dict[str, float | int]:
        """Percentages and counts, without the name."""
        names = ("precision", "recall", "f1", "gold", "predicted", "correct")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Confusion:
    """``count`` tokens with the gold label ``gold`` were labelled ``predicted``."""

    gold: str
    predicted: str
    count: int


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of predicted labels, from `evaluate`, `Model.evaluate` or `evaluate_ids`.

    Attributes
    ----------
    scheme : str
        How labels encode spans: ``conll``, ``iobes`` or ``tokens``.
    n_tokens, n_sequences : int
        Size of the data.
    n_correct_tokens, n_correct_sequences : int
        Number of tokens with the correct label, and of sequences without an error.
    overall : Score
        All spans together. With ``tokens``, all tokens except those labelled ``O``.
    by_type : tuple of Score
        One per type of span, sorted by name; empty with ``tokens``.
    by_label : tuple of Score
        One per label that occurs, in the order of the label names.
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
        """Percentage of tokens with the correct label."""
        return 100.0 * self.n_correct_tokens / self.n_tokens if self.n_tokens else 0.0

    @property
    def sequence_accuracy(self) -> float:
        """Percentage of sequences without an error."""
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
        """Unweighted mean of F1 over the types of spans, or over the labels with ``tokens``."""
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
        """The `n` most frequent errors, most frequent first."""
        names = self.labels
        pairs = zip(self.error_pairs[:n].tolist(), self.error_counts[:n].tolist(), strict=True)
        return tuple(Confusion(names[gold], names[guess], count) for (gold, guess), count in pairs)

    def to_dict(self, n_confusions: int = 10) -> dict[str, Any]:
        """Scores as JSON types.

        ``labels``, ``sequences`` and ``tokens`` are counts; percentages are not rounded. Includes the
        `n_confusions` most frequent errors.
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

        By default the table of `labels` is added only if there are no spans. Includes the `n_confusions` most
        frequent errors.
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
    names = [printable(row.name) or "(none)" for row in rows]
    width = max(map(len, (title, "(none)", *names))) if rows else len(title)
    head = f"{title:<{width}}  precision  recall      f1     gold  predicted  correct"
    return [head] + [
        f"{name:<{width}}  {row.precision:9.2f}  {row.recall:6.2f}  {row.f1:6.2f}"
        f"  {row.gold:7d}  {row.predicted:9d}  {row.correct:7d}"
        for name, row in zip(names, rows, strict=True)
    ]


def _confusion_lines(scores: Scores, n: int, unit: str) -> list[str]:
    """Aligned lines of the most frequent errors, after an empty line; empty without errors."""
    confusions = scores.top_confusions(n)
    if not confusions:
        return []
    pairs = [(printable(c.gold), printable(c.predicted)) for c in confusions]
    width = max(len("gold"), *(len(gold) for gold, _ in pairs))
    guess_width = max(len("predicted"), *(len(predicted) for _, predicted in pairs))
    head = f"{'gold':<{width}}  {'predicted':<{guess_width}}  {unit:>6}"
    rows = [
        f"{gold:<{width}}  {predicted:<{guess_width}}  {c.count:6d}"
        for (gold, predicted), c in zip(pairs, confusions, strict=True)
    ]
    return ["", head, *rows]


def item_scores(scores: Scores, n_confusions: int = 0) -> dict[str, Any]:
    """Scores of a classifier as JSON types; `scores` have the scheme ``tokens``, with items as tokens.

    Every item has one class and gets one, so micro-averaged precision, recall and F1 equal the accuracy.
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


def evaluate_ids(
    gold: ArrayLike,
    predicted: ArrayLike,
    seq_ptr: ArrayLike,
    label_names: Iterable[str],
    scheme: Scheme = "auto",
    sequences: NDArray[np.integer] | None = None,
) -> Scores:
    """Score predicted label ids, int[n_tokens]; sequence i is ``seq_ptr[i]:seq_ptr[i+1]``.

    `label_names` must be distinct; `scheme` defines how labels encode spans, ``auto`` detects it from them.
    Where labels of a sequence are not known, its parts are given like sequences, and `sequences`, ascending,
    says to which sequence each belongs.
    """
    names = list(label_names)
    if len(set(names)) != len(names):
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError(f"label {repeated!r} has two ids: label_names must be distinct")
    gold, predicted = _label_ids("gold", gold, names), _label_ids("predicted", predicted, names)
    if len(gold) != len(predicted):
        found = f"{len(gold)} gold labels but {len(predicted)} predicted labels"
        raise DataError(f"{found}: give one of each per token")
    seq_ptr = np.asarray(seq_ptr, dtype=np.int64)
    rises = seq_ptr.ndim == 1 and len(seq_ptr) > 0 and not (np.diff(seq_ptr) < 0).any()
    if not rises or seq_ptr[0] != 0 or seq_ptr[-1] != len(gold):
        raise DataError(f"seq_ptr must rise from 0 to the number of labels, {len(gold)}")
    resolved = resolve_scheme(scheme, names)

    wrong = gold != predicted
    wrong_before = np.concatenate(([0], np.cumsum(wrong)))
    wrong_in = np.diff(wrong_before[seq_ptr])
    if sequences is not None and len(wrong_in):
        wrong_in = np.add.reduceat(wrong_in, np.flatnonzero(np.diff(sequences, prepend=-1)))
    n_correct_sequences = int(np.count_nonzero(wrong_in == 0))

    n_labels = len(names)
    gold_counts = np.bincount(gold, minlength=n_labels)
    predicted_counts = np.bincount(predicted, minlength=n_labels)
    correct_counts = np.bincount(gold[~wrong], minlength=n_labels)
    occurs = np.flatnonzero(gold_counts + predicted_counts)
    by_label = tuple(
        Score(names[i], int(gold_counts[i]), int(predicted_counts[i]), int(correct_counts[i])) for i in occurs
    )
    # Pairs as one code each: only errors are sorted, and no n_labels^2 matrix is needed.
    rank = np.zeros(n_labels, dtype=np.int64)
    rank[occurs] = np.arange(len(occurs))
    codes, counts = np.unique(rank[gold[wrong]] * len(occurs) + rank[predicted[wrong]], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    codes = codes[order]
    error_pairs = np.stack(np.divmod(codes, max(len(occurs), 1)), axis=1)

    spans = count_spans(gold, predicted, seq_ptr, names, resolved)
    by_type = tuple(
        Score(name, int(g), int(p), int(c))
        for name, g, p, c in zip(spans.types, spans.gold, spans.predicted, spans.correct, strict=True)
    )
    return Scores(
        scheme=resolved,
        n_tokens=len(gold),
        n_sequences=len(wrong_in),
        n_correct_tokens=len(gold) - int(np.count_nonzero(wrong)),
        n_correct_sequences=n_correct_sequences,
        overall=Score("", int(spans.gold.sum()), int(spans.predicted.sum()), int(spans.correct.sum())),
        by_type=() if resolved == "tokens" else by_type,
        by_label=by_label,
        error_pairs=error_pairs.astype(np.int64),
        error_counts=counts[order].astype(np.int64),
    )


def _label_ids(name: str, values: ArrayLike, label_names: Sequence[str]) -> NDArray[np.int64]:
    """Check that ``values`` is a vector of ids of ``label_names``."""
    ids = np.asarray(values)
    if ids.ndim != 1 or (len(ids) and not np.issubdtype(ids.dtype, np.integer)):
        raise OptionError(name, ids.shape, f"give a 1-D array of label ids, not {ids.dtype} of this shape")
    ids = ids.astype(np.int64, copy=False)
    position = first_outside(ids, len(label_names))
    if position is not None:
        raise DataError(
            f"{name} label id {ids[position]} at token {position} has no name; "
            f"there are {len(label_names)} label names"
        )
    return ids


def evaluate(
    gold: Sequence[Sequence[Hashable]], predicted: Sequence[Sequence[Hashable]], scheme: Scheme = "auto"
) -> Scores:
    """Score predicted labels.

    Parameters
    ----------
    gold, predicted : sequence of sequences of labels
        Labels of each sequence; the numbers of sequences and their lengths must match. Labels that are not
        str, such as numbers, are scored and listed by their text, ``str(label)``. Positions whose gold label
        is None or a set are not scored.
    scheme : {"auto", "conll", "iobes", "tokens"}
        How labels encode spans, see `crfit.evaluation.spans`; ``auto`` detects it from the labels.

    Returns
    -------
    Scores
        Accuracy, span F1 and tables; ``by_label`` is sorted by label.

    Raises
    ------
    DataError
        The numbers of sequences or labels differ, or two labels have the same text.

    Examples
    --------
    >>> scores = evaluate([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]])
    >>> round(scores.accuracy, 2), scores.f1
    (66.67, 0.0)
    """
    if len(gold) != len(predicted):
        raise DataError(
            f"{len(gold)} gold sequences but {len(predicted)} predicted sequences: the two must match"
        )
    lengths = np.fromiter(map(len, gold), dtype=np.int64, count=len(gold))
    guess_lengths = np.fromiter(map(len, predicted), dtype=np.int64, count=len(gold))
    if (lengths != guess_lengths).any():
        i = int(np.flatnonzero(lengths != guess_lengths)[0])
        raise DataError(f"{lengths[i]} gold labels but {guess_lengths[i]} predicted labels", sequence=i)
    seq_ptr = np.concatenate(([0], np.cumsum(lengths)))
    unknown = set(map(type, chain.from_iterable(gold))) & {type(None), set, frozenset}
    if unknown:
        known = np.array([not isinstance(one, set | frozenset | None) for one in chain.from_iterable(gold)])
        if not known.any():
            raise DataError("no label is known, so there is nothing to score against: give labels")
        at, seq_ptr, sequences = runs_of(known, seq_ptr)
        gold, predicted = (
            [[each[n] for n in at.tolist()]]
            for each in (list(chain.from_iterable(gold)), list(chain.from_iterable(predicted)))
        )
    seen: set[Hashable] = set().union(*gold, *predicted)
    if None in seen:
        raise DataError("a predicted label is None: leave out the positions without a label")
    texts: dict[Hashable, str] = {label: label for label in seen if type(label) is str}
    if len(texts) < len(seen):
        texts = distinct_texts(chain(gold, predicted))
    names = sorted(texts.values())
    number = {name: i for i, name in enumerate(names)}
    ids = {label: number[text] for label, text in texts.items()}
    n_tokens = sum(map(len, gold))
    gold_ids, predicted_ids = (
        np.fromiter((ids[label] for label in chain.from_iterable(side)), dtype=np.int64, count=n_tokens)
        for side in (gold, predicted)
    )
    return evaluate_ids(gold_ids, predicted_ids, seq_ptr, names, scheme, sequences if unknown else None)
