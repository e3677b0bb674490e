r"""Names of labels and attributes on a terminal or a page.

Names come from the user's data and may hold anything: control characters that move the cursor or recolour a
terminal, marks that reverse the direction of the text around them, bytes that are not UTF-8. `printable`
writes these as escapes such as ``\x1b`` and ``\u202e``; everything else stays as it is.
"""

import re
from collections.abc import Sequence

__all__ = ["brief", "counted", "printable", "probability", "signed", "token_names"]

# Control characters, marks of direction, separators of lines, invisible operators, tags, and surrogates,
# which stand for bytes that are not UTF-8. The joiners U+200C and U+200D belong to words of some scripts.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_FAMILY = re.compile("(.+?)[=:](.+)", re.S)


def printable(text: str) -> str:
    """The text with control characters and marks of direction as escapes."""
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def brief(text: str, length: int = 80) -> str:
    """A printable name, shortened in the middle if it is longer than `length` characters."""
    shown = printable(text)
    if len(shown) <= length:
        return shown
    head = (length - 1) * 2 // 3
    return f"{shown[:head]}…{shown[head + 1 - length :]}"


def token_names(attributes: Sequence[Sequence[str]]) -> list[str]:
    """A short name for each position of a sequence, from its attributes.

    Attributes are often named ``family=value`` or ``family:value``. Of the families that every position has,
    the one with the most different values, usually the word, names the positions. Without such a family the
    first attribute does.
    """
    families: list[dict[str, str]] = []
    for names in attributes:
        found: dict[str, str] = {}
        for name in names:
            if (match := _FAMILY.fullmatch(name)) is not None:
                found.setdefault(match[1], match[2])
        families.append(found)
    common = [name for name in families[0] if all(name in each for each in families)] if families else []
    if not common:
        return [next(iter(names), "") for names in attributes]
    best = max(common, key=lambda name: len({each[name] for each in families}))  # the first of equals
    return [each[best] for each in families]


def probability(p: float) -> str:
    """A probability with four decimals; a smaller one with two significant digits."""
    return f"{p:.4f}" if p >= 0.0005 or p == 0.0 else f"{p:.1e}"


def signed(value: float) -> str:
    """A number with its sign and three decimals, never ``-0.000``."""
    return f"{round(value, 3) + 0.0:+.3f}"


def counted(n: int, word: str) -> str:
    """A number and a noun, in the plural unless the number is 1."""
    plural = word + ("es" if word.endswith("s") else "s")
    return f"{n:,} {word if n == 1 else plural}"
