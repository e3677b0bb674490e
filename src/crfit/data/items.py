r"""Data for classifiers: matrices and text files as sequences of one position each.

A classifier is a CRF on sequences of one position. The intercept is one more attribute, `INTERCEPT`, with
value 1 at every position, last in the alphabet. One-vs-rest training uses the same data with other labels.

Text files have one item per line, in one of two formats; blank lines are skipped.

``crfsuite``
    ``label TAB attribute TAB attribute ...`` as in `crfit.data.text`, where an attribute is ``name`` or
    ``name:value``; ``@weight:NUMBER TAB`` before the label sets the weight of the item.
``jsonl``
    ``{"label": "spam", "attributes": ["w=a", "cap"], "weight": 2.0}``; ``attributes`` may also be an object,
    named as in `crfit.data.text`. Other keys are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from crfit.checks import first_outside
from crfit.data import text
from crfit.data.alphabet import Alphabet, HasAlphabets
from crfit.data.dataset import Dataset, labels_of
from crfit.data.from_python import Matrix, csr_arrays, dense_arrays
from crfit.data.text import Format, Input, Source, check_line_ends
from crfit.errors import DataError, OptionError
from crfit.files import BYTE_ORDER_MARK

#: Attribute name of the intercept.
INTERCEPT = "(intercept)"

REST = "(rest)"

#: Formats of `crfit.data.text` that can hold items.
FORMATS: tuple[Format, ...] = ("crfsuite", "jsonl")

#: A line with attributes but no label: the sequence reader would take the first attribute for the label.
_NO_LABEL = re.compile(rb"^\t[ \t\r]*[^ \t\r\n]", re.MULTILINE)


def from_rows(X: Any, names: Sequence[str]) -> Dataset:
    """Unlabelled dataset in which each row of a sparse or dense matrix is one sequence.

    `names` are the attributes of the columns. Indices (int32) and values (float64) of a CSR matrix, and the
    entries of a dense one without zeros, are used without a copy: do not change them afterwards. If all
    values are 1 they are not stored, which halves the work.
    """
    matrix = csr_arrays(X) if hasattr(X, "tocsr") else _dense_rows(np.asarray(X))
    return Dataset(
        seq_ptr=np.arange(len(matrix.ptr), dtype=np.int64),
        attr_ptr=matrix.ptr,
        attr_ids=matrix.columns,
        attr_values=matrix.values,
        attribute_alphabet=Alphabet(names),
    )


def _dense_rows(X: NDArray[Any]) -> Matrix:
    """Rows of a dense matrix; without a copy if it has no zeros."""
    if X.ndim != 2 or X.dtype.kind not in "iuf" or X.size == 0 or not X.all():
        return dense_arrays(X)
    N, A = X.shape
    values = np.ascontiguousarray(X, dtype=np.float64).ravel()
    columns = np.tile(np.arange(A, dtype=np.int32), N)
    return Matrix(np.arange(0, N * A + 1, A, dtype=np.int64), columns, values, A)


def each_alone(dataset: Dataset) -> Dataset:
    """Make every position its own sequence, with the weight of its old sequence.

    Returns `dataset` itself if all sequences have one position; raises DataError if it has edge attributes.
    """
    if dataset.edge_ids is not None and len(dataset.edge_ids):
        message = "the data has edge attributes, which a classifier cannot use: leave them out"
        raise DataError(message, file=dataset.source)
    if dataset.one_position:
        return dataset
    weights = dataset.sequence_weights
    return replace(
        dataset,
        seq_ptr=np.arange(dataset.n_tokens + 1, dtype=np.int64),
        sequence_weights=None if weights is None else np.repeat(weights, dataset.lengths),
    )


def check_alone(dataset: Dataset) -> None:
    """Raise DataError for the first sequence with more than one position."""
    if not dataset.one_position:
        message = "a classifier takes sequences of one position each; use crfit.CRF for longer ones"
        raise DataError(message, sequence=int(np.argmax(dataset.lengths > 1)))


def add_intercept(dataset: Dataset) -> Dataset:
    """Add the attribute `INTERCEPT` with value 1 to every position, unless some position already has it.

    If the name is missing, it is added at the end of the alphabet.
    """
    alphabet = dataset.attribute_alphabet
    intercept = alphabet.get(INTERCEPT)
    if intercept < 0:
        alphabet = alphabet.copy()
        intercept = alphabet.add(INTERCEPT)
        alphabet.lock()
    elif (dataset.attr_ids == intercept).any():
        return dataset
    ends, values = dataset.attr_ptr[1:], dataset.attr_values  # the intercept comes last at each position
    ptr = dataset.attr_ptr + np.arange(len(dataset.attr_ptr))
    ids = np.insert(dataset.attr_ids, ends, intercept)
    values = None if values is None else np.insert(values, ends, 1.0)
    changes = {"attr_ptr": ptr, "attr_ids": ids, "attr_values": values, "attribute_alphabet": alphabet}
    return _changed(dataset, changes)


def labelled(
    dataset: Dataset, labels: NDArray[np.integer], names: Sequence[str], weights: NDArray[np.float64] | None
) -> Dataset:
    """The same items with label ids, names of the ids and weights (None: all 1)."""
    alphabet = Alphabet(names, locked=True)
    if len(labels) != dataset.n_sequences or first_outside(labels, len(alphabet)) is not None:
        raise DataError(f"give one label for each of {dataset.n_sequences} items")
    ids = np.ascontiguousarray(labels, dtype=np.int32)
    return _changed(dataset, {"labels": ids, "label_alphabet": alphabet, "sequence_weights": weights})


def one_against_rest(dataset: Dataset, label: int) -> Dataset:
    """The same data with two labels: 1 for the given label id, 0 for all others."""
    names = Alphabet([REST, dataset.label_alphabet[label]], locked=True)
    labels, sets = (labels_of(dataset) == label).astype(np.int32), dataset.label_sets
    if sets is not None:
        rest = np.delete(sets.scores, label, axis=1).max(axis=1)
        scores = np.stack([rest, sets.scores[:, label]], axis=1)
        sets = sets._replace(scores=scores).without_single()
    return _changed(dataset, {"labels": labels, "label_alphabet": names, "label_sets": sets})


def _changed(dataset: Dataset, changes: dict[str, Any]) -> Dataset:
    """Copy with some fields replaced, without validating all arrays again."""
    return Dataset._trusted(**(vars(dataset) | changes))


def detect_format(inputs: Sequence[Input]) -> Format:
    """Format of texts: JSON lines by name or contents, otherwise CRFsuite."""
    found = {
        text.detect_format([one]) == "jsonl" or one.data.removeprefix(BYTE_ORDER_MARK).lstrip()[:1] == b"{"
        for one in inputs
    }
    if len(found) > 1:
        raise DataError("some files are JSON lines and some are not: specify the input format")
    return "jsonl" if found == {True} else "crfsuite"


def read(
    paths: Source | Sequence[Source] = None,
    *,
    format: Format | None = None,
    labelled: bool = True,
    alphabets: HasAlphabets | None = None,
    n_threads: int | None = None,
) -> Dataset:
    """Read text files of items as one dataset of one-position sequences; options as in `crfit.text.read`."""
    inputs = text.load(paths)
    format = format or detect_format(inputs)
    if format not in FORMATS:
        raise OptionError("format", format, f"choose {' or '.join(FORMATS)}: other formats cannot hold items")
    if format == "jsonl":
        return _read_json(inputs, labelled, alphabets, n_threads)
    return _read_crfsuite(inputs, labelled, alphabets, n_threads)


def _read_crfsuite(
    inputs: list[Input], labelled: bool, alphabets: HasAlphabets | None, n_threads: int | None
) -> Dataset:
    """Read with the sequence reader: a blank line after each line makes every item a sequence."""
    if labelled:
        for one in inputs:
            if (missing := _NO_LABEL.search(one.data)) is not None:
                line = one.data.count(b"\n", 0, missing.start()) + 1
                remedy = "the line begins with a TAB: write the label of the item before it"
                raise DataError(remedy, file=one.name, line=line)
    apart = [Input(one.name, one.data.replace(b"\n", b"\n\n")) for one in inputs]
    try:
        dataset = text.read(
            apart, format="crfsuite", labelled=labelled, alphabets=alphabets, n_threads=n_threads
        )
    except DataError as error:
        if error.line is None:
            raise
        message = str(error).partition(f":{error.line}: ")[2]
        raise DataError(message, file=error.file, line=_line(error.line)) from None
    if dataset.line_numbers is not None:
        dataset = replace(dataset, line_numbers=_line(dataset.line_numbers))
    return each_alone(dataset)


def _line(apart: Any) -> Any:
    """Line number in the file, given the line number after blank lines were inserted."""
    return (apart + 1) // 2


@dataclass
class _Items:
    """Contents of JSON lines."""

    attributes: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)

    def add(self, line: bytes, labelled: bool) -> None:
        """Take one object."""
        try:
            record = json.loads(line.decode("utf-8", "surrogateescape"))
        except json.JSONDecodeError as error:
            raise DataError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
        if not isinstance(record, dict) or "attributes" not in record:
            raise DataError('an item must be an object {"label": "...", "attributes": [...]}')
        label = record.get("label")
        if labelled and (not isinstance(label, str) or not label):
            raise DataError(f'"label" is {json.dumps(label)}: give a non-empty string')
        attributes, weight = record["attributes"], record.get("weight", 1.0)
        if not isinstance(attributes, list | dict):
            raise DataError('"attributes" must be a list of strings or an object')
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < float("inf"):
            raise DataError(f'"weight" is {json.dumps(weight)}: give a finite number, 0 or more')
        self.attributes.append(attributes)
        self.labels.append(cast(str, label))
        self.weights.append(float(weight))


def _read_json(
    inputs: list[Input], labelled: bool, alphabets: HasAlphabets | None, n_threads: int | None
) -> Dataset:
    items = _Items()
    for one in inputs:
        lines = one.data.removeprefix(BYTE_ORDER_MARK).split(b"\n")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                items.add(line, labelled)
            except DataError as error:
                check_line_ends(one)
                raise DataError(str(error), file=one.name, line=number) from None
            items.places.append((one.name, number))
    try:
        dataset = Dataset.from_sequences(
            [[attributes] for attributes in items.attributes],
            [[label] for label in items.labels] if labelled else None,
            sequence_weights=items.weights if set(items.weights) - {1.0} else None,
            alphabets_of=alphabets,
            n_threads=n_threads,
        )
    except DataError as error:
        if error.sequence is None:
            raise
        name, number = items.places[error.sequence]
        message = str(error).partition(": ")[2]
        raise DataError(message, file=name, line=number) from None
    lines_of = np.array([number for _, number in items.places], dtype=np.int64)
    return replace(dataset, source=", ".join(one.name for one in inputs), line_numbers=lines_of)
