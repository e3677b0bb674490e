"""Exceptions and warnings.

Every error says what is wrong, where, and what to do about it. Data errors carry file and line (text input)
or sequence and position (Python input); option errors carry the option, its value and the remedy. The command
line prints the message alone and exits with 2 for any of these.
"""

from __future__ import annotations

import reprlib
from typing import Any

__all__ = [
    "CapabilityError",
    "ConvergenceWarning",
    "CrfitError",
    "CrfitWarning",
    "DataError",
    "ModelFileError",
    "OptionError",
    "PointError",
    "shown",
]

#: Most characters of a value in a message; names of files, which are strings, may be longer.
MAX_SHOWN, MAX_SHOWN_STRING = 80, 250

_brief = reprlib.Repr()
_brief.maxlevel = 3
_brief.maxlist = _brief.maxtuple = _brief.maxset = _brief.maxfrozenset = _brief.maxdeque = 12
_brief.maxdict = _brief.maxarray = 8
_brief.maxstring = _brief.maxlong = _brief.maxother = MAX_SHOWN + 1


class CrfitError(Exception):
    """Base of all errors that crfit raises on purpose."""


class DataError(CrfitError, ValueError):
    """Input data that cannot be used.

    Parameters
    ----------
    message : str
        What is wrong and what to do about it.
    file : str, optional
        Name of the input file, ``<stdin>`` for standard input.
    line : int, optional
        Line number, counted from 1.
    sequence, position : int, optional
        Indices counted from 0, for data that comes as Python objects.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        sequence: int | None = None,
        position: int | None = None,
    ) -> None:
        self.file, self.line, self.sequence, self.position = file, line, sequence, position
        place = ""
        if file is not None:
            place = f"{file}:{line}: " if line is not None else f"{file}: "
        elif line is not None:
            place = f"line {line}: "
        elif sequence is not None:
            place = f"sequence {sequence}" + (f", position {position}: " if position is not None else ": ")
        super().__init__(place + message)


class OptionError(CrfitError, ValueError):
    """An option that does not exist or a value that it cannot take.

    Parameters
    ----------
    option : str
        Name of the option as the user wrote it.
    value : object
        The value given; the message shows at most a line of it.
    remedy : str
        What to give instead.
    """

    def __init__(self, option: str, value: object, remedy: str) -> None:
        self.option, self.value, self.remedy = option, value, remedy
        super().__init__(f"{option}={shown(value)}: {remedy}")

    def __reduce__(self) -> tuple[type[OptionError], tuple[str, object, str]]:
        return type(self), (self.option, self.value, self.remedy)


class CapabilityError(OptionError):
    """A trainer needs something that this objective or engine does not offer."""


class ModelFileError(CrfitError):
    """A model file that is cut, altered, of another version, or no model at all."""


class PointError(CrfitError, RuntimeError):
    """A product or line profile was asked for before ``value_and_grad`` fixed a point."""


class CrfitWarning(UserWarning):
    """Base of all warnings that crfit gives."""


class ConvergenceWarning(CrfitWarning):
    """Training ended for another reason than convergence or a limit that the user set."""


def shown(value: Any) -> str:
    """``repr(value)`` if that is short, else its type and size: a message must not print the data."""
    if isinstance(value, str):
        if len(value) <= MAX_SHOWN_STRING:
            return repr(value)
        return f"{value[:MAX_SHOWN]!r}... ({len(value)} characters)"
    shape = getattr(value, "shape", None)
    if not shape:  # numbers, and all that has no shape
        text = _brief.repr(value)  # never longer than the limits above make it, however large the value
        if len(text) <= MAX_SHOWN and "..." not in text:
            return text
    name = type(value).__name__
    if isinstance(shape, tuple) and shape:
        return f"<{name} of shape {shape}>"
    try:
        return f"<{name} of {len(value)}>"
    except TypeError:
        return f"<{name}>"
