"""CoNLL-2002 with spelling features like the set S3 of Altun et al. [1], which Tsuboi et al. [2] trained on.

The papers do not list their features: S3 is "word and spelling of all words in a window of three". Ours are,
for the words at -1, 0 and +1 that are in the sentence,

    w       the word
    s1-s3   its last one to three characters        p1-p3   its first ones
    Cap     begins with a capital                   CAP     all letters are capitals
    Mix     small letters and a capital that is not the first character
    Dig     has a digit                             DIG     all digits
    Hyp     has a hyphen                            Dot     has a dot
    End     ends with a dot                         Abb     one capital and a dot
    First   is the first word of the sentence

99,135 attributes are reported in [2]; these give another number, and nobody should take them for the same.

References
----------
[1] Altun, Johnson, Hofmann (2003). Investigating loss functions and optimization methods for discriminative
    learning of label sequences. EMNLP, 145-152.
[2] Tsuboi, Unno, Kashima, Okazaki (2011). Fast Newton-CG method for batch learning of conditional random
    fields. AAAI, 489-494.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from crfit.text import Input

from bench.corpora import column_parts, conll2002

TITLE = "CoNLL-2002 named entities, spelling features"
FILES = conll2002.FILES
VARIANTS = conll2002.VARIANTS
HOW_TO_GET = conll2002.HOW_TO_GET
FORMAT = "crfsuite"
TEMPLATE = None
WINDOW = (-1, 0, 1)
LONGEST_AFFIX = 3


def load(paths: dict[str, Path], variant: str) -> dict[str, Input]:
    parts = column_parts(paths)
    return {part: Input(whole.name, _attributes(whole.data)) for part, whole in parts.items()}


def _attributes(data: bytes) -> bytes:
    """The text with the attributes of each token: label, TAB, attributes with TABs between them."""
    blocks = [block for block in data.decode().split("\n\n") if block.strip()]
    lines = []
    for block in blocks:
        rows = [line.split(" ") for line in block.strip("\n").split("\n")]
        words = [row[0] for row in rows]
        lines += ["\t".join([row[-1], *_around(words, t)]) for t, row in enumerate(rows)]
        lines.append("")
    return ("\n".join(lines) + "\n").encode()


def _around(words: Sequence[str], t: int) -> Iterator[str]:
    for offset in WINDOW:
        at = t + offset
        if 0 <= at < len(words):
            yield _spelled(words[at], offset)
            if at == 0:
                yield f"First[{offset}]"


@cache
def _spelled(word: str, offset: int) -> str:
    """Attributes of a word at some place of the window, with TABs between them and colons escaped."""
    names = [f"w[{offset}]={word}"]
    for n in range(1, min(LONGEST_AFFIX, len(word)) + 1):
        names += [f"s{n}[{offset}]={word[-n:]}", f"p{n}[{offset}]={word[:n]}"]
    names += [f"{name}[{offset}]" for name in shape(word)]
    return "\t".join(name.replace("\\", "\\\\").replace(":", "\\:") for name in names)


def shape(word: str) -> list[str]:
    """Which of the yes/no properties a word has."""
    letters = [c for c in word if c.isalpha()]
    found = {
        "Cap": word[:1].isupper(),
        "CAP": bool(letters) and all(c.isupper() for c in letters),
        "Mix": any(c.isupper() for c in word[1:]) and any(c.islower() for c in word),
        "Dig": any(c.isdigit() for c in word),
        "DIG": word.isdigit(),
        "Hyp": "-" in word,
        "Dot": "." in word,
        "End": word.endswith("."),
        "Abb": len(word) == 2 and word[0].isupper() and word[1] == ".",
    }
    return [name for name, holds in found.items() if holds]
