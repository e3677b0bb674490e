"""Model files of CRF++, text and binary.

A model has labels, the lines of a template, and the strings that the template made from the training data,
each with the index of its first weight: one weight per label for a string of a U line, one per pair of labels
(previous label first) for a string of a B line. The text form is five blocks of lines, with an empty line
between them:

    header, labels, template, "index string" sorted by string, weights

The binary form has, little-endian,

    version, type, cost factor, number of weights and columns, size of the trie      4 4 8 4 4 4 bytes
    size of the labels, labels, size of the template, template                       strings end with NUL
    trie                                                                             pairs (base, check)
    weights                                                                          float32

The trie is a double array [2]. Unit 0 is the root. The child of a unit by byte c is unit ``base + c + 1``;
its check is the base of its parent. Unit ``base`` itself, if its check says so, ends a string; its base is
``-i - 1`` for index i.

References
----------
[1] T. Kudo. CRF++: yet another CRF toolkit.
[2] J. Aoe (1989). An efficient digital search algorithm by using a double-array structure. IEEE Transactions
    on Software Engineering 15(9).
"""

from __future__ import annotations

import os
import struct
from array import array
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crfit.checks import offsets, rows
from crfit.data.templates import Template
from crfit.errors import ModelFileError
from crfit.formats import signatures
from crfit.formats.dialects import in_dialect
from crfit.formats.parts import (
    CELL,
    Lines,
    Source,
    alphabet_of,
    check_finite,
    damaged,
    from_strings,
    label_pairs,
    needed_template,
    nonzero,
    parsed,
    strings_of,
    take_apart,
    template_lines,
    unsupported,
    write_file,
)

if TYPE_CHECKING:
    from crfit.model import Model

__all__ = ["check_template", "read", "write", "write_text"]

TOOL = "CRF++"
VERSION = 100
HEADER = struct.Struct("<IIdIIII")
MAX_WEIGHTS = 2**31 - 1
MAX_ROW = 8  # of a cell in a template
MAX_LINE = 8191  # bytes of a line in a text file
MAX_NAME = MAX_LINE - 12  # leaves room for the index before it
MAX_DEPTH = 1 << 17  # of the trie, so bytes of a string in a binary file
MAX_COLUMNS = 2**31 - 1
N_CODES = 257  # of children in the trie: 0 ends a string, 1 + byte continues it
N_TRIES = 32  # free units to try for children, before new ones are added at the end
MAX_GROWTH = 100  # bytes of strings per byte of trie; common prefixes are stored once


def read(source: Source, name: str | None = None) -> Model:
    """Read a CRF++ model, text or binary.

    Parameters
    ----------
    source, name
        As in `crfit.formats.crfsuite_model.read`.

    Raises
    ------
    ModelFileError
        The file cannot be read, or is not a valid model.
    """
    return parsed(_parse, source, name)


