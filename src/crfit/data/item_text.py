r"""Text files of items to datasets of one-position sequences: what classifiers read.

Two formats, each with one item a line; blank lines are skipped.

``crfsuite``
    ``label TAB attribute TAB attribute ...`` as in `crfit.data.text`, an attribute being ``name`` or
    ``name:value``; ``@weight:NUMBER TAB`` before the label weighs the item.
``jsonl``
    ``{"label": "spam", "attributes": ["w=a", "cap"], "weight": 2.0}``; ``attributes`` may also be an object,
    whose members are named as in `crfit.data.text`. Other keys are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from crfit.data import Dataset, text
from crfit.data.alphabet import HasAlphabets
from crfit.data.items import each_alone
from crfit.data.text import Format, Input, Source
from crfit.errors import DataError, OptionError
from crfit.files import BYTE_ORDER_MARK

__all__ = ["FORMATS", "detect_format", "read"]

#: Formats of `crfit.data.text` that have items.
FORMATS: tuple[Format, ...] = ("crfsuite", "jsonl")

#: Attributes with only a TAB before them: the reader of sequences would take the first for a label.
_NO_LABEL = re.compile(rb"^\t[ \t\r]*[^ \t\r\n]", re.MULTILINE)


def detect_format(inputs: Sequence[Input]) -> Format:
    """Tell the format of texts: JSON lines by name or contents, else CRFsuite's.

    Parameters
    ----------
    inputs : sequence of Input
        Texts that are read together.

    Returns
    -------
    {'crfsuite', 'jsonl'}
    """
    found = {text.detect_format([one]) == "jsonl" or _begins_with_object(one) for one in inputs}
    if len(found) > 1:
        raise DataError("some files are JSON lines and some are not: say which input format they have")
    return "jsonl" if found == {True} else "crfsuite"


def _begins_with_object(one: Input) -> bool:
    return one.data.removeprefix(BYTE_ORDER_MARK).lstrip()[:1] == b"{"


def read(
    paths: Source | Sequence[Source] = None,
    *,
    format: Format | None = None,
    labelled: bool = True,
    alphabets: HasAlphabets | None = None,
    n_threads: int | None = None,
) -> Dataset:
    """Read text files of items as one dataset.

    Parameters
    ----------
    paths : path, Input, None, or a sequence of these
        See `crfit.text.load`.
    format : {'crfsuite', 'jsonl'}, optional
        Format of all files; `detect_format` decides when it is left out.
    labelled : bool
        Whether the files have labels that are wanted. If not, the first field of CRFsuite lines is skipped,
        and so is ``label`` in JSON lines.
    alphabets : Dataset or Model, optional
        Use its ids, as in `crfit.text.read`.
    n_threads : int, optional
        Threads to read with; all that the process may use by default.

    Returns
    -------
    Dataset
        Every sequence has one position.

    Raises
    ------
    DataError
        A file cannot be used; the message names file and line.
    """
    inputs = text.load(paths)
    format = format or detect_format(inputs)
    if format not in FORMATS:
        raise OptionError("format", format, f"items come as {' or '.join(FORMATS)}")
    if format == "jsonl":
        return _read_json(inputs, labelled, alphabets, n_threads)
    return _read_crfsuite(inputs, labelled, alphabets, n_threads)


def _read_crfsuite(
    inputs: list[Input], labelled: bool, alphabets: HasAlphabets | None, n_threads: int | None
) -> Dataset:
    """Items by the reader of sequences: with a blank line after each line every item is a sequence."""
    if labelled:
        for one in inputs:
            if (missing := _NO_LABEL.search(one.data)) is not None:
                line = one.data.count(b"\n", 0, missing.start()) + 1
                remedy = "a line begins with a TAB: write the label of the item before it"
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
    """Line of the file for a line of the text with blank lines in between."""
    return (apart + 1) // 2


@dataclass
class _Items:
    """What JSON lines hold."""

    attributes: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)

    def add(self, line: bytes, labelled: bool) -> None:
        """Take one object."""
        try:
            record = json.loads(line.decode("utf-8", "surrogateescape"))
        except json.JSONDecodeError as error:
            raise DataError(f"no JSON: {error.msg} at character {error.pos + 1}") from None
        if not isinstance(record, dict) or "attributes" not in record:
            raise DataError('an item is an object {"label": "...", "attributes": [...]}')
        label = record.get("label")
        if labelled and (not isinstance(label, str) or not label):
            raise DataError(f'"label" is {json.dumps(label)}: give a string that is not empty')
        attributes, weight = record["attributes"], record.get("weight", 1.0)
        if not isinstance(attributes, list | dict):
            raise DataError('"attributes" must be a list of strings or an object')
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < float("inf"):
            raise DataError(f'"weight" is {json.dumps(weight)}: give a number that is not negative')
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
