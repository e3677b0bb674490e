r"""Read text files into datasets.

Three formats are supported; the native core parses them in parallel:

``columns``
    One position per line, columns separated by spaces or TABs, a blank line after each sequence. In labelled
    files the last column is the label. A `Template` builds attributes from the columns; without one,
    `default_template` is used.
``crfsuite``
    CRFsuite's attribute format: a line is ``label TAB attribute TAB attribute ...``. An attribute is ``name``
    or ``name:value``; write ``\:`` and ``\\`` for colons and backslashes in names. ``@weight:NUMBER`` before
    the label of a sequence's first position sets the weight of the sequence. Spaces are ordinary characters.
``jsonl``
    One sequence per line: ``{"tokens": [["w=a", "cap"], ...], "labels": ["B", ...], "weight": 2.0}``. A token
    is a list of attribute names or an object, named as in python-crfsuite: ``{"w": "a"}`` is ``w:a``,
    ``{"n": 0.5}`` is ``n`` with value 0.5, ``true`` and ``false`` are 1 and 0, ``{"p": {"w": "a"}}`` is
    ``p:w:a``. ``attributes`` is another name for ``tokens``; other keys are ignored. A label may be ``null``:
    it is not known.

With features (`crfit.features`) tokens are words instead of attributes: the first column of column files, and
strings in JSON lines, ``{"tokens": ["2", "cups"], "labels": ["B-QTY", "B-UNIT"]}``.

Ids follow the order of first appearance, whatever the number of threads. Bytes that are not UTF-8 are kept. A
UTF-8 byte order mark is skipped, and CRLF line ends and a missing last line end are accepted. In the first
two formats a line of only white space ends a sequence, like an empty line.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from crfit import _native
from crfit.data.alphabet import Alphabet, HasAlphabets
from crfit.data.dataset import ALPHABETS, Dataset
from crfit.data.label_sets import fill_unknown
from crfit.data.templates import Template, default_template, load_template
from crfit.errors import DataError, OptionError
from crfit.features.feature_set import Features, FeaturesOption, features_of
from crfit.files import BYTE_ORDER_MARK, COMPRESSED_SUFFIXES, read_bytes
from crfit.threads import resolve_threads

__all__ = [
    "Format",
    "Input",
    "PathLike",
    "column_template",
    "column_text",
    "detect_format",
    "load",
    "read",
    "sequence_lines",
]

Format: TypeAlias = Literal["columns", "crfsuite", "jsonl"]
PathLike: TypeAlias = "str | os.PathLike[str] | None"

#: Texts that are short.
FEW_BYTES = 1 << 11
#: Arrays by name, the alphabets of attributes, labels and edge attributes, number of occurrences dropped.
Parsed: TypeAlias = tuple[dict[str, Any], _native.Alphabet, _native.Alphabet, _native.Alphabet, int]
#: How much `detect_format` reads.
SAMPLE_BYTES = 1 << 16
_FORMAT_OF_SUFFIX: dict[str, Format] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".crfsuite": "crfsuite"}


@dataclass(frozen=True)
class Input:
    """A text in memory.

    Attributes
    ----------
    name : str
        File name, ``<stdin>`` for standard input.
    data : bytes
        The whole text, decompressed.
    """

    name: str
    data: bytes


def column_text(name: str, sequences: Iterable[Iterable[Iterable[str]]]) -> Input:
    """The cells of the rows of sequences as a column file."""
    rows = ("".join("\t".join(cells) + "\n" for cells in one) for one in sequences)
    # The reader skips one byte order mark: without it, that of a first token would be lost.
    return Input(name, BYTE_ORDER_MARK + "\n".join(rows).encode("utf-8", "surrogateescape"))


# White space for Python, but not for the readers.
_OTHER_SPACE = re.compile(rb"[\r\x0b\x0c\x1c-\x1f\x85\xa0]|\xef\xbb\xbf")

Source: TypeAlias = "PathLike | Input"


def load(paths: Source | Sequence[Source] = None) -> list[Input]:
    """Read files into memory and decompress them.

    Parameters
    ----------
    paths : path, Input, None, or a sequence of these
        ``None`` and ``-`` mean standard input. Files compressed with gzip, bzip2, xz or zstd are recognised
        by their first bytes, whatever their name. An `Input` is returned unchanged.

    Raises
    ------
    DataError
        A file cannot be opened or decompressed.
    """
    known = str, os.PathLike, Input, type(None)
    sources = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, known) else [paths]
    if not sources or not all(isinstance(source, known) for source in sources):
        raise OptionError("paths", paths, "give at least one file, or - for standard input")
    return [source if isinstance(source, Input) else Input(*read_bytes(source)) for source in sources]


def detect_format(inputs: Sequence[Input]) -> Format:
    """Detect the common format of several texts, from their names, then from their contents.

    A text that begins with a JSON object is ``jsonl``. TAB-separated rows whose fields after the first are
    mostly of the form ``name=...`` or ``name:value`` are ``crfsuite``. Anything else is ``columns``, whose
    reader rejects ragged rows. Raises DataError if the texts look different from each other.
    """
    return common_format([(text.name, detect_one(text)) for text in inputs])


def common_format(found: Sequence[tuple[str, Format]]) -> Format:
    """The format of files by name; DataError if they differ."""
    first, common = found[0]
    for name, format in found:
        if format != common:
            message = f"looks like {format}, but {first} like {common}: specify the input format"
            raise DataError(message, file=name)
    return common


#: A brace and the first key. A brace alone may be a token.
_BEGIN_OF_OBJECT = re.compile(rb'\s*\{\s*"[^"\\]*(?:\\.[^"\\]*)*"\s*:')


def detect_one(text: Input) -> Format:
    """The format of one text."""
    name = PurePath(text.name)
    suffix = PurePath(name.stem).suffix if name.suffix in COMPRESSED_SUFFIXES else name.suffix
    if suffix in _FORMAT_OF_SUFFIX:
        return _FORMAT_OF_SUFFIX[suffix]
    sample = text.data[:SAMPLE_BYTES].removeprefix(BYTE_ORDER_MARK)
    lines = [line for line in sample.split(b"\n") if line.strip()]
    if len(text.data) > SAMPLE_BYTES and len(lines) > 1:
        lines.pop()  # incomplete
    if lines and _BEGIN_OF_OBJECT.match(lines[0]):
        return "jsonl"
    return "crfsuite" if _looks_like_crfsuite(lines) else "columns"


def only_json(text: Input) -> bool:
    """Whether each line is an object, a list or a string of JSON; blank lines aside."""
    lines = [line for line in text.data.removeprefix(BYTE_ORDER_MARK).split(b"\n") if line.strip()]
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict | list | str) for line in lines)
    except (ValueError, RecursionError):
        return False


def _looks_like_crfsuite(lines: list[bytes]) -> bool:
    if any(line.startswith(b"@weight:") for line in lines):
        return True
    rows = [[field for field in line.rstrip(b"\r").split(b"\t") if field] for line in lines]
    if all(len(row) == 2 for row in rows):
        return False  # word TAB label; morphological labels often contain "=" too
    fields = [field for row in rows for field in row[1:]]
    marked = sum(b"=" in field or b":" in field for field in fields)
    return bool(fields) and 3 * marked >= 2 * len(fields)


#: Columns for which `default_template` makes seven attributes each.
MAX_COLUMNS = 1000


def check_line_ends(text: Input) -> None:
    """Raise DataError if lines end with CR alone: the whole text would be one line."""
    if b"\n" not in text.data and b"\r" in text.data.rstrip(b"\r"):
        remedy = "lines end with CR alone, as on very old systems: convert them to LF, for example with tr"
        raise DataError(remedy, file=text.name)


def column_template(inputs: Sequence[Input], *, labelled: bool = True) -> Template:
    """The default template for column files, with as many columns as the first row."""
    text = inputs[0]
    check_line_ends(text)
    n_columns = count_columns(inputs[:1])
    if n_columns > MAX_COLUMNS:
        remedy = "give a template that names those to use, or features, or CRFsuite attributes"
        raise DataError(
            f"rows have {n_columns:,} columns, more than {MAX_COLUMNS:,}: {remedy}", file=text.name
        )
    if labelled and n_columns == 1:
        message = "rows have only one column, the label: add at least one column to learn from"
        raise DataError(message, file=text.name)
    return default_template(n_columns - labelled if n_columns else 0)


def count_columns(inputs: Sequence[Input]) -> int:
    """Number of columns of the first row, 0 if there are no rows."""
    counts = (_native.count_columns(text.data.removeprefix(BYTE_ORDER_MARK)) for text in inputs)
    return next(filter(None, counts), 0)


def _check_columns(inputs: Sequence[Input], n_trained: int, labelled: bool) -> None:
    """Raise DataError, naming the line, unless every row has as many columns as the training data.

    `n_trained` includes the label, which is required if `labelled` and optional otherwise.
    """
    fine = {0, n_trained} if labelled else {0, n_trained, n_trained - 1}
    for text in inputs:
        # For a few lines the operations on arrays take longer than tagging them.
        few = len(text.data) <= FEW_BYTES and not _OTHER_SPACE.search(text.data)
        if few and {len(line.split()) for line in text.data.split(b"\n")} <= fine:
            continue
        counts = _columns_of_lines(text.data.removeprefix(BYTE_ORDER_MARK))
        wrong = (counts > 0) & (counts != n_trained)
        if not labelled:
            wrong &= counts != n_trained - 1
        if wrong.any():
            line = int(np.argmax(wrong))
            columns = f"{counts[line]} column{'s' if counts[line] > 1 else ''}"
            optional = "" if labelled else ", with or without the label"
            message = (
                f"{columns}, but the model was trained on {n_trained} (the last is the label): "
                f"give the same columns as in the training data{optional}"
            )
            raise DataError(message, file=text.name, line=line + 1)


def _columns_of_lines(data: bytes) -> NDArray[np.int64]:
    """Number of columns of each line, 0 for blank lines."""
    text = np.frombuffer(data, dtype=np.uint8)
    newline = text == 10
    space = (text == 32) | (text == 9) | newline
    if b"\r" in data:  # counts as white space only at the end of a line
        returns = np.flatnonzero(text == 13)
        space[returns] = np.append(newline, True)[returns + 1]
    starts = ~space
    starts[1:] &= space[:-1]
    ends = np.append(np.flatnonzero(newline), len(text))
    return np.diff(np.searchsorted(np.flatnonzero(starts), ends), prepend=0)


def read(
    paths: Source | Sequence[Source] = None,
    *,
    format: Format | None = None,
    template: Template | str | os.PathLike[str] | None = None,
    labelled: bool = True,
    alphabets: HasAlphabets | None = None,
    n_threads: int | None = None,
    features: FeaturesOption = None,
) -> Dataset:
    """Read one or more text files as one dataset.

    Parameters
    ----------
    paths : path, Input, None, or a sequence of these
        See `load`.
    format : {'columns', 'crfsuite', 'jsonl'}, optional
        Format of all files. By default ``columns`` if a template is given, otherwise detected from the file
        names (``.jsonl``, ``.ndjson`` or ``.crfsuite``, before a compression suffix) or the contents.
    template : Template, str or path, optional
        How to build attributes from the columns of column files: a `Template`, a template file or the name of
        a built-in template. By default a window of five positions over all columns.
    labelled : bool
        Whether to read labels. If False, labels are ignored: column files may have extra columns after those
        that the template uses, and the first field of CRFsuite lines is skipped.
    alphabets : Dataset or Model, optional
        Use the ids of this dataset or model. Attributes that it does not have are dropped and counted in
        ``n_dropped``; labels that it does not have are added to a copy of its label alphabet. Column files
        must have the same columns as its own data.
    n_threads : int, optional
        Number of threads; None uses all cores.
    features : {"default"}, Features, str or path, optional
        Make the attributes from tokens instead, see `crfit.features`. A token is the first column, or a
        string in JSON lines: ``{"tokens": ["a", "b"], ...}``; `features` that use several columns need a list
        of strings for each token there. By default those of `alphabets`, if any.

    Returns
    -------
    Dataset
        All sequences, in the order of the files.

    Raises
    ------
    DataError
        A file is invalid; the message names the file and line.
    OptionError
        The options contradict each other.
    """
    inputs = load(paths)
    if template is not None and not isinstance(template, Template):
        template = load_template(template)
    if format is None:
        format = "columns" if template is not None else detect_format(inputs)
    if format not in get_args(Format):
        raise OptionError("format", format, f"choose {', '.join(get_args(Format))}")
    if template is not None and format != "columns":
        raise OptionError("template", template.name, f"templates work only with column files, not {format}")
    made_by = None if template is not None else features_of(features, alphabets)
    if template is not None and features is not None:
        raise OptionError("template", template.name, "features make the attributes: leave one of the two out")
    if made_by is not None and format == "crfsuite":
        message = "looks like CRFsuite attributes, but features need tokens: give columns or JSON lines"
        raise DataError(message, file=inputs[0].name)
    if template is None and format == "columns" and made_by is None:
        template = column_template(inputs, labelled=labelled)
    return read_checked(inputs, format, template, labelled, alphabets, resolve_threads(n_threads), made_by)


def read_checked(
    inputs: Sequence[Input],
    format: Format,
    template: Template | None,
    labelled: bool,
    alphabets: HasAlphabets | None,
    n_threads: int,
    features: Features | None = None,
) -> Dataset:
    """Read texts of a known format, with options that go together; `read` finds and checks them."""
    for text in inputs if format != "jsonl" else ():
        check_line_ends(text)
    arrays, attributes, labels, edges, n_dropped = parsed(
        inputs, format, template, labelled, alphabets, n_threads, features
    )
    n_trained = getattr(alphabets, "n_columns", None)
    if format == "columns" and n_trained:
        _check_columns(inputs, n_trained, labelled)
    if alphabets is None:
        own = [Alphabet.wrap(native, locked=True) for native in (attributes, labels, edges)]
    else:
        own = [getattr(alphabets, name) for name in ALPHABETS]
        if len(labels) > len(alphabets.label_alphabet):
            own[1] = Alphabet.wrap(labels, locked=True)
    source = ", ".join(text.name for text in inputs)
    if arrays["labels"] is not None:
        arrays["labels"], arrays["label_sets"] = fill_unknown(arrays["labels"], len(own[1]), source)
    # The reader has checked what it gives; sets of labels are made here.
    make = Dataset._trusted if arrays.get("label_sets") is None else Dataset
    return make(
        **(arrays | dict(zip(ALPHABETS, own, strict=True))),
        source=source,
        plain_transitions=template is None or template.plain_transitions,
        n_dropped=n_dropped,
        n_columns=columns_to_require(inputs, format, template) if labelled else None,
        features=features,
    )


def parsed(
    inputs: Sequence[Input],
    format: Format,
    template: Template | None,
    labelled: bool,
    alphabets: HasAlphabets | None,
    n_threads: int,
    features: Features | None,
    *,
    n_columns: int = 0,
    lines_before: Sequence[int] = (),
) -> Parsed:
    """Arrays and alphabets of texts; labels are -1 where they are not known.

    For texts that continue others: `n_columns` of the rows before, and `lines_before` each text.
    """
    try:
        return _native.read_texts(
            [text.data for text in inputs],
            _native.Format[format],
            template.native if template is not None else None,
            labelled,
            alphabets.attribute_alphabet.native if alphabets is not None else None,
            alphabets.label_alphabet.native if alphabets is not None else None,
            alphabets.edge_alphabet.native if alphabets is not None else None,
            n_threads,
            None if features is None else features.native,
            n_columns,
            list(lines_before),
        )
    except _native.TextError as error:
        message, text_id, line = error.args
        check_line_ends(inputs[text_id])  # of JSON lines, where CR may also be white space
        raise DataError(message, file=inputs[text_id].name, line=line or None) from None


def columns_to_require(inputs: Sequence[Input], format: Format, template: Template | None) -> int | None:
    """Number of columns of labelled column files, 0 if rows may differ, as in Wapiti's dialect."""
    if format != "columns":
        return None
    return 0 if template is not None and template.dialect == "wapiti" else count_columns(inputs) or None


def sequence_lines(text: Input, dataset: Dataset) -> Iterator[list[str]]:
    """Yield the lines of each sequence, without line ends, from the text that a dataset was read from.

    `text` is the only column or CRFsuite file; bytes that are not UTF-8 are decoded with ``surrogateescape``.
    """
    if dataset.line_numbers is None:
        raise OptionError("dataset", dataset.source, "only data read from text has lines")
    lines = text.data.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "surrogateescape").split("\n")
    numbers, bounds = dataset.line_numbers.tolist(), dataset.seq_ptr.tolist()
    for start, end in pairwise(bounds):
        yield [lines[number - 1].removesuffix("\r") for number in numbers[start:end]]
