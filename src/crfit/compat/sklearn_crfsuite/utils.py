"""Helpers for lists of sequences."""

from collections.abc import Iterable
from itertools import chain
from typing import TypeVar

_Entry = TypeVar("_Entry")


def flatten(y: Iterable[Iterable[_Entry]]) -> list[_Entry]:
    """Concatenate sequences to one list.

    Examples
    --------
    >>> flatten([["A", "B"], ["C"]])
    ['A', 'B', 'C']
    """
    return list(chain.from_iterable(y))
