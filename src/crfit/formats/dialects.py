"""Models with a template of one dialect as models with a template of the other.

The dialects name kinds of lines and cells outside the sequence differently, in the strings too:

    Wapiti                    CRF++
    u..., b...                U..., B...
    *...                      U*... and B*...
    _x-1 to _x-4, then _x-#   _B-1, _B-2, ...      cells before the sequence
    _x+1 to _x+4, then _x+#   _B+1, _B+2, ...      cells after it
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crfit.checks import rows
from crfit.data.templates import Dialect, Template
from crfit.errors import ModelFileError
from crfit.formats.parts import (
    CELL,
    Weights,
    from_strings,
    label_pairs,
    needed_template,
    strings_of,
    take_apart,
    unsupported,
)
from crfit.layout.features import to_rows

if TYPE_CHECKING:
    from crfit.model import Model

__all__ = ["copied", "in_dialect"]

TOOLS: dict[Dialect, str] = {"crfpp": "CRF++", "wapiti": "Wapiti"}
MAX_ROW = 20  # of a cell in a pattern
MAX_RUNS = 5000  # combinations of a pattern and distances to the ends of a sequence
N_OUTSIDE = 4  # cells outside the sequence with a name of their own in Wapiti

#: Commands of patterns that CRF++'s templates do not have.
COMMANDS = {"t": "regular expressions", "m": "regular expressions", "x": "lower case"}
#: The command that they have, as Wapiti reads it.
REFERENCE = re.compile(r"%x\[\s*([-+]?)(0[xX][0-9a-fA-F]+|\d+),\s*(\d+)\]")

#: Name of a cell that is this many rows outside the sequence; negative: before it.
Naming: TypeAlias = Callable[[int], str]


def in_dialect(model: Model, dialect: Dialect) -> Model:
    """The model with a template of this dialect: itself, or one with the same scores.

    Raises ModelFileError if the dialect cannot express its template.
    """
    tool = TOOLS[dialect]
    lines, parts = needed_template(model, tool), take_apart(model, tool, edges=True)
    if model.template is None or model.template.dialect == dialect:
        return model
    Y = model.layout.n_labels
    attributes = strings_of(model.attribute_alphabet, tool, "attribute")
    edges, pairs = label_pairs(parts, lines, strings_of(model.edge_alphabet, tool, "attribute"), Y, tool)
    translate = _to_crfpp if dialect == "crfpp" else _to_wapiti
    template, (of_states, of_pairs) = translate(model.template, [attributes, edges])
    return from_strings(
        model.label_alphabet,
        template,
        of_states.names,
        copied(parts.states, of_states.sources, len(attributes), Y),
        of_pairs.names,
        copied(pairs, of_pairs.sources, len(edges), Y * Y),
        tool,
        model.n_columns or 0,
    )


class _Translated(NamedTuple):
    """Strings, and for each the index of the string that it is a translation of."""

    names: list[bytes]
    sources: NDArray[np.int64]


def _to_crfpp(template: Template, strings: list[list[bytes]]) -> tuple[Template, list[_Translated]]:
    """Template and strings of CRF++; a string with ``_x-#`` becomes several."""
    texts = [_crfpp_line(line, number) for number, line in enumerate(template.lines, start=1)]
    made = [prefix + text[1:] for text in texts for prefix in _prefixes(text[0])]
    renamed = _Renamer(made, _wapiti_name, _crfpp_name)
    found = []
    for side, own in zip("UB", strings, strict=True):
        names, sources = list[bytes](), list[int]()
        for i, string in enumerate(own):
            text = string.decode("utf-8", "surrogateescape")
            prefix = next(one for one in _prefixes(text[0]) if one[0] == side)
            variants = renamed(prefix + text[1:])
            names += [one.encode("utf-8", "surrogateescape") for one in variants]
            sources += [i] * len(variants)
        found.append(_Translated(names, np.array(sources, dtype=np.int64)))
    return Template("\n".join([*made, ""])), found


def _prefixes(kind: str) -> list[str]:
    return {"u": ["U"], "b": ["B"], "*": ["U*", "B*"]}[kind]


def _crfpp_line(pattern: str, number: int) -> str:
    """A pattern with references as in CRF++'s templates."""

    def reference(match: re.Match[str]) -> str:
        sign, digits, column = match.groups()
        is_octal = digits.startswith("0") and digits.isdigit()
        row = int(digits, 8 if is_octal else 16 if digits[:2] in ("0x", "0X") else 10)
        if row > MAX_ROW:
            raise _unsupported_pattern(number, f"cells more than {MAX_ROW} rows away")
        return f"%x[{'-' if sign == '-' and row else ''}{row},{int(column)}]"

    line = REFERENCE.sub(reference, pattern)
    for match in re.finditer(r"%(.)\[(@?)", CELL.sub("", line)):
        command, absolute = match.groups()
        what = "absolute positions (@)" if absolute else f"{COMMANDS[command.lower()]} (%{command})"
        raise _unsupported_pattern(number, what)
    return line


def _unsupported_pattern(number: int, what: str) -> ModelFileError:
    return unsupported("CRF++", f"{what}, which pattern {number} has", "save the model as .crfit or .wapiti")


def _to_wapiti(template: Template, strings: list[list[bytes]]) -> tuple[Template, list[_Translated]]:
    """Template and strings of Wapiti."""
    if any(abs(int(row)) > N_OUTSIDE for line in template.lines for row, _ in CELL.findall(line)):
        raise unsupported(
            "Wapiti", f"names for cells more than {N_OUTSIDE} rows outside", "change the template"
        )
    if any("#" in line or line != line.rstrip() for line in template.lines):
        raise unsupported("Wapiti", "# or space at the end of a line in patterns", "change the template")
    renamed = _Renamer(template.lines, _crfpp_name, _wapiti_name)
    found = []
    for own in strings:
        names = [
            (name[0].lower() + name[1:]).encode("utf-8", "surrogateescape")
            for string in own
            for name in renamed(string.decode("utf-8", "surrogateescape"))
        ]
        if len(names) != len(own) or len(set(names)) < len(names):
            raise unsupported(
                "Wapiti", "tokens named like cells outside the sequence", "rename them in the data"
            )
        found.append(_Translated(names, np.arange(len(own))))
    patterns = [line[0].lower() + CELL.sub(_plain_reference, line[1:]) for line in template.lines]
    return Template("\n".join([*patterns, ""]), dialect="wapiti"), found


def _plain_reference(cell: re.Match[str]) -> str:
    """A reference whose numbers have no leading zeros, which Wapiti reads as octal."""
    return f"%x[{int(cell[1])},{int(cell[2])}]"


def copied(weights: Weights, sources: NDArray[np.int64], n_rows: int, width: int) -> Weights:
    """Weights with rows `sources` of the given ones."""
    ptr, columns = to_rows(weights.codes, n_rows, width)
    new_ptr, places = rows(ptr, sources)
    codes = np.repeat(np.arange(len(sources)), np.diff(new_ptr)) * width + columns[places]
    return Weights(codes, weights.values[places])


def _wapiti_name(row: int) -> str:
    return f"_x{row:+d}" if abs(row) <= N_OUTSIDE else "_x-#" if row < 0 else "_x+#"


def _crfpp_name(row: int) -> str:
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
