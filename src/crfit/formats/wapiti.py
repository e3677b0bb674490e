"""Wapiti's model files.

A file is text. Strings are netstrings, ``length:bytes,`` and a line end:

    #mdl#TYPE#WEIGHTS             type 2 is a CRF
    #rdr#PATTERNS/COLUMN/AUTO     then the patterns
    #qrk#LABELS                   then the labels
    #qrk#OBSERVATIONS             then the strings that the patterns made
    INDEX=WEIGHT                  non-zero weights, in hexadecimal

An observation that begins with ``u`` has one weight per label, one with ``b`` has one per pair of labels, the
previous label first, and one with ``*`` has both. Indices count through all observations.

Patterns become lines of a template. Differences in names are translated, in the strings too:

    Wapiti                    crfit
    u..., b...                U..., B...
    *...                      U*... and B*...
    _x-1 to _x-4, then _x-#   _B-1, _B-2, ...      cells before the sequence
    _x+1 to _x+4, then _x+#   _B+1, _B+2, ...      cells after it

References
----------
[1] T. Lavergne, O. Cappé, F. Yvon (2010). Practical very large scale CRFs. ACL.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.checks import offsets, rows
from crfit.data.templates import Template
from crfit.errors import ModelFileError
from crfit.formats import signatures
from crfit.formats.parts import (
    CELL,
    Source,
    Weights,
    alphabet_of,
    by_code,
    check_finite,
    damaged,
    from_strings,
    label_pairs,
    needed_template,
    parsed,
    strings_of,
    take_apart,
    unsupported,
    write_file,
)
from crfit.layout.features import Codes, to_rows

if TYPE_CHECKING:
    from crfit.model import Model

__all__ = ["read", "write"]

TOOL = "Wapiti"
TYPES = {0: "a maximum entropy model", 1: "a maximum entropy Markov model"}
CRF = 2
MAX_NUMBER = 18  # digits
MAX_ROW = 20  # of a cell in a pattern
MAX_RUNS = 5000  # combinations of a pattern and distances to the ends of a sequence
N_OUTSIDE = 4  # cells outside the sequence with a name of their own

#: Commands of patterns that templates do not have.
COMMANDS = {"t": "regular expressions", "m": "regular expressions", "x": "lower case"}
#: The command that they have, as Wapiti reads it.
REFERENCE = re.compile(r"%x\[\s*([-+]?)(0[xX][0-9a-fA-F]+|\d+)\s*,\s*(\d+)\s*\]")

#: Name of a cell that is this many rows outside the sequence; negative: before it.
Naming: TypeAlias = Callable[[int], str]


def read(source: Source, name: str | None = None) -> Model:
    """Read a Wapiti model whose patterns use only ``%x`` with relative rows.

    Parameters
    ----------
    source : path-like or bytes
        The file, or its contents.
    name : str, optional
        Name for messages, if `source` is bytes.

    Raises
    ------
    ModelFileError
        The file cannot be read, is not a valid model, or has patterns that templates cannot express.
    """
    return parsed(_parse, source, name)


def write(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as a Wapiti file.

    Parameters
    ----------
    model : Model
        A chain of order 1 with a template and without boundary weights.
    path : path-like
        Name of the file.

    Raises
    ------
    ModelFileError
        The format cannot express the model, or the file cannot be written.
    """
    write_file(path, lambda: _made(model))


class _Cursor:
    """Reads a file from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def numbers(self, mark: bytes, what: str) -> list[int]:
        """Numbers of a line such as ``#rdr#2/1/0``."""
        end = self.data.find(b"\n", self.at)
        line = self.data[self.at : end] if end >= 0 else self.data[self.at :]
        fields = re.split(b"[/#]", line.removeprefix(mark))
        if not line.startswith(mark) or not all(map(_is_number, fields)):
            raise damaged(f"the line for its {what} is missing or invalid")
        self.at += len(line) + 1
        return list(map(int, fields))

    def strings(self, n: int, what: str) -> list[bytes]:
        """Netstrings."""
        found = []
        for _ in range(n):
            colon = self.data.find(b":", self.at, self.at + MAX_NUMBER + 1)
            if colon < 0 or not _is_number(self.data[self.at : colon]):
                raise damaged(f"it ends within its {what}, or one of these has no length")
            end = colon + 1 + int(self.data[self.at : colon])
            if self.data[end : end + 2] != b",\n":
                raise damaged(f"the length of one of its {what} is wrong")
            found.append(self.data[colon + 1 : end])
            self.at = end + 2
        return found


