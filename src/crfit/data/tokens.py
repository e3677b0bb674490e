"""Raw text to tokens: words, numbers and single other characters, with their places in the text."""

import re
import unicodedata
from typing import NamedTuple

__all__ = ["Token", "tokenize"]

_MARK = "\u0301"  # stands for all marks, which are all from U+0300 on
_PERHAPS_MARKS = re.compile("[\u0300-\U0010ffff]")
# A word may hold apostrophes, hyphens and dots between letters or digits: don't, 221-b, 3.5, U.S
_WORD = rf"\w[\w{_MARK}]*"
_TOKEN = re.compile(rf"{_WORD}(?:[-'’.,/]{_WORD})*|[^\w\s]{_MARK}*")


class Token(NamedTuple):
    """A token and its place: ``text[start:end]`` is the token."""

    token: str
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Split a text into words, numbers and single other characters.

    A word may hold apostrophes, hyphens, dots, commas and slashes between letters or digits, as in ``don't``,
    ``1/2`` and ``3.5``. Accents, vowel signs and joiners that are characters of their own belong to the
    character before them. White space separates tokens and belongs to none.

    Examples
    --------
    >>> [one.token for one in tokenize("1/2 cup (120 ml) milk")]
    ['1/2', 'cup', '(', '120', 'ml', ')', 'milk']
    """
    plain = text
    if _PERHAPS_MARKS.search(text):
        plain = "".join(_MARK if _is_mark(one) else one for one in text)
    return [Token(text[a:b], a, b) for a, b in (match.span() for match in _TOKEN.finditer(plain))]


def _is_mark(character: str) -> bool:
    """Whether it belongs to the character before it: `re` takes marks for punctuation."""
    return unicodedata.category(character)[0] == "M" or character in "\u200c\u200d"
