"""CRF++ feature templates: which attributes the columns around a position make.

A template file has one template a line::

    # words and neighbours
    U00:%x[0,0]
    U01:%x[-1,0]/%x[0,0]
    B

``%x[row,column]`` stands for a cell: ``row`` counts from the current position, ``column`` from 0.
Everything else stays as it is, so that the identifier (``U00:``) keeps templates apart. Outside the
sequence a cell reads ``_B-1``, ``_B-2``, ... before and ``_B+1``, ... behind it.

A ``U`` line makes an attribute of each position. The first ``B`` line without ``%x`` stands for the plain
transitions (one weight per pair of labels); every other ``B`` line makes an edge attribute of each position
but the first, with a weight per pair of labels. Without a plain ``B`` there are no plain transitions.

References
----------
[1] T. Kudo. CRF++: yet another CRF toolkit. Section "Preparing feature templates" of its manual.
"""

import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from crfit import _native
from crfit.errors import DataError, OptionError
from crfit.files import BYTE_ORDER_MARK

__all__ = ["Template", "default_template", "load_template", "shipped_templates"]

_SEPARATORS = frozenset(" \t\r\n")
_SHIPPED = resources.files("crfit") / "data"


class Template:
    """Templates, checked and ready to expand.

    Parameters
    ----------
    text : str
        The lines of a template file.
    name : str, optional
        File name for error messages.

    Raises
    ------
    DataError
        A line is not a template; the message names file and line.
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
        """Columns that a row needs, 1 + the highest column referred to; the label is not counted."""
        return self.native.n_columns

    @property
    def n_attributes(self) -> int:
        """Number of U lines, which are the attributes of each position."""
        return self.native.n_attributes

    @property
    def n_edge_attributes(self) -> int:
        """Number of B lines that make edge attributes, the plain one not counted."""
        return self.native.n_edges

    @property
    def plain_transitions(self) -> bool:
        """Whether there is a B line without ``%x``, which stands for one weight per pair of labels."""
        return self.native.plain_transitions

    def expand(self, rows: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[list[str]]]:
        """Attributes and edge attributes of each position of one sequence; rows are without the label."""
        for position, row in enumerate(rows):
            if not row or not all(cell and _SEPARATORS.isdisjoint(cell) for cell in row):
                raise DataError("a cell is empty or has white space in it", position=position, sequence=0)
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
        counts = f"{self.n_attributes} attributes and {self.n_edge_attributes} edge attributes a position"
        return f"<Template {self.name or ''}: {counts}, {self.n_columns} columns>"

    def __reduce__(self) -> tuple[object, ...]:
        return Template, (self.text, self.name)


def default_template(n_columns: int) -> Template:
    """The template for column files that come without one; the label is not counted in `n_columns`.

    For each column: the values at the five positions from two before to two behind, and the pairs of the
    current value with the one before and the one behind; besides, the plain transitions.
    """
    lines = ["# made by crfit for files without a template: a window of five, and neighbouring pairs"]
    for column in range(n_columns):
        lines += [f"U{column}[{row}]:%x[{row},{column}]" for row in range(-2, 3)]
        lines += [f"U{column}[{row},{row + 1}]:%x[{row},{column}]/%x[{row + 1},{column}]" for row in (-1, 0)]
    return Template("\n".join([*lines, "B", ""]), name="<default template>")


def shipped_templates() -> list[str]:
    """Names of the templates that come with crfit, as `load_template` takes them."""
    return sorted(entry.name for entry in _SHIPPED.iterdir() if entry.name.endswith(".template"))


def load_template(path: str | os.PathLike[str]) -> Template:
    """Read a template file.

    Parameters
    ----------
    path : str or path
        A file, or the name of a shipped template when there is no such file.

    Raises
    ------
    DataError
        The file cannot be read, or a line of it is not a template.
    """
    if not isinstance(path, str | os.PathLike):
        raise OptionError("template", path, "give a Template, a template file or the name of a shipped one")
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        if str(path) not in shipped_templates():
            remedy = f"no such template file; the shipped ones are {', '.join(shipped_templates())}"
            raise DataError(remedy, file=str(path)) from None
        content = (_SHIPPED / str(path)).read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", file=str(path)) from None
    return Template(content.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "surrogateescape"), name=str(path))
