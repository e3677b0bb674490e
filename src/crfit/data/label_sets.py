"""Labels that single positions may have.

In training they are partial labels: the loss of a sequence is minus the log of the total probability of all
label sequences that agree with them. In tagging they come from a dictionary or from a person's corrections.

With q_t(y) = 1 if label y is possible at position t and 0 otherwise, the loss of a sequence is

    -log sum_y p(y | x; w) prod_t q_t(y_t)

and a label that is right with certainty c has q_t(y) = 1 for itself and 1 - c for every other label. The
scores below are log q. Positions with a known label have no set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crfit.checks import offsets, place
from crfit.data.alphabet import Alphabet
from crfit.errors import DataError, OptionError

if TYPE_CHECKING:
    from crfit.data.dataset import Dataset

#: Labels that a position may have: a name or several.
Names: TypeAlias = str | Iterable[str]


class LabelSets(NamedTuple):
    """Sets of labels, and the positions that have one.

    `rows`, int32[N], is the set of each position, -1 for none. `scores`, float64[M, Y], are added to the
    scores of the labels: 0 for a member of the set, minus infinity for any other label, and log(1 - c) for a
    label that is wrong with certainty c.
    """

    rows: NDArray[np.int32]
    scores: NDArray[np.float64]

    def by_position(self, labels: NDArray[np.int32] | None = None) -> NDArray[np.float64]:
        """The scores of every position, float64[N, Y].

        Positions without a set may have any label, or only their own if `labels` are given.
        """
        none = np.zeros((1, self.scores.shape[1]))
        found = np.concatenate([self.scores, none])[self.rows]  # row -1 is the last
        if labels is not None:
            known = np.flatnonzero(self.rows < 0)
            found[known] = -np.inf
            found[known, labels[known]] = 0.0
        return found

    def without_single(self) -> LabelSets | None:
        """The same without sets of one label, whose positions have a known label; None without any set."""
        allowed = np.isfinite(self.scores)
        single = np.append((allowed.sum(axis=1) == 1) & ~allowed.all(axis=1), False)
        rows = np.where(single[self.rows], -1, self.rows).astype(np.int32)
        return LabelSets(rows, self.scores) if (rows >= 0).any() else None

    def with_known(self, labels: NDArray[np.int32]) -> LabelSets:
        """Sets of all positions: the members of a set, or the known label."""
        known = np.concatenate([self.scores == 0.0, np.eye(self.scores.shape[1], dtype=bool)])
        rows = np.where(self.rows < 0, len(self.scores) + labels, self.rows).astype(np.int32)
        return LabelSets(rows, np.where(known, 0.0, -np.inf))

    @property
    def single(self) -> NDArray[np.bool_]:
        """Positions with a known label or a preferred one, bool[N]."""
        return np.append((self.scores == 0.0).sum(axis=1) == 1, True)[self.rows]


def make_label_sets(names: Sequence[str], lengths: Sequence[int], allowed: Iterable[Any]) -> LabelSets | None:
    """Sets from one mapping per sequence, from positions to a label or several; None without any.

    Negative positions count from the end.
    """
    ids = {name: i for i, name in enumerate(names)}
    known: dict[bytes, int] = {}
    sets: list[NDArray[np.bool_]] = []
    rows = np.full(sum(lengths), -1, dtype=np.int32)
    begin = 0
    for sequence, (length, given) in enumerate(zip(lengths, allowed, strict=True)):
        if given is not None and not isinstance(given, Mapping):
            remedy = "give a mapping from positions to labels, as {2: 'B-CITY'}"
            raise OptionError("fixed", type(given).__name__, remedy)
        for position, labels in (given or {}).items():
            if isinstance(position, bool) or not isinstance(position, int | np.integer):
                raise OptionError("position", position, "give the number of a position, from 0 on")
            if not -length <= position < length:
                message = f"labels are given for position {position}, but there are {length} positions"
                raise DataError(message, sequence=sequence)
            found = members("label", labels, ids)
            row = known.setdefault(found.tobytes(), len(sets))
            if row == len(sets):
                sets.append(found)
            rows[begin + position % length] = row
        begin += length
    return LabelSets(rows, np.where(sets, 0.0, -np.inf)) if sets else None


def members(option: str, labels: Names, ids: Mapping[str, int]) -> NDArray[np.bool_]:
    """Which labels are named, bool[Y]; OptionError for an unknown name."""
    found = np.zeros(len(ids), dtype=bool)
    if not isinstance(labels, Iterable):
        raise OptionError(option, type(labels).__name__, "give a label or a list of labels")
    for name in [labels] if isinstance(labels, str) else labels:
        if not isinstance(name, str) or name not in ids:
            known = ", ".join(sorted(ids)[:10]) + (", ..." if len(ids) > 10 else "")
            raise OptionError(option, name, f"the model has no such label; it has {known}")
        found[ids[name]] = True
    return found


def read_partial(
    y: Sequence[Any], labels: NDArray[np.int32], seq_ptr: NDArray[np.int64], alphabet: Alphabet, flat: bool
) -> tuple[NDArray[np.int32], LabelSets | None]:
    """Labels and sets where `labels` is -1, from None (any label) or a set of str in `y`.

    Labels that occur only in sets are added to the alphabet.
    """
    known: dict[frozenset[str] | None, int] = {}
    rows = np.full(len(labels), -1, dtype=np.int32)
    for token in np.flatnonzero(labels < 0).tolist():
        sequence, position = place(seq_ptr, token)
        label = y[token] if flat else _entry(y[sequence], position)
        if label is not None:
            _check_set(label, sequence, position)
            label = frozenset(label)
        rows[token] = known.setdefault(label, len(known))
    for name in [name for label in known if label is not None for name in sorted(label)]:
        alphabet.add(name)
    if not len(alphabet):
        raise DataError("y has only unknown labels: give some labels to learn from, or leave y out")
    allowed = np.ones((len(known), len(alphabet)), dtype=bool)
    for row, label in enumerate(known):
        if label is not None:
            allowed[row] = False
            allowed[row, alphabet.ids(label)] = True
    return _filled(labels, rows, allowed)


def _entry(labels: Any, position: int) -> Any:
    """Label of one position; DataError if the labels were an iterator, which has been read already."""
    try:
        return (labels if hasattr(labels, "__getitem__") else list(labels))[position]
    except IndexError:
        raise DataError("labels that are None or sets need a list: y has an iterator") from None


def _check_set(label: Any, sequence: int, position: int) -> None:
    if not isinstance(label, set | frozenset):
        raise DataError("y changed while it was read", sequence=sequence, position=position)
    if not label:
        message = "the set of labels is empty: name the possible labels, or give None for any label"
        raise DataError(message, sequence=sequence, position=position)
    if wrong := [name for name in label if not isinstance(name, str)]:
        found = type(wrong[0]).__name__
        raise DataError(f"a set of labels must hold str, not {found}", sequence=sequence, position=position)


def _filled(
    labels: NDArray[np.int32], rows: NDArray[np.int32], allowed: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], LabelSets | None]:
    """Labels with the first of each set (bool[M, Y]) where a position has one, and the sets."""
    there = rows >= 0
    filled = labels.copy()
    filled[there] = allowed.argmax(axis=1)[rows[there]]
    return filled, LabelSets(rows, np.where(allowed, 0.0, -np.inf)).without_single()


def fill_unknown(
    labels: NDArray[np.int32], n_labels: int, file: str
) -> tuple[NDArray[np.int32], LabelSets | None]:
    """Labels and sets if -1 means any label."""
    unknown = labels < 0
    if not unknown.any():
        return labels, None
    if n_labels == 0:
        raise DataError("no label is known: give some labels to learn from", file=file)
    rows = np.where(unknown, 0, -1).astype(np.int32)
    return _filled(labels, rows, np.ones((1, n_labels), dtype=bool))


def hide_labels(dataset: Dataset, missing: str | None = None, separator: str | None = None) -> Dataset:
    """Turn labels that stand for unknown ones into sets of possible labels.

    Use it for text files, in which every token needs some label. These labels leave the label alphabet.

    Parameters
    ----------
    dataset : Dataset
        Labelled sequences.
    missing : str, optional
        The label of positions whose label is not known, for example ``?``.
    separator : str, optional
        Separates the possible labels of a position: with ``|``, ``B-PER|B-LOC`` is one of the two.

    Returns
    -------
    Dataset
        Has `label_sets`; the same dataset if there are no such labels.

    Raises
    ------
    DataError
        No label is known, or a set has an empty name; the message says where.

    Examples
    --------
    >>> from crfit import Dataset
    >>> data = Dataset.from_sequences([[["a"], ["b"], ["c"]]], [["X", "?", "X|Y"]])
    >>> data = hide_labels(data, missing="?", separator="|")
    >>> data.label_alphabet.strings(), data.label_sets.rows.tolist()
    (['X', 'Y'], [-1, 0, 1])
    """
    for option, value in (("missing", missing), ("separator", separator)):
        if value is not None and not (isinstance(value, str) and value):
            raise OptionError(option, value, "give a string that is not empty")
    names, labels = dataset.label_alphabet.strings(), dataset.labels
    sets: dict[int, list[str] | None] = {}  # by label id; None: any label
    for i, name in enumerate(names):
        parts = name.split(separator) if separator is not None else [name]
        if missing in parts:
            sets[i] = None
        elif len(parts) > 1:
            sets[i] = parts
    if labels is None or not sets:
        return dataset
    alphabet = Alphabet(name for i, name in enumerate(names) if i not in sets)
    for i, possible in sets.items():
        if possible is not None and not all(possible):
            raise _data_error(dataset, int(np.argmax(labels == i)), "a set of labels has an empty name")
        for name in possible or []:
            alphabet.add(name)
    alphabet.lock()
    if not len(alphabet):
        raise DataError("no label is known: give some labels to learn from", file=dataset.source)
    old = dataset.label_sets
    new_ids, n_old = alphabet.ids(names), 0 if old is None else len(old.scores)
    scores = np.zeros((n_old + len(sets), len(alphabet)))
    if old is not None:
        scores[:n_old] = -np.inf
        kept = np.flatnonzero(new_ids >= 0)
        scores[:n_old, new_ids[kept]] = old.scores[:, kept]
        scores[:n_old][(old.scores == 0.0).all(axis=1)] = 0.0
    rows = np.full(len(labels), -1, dtype=np.int32) if old is None else old.rows.copy()
    row_of = np.full(len(names), -1, dtype=np.int32)
    for row, (i, possible) in enumerate(sets.items(), start=n_old):
        row_of[i] = row
        if possible is not None:
            scores[row] = -np.inf
            scores[row, alphabet.ids(possible)] = 0.0
    rows = np.where(rows < 0, row_of[labels], rows)
    filled = np.where(rows < 0, new_ids[labels], scores.argmax(axis=1)[rows]).astype(np.int32)
    return replace(dataset, labels=filled, label_alphabet=alphabet, label_sets=LabelSets(rows, scores))


def trust_labels(dataset: Dataset, token_weight: Iterable[ArrayLike]) -> Dataset:
    """The dataset in which the label of each position is right with a certainty in [0, 1].

    `token_weight` has one list of numbers per sequence; 1 changes nothing, 0 makes the label unknown.
    """
    weights = _checked_certainties(dataset, token_weight)
    labels = dataset.labels
    if labels is None:
        raise DataError("token_weight needs labels: give y", file=dataset.source)
    doubted = np.flatnonzero(weights < 1.0)
    if not doubted.size:
        return dataset
    # Positions with the same label or set and the same certainty share a row.
    sets = dataset.label_sets or LabelSets(
        np.full(len(labels), -1, np.int32), np.zeros((0, dataset.n_labels))
    )
    old = sets.rows[doubted]
    key = np.where(old < 0, labels[doubted], dataset.n_labels + old)
    pairs, row_of = np.unique(np.stack([key, weights[doubted]], axis=1), axis=0, return_inverse=True)
    with np.errstate(divide="ignore"):
        certain = np.concatenate([np.log(np.eye(dataset.n_labels)), sets.scores])  # by key
    scores = np.maximum(certain[pairs[:, 0].astype(np.int64)], np.log1p(-pairs[:, 1])[:, None])
    rows = sets.rows.copy()
    rows[doubted] = len(sets.scores) + row_of.ravel()
    return replace(dataset, label_sets=LabelSets(rows, np.concatenate([sets.scores, scores])))


def _checked_certainties(dataset: Dataset, token_weight: Iterable[ArrayLike]) -> NDArray[np.float64]:
    """Certainties of all positions, float64[N]."""
    try:
        each = [np.asarray(one, dtype=np.float64) for one in token_weight]
    except (TypeError, ValueError):
        raise OptionError("token_weight", "given", "give a list of numbers for each sequence") from None
    if len(each) != dataset.n_sequences:
        remedy = f"give a list of numbers for each of {dataset.n_sequences} sequences"
        raise OptionError("token_weight", f"{len(each)} entries", remedy)
    for i, (one, length) in enumerate(zip(each, dataset.lengths.tolist(), strict=True)):
        if one.shape != (length,):
            raise DataError(f"token_weight has the shape {one.shape}: give {length} numbers", sequence=i)
    weights = np.concatenate(each) if each else np.zeros(0)
    wrong = ~((weights >= 0.0) & (weights <= 1.0))
    if wrong.any():
        token = int(np.argmax(wrong))
        raise _data_error(dataset, token, f"token_weight is {weights[token]:g}: give 0 to 1")
    return weights


def check_known(dataset: Dataset) -> None:
    """Raise DataError if every label is allowed at every position, so that there is nothing to learn."""
    sets = dataset.label_sets
    if sets is not None and (sets.rows >= 0).all() and not sets.scores[np.unique(sets.rows)].any():
        raise DataError("no label is known: give some labels to learn from", file=dataset.source)


class KnownRuns(NamedTuple):
    """The positions with a known label, for scores.

    `at` is their index, `runs` the offsets of the runs that they form, and `sequences` the sequence of each
    run. A run ends at the end of a sequence or before a position whose label is not known.
    """

    at: Any
    runs: NDArray[np.int64]
    sequences: NDArray[np.int64]


def known_runs(dataset: Dataset) -> KnownRuns:
    """Runs of known labels of a dataset; DataError if no label is known."""
    if dataset.label_sets is None:
        return KnownRuns(slice(None), dataset.seq_ptr, np.arange(dataset.n_sequences))
    known = dataset.label_sets.rows < 0
    if not known.any():
        message = "no label is known, so there is nothing to score against: give labelled data"
        raise DataError(message, file=dataset.source)
    return runs_of(known, dataset.seq_ptr)


def runs_of(known: NDArray[np.bool_], seq_ptr: NDArray[np.int64]) -> KnownRuns:
    """Runs of the positions that are known, bool[N]."""
    at = np.flatnonzero(known)
    of = np.repeat(np.arange(len(seq_ptr) - 1), np.diff(seq_ptr))[at]
    begins = np.flatnonzero((np.diff(at, prepend=-2) > 1) | (np.diff(of, prepend=-1) > 0))
    return KnownRuns(at, offsets(np.diff(np.append(begins, len(at)))), of[begins])


def _data_error(dataset: Dataset, token: int, message: str) -> DataError:
    """The error for a position of a dataset."""
    sequence, position = place(dataset.seq_ptr, token)
    lines = dataset.line_numbers
    line = None if lines is None else int(lines[token])
    return DataError(message, file=dataset.source, line=line, sequence=sequence, position=position)