def _is_number(text: bytes) -> bool:
    return text.isdigit() and len(text) <= MAX_NUMBER


class _Pattern(NamedTuple):
    """A pattern: its kind, and the rest with references as in templates."""

    kind: str
    rest: str

    def lines(self) -> list[str]:
        """Lines of a template that make the same strings."""
        return [name + self.rest for name in _names(self.kind)]


def _names(kind: str) -> list[str]:
    return {"u": ["U"], "b": ["B"], "*": ["U*", "B*"]}[kind]


def _parse(data: bytes) -> Model:
    if not data.startswith(signatures.WAPITI):
        raise ModelFileError("is not a Wapiti model: check its name")
    cursor = _Cursor(data)
    *kinds, n_weights = cursor.numbers(signatures.WAPITI, "type")
    if kinds and kinds[0] != CRF:
        what = TYPES.get(kinds[0], "a model of an unknown type")
        raise ModelFileError(f"is {what}: crfit reads Wapiti's CRFs")
    patterns = [
        _pattern(text, number)
        for number, text in enumerate(
            cursor.strings(cursor.numbers(b"#rdr#", "patterns")[0], "patterns"), start=1
        )
    ]
    if not patterns:
        raise ModelFileError(
            "has no patterns, so its features are the tokens themselves: crfit reads models with patterns"
        )
    labels = alphabet_of(cursor.strings(cursor.numbers(b"#qrk#", "labels")[0], "labels"), "label")
    names = cursor.strings(cursor.numbers(b"#qrk#", "observations")[0], "observations")
    if not all(name[:1] in (b"u", b"b", b"*") for name in names):
        raise damaged("it has an observation that does not begin with u, b or *")
    states, pairs = _weights(data[cursor.at :], n_weights, names, len(labels))
    lines = [line for pattern in patterns for line in pattern.lines()]
    template = Template("\n".join([*lines, ""]))
    renamed = _Renamer(lines, _wapiti_name, _crfit_name)
    found = []
    for side, weights, width in (("U", states, len(labels)), ("B", pairs, len(labels) ** 2)):
        sources, strings = list[int](), list[bytes]()
        for i, name in enumerate(names):
            for prefix in _names(name[:1].decode()):
                if prefix.startswith(side):
                    string = prefix + name[1:].decode("utf-8", "surrogateescape")
                    variants = renamed(string)
                    sources += [i] * len(variants)
                    strings += [one.encode("utf-8", "surrogateescape") for one in variants]
        found.append((strings, _copied(weights, np.array(sources, dtype=np.int64), len(names), width)))
    (attributes, states), (edges, pairs) = found
    return from_strings(labels, template, attributes, states, edges, pairs, TOOL)


def _pattern(text: bytes, number: int) -> _Pattern:
    pattern = text.decode("utf-8", "surrogateescape")
    if pattern[:1] not in ("u", "b", "*") or "\n" in pattern or "\r" in pattern:
        raise damaged(f"pattern {number} does not begin with u, b or *, or is not one line")

    def reference(match: re.Match[str]) -> str:
        sign, digits, column = match.groups()
        is_octal = digits.startswith("0") and digits.isdigit() and len(digits) > 1
        try:
            row = int(digits, 8 if is_octal else 16 if digits[:2] in ("0x", "0X") else 10)
        except ValueError:
            raise damaged(f"pattern {number} has an invalid row") from None
        if row > MAX_ROW:
            raise _unsupported_pattern(number, f"cells more than {MAX_ROW} rows away")
        return f"%x[{'-' if sign == '-' and row else ''}{row},{int(column)}]"

    rest = REFERENCE.sub(reference, pattern[1:])
    for match in re.finditer("%(.?)(.?)(.?)", CELL.sub("", rest), re.S):
        command, _, absolute = match.groups()
        if absolute == "@":
            raise _unsupported_pattern(number, "absolute positions (@)")
        if command.lower() not in COMMANDS or command == "x":
            raise damaged(f"pattern {number} has an invalid command")
        raise _unsupported_pattern(number, f"{COMMANDS[command.lower()]} (%{command})")
    return _Pattern(pattern[0], rest)


