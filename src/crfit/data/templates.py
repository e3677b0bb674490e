"""Feature templates: how to build attributes from the columns around a position.

A template file of CRF++ has one template per line::

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

Wapiti's patterns, the other dialect, are ``u``, ``b`` and ``*`` lines; ``*`` lines are both. Their commands
are ``%x``, ``%t[row,column,"expression"]``, which gives ``true`` or ``false``, and ``%m[...]``, which gives
the text that the expression matches. An upper-case letter (``%X``) lower-cases what the command gives, and
``@`` counts rows from the start of the sequence. Cells outside it read ``_x-1``, ..., ``_x-4``, ``_x-#`` and
``_x+1``, ...

References
----------
[1] T. Kudo. CRF++: yet another CRF toolkit. Section "Preparing feature templates" of its manual.
[2] T. Lavergne, O. Cappé, F. Yvon (2010). Practical very large scale CRFs. ACL.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from crfit import _native
from crfit.errors import DataError, OptionError
from crfit.files import BYTE_ORDER_MARK

__all__ = ["Dialect", "Template", "default_template", "detect_dialect", "load_template", "shipped_templates"]

#: The tool whose templates these are.
Dialect: TypeAlias = Literal["crfpp", "wapiti"]

_SEPARATORS = frozenset(" \t\r\n")
_SHIPPED = Path(__file__).parent
# What Wapiti's patterns have and CRF++'s templates do not.
_OF_WAPITI = re.compile(r"^(?:[ub*]|[UB][^#\n]*(?:%[XtTmM]|%x\[[@+]))", re.M)


class Template:
    """A parsed and validated feature template.

    Parameters
    ----------
    text : str
        Contents of a template file.
    name : str, optional
        File name for error messages.
    dialect : {"crfpp", "wapiti"}, default="crfpp"
        The tool whose templates these are.

    Raises
    ------
    DataError
        A line is not a valid template; the message names the file and line.
    """

    __slots__ = ("dialect", "name", "native", "text")

    def __init__(self, text: str, name: str | None = None, dialect: Dialect = "crfpp") -> None:
        if dialect not in get_args(Dialect):
            raise OptionError("dialect", dialect, f"choose {' or '.join(get_args(Dialect))}")
        self.text, self.name, self.dialect = text, name, dialect
        try:
            self.native = _native.Template(text.encode("utf-8", "surrogateescape"), _native.Dialect[dialect])
        except _native.TextError as error:
            message, _, line = error.args
            raise DataError(message, file=name, line=line or None) from None

    @property
    def n_columns(self) -> int:
        """Number of columns needed, without the label (1 + the highest column used)."""
        return self.native.n_columns

    @property
    def lines(self) -> list[str]:
        """Lines without comments; those of Wapiti begin with a lower-case letter, as in its model files."""
        lines = [line.removesuffix("\r") for line in self.text.split("\n")]
        if self.dialect == "crfpp":
            return [line for line in lines if line[:1] in ("U", "B")]
        found = [line.partition("#")[0].rstrip(" \t\v\f\r") for line in lines]
        return [line[0].lower() + line[1:] for line in found if line]

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
        if not isinstance(other, Template):
            return NotImplemented
        return (self.text, self.dialect) == (other.text, other.dialect)

    def __hash__(self) -> int:
        return hash((self.text, self.dialect))

    def __repr__(self) -> str:
        counts = f"{self.n_attributes} attributes and {self.n_edge_attributes} edge attributes per position"
        return f"<Template {self.name or ''}: {counts}, {self.n_columns} columns>"

    def __reduce__(self) -> tuple[object, ...]:
        return Template, (self.text, self.name, self.dialect)


def detect_dialect(text: str) -> Dialect:
    """The dialect of a template file: Wapiti's if CRF++ does not have one of its lines or commands."""
    return "wapiti" if _OF_WAPITI.search(text) else "crfpp"


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
    """Read a template file of CRF++, or of Wapiti if it has lower-case lines or commands of Wapiti's.

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
    text = content.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "surrogateescape")
    return Template(text, str(path), detect_dialect(text))
