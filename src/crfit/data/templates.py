"""CRF++ feature templates: how to build attributes from the columns around a position.

A template file has one template per line::

    # words and neighbours
    U00:%x[0,0]
    U01:%x[-1,0]/%x[0,0]
    B

``%x[row,column]`` is replaced by a cell: ``row`` is relative to the current position, ``column`` starts at 0.
Everything else is copied, so the identifier (``U00:``) keeps attributes of different templates apart. Cells
before the sequence read ``_B-1``, ``_B-2``, ..., cells after it ``_B+1``, ...

A ``U`` line adds one attribute to each position. A ``B`` line without ``%x`` enables transition weights, one
per pair of labels; without it the model has none. A ``B`` line with ``%x`` adds an edge attribute, with one
weight per pair of labels, to each position except the first.

References
----------
[1] T. Kudo. CRF++: yet another CRF toolkit. Section "Preparing feature templates" of its manual.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from crfit import _native
from crfit.errors import DataError, OptionError
from crfit.files import BYTE_ORDER_MARK

__all__ = ["Template", "default_template", "load_template", "shipped_templates"]

_SEPARATORS = frozenset(" \t\r\n")
_SHIPPED = Path(__file__).parent


class Template:
    """A parsed and validated feature template.

    Parameters
    ----------
    text : str
        Contents of a template file.
    name : str, optional
        File name for error messages.

    Raises
    ------
    DataError
        A line is not a valid template; the message names the file and line.
    """

    __slots__ = ("name", "native", "text")

    def __init__(self, text: str, name: str | None = None) -> None:
        self.text, self.name = text, name
        try:
            self.native = _native.Template(text.encode("utf-8", "surrogateescape"))
        except _native.TextError as error:
            message, _, line = error.args
            raise DataError(message, file=name, line=line or None) from None

    @property
    def n_columns(self) -> int:
        """Number of columns needed, without the label (1 + the highest column used)."""
        return self.native.n_columns

    @property
    def n_attributes(self) -> int:
        """Number of U lines, which is the number of attributes per position."""
        return self.native.n_attributes

    @property
    def n_edge_attributes(self) -> int:
        """Number of edge attributes per position (B lines except the first without ``%x``)."""
        return self.native.n_edges

    @property
    def plain_transitions(self) -> bool:
        """Whether a B line without ``%x`` enables transition weights, one per pair of labels."""
        return self.native.plain_transitions

    def expand(self, rows: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[list[str]]]:
        """Attributes and edge attributes of each position of one sequence, given rows without the label."""
        for position, row in enumerate(rows):
            if not row or not all(cell and _SEPARATORS.isdisjoint(cell) for cell in row):
                raise DataError("a cell is empty or contains white space", position=position, sequence=0)
        if not rows:
            return [], []
        text = "\n".join("\t".join(row) for row in rows).encode("utf-8", "surrogateescape")
        try:
            arrays, attributes, _, edges, _ = _native.read_texts(
                [text], _native.Format.columns, self.native, False, None, None, None, 1
            )
        except _native.TextError as error:
            message, _, line = error.args
            raise DataError(message, sequence=0, position=line - 1) from None

        def names(alphabet: _native.Alphabet, ptr: list[int], ids: list[int]) -> list[list[str]]:
            strings = [alphabet.string(i).decode("utf-8", "surrogateescape") for i in range(len(alphabet))]
            return [[strings[i] for i in ids[ptr[t] : ptr[t + 1]]] for t in range(len(rows))]

        made = names(attributes, arrays["attr_ptr"].tolist(), arrays["attr_ids"].tolist())
        if arrays["edge_ptr"] is None:
            return made, [[] for _ in rows]
        return made, names(edges, arrays["edge_ptr"].tolist(), arrays["edge_ids"].tolist())

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Template) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        counts = f"{self.n_attributes} attributes and {self.n_edge_attributes} edge attributes per position"
        return f"<Template {self.name or ''}: {counts}, {self.n_columns} columns>"

    def __reduce__(self) -> tuple[object, ...]:
        return Template, (self.text, self.name)


def default_template(n_columns: int) -> Template:
    """The template for column files without one; `n_columns` excludes the label.

    For each column: the values from two positions before to two after, and the current value paired with the
    previous and with the next one; also plain transitions.
    """
    # Models store this text, and templates with equal text are equal: the comment must not change.
    lines = ["# made by crfit for files without a template: a window of five, and neighbouring pairs"]
    for column in range(n_columns):
        lines += [f"U{column}[{row}]:%x[{row},{column}]" for row in range(-2, 3)]
        lines += [f"U{column}[{row},{row + 1}]:%x[{row},{column}]/%x[{row + 1},{column}]" for row in (-1, 0)]
    return Template("\n".join([*lines, "B", ""]), name="<default template>")


def shipped_templates() -> list[str]:
    """Names of the templates that come with crfit, for `load_template`."""
    return sorted(entry.name for entry in _SHIPPED.iterdir() if entry.name.endswith(".template"))


def load_template(path: str | os.PathLike[str]) -> Template:
    """Read a template file.

    Parameters
    ----------
    path : str or path
        A file, or the name of a template that comes with crfit.

    Raises
    ------
    DataError
        The file cannot be read or is not a valid template.
    """
    if not isinstance(path, str | os.PathLike):
        raise OptionError("template", path, "give a Template, a template file or a built-in name")
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        if str(path) not in shipped_templates():
            remedy = f"no such template file; the built-in templates are {', '.join(shipped_templates())}"
            raise DataError(remedy, file=str(path)) from None
        content = (_SHIPPED / str(path)).read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=str(path)) from None
    return Template(content.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "surrogateescape"), name=str(path))
