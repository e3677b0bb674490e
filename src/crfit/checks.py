"""Checks of numbers that users give as options."""

from __future__ import annotations

import math
import numbers
from typing import Any

from crfit.errors import OptionError

__all__ = ["check_free", "check_number", "check_whole_number"]


def check_number(name: str, value: Any, *, at_least: float | None = None) -> None:
    """Refuse what is no number.

    Parameters
    ----------
    name : str
        Name of the option.
    value : object
        Its value; infinity is a number here, True and NaN are not.
    at_least : float, optional
        Smallest value allowed.

    Raises
    ------
    OptionError
        Says what would do.
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or value != value or (at_least is not None and value < at_least):
        raise OptionError(name, value, "give a number" + _bound(at_least))


def check_whole_number(name: str, value: Any, *, at_least: int | None = None) -> None:
    """Refuse what is no whole number.

    Parameters
    ----------
    name : str
        Name of the option.
    value : object
        Its value; 3.0 is a whole number, True is none.
    at_least : int, optional
        Smallest value allowed.

    Raises
    ------
    OptionError
        Says what would do.
    """
    whole = isinstance(value, numbers.Integral)
    if isinstance(value, numbers.Real) and not whole:
        whole = math.isfinite(value) and value == math.floor(value)
    if not whole or isinstance(value, bool) or (at_least is not None and value < at_least):
        raise OptionError(name, value, "give a whole number" + _bound(at_least))


def check_free(n_free: Any, n_attributes: int) -> None:
    """Refuse a number of attributes without a penalty that the alphabet cannot have.

    Parameters
    ----------
    n_free : object
        How many there shall be.
    n_attributes : int
        How many attributes there are.

    Raises
    ------
    OptionError
        Says what would do.
    """
    check_whole_number("n_free", n_free, at_least=0)
    if n_free > n_attributes:
        raise OptionError("n_free", n_free, f"there are {n_attributes} attributes; give no more than that")


def _bound(at_least: float | None) -> str:
    return "" if at_least is None else f", {at_least:g} or more"
