"""Raw text to tokens: words, numbers and single other characters, with their places in the text."""

import re
from typing import NamedTuple

__all__ = ["Token", "tokenize"]

# A word may hold apostrophes, hyphens and dots between letters or digits: don't, 221-b, 3.5, U.S
_TOKEN = re.compile(r"\w+(?:[-'’.,/]\w+)*|[^\w\s]", re.UNICODE)


class Token(NamedTuple):
    """A token and its place: ``text[start:end]`` is the token."""

    token: str
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Split a text into words, numbers and single other characters.

    A word may hold apostrophes, hyphens, dots, commas and slashes between letters or digits, as in ``don't``,
    ``1/2`` and ``3.5``. White space separates tokens and belongs to none.

    Examples
    --------
    >>> [one.token for one in tokenize("1/2 cup (120 ml) milk")]
    ['1/2', 'cup', '(', '120', 'ml', ')', 'milk']
    """
    return [Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)]
