"""Wapiti's model files.

A file is text. Strings are netstrings, ``length:bytes,`` and a line end:

    #mdl#TYPE#WEIGHTS             type 2 is a CRF
    #rdr#PATTERNS/COLUMN/AUTO     then the patterns
    #qrk#LABELS                   then the labels
    #qrk#OBSERVATIONS             then the strings that the patterns made
    INDEX=WEIGHT                  non-zero weights, in hexadecimal

An observation that begins with ``u`` has one weight per label, one with ``b`` has one per pair of labels, the
previous label first, and one with ``*`` has both. Indices count through all observations.

A model has the patterns as a template in Wapiti's dialect. Its attributes are the observations with ``u`` and
``*``, its edge attributes those with ``b`` and ``*``.

References
----------
[1] T. Lavergne, O. Cappé, F. Yvon (2010). Practical very large scale CRFs. ACL.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from crfit.checks import offsets
from crfit.data.templates import Template
from crfit.errors import ModelFileError
from crfit.formats import signatures
from crfit.formats.dialects import copied, in_dialect
from crfit.formats.parts import (
    Source,
    Weights,
    alphabet_of,
    by_code,
    check_finite,
    damaged,
    from_strings,
    label_pairs,
    parsed,
    plain_string,
    strings_of,
    take_apart,
    template_lines,
    write_file,
)
from crfit.layout.features import Codes

if TYPE_CHECKING:
    from crfit.model import Model

__all__ = ["Contents", "contents_of", "encoded", "model_of", "order_of", "read", "with_contents", "write"]

TOOL = "Wapiti"
TYPES = {0: "a maximum entropy model", 1: "a maximum entropy Markov model"}
CRF = 2
MAX_NUMBER = 18  # digits

#: In the summary of a model that was read: places of its ``b`` observations among all.
PLACES = "places_of_b"


def read(source: Source, name: str | None = None) -> Model:
    """Read a Wapiti model; `write` writes it back byte for byte.

    Parameters
    ----------
    source, name
        As in `crfit.formats.crfsuite_model.read`.

    Raises
    ------
    ModelFileError
        The file cannot be read, or is not a valid CRF with patterns.
    """
    return parsed(lambda data: model_of(_parse(data)), source, name)


def write(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as a Wapiti file.

    Parameters
    ----------
    model, path
        As in `crfit.formats.crfpp.write`.

    Raises
    ------
    ModelFileError
        The format cannot express the model, or the file cannot be written.
    """
    write_file(path, lambda: encoded(contents_of(model)))


class Contents(NamedTuple):
    """What a file holds: the weights that are not zero, by ascending index."""

    patterns: list[bytes]
    labels: list[bytes]
    names: list[bytes]  # of the observations
    indices: Codes
    weights: NDArray[np.float64]

    @property
    def starts(self) -> Codes:
        """Index of the first weight of each observation, and the number of all."""
        return offsets(np.array([self.size(name) for name in self.names], dtype=np.int64))

    def size(self, name: bytes) -> int:
        """Number of weights of an observation."""
        Y = len(self.labels)
        return {b"u": Y, b"b": Y * Y, b"*": Y + Y * Y}[name[:1]]


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


