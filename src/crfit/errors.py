"""Exceptions and warnings.

Every message says what is wrong, where, and what to do. Data errors carry the file and line (text input) or
the sequence and position (Python input); option errors carry the option, its value and the remedy. On the
command line, any of these errors prints one line and exits with code 2.
"""

from __future__ import annotations

import reprlib
from typing import Any

__all__ = [
    "CapabilityError",
    "CheckError",
    "ClusterError",
    "ConvergenceWarning",
    "CrfitError",
    "CrfitWarning",
    "DataError",
    "ModelFileError",
    "OptionError",
    "PointError",
    "shown",
]

#: Maximum length of a value in a message; strings may be longer, since file names are.
MAX_SHOWN, MAX_SHOWN_STRING = 80, 250

_brief = reprlib.Repr()
_brief.maxlevel = 3
_brief.maxlist = _brief.maxtuple = _brief.maxset = _brief.maxfrozenset = _brief.maxdeque = 12
_brief.maxdict = _brief.maxarray = 8
_brief.maxstring = _brief.maxlong = _brief.maxother = MAX_SHOWN + 1


class CrfitError(Exception):
    """Base class of all errors that crfit raises on purpose."""


class DataError(CrfitError, ValueError):
    """The input data is invalid.

    Parameters
    ----------
    message : str
        What is wrong and what to do about it.
    file : str, optional
        Name of the input file, ``<stdin>`` for standard input.
    line : int, optional
        Line number, starting at 1.
    sequence, position : int, optional
        Indices starting at 0, for data given as Python objects.
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
        self.message = message
        place = ""
        if file is not None:
            place = f"{file}:{line}: " if line is not None else f"{file}: "
        elif line is not None:
            place = f"line {line}: "
        elif sequence is not None:
            place = f"sequence {sequence}" + (f", position {position}: " if position is not None else ": ")
        super().__init__(place + message)

    def renumber(self, sequence: int) -> None:
        """Change the number of the sequence, in the message too."""
        DataError.__init__(
            self, self.message, file=self.file, line=self.line, sequence=sequence, position=self.position
        )


class OptionError(CrfitError, ValueError):
    """An option does not exist, or its value is not allowed.

    Parameters
    ----------
    option : str
        Name of the option as the user wrote it.
    value : object
        The value given; long values are shortened in the message.
    remedy : str
        What to give instead.
    """

    def __init__(self, option: str, value: object, remedy: str) -> None:
        self.option, self.value, self.remedy = option, value, remedy
        super().__init__(f"{option}={shown(value)}: {remedy}")

    def __reduce__(self) -> tuple[type[OptionError], tuple[str, object, str]]:
        return type(self), (self.option, self.value, self.remedy)


class CapabilityError(OptionError):
    """The trainer needs a feature that this objective or engine does not have."""


class ModelFileError(CrfitError):
    """The model file is truncated, damaged or not a model, or its format cannot express the model."""


class ClusterError(CrfitError, RuntimeError):
    """The cluster cannot do the work: there are no workers, or they have another version of crfit."""


class PointError(CrfitError, RuntimeError):
    """``hvp`` or a line profile was called before ``value_and_grad`` set the point."""


class CheckError(CrfitError, ArithmeticError):
    """Numbers differ by more than rounding when computed in two ways: a bug, or a fault of the machine."""


class CrfitWarning(UserWarning):
    """Base class of all crfit warnings."""


class ConvergenceWarning(CrfitWarning):
    """Training ended without converging, and not because of a limit that you set."""


def shown(value: Any) -> str:
    """``repr(value)`` if that is short, else its type and size: messages never print the data."""
    if isinstance(value, str):
        if len(value) <= MAX_SHOWN_STRING:
            return repr(value)
        return f"{value[:MAX_SHOWN]!r}... ({len(value)} characters)"
    shape = getattr(value, "shape", None)
    if not shape:  # numbers, and anything without a shape
        text = _brief.repr(value)  # bounded by the limits above, however large the value
        if len(text) <= MAX_SHOWN and "..." not in text:
            return text
    name = type(value).__name__
    if isinstance(shape, tuple) and shape:
        return f"<{name} of shape {shape}>"
    try:
        return f"<{name} of {len(value)}>"
    except TypeError:
        return f"<{name}>"