def _unsupported_pattern(number: int, what: str) -> ModelFileError:
    """Error for a pattern that templates cannot express."""
    return ModelFileError(
        f"has {what} in pattern {number}, which templates of crfit cannot express: train again with other "
        "patterns"
    )


def _weights(text: bytes, n_weights: int, names: list[bytes], n_labels: int) -> tuple[Weights, Weights]:
    """Weights by (observation, label) and by (observation, label, label)."""
    lines = text.split()
    if len(lines) != n_weights:
        raise damaged(f"it has {len(lines)} weights instead of {n_weights}")
    ids = np.fromiter((_index(line) for line in lines), np.int64, len(lines))
    try:
        values = np.fromiter((_number(line) for line in lines), np.float64, len(lines))
    except (ValueError, OverflowError):
        raise damaged("one of its weights is not a number") from None
    check_finite(values)
    kinds = np.frombuffer(b"".join(name[:1] for name in names), np.uint8)
    Y, n_pairs = n_labels, n_labels * n_labels
    sizes = np.where(kinds == ord("b"), 0, Y) + np.where(kinds == ord("u"), 0, n_pairs)
    starts = offsets(sizes)
    if len(ids) and ids.max() >= starts[-1]:
        raise damaged(f"it has a weight with index {int(ids.max())}, but only {int(starts[-1])} features")
    observations = np.searchsorted(starts, ids, side="right") - 1
    within = ids - starts[observations]
    is_pair = (kinds[observations] == ord("b")) | (within >= Y)
    within -= np.where(is_pair & (kinds[observations] == ord("*")), Y, 0)
    codes = observations * np.where(is_pair, n_pairs, Y) + within
    states, pairs = (by_code(codes[own], values[own], "feature") for own in (~is_pair, is_pair))
    return states, pairs


def _index(line: bytes) -> int:
    index, equals, _ = line.partition(b"=")
    if not equals or not _is_number(index):
        raise damaged("one of its weights has no index")
    return int(index)


def _number(line: bytes) -> float:
    text = line.partition(b"=")[2].decode("ascii", "replace")
    return float.fromhex(text) if "x" in text else float(text)


def _copied(weights: Weights, sources: NDArray[np.int64], n_rows: int, width: int) -> Weights:
    """Weights with rows `sources` of the given ones."""
    ptr, columns = to_rows(weights.codes, n_rows, width)
    new_ptr, places = rows(ptr, sources)
    codes = np.repeat(np.arange(len(sources)), np.diff(new_ptr)) * width + columns[places]
    return Weights(codes, weights.values[places])


def _wapiti_name(row: int) -> str:
    return f"_x{row:+d}" if abs(row) <= N_OUTSIDE else "_x-#" if row < 0 else "_x+#"


def _crfit_name(row: int) -> str:
    return f"_B{row:+d}"


class _Renamer:
    """Translates the names of cells outside the sequence in the strings of template lines.

    Strings do not say where cells begin and end. For each line, and each distance of a position to both ends
    of the sequence at which the line refers to cells outside, the texts between the cells inside are known;
    the string is searched for them. A token that reads like such a name is taken for a cell outside: readings
    with the most cells outside win.
    """

    def __init__(self, lines: Iterable[str], one: Naming, other: Naming) -> None:
        self.marks = one(-1)[:-1], one(1)[:-1]
        runs = (runs for line in dict.fromkeys(lines) for runs in _runs(line, one, other))
        self.runs = list(islice(runs, MAX_RUNS + 1))
        if len(self.runs) > MAX_RUNS:
            raise ModelFileError("has too many patterns with cells before and after the current one")
        self.runs.sort(key=lambda runs: -runs.n_outside)

    def __call__(self, string: str) -> list[str]:
        """All translations of a string; itself if it has no cells outside."""
        if not any(mark in string for mark in self.marks):
            return [string]
        for _, equal in groupby(self.runs, key=lambda runs: runs.n_outside):
            found = [_replaced(string, runs.texts) for runs in equal]
            if any(one is not None for one in found):
                return list(dict.fromkeys(one for one in found if one is not None))
        return [string]


class _Runs(NamedTuple):
    """Texts between the cells inside the sequence, in both namings, and the number of cells outside."""

    n_outside: int
    texts: list[tuple[str, str]]


