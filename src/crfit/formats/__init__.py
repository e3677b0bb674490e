"""Parameters and models of other tools, one module per tool.

Models are recognised by their first bytes; the format to write follows from the name of the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crfit.errors import OptionError
from crfit.formats import signatures

if TYPE_CHECKING:
    from crfit.model import Model

__all__ = ["FORMATS", "SUFFIXES", "WRITTEN", "Format", "detect", "named", "write"]


@dataclass(frozen=True)
class Format:
    """A format of model files.

    `first_bytes` begin every file of the format. Names of files to write end in `suffix`; "" if crfit does
    not write the format. `module` has the functions ``read`` and `writer`; "" for crfit's own format.
    """

    name: str
    title: str
    suffix: str
    module: str = ""
    first_bytes: tuple[bytes, ...] = ()
    writer: str = "write"

    def function(self, name: str) -> Callable[..., Any]:
        """A function of the module, imported on first use."""
        found: Callable[..., Any] = getattr(import_module(f"crfit.formats.{self.module}"), name)
        return found


#: Formats by name, in the order of the help page. The text form of CRF++ is read by the same function.
FORMATS = {
    one.name: one
    for one in (
        Format("crfit", "crfit", ".crfit"),
        Format("crfsuite", "CRFsuite", ".crfsuite", "crfsuite_model", (signatures.CRFSUITE,)),
        Format("crfpp", "CRF++ (binary)", ".crfpp", "crfpp", (signatures.CRFPP_BINARY,)),
        Format(
            "crfpp-text", "CRF++ (text)", ".crfpp.txt", "crfpp", (signatures.CRFPP_TEXT,), writer="write_text"
        ),
        Format("wapiti", "Wapiti", ".wapiti", "wapiti", (signatures.WAPITI,)),
        Format("pickle", "sklearn-crfsuite", "", "sklearn_crfsuite", signatures.PICKLES),
    )
}
#: The formats that crfit writes.
WRITTEN = tuple(one for one in FORMATS.values() if one.suffix)
#: The ends of their names, for messages.
SUFFIXES = ", ".join(one.suffix for one in WRITTEN)


def detect(path: str | os.PathLike[str]) -> Format:
    """Format of a model file by its first bytes; crfit's own if they match no other."""
    try:
        with open(path, "rb") as file:
            begin = file.read(16)
    except OSError:
        begin = b""  # the reader reports it
    found = (one for one in FORMATS.values() if one.first_bytes and begin.startswith(one.first_bytes))
    return next(found, FORMATS["crfit"])


def named(path: str | os.PathLike[str]) -> Format | None:
    """Format to write by the end of a file's name, None if it does not say."""
    name = os.fspath(path)
    fitting = [one for one in WRITTEN if name.endswith(one.suffix)]
    return max(fitting, key=lambda one: len(one.suffix), default=None)


def write(model: Model, path: str | os.PathLike[str], format: str | None = None) -> Format:
    """Write a model in the format of another tool, or in crfit's.

    Parameters
    ----------
    model : Model
        The model.
    path : path-like
        Name of the file.
    format : {"crfit", "crfsuite", "crfpp", "crfpp-text", "wapiti"}, optional
        By default detected from the end of the name: ``.crfit``, ``.crfsuite``, ``.crfpp``, ``.crfpp.txt`` or
        ``.wapiti``.

    Returns
    -------
    Format
        The format written.

    Raises
    ------
    ModelFileError
        The format cannot express the model, or the file cannot be written.
    OptionError
        The name does not tell the format, or there is no such format.
    """
    found = named(path) if format is None else FORMATS.get(format)
    if found is None and format is None:
        raise OptionError("path", os.fspath(path), f"use a name that ends in {SUFFIXES}, or give the format")
    if found not in WRITTEN:
        raise OptionError("format", format, f"choose {', '.join(one.name for one in WRITTEN)}")
    if found.module:
        found.function(found.writer)(model, path)
    else:
        model.save(path)
    return found