def _parse(data: bytes) -> Contents:
    if not data.startswith(signatures.WAPITI):
        raise ModelFileError("is not a Wapiti model: check its name")
    cursor = _Cursor(data)
    *kinds, n_weights = cursor.numbers(signatures.WAPITI, "type")
    if kinds and kinds[0] != CRF:
        what = TYPES.get(kinds[0], "a model of an unknown type")
        raise ModelFileError(f"is {what}: crfit reads Wapiti's CRFs")
    patterns = cursor.strings(cursor.numbers(b"#rdr#", "patterns")[0], "patterns")
    if not patterns:
        raise ModelFileError(
            "has no patterns, so its features are the tokens themselves: crfit reads models with patterns"
        )
    for number, pattern in enumerate(patterns, start=1):
        if pattern[:1] not in (b"u", b"b", b"*") or re.search(rb"[#\n\r]|\s$", pattern):
            raise damaged(
                f"pattern {number} does not begin with u, b or *, has a comment, or is not one line"
            )
    labels = cursor.strings(cursor.numbers(b"#qrk#", "labels")[0], "labels")
    names = cursor.strings(cursor.numbers(b"#qrk#", "observations")[0], "observations")
    if not all(name[:1] in (b"u", b"b", b"*") for name in names):
        raise damaged("it has an observation that does not begin with u, b or *")
    lines = data[cursor.at :].split()
    if len(lines) != n_weights:
        raise damaged(f"it has {len(lines)} weights instead of {n_weights}")
    ids = np.fromiter((_index(line) for line in lines), np.int64, len(lines))
    try:
        values = np.fromiter((_number(line) for line in lines), np.float64, len(lines))
    except (ValueError, OverflowError):
        raise damaged("one of its weights is not a number") from None
    check_finite(values)
    return Contents(patterns, labels, names, *by_code(ids, values, "feature"))


def _index(line: bytes) -> int:
    index, equals, _ = line.partition(b"=")
    if not equals or not _is_number(index):
        raise damaged("one of its weights has no index")
    return int(index)


def _number(line: bytes) -> float:
    text = line.partition(b"=")[2].decode("ascii", "replace")
    return float.fromhex(text) if "x" in text else float(text)


def model_of(file: Contents) -> Model:
    """The model of a file."""
    labels = alphabet_of(file.labels, "label")
    alphabet_of(file.names, "observation")
    states, pairs = _by_observation(file)
    sides = [
        np.array([i for i, name in enumerate(file.names) if name[:1] in kinds], dtype=np.int64)
        for kinds in ((b"u", b"*"), (b"b", b"*"))
    ]
    names = [[file.names[i] for i in side] for side in sides]
    text = b"\n".join([*file.patterns, b""]).decode("utf-8", "surrogateescape")
    template, Y = Template(text, dialect="wapiti"), len(labels)
    plain = plain_string(template_lines(template))
    return from_strings(
        labels,
        template,
        names[0],
        copied(states, sides[0], len(file.names), Y),
        names[1],
        copied(pairs, sides[1], len(file.names), Y * Y),
        TOOL,
        summary={PLACES: _places(file.names, names[1], plain)},
    )


def _by_observation(file: Contents) -> tuple[Weights, Weights]:
    """Weights by (observation, label) and by (observation, label, label)."""
    Y, starts, ids = len(file.labels), file.starts, file.indices
    kinds = np.frombuffer(b"".join(name[:1] for name in file.names), np.uint8)
    if len(ids) and ids[-1] >= starts[-1]:
        raise damaged(f"it has a weight with index {int(ids[-1])}, but only {int(starts[-1])} features")
    observations = np.searchsorted(starts, ids, side="right") - 1
    within = ids - starts[observations]
    is_pair = (kinds[observations] == ord("b")) | (within >= Y)
    within -= np.where(is_pair & (kinds[observations] == ord("*")), Y, 0)
    codes = observations * np.where(is_pair, Y * Y, Y) + within
    states, pairs = (Weights(codes[own], file.weights[own]) for own in (~is_pair, is_pair))
    return states, pairs