def _runs(line: str, one: Naming, other: Naming) -> Iterator[_Runs]:
    """For each place near the ends of a sequence: what the string of a line consists of."""
    pieces = CELL.split(line)  # literal, row, column, literal, ...
    literals, cells = pieces[::3], list(map(int, pieces[1::3]))
    n_before, n_after = max(0, -min(cells, default=0)), max(0, max(cells, default=0))
    for before in range(n_before + 1):
        for after in range(n_after + 1):
            if (before, after) == (n_before, n_after):
                continue  # all cells are inside
            runs = [(literals[0], literals[0])]
            for row, literal in zip(cells, literals[1:], strict=True):
                outside = row + before if row + before < 0 else max(0, row - after)
                if outside:
                    last = runs.pop()
                    runs.append((last[0] + one(outside) + literal, last[1] + other(outside) + literal))
                else:
                    runs.append((literal, literal))
            yield _Runs(len(literals) - len(runs), runs)


def _replaced(string: str, runs: list[tuple[str, str]]) -> str | None:
    """The string with each run replaced; None unless it consists of the runs with text between them."""
    first, last = runs[0], runs[-1]
    if not string.startswith(first[0]):
        return None
    if len(runs) == 1:
        return first[1] if string == first[0] else None
    at, made = len(first[0]), [first[1]]
    for one, other in runs[1:-1]:  # the first occurrence leaves most for the rest
        found = string.find(one, at + 1)
        if found < 0:
            return None
        made += [string[at:found], other]
        at = found + len(one)
    end = len(string) - len(last[0])
    if end <= at or not string.endswith(last[0]):
        return None
    return "".join([*made, string[at:end], last[1]])


def _made(model: Model) -> bytes:
    """Contents of the file."""
    lines = needed_template(model, TOOL)
    parts = take_apart(model, TOOL, edges=True)
    Y, A = model.layout.n_labels, model.layout.n_attributes
    all_lines = [*lines.attributes, *lines.edges]
    if any(abs(int(row)) > N_OUTSIDE for line in all_lines for row, _ in CELL.findall(line)):
        raise unsupported(TOOL, f"names for cells more than {N_OUTSIDE} rows outside", "change the template")
    attributes = strings_of(model.attribute_alphabet, TOOL, "attribute")
    edges = strings_of(model.edge_alphabet, TOOL, "attribute")
    edges, by_pair = label_pairs(parts, lines, edges, Y, TOOL)
    renamed = _Renamer(all_lines, _crfit_name, _wapiti_name)
    names = [
        (name[0].lower() + name[1:]).encode("utf-8", "surrogateescape")
        for string in attributes + edges
        for name in renamed(string.decode("utf-8", "surrogateescape"))
    ]
    if len(names) != len(attributes) + len(edges) or len(set(names)) < len(names):
        raise unsupported(TOOL, "tokens named like cells outside the sequence", "rename them in the data")
    indices = np.append(parts.states.codes, A * Y + by_pair.codes)
    weights = np.append(parts.states.values, by_pair.values)
    n_columns = 0 if model.template is None else model.template.n_columns
    patterns = [_wapiti_pattern(line).encode("utf-8", "surrogateescape") for line in all_lines]
    labels = strings_of(model.label_alphabet, TOOL, "label")
    return b"".join(
        [
            b"#mdl#%d#%d\n" % (CRF, len(weights)),
            b"#rdr#%d/%d/0\n" % (len(patterns), max(0, n_columns - 1)),
            *map(_netstring, patterns),
            b"#qrk#%d\n" % len(labels),
            *map(_netstring, labels),
            b"#qrk#%d\n" % len(names),
            *map(_netstring, names),
            _lines(indices, weights),
        ]
    )


def _wapiti_pattern(line: str) -> str:
    """The pattern of a template line; numbers have no leading zeros, which Wapiti reads as octal."""
    return line[0].lower() + CELL.sub(lambda cell: f"%x[{int(cell[1])},{int(cell[2])}]", line[1:])


def _netstring(text: bytes) -> bytes:
    return b"%d:%s,\n" % (len(text), text)


def _lines(indices: Codes, weights: NDArray[np.float64]) -> bytes:
    pairs = zip(indices.tolist(), weights.tolist(), strict=True)
    return "".join(f"{index}={_hexadecimal(weight)}\n" for index, weight in pairs).encode("ascii")


def _hexadecimal(weight: float) -> str:
    """The weight as C prints it, without trailing zeros."""
    digits, _, exponent = weight.hex().partition("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}" if "." in digits else weight.hex()
