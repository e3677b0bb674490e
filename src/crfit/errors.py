"""Exceptions and warnings.

Every error says what is wrong, where, and what would do. Data errors carry file and line (text input) or
sequence and position (Python input); option errors carry the option, its value and the remedy. The command
line prints the message alone and exits 2 for any of these.
"""

from __future__ import annotations

__all__ = [
    "CapabilityError",
    "ConvergenceWarning",
    "CrfitError",
    "CrfitWarning",
    "DataError",
    "ModelFileError",
    "OptionError",
    "PointError",
]


class CrfitError(Exception):
    """Base of all errors that crfit raises on purpose."""


class DataError(CrfitError, ValueError):
    """Input data that cannot be used.

    Parameters
    ----------
    message : str
        What is wrong and what would do.
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
        The value given.
    remedy : str
        What would do.
    """

    def __init__(self, option: str, value: object, remedy: str) -> None:
        self.option, self.value, self.remedy = option, value, remedy
        super().__init__(f"{option}={value!r}: {remedy}")

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