def contents_of(model: Model) -> Contents:
    """What the file of a model holds; ModelFileError if the format cannot express the model.

    The order of observations is that of the file that the model was read from, or attributes first.
    """
    model = in_dialect(model, "wapiti")
    parts = take_apart(model, TOOL, edges=True)
    template = cast("Template", model.template)
    Y, lines = model.layout.n_labels, template_lines(template)
    attributes = strings_of(model.attribute_alphabet, TOOL, "attribute")
    edges, pairs = label_pairs(parts, lines, strings_of(model.edge_alphabet, TOOL, "attribute"), Y, TOOL)
    file = Contents(
        [line.encode("utf-8", "surrogateescape") for line in template.lines],
        strings_of(model.label_alphabet, TOOL, "label"),
        _ordered(attributes, edges, model.summary.get(PLACES), drop_plain=not len(parts.transitions.codes)),
        np.empty(0, np.int64),
        np.empty(0),
    )
    starts, at = file.starts, {name: i for i, name in enumerate(file.names)}
    first = np.array([starts[at[name]] for name in attributes], dtype=np.int64)
    skipped = [Y if name.startswith(b"*") else 0 for name in edges]  # the weights of single labels
    first_pair = np.array(
        [starts[at.get(name, 0)] + n for name, n in zip(edges, skipped, strict=True)], dtype=np.int64
    )
    states = parts.states.codes
    indices = np.append(
        first[states // Y] + states % Y, first_pair[pairs.codes // (Y * Y)] + pairs.codes % (Y * Y)
    )
    order = np.argsort(indices)
    return file._replace(indices=indices[order], weights=np.append(parts.states.values, pairs.values)[order])


def _places(names: list[bytes], edges: list[bytes], plain: bytes | None) -> list[int]:
    """Places of the ``b`` observations, that of the plain transitions first; -1 if it is not there."""
    found = [i for i, name in enumerate(names) if name.startswith(b"b") and name != plain]
    if plain is None or (plain.startswith(b"*") and plain in edges):
        return found
    return [names.index(plain) if plain in edges else -1, *found]


def _ordered(attributes: list[bytes], edges: list[bytes], places: Any, drop_plain: bool) -> list[bytes]:
    """All observations, each once; `places` as in `_places`, or anything else to put attributes first."""
    known = set(attributes)
    only = [name for name in edges if name not in known]
    places = places if isinstance(places, list) else []
    if places[:1] == [-1] and drop_plain and only:
        places, only = places[1:], only[1:]
    n = len(attributes) + len(only)
    if len(places) != len(only) or not set(places) <= set(range(n)) or len(set(places)) < len(places):
        return attributes + only
    names, rest = dict(zip(places, only, strict=True)), iter(attributes)
    return [names[i] if i in names else next(rest) for i in range(n)]


def with_contents(model: Model, file: Contents) -> Model:
    """The model of a file, with the options and the summary of a model."""
    made = model_of(file)
    made.options, made.summary = model.options, {**model.summary, **order_of(made)}
    return made


def order_of(model: Model) -> dict[str, Any]:
    """For the summary of a model with the same observations: their order in its file."""
    return {PLACES: model.summary[PLACES]} if PLACES in model.summary else {}


def encoded(file: Contents) -> bytes:
    """The file itself."""
    columns = Template(
        b"\n".join(file.patterns).decode("utf-8", "surrogateescape"), dialect="wapiti"
    ).n_columns
    return b"".join(
        [
            b"#mdl#%d#%d\n" % (CRF, len(file.weights)),
            b"#rdr#%d/%d/0\n" % (len(file.patterns), max(0, columns - 1)),
            *map(_netstring, file.patterns),
            b"#qrk#%d\n" % len(file.labels),
            *map(_netstring, file.labels),
            b"#qrk#%d\n" % len(file.names),
            *map(_netstring, file.names),
            _lines(file.indices, file.weights),
        ]
    )


def _netstring(text: bytes) -> bytes:
    return b"%d:%s,\n" % (len(text), text)


def _lines(indices: Codes, weights: NDArray[np.float64]) -> bytes:
    pairs = zip(indices.tolist(), weights.tolist(), strict=True)
    return "".join(f"{index}={_hexadecimal(weight)}\n" for index, weight in pairs).encode("ascii")


def _hexadecimal(weight: float) -> str:
    """The weight as C prints it, without trailing zeros."""
    digits, _, exponent = weight.hex().partition("p")
    return f"{digits.rstrip('0').rstrip('.')}p{exponent}" if "." in digits else weight.hex()
