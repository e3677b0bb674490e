"""How well predicted labels agree with gold labels.

Tokens: accuracy over all of them, ``O`` included, and the share of sequences without an error.
Spans: micro-averaged precision, recall and F1, spans as conlleval counts them (`crfit.evaluation.spans`).
Labels: precision, recall and F1 of each label over tokens, and which labels are confused with which.

All of it comes from flat arrays of label ids by a few array operations over the whole data. A gold label that
the model does not know is a label like any other: its tokens count as errors.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.checks import first_outside
from crfit.errors import DataError, OptionError
from crfit.evaluation.scores import Confusion, Score, Scores
from crfit.evaluation.spans import Scheme, count_spans, resolve_scheme

__all__ = ["Confusion", "Score", "Scores", "evaluate", "evaluate_ids"]


def evaluate_ids(
    gold: ArrayLike,
    predicted: ArrayLike,
    seq_ptr: ArrayLike,
    label_names: Iterable[str],
    scheme: Scheme = "auto",
) -> Scores:
    """Score predicted label ids, int[n_tokens]; ``seq_ptr[i]`` is where sequence i starts, the end included.

    `label_names` are all different; `scheme` says how labels are read as spans, ``auto`` decides from the
    names.
    """
    names = list(label_names)
    if len(set(names)) != len(names):
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError(f"label {repeated!r} has two ids; label_names must be all different")
    gold, predicted = _label_ids("gold", gold, names), _label_ids("predicted", predicted, names)
    if len(gold) != len(predicted):
        found = f"{len(gold)} gold labels but {len(predicted)} predicted ones"
        raise DataError(f"{found}; give one for each token")
    seq_ptr = np.asarray(seq_ptr, dtype=np.int64)
    rises = seq_ptr.ndim == 1 and len(seq_ptr) > 0 and not (np.diff(seq_ptr) < 0).any()
    if not rises or seq_ptr[0] != 0 or seq_ptr[-1] != len(gold):
        raise DataError(f"seq_ptr must rise from 0 to the number of labels, {len(gold)}")
    resolved = resolve_scheme(scheme, names)

    wrong = gold != predicted
    wrong_before = np.concatenate(([0], np.cumsum(wrong)))
    n_correct_sequences = int(np.count_nonzero(np.diff(wrong_before[seq_ptr]) == 0))

    n_labels = len(names)
    gold_counts = np.bincount(gold, minlength=n_labels)
    predicted_counts = np.bincount(predicted, minlength=n_labels)
    correct_counts = np.bincount(gold[~wrong], minlength=n_labels)
    occurs = np.flatnonzero(gold_counts + predicted_counts)
    by_label = tuple(
        Score(names[i], int(gold_counts[i]), int(predicted_counts[i]), int(correct_counts[i])) for i in occurs
    )
    # Pairs as one code each: only the errors are sorted, and no n_labels^2 matrix is made unless asked for.
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
        n_sequences=len(seq_ptr) - 1,
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
        raise OptionError(name, ids.shape, f"a vector of label ids is needed, not {ids.dtype} of this shape")
    ids = ids.astype(np.int64, copy=False)
    position = first_outside(ids, len(label_names))
    if position is not None:
        raise DataError(
            f"{name} label id {ids[position]} at token {position} has no name; "
            f"there are {len(label_names)} label names"
        )
    return ids


def evaluate(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], scheme: Scheme = "auto"
) -> Scores:
    """Score predicted labels.

    Parameters
    ----------
    gold, predicted : sequence of sequences of str
        Labels of each sequence; sequences and their lengths must match.
    scheme : {"auto", "conll", "iobes", "tokens"}
        How labels are read as spans, see `crfit.evaluation.spans`; ``auto`` decides from the labels of both.

    Returns
    -------
    Scores
        ``by_label`` is sorted by label.

    Examples
    --------
    >>> scores = evaluate([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]])
    >>> round(scores.accuracy, 2), scores.f1
    (66.67, 0.0)
    """
    if len(gold) != len(predicted):
        raise DataError(f"{len(gold)} gold sequences but {len(predicted)} predicted ones")
    lengths = np.fromiter(map(len, gold), dtype=np.int64, count=len(gold))
    guess_lengths = np.fromiter(map(len, predicted), dtype=np.int64, count=len(gold))
    if (lengths != guess_lengths).any():
        i = int(np.flatnonzero(lengths != guess_lengths)[0])
        raise DataError(f"{lengths[i]} gold labels but {guess_lengths[i]} predicted ones", sequence=i)
    names = sorted(set().union(*gold, *predicted))
    ids = {name: i for i, name in enumerate(names)}
    n_tokens = int(lengths.sum())
    gold_ids, predicted_ids = (
        np.fromiter((ids[label] for label in chain.from_iterable(side)), dtype=np.int64, count=n_tokens)
        for side in (gold, predicted)
    )
    seq_ptr = np.concatenate(([0], np.cumsum(lengths)))
    return evaluate_ids(gold_ids, predicted_ids, seq_ptr, names, scheme)