def write(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as a binary CRF++ file; weights are rounded to float32.

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
    write_file(path, lambda: _binary(_contents(model)))


def write_text(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as a CRF++ text file; weights are exact. Parameters and errors as in `write`."""
    write_file(path, lambda: _text(_contents(model)))


def check_template(template: Template, path: str | os.PathLike[str]) -> None:
    """Raise ModelFileError, before training, if a model with this template could not be written to `path`."""
    try:
        _check_lines(template_lines(template))
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None


class _Contents(NamedTuple):
    """What a file holds. String i has the weights from `ids[i]` on; ids need not ascend."""

    labels: list[bytes]
    lines: list[bytes]
    strings: list[bytes]
    ids: NDArray[np.int64]
    weights: NDArray[np.float64]
    n_columns: int  # without the label


def _parse(data: bytes) -> Model:
    if data.startswith(signatures.CRFPP_BINARY):
        return _model(_parse_binary(data))
    if data.startswith(signatures.CRFPP_TEXT):
        return _model(_parse_text(data))
    raise ModelFileError("is not a CRF++ model: check its name")


def _model(found: _Contents) -> Model:
    labels = alphabet_of(found.labels, "label")
    Y = len(labels)
    if not all(string.startswith((b"U", b"B")) for string in found.strings):
        raise damaged("it has a string that begins neither with U nor with B")
    order = np.argsort(found.ids, kind="stable")
    strings, ids = [found.strings[i] for i in order], found.ids[order]
    is_edge = np.array([string.startswith(b"B") for string in strings], dtype=bool)
    ends = offsets(np.where(is_edge, Y * Y, Y))
    if (ids != ends[:-1]).any() or ends[-1] != len(found.weights):
        raise damaged("the indices of its strings do not match the number of weights")
    blocks = []
    for firsts, size in ((ids[~is_edge], Y), (ids[is_edge], Y * Y)):
        blocks.append(nonzero(found.weights[firsts[:, None] + np.arange(size if len(firsts) else 0)].ravel()))
    template = Template(b"\n".join([*found.lines, b""]).decode("utf-8", "surrogateescape"))
    if not template.n_columns <= found.n_columns <= MAX_COLUMNS:
        raise damaged(f"its template needs {template.n_columns} columns, its header says {found.n_columns}")
    return from_strings(
        labels,
        template,
        [string for string in strings if string.startswith(b"U")],
        blocks[0],
        [string for string in strings if string.startswith(b"B")],
        blocks[1],
        TOOL,
        found.n_columns + 1 if found.n_columns else 0,
    )


def _parse_text(data: bytes) -> _Contents:
    if b"\r\n" in data[:64]:
        data = data.replace(b"\r\n", b"\n")
    lines = data.rstrip(b"\n").split(b"\n")
    blocks, start = list[list[bytes]](), 0
    for _ in range(4):
        try:
            end = lines.index(b"", start)
        except ValueError:
            raise damaged(f"it ends in block {len(blocks) + 1} of 5") from None
        blocks.append(lines[start:end])
        start = end + 1
    header, labels, template, strings = blocks
    values = lines[start:]
    fields = dict(line.partition(b": ")[::2] for line in header)
    try:
        version, n, n_columns = (int(fields[name]) for name in (b"version", b"maxid", b"xsize"))
        factor = float(fields.get(b"cost-factor", b"1"))
    except (KeyError, ValueError):
        raise damaged("its header has no valid version, maxid, xsize or cost-factor") from None
    _check_version(version)
    if n != len(values):
        raise damaged(f"its header says {n} weights, but it has {len(values)}")
    try:
        weights = np.fromiter(map(float, values), np.float64, len(values))
    except ValueError:
        raise damaged("one of its weights is not a number") from None
    pairs = [line.partition(b" ") for line in strings]
    if not all(number.isdigit() and len(number) < 12 for number, _, _ in pairs):
        raise damaged("one of its strings has no index")
    ids = np.array([int(number) for number, _, _ in pairs], dtype=np.int64)
    names = [string for _, _, string in pairs]
    return _Contents(labels, template, names, ids, _scaled(weights, factor), n_columns)


def _check_version(version: int) -> None:
    if version // 100 != VERSION // 100:
        raise ModelFileError(
            f"has version {version} of CRF++'s format, or is damaged: crfit reads version 1xx"
        )


def _scaled(weights: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Weights with the cost factor, by which CRF++ multiplies scores."""
    with np.errstate(over="ignore", invalid="ignore"):
        weights = weights * factor
    check_finite(weights)
    return weights


def _parse_binary(data: bytes) -> _Contents:
    if len(data) < HEADER.size:
        raise damaged("it ends within its header")
    version, _, factor, n, n_columns, trie_size, labels_size = HEADER.unpack_from(data)
    _check_version(version)
    template_at = HEADER.size + labels_size + 4
    template_size = int.from_bytes(data[template_at - 4 : template_at], "little")
    trie_at = template_at + template_size
    weights_at = trie_at + trie_size
    if weights_at + 4 * n != len(data):
        raise damaged(f"its header says {weights_at + 4 * n} bytes, but it has {len(data)}")
    labels = _c_strings(data[HEADER.size : HEADER.size + labels_size], "labels")
    lines = [
        line for line in _c_strings(data[template_at:trie_at], "template") if line
    ]  # the rest is padding
    if trie_size % 8 or not trie_size:
        raise damaged("the size of its trie is not a multiple of 8")
    strings, ids = _strings_of_trie(np.frombuffer(data, "<i4", trie_size // 4, trie_at).reshape(-1, 2))
    with np.errstate(invalid="ignore"):  # of NaN, which is rejected later
        weights = np.frombuffer(data, "<f4", n, weights_at).astype(np.float64)
    return _Contents(labels, lines, strings, ids, _scaled(weights, factor), n_columns)


def _c_strings(block: bytes, what: str) -> list[bytes]:
    if block and not block.endswith(b"\0"):
        raise damaged(f"its {what} do not end where they should")
    return block.split(b"\0")[:-1]


def _strings_of_trie(units: NDArray[np.int32]) -> tuple[list[bytes], NDArray[np.int64]]:
    """All strings of a trie and their ids, walking down all branches at once."""
    base, check = units[:, 0].astype(np.int64), units[:, 1].astype(np.int64)
    codes = np.arange(len(units)) - check
    used = np.flatnonzero((check > 0) & (codes >= 0) & (codes < N_CODES))
    by_check = used[np.argsort(check[used], kind="stable")]
    ptr = offsets(np.bincount(check[used], minlength=len(units)))
    parents, seen = np.zeros(len(units), np.int64), np.zeros(len(units), dtype=bool)
    nodes = np.zeros(1 if base[0] else 0, np.int64)  # a trie without strings has only a root
    ends, depths, depth = [nodes[:0]], [nodes[:0]], 0
    while len(nodes):
        bases = base[nodes]
        if depth > MAX_DEPTH:
            raise damaged(f"it has a string of more than {MAX_DEPTH} bytes")
        if bases.min() < 1 or bases.max() >= len(units) or (ptr[bases] == ptr[bases + 1]).any():
            raise damaged("its trie has a branch that leads nowhere")
        # A unit has one check, so units that are children of two have parents with equal bases.
        if seen[bases].any() or len(np.unique(bases)) < len(bases):
            raise damaged("its trie has branches that join")
        seen[bases] = True
        children_ptr, places = rows(ptr, bases)
        children = by_check[places]
        parents[children] = np.repeat(nodes, np.diff(children_ptr))
        is_end = codes[children] == 0
        if (is_end != (base[children] < 0)).any():
            raise damaged("its trie has a string without an index")
        ends.append(children[is_end])
        depths.append(np.full(int(is_end.sum()), depth))
        nodes, depth = children[~is_end], depth + 1
    end, lengths = np.concatenate(ends), np.concatenate(depths)
    bounds = offsets(lengths)
    if bounds[-1] > MAX_GROWTH * units.nbytes:
        raise damaged("its trie has too many long strings")
    text = np.zeros(bounds[-1], dtype=np.uint8)
    node, place = parents[end], bounds[1:] - 1
    while len(node):  # from the ends to the root
        inside = node > 0
        node, place = node[inside], place[inside]
        text[place] = codes[node] - 1
        node, place = parents[node], place - 1
    packed, starts = text.tobytes(), bounds.tolist()
    return [packed[a:b] for a, b in pairwise(starts)], -base[end] - 1


def _contents(model: Model) -> _Contents:
    """The model with a weight for every label, or pair of labels, of every string."""
    model = in_dialect(model, "crfpp")
    lines = needed_template(model, TOOL)
    parts = take_apart(model, TOOL, edges=True)
    Y, A = model.layout.n_labels, model.layout.n_attributes
    _check_lines(lines)
    attributes = strings_of(model.attribute_alphabet, TOOL, "attribute")
    edges, by_pair = label_pairs(parts, lines, strings_of(model.edge_alphabet, TOOL, "attribute"), Y, TOOL)
    if A * Y + len(edges) * Y * Y > MAX_WEIGHTS:
        raise unsupported(TOOL, f"more than {MAX_WEIGHTS:,} weights", "save the model as .crfit")
    weights = np.zeros(A * Y + len(edges) * Y * Y)
    weights[parts.states.codes] = parts.states.values
    weights[A * Y + by_pair.codes] = by_pair.values
    labels = strings_of(model.label_alphabet, TOOL, "label")
    if b"" in labels:
        raise unsupported(TOOL, "an empty label", "rename it")
    return _Contents(
        labels,
        [line.encode("utf-8", "surrogateescape") for line in (*lines.attributes, *lines.edges)],
        attributes + edges,
        np.append(np.arange(A) * Y, A * Y + np.arange(len(edges)) * Y * Y),
        weights,
        _n_columns(model),
    )


def _n_columns(model: Model) -> int:
    """Columns of the training data, without the label; if they are unknown, those that the template needs."""
    needed = 0 if model.template is None else model.template.n_columns
    return max(needed, (model.n_columns or 0) - 1)


def _check_lines(lines: Lines) -> None:
    cells = [cell for line in (*lines.attributes, *lines.edges) for cell in CELL.findall(line)]
    if any(abs(int(row)) > MAX_ROW for row, _ in cells):
        raise unsupported(TOOL, f"cells more than {MAX_ROW} rows away", "change the template")
    if any("\0" in line for line in (*lines.attributes, *lines.edges)):
        raise unsupported(TOOL, "NUL characters in templates", "change the template")


def _text(made: _Contents) -> bytes:
    _check_lengths(made, MAX_NAME)
    header = [
        b"version: %d" % VERSION,
        b"cost-factor: 1",
        b"maxid: %d" % len(made.weights),
        b"xsize: %d" % made.n_columns,
    ]
    pairs = sorted(zip(made.strings, made.ids.tolist(), strict=True))
    strings = [b"%d %s" % (number, string) for string, number in pairs]
    blocks = [header, made.labels, made.lines, strings]
    numbers = [_number(weight) for weight in made.weights.tolist()]
    return b"".join(b"".join(line + b"\n" for line in block) + b"\n" for block in blocks) + "".join(
        number + "\n" for number in numbers
    ).encode("ascii")


def _check_lengths(made: _Contents, most: int) -> None:
    if any(len(name) > most for name in (*made.strings, *made.labels)):
        raise unsupported(TOOL, f"names of more than {most} bytes", "shorten them")


def _number(weight: float) -> str:
    """The weight with 16 decimals, as CRF++ writes it, if that is exact; else with all its digits."""
    usual = f"{weight:.16f}" if abs(weight) < 1e16 else ""
    return usual if usual and float(usual) == weight else repr(weight)


def _binary(made: _Contents) -> bytes:
    _check_lengths(made, MAX_DEPTH)
    with np.errstate(over="ignore"):
        weights = made.weights.astype("<f4")
    if not np.isfinite(weights).all():
        raise unsupported(TOOL, "weights too large for float32", "convert to the text format, .crfpp.txt")
    labels = b"".join(label + b"\0" for label in made.labels)
    template = b"".join(line + b"\0" for line in made.lines)
    template += b"\0" * (-(len(labels) + len(template)) % 4)
    trie = _trie(sorted(zip(made.strings, made.ids.tolist(), strict=True)))
    header = HEADER.pack(VERSION, 0, 1.0, len(weights), made.n_columns, len(trie), len(labels))
    size = struct.pack("<I", len(template))
    return b"".join([header, labels, size, template, trie, weights.tobytes()])


def _trie(pairs: list[tuple[bytes, int]]) -> bytes:
    """Double array of distinct strings, sorted, and their ids."""
    units = _DoubleArray()
    todo = [(0, 0, len(pairs), 0)] if pairs else []  # unit, the pairs with its prefix, length of the prefix
    while todo:
        unit, first, last, depth = todo.pop()
        codes, starts = list[int](), list[int]()
        for i in range(first, last):
            string = pairs[i][0]
            code = string[depth] + 1 if depth < len(string) else 0
            if not codes or code != codes[-1]:
                codes.append(code)
                starts.append(i)
        base = units.place(unit, codes)
        for code, start, end in zip(codes, starts, [*starts[1:], last], strict=True):
            if code:
                todo.append((base + code, start, end, depth + 1))
            else:
                units.base[base] = -pairs[start][1] - 1
    n = units.end + N_CODES  # CRF++ looks for children without a check of the bounds
    found = np.zeros((n, 2), dtype="<i4")
    found[: units.end, 0] = units.base[: units.end]
    found[: units.end, 1] = units.check[: units.end]
    return found.tobytes()


class _DoubleArray:
    """Units of a trie. `taken` marks units in use, `used` bases: no two units may have the same one."""

    def __init__(self) -> None:
        self.taken, self.used = bytearray(b"\1"), bytearray(b"\1")  # unit 0 is the root
        self.base, self.check = array("i", [0]), array("i", [0])
        self.free, self.end = 1, 1  # first unit not in use, last one in use plus one

    def place(self, unit: int, codes: list[int]) -> int:
        """Take places for the children of a unit, whose codes ascend; return its base."""
        self._grow(self.end + N_TRIES + 3 * N_CODES)
        taken, used, low = self.taken, self.used, codes[0]
        slot = taken.find(0, max(self.free, low + 1))
        for _ in range(N_TRIES):
            if not used[slot - low] and not any(taken[slot - low + code] for code in codes):
                break
            slot = taken.find(0, slot + 1)
        else:  # from the end on all units are free
            slot = max(self.end, low + 1)
            while used[slot - low]:
                slot += 1
        base = self.base[unit] = slot - low
        used[base] = 1
        for code in codes:
            taken[base + code] = 1
            self.check[base + code] = base
        self.end = max(self.end, base + codes[-1] + 1)
        self.free = taken.find(0, self.free)
        return base

    def _grow(self, size: int) -> None:
        if size > len(self.taken):
            more = max(size, 2 * len(self.taken)) - len(self.taken)
            for marks in (self.taken, self.used):
                marks.extend(bytes(more))
            for numbers in (self.base, self.check):
                numbers.frombytes(bytes(numbers.itemsize * more))
